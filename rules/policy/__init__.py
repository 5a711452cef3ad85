"""What the operator declared, by pattern of topics' names: how long data is kept, and what may destroy it.

`quantities`, `patterns`, `values`, `keys`: the words. `cells`: every way in which tables can overlap.
`topic`: the values of one topic together. `declared`: the policy and its precedence. `reading`: from a
mapping, with all that is wrong with it. `difference`: from one policy to another, and for whom. `record`: a
declared change as bytes. `timeline`: which of the changes count, and what is in force at an offset.

Refuses to read files, clocks or clusters: TOML is read by the shell.
"""

from rules.policy.declared import EMPTY, Policy
from rules.policy.errors import PolicyRefused, Problem
from rules.policy.keys import KEYS
from rules.policy.quantities import UNLIMITED, Limit, Unlimited
from rules.policy.reading import read_policy
from rules.policy.topic import Origin, TopicPolicy
from rules.policy.values import ANYONE, Permission

__all__ = [
    "ANYONE",
    "EMPTY",
    "KEYS",
    "UNLIMITED",
    "Limit",
    "Origin",
    "Permission",
    "Policy",
    "PolicyRefused",
    "Problem",
    "TopicPolicy",
    "Unlimited",
    "read_policy",
]
