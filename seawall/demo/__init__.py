"""The story from end to end: four ways to lose data, each found, alerted, held, and made good.

    start, produce, tier         a broker, a bucket, four topics, the agent that copies them
    trim, diverge, shrink, race  the four incidents of the Kora paper (4.6), each on a topic of its own
    audit, alert, hold           exactly those findings; signed webhooks; what a hold binds, and what not
    restore, read, repair        the prefix is back, byte for byte; what else was wrong is put right
    pass, report                 the next audit passes, and leaves a page

Owns the order. It holds no logic of its own: what it calls is what the verbs call. Nothing outside `folder`
is touched but the report, and nothing of it is needed afterwards.

Invariant: a chapter that returns has proved what it says; what does not hold raises ProofFailed.
"""

from seawall.demo.story import Demo
from seawall.demo.telling import Chapter, ProofFailed, Told, prove

__all__ = ["Chapter", "Demo", "ProofFailed", "Told", "prove"]
