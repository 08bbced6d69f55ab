"""The files that a gate judges: found, read and compared with the baseline.

Only regular files below the contract's folder are read. Symbolic links, FIFOs and devices are
refused where a path names them, and are no match of a glob.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from rolebundle.contracts.gate import Baseline, BaselineFile
from rolebundle.text import globs

MAX_FILE_BYTES = 64 << 20
"""A larger file is not read, and nothing is known of it."""
MAX_ENTRIES = 100_000
"""How many names in the contract's folder are looked at."""
MAX_MATCHES = 2_000
"""How many files the contract may name."""
_MAX_FOLDED_BYTES = 8 << 20
_MAX_OTHERS = 5_000
_MAX_OTHER_BYTES = 8 << 20
_MAX_OTHER_BYTES_IN_ALL = 256 << 20
# Of the content's digest, for files that a contract does not name: enough to know a copy.
_SHORT = 24
_FILLED_BY_TOOLS = frozenset(
    {".git", ".hg", ".svn", ".jj", ".venv", "node_modules", "__pycache__", ".mypy_cache"}
)
# What SQLite and this package put beside the corpus.
_COMPANION = re.compile(r"(?:\.audit)?(?:-wal|-shm|-journal)?|\.published/.*")
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class NotReadable(Exception):
    """Why a file cannot be judged. ``is_known``: it certainly is no file of the work."""

    def __init__(self, reason: str, *, is_known: bool = True) -> None:
        super().__init__(reason)
        self.is_known = is_known


class Content(NamedTuple):
    """A file's bytes and the time of its last change in nanoseconds since 1970."""

    data: bytes
    mtime_ns: int


def read_regular(path: Path, max_bytes: int = MAX_FILE_BYTES) -> Content:
    """Read a regular file that is no symbolic link.

    Raises:
        NotReadable: it is missing, of another kind, too large, or not readable.
    """
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise NotReadable("is a symbolic link, which is not followed")
        if not stat.S_ISREG(status.st_mode):
            kind = "folder" if stat.S_ISDIR(status.st_mode) else "special file"
            raise NotReadable(f"is a {kind}, not a file")
        with os.fdopen(os.open(path, _OPEN_FLAGS), "rb") as file:
            # Asked of the open file, because another one may have taken its place.
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise NotReadable("is a special file, not a file")
            data = b"" if status.st_size > max_bytes else file.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotReadable("does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a name of a file"
        raise NotReadable(f"cannot be read ({reason})", is_known=False) from error
    if max(len(data), status.st_size) > max_bytes:
        raise NotReadable(f"has over {max_bytes:,} bytes", is_known=False)
    return Content(data, status.st_mtime_ns)


def content_digest(data: bytes) -> str:
    """A digest of the bytes that other line ends, blank lines and more spaces do not change.

    The indentation counts, because it may mean something. In large files every byte counts.
    """
    if len(data) > _MAX_FOLDED_BYTES:
        return sha256(data).hexdigest()
    if data.startswith(_UTF_16):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    digest = sha256()
    for line in BytesIO(data.removeprefix(_BOM)):
        if words := line.split():
            indentation = line[: len(line) - len(line.lstrip())]
            digest.update(indentation + b" ".join(words) + b"\n")
    return digest.hexdigest()


_EMPTY = content_digest(b"")


def is_glob(path: str) -> bool:
    """Whether a path of a contract is a glob."""
    return "*" in path or "?" in path


class WorkFolder:
    """The contract's folder, as it is at one moment.

    Args:
        contract: absolute path of the contract, which is no work.
        corpus: the corpus file. It and the files beside it are no work either.
    """

    def __init__(self, contract: Path, corpus: Path) -> None:
        self.folder = contract.parent
        self._contract = contract.name
        self._real_folder = os.path.realpath(self.folder)
        self._corpus = os.path.realpath(corpus)
        self._walks: dict[tuple[str, bool], tuple[list[str], bool]] = {}

    def _walk(self, prefix: str, *, with_tool_folders: bool) -> tuple[list[str], bool]:
        """The regular files below a folder, as relative paths in order, and whether these are all.

        Args:
            prefix: the folder, empty or with ``/`` at its end.
            with_tool_folders: also look into folders that tools fill.
        """
        if (prefix, with_tool_folders) in self._walks:
            return self._walks[prefix, with_tool_folders]
        names: list[str] = []
        waiting, seen = [prefix], 0
        while waiting and seen <= MAX_ENTRIES:
            folder = waiting.pop()
            try:
                entries = list(os.scandir(self.folder / folder))
            except OSError:
                continue
            seen += len(entries)
            for entry in entries:
                path = folder + entry.name
                try:
                    path.encode()  # A name that is not text cannot be recorded.
                    if entry.is_dir(follow_symlinks=False):
                        if with_tool_folders or entry.name not in _FILLED_BY_TOOLS:
                            waiting.append(f"{path}/")
                    elif entry.is_file(follow_symlinks=False) and not self._is_own(path):
                        names.append(path)
                except (OSError, UnicodeEncodeError):
                    continue
        self._walks[prefix, with_tool_folders] = (sorted(names), seen <= MAX_ENTRIES)
        return self._walks[prefix, with_tool_folders]

    def _is_own(self, path: str) -> bool:
        if path == self._contract:
            return True
        full = os.path.join(self._real_folder, path)  # noqa: PTH118 - both sides are texts
        return full.startswith(self._corpus) and bool(_COMPANION.fullmatch(full, len(self._corpus)))

    def matches(self, path: str) -> list[str]:
        """The files that a path or glob of the contract names, in order.

        Raises:
            NotReadable: the folder has too many names to know all matches.
        """
        if not is_glob(path):
            return [path]
        fixed = re.split(r"[*?]", path)[0]
        prefix = fixed[: fixed.rfind("/") + 1]
        if self._link_above(prefix):
            return []
        with_tool_folders = bool(_FILLED_BY_TOOLS.intersection(path.split("/")))
        names, is_complete = self._walk(prefix, with_tool_folders=with_tool_folders)
        matching = [name for name in names if globs.matches(path, name)]
        if not is_complete or len(matching) > MAX_MATCHES:
            raise NotReadable("names too many files", is_known=False)
        return matching

    def read(self, path: str) -> Content:
        """Read a file of the work.

        Raises:
            NotReadable: as for :func:`read_regular`; or a folder on its path is a symbolic link,
                or the file belongs to the gate.
        """
        if self._is_own(path):
            raise NotReadable("belongs to the gate itself")
        if link := self._link_above(path):
            raise NotReadable(f"is behind the symbolic link {link}")
        return read_regular(self.folder / path)

    def _link_above(self, path: str) -> str:
        """The first folder on a path that is a symbolic link; empty if there is none."""
        folders = path.split("/")[:-1]
        above = ("/".join(folders[: n + 1]) for n in range(len(folders)))
        return next((name for name in above if (self.folder / name).is_symlink()), "")

    def state(self, path: str) -> BaselineFile | None:
        """The state of a file; ``None`` if it is not there.

        Raises:
            NotReadable: nothing is known of it.
        """
        try:
            content = self.read(path)
        except NotReadable as error:
            if error.is_known:
                return None
            raise
        return state_of(path, content)

    def unnamed_files(self, named: Iterable[str]) -> tuple[dict[str, str], bool]:
        """``content`` of the files that the contract does not name, and whether these are all."""
        known = set(named)
        digests: dict[str, str] = {}
        names, is_complete = self._walk("", with_tool_folders=False)
        total = 0
        for name in names:
            if name in known:
                continue
            try:
                data = read_regular(self.folder / name, _MAX_OTHER_BYTES).data
            except NotReadable:
                is_complete = False
                continue
            total += len(data)
            if len(digests) == _MAX_OTHERS or total > _MAX_OTHER_BYTES_IN_ALL:
                return digests, False
            if content_digest(data) != _EMPTY:
                digests[name] = content_digest(data)[:_SHORT]
        return digests, is_complete


def state_of(path: str, content: Content) -> BaselineFile:
    """What a baseline records of a file."""
    return BaselineFile(
        path=path,
        size=len(content.data),
        mtime_ns=content.mtime_ns,
        sha256=sha256(content.data).hexdigest(),
        content=content_digest(content.data),
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a file since the baseline.

    Attributes:
        state: its state; ``None`` if it is not there.
        is_work: whether it is new or changed by work.
        is_substituted: whether it is another file than at the baseline, and yet no work: a copy,
            or older than the baseline.
        note: the change in words.
    """

    state: BaselineFile | None
    is_work: bool
    is_substituted: bool
    note: str


class Comparison:
    """Compares files with the baseline.

    Args:
        baseline: the baseline.
        started_ns: when it was recorded, in nanoseconds since 1970.
    """

    def __init__(self, baseline: Baseline, started_ns: int) -> None:
        self._started_ns = started_ns
        self._before: Mapping[str, BaselineFile] = {file.path: file for file in baseline.files}
        self._known = {digest: path for path, digest in baseline.others.items()}
        named = (file for file in baseline.files if file.content != _EMPTY)
        self._known |= {file.content[:_SHORT]: file.path for file in named}

    @property
    def paths(self) -> Sequence[str]:
        """The named files that were there at the baseline."""
        return tuple(self._before)

    def original_of(self, content: str) -> str | None:
        """The file that had this content at the baseline."""
        return self._known.get(content[:_SHORT])

    def change(self, path: str, state: BaselineFile | None) -> Change:
        """What became of a file."""
        before = self._before.get(path)
        if state is None:
            return Change(None, before is not None, False, "missing")
        if before is not None and state.content == before.content:
            touched = state.sha256 != before.sha256 or state.mtime_ns != before.mtime_ns
            note = "rewritten, but not changed" if touched else "not changed"
            return Change(state, False, False, f"{note} since the start")
        original = self.original_of(state.content)
        if original is not None:
            note = f"a copy of {original}, which was there at the start"
            return Change(state, False, True, note)
        if state.mtime_ns < self._started_ns:
            return Change(state, False, True, "older than the start")
        return Change(state, True, False, "changed" if before else "new")
