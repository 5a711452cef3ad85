"""An event on its way: who says it, as the how-manieth, of which log, and when; and its bytes.

    envelope    the values: Envelope around any kind of rules.events, or around one that is not known here
    bodies      a kind's own fields as JSON and back, derived from its dataclass
    codec       encode and decode of the whole

Owns the wire form of `__seawall_audit` (docs/FORMATS.md). Refuses to judge what an event says.

Invariant: `decode(encode(envelope)) == envelope`, and what a newer writer added is there again when what was
decoded is encoded.
"""

from audit_engine.wire.codec import decode, encode
from audit_engine.wire.envelope import Emitter, Envelope, Follows, Unread

__all__ = ["Emitter", "Envelope", "Follows", "Unread", "decode", "encode"]
