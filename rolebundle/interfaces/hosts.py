"""The hosts of agents: the MCP servers in their configurations, and how one is added and removed.

Comments and order stay. A change is parsed before it is written: it has the wanted value, and
nothing else differs. A copy of the former file stays beside it, from which :func:`removal` restores
every byte.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import tomlkit
import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from tomlkit.exceptions import TOMLKitError

from rolebundle.errors import UsageError
from rolebundle.resources import data_file
from rolebundle.storage.file import write_whole
from rolebundle.system import is_foreign

NAME = "rolebundle"
"""The name of the server in each configuration."""
BACKUP_SUFFIX = ".before-rolebundle"
_BOM = "\ufeff"

Entry = dict[str, Any]


class Host(NamedTuple):
    """A program that starts MCP servers: a row of hosts.toml, which says what each field is."""

    documentation: str
    file: str
    container: str
    entry: Entry
    macos: str = ""
    windows: str = ""
    other_file: str = ""
    nested: str = ""

    @property
    def path(self) -> Path:
        """The file of its configuration."""
        own = {"darwin": self.macos, "win32": self.windows}.get(sys.platform) or self.file
        paths = [_expanded(text) for text in (own, self.other_file) if text]
        return next((path for path in paths if os.path.lexists(path)), paths[0])

    @property
    def is_found(self) -> bool:
        """Whether the host is on this machine, or was."""
        folder = self.path.parent
        is_own = folder != Path.home() and os.path.lexists(folder)
        return is_own or os.path.lexists(self.path)

    def entry_of(self, program: Sequence[str], *arguments: str) -> Entry:
        """The entry that starts a program with these arguments."""
        command = [*program, *arguments]
        values = {"$program": command[0], "$arguments": command[1:], "$command": command}
        return {key: values.get(str(value), value) for key, value in self.entry.items()}


_TABLE = data_file(__file__, "hosts.toml")
HOSTS: Mapping[str, Host] = {name: Host(**row) for name, row in _TABLE["hosts"].items()}


def _expanded(text: str) -> Path:
    values = {name: os.environ.get(name) or usual for name, usual in _TABLE["variables"].items()}
    return Path(Template(text).substitute(values)).expanduser()


# -- a change of a file ----------------------------------------------------------------------------


class Change(NamedTuple):
    """What is done to one file; nothing if it is the same before and after.

    Attributes:
        path: the file itself, if the host's is a link to it.
        what: the change in a few words.
        before: its bytes; ``None`` if there is no file.
        after: the same after the change.
        former: the bytes that the copy beside it has then; ``None`` for no copy.
    """

    path: Path
    what: str
    before: bytes | None
    after: bytes | None
    former: bytes | None = None

    def apply(self) -> None:
        """Write the copy and the file, each one whole or not at all.

        Raises:
            UsageError: the file changed since it was looked at, or cannot be written.
        """
        with _problems_of(self.path):
            if _content(self.path) != self.before:
                raise ValueError("it changed meanwhile")
            copy = backup_path(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.former is not None:
                write_whole(copy, self.former, self.path)
            if self.after is not None:
                write_whole(self.path, self.after, self.path)
            else:
                self.path.unlink()
            if self.former is None:
                copy.unlink(missing_ok=True)


def backup_path(path: Path) -> Path:
    """The copy of a configuration as it was before the first change."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def addition(host: Host, entry: Entry) -> Change:
    """The change that gives a host this entry.

    Raises:
        UsageError: the file is left alone; the message says why.
    """
    with _problems_of(host.path):
        path, before, present, is_untouched = _state(host)
        if present == entry:
            return Change(path, "has the entry already", before, before)
        former = before if present is None else _content(backup_path(path))
        if former is None and not is_untouched:
            former = before
        # An entry of ours is replaced as if there had been none.
        after = edited(former if is_untouched else before, host, entry)
        what = "adds the entry" if present is None else "replaces the entry"
        return Change(path, what, before, after, former)


def removal(host: Host) -> Change:
    """The change that takes the entry back: the former file, if nothing else changed since.

    Raises:
        UsageError: the file is left alone; the message says why.
    """
    with _problems_of(host.path):
        path, before, present, is_untouched = _state(host)
        if present is None:
            return Change(path, "has no entry", before, before)
        if not is_untouched:
            return Change(path, "takes the entry out", before, edited(before, host))
        former = _content(backup_path(path))
        what = "deletes the file" if former is None else "restores the former file"
        return Change(path, what, before, former)


@contextmanager
def _problems_of(path: Path) -> Iterator[None]:
    """Turn an error about a file into the one that says that it is left alone."""
    try:
        yield
    except (ValueError, OSError, RecursionError, TOMLKitError, yaml.YAMLError, YAMLError) as error:
        reason = str(error).partition("\n")[0]
        step = "correct the file, or add what `rolebundle install --dry-run` prints yourself"
        raise UsageError("left_alone", f"{path}: left alone: {reason}", step) from None


def _state(host: Host) -> tuple[Path, bytes | None, Entry | None, bool]:
    """The file that a host reads, its bytes, the entry in it, and whether only that is new.

    Raises:
        ValueError: this user may not change it, or it cannot be parsed.
    """
    path = host.path
    if path.is_symlink() and not path.exists():
        raise ValueError("it is a link to a file that is not there")
    if path.exists():
        path = path.resolve()
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a file")
        if is_foreign(status.st_uid):
            raise ValueError("it belongs to another user")
        if not status.st_mode & stat.S_IWUSR:
            raise ValueError("it is read-only")
    before = _content(path)
    present: Any = _object(_FORMATS[Path(host.file).suffix][0](_text(before)))
    for key in (*_keys(present, host), NAME):
        present = present.get(key) if isinstance(present, dict) else None
    if not isinstance(present, dict):
        return path, before, None, False
    return path, before, present, edited(_content(backup_path(path)), host, present) == before


# -- what a file holds -----------------------------------------------------------------------------


def edited(content: bytes | None, host: Host, entry: Entry | None = None) -> bytes:
    """A configuration with this entry, or without an entry.

    Raises:
        ValueError: it cannot be parsed, or the change would not be this one alone.
    """
    parse, edit = _FORMATS[Path(host.file).suffix]
    text = _text(content)
    values = _object(parse(text))
    keys = _keys(values, host)
    wanted = dict(values)
    inner = wanted
    for key in keys:
        # Copied, because another key may have the same object by an alias.
        inner[key] = dict(_object({} if inner.get(key) is None else inner[key]))
        inner = inner[key]
    _set(inner, (NAME,), entry)
    changed = edit(text, (*keys, NAME), entry)
    if 0 < text.count("\n") == text.count("\r\n"):
        changed = re.sub("\r?\n", "\r\n", changed)
    found = parse(changed)
    # A library may drop what holds no server any more.
    without = {key: value for key, value in wanted.items() if inner or key != keys[0]}
    if found != wanted and (entry is not None or found != without):
        raise ValueError("it is written in a way that cannot be changed safely")
    has_bom = (content or b"").startswith(_BOM.encode())
    return f"{_BOM if has_bom else ''}{changed}".encode()


def _text(content: bytes | None) -> str:
    return (content or b"").decode().removeprefix(_BOM)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it, or what should have the servers, is no object")  # noqa: TRY004
    return value


def _keys(values: Mapping[str, Any], host: Host) -> tuple[str, ...]:
    """The keys that lead to the servers."""
    inner = values.get(host.container)
    inner = inner.get(host.nested) if host.nested and isinstance(inner, dict) else None
    is_nested = isinstance(inner, dict) and "type" not in inner
    return (host.container, host.nested) if is_nested else (host.container,)


def _set(values: Any, keys: Sequence[str], entry: Entry | None) -> None:
    """Set or remove a value in objects of a library that keeps comments."""
    for key in keys[:-1]:
        if values.get(key) is None:
            values[key] = {}
        values = values[key]
    if entry is None:
        values.pop(keys[-1], None)
    else:
        values[keys[-1]] = entry


def _edit_toml(text: str, keys: Sequence[str], entry: Entry | None) -> str:
    document = tomlkit.parse(text)
    _set(document, keys, entry)
    return document.as_string()


_YAML_HEAD = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*---[ \t]*\r?\n")


def _edit_yaml(text: str, keys: Sequence[str], entry: Entry | None) -> str:
    editor, stream = YAML(), StringIO()
    editor.preserve_quotes = True
    editor.width = 1_000_000
    # What stands before the document is lost otherwise.
    head = _YAML_HEAD.match(text)
    stream.write(head[0] if head else "")
    text = text[stream.tell() :]
    document = editor.load(text)
    if document is None:
        document = {}
        stream.write(f"{text.rstrip()}\n".lstrip())
    _set(document, keys, entry)
    editor.dump(document, stream)
    changed = stream.getvalue()
    if any(comment not in changed for comment in re.findall(r"#.*", text)):
        raise ValueError("a comment in or behind the entry would be lost")
    return changed


# JSON has no such library in Python: this one inserts and cuts text.

_STRING = r'("(?:[^"\\\n]|\\.)*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")
_BETWEEN = re.compile(r"[\s,:]*")


def _without_comments(text: str) -> str:
    """JSON with spaces in place of comments, so that every place stays."""
    return _COMMENT.sub(lambda match: match[1] or re.sub(r"\S", " ", match[0]), text)


def _standard(text: str) -> str:
    """JSON with spaces in place of comments and of commas behind a last value."""
    return _LAST_COMMA.sub(lambda match: match[1] or " ", _without_comments(text))


def _parse_json(text: str) -> Any:
    return json.loads(_standard(text).strip() or "{}")


def _edit_json(text: str, keys: Sequence[str], entry: Entry | None) -> str:
    if not _standard(text).strip():
        text = f"{text}\n{{}}\n".lstrip()
    standard, key, depth = _standard(text), keys[0], 0
    brace = standard.index("{")
    members = _members(standard, brace)
    while depth + 1 < len(keys) and standard[members.get(key, (0, 0))[1]] == "{" and key in members:
        brace, depth = members[key][1], depth + 1
        members, key = _members(standard, brace), keys[depth]
    start, value, end = members.get(key, (0, 0, 0))
    if entry is None:
        return _cut(text, start, end) if end else text
    for inner in reversed(keys[depth + 1 :]):
        entry = {inner: entry}
    indent = re.search(r'\n([ \t]+)"', text)
    unit = indent[1] if indent else "  "
    line = "\n" + unit * (depth + 1)
    written = json.dumps(entry, indent=unit, ensure_ascii=False).replace("\n", line)
    if end:
        return text[:value] + written + text[end:]
    rest = "," if members else line.removesuffix(unit)
    return f'{text[: brace + 1]}{line}"{key}": {written}{rest}{text[brace + 1 :]}'


def _members(standard: str, brace: int) -> dict[str, tuple[int, int, int]]:
    """Key → where it begins, and where its value begins and ends, in the object at this brace."""
    decode = json.JSONDecoder().raw_decode
    members, end = {}, brace + 1
    while standard[start := _skip(standard, end)] != "}":
        key, end = decode(standard, start)
        value = _skip(standard, end)
        _, end = decode(standard, value)
        members[key] = (start, value, end)
    return members


def _skip(standard: str, place: int) -> int:
    match = _BETWEEN.match(standard, place)
    return match.end() if match else place


def _cut(text: str, start: int, end: int) -> str:
    """The text without a member, the space before it, and one comma beside it."""
    bare = _without_comments(text)
    before = text[:start].rstrip()
    if comma := re.compile(r"\s*,").match(bare, end):
        return before + text[comma.end() :]
    at = bare.rfind(",", 0, start)
    is_beside = at >= 0 and not bare[at + 1 : start].strip()
    return (text[:at] + before[at + 1 :] if is_beside else before) + text[end:]


_FORMATS: Mapping[str, tuple[Callable[[str], Any], Callable[..., str]]] = {
    ".json": (_parse_json, _edit_json),
    ".toml": (tomllib.loads, _edit_toml),
    ".yaml": (lambda text: yaml.safe_load(text) or {}, _edit_yaml),
}
