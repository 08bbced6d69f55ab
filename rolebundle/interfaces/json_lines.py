"""Requests as JSON: strict, of bounded size, and refused with a reason."""

from __future__ import annotations

from typing import Any

from rolebundle.errors import UsageError
from rolebundle.text.strict_json import NotStrictError, parse_strict

MAX_LINE_BYTES = 1 << 20
"""The longest request, in bytes."""
_MAX_DIGITS = 400


class NotJson(UsageError):
    """Text that is not JSON, JSON that is ambiguous, or JSON that is not an object.

    Attributes:
        reason: what is wrong, without a subject, such as ``not JSON: ...``.
    """

    rpc_code = -32700

    def __init__(self, code: str, message: str, hint: str = "", *, reason: str = "") -> None:
        super().__init__(code, message, hint)
        self.reason = reason


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
        raise NotJson("not_an_object", "the request is not a JSON object", "send {...}")
    return value


def json_value(data: bytes, max_bytes: int = MAX_LINE_BYTES) -> Any:
    """One JSON value from its bytes.

    Raises:
        NotJson: as for :func:`json_object`, except that the value need not be an object.
        TooLarge: over ``max_bytes``.
    """
    if len(data) > max_bytes:
        raise TooLarge(
            "request_too_large",
            f"the request is over {max_bytes:,} bytes",
            "send less: a task needs a few sentences",
        )
    try:
        return parse_strict(data.decode("utf-8"), max_digits=_MAX_DIGITS, require_finite=True)
    except UnicodeDecodeError as error:
        raise _refused(str(error)) from None
    except NotStrictError as error:
        position = f" at character {error.at + 1}" if error.at >= 0 else ""
        raise _refused(f"{error}{position}") from None


def _refused(cause: str) -> NotJson:
    reason = f"not JSON: {cause}"
    return NotJson(
        "not_json", f"the request is {reason}", "send one UTF-8 JSON object", reason=reason
    )
