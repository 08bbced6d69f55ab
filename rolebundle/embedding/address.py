"""Where a model server may be: on this machine, unless the configuration names another host."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from rolebundle.errors import ConfigurationError, EmbedderError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A model server that may be contacted.

    Args:
        scheme: ``http`` or ``https``.
        host: the name or address, without brackets.
        port: always given.
        path: what stands before the API's own paths, without a slash at its end.
        local_only: every address that the host resolves to has to be a loopback one.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    local_only: bool = True

    @property
    def url(self) -> str:
        """The address in one line."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def resolve(self) -> list[str]:
        """The IP addresses to connect to, now.

        Asked for each connection and checked each time, so that a name that changes its mind
        between the check and the connection gains nothing.

        Raises:
            EmbedderError: a loopback name that resolves to somewhere else.
            OSError: the name does not resolve.
        """
        answers = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        found = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
        if self.local_only:
            for text in found:
                if not _is_loopback(ip_address(text)):
                    raise _not_local(f"{self.host}, which resolves to {text},")
        return found


def permitted(url: str, allow_host: str = "") -> Address:
    """The address of a model server, if it may be contacted.

    Nothing is looked up or connected to here.

    Args:
        url: ``http://host:port`` or ``https://host:port``, with a path where the server has one.
        allow_host: the one host off this machine that the configuration permits, by its name or
            address as the URL writes it.

    Raises:
        ConfigurationError: not such a URL.
        EmbedderError: another machine that the configuration does not permit.
    """
    parts, port = _parts(url)
    host = (parts.hostname or "").rstrip(".")
    local = _names_loopback(host)
    if not local and host != allow_host.casefold().strip("[]").rstrip("."):
        raise _not_local(host)
    return Address(parts.scheme, host, port, parts.path.rstrip("/"), local_only=local)


def _parts(url: str) -> tuple[SplitResult, int]:
    hint = "write it as http://127.0.0.1:PORT"
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise ConfigurationError("bad_url", f"the model server's URL: {error}", hint) from None
    # Not echoed: a password may stand in it.
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            "bad_url",
            "the model server's URL carries a user name or a password",
            "take it out; a key goes into an environment variable",
        )
    host = (parts.hostname or "").strip(".")
    if not (port and host and host.isascii()) or parts.query or parts.fragment:
        raise ConfigurationError("bad_url", f"not the URL of a model server: {url!r}", hint)
    return parts, port


def _names_loopback(host: str) -> bool:
    # A name other than localhost is not looked up: the question would already leave the machine.
    if host == "localhost":
        return True
    try:
        return _is_loopback(ip_address(host))
    except ValueError:
        return False


def _is_loopback(address: IPv4Address | IPv6Address) -> bool:
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _not_local(host: str) -> EmbedderError:
    return EmbedderError(
        "host_not_local",
        f"the model server at {host} is not on this machine; documents would be sent to it",
        "use an address on 127.0.0.1, or name exactly this host as the allowed one",
    )
