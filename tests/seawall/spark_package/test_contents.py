"""What goes into a package: all that Seawall needs, as pinned, and nothing of the cluster's own."""

from __future__ import annotations

from collections.abc import Iterable

from seawall.spark_package.contents import OF_THE_CLUSTER, blocks, needed, plain, versions
from seawall.spark_package.site import PINS, requires

ASKED = {
    "seawall": ["Boto3[crt]>=1", "pyspark==4.1.2", "moto>=5; extra == 'demo'", "tomli; python_version < '3'"],
    "boto3": ["botocore", "awscrt==1; extra == 'crt'", "other; extra == 'else'"],
    "botocore": ["boto3"],
    "pyspark": ["py4j"],
}


def _asked(name: str) -> Iterable[str] | None:
    return ASKED.get(name)


def test_extras_are_those_that_are_asked_for() -> None:
    """Of the root none, of what it needs those that it names; circles end; Spark itself stays out."""
    assert needed("seawall", _asked) == {"boto3", "botocore", "awscrt"}


def test_all_that_seawall_needs_is_pinned_with_a_hash() -> None:
    """Each package that a package takes has lines of its own in requirements/user.txt."""
    pinned = blocks(PINS.read_text(encoding="utf-8"))

    found = needed("seawall", requires)

    assert {"boto3", "confluent-kafka", "great-expectations", "delta-spark", "numpy"} <= found
    assert not found & (OF_THE_CLUSTER | {"moto", "textual"})
    assert all("--hash=sha256:" in pinned[name] and versions(pinned[name]) for name in found)


def test_a_package_may_be_pinned_for_each_python() -> None:
    """Lines of one name are kept together, with their markers; comments are not."""
    one = "A_b==1 ; python_version < '3' \\\n    --hash=sha256:aa\n    # via x\n"
    text = f"{one}A_b==2 \\\n    --hash=sha256:bb\nc==3\n"

    found = blocks(text)

    assert list(found) == ["a-b", "c"]
    assert versions(found["a-b"]) == {"1", "2"}
    assert "via" not in found["a-b"]
    assert plain("A_.b") == "a-b"
