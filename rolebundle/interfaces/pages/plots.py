"""Plots as inline SVG. Colours and fonts are in ``style.css``; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from rolebundle.interfaces.pages.page import signed, visible

# In units of the SVG.
_WIDTH, _LABELS, _VALUES = 720, 200, 170
_ROW = 26
_HEIGHT = 180
_HEAD, _FOOT = 44, 34
_EDGE = 12
_BINS = 40
_MAX_NAME_CHARS = 30


class Bar(NamedTuple):
    """A bar: its name, its length, the text at its end, and the CSS class of its colour.

    The classes are ``plain``, ``main``, ``won`` and ``lost``.
    """

    name: str
    value: float
    text: str
    css_class: str = "plain"


class Mark(NamedTuple):
    """A vertical line in a histogram, such as a percentile: its name, and its value."""

    name: str
    value: float


def bar_plot(bars: Sequence[Bar], title: str) -> Markup:
    """Horizontal bars with a common zero; negative ones go to the left."""
    minimum = min((0.0, *(bar.value for bar in bars)))
    maximum = max((0.0, *(bar.value for bar in bars)))
    plot_width = _WIDTH - _LABELS - _VALUES
    scale = plot_width / (maximum - minimum) if maximum > minimum else 0.0
    zero = _LABELS - minimum * scale
    parts = []
    for number, bar in enumerate(bars):
        top, middle = number * _ROW + 4, number * _ROW + _ROW / 2 + 4
        start, length = zero + min(0.0, bar.value) * scale, abs(bar.value) * scale
        end = zero + max(0.0, bar.value) * scale + 6
        parts += [
            _text(_LABELS - 8, middle, _short(bar.name), "name"),
            _rect(start, top, max(length, 1.0), _ROW - 8, bar.css_class),
            _text(end, middle, bar.text),
        ]
    height = len(bars) * _ROW + 4
    parts.append(_line(zero, 0, zero, height))
    return _svg(height, title, parts)


def gain_plot(values: Iterable[tuple[str, float]]) -> Markup:
    """The change of nDCG@10 of each question, from the largest gain to the largest loss."""
    ordered = sorted(values, key=lambda pair: -pair[1])
    highest = max((0.0, *(value for _, value in ordered)))
    lowest = min((0.0, *(value for _, value in ordered)))
    scale = (_HEIGHT - 2 * _EDGE) / ((highest - lowest) or 1.0)
    zero = _EDGE + highest * scale
    left, plot_width = 50, _WIDTH - 60
    step = plot_width / max(1, len(ordered))
    parts = [_tick(left, zero, "0")]
    for end in (highest, lowest):
        if abs(end) * scale > _EDGE:
            parts.append(_tick(left, zero - end * scale, signed(end, 2)))
    for number, (name, value) in enumerate(ordered):
        length = abs(value) * scale
        top = zero - length if value > 0 else zero
        hint = f"{name}: {signed(value)}"
        css_class = "won" if value > 0 else "lost"
        parts.append(
            _rect(left + number * step, top, max(0.6, step * 0.86), length, css_class, hint)
        )
    parts.append(_line(left, zero, left + plot_width, zero))
    return _svg(_HEIGHT, "Change of nDCG@10 by question", parts)


def histogram(values: Sequence[float], title: str, unit: str, marks: Sequence[Mark] = ()) -> Markup:
    """How many values, each at least 0, are in each of 40 ranges of equal width.

    Args:
        values: the values.
        title: what is counted, for readers who do not see the plot.
        unit: of the values.
        marks: vertical lines.
    """
    maximum = max(values, default=0.0) or 1.0
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int(value / maximum * _BINS))] += 1
    highest = max(counts) or 1
    left, plot_width, bottom = 50, _WIDTH - 70, _HEIGHT - _FOOT
    step = plot_width / _BINS
    parts = [_tick(left, bottom, "0"), _tick(left, _HEAD, str(highest))]
    for number, count in enumerate(counts):
        length = count / highest * (bottom - _HEAD)
        start, end = number * maximum / _BINS, (number + 1) * maximum / _BINS
        hint = f"{_number(start)} to {_number(end)} {unit}: {count}"
        parts.append(
            _rect(left + number * step, bottom - length, step * 0.9, length, "plain", hint)
        )
    for number, mark in enumerate(marks):
        x = left + mark.value / maximum * plot_width
        # Each name has its own height, so that the names of close marks do not overlap.
        is_far = x > _WIDTH - 120
        text = f"{mark.name} {_number(mark.value)}"
        parts += [
            _line(x, 4, x, bottom, "mark"),
            _text(x - 4 if is_far else x + 4, 10 + 12 * number, text, "name" if is_far else ""),
        ]
    parts += [
        _line(left, bottom, left + plot_width, bottom),
        _text(left, _HEIGHT - 14, "0"),
        _text(left + plot_width, _HEIGHT - 14, f"{_number(maximum)} {unit}", "name"),
    ]
    return _svg(_HEIGHT, title, parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[: _MAX_NAME_CHARS - 1]}…"


def _tick(x: float, y: float, text: str) -> Markup:
    return _text(x - 6, y, text, "name")


def _text(x: float, y: float, text: str, css_class: str = "") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>').format(
        x, y, css_class, visible(text)
    )


def _rect(
    x: float, y: float, width: float, height: float, css_class: str, hint: str = ""
) -> Markup:
    title = Markup("<title>{}</title>").format(visible(hint)) if hint else ""
    return Markup(
        '<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" class="{}">{}</rect>'
    ).format(x, y, width, height, css_class, title)


def _line(x1: float, y1: float, x2: float, y2: float, css_class: str = "axis") -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        x1, y1, x2, y2, css_class
    )


def _svg(height: float, title: str, parts: Iterable[Markup]) -> Markup:
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, height, visible(title), Markup("").join(parts))
