"""Kafka's own DumpLogSegments as the oracle: many files in one JVM, its answer as values.

Owns running the tool and refusing any answer that is not whole. Complaints that the tool prints about an
index (a mismatch, an order) are values too; anything else on its stderr is a failure.

The files stay untouched: the tool opens them read-only.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local.jvm_options import short_lived
from tests.cluster.dump_text import parse
from tests.cluster.dump_values import DumpedFile

TOOL = "org.apache.kafka.tools.DumpLogSegments"
DEADLINE_S = 240
# Linux refuses one argument over 128 KiB, and the tool takes all files in one.
ARGUMENT_BYTES = 100 * 1024

Decoder = Literal["cluster-metadata", "remote-log-metadata", "offsets", "transaction-log"]


class OracleFailed(Exception):
    """The tool ended with an error, or said something that is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    status: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One pair of numbers on the tool's stderr, with the heading it stands under.

    Under "Non-consecutive offsets" every segment that does not begin at 0 has its first record as
    "-1 is followed by N": the tool starts counting anew for each file.
    """

    heading: str
    path: Path
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """`failures` holds the files on which the tool itself broke down, with the exception it showed."""

    files: Mapping[Path, DumpedFile]
    complaints: tuple[Complaint, ...]
    failures: Mapping[Path, str]

    def __getitem__(self, path: Path) -> DumpedFile:
        return self.files[path]


class Oracle:
    @cached_property
    def _command(self) -> list[str]:
        return [str(find_java().path), *short_lived(heap_mib=512), "-cp", classpath("broker"), TOOL]

    def dump(
        self,
        files: Iterable[Path],
        *,
        decoder: Decoder | None = None,
        contents: bool = True,
        index_sanity_check: bool = False,
        allow_failures: bool = False,
    ) -> Dump:
        """Everything that the tool says about these files (.log, .checkpoint, indexes, .snapshot).

        `contents=False` leaves out keys and payloads. A `decoder` makes the payloads of *every* .log JSON.
        An index needs its .log beside it, a time index its .index too. The tool stops at the first file that
        it cannot read (a pre-allocated index beside an empty log is enough); it is started again behind it.
        """
        options = ["--deep-iteration"]
        options += ["--print-data-log"] if contents else []
        options += [f"--{decoder}-decoder"] if decoder else []
        options += ["--index-sanity-check"] if index_sanity_check else []
        dumped: dict[Path, DumpedFile] = {}
        complaints: list[Complaint] = []
        failures: dict[Path, str] = {}
        waiting = list(files)
        while waiting:
            chunk = _first_chunk(waiting)
            done = self.run([*options, "--files", ",".join(map(str, chunk))])
            found = parse(done.output, decoded=decoder is not None)
            if [file.path for file in found] != chunk[: len(found)] or not found:
                raise OracleFailed(f"{done.errors}\nasked for {chunk[:3]}..., got {found[:3]}...")
            if done.status != 0:
                failures[found.pop().path] = done.errors
            elif len(found) != len(chunk):
                raise OracleFailed(f"{len(found)} of {len(chunk)} files dumped, and no error")
            else:
                complaints += _complaints(done.errors)
            dumped |= {file.path: file for file in found}
            waiting = [path for path in waiting if path not in dumped and path not in failures]
        if failures and not allow_failures:
            path, error = next(iter(failures.items()))
            raise OracleFailed(f"{len(failures)} files, the first is {path}:\n{error}")
        return Dump(files=dumped, complaints=tuple(complaints), failures=failures)

    def run(self, arguments: Sequence[str]) -> Run:
        """Run the tool with any arguments."""
        done = subprocess.run(
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Run(
            status=done.returncode,
            output=done.stdout.decode("utf-8"),
            errors=done.stderr.decode("utf-8", errors="replace"),
        )


def _first_chunk(files: Sequence[Path]) -> list[Path]:
    """As many as one run can take."""
    chunk: list[Path] = []
    size_bytes = 0
    for path in files:
        if "," in str(path):
            raise OracleFailed(f"the tool splits its argument at commas: {path}")
        size_bytes += len(str(path).encode()) + 1
        if chunk and size_bytes > ARGUMENT_BYTES:
            break
        chunk.append(path)
    return chunk


_HEADING = re.compile(
    r"(Mismatches in|Found timestamp mismatch in|Found out of order timestamp in|Non-consecutive offsets in"
    r"|The following indexed offsets are not found in) :?(.*)"
)
_PAIR = re.compile(
    r"  Index (?:offset|timestamp): -?\d+, (?:log offset|log timestamp|Previously indexed timestamp): -?\d+"
    r"|  -?\d+ is followed by -?\d+"
    r"|(?:  )?Indexed offset: -?\d+, found log offset: -?\d+"
)


def _complaints(errors: str) -> Iterator[Complaint]:
    heading, path = "", None  # of the lines that follow
    for line in errors.splitlines():
        if found := _HEADING.fullmatch(line):
            heading, path = found[1], Path(found[2])
        elif _PAIR.fullmatch(line) and path is not None:
            yield Complaint(heading=heading, path=path, line=line.strip())
        elif not line.startswith("Picked up "):  # JAVA_TOOL_OPTIONS, announced by every JVM
            raise OracleFailed(f"not understood on stderr: {line}")
