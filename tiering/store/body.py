"""Bodies on their way: content dressed as the file that an SDK sends, and an answer read into given memory.

Owns the difference between what we have and what the SDK wants. It makes no request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tiering.store.errors import StoreError
from tiering.store.interface import Content


class FileBody:
    """Content as the file that botocore wants for a body.

    `read` gives a whole piece however little is asked for: urllib3 asks for 16 KiB at a time, and sends what
    it is given. What a piece raises, such as a passed deadline, botocore would bury in an error of its own;
    at the end of the `with` it is raised as it was.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self._pieces = iter(content)
        self._position = 0
        self._failure: StoreError | None = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._failure is not None and error is not self._failure:
            raise self._failure

    def __len__(self) -> int:
        return self._content.size_bytes

    def read(self, _size: int = -1) -> memoryview | bytes:
        try:
            piece = next(self._pieces, b"")
        except StoreError as failure:
            self._failure = failure
            raise
        self._position += len(piece)
        return piece

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, whence: int = 0) -> int:
        if (position, whence) != (0, 0):
            raise OSError(f"a body can only be sent from its start, not from {position}")
        self._pieces, self._position = iter(self._content), 0
        return 0


def filled(answer: Any, into: memoryview) -> Iterator[int]:
    """How many bytes of the answer stand at the beginning of `into`, again and again until its end.

    `answer` is urllib3's. They come from the connection's own reader, which is its private matter: by its
    public ways each piece is fresh memory, which costs as much as reading does (measured: bench/scrub.py).
    Raises OSError and HTTPException.
    """
    reader = answer._fp
    while count := reader.readinto(into):
        if reader.length == 0:
            answer.release_conn()  # to its pool before the last bytes are handed out: nobody asks on
        yield count
