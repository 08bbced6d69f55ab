"""The command line: its table of commands, which are imported when they are called."""

from __future__ import annotations

import codecs
import errno
import gc
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rolebundle.errors import RolebundleError, UsageError, storage_error
from rolebundle.resources import data_file


class _Pipe(FileIO):
    """A pipe whose reader may go away."""

    is_read = True

    def write(self, data: Any, /) -> int:
        if self.is_read:
            try:
                return super().write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.is_read = False
            except OSError as error:
                if error.errno != errno.EINVAL:  # So says Windows.
                    raise
                self.is_read = False
        return memoryview(data).nbytes


ESCAPED = "rolebundle-escaped"
"""How characters that an encoding lacks are written: as JSON escapes, so an answer stays JSON."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


codecs.register_error(ESCAPED, _escaped)


def outlive_readers() -> None:
    """Let standard output and standard error be closed by their readers, and lack characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            stream.flush()
            descriptor = stream.fileno()
            mode = os.fstat(descriptor).st_mode
        except (AttributeError, OSError, ValueError):
            continue  # Closed, or no file.
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            pipe = BufferedWriter(_Pipe(descriptor, "wb", closefd=False))
            is_error = name == "stderr"
            text = TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=is_error)
            setattr(sys, name, text)
        if not codecs.lookup(stream.encoding).name.startswith("utf"):
            getattr(sys, name).reconfigure(errors=ESCAPED)


def is_read(stream: Any) -> bool:
    """Whether somebody may still read what is written to a stream."""
    return getattr(getattr(getattr(stream, "buffer", None), "raw", None), "is_read", True) is True


COMMANDS: dict[str, dict[str, tuple[str, str]]] = data_file(__file__, "main.toml")
"""Section → command → the module that has it, and what it does in a few words."""

_MEANT = {name: ["retrieve"] for name in ("search", "query", "find", "ask")}
"""What other programs call our commands."""
ROWS = {name: row for section in COMMANDS.values() for name, row in section.items()}
_GC_THRESHOLD = 20_000
"""New objects between two searches for garbage; Python's 700 takes a twentieth of a one-shot."""


class Commands(click.Group):
    """The group of ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return [*ROWS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each title, or with plain --help the first one only."""
        width, (first, *_) = max(map(len, ROWS)), COMMANDS
        shown = COMMANDS if ctx.meta.get(_ALL) else {first: COMMANDS[first]}
        for title, commands in shown.items():
            with formatter.section(title):
                formatter.write_dl([
                    (name.ljust(width), text) for name, (_, text) in commands.items()
                ])  # fmt: skip

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; a usage error that says what may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # Click only knows the commands that are imported.
            groups = (self.get_command(ctx, name) for name in ROWS)
            near = [
                f"{group.name} {args[0]}"
                for group in groups
                if isinstance(group, click.Group) and args[0] in group.commands
            ] or _MEANT.get(args[0], get_close_matches(args[0], ROWS, n=1))
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"{error.message}{guess}", ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names with the descriptions of the help, so that no command is imported."""
        names = (name for name in ROWS if name.startswith(incomplete))
        items = [CompletionItem(name, help=ROWS[name][1]) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        if cmd_name not in ROWS:
            return None
        # Modules live as long as the process. A search for garbage among them while they load
        # takes a twentieth of a cold start.
        gc.disable()
        module = import_module(f"rolebundle.interfaces.cli.{ROWS[cmd_name][0]}")
        gc.freeze()
        gc.enable()
        gc.set_threshold(_GC_THRESHOLD)
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command


_ALL = "rolebundle.help_all"


# Plugins of pydantic have no business in our validation, and to look for them takes long.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# Read when numpy is imported. The ranking multiplies one matrix for each answer: a second thread
# saves little, and afterwards waits in a loop that takes the processor from the next search.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _printing_option(
    name: str, print_it: Callable[[click.Context], None], help_text: str
) -> Callable[[Any], Any]:
    """An option that prints something instead of running a command."""

    def act(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
        if is_set and not ctx.resilient_parsing:
            print_it(ctx)
            ctx.exit()

    return click.option(
        name, is_flag=True, expose_value=False, is_eager=True, callback=act, help=help_text
    )


def _print_all(ctx: click.Context) -> None:
    ctx.meta[_ALL] = True
    click.echo(ctx.get_help())


def _print_versions(_ctx: click.Context) -> None:
    from importlib.metadata import version
    from platform import python_version

    from rolebundle.embedding.static import MODEL
    from rolebundle.storage.opening import latest_version
    from rolebundle.storage.sqlite import sqlite_version

    click.echo(f"rolebundle {version('rolebundle')}")
    click.echo(
        f"Python {python_version()}, SQLite {sqlite_version()}, apsw {version('apsw')}, "
        f"sqlite-vec {version('sqlite-vec')}"
    )
    click.echo(f"schema {latest_version()}, default model static:{MODEL}")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@_printing_option(
    "--version",
    _print_versions,
    "Show the versions of rolebundle, SQLite, the schema and the default model.",
)
@_printing_option("--help-all", _print_all, "Show all commands.")
def cli() -> None:
    """Governed retrieval for on-device agents.

    \b
    rolebundle retrieve "TASK" --in FOLDER     find what answers it in a folder
    rolebundle overlay demo                    what three roles get for one task
    rolebundle --help-all                      all commands

    The corpus is one file: --db, or that of --in, or $ROLEBUNDLE_DB, or a file in your user data
    folder.
    Exit codes: 0 ok, 1 deadline or failed check, 2 usage, 3 configuration or overlay, 4 denied, 5
    busy, 6 full or I/O, 7 corrupt, 8 wrong or newer file, 9 embedder, 10 bad document, 130
    interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the documented code, never with a traceback."""
    # Started with a closed descriptor 0 or 1.
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    outlive_readers()
    try:
        code = cli.main(args=arguments, prog_name="rolebundle", standalone_mode=False)
        sys.stdout.flush()
    except RolebundleError as error:
        _print_error(f"error: {error.message} [{error.code}]", error.hint)
        code = error.exit_code
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
            click.echo(_next_step(error), err=True, nl=False)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _print_error("interrupted; completed work is kept")
        code = 130
    except OSError as error:
        # Otherwise what is still buffered would be written at the end, and fail again. In a server
        # both streams are standard error, to which the error is written below.
        if sys.stdout is not sys.stderr:
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        failed = storage_error("reading or writing failed", error)
        _print_error(f"error: reading or writing failed: {error} [{failed.code}]", failed.hint)
        code = failed.exit_code
    except Exception as error:
        if os.environ.get("ROLEBUNDLE_DEBUG"):
            raise
        from rolebundle.text.references import may_be_stored

        given = sys.argv[1:] if arguments is None else arguments
        bad = next((argument for argument in given if not may_be_stored(argument)), None)
        if isinstance(error, UnicodeEncodeError) and bad is not None:
            # It was no valid text: SQLite takes it neither as a name nor as a value.
            _print_error(
                f"error: {bad!r}: holds bytes that are not text [not_text]", "give a name in UTF-8"
            )
            code = UsageError.exit_code
        else:
            _print_error(
                f"error: internal error: {type(error).__name__}: {error} [internal]",
                "run `rolebundle corpus doctor`; if it finds nothing, please report this: "
                "ROLEBUNDLE_DEBUG=1 shows where it happened",
            )
            code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _next_step(error: click.ClickException) -> str:
    """A line with what to do, if click does not say it."""
    if error.message.startswith("Got unexpected extra argument"):
        return "  next: put a text of several words in quotes\n"
    is_before_command = isinstance(error, click.NoSuchOption) and error.ctx and not error.ctx.parent
    return "  next: give options after the command\n" if is_before_command else ""


def _print_error(message: str, hint: str = "") -> None:
    # They import pydantic.
    from rolebundle.contracts.base import writable
    from rolebundle.interfaces.layout import on_one_line

    # A file's name may hold line breaks, and bytes that are not valid text. If nobody reads
    # standard error, the exit code still tells what happened.
    lines = map(on_one_line, map(writable, filter(None, (message, hint))))
    with suppress(OSError):
        click.echo("\n  next: ".join(lines), err=True)
