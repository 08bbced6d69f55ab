"""JSON as it comes from outside: strict, bounded, and refused with a reason.

Python's own parser takes NaN, duplicate keys and numbers without end; a request may have none.
"""

from __future__ import annotations

import json
from typing import Any

from rolebundle.errors import UsageError

MAX_LINE_BYTES = 1 << 20
"""The longest request, in bytes."""
_LONGEST_NUMBER = 400


class NotJson(UsageError):
    """Text that is no JSON, or JSON that no two readers would read alike."""

    rpc_code = -32700


class TooLarge(UsageError):
    """A request over the bound."""

    rpc_code = -32008


def json_object(data: bytes) -> dict[str, Any]:
    """One JSON object from its bytes.

    Raises:
        NotJson: not UTF-8, not JSON, nested too deeply, NaN or infinite, a number of too many
            digits, one key twice, or something else than an object.
        TooLarge: over ``MAX_LINE_BYTES``.
    """
    value = json_value(data)
    if not isinstance(value, dict):
        raise NotJson("not_an_object", "the request is no JSON object", "send {...}")
    return value


def json_value(data: bytes, most: int = MAX_LINE_BYTES) -> Any:
    """One JSON value from at most so many bytes; raises as :func:`json_object` does."""
    if len(data) > most:
        raise TooLarge(
            "request_too_large",
            f"the request is over {most:,} bytes",
            "send less: a task needs a few sentences",
        )
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_constant=_no_constant,
            parse_int=_bounded_int,
            parse_float=_finite,
            object_pairs_hook=_without_doubles,
        )
    except RecursionError:
        raise _refused("nested too deeply") from None
    except ValueError as error:
        # Includes bytes that are no UTF-8.
        raise _refused(str(error)) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _bounded_int(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:20]} is out of range")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {double[:80]!r} stands there twice")
    return found


def _refused(reason: str) -> NotJson:
    return NotJson("not_json", f"the request is not JSON: {reason}", "send one UTF-8 JSON object")
