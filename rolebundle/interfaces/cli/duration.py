"""Options that are lengths of time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from rolebundle.text.durations import parse_duration


class Duration(click.ParamType[timedelta]):
    """A length of time such as ``5m`` or ``7d``."""

    name = "time"

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
