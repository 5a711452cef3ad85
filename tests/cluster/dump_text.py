"""Parses what Kafka's DumpLogSegments (4.3.1) prints, line by line, into values. Pure.

Refuses to skip: a line it does not understand is UnreadableDump, as an oracle that loses lines would agree
with anything. The lines, as the tool writes them:

    Dumping FILE                                                        starts each file
    Log starting offset: N | Snapshot end offset: N, epoch: N | KRaft bootstrap snapshot
    baseOffset: N lastOffset: N count: N ... isvalid: BOOL              a batch
    | offset: N CreateTime: N keySize: N valueSize: N sequence: N headerKeys: [a,b] REST
        REST: endTxnMarker, a control record as JSON, or `key: TEXT payload: TEXT`, either may be missing
    Found N invalid bytes at the end of FILE                            a torn tail
    offset: N position: N                                               .index
    timestamp: N offset: N                                              .timeindex
    version: N producerId: N firstOffset: N lastOffset: N lastStableOffset: N       .txnindex
    producerId: N producerEpoch: N coordinatorEpoch: N ...              .snapshot
    FILE is empty. | FILE passed sanity check.

Keys and payloads are printed raw as UTF-8, line breaks included: their stated sizes decide where they end.
Bytes that are not UTF-8 are printed as U+FFFD; what they were cannot be told from the dump.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster.dump_values import (
    AbortedTransaction,
    ControlMessage,
    DumpedBatch,
    DumpedFile,
    DumpedProducer,
    DumpedRecord,
    EndTransaction,
    LastBatch,
    OffsetEntry,
    TimeEntry,
)

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class UnreadableDump(Exception):
    """The tool printed something that this parser does not know."""


def _line(template: str) -> re.Pattern[str]:
    """A whole line; <n> in the template is a number, <w> a word, <o> an OptionalLong."""
    kinds = {"n": r"-?\d+", "w": r"\w+", "o": r"OptionalLong(?:\.empty|\[-?\d+\])"}
    pattern = re.sub(r"<(\w+):([nwo])>", lambda m: f"(?P<{m[1]}>{kinds[m[2]]})", template)
    return re.compile(pattern, re.DOTALL)


_BATCH = _line(
    "baseOffset: <base_offset:n> lastOffset: <last_offset:n> count: <count:n>"
    " baseSequence: <base_sequence:n> lastSequence: <last_sequence:n> producerId: <producer_id:n>"
    " producerEpoch: <producer_epoch:n> partitionLeaderEpoch: <leader_epoch:n>"
    " isTransactional: <is_transactional:w> isControl: <is_control:w>"
    " deleteHorizonMs: <delete_horizon_ms:o> position: <position:n>"
    " <timestamp_type:w>: <max_timestamp_ms:n> size: <size_bytes:n> magic: <magic:n>"
    " compresscodec: <codec:w> crc: <crc:n> isvalid: <is_valid:w>"
)
_RECORD = _line(
    r"\| offset: <offset:n> <timestamp_type:w>: <timestamp_ms:n> keySize: <key_size_bytes:n>"
    r" valueSize: <value_size_bytes:n> sequence: <sequence:n> headerKeys: "
    # The list ends where the line does or where the next thing begins.
    r"\[(?P<header_keys>.*?)\](?P<rest>$| (?:endTxnMarker|key|payload|LeaderChange):.*"
    r"| (?:SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters) \{.*)"
)
_END_TRANSACTION = _line(" endTxnMarker: <kind:w> coordinatorEpoch: <coordinator_epoch:n>")
_CONTROL = re.compile(r" (?P<kind>\w+):? (?P<body>\{.*\})")
_LOG_START = _line("Log starting offset: <starting_offset:n>")
_SNAPSHOT_END = _line("Snapshot end offset: <starting_offset:n>, epoch: <snapshot_epoch:n>")
_TAIL = _line("Found <count:n> invalid bytes at the end of .*")
_OFFSET_ENTRY = _line("offset: <offset:n> position: <position:n>")
_TIME_ENTRY = _line("timestamp: <timestamp_ms:n> offset: <offset:n>")
_ABORTED = _line(
    "version: <version:n> producerId: <producer_id:n> firstOffset: <first_offset:n>"
    " lastOffset: <last_offset:n> lastStableOffset: <last_stable_offset:n>"
)
_PRODUCER = _line(
    "producerId: <producer_id:n> producerEpoch: <producer_epoch:n> coordinatorEpoch: <coordinator_epoch:n>"
    " currentTxnFirstOffset: <current_transaction_first_offset:o> lastTimestamp: <last_timestamp_ms:n> ?"
    "(?P<last_batch>.*)"
)
_LAST_BATCH = _line(
    "firstSequence: <first_sequence:n> lastSequence: <last_sequence:n> lastOffset: <last_offset:n>"
    " offsetDelta: <offset_delta:n> timestamp: <timestamp_ms:n>"
)
_STARTS_A_LINE = ("Dumping ", "baseOffset: ", "| offset: ", "Found ")


def parse(text: str, *, decoded: bool = False) -> list[DumpedFile]:
    """The files of one run, in order. `decoded`: a decoder made the payloads, so sizes do not apply."""
    files: list[DumpedFile] = []
    for line in _logical_lines(text):
        if line.startswith("Dumping "):
            files.append(DumpedFile(path=Path(line.removeprefix("Dumping "))))
        elif not files:
            raise UnreadableDump(f"before the first file: {line!r}")
        else:
            _take(files[-1], line, decoded)
    return files


def _logical_lines(text: str) -> Iterator[str]:
    """Lines, with a record's own line breaks put back into its line."""
    pending: str | None = None
    for line in text.split("\n")[:-1]:
        if pending is not None and not line.startswith(_STARTS_A_LINE):
            pending += "\n" + line
            continue
        if pending is not None:
            yield pending
        pending = line if line.startswith("| offset: ") else None
        if pending is None:
            yield line
    if pending is not None:
        yield pending


def _take(file: DumpedFile, line: str, decoded: bool) -> None:
    """Put one line's values where they belong."""
    if found := _BATCH.fullmatch(line):
        file.batches.append(_batch(found))
    elif found := _RECORD.fullmatch(line):
        file.batches[-1].records.append(_record(found, decoded))
    elif found := _OFFSET_ENTRY.fullmatch(line):
        file.offset_entries.append(OffsetEntry(**_numbers(found)))
    elif found := _TIME_ENTRY.fullmatch(line):
        file.time_entries.append(TimeEntry(**_numbers(found)))
    elif found := _ABORTED.fullmatch(line):
        file.aborted_transactions.append(AbortedTransaction(**_numbers(found)))
    elif found := _PRODUCER.fullmatch(line):
        file.producers.append(_producer(found))
    else:
        _take_remark(file, line)


def _take_remark(file: DumpedFile, line: str) -> None:
    if found := _LOG_START.fullmatch(line):
        file.starting_offset = int(found["starting_offset"])
    elif found := _SNAPSHOT_END.fullmatch(line):
        file.starting_offset = int(found["starting_offset"])
        file.snapshot_epoch = int(found["snapshot_epoch"])
    elif found := _TAIL.fullmatch(line):
        file.trailing_invalid_bytes = int(found["count"])
    elif line == f"{file.path} is empty.":
        file.said_empty = True
    elif line == f"{file.path} passed sanity check.":
        file.passed_sanity_check = True
    elif line != "KRaft bootstrap snapshot":
        raise UnreadableDump(f"{file.path}: {line!r}")


def _batch(found: re.Match[str]) -> DumpedBatch:
    values: dict[str, Any] = {"timestamp_type": found["timestamp_type"], "codec": found["codec"]}
    values |= {name: _truth(found[name]) for name in ("is_transactional", "is_control", "is_valid")}
    values["delete_horizon_ms"] = _optional(found["delete_horizon_ms"])
    return DumpedBatch(**values, **_numbers(found, but=tuple(values)))


def _record(found: re.Match[str], decoded: bool) -> DumpedRecord:
    numbers = _numbers(found, but=("timestamp_type", "header_keys", "rest"))
    control = _control(found["rest"])
    key = payload = None
    if control is None and found["rest"]:
        sizes = None if decoded else (numbers["key_size_bytes"], numbers["value_size_bytes"])
        key, payload = _contents(found["rest"], sizes)
    return DumpedRecord(
        **numbers,
        timestamp_type=found["timestamp_type"],
        header_keys=found["header_keys"],
        key=key,
        payload=payload,
        control=control,
    )


def _control(rest: str) -> EndTransaction | ControlMessage | None:
    if found := _END_TRANSACTION.fullmatch(rest):
        return EndTransaction(kind=found["kind"], coordinator_epoch=int(found["coordinator_epoch"]))
    if rest.startswith((" key: ", " payload: ")):
        return None
    if found := _CONTROL.fullmatch(rest):
        return ControlMessage(kind=found["kind"], body=json.loads(found["body"]))
    return None


def _contents(rest: str, sizes: tuple[int, int] | None) -> tuple[str | None, str | None]:
    """Key and payload from ` key: K payload: P`; a key may itself hold ` payload: `, so sizes decide."""
    if not rest.startswith(" key: "):
        payload = rest.removeprefix(" payload: ")
        if sizes is not None:
            _check_size(None, sizes[0], rest)
            _check_size(payload, sizes[1], rest)
        return None, payload
    text = rest.removeprefix(" key: ")
    for cut in _cuts(text):
        key, payload_or_none = text[:cut], text[cut:].removeprefix(" payload: ") if cut < len(text) else None
        if sizes is None or (_fits(key, sizes[0]) and _fits(payload_or_none, sizes[1])):
            return key, payload_or_none
    raise UnreadableDump(f"no split into key and payload of {sizes} bytes: {rest!r}")


def _cuts(text: str) -> Iterator[int]:
    """Where the key may end: before each ` payload: `, or at the end."""
    for found in re.finditer(" payload: ", text):
        yield found.start()
    yield len(text)


def _check_size(text: str | None, size_bytes: int, rest: str) -> None:
    if not _fits(text, size_bytes):
        raise UnreadableDump(f"stated size {size_bytes}, printed: {rest!r}")


def _fits(text: str | None, size_bytes: int) -> bool:
    """Whether this text is what `size_bytes` bytes print as; -1 bytes is null."""
    if text is None or size_bytes < 0:
        return text is None and size_bytes < 0
    exact = len(text.replace(REPLACEMENT, "").encode("utf-8", errors="surrogatepass"))
    unknown = text.count(REPLACEMENT)  # each stands for one to three bytes that were no UTF-8
    return exact + unknown <= size_bytes <= exact + 3 * unknown


def _producer(found: re.Match[str]) -> DumpedProducer:
    numbers = _numbers(found, but=("current_transaction_first_offset", "last_batch"))
    last = _LAST_BATCH.fullmatch(found["last_batch"])
    if last is None and found["last_batch"]:
        raise UnreadableDump(f"last batch of a producer: {found['last_batch']!r}")
    return DumpedProducer(
        **numbers,
        current_transaction_first_offset=_optional(found["current_transaction_first_offset"]),
        last_batch=None if last is None else LastBatch(**_numbers(last)),
    )


def _numbers(found: re.Match[str], *, but: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: int(text) for name, text in found.groupdict().items() if name not in but}


def _truth(word: str) -> bool:
    if word not in ("true", "false"):
        raise UnreadableDump(f"neither true nor false: {word!r}")
    return word == "true"


def _optional(text: str) -> int | None:
    """Java's OptionalLong.empty or OptionalLong[5]."""
    inner = text.removeprefix("OptionalLong")
    return None if inner == ".empty" else int(inner.strip("[]"))
