"""What a quote leaves out of the passage's own sentence, and whether that turns the sense. Pure.

1. A word, a compound or a figure is not cut: not "safe" of "unsafe", not "5" of "1.5" or "5 MB".
2. No negation, denial, condition or "only" governs the quote from the rest of its sentence: from
   the same clause before it, right after it, or at the end ("unless …"). The introduction of a
   list ("We never:") stands before its items. A question keeps its question mark. What the draft
   itself says around the quote is not left out.
3. An ellipsis leaves out an aside between commas, dashes or parentheses, whole sentences, or the
   end of a sentence and whole sentences; never a word of the second rule.

The words of the second rule are English.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from rolebundle.text.stop_words import ENGLISH, NEGATIONS, NUMBER_WORDS
from rolebundle.verification.draft.parse import sentence_starts

_MAX_GAP = 400  # Characters that an ellipsis may leave out.
_MAX_ASIDE = 12  # Words.
_NEAR = 5  # Words before a quote in which a denial governs it.
_CONDITIONS = frozenset("if unless except until till lest otherwise assuming supposing".split())
_CONDITIONAL = _CONDITIONS | frozenset("when whenever once where while with for provided".split())
_LIMITS = frozenset("some few most many several almost nearly less least but within".split())
_DENIED = re.compile(
    "reject|refus|den(?:y|ie)|doubt|prevent|prohibit|forb[iao]d|abandon|cancel|avoid|stop|fail|false"
    "|wrong|incorrect|invalid|impossib|instead|unable|claim|alleg|limit"
)
_EXCEPTION = re.compile(
    r"\b(?:(?:as|so) long as|other than|apart from|only|but (?:not|only|never)"
    r"|provid(?:ed|ing) that\b|in case|subject to|yet to|far from|at (?:most|least)|up to)\b",
    re.IGNORECASE,
)
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
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ITEM = re.compile(r"[ \t]*(?:[-*•+]|\d+[.)])[ \t]+")
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
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def denies(word: str) -> bool:
    """Whether a lowercase word is a negation."""
    return word in NEGATIONS or word.endswith("n't")


def is_figure(word: str) -> bool:
    """Whether a lowercase word is a number."""
    return word in NUMBER_WORDS or any(map(str.isdigit, word))


def turns(word: str) -> bool:
    """Whether a lowercase word denies, limits or sets a condition."""
    closed = word in _CONDITIONS or word in _LIMITS or word in ("when", "only", "may", "might")
    return closed or denies(word) or _DENIED.match(word) is not None


def cut_problem(
    content: str, parts: Sequence[tuple[int, int]], around: tuple[str, str] = ("", "")
) -> str:
    """Why a quote of these parts of a passage's text turns the sense, or nothing."""
    problems = [_cut_word(content, *part) for part in parts]
    problems += [_gap(content, end, start) for (_, end), (start, _) in pairwise(parts)]
    problems.append(_cut_sentence(content, parts[0][0], parts[-1][1], *map(words_of, around)))
    return next(filter(None, problems), "")


def _cut_word(content: str, start: int, end: int) -> str:
    before, after = content[max(0, start - 4) : start], content[end : end + 20]
    first, last = content[start : start + 2], content[end - 1]
    is_joint = first[0] in "-‐‑/_'’.,:" and first[1:].isalnum() and before[-1:].isalnum()
    is_cut: object = is_joint or (first[0].isalnum() and _CUT_BEFORE.search(before))
    is_cut = is_cut or (first[0].isdigit() and _SIGN_BEFORE.search(before))
    is_cut = is_cut or (last.isalnum() and _CUT_AFTER.match(after))
    ending = words_of(content[max(start, end - 40) : end])[-2:]
    if not is_cut and last.isalnum() and any(map(is_figure, ending)):
        noun = _NOUN_AFTER.match(after) if is_figure(ending[-1]) and ending[-1] != "one" else None
        is_unit = noun and (noun[1] in ("am", "May") or noun[1].lower() not in ENGLISH)
        is_cut = is_unit or _FIGURE_AFTER.match(after)
    around = _excerpt(content[max(0, start - 20) : end + 20])
    return f"The quote cuts a word or a figure of the passage: “{around}”." if is_cut else ""


def _cut_sentence(
    content: str, start: int, end: int, said_before: Sequence[str], said_after: Sequence[str]
) -> str:
    starts = sentence_starts(content)
    first = starts[bisect_right(starts, start) - 1]
    last = [*starts, len(content)][bisect_left(starts, end)]
    before, after = content[first:start], content[end:last]
    found = _governing(before)
    if _ITEM.match(content, first):
        found += [w for w in words_of(_introduction(content, first)) if denies(w) or w == "only"]
    is_conditional = not _CONDITIONAL.isdisjoint({*said_before, *said_after})
    is_denied = any(denies(w) or w in ("only", "just") or _DENIED.match(w) for w in said_before)
    for word in found:
        if not (is_conditional if word in _CONDITIONS else is_denied):
            return f"The passage says “{word}” before it: “{_excerpt(before[-80:])} …”."
    if "?" in after and words_of(before):
        return "The passage asks this: its question mark is left out."
    said = {*said_before, *said_after}
    is_said = not said.isdisjoint(_CONDITIONS | {"only", "when"}) or any(map(denies, said_after))
    following = after if words_of(after) else content[last : last + 80]
    taken_back = re.match(r"\W*(?:except|unless|excluding|but not)\b", following, re.IGNORECASE)
    if not is_said and (taken_back or _turned_after(after)):
        return f"The passage continues: “… {_excerpt(following)}”."
    return ""


def _introduction(content: str, first: int) -> str:
    """The lead-in or heading of the list that the item at ``first`` is in."""
    for line in reversed(content[max(0, first - _MAX_GAP) : first].rstrip().split("\n")):
        text = line.strip(" *_")
        if text and not _ITEM.match(line):
            return text if text.startswith("#") or text.endswith(":") else ""
    return ""


def _governing(before: str) -> list[str]:
    """The words before a quote that turn it."""
    plain = _NO_NEGATION.sub(" ", before)
    clause = _CLAUSE_BEFORE.sub("", plain)
    words = words_of(clause)
    found = [word for word in words[-_NEAR:] if denies(word) or _DENIED.match(word)]
    found += [word for word in words_of(plain[plain.rfind(";") + 1 :]) if word in _CONDITIONS]
    found += [word for word in words[-2:] if word in _LIMITS]
    return found + _EXCEPTION.findall(clause)


def _turned_after(after: str) -> bool:
    """Whether what follows a quote in its sentence turns it."""
    remark = re.match(r"\s*\(([^()]*)\)", after)
    clause = _CLAUSE_AFTER.split(_NO_NEGATION.sub(" ", after))[0]
    head, _, contrast = clause.lower().partition("but ")
    words = words_of(head)
    return (
        (remark is not None and any(map(turns, words_of(remark[1]))))
        or any(word in _CONDITIONS for word in words)
        or words[:1] in (["when"], ["whenever"], ["once"])
        or _EXCEPTION.search(clause) is not None
        or any(denies(word) or _DENIED.match(word) for word in words[:3])
        or any(map(denies, words_of(contrast)))
    )


def _gap(content: str, start: int, end: int) -> str:
    """Why an ellipsis must not leave out ``content[start:end]``, or nothing."""
    gap = content[start:end].strip(" \n`*_")
    starts = sentence_starts(content)
    within = starts[bisect_right(starts, start) : bisect_right(starts, end)]
    words = words_of(gap)
    is_remark = gap[:1] == "(" and gap[-1:] == ")" and not set("()") & set(gap[1:-1])
    opening = gap[:1] if gap[:1] in ",—–-" else content[:start].rstrip()[-1:]
    closing = gap[-1:] if gap[-1:] in ",—–-" else content[end:].lstrip()[:1]
    is_aside = (
        opening + closing in (",,", "——", "––", "--")
        and words[:1] not in (["and"], ["or"], ["nor"], ["so"], ["yet"])
        and not set(",;:()") & set(gap.strip(" ,—–-"))
    )
    is_sound = (is_remark or is_aside) and len(words) <= _MAX_ASIDE
    if within:
        is_sound = not words_of(content[within[-1] : end])
    turned = any(denies(w) or w in _CONDITIONS if is_remark else turns(w) for w in words)
    turned = turned or bool(
        _EXCEPTION.search(gap) or re.search(r"(?:^|\n)[ \t]*#|:\s*(?:\n|$)", gap)
    )
    if is_sound and words and len(gap) <= _MAX_GAP and not turned:
        return ""
    return f"The ellipsis leaves out “{_excerpt(gap)}”."


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:120]
