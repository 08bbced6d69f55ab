"""What `publish` and `pull` have in common on the command line."""

from __future__ import annotations

from datetime import timedelta
from functools import wraps
from typing import Any, TypeAlias

import click

from rolebundle.interfaces.cli.options import Command
from rolebundle.text.durations import parse_duration


class Duration(click.ParamType[timedelta]):
    """A length of time such as ``5m`` or ``7d``."""

    name = "time"
    Value: TypeAlias = timedelta

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The length of time; a usage error if it is none."""
        if isinstance(value, timedelta):
            return value
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def transport_options(command: Command) -> Command:
    """The options of the engines that transports use, as the parameter ``programs``."""

    @click.option(
        "--ssh", default="", metavar="PROGRAM", help="For ssh://: the ssh program. Default: ssh."
    )
    @click.option(
        "--remote-program",
        default="",
        metavar="PATH",
        help="For ssh://: sqlite3_rsync on the other machine. Default: from its PATH.",
    )
    @wraps(command)
    def with_programs(*args: Any, ssh: str, remote_program: str, **kwargs: Any) -> Any:
        programs = {"ssh": ssh, "remote_program": remote_program}
        return command(*args, programs=programs, **kwargs)

    return with_programs
