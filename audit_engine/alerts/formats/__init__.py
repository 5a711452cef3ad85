"""A message as its receiver wants it: the body of one request.

    native          our own JSON, of which nothing is left out but what has no room
    alertmanager    what an Alertmanager sends to its receivers (v4), and what it takes (API v2)
    pagerduty       Events v2: trigger and resolve, by the thread's name
    slack           text and blocks

Owns the choice. Invariant: a body is a function of the message and the endpoint: sent again, it is the same.
"""

from __future__ import annotations

from audit_engine.alerts.endpoints import Endpoint, Format
from audit_engine.alerts.formats import alertmanager, native, pagerduty, slack
from audit_engine.alerts.message import Message

_BODIES = {
    Format.NATIVE: native.body,
    Format.ALERTMANAGER_WEBHOOK: alertmanager.webhook_body,
    Format.PAGERDUTY: pagerduty.body,
    Format.SLACK: slack.body,
}


def body(endpoint: Endpoint, message: Message) -> bytes:
    """Not for an Alertmanager itself, which is told all that stands (`alertmanager.pushes`)."""
    return _BODIES[endpoint.format](endpoint, message)
