"""Options that several commands share. Those of a request are made from the request contract."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from rolebundle.contracts.base import Contract
from rolebundle.engine import Engine
from rolebundle.interfaces.cli.names import file_names, role_names
from rolebundle.interfaces.style import Style, has_color
from rolebundle.policy.approvals import Approvals
from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.location import corpus_path
from rolebundle.workspace import Workspace

if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.verification.draft.judge import Judge
    from rolebundle.workspace import Models

Command = Callable[..., Any]

_FLAGS = {"approval": "--approved-by", "chunk_ids": "--chunk"}
_METAVARS = {
    "role": "ROLE",
    "agent": "ID",
    "approval": "NAME",
    "rerank": "API:MODEL",
    "as_of": "TIME",
    "now": "TIME",
    "where": "KEY=VALUE[,…]",
    "chunk_ids": "ID",
    "source": "LOCATOR|URL",
    "scope": "SCOPE",
}
_ONLY_IN_JSON = {"fusion", "deadline_ms", "seen", "packet"}
"""Fields that a person does not type; a `--request` may have them."""
_HINTS = {"rerank": "[env: ROLEBUNDLE_RERANK]"}


def request_options(
    contract: type[Contract], *, only: Sequence[str] = (), without: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Options for the fields of a request, in the order of the contract.

    An option has the type, the choices and the description of its field. The contract checks the
    bounds. The command gets the fields that were set as one mapping, ``fields``.

    Args:
        contract: the request.
        only: the fields that get an option. Empty for all.
        without: fields that get none.
    """
    names = [name for name in contract.model_fields if name in (only or contract.model_fields)]
    names = [name for name in names if name not in {*without, *_ONLY_IN_JSON}]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_fields(*arguments: Any, **values: Any) -> Any:
            options = {name: values.pop(name) for name in names}
            fields = {
                name: value
                for name, value in options.items()
                if value is not None and value is not False
            }
            return command(*arguments, fields=fields, **values)

        decorated: Command = with_fields
        for name in reversed(names):
            decorated = _option(name, contract.model_fields[name])(decorated)
        return decorated

    return decorate


def _option(name: str, field: FieldInfo) -> Callable[[Command], Command]:
    kind = _plain_type(field.annotation)
    types: dict[str, Any] = {"type": int if kind is int else str}
    if kind is bool:
        types = {"is_flag": True}
    elif get_origin(kind) is Literal:
        types = {"type": click.Choice(get_args(kind))}
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
        metavar=_METAVARS.get(name),
        shell_complete=role_names if name == "role" else None,
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
        arguments = get_args(annotation)
        first = arguments[0]
        annotation = arguments[1] if first is type(None) else first
    return annotation


class NonEmptyPath(click.Path):
    """A path that is not empty, as that of an unset variable is: it would mean this folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a usage error if the text is empty."""
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


def group_with_default(default: str) -> type[click.Group]:
    """A group in which `GROUP ARGUMENT` means `GROUP DEFAULT ARGUMENT`, and options, too."""

    class Group(click.Group):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            if args and args[0] not in (*self.commands, *ctx.help_option_names):
                args = [default, *args]
            return super().parse_args(ctx, args)

    return Group


def db_option(command: Command) -> Command:
    """``--db FILE``."""
    return click.option(
        "--db",
        metavar="FILE",
        shell_complete=file_names,
        help="The corpus file. Default: $ROLEBUNDLE_DB, or else a file in your user data folder.",
    )(command)


def request_file_option(command: Command) -> Command:
    """``--request -|FILE``."""
    return click.option(
        "--request",
        "request_file",
        metavar="-|FILE",
        type=click.File("rb"),
        help="Read one JSON request and print one line of JSON.  -: standard input.",
    )(command)


def json_option(command: Command) -> Command:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def html_option(command: Command) -> Command:
    """``--html FILE``."""
    return click.option(
        "--html",
        "html_file",
        metavar="FILE",
        type=NonEmptyPath(),
        callback=_check_page_path,
        help="Also write a page for a browser into this file.",
    )(command)


def _check_page_path(
    _context: click.Context, _option: click.Parameter, path: Path | None
) -> Path | None:
    """The path, which is checked before any work is done."""
    if path is not None:
        # Delayed: most commands write no page.
        from rolebundle.interfaces.cli.page_file import check_page_path

        check_page_path(path)
    return path


def with_style(command: Command) -> Command:
    """The colours of standard output, given to the command as ``style``."""

    @wraps(command)
    def styled(*arguments: Any, **values: Any) -> Any:
        return command(*arguments, style=Style(color=has_color(sys.stdout)), **values)

    return styled


def overlay_option(command: Command) -> Command:
    """``--overlay FILE``."""
    return click.option(
        "--overlay",
        "overlay_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Use this overlay file instead of a role's overlay.",
    )(command)


def overlay_dir_option(command: Command) -> Command:
    """``--overlay-dir DIR``, repeatable."""
    return click.option(
        "--overlay-dir",
        "overlay_dirs",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Look for overlays in this folder first. May be repeated.",
    )(command)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options that say which corpus an engine reads, and with which overlays and models."""

    db: str | None
    overlay_dirs: tuple[Path, ...] = ()

    def engine(
        self,
        *,
        agent: str | None = None,
        approvals: str = "request",
        in_working_folder: bool = False,
        judging: bool = False,
        models: Models | None = None,
    ) -> Engine:
        """The engine for these options.

        With ``in_working_folder``, relative paths in references begin in the working folder, too.
        With ``judging``, the engine has the judge of the environment.
        Engines in several threads may share ``models``.
        """
        path = corpus_path(self.db)
        return Engine(
            workspace_for(path, models),
            overlay_folders(self.overlay_dirs, path),
            agent=agent,
            rerank=setting("RERANK"),
            rerank_url=url_setting("RERANK_URL"),
            approvals=Approvals.parse(approvals),
            judge=_judge() if judging else None,
            folder=str(Path.cwd()) if in_working_folder else None,
        )

    def models(self) -> dict[str, str]:
        """The options about models that two servers of one corpus must have in common."""
        return {
            "embed_url": url_setting("EMBED_URL"),
            "allow_host": setting("EMBED_ALLOW_HOST"),
            "judge": setting("JUDGE"),
            "judge_url": url_setting("JUDGE_URL"),
            "rerank": setting("RERANK"),
            "rerank_url": url_setting("RERANK_URL"),
        }


def _as_engine_options(command: Command, names: Sequence[str]) -> Command:
    """The command with some parameters as one, ``options``."""

    @wraps(command)
    def with_options(*arguments: Any, **values: Any) -> Any:
        own = {name: values.pop(name) for name in names}
        return command(*arguments, options=EngineOptions(**own), **values)

    return with_options


def engine_options(command: Command) -> Command:
    """``--db`` and ``--overlay-dir``, given as ``options``."""
    return db_option(overlay_dir_option(_as_engine_options(command, ("db", "overlay_dirs"))))


def approvals_option(default: str | None) -> Callable[[Command], Command]:
    """``--approvals SOURCE``."""
    return click.option(
        "--approvals",
        metavar="none|request|command:PROGRAM",
        default=default,
        show_default=default is not None,
        help="Where approvals come from: none are taken; from the request; or PROGRAM decides "
        "(JSON on its standard input, exit code 0 approves).",
    )


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
        # Delayed: most commands name no server.
        from rolebundle.embedding.model_server import parse_url

        parse_url(url)
    return url


def _judge() -> Judge | None:
    """``$ROLEBUNDLE_JUDGE``: the chat model that `verify` asks."""
    if not setting("JUDGE"):
        return None
    from rolebundle.verification.draft.judge import Judge

    return Judge(setting("JUDGE"), url_setting("JUDGE_URL"), setting("EMBED_ALLOW_HOST"))


def workspace_for(path: Path, models: Models | None = None) -> Workspace:
    """The workspace of a corpus with the embedding server of the environment."""
    url, host = url_setting("EMBED_URL"), setting("EMBED_ALLOW_HOST")
    return Workspace(path, embed_url=url, allow_host=host, models=models)


def engine_for(
    db: str | None, overlay_dirs: tuple[Path, ...] = (), *, in_working_folder: bool = False
) -> Engine:
    """The engine of a command that has no options about models."""
    return EngineOptions(db, overlay_dirs).engine(in_working_folder=in_working_folder)


def admin_for(db: str | None) -> Admin:
    """The admin for a command's options."""
    # A one-shot `retrieve` must not load the readers of an ingest.
    from rolebundle.admin import Admin

    return Admin(workspace_for(corpus_path(db)))
