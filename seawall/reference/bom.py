"""The bill of materials: `python -m seawall.reference.bom > build/seawall.cdx.json`, CycloneDX 1.6.

Every Python package of requirements/user.txt, once for each version that some Python takes, and every jar of
each classpath, with the hashes that installation holds them to. Nothing is looked up: it says what the pins
say, so that the same pins make the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from seawall.jvm.classpath import NAMES, USED_FOR
from seawall.jvm.ivy import FILES
from seawall.jvm.pins import read_pins
from seawall.spark_package.contents import blocks
from seawall.spark_package.site import PINS
from seawall.version import version

_LINE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")


def bom() -> dict[str, Any]:
    components = [*packages(PINS.read_text(encoding="utf-8")), *_jars()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "seawall",
                "name": "seawall",
                "version": version() or "source",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": "seawall", "dependsOn": [each["bom-ref"] for each in components]}],
    }


def packages(pins: str) -> Iterator[dict[str, Any]]:
    """A version's files are many, one a platform: they are references by their hashes."""
    for name, block in sorted(blocks(pins).items()):
        for pinned, marker, hashes in _versions(block):
            purl = f"pkg:pypi/{name}@{pinned}"
            found = {"type": "library", "bom-ref": purl, "name": name, "version": pinned, "purl": purl}
            yield {
                **found,
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": purl,  # where it is fetched from is the installer's choice
                        "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
                    }
                ],
                **({"properties": [{"name": "seawall:marker", "value": marker}]} if marker else {}),
            }


def _versions(block: str) -> Iterator[tuple[str, str | None, list[str]]]:
    told: tuple[str, str | None, list[str]] | None = None
    for line in block.splitlines():
        if (pinned := _LINE.match(line)) is not None:
            if told is not None:
                yield told
            told = (pinned[2], pinned[3], [])
        if told is not None:
            told[2].extend(_HASH.findall(line))
    if told is not None:
        yield told


def _jars() -> Iterator[dict[str, Any]]:
    """Once each, with the classpaths that it is on."""
    on: dict[tuple[str, str], list[str]] = {}
    for classpath in NAMES:
        pinned: Mapping[str, str] = read_pins(classpath, FILES / f"{classpath}.sha256").sha256_by_jar
        for jar, sha256 in pinned.items():
            on.setdefault((jar, sha256), []).append(classpath)
    for (jar, sha256), classpaths in sorted(on.items()):
        parts = _JAR.fullmatch(jar)
        name, pinned_at = (parts["name"], parts["version"]) if parts else (jar, "")
        yield {
            "type": "library",
            "bom-ref": f"jar:{jar}:{sha256[:12]}",
            "name": name,
            "version": pinned_at,
            "purl": f"pkg:generic/{name}@{pinned_at}?checksum=sha256:{sha256}",
            "hashes": [{"alg": "SHA-256", "content": sha256}],
            "properties": [{"name": "seawall:classpath", "value": each} for each in classpaths],
            "description": "; ".join(USED_FOR[each] for each in classpaths),
        }


def page() -> str:
    return json.dumps(bom(), indent=1, sort_keys=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
