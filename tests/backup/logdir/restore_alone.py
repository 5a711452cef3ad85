"""`python -m tests.backup.logdir.restore_alone`: a restore as a process, which kills itself with SIGKILL.

LOG_DIR PLAN ENDPOINT BUCKET REGION KILL_AT    0: not at all
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path

from backup.catalogue.bytes import StoredPieces
from backup.logdir.apply import Restore, restore
from backup.logdir.replica import Wanted
from backup.plan.file import read_plan
from tiering.store.patient import patient
from tiering.store.s3 import S3Store, S3StoreSettings


def main(arguments: list[str]) -> None:
    log_dir, plan, endpoint_url, bucket, region, kill_at = arguments
    planned = read_plan(Path(plan))
    numbers = count(1)

    def step(_: str) -> None:
        if next(numbers) == int(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)

    body = planned.body
    asked = Restore(
        plan_id=planned.hash,
        wanted=Wanted(log=body.log, topic=body.topic, broker_id=1),
        pieces=body.pieces,
        start=body.range.start,
    )
    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url, region=region)))
    restore(Path(log_dir), asked, StoredPieces(store), step=step)


if __name__ == "__main__":
    main(sys.argv[1:])
