"""Every error that a caller can meet.

RolebundleError                     exit  rpc
├── UsageError                         2  -32602   a request or an option that makes no sense
├── ConfigurationError                 3  -32602   a setting, manifest or policy file that is wrong
│   └── OverlayError                   3  -32602   an overlay that is missing or malformed
├── AccessDenied                       4  -32001   not allowed, or not there; one error for both
├── CorpusBusy                         5  -32003   another process uses the corpus
├── StorageError                       6  -32004   disk full, an I/O error, or an expired replica
├── CorpusCorrupt                      7  -32005   the file is damaged
├── WrongFile                          8  -32006   not a corpus, or made by a newer version
├── EmbedderError                      9  -32007   the embedding model could not do its work
├── Interrupted                        1  -32603   interrupted, or past its deadline
│   └── Cancelled                      1  -32800   cancelled by its caller
└── DocumentError                     10  -32602   a document that cannot be taken as it is

Each error names the thing, the reason and the next step. ``code`` is stable and meant for
programs; ``message`` and ``hint`` are for people.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

FULL_ERRNOS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""The system's reasons for "full": no space, a file too large, a quota used up."""

_MAX_DETAIL_CHARS = 200


def install_hint(extra: str) -> str:
    """How to install an extra of this package, which comes as a clone of its repository."""
    return f"in a clone of rolebundle: pip install '.[{extra}]'"


def with_detail(step: str, detail: object) -> str:
    """The step, followed by a library's message in parentheses, on one line."""
    text = f"{type(detail).__name__}: {detail}" if isinstance(detail, Exception) else str(detail)
    return f"{step} ({' '.join(text.split())[:_MAX_DETAIL_CHARS]})" if text else step


class RolebundleError(Exception):
    """Base of all errors of this package.

    Args:
        code: stable identifier in lower_snake_case.
        message: what is wrong, naming the thing and the reason.
        hint: the next step to take.
    """

    exit_code: ClassVar[int] = 1
    rpc_code: ClassVar[int] = -32603
    retryable: ClassVar[bool] = False

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.message} [{self.code}]"
        return f"{text}\n  next: {self.hint}" if self.hint else text


class UsageError(RolebundleError):
    """A request or an option that makes no sense."""

    exit_code = 2
    rpc_code = -32602


class ConfigurationError(RolebundleError):
    """A setting, a manifest or a policy file that is wrong."""

    exit_code = 3
    rpc_code = -32602


class OverlayError(ConfigurationError):
    """An overlay that is missing or malformed. Nothing is retrieved with it."""


class AccessDenied(RolebundleError):
    """Not allowed, or not there. The caller cannot distinguish the two."""

    exit_code = 4
    rpc_code = -32001
    is_recorded = False
    """Whether the audit has a record of it."""


class CorpusBusy(RolebundleError):
    """Another process uses the corpus, or has just changed its policy. A retry may succeed."""

    exit_code = 5
    rpc_code = -32003
    retryable = True


def corpus_busy(path: object, doing: str) -> CorpusBusy:
    """The error for a corpus that another process is doing something with."""
    return CorpusBusy(
        "corpus_busy",
        f"{path}: another process {doing}",
        "wait for it to end and run the same command again",
    )


class StorageError(RolebundleError):
    """Disk full, no permission, an I/O error, or a replica that was not replaced in time.

    Committed changes are kept.
    """

    exit_code = 6
    rpc_code = -32004


def storage_error(path: object, error: OSError) -> StorageError:
    """The error for a file that cannot be read or written."""
    is_full = error.errno in FULL_ERRNOS
    step = "free some disk space" if is_full else "check the permissions and the disk"
    return StorageError(
        "storage_full" if is_full else "io_error",
        f"{path}: {error.strerror or error}",
        f"{step}, then run the same command again",
    )


@contextmanager
def storage_errors(code: str, message: str, hint: str) -> Iterator[None]:
    """A block that raises an OSError as a StorageError; the message gets the system's reason."""
    try:
        yield
    except OSError as error:
        raise StorageError(code, f"{message} ({error.strerror})", hint) from error


class CorpusCorrupt(RolebundleError):
    """The corpus file is damaged. It was not changed."""

    exit_code = 7
    rpc_code = -32005


class WrongFile(RolebundleError):
    """Not a corpus, or one that a newer version made. It was not changed."""

    exit_code = 8
    rpc_code = -32006


class EmbedderError(RolebundleError):
    """The embedding model could not do its work. Nothing was half-written."""

    exit_code = 9
    rpc_code = -32007


class Interrupted(RolebundleError):
    """Interrupted, or past its deadline. A retry may succeed."""

    retryable = True


class Cancelled(Interrupted):
    """Cancelled by its caller."""

    rpc_code = -32800


class DocumentError(RolebundleError):
    """A document that cannot be taken as it is. Other documents are still ingested."""

    exit_code = 10
    rpc_code = -32602
