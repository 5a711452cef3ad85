"""Why an authorisation was not given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class AuthorisationRefused(SeawallError):
    """nothing was authorised"""

    exit_code: ClassVar[int] = 75


@dataclass(kw_only=True, eq=False)
class NoSuchLog(AuthorisationRefused):
    """nothing was authorised: the cluster has no {what}

    Of a topic that is gone by now, say which it was: --topic-id, as `seawall audit findings` prints it.
    """

    what: str


@dataclass(kw_only=True, eq=False)
class NeverAllowed(AuthorisationRefused):
    """nothing was authorised: the policy in force says {key} = "never" of {topic}

    Whoever allows it declares something else first: `seawall policy apply`.
    """

    key: str
    topic: str


@dataclass(kw_only=True, eq=False)
class NobodyNeedsTo(AuthorisationRefused):
    """nothing was authorised: the policy in force says {key} = "free" of {topic}

    Nobody has to allow it, and the audit asks for no authorisation.
    """

    key: str
    topic: str


@dataclass(kw_only=True, eq=False)
class NotAmongAuthorisers(AuthorisationRefused):
    """nothing was authorised: {principal} may not authorise deletions of {topic}

    The policy in force names who may: {authorisers}.
    """

    principal: str
    topic: str
    authorisers: str


@dataclass(kw_only=True, eq=False)
class TooLate(AuthorisationRefused):
    """nothing was authorised: of {topic} a deletion can be allowed up to {grace} after it was done

    That is declare_grace_ms of the policy in force. What was deleted before can be taken as lost: `seawall
    audit accept-loss`.
    """

    topic: str
    grace: str
