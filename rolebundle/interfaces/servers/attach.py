"""How `serve` and `mcp` attach to a server that runs already, so that the model is loaded once.

The first line of a connection says what the client's own process would serve, and the server
answers whether it does the same (see :class:`Hello`). Then this process becomes a small one that
forwards lines (``forward.py``).
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

import rolebundle
from rolebundle.contracts.base import Contract
from rolebundle.interfaces.servers.local_socket import connect, received_line, socket_paths
from rolebundle.interfaces.servers.operations import Operations

Protocol = Literal["serve", "mcp"]

ENVIRONMENT = "ROLEBUNDLE_SOCKET"
"""The environment variable with the socket to attach to; ``none`` to attach to none."""
NOT_ATTACHED = "none"
MAX_HELLO_BYTES = 1 << 16
_FORWARDER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from rolebundle.interfaces.servers.forward import main; main()"
)
_PROGRAM = "from rolebundle.interfaces.cli.main import main; main()"
HELLO_SECONDS = 5.0
_RESOLVED = frozenset(
    f"ROLEBUNDLE_{name}"
    for name in (
        *("DB", "OVERLAYS", "SOCKET", "DEBUG", "SHARED"),
        *("EMBED_URL", "EMBED_ALLOW_HOST", "JUDGE", "JUDGE_URL", "RERANK", "RERANK_URL"),
    )
)
"""Variables that have an effect only as the options that they stand for, or none on answers."""


class Hello(Contract):
    """What a client's own process would serve.

    Attributes:
        settings: the digest of all that must be the same in the server; see
            :func:`settings_digest`.
        protocol: `serve` (JSON-RPC) or `mcp`.
        agent: the only agent that is answered.
        allow_write: whether the methods that write are offered.
        approvals: whether approvals come from requests.
        overlay_folders: where overlays are looked for, with absolute paths.
    """

    settings: str
    protocol: Protocol
    agent: str | None
    allow_write: bool
    approvals: Literal["none", "request"]
    overlay_folders: list[str]

    @classmethod
    def of(cls, operations: Operations, protocol: Protocol, settings: Mapping[str, str]) -> Self:
        """What a process with these operations serves."""
        engine = operations.engine
        return cls(
            settings=settings_digest(engine.workspace.path, settings),
            protocol=protocol,
            agent=engine.agent,
            allow_write=operations.allow_write,
            approvals="request" if engine.answering.approvals.source == "request" else "none",
            overlay_folders=[str(folder.absolute()) for folder in engine.overlay_folders],
        )

    @classmethod
    def read(cls, line: bytes) -> Self | None:
        """The hello of a line; ``None`` if it is none."""
        with suppress(ValueError):
            return cls.model_validate_json(line)
        return None


def settings_digest(corpus: Path, settings: Mapping[str, str]) -> str:
    """The digest of all that must be the same in two processes that serve the same.

    It covers the version, the file of the corpus, the options about models, and the environment
    variables of this program and of Ollama.
    """
    try:
        status = corpus.stat()
        file = [status.st_dev, status.st_ino]
    except OSError:
        file = []
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("ROLEBUNDLE_", "OLLAMA_")) and name not in _RESOLVED
    }
    # Answers contain the name by which the corpus was opened.
    names = [os.path.realpath(corpus), corpus.name]
    values = [version("rolebundle"), names, file, dict(settings), environment]
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def sockets(corpus: Path) -> list[Path]:
    """Where the socket of a corpus may lie; none if this process must not attach."""
    named = os.environ.get(ENVIRONMENT, "")
    if named == NOT_ATTACHED:
        return []
    return [Path(named)] if named else socket_paths(corpus)


def attach(operations: Operations, protocol: Protocol, settings: Mapping[str, str]) -> None:
    """Become the forwarder to the corpus's server. Return if there is none that serves the same.

    Args:
        operations: those that this process would serve.
        protocol: what it would speak.
        settings: its options about models.
    """
    connection = connect_to_server(operations, protocol, settings) if sys.executable else None
    if connection is not None:
        # -P: the folder in which a host starts this program is no place for modules.
        alone = [sys.executable, "-P", "-c", _PROGRAM, *sys.argv[1:]]
        connection.set_inheritable(True)
        sys.stderr.flush()
        # Replaced, because this process has imported what the forwarder does not need.
        os.execv(sys.executable, forwarder_command(connection, alone))


def connect_to_server(
    operations: Operations, protocol: Protocol, settings: Mapping[str, str]
) -> socket.socket | None:
    """A connection to the corpus's server, if there is one and it serves the same.

    Why a server does not serve the same is written to standard error.
    """
    # A program that approves must run in the folder and with the variables of its own host.
    if operations.engine.answering.approvals.source == "command":
        return None
    for path in sockets(operations.engine.workspace.path):
        connection = connect(path, HELLO_SECONDS)
        if connection is None:
            continue
        try:
            reason = _refusal(connection, Hello.of(operations, protocol, settings))
        except ValueError:
            reason = "the name of a folder or an agent is not text"
        if not reason:
            connection.settimeout(None)
            return connection
        connection.close()
        sys.stderr.write(f"not attached to the server at {path}: {reason}\n")
    return None


def forwarder_command(connection: socket.socket, alone: Sequence[str]) -> list[str]:
    """The command of the forwarder between the standard streams and a connection.

    Args:
        connection: greeted; the forwarder must inherit it.
        alone: the command of a server of this client's own, in case that the server ends.
    """
    package = str(Path(rolebundle.__file__).parents[1])
    # -I -S: it needs no other packages, and is smaller without them.
    python = [sys.executable, "-I", "-S", "-c", _FORWARDER]
    return [*python, package, str(connection.fileno()), *alone]


def _refusal(connection: socket.socket, hello: Hello) -> str:
    """Say hello. Return why the server does not serve this client; empty if it does."""
    try:
        connection.sendall(hello.model_dump_json().encode() + b"\n")
        line = received_line(connection, MAX_HELLO_BYTES)
        if not line:
            return "it ended the connection"
        answer: Any = json.loads(line)
        return str(answer["refused"])
    except (OSError, ValueError, KeyError, TypeError):
        return "it gave no answer"
