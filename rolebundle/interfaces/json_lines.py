"""Requests as JSON: strict, of bounded size, and refused with a reason."""

from __future__ import annotations

from typing import Any

from rolebundle.errors import UsageError
from rolebundle.text.strict_json import NotStrictError, parse_strict

MAX_LINE_BYTES = 1 << 20
"""The longest request, in bytes."""
_MAX_DIGITS = 400


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
        return parse_strict(data.decode("utf-8"), max_digits=_MAX_DIGITS, require_finite=True)
    except UnicodeDecodeError as error:
        raise _refused(str(error)) from None
    except NotStrictError as error:
        place = f" at character {error.at + 1}" if error.at >= 0 else ""
        raise _refused(f"{error}{place}") from None


def _refused(reason: str) -> NotJson:
    return NotJson("not_json", f"the request is not JSON: {reason}", "send one UTF-8 JSON object")
