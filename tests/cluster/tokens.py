"""Who gives tokens to clients of the secure broker: a token endpoint as OpenID Connect has it, on loopback.

It signs by RS256 with a key of its own; the broker reads the public half from a file (JWKS). It wants a
client's id and secret by Basic, as RFC 6749 says, and counts who came.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

KEY_ID = "tide"
AUDIENCE = "seawall-test"
CLIENT = "seawall"
SECRET = "moon-pull"
LIFE_S = 300


class Tokens:
    """An issuer that listens from its making on, until it is closed."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.given = 0
        self.refused = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, said = outer._answer(self.headers.get("Authorization", ""), asked.decode())
                content = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def write_keys(self, path: Path) -> None:
        """The public half, as a broker's JWKS file."""
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (
            base64.urlsafe_b64encode(each.to_bytes((each.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()
            for each in (numbers.n, numbers.e)
        )
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID, "n": modulus, "e": exponent}
        path.write_text(json.dumps({"keys": [key]}), encoding="utf-8")

    def token(self, *, audience: str = AUDIENCE) -> str:
        now_s = int(time.time())
        claims = {"sub": CLIENT, "aud": audience, "iat": now_s, "exp": now_s + LIFE_S, "scope": "kafka"}
        signed = f"{_part({'alg': 'RS256', 'typ': 'JWT', 'kid': KEY_ID})}.{_part(claims)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, authorization: str, asked: str) -> tuple[int, dict[str, object]]:
        wanted = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        grant = dict(urllib.parse.parse_qsl(asked))
        if authorization != f"Basic {wanted}" or grant.get("grant_type") != "client_credentials":
            self.refused += 1
            return 401, {"error": "invalid_client"}
        self.given += 1
        audience = "somebody-else" if grant.get("scope") == "elsewhere" else AUDIENCE
        return 200, {"access_token": self.token(audience=audience), "expires_in": LIFE_S}


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
