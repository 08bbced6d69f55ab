"""Requests as JSON: strict, of bounded size, and refused with a reason; answers of JSON-RPC 2.0."""

from __future__ import annotations

import json
from typing import Any

from rolebundle.errors import RolebundleError, UsageError
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


class BadEnvelope(UsageError):
    """JSON that is not a request of JSON-RPC 2.0."""

    rpc_code = -32600


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
        raise _refused(f"no UTF-8 at byte {error.start + 1}") from None
    except NotStrictError as error:
        position = f" at character {error.at + 1}" if error.at >= 0 else ""
        raise _refused(f"{error}{position}") from None


def _refused(cause: str) -> NotJson:
    reason = f"not JSON: {cause}"
    return NotJson(
        "not_json", f"the request is {reason}", "send one UTF-8 JSON object", reason=reason
    )


def id_of(message: object) -> Any:
    """The id for the answer: null if the message has none, or none of an allowed type."""
    value = message.get("id") if isinstance(message, dict) else None
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def checked_envelope(message: object) -> dict[str, Any]:
    """The message, whose ``method`` is a text. Its ``params`` may be anything.

    Raises:
        BadEnvelope: it is no request and no notification of JSON-RPC 2.0.
    """
    if isinstance(message, list):
        raise BadEnvelope("batch_refused", "batches are not supported", "send single requests")
    if not isinstance(message, dict):
        raise bad_envelope("the message is not an object")
    if message.get("id") is not None and id_of(message) is None:
        raise bad_envelope("id: must be a text, a number or null")
    if message.get("jsonrpc") != "2.0":
        raise bad_envelope('jsonrpc: must be "2.0"')
    if not isinstance(message.get("method"), str):
        raise bad_envelope("method: must be a text")
    return message


def bad_envelope(reason: str) -> BadEnvelope:
    """The error for a message that is no request, with what is wrong with it."""
    return BadEnvelope(
        "bad_envelope",
        f"not a JSON-RPC 2.0 request: {reason}",
        'send one object: {"jsonrpc": "2.0", "id": 1, "method": "...", "params": {...}}',
    )


def error_fields(error: RolebundleError) -> dict[str, Any]:
    """What a client gets of an error."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }


def error_line(request_id: Any, error: RolebundleError) -> bytes:
    """The answer to a request that was refused or failed."""
    fields = {"code": error.rpc_code, "message": error.message, "data": error_fields(error)}
    return encoded({"jsonrpc": "2.0", "id": request_id, "error": fields})


def answer_line(request_id: Any, result: object) -> bytes:
    """The answer to a request."""
    return encoded({"jsonrpc": "2.0", "id": request_id, "result": result})


def encoded(message: object) -> bytes:
    """One message as a line without its end."""
    # ASCII, because UTF-8 cannot hold unpaired surrogates. They travel as escapes.
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
