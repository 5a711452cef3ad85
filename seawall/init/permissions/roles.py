"""The roles: what each one does, and the rights that this takes.

A role's Kafka rights are lines of (resource, operations); a role's S3 rights follow from the methods of
`tiering.store.interface.ObjectStore` that it uses, and those from the calls of each (`CALLS`).

Owns the tables. Kafka grants Describe with Read, Write and Delete, and idempotent writing with Write:
these are not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

SEGMENTS, AUDIT, POLICY = "__seawall_segments", "__seawall_audit", "__seawall_policy"
SCRUB, SCRUB_GROUP = "__seawall_scrub_", "seawall-scrub-workers"
REMOTE_LOG = "__remote_log_metadata"
OURS = "__seawall_"
CHOSEN_TOPICS = "CHOSEN"  # those that are opted in: there are none before somebody says which


class Resource(str, Enum):
    """What a right is about, by the option of kafka-acls that names it."""

    CLUSTER = "--cluster"
    TOPIC = "--topic"
    GROUP = "--group"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRight:
    """`name` is a literal name, a prefix, `*`, or CHOSEN_TOPICS; empty for the cluster."""

    resource: Resource
    name: str = ""
    is_prefix: bool = False
    operations: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """`methods` are the ObjectStore's, `more_actions` are of S3 without one of them, with their calls."""

    name: str
    does: str
    kafka: tuple[KafkaRight, ...]
    methods: tuple[str, ...] = ()
    doctor: bool = False  # looks at the bucket as `seawall doctor` does
    check: bool = False  # and as `seawall backup check` does
    tables: bool = False  # writes Delta tables by s3a://, under the prefix of tables


# Every call of tiering/store/s3.py, seawall/doctor/s3.py and backup/bucket/s3.py (in seawall), with the
# IAM actions that each takes.
# With a version id, GetObject and HeadObject are GetObjectVersion's. A copy reads the version that it is of.
CALLS: Mapping[str, tuple[str, ...]] = {
    "put_object": ("s3:PutObject",),
    "create_multipart_upload": ("s3:PutObject",),
    "upload_part": ("s3:PutObject",),
    "complete_multipart_upload": ("s3:PutObject",),
    "abort_multipart_upload": ("s3:AbortMultipartUpload",),
    "head_object": ("s3:GetObject", "s3:GetObjectVersion"),
    "get_object": ("s3:GetObjectVersion",),
    "list_objects_v2": ("s3:ListBucket",),
    "list_object_versions": ("s3:ListBucketVersions",),
    "list_multipart_uploads": ("s3:ListBucketMultipartUploads",),
    "delete_object": ("s3:DeleteObject",),
    "upload_part_copy": ("s3:PutObject", "s3:GetObjectVersion"),
    "copy_object": ("s3:PutObject", "s3:GetObjectVersion"),
    "put_object_legal_hold": ("s3:PutObjectLegalHold",),
    "get_object_legal_hold": ("s3:GetObjectLegalHold",),
    "get_bucket_versioning": ("s3:GetBucketVersioning",),
    "head_bucket": ("s3:ListBucket",),
    "get_object_lock_configuration": ("s3:GetBucketObjectLockConfiguration",),
    "get_bucket_lifecycle_configuration": ("s3:GetLifecycleConfiguration",),
    "get_public_access_block": ("s3:GetBucketPublicAccessBlock",),
    "get_bucket_policy_status": ("s3:GetBucketPolicyStatus",),
}
# The calls of each method of S3Store, its own helpers' included.
METHODS: Mapping[str, tuple[str, ...]] = {
    "put_new": ("put_object",),
    "start_parts": ("create_multipart_upload",),
    "put_part": ("upload_part",),
    "finish_parts": ("complete_multipart_upload",),
    "abort_parts": ("abort_multipart_upload",),
    "head": ("head_object",),
    "read_range": ("get_object",),
    "pour": ("get_object",),
    "keys_page": ("list_objects_v2",),
    "versions_page": ("list_object_versions",),
    "uploads_page": ("list_multipart_uploads",),
    "mark_deleted": ("get_bucket_versioning", "delete_object"),
    "copy_version": (
        "copy_object",
        "get_bucket_versioning",
        "delete_object",
        "create_multipart_upload",
        "upload_part_copy",
        "complete_multipart_upload",
        "abort_multipart_upload",
    ),
    "set_hold": ("put_object_legal_hold",),
    "is_held": ("head_object", "get_object_legal_hold"),
    "keeps_versions": ("get_bucket_versioning",),
    "now_ms": ("get_bucket_versioning",),
}
DOCTOR_CALLS = ("head_bucket", "get_bucket_versioning", "get_object_lock_configuration")
CHECK_CALLS = (
    "get_object_lock_configuration",
    "get_bucket_lifecycle_configuration",
    "get_public_access_block",
    "get_bucket_policy_status",
    "list_object_versions",
    "head_object",
    "create_multipart_upload",
    "abort_multipart_upload",
)
TABLE_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
BUCKET_ACTIONS = frozenset(
    {
        "s3:ListBucket",
        "s3:ListBucketVersions",
        "s3:ListBucketMultipartUploads",
        "s3:GetBucketVersioning",
        "s3:GetBucketObjectLockConfiguration",
        "s3:GetLifecycleConfiguration",
        "s3:GetBucketPublicAccessBlock",
        "s3:GetBucketPolicyStatus",
    }
)
# What no role has, denied besides: a mistake elsewhere in an account's policies must not grant it.
NEVER = (
    "s3:BypassGovernanceRetention",
    "s3:DeleteBucket",
    "s3:DeleteBucketPolicy",
    "s3:DeleteObjectVersion",
    "s3:PutBucketObjectLockConfiguration",
    "s3:PutBucketPolicy",
    "s3:PutBucketVersioning",
    "s3:PutLifecycleConfiguration",
    "s3:PutObjectRetention",
)


def _right(
    resource: Resource, name: str, operations: str, why: str, *, is_prefix: bool = False
) -> KafkaRight:
    return KafkaRight(
        resource=resource, name=name, is_prefix=is_prefix, operations=tuple(operations.split()), why=why
    )


_LOOK = (
    _right(Resource.CLUSTER, "", "Describe DescribeConfigs", "brokers, their settings, the quorum, log dirs"),
    _right(Resource.TOPIC, "*", "Describe DescribeConfigs", "leaders, offsets and settings of every topic"),
)
_GROUP = _right(
    Resource.GROUP,
    "seawall-",
    "Describe",
    "librdkafka looks for a coordinator, and complains; nothing is joined",
    is_prefix=True,
)
_OBSERVE = (
    *_LOOK,
    _GROUP,
    _right(Resource.TOPIC, AUDIT, "Create Write", "events"),
    _right(Resource.TOPIC, REMOTE_LOG, "Read", "with KIP-405 only: what Kafka's own tiered storage does"),
)
_TIER = (
    *_OBSERVE,
    _right(Resource.TOPIC, SEGMENTS, "Create Read Write", "the metadata of segments"),
    _right(Resource.TOPIC, AUDIT, "Read", "the other agents' digests"),
    _right(Resource.TOPIC, POLICY, "Read", "what is declared"),
)
_READ = (
    *_LOOK,
    _GROUP,
    _right(Resource.TOPIC, OURS, "Read", "metadata, events and policy", is_prefix=True),
)
_UPLOAD = (
    "put_new",
    "start_parts",
    "put_part",
    "finish_parts",
    "abort_parts",
    "head",
    "mark_deleted",
    "keeps_versions",
)

ROLES: tuple[Role, ...] = (
    Role(
        name="agent-observe",
        does="`seawall agent --observe-only`: looks beside a broker, and tells. No bucket.",
        kafka=_OBSERVE,
    ),
    Role(
        name="agent-tier",
        does="`seawall agent`: copies closed segments, and puts delete markers on what a failed attempt left "
        "and, where the policy says `remote_deletion`, on what is past its retention.",
        kafka=_TIER,
        methods=_UPLOAD,
    ),
    Role(
        name="agent-trim",
        does="The same where the policy says `trim`: DeleteRecords on topics that are named one by one.",
        kafka=(*_TIER, _right(Resource.TOPIC, CHOSEN_TOPICS, "Delete", "DeleteRecords, of what is in S3")),
        methods=_UPLOAD,
    ),
    Role(
        name="ingest",
        does="`seawall audit ingest`: reads events, writes tables; on S3 under a prefix of their own.",
        kafka=(_right(Resource.TOPIC, AUDIT, "Read", "events; Spark assigns, and joins no group"),),
        tables=True,
    ),
    Role(
        name="reader",
        does="`seawall init`, `doctor`, `policy check|show`, `tier status`, `read`, `events`: look only.",
        kafka=_READ,
        methods=(
            "head",
            "read_range",
            "pour",
            "keys_page",
            "versions_page",
            "uploads_page",
            "is_held",
            "keeps_versions",
            "now_ms",
        ),
        doctor=True,
    ),
    Role(
        name="scrub-worker",
        does="`seawall tier scrub-worker`: reads segments for a scrub that hands them out.",
        kafka=(
            _right(
                Resource.TOPIC,
                SCRUB,
                "Create DescribeConfigs Read Write",
                "tasks, answers, and what was given up",
                is_prefix=True,
            ),
            _right(Resource.CLUSTER, "", "Describe", "how many brokers a new topic has"),
            _right(Resource.GROUP, SCRUB_GROUP, "Read", "tasks, each to one worker"),
        ),
        methods=("head", "read_range", "pour", "versions_page"),
    ),
    Role(
        name="operator",
        does="`seawall policy apply`, `tier scrub|orphans|rebuild`, `backup`, and legal holds.",
        kafka=(
            *_READ,
            _right(
                Resource.TOPIC, OURS, "Create Write", "declared changes, metadata, events", is_prefix=True
            ),
        ),
        methods=(
            "head",
            "read_range",
            "pour",
            "keys_page",
            "versions_page",
            "uploads_page",
            "abort_parts",
            "mark_deleted",
            "copy_version",
            "set_hold",
            "is_held",
            "keeps_versions",
            "now_ms",
        ),
        doctor=True,
        check=True,
    ),
)


def actions_of(role: Role) -> tuple[str, ...]:
    """The IAM actions on segments and their bucket, sorted."""
    calls = {call for method in role.methods for call in METHODS[method]}
    calls |= set(DOCTOR_CALLS if role.doctor else ())
    calls |= set(CHECK_CALLS if role.check else ())
    found = {action for call in calls for action in CALLS[call]}
    if "head_object" in calls:
        found.add("s3:ListBucket")  # without it the answer for a key that is not there is 403, not 404
    return tuple(sorted(found))
