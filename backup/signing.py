"""HMAC-SHA256 over one spelling, as reports and plans carry it: `v1,<base64>`.

Pure. Who has the key can tell that what it signs is Seawall's and unaltered.
"""

from __future__ import annotations

import base64
import hashlib
import hmac


def signature(spelled: bytes, key: bytes) -> str:
    return "v1," + base64.b64encode(hmac.new(key, spelled, hashlib.sha256).digest()).decode("ascii")


def is_signed(spelled: bytes, key: bytes, told: object) -> bool:
    return hmac.compare_digest(signature(spelled, key).encode(), str(told).encode())
