"""Programs that a transport runs: without a shell, with a deadline, in a group of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath

from rolebundle.errors import ConfigurationError, StorageError
from rolebundle.policy.approvals import end_process

TRANSFER_SECONDS = 3600.0
"""How long one transfer may take."""
_MAX_SHOWN_CHARS = 300


def run_program(
    target: str,
    command: Sequence[str],
    *,
    folder: Path,
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and until nothing that it started writes messages any more.

    It gets no terminal, so that nothing can ask for a password. What it creates is private.

    Args:
        target: the address that it works for, for messages.
        command: the program and its arguments.
        folder: its working directory.
        seconds: how long it may take. Then it and its children are killed.

    Raises:
        StorageError: ``transfer_failed``: it could not be started, or it did not end in time.
    """
    name = PurePath(command[0]).name
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
            umask=0o077,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its arguments are not valid"
        raise failed(target, f"{name} could not be started ({reason})") from error
    try:
        output, messages = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise failed(target, f"{name} did not end within {seconds:g} s") from error
    finally:
        end_process(process)
    return subprocess.CompletedProcess(
        command,
        process.returncode,
        output.decode("utf-8", "replace"),
        messages.decode("utf-8", "replace"),
    )


def failed(target: str, reason: str) -> StorageError:
    """A transfer that failed."""
    return StorageError(
        "transfer_failed",
        f"{target}: {reason}",
        "remove the reason and run the same command again",
    )


def missing(program: str, hint: str) -> ConfigurationError:
    """The engine of a transport is not installed."""
    return ConfigurationError("engine_missing", f"{program}: is not installed", hint)


def last_line(messages: str) -> str:
    """The last line with content, in one line of at most 300 printable characters."""
    lines = [line for line in map(str.strip, messages.splitlines()) if line]
    text = lines[-1] if lines else "it gave no reason"
    return "".join(character for character in text if character.isprintable())[:_MAX_SHOWN_CHARS]
