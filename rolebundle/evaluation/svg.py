"""Plots as inline SVG: bars, gains question by question, histograms. No script, no outside font."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABELS, _VALUES = 720, 150, 190
_ROW = 26
_HEIGHT = 180
_HEAD, _FOOT = 44, 34
_BINS = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its length, what stands at its end, and how it is coloured."""

    name: str
    value: float
    text: str
    kind: str = "plain"


def bars(rows: Sequence[Bar], title: str) -> str:
    """Horizontal bars from one zero; negative ones go to the left of it."""
    least = min(0.0, *(row.value for row in rows))
    most = max(0.0, *(row.value for row in rows))
    room = _WIDTH - _LABELS - _VALUES
    scale = room / (most - least) if most > least else 0.0
    zero = _LABELS - least * scale
    parts = []
    for number, row in enumerate(rows):
        top, middle = number * _ROW + 4, number * _ROW + _ROW / 2 + 4
        start, length = zero + min(0.0, row.value) * scale, abs(row.value) * scale
        end = zero + max(0.0, row.value) * scale + 6
        parts.append(
            f'<text x="{_LABELS - 8}" y="{middle}" class="name">{escape(row.name)}</text>'
            f'<rect x="{start:.1f}" y="{top}" width="{max(length, 1):.1f}" height="{_ROW - 8}" '
            f'rx="2" class="{row.kind}"/>'
            f'<text x="{end:.1f}" y="{middle}">{escape(row.text)}</text>'
        )
    height = len(rows) * _ROW + 4
    parts.append(f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{height}" class="axis"/>')
    return _svg(height, title, parts)


def gains(values: Sequence[tuple[str, float]], title: str) -> str:
    """A bar for each question, from the largest gain to the largest loss."""
    ordered = sorted(values, key=lambda one: -one[1])
    reach = max((abs(value) for _, value in ordered), default=0.0) or 1.0
    left, room = 50, _WIDTH - 60
    middle = _HEIGHT / 2
    step = room / max(1, len(ordered))
    parts = [
        _tick(left, middle - sign * (middle - 8), f"{sign * reach:+.2f}" if sign else "0")
        for sign in (1, 0, -1)
    ]
    for number, (name, value) in enumerate(ordered):
        length = abs(value) / reach * (middle - 8)
        top = middle - length if value > 0 else middle
        kind = "won" if value > 0 else "lost"
        place, wide = left + number * step, max(0.6, step * 0.86)
        parts.append(
            f'<rect x="{place:.2f}" y="{top:.2f}" width="{wide:.2f}" height="{length:.2f}" '
            f'class="{kind}"><title>{escape(name)}: {value:+.3f}</title></rect>'
        )
    parts.append(f'<line x1="{left}" x2="{left + room}" y1="{middle}" y2="{middle}" class="axis"/>')
    return _svg(_HEIGHT, title, parts)


def histogram(
    values: Sequence[float], title: str, unit: str, marks: Sequence[tuple[str, float]]
) -> str:
    """How often values fall where, with marks such as percentiles."""
    most = max(values, default=0.0) or 1.0
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int(value / most * _BINS))] += 1
    highest = max(counts) or 1
    left, room, floor = 50, _WIDTH - 70, _HEIGHT - _FOOT
    step = room / _BINS
    parts = [_tick(left, floor, "0"), _tick(left, _HEAD, str(highest))]
    for number, count in enumerate(counts):
        length = count / highest * (floor - _HEAD)
        start, end = number * most / _BINS, (number + 1) * most / _BINS
        parts.append(
            f'<rect x="{left + number * step:.2f}" y="{floor - length:.2f}" '
            f'width="{step * 0.9:.2f}" height="{length:.2f}" class="plain">'
            f"<title>{_number(start)} to {_number(end)} {escape(unit)}: {count}</title></rect>"
        )
    for number, (name, value) in enumerate(marks):
        place = left + value / most * room
        # Marks that are near each other keep their names apart.
        anchor = "end" if place > _WIDTH - 120 else "start"
        shift = -4 if anchor == "end" else 4
        parts.append(
            f'<line x1="{place:.1f}" x2="{place:.1f}" y1="4" y2="{floor}" class="mark"/>'
            f'<text x="{place + shift:.1f}" y="{10 + 12 * number}" style="text-anchor:{anchor}">'
            f"{escape(name)} {_number(value)}</text>"
        )
    parts += [
        f'<line x1="{left}" x2="{left + room}" y1="{floor}" y2="{floor}" class="axis"/>',
        f'<text x="{left}" y="{_HEIGHT - 14}">0</text>',
        f'<text x="{left + room}" y="{_HEIGHT - 14}" class="name">'
        f"{_number(most)} {escape(unit)}</text>",
    ]
    return _svg(_HEIGHT, title, parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _tick(x: float, y: float, text: str) -> str:
    return f'<text x="{x - 6}" y="{y}" class="name">{escape(text)}</text>'


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )
