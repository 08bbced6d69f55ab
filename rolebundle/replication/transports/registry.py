"""Which transport a target has."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from rolebundle.errors import UsageError
from rolebundle.replication.transports.files import FolderTransport, HttpTransport
from rolebundle.replication.transports.litestream import LitestreamTransport
from rolebundle.replication.transports.rsync import RsyncTransport
from rolebundle.replication.transports.transport import Transport

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REMOTE_PATH = re.compile(r"[^/\\]{2,}:")
"""``host:path``, as scp writes it. One letter is a drive of Windows."""

_ALLOWED = (
    "a path, file:///path, https://host/path/, ssh://host/path/replica.db, "
    "litestream+file:///path, litestream+s3://bucket/path, litestream+sftp://user@host/path, "
    "litestream+webdavs://host/path"
)


def open_transport(target: str) -> Transport:
    """The transport of a target. No connection is made.

    Raises:
        UsageError: ``unknown_transport``, ``secret_in_target``, ``bad_target``, ``plain_http``.
    """
    scheme = match[1].lower() if (match := _SCHEME.match(target)) else ""
    if scheme:
        _refuse_secrets(target, scheme)
    if scheme in ("http", "https"):
        return HttpTransport(target)
    if scheme == "ssh":
        return RsyncTransport(target)
    if scheme.startswith("litestream+"):
        return LitestreamTransport(target)
    is_path = target and "\0" not in target and not _REMOTE_PATH.match(target)
    if scheme == "file" or (not scheme and is_path):
        return FolderTransport(target)
    raise UsageError(
        "unknown_transport",
        f"{target!r}: there is no transport for this target",
        f"use one of: {_ALLOWED}; write ./ before a path with a colon",
    )


def _refuse_secrets(target: str, scheme: str) -> None:
    try:
        parts = urlsplit(target)
        has_secret = parts.password is not None or (
            parts.username is not None and scheme in ("http", "https")
        )
    except ValueError:
        # The target is not repeated: it may hold a password.
        raise UsageError(
            "bad_target", f"a target with {scheme}:// is not a URL", f"use one of: {_ALLOWED}"
        ) from None
    if has_secret:
        raise UsageError(
            "secret_in_target",
            f"a target with {scheme}:// contains a password; targets are stored and shown",
            "remove it from the target, and give it to the engine as its documentation says",
        )
