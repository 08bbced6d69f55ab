"""A report as one HTML page with plots: nothing is loaded from elsewhere, and no script runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from rolebundle.contracts.evaluation import EvalReport, QuestionResult
from rolebundle.evaluation.report import (
    SIGNIFICANT,
    extremes,
    gain,
    headline,
    one_line,
    p_text,
    rate_text,
)
from rolebundle.evaluation.svg import Bar, bars, gains, histogram

_EXTREMES = 15
_TASK = 140
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
"""A cell's text, or its text and its class."""


def page(report: EvalReport) -> str:
    """The page."""
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
    verdict = ("passed", "good") if report.passed else ("not passed", "bad")
    yield f"<h1>{escape(report.name)}</h1>"
    yield f'<p>{escape(headline(report))} · <span class="{verdict[1]}">{verdict[0]}</span></p>'
    if report.degraded:
        yield f'<p class="bad">The semantic lane was degraded: {escape(report.degraded)}</p>'
    if report.floors:
        yield from _floors(report)
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


def _floors(report: EvalReport) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for one in report.floors:
        value = "not measured" if one.value is None else f"{one.value:.4f}"
        bound = f"{'at most' if one.at_most else 'at least'} {one.bound:g}"
        held = ("held", "good") if one.held else ("not held", "bad")
        rows.append([(one.metric, "text"), value, bound, held])
    yield _table(["metric", "value", "bound", ""], rows)


def _quality(report: EvalReport) -> Iterator[str]:
    yield "<h2>Each lane, each fusion, and the governed answer</h2>"
    rows: list[list[Cell]] = []
    lengths = []
    for one in report.systems:
        against = next((d for d in one.against_lexical if d.metric == "ndcg@10"), None)
        cells: list[Cell] = [(one.system, "text")]
        cells += [f"{one.metrics[name]:.4f}" for name in report.metrics]
        text = f"{one.metrics['ndcg@10']:.4f}"
        if against is None:
            cells += ["", "", ""]
        else:
            relative = f" ({against.relative:+.1%})" if against.relative is not None else ""
            kind = "good" if against.mean > 0 else "bad"
            shown = kind if against.p_value < SIGNIFICANT else ""
            cells.append((f"{against.mean:+.4f}{relative}", shown))
            cells += [p_text(against.p_value), f"{against.wins} / {against.losses}"]
            text += f"  {relative.strip(' ()')}, p {p_text(against.p_value)}"
        rows.append(cells)
        kind = "main" if one.system == "governed" else "plain"
        lengths.append(Bar(one.system, one.metrics["ndcg@10"], text, kind))
    yield _figure(bars(lengths, "nDCG@10 by system"), "nDCG@10, and the change from lexical")
    yield _table(["", *report.metrics, "nDCG@10 − lexical", "p", "won / lost"], rows)
    yield (
        "<p>p: two-sided paired randomization test over the questions; a star marks p &lt; "
        f"{SIGNIFICANT:g}. Recall@100 is of what the lanes' pools hold.</p>"
    )


def _questions(report: EvalReport) -> Iterator[str]:
    judged = [one for one in report.questions if one.scores]
    won, lost = extremes(report, _EXTREMES)
    yield "<h2>Question by question</h2>"
    changes = [(f"{one.id} · {one_line(one.task, 80)}", gain(one)) for one in judged]
    ups, downs = sum(gain(one) > 0 for one in judged), sum(gain(one) < 0 for one in judged)
    what = "nDCG@10 of the governed answer minus the lexical lane's"
    yield _figure(
        gains(changes, f"{what}, by question"),
        f"{what}: {ups} won, {downs} lost, {len(judged) - ups - downs} the same",
    )
    for title, chosen in (("Won most", won), ("Lost most", lost)):
        if chosen:
            yield f"<h3>{title}</h3>"
            yield _table(["question", "task", "lexical", "governed", "change"], _changed(chosen))


def _changed(questions: Sequence[QuestionResult]) -> list[list[Cell]]:
    return [
        [
            (one.id, "text"),
            (one_line(one.task, _TASK), "text"),
            f"{one.scores['lexical']['ndcg@10']:.3f}",
            f"{one.scores['governed']['ndcg@10']:.3f}",
            (f"{gain(one):+.3f}", "good" if gain(one) > 0 else "bad"),
        ]
        for one in questions
    ]


def _governance(report: EvalReport) -> Iterator[str]:
    found = report.governance
    assert found is not None
    yield "<h2>Governance</h2>"
    leak = ("good" if found.leak_rate == 0 else "bad") if found.leak_rate is not None else ""
    yield _table(
        ["leak rate", "rejection codes right", "postures right", "checks"],
        [
            [
                (rate_text(found.leak_rate), leak),
                rate_text(found.rejection_accuracy),
                rate_text(found.posture_accuracy),
                str(len(found.checks)),
            ]
        ],
    )
    failed = [one for one in found.checks if not one.held]
    if failed:
        yield "<h3>What did not hold</h3>"
        rows: list[list[Cell]] = [
            [
                (cell, "text")
                for cell in (one.question, one.kind, one.about, one.expected, one.found)
            ]
            for one in failed
        ]
        yield _table(["question", "check", "about", "expected", "found"], rows)


def _roles(report: EvalReport) -> Iterator[str]:
    apart = report.distinctiveness
    assert apart is not None
    yield f"<h2>Roles apart, over {apart.questions} questions</h2>"
    shares = [
        Bar(one.role_id, one.own_share, rate_text(one.own_share), "main") for one in apart.roles
    ]
    yield _figure(
        bars(shares, "Share of own-domain evidence"),
        "share of the passages that come from the role's own domains",
    )
    yield _table(
        ["role", "own domains", "own share", "own first"],
        [
            [
                (one.role_id, "text"),
                (", ".join(one.domains), "text"),
                rate_text(one.own_share),
                rate_text(one.own_first),
            ]
            for one in apart.roles
        ],
    )
    yield _table(
        ["roles", "documents in common"],
        [[(f"{one.first}, {one.second}", "text"), rate_text(one.overlap)] for one in apart.pairs],
    )


def _harm(report: EvalReport) -> Iterator[str]:
    yield "<h2>What an overlay does to these questions</h2>"
    lengths = [
        Bar(
            one.role_id,
            one.relative,
            f"{one.relative:+.2%}, p {p_text(one.p_value)}",
            "won" if one.relative >= 0 else "lost",
        )
        for one in report.harm
    ]
    yield _figure(
        bars(lengths, "Change of nDCG@10 by overlay"),
        "change of nDCG@10 with the overlay on, against no overlay",
    )


def _costs(report: EvalReport) -> Iterator[str]:
    latency, size, took = report.latency_ms, report.answer_characters, report.seconds
    yield "<h2>Latency and size of the governed answers</h2>"
    marks = [("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99)]
    times = [one.latency_ms for one in report.questions]
    yield _figure(histogram(times, "Latency", "ms", marks), "milliseconds an answer")
    sizes = [float(one.answer_characters) for one in report.questions]
    marks = [("p50", size.p50), ("p95", size.p95)]
    yield _figure(
        histogram(sizes, "Size", "characters", marks),
        f"characters of the selected passages; {report.passages.mean:.1f} passages in the mean",
    )
    yield (
        f"<p>{took.total:.1f} s: {took.ingest:.1f} s to ingest, {took.questions:.1f} s to ask.</p>"
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


_LEFT = (
    "",
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
        f'<th class="text">{escape(name)}</th>' if name in _LEFT[1:] else f"<th>{escape(name)}</th>"
        for name in heads
    )
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _cell(cell: Cell) -> str:
    text, kind = (cell, "") if isinstance(cell, str) else cell
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"
