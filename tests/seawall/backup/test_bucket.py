"""What a bucket's settings are called, against the window; each gap with its remedy."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.backup.bucket import (
    Lock,
    Rule,
    Unread,
    judge_lifecycle,
    judge_lock,
    judge_public,
    lock_of,
    rule_of,
)
from seawall.doctor.finding import Finding, Status

PREFIX = "seawall/cluster/"


def rule(**members: Any) -> Rule:
    found = rule_of({"ID": "a-rule", "Status": "Enabled", "Filter": {"Prefix": ""}, **members})
    assert found is not None
    return found


def judged(*rules: Rule, window_days: int = 7) -> list[Finding]:
    return list(judge_lifecycle(list(rules), PREFIX, window_days))


def test_a_lifecycle_that_keeps_the_window_is_right() -> None:
    """As long as the window or longer, over all of the prefix; rules on other prefixes are none of ours."""
    keeps = rule(NoncurrentVersionExpiration={"NoncurrentDays": 7})
    elsewhere = rule(Filter={"Prefix": "other/"}, Expiration={"Days": 1})

    [found] = judged(keeps, elsewhere)

    assert found.status is Status.OK


@pytest.mark.parametrize(
    ("members", "status", "said"),
    [
        (
            {"NoncurrentVersionExpiration": {"NoncurrentDays": 6}},
            Status.FAIL,
            "after 6 days; the window is 7",
        ),
        ({"Expiration": {"Days": 90}}, Status.FAIL, "removes live objects"),
        ({"Expiration": {"Date": "2030-01-01"}}, Status.FAIL, "removes live objects"),
        ({"Expiration": {"ExpiredObjectDeleteMarker": True}}, Status.WARN, "no rule ever takes"),
        ({"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}, Status.WARN, "archives"),
        (
            {
                "Filter": {"And": {"Prefix": f"{PREFIX}topic/"}},
                "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
            },
            Status.FAIL,
            "after 1 days",
        ),
    ],
)
def test_each_gap_is_told_with_its_remedy(members: dict[str, Any], status: Status, said: str) -> None:
    """Too short, for live objects, into an archive, or on a part of the prefix."""
    found = judged(rule(**members))

    assert any(each.status is status and said in each.detail and each.remedy for each in found), found


def test_a_rule_that_is_off_is_no_rule() -> None:
    """Nothing is expired by it."""
    assert rule_of({"Status": "Disabled", "Expiration": {"Days": 1}}) is None
    assert [each.status for each in judged()] == [Status.WARN]


def test_what_the_store_does_not_say_is_not_called_right() -> None:
    """Unknown, with the right that is needed."""
    unread = Unread("403 AccessDenied", "Allow s3:GetLifecycleConfiguration on the bucket.")

    [found] = judge_lifecycle(unread, PREFIX, 7)
    [public] = judge_public(unread, is_public=False)

    assert (found.status, public.status) == (Status.UNKNOWN, Status.UNKNOWN)
    assert found.remedy is not None


def test_public_access() -> None:
    """Blocked in all four ways, or told which is missing; a policy for everybody is the worst."""
    whole = dict.fromkeys(
        ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
    )

    assert [each.status for each in judge_public(whole, is_public=False)] == [Status.OK]
    [partly] = judge_public({**whole, "BlockPublicPolicy": False}, is_public=False)
    assert (partly.status, "BlockPublicPolicy" in partly.detail) == (Status.WARN, True)
    assert [each.status for each in judge_public(None, is_public=False)] == [Status.WARN]
    assert [each.status for each in judge_public(whole, is_public=True)] == [Status.FAIL]


@pytest.mark.parametrize(
    ("members", "status", "said"),
    [
        ({"ObjectLockEnabled": "Enabled"}, Status.OK, "no default retention"),
        ({}, Status.FAIL, "not enabled"),
        ({"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Days": 6}}}, Status.FAIL, "6 days"),
        ({"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Days": 7}}}, Status.OK, "7 days"),
        ({"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Years": 1}}}, Status.OK, "365 days"),
    ],
)
def test_a_lock_is_held_against_the_window(members: dict[str, Any], status: Status, said: str) -> None:
    """None at all, or a default retention that ends before the window does: a failure with its remedy."""
    [found] = judge_lock(lock_of(members), 7)

    assert (found.status, said in found.detail) == (status, True)
    assert (found.remedy is None) == (status is Status.OK)
    [untold] = judge_lock(Unread("403", "Allow it."), 7)
    assert untold.status is Status.UNKNOWN
    assert [each.status for each in judge_lock(Lock(None), 7)] == [Status.OK]
