"""What an S3 store's refusal means, by its error code, else by its HTTP status.

Owns the vocabulary of S3 and its look-alikes; knows no SDK. A HEAD has no body, so that only its status
tells. Not every store spells every code alike: a code that is not here counts by its status.
"""

from __future__ import annotations

from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    Denied,
    Missing,
    Rejected,
    StoreError,
    Throttled,
    Transient,
    Unsupported,
)

_BY_CODE: dict[str, type[StoreError]] = {
    "PreconditionFailed": AlreadyExists,
    "BadDigest": ChecksumRefused,
    "XAmzContentChecksumMismatch": ChecksumRefused,
    "SlowDown": Throttled,
    "TooManyRequests": Throttled,
    "RequestLimitExceeded": Throttled,
    "Throttling": Throttled,
    "ThrottlingException": Throttled,
    "BandwidthLimitExceeded": Throttled,
    # Two conditional writes at once, or a write beside a delete: either may be told to come again.
    "ConditionalRequestConflict": Transient,
    "OperationAborted": Transient,
    # 400, although the same request is welcome again: the store waited too long for a piece of it.
    "RequestTimeout": Transient,
    "IncompleteBody": Transient,
    "ExpiredToken": Denied,
    "InvalidToken": Denied,
    "InvalidAccessKeyId": Denied,
    "SignatureDoesNotMatch": Denied,
    "AuthorizationHeaderMalformed": Denied,
    "NoSuchBucket": Missing,
    "NotImplemented": Unsupported,
    "ObjectLockConfigurationNotFoundError": Unsupported,
    "NoSuchObjectLockConfiguration": Missing,
}
_BY_STATUS: dict[int, type[StoreError]] = {
    401: Denied,
    403: Denied,
    404: Missing,
    405: Unsupported,
    408: Transient,
    409: Transient,
    412: AlreadyExists,
    429: Throttled,
    501: Unsupported,
}


def kind_of(code: str, status: int) -> type[StoreError]:
    """The class of a refusal."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Transient if status >= 500 else Rejected
