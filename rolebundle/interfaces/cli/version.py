"""What `rolebundle --version` prints."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version

from rolebundle.embedding.static import MODEL
from rolebundle.storage.opening import latest_version
from rolebundle.storage.sqlite import sqlite_version


def version_text() -> str:
    """The versions that a report of a fault needs; the first line names the program's own."""
    return "\n".join(
        (
            f"rolebundle {version('rolebundle')}",
            f"Python {python_version()}, SQLite {sqlite_version()}, apsw {version('apsw')}, "
            f"sqlite-vec {version('sqlite-vec')}",
            f"schema {latest_version()}, default model static:{MODEL}",
        )
    )
