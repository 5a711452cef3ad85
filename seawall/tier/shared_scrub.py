"""One scrub by several hosts: the coordinator's way to the workers, and a worker as a process.

Owns this joining. A worker reads a bucket and a topic of tasks, and writes answers: it needs no state folder,
no topic of metadata and no topic of events. Refuses to scrub where no worker has been heard of.
"""

from __future__ import annotations

import secrets
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread
from typing import Any

from rules.words import ScrubDepth
from seawall.connections import kafka_config
from seawall.settings import Settings
from seawall.tier.scrub import now_ms, scrubbed_store
from tiering.scrub.looks import Looks
from tiering.scrub.pace import Pace
from tiering.scrub.run import Shared
from tiering.scrub.shared.board import HAIL_S, Board
from tiering.scrub.shared.errors import NoScrubWorker
from tiering.scrub.shared.handler import Looking
from tiering.scrub.shared.kafka import KafkaPost, KafkaVoice
from tiering.scrub.shared.looks import SharedLooks, await_workers
from tiering.scrub.shared.topics import MESSAGE_BYTES_MAX, Names
from tiering.scrub.shared.topics.kafka import ensure_topics
from tiering.scrub.shared.words import Hail, Task
from tiering.store.throttle import Throttle
from workers.consumer.commits import CommitSettings
from workers.consumer.executors.threads import Threads
from workers.consumer.kafka import KafkaDeadLetters, KafkaSource
from workers.consumer.loop import ParallelConsumer
from workers.consumer.loop import Settings as ConsumerSettings
from workers.consumer.supervisor import Supervisor

BURST_BYTES = 2 * 1024 * 1024  # of a rate: a piece of the stream
TICK_S = 0.5
# Another worker has the tasks of one that was killed so soon. Set in [kafka.client], that counts.
SESSION = {"session.timeout.ms": "10000"}


@contextmanager
def shared_by(
    settings: Settings,
    *,
    depth: ScrubDepth,
    rate: int | None,
    answer_s: float,
    wait_s: float,
    say: Callable[[str], None],
) -> Iterator[Shared]:
    """The coordinator's. Raises NoScrubWorker, and what the topics or the cluster raise."""
    config = kafka_config(settings, client_id="seawall-scrub")
    names = ensure_topics(config)
    board = Board(run=str(uuid.uuid4()), rate=rate, answer_s=answer_s)
    with closing(KafkaPost(config, names)) as post:
        if not await_workers(post, board, wait_s, clock=time.monotonic):
            raise NoScrubWorker(topic=names.answers, waited_s=wait_s)
        say(f"scrub workers: {', '.join(board.workers(time.monotonic()))}, and whoever joins them")

        def shared(local: Looks, pace: Pace) -> SharedLooks:
            return SharedLooks(
                post,
                board,
                local,
                pace,
                depth=depth,
                bucket=settings.s3.bucket or "",
                clock=time.monotonic,
                now_ms=now_ms,
            )

        yield shared


def work(settings: Settings, *, group: str, threads: int, rate: int | None, stop: Event, log: Any) -> None:
    """A worker, until `stop` is set: what it was looking at then another one gets."""
    store = scrubbed_store(settings)
    config = kafka_config(settings, client_id="seawall-scrub-worker")
    names = ensure_topics(config)
    worker = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    with closing(KafkaVoice(config, names)) as voice:

        def tell(event: str, task: Task) -> None:
            record = task.record
            what = {"log": f"{record.topic}-{record.log.partition}", "base_offset": record.base_offset}
            log.info(event, worker=worker, run=task.run, segment_id=record.segment_id, **what)

        looking = Looking(
            store,
            bucket=settings.s3.bucket or "",
            worker=worker,
            say=voice.say,
            limit=Throttle(bytes_per_s=rate, burst_bytes=BURST_BYTES, clock=time.monotonic, sleep=time.sleep),
            clock=time.monotonic,
            sleep=time.sleep,
            now_ms=now_ms,
            is_ending=stop.is_set,
            tell=tell,
        )
        supervisor = Supervisor(lambda: _consumer(config, names, group, looking, threads))
        hailing = Thread(
            target=_hail_on, args=(voice, supervisor, Hail(worker=worker, threads=threads), stop), daemon=True
        )
        hailing.start()
        log.info("scrub_worker", worker=worker, group=group, tasks=names.tasks, bucket=settings.s3.bucket)
        supervisor.run(stop)
        hailing.join()


def _consumer(
    config: dict[str, str], names: Names, group: str, looking: Looking, threads: int
) -> ParallelConsumer:
    return ParallelConsumer(
        KafkaSource({**SESSION, **config, "group.id": group}, [names.tasks]),
        # Nothing waits in the executor: what has not begun goes to another worker with its partition.
        Threads(looking, threads=threads, backlog=0),
        settings=ConsumerSettings(commits=CommitSettings(maps=True)),
        dead_letters=KafkaDeadLetters({**config, "message.max.bytes": MESSAGE_BYTES_MAX}, names.letters),
    )


def _hail_on(voice: KafkaVoice, supervisor: Supervisor, hail: Hail, stop: Event) -> None:
    """Only who has partitions of the tasks can be given any."""
    next_s = time.monotonic()
    while not stop.wait(TICK_S):
        snapshot = supervisor.snapshot()
        if snapshot is not None and snapshot.partitions and time.monotonic() >= next_s:
            voice.hail(hail)
            next_s = time.monotonic() + HAIL_S
