"""The bill of materials says what the pins say: all of it, with hashes, the same each time."""

from __future__ import annotations

import re

from seawall.jvm.classpath import NAMES
from seawall.jvm.ivy import FILES
from seawall.reference import bom
from seawall.spark_package.site import PINS


def test_every_pin_is_in_it_with_every_hash() -> None:
    """Packages by name and version, and jars, no more and no fewer."""
    text = PINS.read_text(encoding="utf-8")
    pinned = {(name.lower(), at) for name, at in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)}

    made = bom.bom()

    packages = [each for each in made["components"] if each["purl"].startswith("pkg:pypi/")]
    assert {(each["name"], each["version"]) for each in packages} == pinned
    hashes = [each for one in packages for each in one["externalReferences"][0]["hashes"]]
    assert len(hashes) == text.count("--hash=sha256:")
    jars = {each["hashes"][0]["content"] for each in made["components"] if "hashes" in each}
    lines = [line for name in NAMES for line in (FILES / f"{name}.sha256").read_text().splitlines()]
    assert jars == {line.split()[0] for line in lines if line}


def test_each_part_is_named_once() -> None:
    """References are unique, and the whole depends on each; what only some Pythons take says so."""
    made = bom.bom()

    references = [each["bom-ref"] for each in made["components"]]
    assert len(set(references)) == len(references)
    assert made["dependencies"] == [{"ref": "seawall", "dependsOn": references}]
    assert any(
        each["name"] == "tomli" and "python_full_version" in each["properties"][0]["value"]
        for each in made["components"]
    )
    assert bom.page() == bom.page()
