"""Seawall's three steps as Airflow DAGs: evidence into tables, the daily audit, the tables' upkeep.

Written for Airflow 3 with its standard provider. No run overlaps another of its DAG (max_active_runs=1), and
the tables themselves exclude a second writer. A finding is no failure of the audit's task: people are told of
it by Seawall's own alerts. The task behind it, `stand`, fails where the result is not to be believed (exit
code 4), and `seawall_late` fails where no run happened at all. Behind ingest it is `all_in` that fails, where
something is in quarantine or lost: ingest itself, tried again, would find nothing new and hide that.

Settings: the Airflow variable seawall_command, by default "seawall --settings /etc/seawall/seawall.toml".
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

COMMAND = "{{ var.value.get('seawall_command', 'seawall --settings /etc/seawall/seawall.toml') }}"
BEGINNING = datetime(2026, 1, 1, tzinfo=timezone.utc)
RETRIES = {"retries": 3, "retry_delay": timedelta(minutes=2), "retry_exponential_backoff": True}
FOUND = (1, 3, 4)  # docs/EXIT_CODES.md: what an audit came to


def dag(name: str, schedule: str, words: str) -> DAG:
    return DAG(
        dag_id=name,
        schedule=schedule,
        description=words,
        start_date=BEGINNING,
        catchup=False,
        max_active_runs=1,
        tags=["seawall", "kafka"],
    )


def step(task_id: str, verb: str, **more: object) -> BashOperator:
    return BashOperator(task_id=task_id, bash_command=f"{COMMAND} {verb}", **{**RETRIES, **more})


with dag("seawall_ingest", "*/5 * * * *", "evidence into tables"):
    accepted = 'code=$?; [ "$code" = 0 ] || [ "$code" = 1 ] || exit "$code"; echo "$code"'
    ingest = step("ingest", f"audit ingest --once; {accepted}", execution_timeout=timedelta(hours=1))
    ingest >> BashOperator(  # the last line of a task is its XCom
        task_id="all_in",
        bash_command="exit {{ ti.xcom_pull(task_ids='ingest') }}",
        retries=0,
    )

with dag("seawall_audit", "17 3 * * *", "judge every log, and tell people"):
    accepted = " || ".join(f'[ "$code" = {code} ]' for code in FOUND)
    run = step("run", f'audit run; code=$?; [ "$code" = 0 ] || {accepted} || exit "$code"')
    stand = BashOperator(
        task_id="stand",
        bash_command=f'{COMMAND} audit status; code=$?; [ "$code" != 4 ] || exit 4',
        retries=0,
    )
    run >> step("alerts", "alerts deliver --known-only") >> stand

with dag("seawall_maintain", "7 5 * * *", "the tables' upkeep"):
    step("maintain", "audit maintain", execution_timeout=timedelta(hours=4))

with dag("seawall_alerts", "2-59/5 * * * *", "tell people what waits to be told"):
    step("deliver", "alerts deliver --known-only")

with dag("seawall_late", "30 * * * *", "is there a verdict of the last 26 hours?"):
    BashOperator(
        task_id="status",
        bash_command=f'{COMMAND} audit status --stale-after-hours 26; code=$?; [ "$code" != 4 ] || exit 4',
        retries=0,
    )
