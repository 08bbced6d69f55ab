"""Writes new files: all of them or none, and never over another one."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rolebundle.errors import FULL_ERRNOS, ConfigurationError, StorageError

_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
_CODES = {errno.EACCES: "not_writable", errno.EPERM: "not_writable", errno.EROFS: "not_writable"}


def check_new(path: Path) -> None:
    """Check that there is nothing at a path.

    Raises:
        ConfigurationError: ``file_exists``.
    """
    if os.path.lexists(path):
        raise _exists(path)


def write_new(texts: Mapping[Path, str]) -> None:
    """Write new files. A missing folder for one is made, such as that of a corpus's overlays.

    Each is written under another name first, and gets its own name when it is complete.

    Args:
        texts: path → content.

    Raises:
        ConfigurationError: ``file_exists``: one of them exists. Nothing was written.
        StorageError: one cannot be written. Nothing was written.
    """
    for path in texts:
        check_new(path)
    written: list[Path] = []
    partial: Path | None = None
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
            _write(partial, text)
            _name(partial, path)
            written.append(path)
    except FileExistsError as error:
        _remove([*written, *([partial] if partial else [])])
        raise _exists(Path(error.filename2 or error.filename)) from error
    except OSError as error:
        _remove([*written, *([partial] if partial else [])])
        is_full = error.errno in FULL_ERRNOS
        name = "storage_full" if is_full else _CODES.get(error.errno or 0, "io_error")
        step = "free some disk space" if is_full else "check the folder and its permissions"
        raise StorageError(
            name, f"{path}: cannot be written ({error.strerror}); nothing was written", step
        ) from error
    except BaseException:
        _remove([*written, *([partial] if partial else [])])
        raise


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, _FLAGS, 0o666), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _name(partial: Path, path: Path) -> None:
    """Give a complete file its name, unless another file has taken it since."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no links. Nobody else writes this name at the same moment.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "File exists", str(path)) from None
        partial.rename(path)
        return
    partial.unlink()


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _exists(path: Path) -> ConfigurationError:
    return ConfigurationError(
        "file_exists",
        f"{path}: exists, and is never overwritten",
        "edit it, or move it away and run the same command again",
    )
