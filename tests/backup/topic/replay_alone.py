"""`python -m tests.backup.topic.replay_alone`: a replay as a process, which kills itself with SIGKILL.

BOOTSTRAP ENDPOINT BUCKET REGION PLAN TOPIC TOPIC_ID KILL_AT    0: not at all
"""

from __future__ import annotations

import os
import signal
import sys
import time
from itertools import count
from pathlib import Path

from backup.catalogue.bytes import plan_log
from backup.plan.file import read_plan
from backup.topic.kafka import KafkaProgress
from backup.topic.replay import Job, committed_batches, replay
from backup.topic.writer import TransactionalWriter
from tiering.reader.reader import TieredReader
from tiering.store.patient import patient
from tiering.store.s3 import S3Store, S3StoreSettings

TRANSACTION_BYTES = 20_000


def main(arguments: list[str]) -> None:
    bootstrap, endpoint_url, bucket, region, plan, topic, topic_id, kill_at = arguments
    planned = read_plan(Path(plan))
    numbers = count(1)

    def step(_: str) -> None:
        if next(numbers) == int(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)

    body = planned.body
    job = Job(
        plan_hash=planned.hash,
        topic=topic,
        topic_id=topic_id,
        partition=body.log.partition,
        start=body.range.start,
        end=body.range.end,
    )
    config = {"bootstrap.servers": bootstrap}
    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url, region=region)))
    with (
        TieredReader(store) as reader,
        TransactionalWriter(config, job.transactional_id, topic, pause=time.sleep) as writer,
    ):
        replay(
            job,
            committed_batches(reader, plan_log(body)),
            writer,
            KafkaProgress(config),
            now_ms=lambda: time.time_ns() // 1_000_000,
            pause=time.sleep,
            step=step,
            transaction_bytes=TRANSACTION_BYTES,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
