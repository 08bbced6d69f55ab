"""Requests as JSON: strict, of bounded size, and refused with a reason; answers of JSON-RPC 2.0."""

from __future__ import annotations

import json
from typing import Any

from rolebundle.errors import RolebundleError, UsageError
from rolebundle.text.strict_json import NotStrictError, parse_strict

MAX_LINE_BYTES = 1 << 20
"""The longest request, in bytes."""


_RPC_CODES = {
    "not_json": -32700,
    "not_an_object": -32700,
    "batch_refused": -32600,
    "bad_envelope": -32600,
    "unknown_method": -32601,
    "request_too_large": -32008,
}
"""JSON-RPC's numbers of the errors of the protocol itself."""


def rpc_code(error: RolebundleError) -> int:
    """JSON-RPC's number of an error."""
    return _RPC_CODES.get(error.code, error.rpc_code)


def json_object(data: bytes) -> dict[str, Any]:
    """One JSON object from its bytes.

    Raises:
        UsageError: ``not_json``: not UTF-8, not JSON, nested too deeply, NaN or infinite, a number
            of too many digits, or one key twice; ``not_an_object``; ``request_too_large``: over
            ``MAX_LINE_BYTES``.
    """
    value = json_value(data)
    if not isinstance(value, dict):
        raise UsageError("not_an_object", "the request is not a JSON object", "send {...}")
    return value


def json_value(data: bytes, max_bytes: int = MAX_LINE_BYTES) -> Any:
    """One JSON value from its bytes.

    Raises:
        UsageError: as for :func:`json_object`, except that the value need not be an object.
    """
    if len(data) > max_bytes:
        step = "send less: a task needs a few sentences"
        raise UsageError("request_too_large", f"the request is over {max_bytes:,} bytes", step)
    try:
        return parse_strict(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refused(f"no UTF-8 at byte {error.start + 1}") from None
    except NotStrictError as error:
        position = f" at character {error.at + 1}" if error.at >= 0 else ""
        raise _refused(f"{error}{position}") from None


def _refused(cause: str) -> UsageError:
    return UsageError("not_json", f"the request is not JSON: {cause}", "send one UTF-8 JSON object")


def id_of(message: object) -> Any:
    """The id for the answer: null if the message has none, or none of an allowed type."""
    value = message.get("id") if isinstance(message, dict) else None
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def checked_envelope(message: object) -> dict[str, Any]:
    """The message, whose ``method`` is a text. Its ``params`` may be anything.

    Raises:
        UsageError: it is no request and no notification of JSON-RPC 2.0.
    """
    if isinstance(message, list):
        raise UsageError("batch_refused", "batches are not supported", "send single requests")
    if not isinstance(message, dict):
        raise bad_envelope("the message is not an object")
    if message.get("id") is not None and id_of(message) is None:
        raise bad_envelope("id: must be a text, a number or null")
    if message.get("jsonrpc") != "2.0":
        raise bad_envelope('jsonrpc: must be "2.0"')
    if not isinstance(message.get("method"), str):
        raise bad_envelope("method: must be a text")
    return message


def bad_envelope(reason: str) -> UsageError:
    """The error for a message that is no request, with what is wrong with it."""
    step = 'send one object: {"jsonrpc": "2.0", "id": 1, "method": "...", "params": {...}}'
    return UsageError("bad_envelope", f"not a JSON-RPC 2.0 request: {reason}", step)


def error_fields(error: RolebundleError) -> dict[str, Any]:
    """What a client gets of an error."""
    return {name: getattr(error, name) for name in ("code", "message", "hint", "retryable")}


def error_line(request_id: Any, error: RolebundleError) -> bytes:
    """The answer to a request that was refused or failed."""
    fields = {"code": rpc_code(error), "message": error.message, "data": error_fields(error)}
    return encoded({"jsonrpc": "2.0", "id": request_id, "error": fields})


def answer_line(request_id: Any, result: object) -> bytes:
    """The answer to a request."""
    return encoded({"jsonrpc": "2.0", "id": request_id, "result": result})


def encoded(message: object) -> bytes:
    """One message as a line without its end."""
    # ASCII, because UTF-8 cannot hold unpaired surrogates. They travel as escapes.
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
