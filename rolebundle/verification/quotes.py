"""Whether a quote is what the passages say, and what it leaves out of their sentences. Pure.

A quote is ``exact``, ``normalized`` (the same but for typography), ``misattributed`` (it stands in
a passage that its sentence does not cite), ``near`` (it differs, or is cut so that the sense
turns) or ``absent``. Only the first two pass. A quote of one or two words without a figure or a
negation is a term if its sentence cites nothing: it is looked for, but does not fail.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.fuzz import partial_ratio_alignment

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.verification import FindingCode
from rolebundle.text.languages import is_unspaced
from rolebundle.text.stop_words import ENGLISH_STOP_WORDS, NEGATIONS, NUMBER_WORDS
from rolebundle.text.tokens import Tokens, tokens_of
from rolebundle.text.words import WORD, stem
from rolebundle.verification.draft import sentence_starts

MIN_SIMILARITY = 75.0
"""Percent of the characters that must agree for ``near``."""
_MAX_COMPARED = 1_000  # Characters of a quote that is aligned.
_MAX_ALIGNED = 3  # Passages that a quote is aligned with.
_MAX_PLACES = 12  # Of a quote in one passage.
_MAX_PARTS = 8
_TERM_WORDS = 2

_ELLIPSIS = re.compile(r"\[ ?(?:\.{3,4}|…) ?\]|\( ?(?:\.{3,4}|…) ?\)|\.{3,4}|…|\. \. \.")
_LETTER_IN_BRACKETS = re.compile(r"\[(\w)\](?=\w)")
_LINE_MARKS = re.compile(r"(?<=[\r\n])[ \t]*(?:>[ \t]?)+")


class QuoteResult(NamedTuple):
    """What was found out about a quote."""

    code: FindingCode
    passage: Passage | None = None
    true_text: str = ""
    note: str = ""


def check_quote(
    text: str,
    passages: Sequence[Passage],
    cited: Sequence[Passage],
    around: tuple[str, str] = ("", ""),
) -> QuoteResult:
    """Look for a quote in passages; in the cited ones first.

    ``around``: what its sentence says before and after it.
    """
    if len(text) > _MAX_COMPARED + 2 * max((len(p.content) for p in passages), default=0):
        return QuoteResult("absent", note="The quote is longer than every passage.")
    others = [passage for passage in passages if passage not in cited]
    readings = _readings(_LINE_MARKS.sub("", text))
    doubtful: QuoteResult | None = None
    code: FindingCode
    for passage in (*cited, *others):
        for parts, problem in _places(readings, passage.content, around):
            true_text = passage.content[parts[0][0] : parts[-1][1]]
            if problem:
                code, note = problem
                doubtful = doubtful or QuoteResult(code, passage, true_text, note)
                continue
            if cited and passage not in cited:
                note = f"The sentence cites {cited[0].locator}; the quote is in {passage.locator}."
                return doubtful or QuoteResult("misattributed", passage, true_text, note)
            code = "exact" if true_text == text else "normalized"
            return QuoteResult(code, passage, true_text)
    if doubtful or is_term(text):
        return doubtful or QuoteResult("absent")
    return _nearest(text, (*cited, *others))


def is_term(text: str) -> bool:
    """Whether a quote is so short that it may be a name or an expression of the author's."""
    words = words_of(text)
    if is_unspaced(text):
        return len(text) <= 2 * _TERM_WORDS
    return len(words) <= _TERM_WORDS and not any(is_figure(word) or denies(word) for word in words)


# -- reading ---------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _readings(text: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The ways to read a quote: as it is, and as parts between ellipses."""
    whole = _LETTER_IN_BRACKETS.sub(r"\1", text)
    parts = [part for part in _ELLIPSIS.split(whole) if words_of(part)]
    readings = [[_literal(whole)]]
    if 1 < len(parts) <= _MAX_PARTS or (parts and parts != [whole]):
        readings.append([_literal(part) for part in parts])
    return tuple(tuple(map(re.compile, parts)) for parts in readings if all(parts))


def _literal(text: str) -> str:
    """A pattern of whole tokens. A comma or full stop at the end of a text may be the draft's."""
    tokens = tokens_of(text).line.split()
    if not tokens:
        return ""
    end = f"(?:{re.escape(tokens.pop())} )?" if tokens[-1] in (".", ",") else ""
    pattern = "".join(f"{re.escape(token)} " for token in tokens)
    if pattern and tokens[0][0].lower() != tokens[0][0].upper():
        first = tokens[0][0]
        pattern = f"[{first.lower()}{first.upper()}]" + pattern[1:]
    return f"(?<= ){pattern}{end}" if pattern else ""


# -- places ----------------------------------------------------------------------------------------


def _places(
    readings: Sequence[Sequence[re.Pattern[str]]], content: str, around: tuple[str, str]
) -> Iterator[tuple[list[tuple[int, int]], Problem | None]]:
    """The places of a quote in a text: the ranges of its parts, and why they do not count."""
    for joins_lines in (False, True):
        tokens = tokens_of(content, joins_lines=joins_lines)
        for patterns in readings:
            at = 0
            for _ in range(_MAX_PLACES):
                first = patterns[0].search(tokens.line, at)
                if first is None:
                    break
                at = first.start() + 1
                found = [first]
                for pattern in patterns[1:]:
                    following = pattern.search(tokens.line, found[-1].end())
                    found += [following] if following else []
                if len(found) == len(patterns):
                    parts = [_source(tokens, *match.span()) for match in found]
                    yield parts, cut_problem(content, parts, around)


def _source(tokens: Tokens, start: int, end: int) -> tuple[int, int]:
    """The range of the text that a range of the line of tokens stands for."""
    first = max(0, bisect_right(tokens.starts, start) - 1)
    last = max(0, bisect_right(tokens.starts, max(start, end - 2)) - 1)
    return tokens.spans[first][0], tokens.spans[last][1]


def _nearest(text: str, passages: Sequence[Passage]) -> QuoteResult:
    """The passage with the most similar text."""
    quoted = tokens_of(text).line.strip()[:_MAX_COMPARED]
    words = set(quoted.lower().split())
    ranked = sorted(
        passages, key=lambda p: -len(words.intersection(tokens_of(p.content).line.lower().split()))
    )
    score, result = MIN_SIMILARITY, QuoteResult("absent", note="No passage has it.")
    for passage in ranked[:_MAX_ALIGNED]:
        tokens = tokens_of(passage.content)
        found = partial_ratio_alignment(quoted, tokens.line, score_cutoff=score)
        if found and found.score > score and found.dest_start < found.dest_end:
            start, end = _source(tokens, found.dest_start, found.dest_end)
            true_text = passage.content[start:end]
            note = _difference(quoted, tokens_of(true_text).line)
            score, result = found.score, QuoteResult("near", passage, true_text, note)
    return result


def _difference(quoted: str, true_text: str) -> str:
    """What differs between a quote and the passage."""
    words, true_words = quoted.split(), true_text.split()
    changes = []
    matcher = SequenceMatcher(None, words, true_words, autojunk=False)
    for operation, first, last, true_first, true_last in matcher.get_opcodes():
        if operation != "equal":
            new, old = words[first:last], true_words[true_first:true_last]
            changes.append(
                f"the passage says “{' '.join(old)[:120]}”, the quote “{' '.join(new)[:120]}”"
            )
    return "; ".join(changes[:4])


# -- cuts ------------------------------------------------------------------------------------------
#
# 1. A word, a compound or a figure is not cut: not "safe" of "unsafe", not "5" of "1.5" or "5 MB".
# 2. No negation, denial, condition or "only" governs the quote from the rest of its sentence: from
#    the same clause before it, right after it, or at the end ("unless …"). The introduction of a
#    list ("We never:") stands before its items. A question keeps its question mark. What the draft
#    itself says around the quote is not left out.
# 3. An ellipsis leaves out an aside between commas, dashes or parentheses, whole sentences, or the
#    end of a sentence and whole sentences; never a word of the second rule.
# The words of the second rule are English. "If" is none of them, because honest quotes often begin
# after it.

_MAX_GAP = 400  # Characters that an ellipsis may leave out.
_REACH = 40  # Characters from the quote in which an exception governs it.
_NEAR, _NEXT = 5, 3  # Words before and after a quote in which a denial governs it.
_CONDITIONS = frozenset("unless except until till lest otherwise assuming supposing".split())
_CONDITIONAL = _CONDITIONS | frozenset(
    "if when whenever once where while with for provided".split()
)
_LIMITS = frozenset("few most almost nearly less least within".split())
_TURNING = _CONDITIONS | _LIMITS | frozenset("if when only may might limit limits limited".split())
_DENIED = re.compile(
    "reject|refus|den(?:y|ie)|doubt|prevent|prohibit|forb[iao]d|abandon|cancel|avoid|stop|fail|false"
    "|wrong|incorrect|invalid|impossib|instead|unable|claim|alleg"
)
_EXCEPTION = re.compile(
    r"\b(?:only|but (?:not|only|never)|(?:all|any|every|no)\w* but|yet to|far from)\b",
    re.IGNORECASE,
)
# What limits a quote: after it in its clause, before it, or at the beginning of the next sentence.
_LIMIT = re.compile(
    r"\b(?:if|but|though|although|however|unless|except|only|until|provid(?:ed|ing)|as long as"
    r"|so long as|other than|apart from|in case|subject to|within reason|up to|condition|limit"
    r"|maximum|minimum|at (?:most|least)|no \w+ than|(?:consent|permission|approval)|trial"
    r"|temporar\w+|provisional\w*|for now)\b|\((?=[^()]*\b(?:not|may)\b)"
)
# A phrase of the same clause: when, where, for whom or how it holds, and what it excludes.
_PHRASE = re.compile(
    r"(?:[\s*_`]*(?:or|with(?:out)?|for(?! (?:example|instance))|on|in(?! (?:addition|fact|order))"
    r"|at|between|during|before|after|from|under|inside|outside|within|when\w*|where\w*|while)"
    r"|\W*(?:and|or|but) (?:not|never|only|no))\b[^,;:.(]*"
)
_CONCESSION = re.compile(r"\W*(?:while|although|though|even if)\b", re.IGNORECASE)
_NEXT_LIMIT = re.compile(
    r"\W*(?:(?:this|that|these|those) (?:does|do|is|are)(?: not|n't|n’t)"
    r"|(?:this|that|these|those|it|they) (?:only|(?:is|are) only|appl(?:y|ies) only)"
    r"|but|except\w*|unless|(?:please )?(?:be aware|note)|[^,;:.]*\b(?:capped|limited|waived)"
    r"|[^;:.]*\bhowever)\b",
    re.IGNORECASE,
)
_STOP = re.compile(r"[.!][\"')\]”’*_`]*(?=\s)")
_JOINS = frozenset("and but so yet because since whereas as which who although though".split())
_UP_TO = re.compile(r"\bup to\W*$", re.IGNORECASE)
_NO_NEGATION = re.compile(
    r"\bnot (?:only|just)\b|\bno (?:doubt|matter)\b|\bwhether or not\b|\([^()]*\)|`+[^`]*`+",
    re.IGNORECASE,
)
_JOINT = (
    r"(?:[;()]|\s[—–-]\s|—"
    r"|,\s*(?:and|but|so|yet|because|since|whereas|as|which|who|although|though)\b"
)
_CLAUSE_BEFORE = re.compile(rf".*{_JOINT}(?=[^,]*$))", re.IGNORECASE | re.DOTALL)
_CLAUSE_AFTER = re.compile(r";|,\s*(?:and|so|which|who|whereas)\b", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*(?:[-*•+]|\d+[.)])[ \t]+")
_ASIDE = re.compile(r"[^,—–(]*(?:,[^,;:()]*,|—[^—;:()]*—|–[^–;:()]*–|\([^()]*\))\s*\w?")
_QUOTED = ("'", '"', "“", "‘", "`")
_QUOTES_END = ("'", '"', "”", "’", "`")
_CUT_BEFORE = re.compile(r"[^\W_](?:[-‐‑/_'’])?\Z|\d[.,:]\Z")
_SIGN_BEFORE = re.compile(r"(?:[±$€£¥<≤≥~≈] ?|[-−+#]|\d[-–/.,:])\Z")
_CUT_AFTER = re.compile(r"[-‐‑/_'’]?[^\W_]")
_FIGURE_AFTER = re.compile(
    r"[.,:/–-]\d|\s?[%‰°′″'\"]|[²³⁰-⁹₀-₉]|\s+to [$€£]?\d"
    r"|\s+(?:or (?:more|less|fewer|later|earlier)|at (?:most|least)|maximum|minimum|per)\b",
    re.IGNORECASE,
)
_NOUN_AFTER = re.compile(r"\s?-?([^\W\d_]+)")


def words_of(text: str) -> list[str]:
    """The words of a text in lowercase, with straight apostrophes."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def denies(word: str) -> bool:
    """Whether a lowercase word is a negation."""
    return word in NEGATIONS or word.endswith("n't")


def is_figure(word: str) -> bool:
    """Whether a lowercase word is a number."""
    return word in NUMBER_WORDS or any(map(str.isdigit, word))


def turns(word: str) -> bool:
    """Whether a lowercase word denies, limits or sets a condition."""
    return word in _TURNING or denies(word) or _DENIED.match(word) is not None


Problem = tuple[FindingCode, str]


def cut_problem(
    content: str, parts: Sequence[tuple[int, int]], around: tuple[str, str]
) -> Problem | None:
    """Why a quote of these parts of a passage's text turns the sense, or may do so."""
    problems = [_cut_word(content, *part) for part in parts]
    problems += [_gap(content, end, start) for (_, end), (start, _) in pairwise(parts)]
    start, end = parts[0][0], parts[-1][1]
    is_whole = content[start - 1 : start] in _QUOTED and content[end : end + 1] in _QUOTES_END
    if not is_whole:
        problems.append(_cut_sentence(content, start, end, around))
    if problem := next(filter(None, problems), ""):
        return "near", problem
    problem = "" if is_whole else _limit_left_out(content, start, end, around)
    return ("cut_short", problem) if problem else None


def _limit_left_out(content: str, start: int, end: int, around: tuple[str, str]) -> str:
    """What limits a quote in the passage and is not said in the draft, or nothing."""
    starts = sentence_starts(content)
    first = starts[bisect_right(starts, start) - 1]
    at = bisect_left(starts, end)
    last, following = [*starts, len(content), len(content)][at : at + 2]
    rest = _STOP.split(content[end:last])[0]
    phrase = _PHRASE.match(rest)
    limit = (
        _LIMIT.search(_CLAUSE_AFTER.split(rest)[0])
        or phrase
        or _CONCESSION.match(content[first:start])
    )
    text = rest if words_of(rest) else content[last:following]
    limit = limit or (None if words_of(rest) else _NEXT_LIMIT.match(text))
    if limit is None or _is_said(text, around, needs_limit=limit is not phrase):
        return ""
    return f"The passage goes on: “{_excerpt(text)}”."


def _is_said(text: str, around: tuple[str, str], *, needs_limit: bool = True) -> bool:
    """Whether the draft's sentence has two content words of a text, and limits what it quotes."""
    words = words_of(" ".join(around))
    said = {stem(word) for word in words if word not in ENGLISH_STOP_WORDS}
    limits = not needs_limit or any(map(turns, words)) or _LIMIT.search(" ".join(around))
    return bool(limits) and len(said.intersection(map(stem, words_of(text)))) > 1


def _cut_word(content: str, start: int, end: int) -> str:
    before, after = content[max(0, start - 4) : start], content[end : end + 20]
    first, last = content[start : start + 2], content[end - 1]
    is_cut: object = first[0].isalnum() and _CUT_BEFORE.search(before)
    is_cut = is_cut or (first[0].isdigit() and _SIGN_BEFORE.search(before))
    is_cut = is_cut or (last.isalnum() and _CUT_AFTER.match(after))
    ending = words_of(content[max(start, end - 40) : end])[-2:]
    is_whole = before[-1:] in _QUOTED  # Of a quote in the passage; what follows is its mark.
    if not is_cut and not is_whole and last.isalnum() and any(map(is_figure, ending)):
        noun = _NOUN_AFTER.match(after) if is_figure(ending[-1]) and ending[-1] != "one" else None
        is_unit = noun and (noun[1] in ("am", "May") or noun[1].lower() not in ENGLISH_STOP_WORDS)
        is_cut = is_unit or _FIGURE_AFTER.match(after)
    around = _excerpt(content[max(0, start - 20) : end + 20])
    return f"The quote cuts a word or a figure of the passage: “{around}”." if is_cut else ""


def _cut_sentence(content: str, start: int, end: int, around: tuple[str, str]) -> str:
    said = {*words_of(" ".join(around))}
    starts = sentence_starts(content)
    first = starts[bisect_right(starts, start) - 1]
    last = [*starts, len(content)][bisect_left(starts, end)]
    # A sentence may begin with a small letter.
    before, after = content[first:start], _STOP.split(content[end:last])[0]
    if before.rstrip().endswith(",") and {*words_of(content[start:end])[:1]} & _JOINS:
        before = ""  # The quote is a clause of its own.
    found = _turning(before, "" if _is_said(after, around) else after)
    if _ITEM.match(content, first) and not any(map(denies, words_of(content[start:end])[:_NEXT])):
        found += filter(denies, words_of(_introduction(content, first)))
    is_conditional = not _CONDITIONAL.isdisjoint(said)
    is_denied = any(denies(w) or w in ("only", "just") or _DENIED.match(w) for w in said)
    for word in found:
        if not (is_conditional if word in _CONDITIONS else is_denied):
            return f"The passage says “{word}” beside it: “{_excerpt(content[first:last])}”."
    if "?" in after and words_of(before):
        return "The passage asks this: its question mark is left out."
    return ""


def _introduction(content: str, first: int) -> str:
    """The lead-in or heading of the list that the item at ``first`` is in."""
    for line in reversed(content[max(0, first - _MAX_GAP) : first].rstrip().split("\n")):
        text = line.strip(" *_")
        if text and not _ITEM.match(line):
            return text if text.startswith("#") or text.endswith(":") else ""
    return ""


def _turning(before: str, after: str) -> list[str]:
    """The words of a quote's sentence, before and after it, that turn its sense."""
    before, after = (_NO_NEGATION.sub(" ", part) for part in (before, after))
    clause, rest = _CLAUSE_BEFORE.sub("", before), _CLAUSE_AFTER.split(after)[0]
    head, _, contrast = rest.partition("but ")
    # After a comma or "and" the quote is denied by the next word at most.
    reach = 1 if re.match(r"\s*(?:,|and\b)", head) else _NEXT
    near = words_of(clause)[-_NEAR:] + words_of(head)[:reach]
    found = [word for word in near if denies(word) or _DENIED.match(word)]
    found += [word for word in words_of(contrast) if denies(word)]
    found += [word for word in words_of(clause) if word in _CONDITIONS]
    found += [word for word in words_of(clause)[-2:] if word in _LIMITS]
    found += _UP_TO.findall(clause)
    found += _EXCEPTION.findall(f"{clause[-_REACH:]} {rest[:_REACH]}")
    return found


def _gap(content: str, start: int, end: int) -> str:
    """Why an ellipsis must not leave out ``content[start:end]``, or nothing."""
    gap = content[start:end].strip(" \n`*_")
    starts = sentence_starts(content)
    within = starts[bisect_right(starts, start) : bisect_right(starts, end)]
    words = words_of(gap)
    if within:
        is_sound = not words_of(content[within[-1] : end])
    else:
        is_sound = _ASIDE.fullmatch(content[max(0, start - 2) : end + 1]) is not None
    turned = any(map(turns, words)) or _EXCEPTION.search(gap) or re.search(r":\s*(?:\n|$)", gap)
    if is_sound and words and len(gap) <= _MAX_GAP and not turned:
        return ""
    return f"The ellipsis leaves out “{_excerpt(gap)}”."


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:120]
