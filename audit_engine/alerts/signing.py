"""Standard Webhooks 1.0: who got a message can tell that it is ours, unaltered and of now.

    webhook-id           the message's, the same however often it is sent
    webhook-timestamp    of this attempt, in seconds
    webhook-signature    one `v1,` signature a secret, a space between: two while a secret is replaced

What is signed is `{id}.{timestamp}.{body}`, by HMAC-SHA256. Owns the spelling. Refuses secrets that the
specification does not allow (24 to 64 bytes).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64


def secret_of(text: str) -> bytes:
    """The key that `whsec_...` spells. ValueError, which says nothing of the secret, if it is none."""
    try:
        key = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"{SECRET_PREFIX} and the base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes"
        )
    return key


def signed(webhook_id: str, timestamp_s: int, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """The headers of one attempt; without secrets none but the id and the time."""
    headers = {"webhook-id": webhook_id, "webhook-timestamp": str(timestamp_s)}
    if secrets:
        told = f"{webhook_id}.{timestamp_s}.".encode() + body
        headers["webhook-signature"] = " ".join(f"v1,{_signature(told, each)}" for each in secrets)
    return headers


def _signature(told: bytes, secret: bytes) -> str:
    return base64.b64encode(hmac.new(secret, told, hashlib.sha256).digest()).decode()
