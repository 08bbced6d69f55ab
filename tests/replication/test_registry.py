"""Which targets there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.errors import UsageError
from rolebundle.replication.transports import (
    FolderTransport,
    HttpTransport,
    LitestreamTransport,
    RsyncTransport,
    open_transport,
)

FOLDERS = {
    "share": Path("share").resolve(),
    "/mnt/share": Path("/mnt/share"),
    "./a:b": Path("a:b").resolve(),
    "/mnt/./a/../share/": Path("/mnt/share"),
    "file:///mnt/my%20share": Path("/mnt/my share"),
    "FILE://localhost/mnt/share": Path("/mnt/share"),
}


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        *((target, FolderTransport) for target in FOLDERS),
        ("https://example.org/replicas/", HttpTransport),
        ("https://example.org:8443/a b/ä", HttpTransport),
        ("http://127.0.0.1:8000", HttpTransport),
        ("http://localhost/replicas", HttpTransport),
        ("http://[::1]:8000/", HttpTransport),
        ("ssh://ada@example.org:2222/srv/replica.db", RsyncTransport),
        ("ssh://alias/srv/replica.db?exe=/opt/sqlite3_rsync", RsyncTransport),
        ("litestream+file:///mnt/my%20store", LitestreamTransport),
        ("litestream+s3://bucket/replica?endpoint=https://example.org", LitestreamTransport),
        ("litestream+sftp://ada@example.org/srv/store", LitestreamTransport),
        ("litestream+webdavs://ada@example.org/store", LitestreamTransport),
    ],
)
def test_a_target(target: str, kind: type) -> None:
    transport = open_transport(target)
    assert isinstance(transport, kind)
    # A folder is the same target however it is written.
    is_folder = isinstance(transport, FolderTransport)
    assert transport.target == (str(FOLDERS[target]) if is_folder else target)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("", "unknown_transport"),
        ("a\0b", "unknown_transport"),
        ("ftp://example.org/", "unknown_transport"),
        ("s3://bucket/replica", "unknown_transport"),
        ("ada@example.org:share", "unknown_transport"),
        ("example.org:/mnt/share", "unknown_transport"),
        ("http://example.org/", "plain_http"),
        ("http://127.0.0.1.example.org/", "plain_http"),
        ("https://", "bad_target"),
        ("https://example.org:x/", "bad_target"),
        ("https://example.org/?signature=hunter2", "bad_target"),
        ("https://example.org/#a", "bad_target"),
        ("file://server/share", "bad_target"),
        ("file://", "bad_target"),
        ("https://[hunter2/", "bad_target"),
        ("https://ada:hunter2@example.org/", "secret_in_target"),
        ("https://hunter2@example.org/", "secret_in_target"),
        ("ftp://ada:hunter2@example.org/", "secret_in_target"),
    ],
)
def test_a_target_that_is_refused(target: str, code: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_transport(target)
    assert raised.value.code == code
    assert raised.value.hint
    assert "hunter2" not in str(raised.value), "a secret is not repeated"
