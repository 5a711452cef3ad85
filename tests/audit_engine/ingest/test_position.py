"""Where ingest goes on, what its commits say, and what it refuses: without Spark and without Kafka."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_engine.ingest.client import java_properties
from audit_engine.ingest.position import Lost, TopicReach, onward, together, untold
from audit_engine.tables import columns
from audit_engine.tables.errors import PropertyUntranslated
from audit_engine.tables.marks import Mark, furthest, ranges, read, written
from audit_engine.tables.place import root_of

OFFSETS = st.dictionaries(st.integers(0, 5), st.integers(0, 100))


def _reach(starts: dict[int, int], ends: dict[int, int]) -> TopicReach:
    return TopicReach(topic_id="t", starts=starts, ends=ends)


def test_it_goes_on_where_the_table_stands() -> None:
    """Also in a partition that the table has nothing of."""
    found = onward(_reach({0: 0, 1: 10, 2: 0}, {0: 50, 1: 60, 2: 9}), {0: 40, 1: 20})

    assert found.starts == {0: 40, 1: 20, 2: 0}
    assert found.lost == ()
    assert found.behind == ()


@given(starts=OFFSETS, held=OFFSETS)
def test_what_lies_between_is_named_as_lost(starts: dict[int, int], held: dict[int, int]) -> None:
    """Below where it goes on, each offset is the table's or in a lost stretch, never in both."""
    found = onward(_reach(starts, {}), held)

    for partition, start in found.starts.items():
        lost = [each.end - each.start for each in found.lost if each.partition == partition]
        assert held.get(partition, 0) + sum(lost) == start
        assert all(length > 0 for length in lost)


def test_a_topic_that_ends_before_the_table_is_told() -> None:
    """Going on would wait there for ever, and then pass over new records."""
    assert onward(_reach({0: 0, 1: 0}, {0: 30, 1: 9}), {0: 40, 1: 9}).behind == (0,)


def test_a_stretch_is_told_once_and_what_is_new_of_it_again() -> None:
    """Retention may go on between a run that was killed and the next one."""
    assert untold(Lost(0, 20, 30), ()) == Lost(0, 20, 30)
    assert untold(Lost(0, 20, 30), (Lost(0, 20, 30), Lost(1, 0, 99))) is None
    assert untold(Lost(0, 20, 35), (Lost(0, 20, 30),)) == Lost(0, 30, 35)


@given(next_offsets=OFFSETS, start=OFFSETS, end=OFFSETS)
def test_a_mark_is_read_as_it_was_written(
    next_offsets: dict[int, int], start: dict[int, int], end: dict[int, int]
) -> None:
    """Whatever its ranges; and moving over them leads to where they end."""
    mark = Mark(
        token="a", number=3, topic="t", topic_id="i", ranges=ranges(start, end), next_offsets=next_offsets
    )

    assert read(written(mark)) == mark
    moved = furthest(start, {partition: ends for partition, (_, ends) in mark.ranges.items()})
    assert moved == furthest(start, {p: offset for p, offset in end.items() if offset or p in start})


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"seawall_ingest": 2}', "a note of somebody's"])
def test_metadata_of_others_is_no_mark(text: str | None) -> None:
    """OPTIMIZE and people write userMetadata, too."""
    assert read(text) is None


def test_a_password_is_handed_on_as_the_java_client_takes_it() -> None:
    """Quotes in it do not end it."""
    found = java_properties(
        {
            "bootstrap.servers": "b:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": 'a"b\\c',
            "ssl.ca.location": "/ca.pem",
            "queue.buffering.max.ms": "5",
        }
    )

    assert found["sasl.jaas.config"].endswith(r'required username="u" password="a\"b\\c";')
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"
    assert (found["ssl.truststore.location"], found["ssl.truststore.type"]) == ("/ca.pem", "PEM")
    assert "queue.buffering.max.ms" not in found


STRETCHES = st.builds(
    lambda partition, start, length: Lost(partition, start, start + length),
    st.integers(0, 2),
    st.integers(0, 20),
    st.integers(1, 9),
)


def _offsets(stretches: list[Lost]) -> set[tuple[int, int]]:
    return {(each.partition, offset) for each in stretches for offset in range(each.start, each.end)}


@given(st.lists(STRETCHES, max_size=8))
def test_what_is_lost_is_told_once_however_often_it_is_found(stretches: list[Lost]) -> None:
    """The same offsets, in order, and no stretch touches the next."""
    found = together(stretches)

    assert _offsets(found) == _offsets(stretches)
    assert found == sorted(found)
    for one, other in pairwise(found):
        assert one.partition < other.partition or one.end < other.start


def test_a_token_is_asked_for_by_the_java_client_itself() -> None:
    """The endpoint, who asks and for what; the secret stands where Kafka's own login reads it."""
    found = java_properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
            "sasl.oauthbearer.client.id": "seawall",
            "sasl.oauthbearer.client.secret": 'a"b',
            "sasl.oauthbearer.scope": "kafka",
        }
    )

    assert found["sasl.mechanism"] == "OAUTHBEARER"
    assert found["sasl.oauthbearer.token.endpoint.url"] == "https://login.example.com/token"
    assert found["sasl.jaas.config"].endswith(
        'required clientId="seawall" clientSecret="a\\"b" scope="kafka";'
    )


@pytest.mark.parametrize(
    "config",
    [
        {"ssl.engine.location": "x"},
        {"sasl.mechanism": "OAUTHBEARER"},
        {"sasl.mechanism": "AWS_MSK_IAM"},
        {"sasl.kerberos.keytab": "k"},
        {"https.ca.location": "ca.pem"},
        {"enable.sasl.oauthbearer.unsecure.jwt": "true"},
    ],
)
def test_security_that_cannot_be_handed_on_is_refused(config: dict[str, str]) -> None:
    """To leave it out could mean to connect without it."""
    with pytest.raises(PropertyUntranslated):
        java_properties(config)


def test_each_column_has_one_name() -> None:
    """In the table, and in each kind's view, where the envelope's columns stand beside the kind's own."""
    names = [column.name for column in columns.EVENT_COLUMNS]

    assert len(names) == len(set(names))
    for kind, fields in columns.OWN_FIELDS.items():
        with_own = [*names, *(each.column for each in fields)]
        assert len(with_own) == len(set(with_own)), kind


def test_a_place_is_a_folder_or_a_prefix_of_a_bucket() -> None:
    """A folder may be named from where one stands."""
    assert root_of("s3a://bucket/tables/") == "s3a://bucket/tables"
    assert root_of("/a/b") == "/a/b"
    assert root_of("tables") == str(Path.cwd() / "tables")
