"""A bundle as text for a person, and the part of a passage that answers best."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from shlex import quote

from rolebundle.contracts.bundle import BundleWarning, Fallback, RetrievalBundle, SelectedPassage
from rolebundle.contracts.terms import MAY_BE_ASKED_FOR, REJECTIONS, shown_as
from rolebundle.interfaces.layout import (
    DEFAULT_WIDTH,
    NO_ROLE,
    PLAIN,
    Kind,
    Style,
    columns,
    copyable,
    cut,
    spans,
    wrapped,
)
from rolebundle.retrieval.packet import nearest_lines, use_limits
from rolebundle.retrieval.passage_text import (
    ELLIPSIS,
    MIN_WRAPPED,
    UNDECLARED_TIER,
    best_span,
    caution,
    constraint_line,
    header_above,
    heading_of_table,
    heading_path,
    one_line,
    passage_notes,
    passage_place,
    shown_name,
    trust_and_dates,
    words_searched,
)
from rolebundle.storage.corpus import joined
from rolebundle.storage.lexical_index import Token, tokens
from rolebundle.text.forms import index_tokens, word_forms
from rolebundle.text.languages import latin_language, likely_languages, non_latin_language
from rolebundle.text.words import age, counted

_BAR_WIDTH = 10
_MAX_EXAMPLES = 3
_REASON_CHARS = 160
_LONG = 1_000
_INDENT = " " * 5
_TRUST: Mapping[str, Kind] = {
    "strong": "good", "mixed": "caution", "weak": "rejected", "undeclared": "caution",
}  # fmt: skip
_EXCERPT_CHARS = 240
_MAX_ROWS, _ROW_CHARS = 2, 120
"""How many lines of what length are added to an excerpt, because they have other words of the
query."""
_ROW = re.compile(
    r"\||[,;\t]\S[^,;\t\n]*[,;\t]\S|\d [^\d\n]*\d\S* [^\d\n]*\d|\n\s*(?:[-*+•#]+|\d+\W) "
)
"""In two lines, of which one is no prose: a border, values without a space between them, or three
numbers; before a heading or the item of a list, its mark."""
_UNDECLARED = f"{UNDECLARED_TIER} trust, "
_FIGURES = re.compile(r"\Ahas .*the task's .*|:? ?cosine -?[\d.]+, closeness [\d.]+")
_CODE = re.compile(rf" ({'|'.join(REJECTIONS)})\b")
"""The figures of a reason, and the codes in a sentence, which are for those who ask to explain."""
_USE = {"continue": "", "warn": "use with care", "degrade": "use with care", "block": "no answer"}
_BORDER = " |"
"""What encloses a row of a table."""
_HEADING_MARKS = "#=*: "
_SEPARATES = re.compile(r"[\W_]*+|(?:`{3,}+|~{3,}+)[\w+-]*+|\[[^\]]++\]:\s++\S++")
"""A line without a word, such as the dashes of a table or the underline of a heading; the
beginning of a fence; the address of a link."""

Match = tuple[int, int, int]
"""A term in a text: its first character, the one after its last, and the term's number."""


def text(
    bundle: RetrievalBundle,
    width: int = DEFAULT_WIDTH,
    style: Style = PLAIN,
    *,
    explain: bool = False,
    advice: Callable[[str], str] = str,
) -> str:
    """The bundle for a person: passages, what was rejected, how far to trust it, and warnings.

    Args:
        bundle: what was retrieved.
        width: columns of the terminal. Only a locator, an id or a command may be wider, so that
            it can be copied.
        style: the colours.
        explain: also show scores, codes, states and figures, as they are in the JSON.
        advice: makes what is shown of a message, so that the commands in it name the corpus.
    """
    bundle = reworded(
        bundle, advice if explain else lambda message: in_plain_words(advice(message))
    )
    role = bundle.role_id or NO_ROLE
    lines = [style("heading", cut(one_line(f"{role} · {bundle.query.task_text}", _LONG), width))]
    before = [*filter(None, [caution(bundle)])]
    before += _messages(bundle, shown_as("note"), explain=explain)
    before += [f"Decision {constraint_line(dict(item))}" for item in bundle.constraints or ()]
    lines += [style("caution", line) for note in before for line in wrapped(note, width)]
    lines.append("")
    if not bundle.selected:
        verdict = bundle.fallback.verdict if bundle.fallback and explain else None
        lines += [f"No passage was found{f' ({verdict})' if verdict else ''}."]
        lines += [*nearest_lines(bundle), ""]
    terms = Terms(bundle.query.lexical_query, bundle.query.task_text)
    for chunk in bundle.selected:
        lines += [*passage(chunk, terms, width, style, explain=explain), ""]
    for limit in use_limits(bundle.selected):
        lines += [style("caution", line) for line in wrapped(limit, width)]
    lines += [*_not_selected(bundle, width, style, explain=explain), ""]
    for document in bundle.kept_back or ():
        lines += wrapped(
            f"kept back: {shown_name(document.document_id, 0)}: quarantined: "
            f"{', '.join(document.kinds)};",
            width,
        )
        name = copyable(quote(document.document_id))
        lines.append(_INDENT + advice(f"`rolebundle corpus quarantine show {name}`").strip("`"))
    lines += [
        f"approved by {one_line(approval.approved_by, _REASON_CHARS)} for {approval.action}: "
        f"{counted(len(approval.chunk_ids), 'passage')}"
        for approval in bundle.approvals or ()
    ]
    lines += _postures(bundle, width, style, explain=explain)
    lines += _warnings(bundle, width, explain=explain)
    if from_replica := replica_note(bundle):
        lines += wrapped(from_replica, width)
    candidates = counted(bundle.summary.total_candidates, "candidate")
    lines.append(
        f"{bundle.summary.selected_count} of {candidates} in {bundle.diagnostics.latency_ms:.0f} ms"
    )
    return "\n".join(lines)


def reworded(bundle: RetrievalBundle, change: Callable[[str], str]) -> RetrievalBundle:
    """The bundle with its messages changed."""
    warnings = [BundleWarning(code=w.code, message=change(w.message)) for w in bundle.warnings]
    if fallback := bundle.fallback:
        fallback = fallback.model_copy(update={"message": change(fallback.message)})
    return bundle.model_copy(update={"warnings": warnings, "fallback": fallback})


def in_plain_words(message: str) -> str:
    """A message without codes, and without what an ingest has said once."""
    words: dict[str, str] = {code: row.plain for code, row in REJECTIONS.items()}
    message = _CODE.sub(lambda found: f" × {words[found[1]]}", message)
    message = message.replace("semantic lane", "search by meaning")
    return message.removesuffix("; no document of the corpus declares trust")


def replica_note(bundle: RetrievalBundle) -> str:
    """Of whom the corpus is a replica, and how old it is; empty if it is none."""
    replica = bundle.corpus.replica if bundle.corpus else None
    if replica is None:
        return ""
    return (
        f"from a replica of {one_line(replica.publisher, _REASON_CHARS)}, generation "
        f"{replica.generation}, published {age(replica.age_hours)} ago"
    )


def passage(
    chunk: SelectedPassage, terms: Terms, width: int, style: Style, *, explain: bool
) -> Iterator[str]:
    """The lines of a selected passage: rank and place, title, reasons, notes, and an excerpt.

    A score compares a passage with the best one found, which may be irrelevant; so only those who
    ask to explain see it.
    """
    score = f"{chunk.scores.final:.3f} {score_bar(chunk.scores.final)}  " if explain else ""
    first = cut(f"{chunk.rank or 0:>3}  {score}{shown_name(chunk.source_id, 0)}", width)
    values = chunk.model_dump()
    place = passage_place(values)
    if columns(first) + 2 + columns(place) <= width:
        yield f"{first}  {style('locator', place)}"
    else:
        # It is never cut or broken, because a person copies it.
        yield from (first, f"{_INDENT}{style('locator', place)}")
    length = width - len(_INDENT) - 2
    above, below = [chunk.title or "", *chunk.headings], heading_of_table(dict(chunk))
    rows = excerpt(chunk.content, terms, above, below)
    # The header row of a table stands above its rows.
    headings = chunk.headings[: -1 if below and [below] == rows[:1] else None]
    title = heading_path(chunk.title or chunk.document_id, headings, length)
    yield f"{_INDENT}{style('heading', title)}"
    given = chunk.reasons_selected
    if not explain:
        # Undeclared trust is a property of the corpus, and the date is shown.
        given = [_FIGURES.sub("", text) for text in given if not text.startswith(_UNDECLARED)]
    reasons = "; ".join(one_line(reason, _LONG) for reason in given if reason)
    # The reasons have its trust.
    dates = [text for text in trust_and_dates(values["metadata"]) if not text.startswith("trust: ")]
    about = " · ".join([*dates, f"why: {reasons}"] if reasons else dates)
    yield from (style("minor", line) for line in wrapped(about, width, _INDENT))
    for note in passage_notes({**values, "allowed_actions": None}):  # They stand once, at the end.
        yield from (style("caution", line) for line in wrapped(note, width, _INDENT))
    # A bar is before each line, so that none looks like a label of the passage.
    indent = f"{_INDENT}│ "
    for part in rows:
        highlighted = covered(terms.find(part))
        for start, end in spans(part, width - len(indent), break_words=True):
            inside = [(max(a, start), min(b, end)) for a, b in highlighted if a < end and b > start]
            yield indent + style.parts(part[start:end], [(a - start, b - start) for a, b in inside])


def score_bar(score: float) -> str:
    """A score in [0, 1] as a bar."""
    filled = round(min(1.0, max(0.0, score)) * _BAR_WIDTH)
    return "█" * filled + "░" * (_BAR_WIDTH - filled)


def _postures(bundle: RetrievalBundle, width: int, style: Style, *, explain: bool) -> Iterator[str]:
    provenance = bundle.provenance
    fallback = _fallback(bundle.fallback, explain=explain) if bundle.fallback else ""
    if not bundle.selected and fallback:
        # Without passages there is nothing to trust, and nothing that has an age.
        yield from wrapped(fallback, width)
        return
    trust, fresh = provenance.trust_posture, provenance.freshness_posture
    postures = [f"trust {trust}"] if explain or trust != "undeclared" else []
    postures += [f"freshness {fresh}"] if explain else []
    if line := " · ".join(filter(None, [*postures, fallback])):
        first, *further_lines = wrapped(line, width)
        yield first.replace(f"trust {trust}", style(_TRUST[trust], f"trust {trust}"), 1)
        yield from further_lines


def _warnings(bundle: RetrievalBundle, width: int, *, explain: bool) -> Iterator[str]:
    """What is for the owner; to explain, with the codes of all that is not above the passages."""
    # Without a role, the state `no_overlay` says the same.
    has_role = bool(bundle.role_id)
    codes = [w.code for w in bundle.warnings if has_role or w.code != "ONLY_SHARED_CORPUS"]
    others = [code for code in codes if code not in shown_as("owner", "note")]
    if others and explain:
        yield from wrapped(f"! {', '.join(others)}", width)
    for message in _messages(bundle, {*codes} & shown_as("owner"), explain=explain):
        yield from wrapped(f"! {message}", width)


def _messages(bundle: RetrievalBundle, codes: Collection[str], *, explain: bool) -> Iterator[str]:
    """The messages of these warnings; to explain, with their codes."""
    for warning in bundle.warnings:
        if warning.code in codes:
            code = f"{warning.code}: " if explain else ""
            yield f"{code}{one_line(warning.message, _LONG)}"


def _fallback(fallback: Fallback, *, explain: bool) -> str:
    # Any other action has its message above the passages.
    message = one_line(fallback.message, _LONG) if fallback.action == "continue" else ""
    # Something that is no state may limit the answer; then it is not healthy.
    is_limited = fallback.action != "continue"
    states = [s for s in fallback.states or [fallback.state] if not (is_limited and s == "healthy")]
    if not explain:
        plain = [s.replace("_", " ") for s in states if s not in ("no_overlay", "healthy")]
        return ", ".join(filter(None, [*plain, _USE[fallback.action]]))
    message = f": {message}" if message else ""
    return f"{' + '.join(states)}, {fallback.action}{message}".removeprefix(", ")


def _not_selected(
    bundle: RetrievalBundle, width: int, style: Style, *, explain: bool
) -> Iterator[str]:
    """What ranked lower in one line, and what was rejected with examples."""
    counts = bundle.rejected_summary
    plain = {code: f"{n} × {REJECTIONS[code].plain}" for code, n in counts.items()}
    lower = [
        f"{count} {code}" if explain else plain[code]
        for code, count in counts.items()
        if code in MAY_BE_ASKED_FOR
    ]
    rejected = {code: count for code, count in counts.items() if code not in MAY_BE_ASKED_FOR}
    if lower:
        yield from wrapped(f"ranked lower: {', '.join(lower)}", width)
    yield f"rejected: {sum(rejected.values()) or 'none'}"
    for code, count in rejected.items():
        if explain:
            yield f"  {style('rejected', f'{code:<18}')} {count:>4}"
        else:
            yield from (style("rejected", line) for line in wrapped(plain[code], width, "  "))
        listed = [rejection for rejection in bundle.rejected if rejection.reason == code]
        listed = listed[:_MAX_EXAMPLES]
        for note, rejections in groupby(listed, key=lambda rejection: rejection.notes):
            yield from wrapped(one_line(note or "no note", _LONG), width, _INDENT)
            for rejection in rejections:
                # Not cut, because a person copies it.
                yield f"{_INDENT}  {style('locator', shown_name(rejection.chunk_id))}"
        if 0 < len(listed) < count:
            yield f"{_INDENT}and {count - len(listed)} more"


class Terms:
    """The terms of a query, ready to be found in texts.

    Args:
        shown_terms: see :func:`words_searched`.
        task: their text, which tells the languages of the stems.
    """

    def __init__(self, shown_terms: Sequence[str], task: str) -> None:
        self.words = frozenset(words_searched(shown_terms, task))
        """The single words, casefolded."""
        self._phrases: dict[str, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
        self._forms: dict[str, list[int]] = defaultdict(list)
        for number, term in enumerate(shown_terms):
            if term.startswith("~"):
                self._forms[_indexed(term[1:])].append(number)
            elif phrase := tuple(indexed for _, _, indexed in tokens(term)):
                self._phrases[phrase[0]].append((phrase, number))
        self._languages = tuple(likely_languages(task)) if self._forms else ()

    def find(self, text: str) -> list[Match]:
        """Every occurrence of every term, in the order of their first characters."""
        forms = self._other_forms(text) if self._forms else ()
        return sorted([*self._words(tokens(text)), *forms])

    def _words(self, text: Sequence[Token]) -> Iterator[Match]:
        for position, (start, _, indexed) in enumerate(text):
            for phrase, number in self._phrases.get(indexed, ()):
                run = text[position : position + len(phrase)]
                if tuple(part for _, _, part in run) == phrase:
                    yield start, run[-1][1], number

    def _other_forms(self, text: str) -> Iterator[Match]:
        own = latin_language(text), non_latin_language(text)
        languages = tuple(dict.fromkeys((*self._languages, *filter(None, own))))
        for start, end, forms in word_forms(text, languages):
            for stem in forms.stems:
                for number in self._forms.get(_indexed(stem), ()):
                    yield start, end, number
            for part in {*forms.pairs, *forms.letters}:
                for number in self._forms.get(_indexed(part), ()):
                    for place in re.finditer(re.escape(part), text[start:end]):
                        yield start + place.start(), start + place.end(), number


@lru_cache(maxsize=4_096)
def _indexed(form: str) -> str:
    """A form as the index has it, which folds it like a word."""
    return " ".join(indexed for _, _, indexed in tokens(index_tokens(form)))


def covered(matches: Sequence[Match]) -> list[tuple[int, int]]:
    """The parts of a text that matches cover, in order and without overlaps."""
    return joined(((start, end) for start, end, _ in matches), 0)


def excerpt(
    content: str, terms: Terms, above: Collection[str], table_below: str | None = None
) -> list[str]:
    """The part of a passage with the most of the query's words, and rows with others of them.

    They are in the order of the passage, with an ellipsis for what is left out before, between and
    after them. A paragraph is one line, and so is each row of a table, item of a list or the like.
    A part of a table stands below the table's header row. Lines that only separate are left out.

    Args:
        content: the passage.
        terms: the query's terms.
        above: title and headings, which are shown above it and not repeated.
        table_below: of a table the innermost heading above it.
    """
    shown_above = {line.strip(_HEADING_MARKS) for line in above}
    lines = [
        line
        for line in content.splitlines()
        if not _SEPARATES.fullmatch(line.strip()) and line.strip(_HEADING_MARKS) not in shown_above
    ]
    text = "".join(
        line + ("\n" if len(line) < MIN_WRAPPED or _ROW.search(f"{line}\n{under}") else " ")
        for line, under in pairwise([*(lines or content.splitlines()), ""])
    )
    rows = [*pairwise([0, *accumulate(map(len, text.splitlines(keepends=True)))])]
    shown = [best_span(text, terms.words, _EXCERPT_CHARS, table_below=table_below)]
    has_border = "|" in text[shown[0][0] :].partition("\n")[0]
    below = "" if table_below is None and has_border else table_below
    if header := header_above(text.split("\n"), text.count("\n", 0, shown[0][0]), below):
        shown += rows[header.start : header.end][:1]
    found = {number for span in shown for *_, number in terms.find(text[slice(*span)])}
    more = list[tuple[int, int]]()
    for start, end in rows:
        row = text[start:end]
        new = {number for *_, number in terms.find(row)} - found
        is_shown = any(first < end and start < last for first, last in shown)
        if new and not is_shown and row.rstrip()[-1:] not in ".!?" and len(more) < _MAX_ROWS:
            first, last = best_span(row, terms.words, _ROW_CHARS)
            more.append((start + first, start + last))
            found |= new
    result, place = header.text if header and not header.end else "", 0
    for start, end in joined(sorted(shown + more), 0):
        mark = f"{ELLIPSIS} " if text[place:start].strip() else ""
        result, place = f"{result}\n{mark}{text[start:end].lstrip(_BORDER)}", end
    result += ELLIPSIS if text[place:].strip() else ""
    return [*filter(None, (one_line(row, _LONG).strip(_BORDER) for row in result.splitlines()))]
