"""An evaluation report as one HTML page with inline SVG plots: no script, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from rolebundle.interfaces.pages.plots import Bar, Mark, bar_plot, gain_plot, histogram

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
    marks = [Mark("p50", latency.p50), Mark("p95", latency.p95), Mark("p99", latency.p99)]
    times = [question.latency_ms for question in report.questions]
    yield _figure(histogram(times, "Latency", "ms", marks), "milliseconds per answer")
    sizes = [float(question.answer_characters) for question in report.questions]
    marks = [Mark("p50", size.p50), Mark("p95", size.p95)]
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
