"""The certificates that the server shows and asks for, read anew when their files change.

Certificates are renewed every few weeks, and the server is not restarted for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """`client_ca`: whoever calls has to show a certificate of it (mTLS)."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> tuple[bytes, bytes, bytes | None]:
        """Key, chain, and the authority of clients. Raises OSError."""
        ca = None if self.client_ca is None else self.client_ca.read_bytes()
        return self.key.read_bytes(), self.cert.read_bytes(), ca

    def stamp(self) -> tuple[int, ...]:
        """Another one means: the files changed."""
        files = (self.cert, self.key, *([self.client_ca] if self.client_ca else ()))
        return tuple(file.stat().st_mtime_ns for file in files)
