"""The files in the folder of a contract."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from rolebundle import system
from rolebundle.contracts.gate import FileState
from rolebundle.gate.content import Content, content_of
from rolebundle.gate.messages import words
from rolebundle.text import paths as globs
from rolebundle.text.strict_json import NotStrictError, parse_strict

MAX_FILE_BYTES = 64 << 20
"""A larger file is not read, and nothing is known of it."""
MAX_JSON_BYTES = 8 << 20
MAX_ENTRIES = 100_000
"""How many files in the contract's folder are looked at."""
MAX_MATCHES = 2_000
"""How many files the contract may name."""
_MAX_OTHERS = 5_000
_MAX_OTHER_BYTES = 8 << 20
_MAX_OTHER_BYTES_IN_ALL = 256 << 20
# What SQLite and this package put beside the corpus.
_COMPANION = re.compile(r"(?:\.audit)?(?:-wal|-shm|-journal)?|\.published/.*")


class NotReadable(Exception):
    """Why a file cannot be judged. ``is_known``: it certainly is no file of the work."""

    def __init__(self, reason: str, *, is_known: bool = True) -> None:
        super().__init__(reason)
        self.is_known = is_known


def read_regular(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file that is no symbolic link.

    Raises:
        NotReadable: it is missing, of another kind, too large, or not readable.
    """
    try:
        if path.is_dir():
            raise NotReadable("is a folder, not a file")
        with system.open_itself(path) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotReadable("is a special file, not a file")
            data = file.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotReadable("does not exist") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise NotReadable("is a symbolic link, which is not followed") from None
        reason = getattr(error, "strerror", None) or "not a name of a file"
        raise NotReadable(f"cannot be read ({reason})", is_known=False) from error
    if len(data) > max_bytes:
        raise NotReadable(f"has over {max_bytes:,} bytes", is_known=False)
    return data


def read_json(data: bytes) -> Any:
    """The value of a JSON file.

    Raises:
        NotReadable: it is too large.
        NotStrictError: it is not valid JSON.
    """
    if len(data) > MAX_JSON_BYTES:
        raise NotReadable(f"has over {MAX_JSON_BYTES:,} bytes", is_known=False)
    try:
        return parse_strict(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotStrictError("not UTF-8") from error


class WorkFolder:
    """The contract's folder, as it is at one moment.

    Args:
        contract: absolute path of the contract, which is no work.
        corpus: the corpus file. It and the files beside it are no work either.
    """

    def __init__(self, contract: Path, corpus: Path) -> None:
        self.folder = contract.parent
        self._contract = contract.name
        self._root = os.path.realpath(self.folder)
        self._corpus = os.path.realpath(corpus)
        self._names = cache(self._walk)

    def _walk(self) -> list[str]:
        """The regular files, as relative paths in order; one too many if there are too many."""
        names: list[str] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if name not in words("names", "filled_by_tools")]
            prefix = Path(folder).relative_to(self._root)
            names += [(prefix / name).as_posix() for name in files]
            if len(names) > MAX_ENTRIES:
                break
        return sorted(name for name in names if self._is_work(name))

    def _is_work(self, path: str) -> bool:
        full = Path(self._root, path)
        is_text = path.encode("utf-8", "ignore").decode() == path  # Others cannot be recorded.
        return is_text and full.is_file() and not full.is_symlink() and not self._is_own(path)

    def _is_own(self, path: str) -> bool:
        full = os.path.join(self._root, path)  # noqa: PTH118 - both sides are texts
        companion = full.startswith(self._corpus) and _COMPANION.fullmatch(full, len(self._corpus))
        return path == self._contract or bool(companion)

    def matches(self, paths: Sequence[str | None]) -> list[str]:
        """The files that paths and globs of the contract name, in order, each once.

        Raises:
            NotReadable: they are too many.
        """
        names: dict[str, None] = {}
        for path in filter(None, paths):
            if not ("*" in path or "?" in path):
                names[path] = None
                continue
            found = self._names()
            names |= dict.fromkeys(name for name in found if globs.matches(path, name))
            if len(names) > MAX_MATCHES or len(found) > MAX_ENTRIES:
                raise NotReadable("names too many files", is_known=False)
        return list(names)

    def read(self, path: str) -> bytes:
        """Read a file of the work.

        Raises:
            NotReadable: as for :func:`read_regular`; or a folder on its path is a symbolic link,
                or the file belongs to the gate.
        """
        if self._is_own(path):
            raise NotReadable("belongs to the gate itself")
        parent = Path(self._root, path).parent
        if os.path.realpath(parent) != str(parent):
            raise NotReadable("is behind a symbolic link, which is not followed")
        return read_regular(Path(self._root, path))

    def state(self, path: str) -> FileState | None:
        """The state of a file; ``None`` if it is not there.

        Raises:
            NotReadable: nothing is known of it.
        """
        try:
            return state_of(path, self.read(path))
        except NotReadable as error:
            if error.is_known:
                return None
            raise

    def others(self, known: Sequence[FileState]) -> list[FileState]:
        """The files whose state is not known yet, within the bounds."""
        named = {state.path for state in known}
        states: list[FileState] = []
        total = 0
        for name in self._names():
            try:
                data = b"" if name in named else read_regular(self.folder / name, _MAX_OTHER_BYTES)
            except NotReadable:
                continue
            total += len(data)
            if len(states) == _MAX_OTHERS or total > _MAX_OTHER_BYTES_IN_ALL:
                break
            if data:
                states.append(state_of(name, data))
        return states


def state_of(path: str, data: bytes, content: Content | None = None) -> FileState:
    """What a baseline records of a file."""
    content = content or content_of(path, data)
    return FileState(
        path=path,
        sha256=sha256(data).hexdigest(),
        substance=content.substance,
        body=content.body,
        placeholders=len(content.placeholders),
    )
