"""An evaluation report as one HTML page with inline SVG plots: no script, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rolebundle.contracts.evaluation import EvalReport, QuestionResult
from rolebundle.evaluation.report import (
    SIGNIFICANT,
    against_lexical,
    extremes,
    gain,
    headline,
    one_line,
    p_text,
    rate_text,
    threshold_texts,
)

MAX_EXTREMES = 15
MAX_TASK_CHARS = 140
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#d5dbe3;--paper:#fff;
--plain:#7c93b2;--main:#2a6fdb;--won:#2e8b57;--lost:#c8553d}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b5;--line:#39424e;--paper:#151a21;
--plain:#6f87a8;--main:#5b9bff;--won:#4fb880;--lost:#e5795f}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin-top:2.2rem}
p,figcaption{color:var(--soft)}figure{margin:1rem 0}svg{width:100%;height:auto;display:block}
svg text{font:12px system-ui,sans-serif;fill:var(--ink);dominant-baseline:middle}
svg .name{text-anchor:end}svg .axis{stroke:var(--line)}
svg .mark{stroke:var(--lost);stroke-dasharray:4 3}
rect.plain{fill:var(--plain)}rect.main{fill:var(--main)}rect.won{fill:var(--won)}
rect.lost{fill:var(--lost)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600}td.text,th.text{text-align:left;overflow-wrap:break-word}
.good{color:var(--won)}.bad{color:var(--lost)}
"""
Cell = str | tuple[str, str]
"""A cell: its text, or its text and its CSS class."""


def page(report: EvalReport) -> str:
    """Return the page."""
    body = "\n".join(_sections(report))
    title = escape(f"rolebundle eval: {report.name}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _sections(report: EvalReport) -> Iterator[str]:
    result, css_class = ("passed", "good") if report.passed else ("not passed", "bad")
    yield f"<h1>{escape(report.name)}</h1>"
    yield f'<p>{escape(headline(report))} · <span class="{css_class}">{result}</span></p>'
    if report.degraded:
        yield f'<p class="bad">The semantic lane was degraded: {escape(report.degraded)}</p>'
    if report.floors:
        yield from _thresholds(report)
    if report.systems:
        yield from _quality(report)
        yield from _questions(report)
    if report.governance:
        yield from _governance(report)
    if report.distinctiveness:
        yield from _roles(report)
    if report.harm:
        yield from _harm(report)
    yield from _costs(report)
    if report.notes:
        yield "<h2>Notes</h2><ul>"
        yield from (f"<li>{escape(note)}</li>" for note in report.notes)
        yield "</ul>"


def _thresholds(report: EvalReport) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for floor in report.floors:
        value, threshold = threshold_texts(floor)
        result = ("met", "good") if floor.held else ("not met", "bad")
        rows.append([(floor.metric, "text"), value, threshold, result])
    yield _table(["metric", "value", "threshold", ""], rows)


def _quality(report: EvalReport) -> Iterator[str]:
    yield "<h2>Each lane, each fusion, and the governed answer</h2>"
    rows: list[list[Cell]] = []
    system_bars = []
    for system in report.systems:
        against = against_lexical(system)
        cells: list[Cell] = [(system.system, "text")]
        cells += [f"{system.metrics[name]:.4f}" for name in report.metrics]
        text = f"{system.metrics['ndcg@10']:.4f}"
        if against is None:
            cells += ["", "", ""]
        else:
            relative = f"{against.relative:+.1%}" if against.relative is not None else ""
            change_class = ""
            if against.p_value < SIGNIFICANT:
                change_class = "good" if against.mean > 0 else "bad"
            change = f"{against.mean:+.4f}" + (f" ({relative})" if relative else "")
            cells.append((change, change_class))
            cells += [p_text(against.p_value), f"{against.wins} / {against.losses}"]
            text += f"  {relative}, p {p_text(against.p_value)}"
        rows.append(cells)
        bar_class = "main" if system.system == "governed" else "plain"
        system_bars.append(Bar(system.system, system.metrics["ndcg@10"], text, bar_class))
    plot = bar_plot(system_bars, "nDCG@10 by system")
    yield _figure(plot, "nDCG@10, and the change from lexical")
    yield _table(["", *report.metrics, "nDCG@10 − lexical", "p", "won / lost"], rows)
    yield (
        "<p>p: two-sided paired randomization test over the questions; a star marks p &lt; "
        f"{SIGNIFICANT:g}. Recall@100 is measured on the candidates of the lanes.</p>"
    )


def _questions(report: EvalReport) -> Iterator[str]:
    judged = [question for question in report.questions if question.scores]
    won, lost = extremes(report, MAX_EXTREMES)
    yield "<h2>Question by question</h2>"
    changes = [
        (f"{question.id} · {one_line(question.task, 80)}", gain(question)) for question in judged
    ]
    ups, downs = sum(gain(q) > 0 for q in judged), sum(gain(q) < 0 for q in judged)
    title = "nDCG@10 of the governed answer minus that of the lexical lane"
    yield _figure(
        gain_plot(changes, f"{title}, by question"),
        f"{title}: {ups} won, {downs} lost, {len(judged) - ups - downs} the same",
    )
    for heading, questions in (("Largest gains", won), ("Largest losses", lost)):
        if questions:
            yield f"<h3>{heading}</h3>"
            yield _table(["question", "task", "lexical", "governed", "change"], _changed(questions))


def _changed(questions: Sequence[QuestionResult]) -> list[list[Cell]]:
    return [
        [
            (question.id, "text"),
            (one_line(question.task, MAX_TASK_CHARS), "text"),
            f"{question.scores['lexical']['ndcg@10']:.3f}",
            f"{question.scores['governed']['ndcg@10']:.3f}",
            (f"{gain(question):+.3f}", "good" if gain(question) > 0 else "bad"),
        ]
        for question in questions
    ]


def _governance(report: EvalReport) -> Iterator[str]:
    governance = report.governance
    assert governance is not None
    yield "<h2>Governance</h2>"
    leak = (
        ("good" if governance.leak_rate == 0 else "bad") if governance.leak_rate is not None else ""
    )
    yield _table(
        ["leak rate", "rejection codes right", "postures right", "checks"],
        [
            [
                (rate_text(governance.leak_rate), leak),
                rate_text(governance.rejection_accuracy),
                rate_text(governance.posture_accuracy),
                str(len(governance.checks)),
            ]
        ],
    )
    failed = [check for check in governance.checks if not check.held]
    if failed:
        yield "<h3>Failed checks</h3>"
        rows: list[list[Cell]] = [
            [
                (cell, "text")
                for cell in (check.question, check.kind, check.about, check.expected, check.found)
            ]
            for check in failed
        ]
        yield _table(["question", "check", "about", "expected", "found"], rows)


def _roles(report: EvalReport) -> Iterator[str]:
    distinctiveness = report.distinctiveness
    assert distinctiveness is not None
    yield f"<h2>Differences between roles, over {distinctiveness.questions} questions</h2>"
    own_shares = [
        Bar(role.role_id, role.own_share, rate_text(role.own_share), "main")
        for role in distinctiveness.roles
    ]
    yield _figure(
        bar_plot(own_shares, "Passages from own domains"),
        "share of the passages that come from the role's own domains",
    )
    yield _table(
        ["role", "own domains", "own share", "own first"],
        [
            [
                (role.role_id, "text"),
                (", ".join(role.domains), "text"),
                rate_text(role.own_share),
                rate_text(role.own_first),
            ]
            for role in distinctiveness.roles
        ],
    )
    yield _table(
        ["roles", "documents in common"],
        [
            [(f"{pair.first}, {pair.second}", "text"), rate_text(pair.overlap)]
            for pair in distinctiveness.pairs
        ],
    )


def _harm(report: EvalReport) -> Iterator[str]:
    yield "<h2>Effect of each overlay on these questions</h2>"
    overlay_bars = [
        Bar(
            harm.role_id,
            harm.relative,
            f"{harm.relative:+.2%}, p {p_text(harm.p_value)}",
            "won" if harm.relative >= 0 else "lost",
        )
        for harm in report.harm
    ]
    yield _figure(
        bar_plot(overlay_bars, "Change of nDCG@10 by overlay"),
        "change of nDCG@10 with the overlay, compared with no overlay",
    )


def _costs(report: EvalReport) -> Iterator[str]:
    latency, size, seconds = report.latency_ms, report.answer_characters, report.seconds
    yield "<h2>Latency and size of the governed answers</h2>"
    marks = [("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99)]
    times = [question.latency_ms for question in report.questions]
    yield _figure(histogram(times, "Latency", "ms", marks), "milliseconds per answer")
    sizes = [float(question.answer_characters) for question in report.questions]
    marks = [("p50", size.p50), ("p95", size.p95)]
    yield _figure(
        histogram(sizes, "Size", "characters", marks),
        f"characters of the selected passages; {report.passages.mean:.1f} passages on average",
    )
    yield (
        f"<p>{seconds.total:.1f} s: {seconds.ingest:.1f} s to ingest, "
        f"{seconds.questions:.1f} s for the questions.</p>"
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


_LEFT_COLUMNS = (
    "question",
    "task",
    "metric",
    "check",
    "about",
    "expected",
    "found",
    "role",
    "roles",
    "own domains",
)


def _table(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    head = "".join(
        f'<th class="text">{escape(name)}</th>'
        if name in _LEFT_COLUMNS
        else f"<th>{escape(name)}</th>"
        for name in heads
    )
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _cell(cell: Cell) -> str:
    text, css_class = (cell, "") if isinstance(cell, str) else cell
    attribute = f' class="{css_class}"' if css_class else ""
    return f"<td{attribute}>{escape(text)}</td>"


# --- plots ---

# In units of the SVG.
_WIDTH, _LABELS, _VALUES = 720, 150, 190
_ROW = 26
_HEIGHT = 180
_HEAD, _FOOT = 44, 34
_BINS = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its length, the text at its end, and the CSS class of its colour."""

    name: str
    value: float
    text: str
    css_class: str = "plain"


def bar_plot(bars: Sequence[Bar], title: str) -> str:
    """Return an SVG of horizontal bars with a common zero; negative ones go to the left."""
    minimum = min(0.0, *(bar.value for bar in bars))
    maximum = max(0.0, *(bar.value for bar in bars))
    plot_width = _WIDTH - _LABELS - _VALUES
    scale = plot_width / (maximum - minimum) if maximum > minimum else 0.0
    zero = _LABELS - minimum * scale
    parts = []
    for number, bar in enumerate(bars):
        top, middle = number * _ROW + 4, number * _ROW + _ROW / 2 + 4
        start, length = zero + min(0.0, bar.value) * scale, abs(bar.value) * scale
        end = zero + max(0.0, bar.value) * scale + 6
        parts.append(
            f'<text x="{_LABELS - 8}" y="{middle}" class="name">{escape(bar.name)}</text>'
            f'<rect x="{start:.1f}" y="{top}" width="{max(length, 1):.1f}" height="{_ROW - 8}" '
            f'rx="2" class="{bar.css_class}"/>'
            f'<text x="{end:.1f}" y="{middle}">{escape(bar.text)}</text>'
        )
    height = len(bars) * _ROW + 4
    parts.append(f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{height}" class="axis"/>')
    return _svg(height, title, parts)


def gain_plot(values: Sequence[tuple[str, float]], title: str) -> str:
    """Return an SVG of one vertical bar per (name, value), from largest gain to largest loss."""
    ordered = sorted(values, key=lambda pair: -pair[1])
    largest = max((abs(value) for _, value in ordered), default=0.0) or 1.0
    left, plot_width = 50, _WIDTH - 60
    middle = _HEIGHT / 2
    step = plot_width / max(1, len(ordered))
    parts = [
        _tick(left, middle - sign * (middle - 8), f"{sign * largest:+.2f}" if sign else "0")
        for sign in (1, 0, -1)
    ]
    for number, (name, value) in enumerate(ordered):
        length = abs(value) / largest * (middle - 8)
        top = middle - length if value > 0 else middle
        css_class = "won" if value > 0 else "lost"
        x, width = left + number * step, max(0.6, step * 0.86)
        parts.append(
            f'<rect x="{x:.2f}" y="{top:.2f}" width="{width:.2f}" height="{length:.2f}" '
            f'class="{css_class}"><title>{escape(name)}: {value:+.3f}</title></rect>'
        )
    parts.append(
        f'<line x1="{left}" x2="{left + plot_width}" y1="{middle}" y2="{middle}" class="axis"/>'
    )
    return _svg(_HEIGHT, title, parts)


def histogram(
    values: Sequence[float], title: str, unit: str, marks: Sequence[tuple[str, float]]
) -> str:
    """Return an SVG of a histogram with vertical lines at ``marks``, such as percentiles."""
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
        parts.append(
            f'<rect x="{left + number * step:.2f}" y="{bottom - length:.2f}" '
            f'width="{step * 0.9:.2f}" height="{length:.2f}" class="plain">'
            f"<title>{_number(start)} to {_number(end)} {escape(unit)}: {count}</title></rect>"
        )
    for number, (name, value) in enumerate(marks):
        x = left + value / maximum * plot_width
        # Each name has its own height, so that the names of close marks do not overlap.
        anchor = "end" if x > _WIDTH - 120 else "start"
        shift = -4 if anchor == "end" else 4
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{bottom}" class="mark"/>'
            f'<text x="{x + shift:.1f}" y="{10 + 12 * number}" style="text-anchor:{anchor}">'
            f"{escape(name)} {_number(value)}</text>"
        )
    parts += [
        f'<line x1="{left}" x2="{left + plot_width}" y1="{bottom}" y2="{bottom}" class="axis"/>',
        f'<text x="{left}" y="{_HEIGHT - 14}">0</text>',
        f'<text x="{left + plot_width}" y="{_HEIGHT - 14}" class="name">'
        f"{_number(maximum)} {escape(unit)}</text>",
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
