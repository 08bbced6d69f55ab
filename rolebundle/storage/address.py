"""The address of a corpus in PostgreSQL, and the link that stands for it on this machine.

A link is a text file that has nothing but the address. What belongs to a corpus and to one machine
is beside the link, as it is beside a corpus file: the audit, overlays, the server's socket.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from rolebundle import system
from rolebundle.errors import ConfigurationError, UsageError, install_hint, storage_errors
from rolebundle.lazy import lazy_pattern

_SCHEMES = ("postgresql://", "postgres://")
_VERIFIED = ("verify-full", "verify-ca")
"""The values of ``sslmode`` with which the server is known."""
_OPTIONS = (
    "host port user dbname sslmode sslrootcert target_session_attrs load_balance_hosts"
).split()
"""What an address may say. Other options of libpq name files that are read or written."""
_MAX_BYTES = 4_095
"""A corpus has more: the least page of its file is larger."""
_LOOPBACK = lazy_pattern(r"|localhost|::1|127(?:\.\d{1,3}){3}")


def is_address(text: str) -> bool:
    """Whether a text is an address, and no path."""
    return text.startswith(_SCHEMES)


def address_of(path: Path) -> str:
    """The address in a link; empty if the path is no link."""
    with suppress(OSError, UnicodeDecodeError):
        # A corpus is not opened here: closing it would end the locks that SQLite has on it in this
        # process, and another program would delete the log that is still written to.
        if path.is_file() and 0 < path.stat().st_size <= _MAX_BYTES:
            data = path.read_bytes()
            if data.startswith(tuple(map(str.encode, _SCHEMES))):
                return data.decode().rstrip("\r\n")
    return ""


def link_for(address: str) -> Path:
    """The link for an address, in the platform's user data folder. It is made if it is missing.

    Raises:
        UsageError, ConfigurationError: as for :func:`parameters_of`.
        StorageError: the link cannot be made.
    """
    values = parameters_of(address)
    place = "-".join(str(values.get(name, "")) for name in ("host", "dbname"))
    place = re.sub(r"[^\w.-]+", "-", place).strip("-")[:60]
    name = f"{place}-{sha256(address.encode()).hexdigest()[:8]}"
    path = user_data_path("rolebundle", appauthor=False) / "databases" / f"{name}.link"
    if address_of(path) != address:
        with storage_errors(
            "cannot_create", f"{path}: it cannot be created", "give yourself write permission"
        ):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(f"{address}\n", encoding="utf-8")
            partial.chmod(0o600)
            system.replace(partial, path)
    return path


def replica_of(link: Path) -> Path:
    """The replica beside a link, which answers if the database cannot be reached."""
    return link.with_suffix(".replica.db")


def in_database_error(path: Path) -> UsageError:
    """The error for what is done with a corpus file, and asked for the link of a database."""
    return UsageError(
        "corpus_in_database",
        f"{path}: this corpus is in a database, which has its own ways for this",
        "`pg_dump` and `pg_restore` of the whole database; `rolebundle corpus copy` makes a corpus "
        "file of it, which can be published, repaired and backed up",
    )


def parameters_of(address: str) -> dict[str, Any]:
    """What libpq reads from an address, with the mode in which its server is verified.

    Raises:
        UsageError: it is no address, has a password or another option, or others could read or
            forge the traffic.
        ConfigurationError: psycopg is not installed.
    """
    if find_spec("psycopg") is None:
        raise ConfigurationError(
            "postgres_missing", "a corpus in PostgreSQL needs psycopg", install_hint("postgres")
        )
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        values = conninfo_to_dict(address)
    except psycopg.Error:
        # Its message may have the password.
        raise UsageError(
            "bad_address", "the address of the database cannot be read", _FORM
        ) from None
    if "password" in values:
        raise UsageError(
            "password_in_address",
            "the address of the database has a password, which others can see in the list of "
            "processes and in the history of the shell",
            "put it into ~/.pgpass, and leave it out of the address",
        )
    for option in values.keys() - {*_OPTIONS}:
        raise UsageError(
            "address_option", f"the address of the database must not have {option}", _FORM
        )
    for variable in ("PGHOSTADDR", "PGSERVICE", "PGSERVICEFILE"):
        if os.environ.get(variable):
            problem = f"{variable} would change the address of the database"
            step = "unset it"
            raise UsageError("address_variable", problem, step)
    hosts = str(values.get("host") or os.environ.get("PGHOST") or "").split(",")
    # A socket, this machine's default, or a loopback address.
    if not all(host.startswith("/") or _LOOPBACK.fullmatch(host) for host in hosts):
        mode = values.setdefault("sslmode", _VERIFIED[0])
        if mode not in _VERIFIED:
            raise UsageError(
                "address_without_tls",
                f"sslmode={mode} does not verify the server {', '.join(hosts)}",
                "leave sslmode out (it is verify-full then), and name the certificate of the "
                "authority with sslrootcert",
            )
    return values


_FORM = "write postgresql://USER@HOST/DATABASE, perhaps with ?sslrootcert=FILE"
