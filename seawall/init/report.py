"""All of it together: from what was seen to what is said and written.

Owns the order, and the names of the files. Refuses to write anything itself, and to look at anything.

Invariant: the same `Seen`, settings and prices give the same report, to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.init.assumed import Prices, Work
from seawall.init.estimate import Estimate, estimate
from seawall.init.findings import Danger, Gap, dangers, gaps, release_by
from seawall.init.permissions import acls, iam, page
from seawall.init.permissions.roles import ROLES
from seawall.init.policy_text import Declared, declare, policy_text
from seawall.init.rates import TopicRate, rates
from seawall.init.seen import Seen
from seawall.init.settings_text import settings_text
from seawall.settings import Settings
from tiering.cluster.topics import is_internal
from tiering.store.keys import KeyLayout

SETTINGS, POLICY = "seawall.toml", "policy.toml"
PERMISSIONS = "permissions"
NO_CLUSTER_ID = "REPLACE-WITH-CLUSTER-ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What there is to say, and the files by their names below the folder."""

    seen: Seen
    releases: tuple[str, ...]  # of the brokers, each once; "?" where it could not be told
    rates: Mapping[str, TopicRate]
    dangers: tuple[Danger, ...]
    gaps: tuple[Gap, ...]
    estimate: Estimate
    declared: Declared
    files: Mapping[str, str]

    @property
    def own_topics(self) -> list[str]:
        return [topic for topic in self.seen.topics if not is_internal(topic)]


def file_names() -> tuple[str, ...]:
    """Whatever is seen, these are the files."""
    scripts = (f"{PERMISSIONS}/kafka-{role.name}.sh" for role in ROLES)
    policies = (f"{PERMISSIONS}/iam-{role.name}.json" for role in ROLES if iam.needs_bucket(role))
    return (SETTINGS, POLICY, f"{PERMISSIONS}/README.md", *scripts, *policies)


def report(seen: Seen, settings: Settings, *, prices: Prices, work: Work) -> Report:
    where = f"cluster {seen.cluster_id}" if seen.cluster_id else "a cluster without an id"
    found = rates(seen, seen.topics)
    declared = declare(seen)
    prefix = KeyLayout(settings.s3.prefix).cluster_prefix(seen.cluster_id or NO_CLUSTER_ID)
    bucket, region = settings.s3.bucket, settings.s3.region
    files = {
        SETTINGS: settings_text(settings, seen, where=where),
        POLICY: policy_text(declared, seen, found, where=where),
        f"{PERMISSIONS}/README.md": page.page(bucket=bucket, prefix=prefix, where=where),
    }
    for role in ROLES:
        name = f"{PERMISSIONS}/kafka-{role.name}.sh"
        files[name] = acls.script(role, bootstrap=settings.kafka.bootstrap or "", where=where)
    for role in ROLES:
        if iam.needs_bucket(role):
            name = f"{PERMISSIONS}/iam-{role.name}.json"
            files[name] = iam.document(role, bucket=bucket, prefix=prefix, region=region)
    releases = sorted({str(release_by(each.features) or "?") for each in seen.brokers})
    return Report(
        seen=seen,
        releases=tuple(releases),
        rates=found,
        dangers=tuple(dangers(seen, found)),
        gaps=tuple(gaps(seen, found)),
        estimate=estimate(seen, found, prices=prices, work=work),
        declared=declared,
        files={name: files[name] for name in file_names()},
    )
