"""Which verb carries out a plan: each target its own.

Owns that word. Refuses a plan that was made, and perhaps approved, for another target.
"""

from __future__ import annotations

from backup.errors import CannotRestore
from backup.plan.values import Plan
from rules.words import RestoreTarget

VERBS = {
    RestoreTarget.TIER: "apply",
    RestoreTarget.LOG_DIRECTORY: "restore-logdir",
    RestoreTarget.TOPIC: "restore-topic",
}


def expect_target(plan: Plan, target: RestoreTarget) -> None:
    """Raises CannotRestore where the plan is for another one."""
    if plan.body.target is target:
        return
    verb = VERBS[plan.body.target]
    why = f"this plan is for target {plan.body.target.value}: `seawall backup {verb}` carries it out"
    raise CannotRestore(log=plan.body.log, why=why)
