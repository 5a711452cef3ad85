"""How every Seawall error is made: the class's docstring is the message, its fields are the facts.

The first paragraph of the docstring says what happened, the rest says what to do about it. Both are
templates over the fields, so an error can be matched on by type, read by a person and kept as values,
and no message is written twice. `exit_code` is stable: docs/EXIT_CODES.md lists each one, and a test
compares that page with the classes.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar


class StatedError(Exception):
    """{what}"""

    exit_code: ClassVar[int] = 10

    def __str__(self) -> str:
        return inspect.cleandoc(type(self).__doc__ or "").format_map(vars(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own pickling passes `args`, which keyword-only errors do not have.
        return (_rebuild, (type(self), vars(self)))


def _rebuild(kind: type[StatedError], fields: dict[str, object]) -> StatedError:
    error = kind.__new__(kind)
    vars(error).update(fields)
    return error
