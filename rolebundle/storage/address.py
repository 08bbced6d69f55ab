"""The address of a corpus in PostgreSQL, and the link that stands for it on this machine.

A link is a text file that has nothing but the address. What belongs to a corpus and to one machine
is beside the link, as it is beside a corpus file: the audit, overlays, the server's socket.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from platformdirs import user_data_path

from rolebundle.errors import UsageError, storage_errors

SCHEMES = ("postgresql://", "postgres://")
VERIFIED = ("verify-full", "verify-ca")
"""The values of ``sslmode`` with which the server is known."""
_MAX_CHARACTERS = 4_096
_PORT = re.compile(r":\d*$")


def is_address(text: str) -> bool:
    """Whether a text is an address, and no path."""
    return text.startswith(SCHEMES)


def address_of(path: Path) -> str:
    """The address in a link; empty if the path is no link."""
    with suppress(OSError, UnicodeDecodeError), path.open("rb") as file:
        text = file.read(_MAX_CHARACTERS).decode()
        if is_address(text):
            return text.strip()
    return ""


def in_database(path: Path) -> UsageError:
    """The error for what is done with a corpus file, and asked for the link of a database."""
    return UsageError(
        "corpus_in_database",
        f"{path}: this corpus is in a database, which has its own ways for this",
        "`pg_dump --schema=rolebundle` and `pg_restore`; `rolebundle corpus copy` makes a corpus "
        "file of it, which can be published, repaired and backed up",
    )


def link_for(address: str) -> Path:
    """The link for an address, in the platform's user data folder. It is made if it is missing.

    Raises:
        UsageError: the address has a password, or would send one in the clear.
        StorageError: the link cannot be made.
    """
    check_address(address)
    host = (_hosts(address) or ["local"])[0]
    place = re.sub(r"[^\w.-]+", "-", f"{host}{urlsplit(address).path}").strip("-")
    name = f"{place}-{sha256(address.encode()).hexdigest()[:8]}"
    path = user_data_path("rolebundle", appauthor=False) / "databases" / f"{name}.link"
    if address_of(path) != address:
        with storage_errors(
            "cannot_create", f"{path}: it cannot be created", "give yourself write permission"
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(f"{address}\n", encoding="utf-8")
            partial.replace(path)
    return path


def check_address(address: str) -> None:
    """Check that an address has no password, and that nobody can read or forge the traffic.

    Raises:
        UsageError: it is not so.
    """
    parts, options = urlsplit(address), parse_qs(urlsplit(address).query)
    if ":" in parts.netloc.rpartition("@")[0] or "password" in options:
        raise UsageError(
            "password_in_address",
            "the address of the database has a password, which others can see in the list of "
            "processes and in the history of the shell",
            "put it into ~/.pgpass, or into a service file, and leave it out of the address",
        )
    modes = options.get("sslmode", [VERIFIED[0]])
    if not is_local(address) and modes[-1] not in VERIFIED:
        raise UsageError(
            "address_without_tls",
            f"sslmode={modes[-1]} does not verify the server {', '.join(_hosts(address))}",
            "leave sslmode out (it is verify-full then), and name the certificate of the "
            "authority with sslrootcert",
        )


def is_local(address: str) -> bool:
    """Whether the database is on this machine: by a socket, or by a loopback address.

    It is not known of an address without a host that names a service.
    """
    hosts = _hosts(address)
    names_service = "service" in parse_qs(urlsplit(address).query) or "PGSERVICE" in os.environ
    return (bool(hosts) or not names_service) and all(map(_is_on_this_machine, hosts))


def _hosts(address: str) -> list[str]:
    """The hosts of an address, without ports; else that of the environment, as in libpq."""
    parts = urlsplit(address)
    named = [_PORT.sub("", one) for one in parts.netloc.rpartition("@")[2].split(",")]
    options = parse_qs(parts.query)
    named += [
        one for key in ("host", "hostaddr") for one in ",".join(options.get(key, [])).split(",")
    ]
    hosts = [host.strip("[]") for host in named if host]
    return hosts or [*filter(None, [os.environ.get("PGHOSTADDR") or os.environ.get("PGHOST")])]


def _is_on_this_machine(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost" or host.startswith("/")
