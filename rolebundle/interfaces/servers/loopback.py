"""HTTP for programs of the same user on the same machine: who may connect, and with which token.

Any web page that a person opens can send requests to this machine, and its server can give itself
an address here (DNS rebinding). So a request counts only if its ``Host`` is this server's own
address, its ``Origin`` is missing or the same, and it has the token. A refused request is answered
from its headers alone: its body is not read.
"""

from __future__ import annotations

import errno
import hmac
import os
import re
import secrets
import socket
import stat
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from rolebundle import system
from rolebundle.errors import AccessDenied, ConfigurationError, RolebundleError
from rolebundle.interfaces.json_lines import error_line
from rolebundle.storage.file import partial_file, rename_if_free, sync_file

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

ADDRESS = "127.0.0.1"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{32,512}")
"""What a header can carry, and long enough not to be guessed."""
_MAX_TOKEN_FILE = 1_024


def guarded(app: App, port: int, token: str) -> App:
    """An ASGI application that passes on to ``app`` only what is not refused.

    Args:
        app: the application.
        port: of this server.
        token: of its requests.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = refusal(scope["headers"], port, token)
            if refused is not None:
                await _refuse(*refused, send)
                return
        await app(scope, receive, send)

    return checked


def refusal(headers: Headers, port: int, token: str) -> tuple[int, RolebundleError] | None:
    """The HTTP status and the error for a request with these headers; ``None`` to answer it."""
    known = (f"{ADDRESS}:{port}", f"localhost:{port}")
    hosts = _values(headers, b"host")
    if len(hosts) != 1 or hosts[0].lower() not in known:
        return 421, AccessDenied(
            "wrong_host",
            "the request's Host is not the address of this server",
            f"use http://{known[0]}",
        )
    origins = _values(headers, b"origin")
    if any(origin.lower() not in {f"http://{host}" for host in known} for origin in origins):
        return 403, AccessDenied(
            "foreign_origin",
            "this server answers no web pages of other origins",
            "call it from a program, without an Origin header",
        )
    authorization = _values(headers, b"authorization")
    scheme, _, given = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        given.strip().encode("utf-8"), token.encode("ascii")
    ):
        return 401, AccessDenied(
            "token_required",
            "the request has no valid bearer token",
            "send the header Authorization: Bearer TOKEN; the server printed the path of the "
            "token's file when it started",
        )
    return None


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


async def _refuse(status: int, error: RolebundleError, send: Send) -> None:
    body = error_line(None, error)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        # The request's body was not read.
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def listen(port: int) -> socket.socket:
    """A socket that listens on this machine's own address only.

    Args:
        port: 0 for any free one.

    Raises:
        ConfigurationError: ``port_in_use``, or ``port_refused`` by the system.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Or a restarted server would wait for the connections of the one before.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        is_used = error.errno == errno.EADDRINUSE
        raise ConfigurationError(
            "port_in_use" if is_used else "port_refused",
            f"port {port} cannot be used ({error.strerror})",
            "end the program that uses it, or give another --port",
        ) from None
    return listener


def default_token_file(corpus: Path, agent: str | None) -> Path:
    """The token's file in the user's data folder: one for each corpus and agent.

    The token of one agent must not open the server of another one.
    """
    served = f"{os.path.realpath(corpus)}\0{agent or ''}"
    name = f"{sha256(served.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.token"
    return user_data_path("rolebundle", appauthor=False) / "tokens" / name


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read. Created if it is missing.

    Raises:
        ConfigurationError: ``token_file_readable``: others may read or write the file;
            ``token_file_bad``: it has no token, is no plain file, or cannot be read or created.
    """
    try:
        if not os.path.lexists(path):
            _create(path)
        return _read(path)
    except OSError as error:
        raise _bad_token_file(path, f"cannot be used ({error.strerror})") from None


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with partial_file(path) as partial:
        partial.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
        sync_file(partial)
        # If another server was first, its token counts.
        rename_if_free(partial, path)


def _read(path: Path) -> str:
    # Without waiting for a writer if it is a pipe; a link could lead to a file of somebody else.
    with system.open_itself(path) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _bad_token_file(path, "is not a plain file")
        if system.is_foreign(status.st_uid) or system.is_open_to_others(status):
            problem = f"{path}: others may read or change the token"
            step = f"delete the file, so that a new token is made, or chmod 600 {path}"
            raise ConfigurationError("token_file_readable", problem, step)
        text = file.read(_MAX_TOKEN_FILE).decode("ascii", "replace").strip()
    if not _TOKEN.fullmatch(text):
        raise _bad_token_file(path, "has no token of at least 32 letters, digits and .-_~+/=")
    return text


def _bad_token_file(path: Path, problem: str) -> ConfigurationError:
    step = "delete the file, so that a new token is made, or give another --token-file"
    return ConfigurationError("token_file_bad", f"{path}: {problem}", step)
