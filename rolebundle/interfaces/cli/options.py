"""What commands share: the options of a request, made from its contract; the corpus."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import click
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from rolebundle.contracts.base import Contract, writable
from rolebundle.contracts.request import PersonName
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.cli import output
from rolebundle.interfaces.layout import Style, has_color
from rolebundle.lazy import lazy_module
from rolebundle.policy.approvals import parse_approvals
from rolebundle.policy.overlays import locate, overlay_folders
from rolebundle.storage.file import corpus_path
from rolebundle.workspace import Workspace

# Most commands are given no folder.
if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.admin.indexes import Indexing
    from rolebundle.interfaces.cli import folders
    from rolebundle.verify.judge import Judge
else:
    folders = lazy_module("rolebundle.interfaces.cli.folders")

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
T = TypeVar("T")

_FLAGS = {
    "approval": "--approved-by",
    "chunk_ids": "--chunk",
    "commands": "--command",
    "decided_by": "--by",
    "valid_from": "--from",
    "valid_until": "--until",
}
_METAVARS = {"rerank": "MODEL", "source": "LOCATOR|URL", "where": "KEY=VALUE[,…]"}
_ONLY_IN_JSON = {"fusion", "deadline_ms", "seen", "packet"}
"""Fields that a person does not type; a `--request` may have them."""
_HINTS = {"rerank": "[env: ROLEBUNDLE_RERANK]"}


# -- kinds of values ------------------------------------------------------------------------------


def non_empty_path(text: str) -> Path:
    """A path. An empty one, as that of an unset variable is, would mean this folder."""
    if not text:
        raise click.BadParameter("the path is empty")
    return Path(text)


def duration(text: str) -> timedelta:
    """A length of time such as ``5m`` or ``7d``, at most 100 years."""
    match = re.fullmatch(r"([1-9]\d{0,5})([smhd])", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a length of time such as 90s, 5m, 12h or 7d")
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    length = timedelta(**{units[match[2]]: int(match[1])})
    if length > timedelta(days=36_500):
        raise click.BadParameter(f"{text!r} is longer than 100 years")
    return length


def checked(kind: Any, form: str) -> Callable[..., Any]:
    """The callback of an option whose value must have a type of the contracts."""

    def check(_context: object, _option: object, value: str | None) -> Any:
        try:
            return None if value is None else TypeAdapter(kind).validate_python(value)
        except ValidationError:
            raise click.BadParameter(form) from None

    return check


as_name = checked(PersonName, "a name of 1 to 200 characters on one line")
"""The callback of an option with the name of a person."""


class GroupWithDefault(click.Group):
    """A group in which `GROUP ARGUMENT` means `GROUP COMMAND ARGUMENT`, of its first command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command before arguments and options that name none."""
        if args[:1] not in [[name] for name in (*self.commands, *ctx.help_option_names)]:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


PATH = click.Path(path_type=Path)
"""The type of a path, for which a shell completes the names of files."""


def flag(name: str, help_text: str, *attribute: str) -> Decorator:
    """An option without a value."""
    return click.option(name, *attribute, is_flag=True, help=help_text)


def agent_option(help_text: str) -> Decorator:
    """``--agent ID``."""
    return click.option("--agent", metavar="ID", help=help_text)


_SHARED: dict[str, Decorator] = {
    "db": click.option(
        "--db",
        metavar="FILE",
        type=click.Path(),
        help="The corpus file. Default: $ROLEBUNDLE_DB, or else a file in your user data folder.",
    ),
    "in_folders": click.option(
        "--in",
        "in_folders",
        metavar="FOLDER",
        multiple=True,
        type=non_empty_path,
        help="Read this folder into a corpus of its own, and use that. Later calls read what "
        "changed. May be repeated.",
    ),
    "overlay_dirs": click.option(
        "--overlay-dir",
        "overlay_dirs",
        metavar="DIR",
        multiple=True,
        type=PATH,
        help="Look for overlays in this folder first. May be repeated.",
    ),
    "html_file": click.option(
        "--html",
        "html_file",
        metavar="FILE",
        type=non_empty_path,
        callback=lambda _context, _option, path: path and output.check_page_path(path),
        help="Also write a page for a browser into this file.",
    ),
    "as_json": flag("--json", "Print JSON.", "as_json"),
}
"""The options that fill a :class:`Call`, by the attribute."""


request_file_option = click.option(
    "--request",
    "request_file",
    metavar="-|FILE",
    type=click.File("rb"),
    help="Read one JSON request and print one line of JSON.  -: standard input.",
)


def approvals_option(default: str | None) -> Decorator:
    """``--approvals SOURCE``."""
    return click.option(
        "--approvals",
        metavar="none|request|command:PROGRAM",
        default=default,
        show_default=default is not None,
        help="Where approvals come from: none are taken; from the request; or PROGRAM decides "
        "(JSON on its standard input, exit code 0 approves).",
    )


@dataclass(frozen=True, slots=True)
class Call:
    """What a command was given by the options that it shares with others.

    Attributes:
        db: the corpus file; ``None`` for the usual one.
        in_folders: folders whose corpus is meant instead.
        overlay_dirs: the folders that are searched first for overlays.
        html_file: where a page is written, too.
        as_json: whether JSON is printed.
        fields: the fields of the request that were given.
    """

    db: str | None = None
    in_folders: tuple[Path, ...] = ()
    overlay_dirs: tuple[Path, ...] = ()
    html_file: Path | None = None
    as_json: bool = False
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The corpus file."""
        if not self.in_folders:
            return corpus_path(self.db)
        if self.db is not None:
            raise click.UsageError("give --db or --in, not both")
        return folders.corpus_of(self.in_folders)

    @property
    def place(self) -> list[str]:
        """The options that name the corpus, as they were given."""
        places = [part for folder in self.in_folders for part in ("--in", str(folder))]
        return places or (["--db", self.db] if self.db else [])

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where overlays are looked for."""
        return overlay_folders(self.overlay_dirs, self.path)

    @property
    def style(self) -> Style:
        """The colours of standard output."""
        return Style(color=has_color(sys.stdout))

    def engine(
        self,
        *,
        agent: str | None = None,
        approvals: str = "request",
        in_working_folder: bool = False,
        judging: bool = False,
        serving: Indexing | None = None,
    ) -> Engine:
        """The engine for these options.

        With ``in_working_folder``, relative paths in references begin in the working folder, too.
        With ``judging``, the engine has the judge of the environment. Folders that were given are
        read first; with ``serving``, what changes in them is read as long as the process runs.
        """
        workspace = workspace_for(self.path)
        if self.in_folders:
            changes = self.read_folders(serving)
            workspace.advice = output.with_folders
            note = partial(folders.unread_note, self.path, self.in_folders, changes)
            workspace.unread_note = note
        return Engine(
            workspace,
            self.folders,
            agent=agent,
            rerank=setting("RERANK"),
            rerank_url=url_setting("RERANK_URL"),
            approver=parse_approvals(approvals),
            judge=_judge() if judging else None,
            folder=str(Path.cwd()) if in_working_folder else None,
        )

    def read_folders(self, serving: Indexing | None = None) -> str | None:
        """Read the folders that were given, or what changed; what is not read yet, if it is known.

        With ``serving``, go on as long as the process runs.
        """
        if self.in_folders and serving is None:
            return folders.bring_up_to_date(self.path, self.in_folders, self.admin)
        if self.in_folders and serving:
            folders.follow(self.path, self.in_folders, self.admin, serving)
        return None

    def admin(self) -> Admin:
        """What the owner may do with the corpus."""
        # A one-shot `retrieve` must not load the readers of an ingest.
        from rolebundle.admin import Admin

        return Admin(workspace_for(self.path))

    def owner(self, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """What a function for the owner returns. Its first argument is the workspace."""
        with self.admin() as admin:
            return work(admin.workspace, *arguments, **options)

    def print(
        self,
        answer: Contract | Mapping[str, Any],
        lines: Iterable[str] | None = None,
        *,
        empty: str = "",
        exclude_none: bool = False,
    ) -> None:
        """Print an answer as JSON, or else as lines for a person: by default its fields.

        If there are no lines, ``empty`` is printed on standard error.
        """
        if self.as_json:
            output.print_json(answer, exclude_none=exclude_none)
        elif text := "\n".join(output.field_lines(answer) if lines is None else lines):
            click.echo(writable(text), color=self.style.color)
        elif empty:
            output.print_note(empty)


def with_call(
    *shared: str,
    request: type[Contract] | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Decorator:
    """Give a command a :class:`Call` as its first argument, and the options that fill it.

    An option of a request has the type, the choices and the description of its field. The contract
    checks the bounds.

    Args:
        shared: attributes of the call, besides ``db`` and ``in_folders``.
        request: the contract whose fields get an option each, in its order.
        only: the fields that get an option. Empty for all.
        without: fields that get none.
    """
    shared = ("db", "in_folders", *shared)
    fields = request.model_fields if request else {}
    names = [name for name in fields if name in (only or fields)]
    names = [name for name in names if name not in {*without, *_ONLY_IN_JSON}]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**values: Any) -> Any:
            given = {name: values.pop(name) for name in names}
            # Not by equality, because 0 is a value.
            given = {name: v for name, v in given.items() if v is not None and v is not False}
            call = Call(fields=given, **{name: values.pop(name) for name in shared})
            output.name_folders(call.in_folders, call.path if call.in_folders else Path())
            try:
                if "role" in given:
                    locate(given["role"], call.folders)
                return command(call, **values)
            except RolebundleError as error:
                error.hint = output.with_folders(error.hint)
                raise

        decorated: Command = called
        options = [_option(name, fields[name]) for name in names]
        for option in reversed([*options, *(_SHARED[name] for name in shared)]):
            decorated = option(decorated)
        return decorated

    return decorate


with_json = with_call("as_json")
"""For commands that share no other option."""


_BARE = {"publish": "public"}
"""Options whose value may be left out, and what it is then."""


def _option(name: str, field: FieldInfo) -> Decorator:
    kind = _plain_type(field.annotation)
    types: dict[str, Any] = {"type": int if kind is int else str}
    if kind is bool:
        types = {"is_flag": True}
    elif get_origin(kind) is Literal:
        types = {"type": click.Choice(get_args(kind))}
        if name in _BARE:
            types |= {"is_flag": False, "flag_value": _BARE[name]}
    hint = _HINTS.get(name)
    if isinstance(kind, type) and issubclass(kind, Contract):
        types = {"multiple": True, "callback": _object_of_pairs}
        hint = f"May be repeated. Keys: {', '.join(kind.model_fields)}."
    elif get_origin(kind) is list:
        types |= {"multiple": True, "callback": lambda _context, _option, items: [*items] or None}
        item = get_args(kind)[0]
        if get_origin(item) is Literal:
            types["type"] = click.Choice(get_args(item))
        hint = "May be repeated."
    return click.option(
        _FLAGS.get(name, f"--{name.replace('_', '-')}"),
        name,
        required=field.is_required(),
        metavar=_METAVARS.get(name, name.upper() if types.get("type") is str else None),
        help="  ".join(filter(None, (field.description, hint))),
        **types,
    )


def _object_of_pairs(
    _context: click.Context, _option: click.Parameter, pairs: Sequence[str]
) -> dict[str, object] | None:
    """``KEY=VALUE[,VALUE…]`` several times as one object; ``None`` if the option is not given.

    The values of a repeated key are joined. A single value stays a text. ``KEY.NAME=VALUE`` sets a
    key of an object.
    """
    values: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not of the form KEY=VALUE")
        values.setdefault(key, []).extend(value.split(","))
    result: dict[str, Any] = {}
    for key, texts in values.items():
        outer, dot, name = key.partition(".")
        target = result.setdefault(outer, {}) if dot else result
        if not isinstance(target, dict) or (not dot and key in result):
            raise click.BadParameter(f"{outer!r} has both a value and keys of its own")
        target[name if dot else key] = texts if texts[1:] else texts[0]
    return result or None


def _plain_type(annotation: Any) -> Any:
    """The type without ``Annotated`` and ``| None``."""
    while get_origin(annotation) not in (None, Literal, list):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation


def setting(name: str) -> str:
    """A setting of a model, ``$ROLEBUNDLE_{name}``; empty for none."""
    return os.environ.get(f"ROLEBUNDLE_{name}", "").strip()


def url_setting(name: str) -> str:
    """A setting that is the address of a model's server.

    Raises:
        UsageError: ``bad_url``.
    """
    url = setting(name)
    if url:
        # A model's library: most commands name no server.
        from rolebundle.embedding.servers import parse_url

        parse_url(url)
    return url


def _judge() -> Judge | None:
    """``$ROLEBUNDLE_JUDGE``: the chat model that `verify` asks."""
    if not setting("JUDGE"):
        return None
    from rolebundle.verify.judge import Judge

    return Judge(setting("JUDGE"), url_setting("JUDGE_URL"), setting("EMBED_ALLOW_HOST"))


def workspace_for(path: Path) -> Workspace:
    """The workspace of a corpus with the embedding server of the environment."""
    url, host = url_setting("EMBED_URL"), setting("EMBED_ALLOW_HOST")
    return Workspace(path, embed_url=url, allow_host=host)
