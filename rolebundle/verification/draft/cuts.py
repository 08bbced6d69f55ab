"""What a quote leaves out of the passage's own sentence, and whether that turns the sense. Pure.

1. A word, a compound or a figure is not cut: not "safe" of "unsafe", not "5" of "1.5" or "5 MB".
2. The rest of the sentence has no negation, condition, limit or denial that governs the quote: in
   the same clause before it, right after it, or at the end ("unless …"). The introduction of a
   list ("We never:") stands before its items. A question keeps its question mark.
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
_CONDITIONS = frozenset("if unless except until till lest otherwise assuming supposing".split())
_LATE = frozenset("when whenever once where while".split())
_LIMITS = frozenset(
    "only solely merely just hardly rarely seldom barely scarcely almost nearly some few fewer "
    "less most many several half part partly mostly mainly usually sometimes often may might could "
    "perhaps possibly probably maybe allegedly likely unlikely".split()
)
_BOUNDS = _LIMITS | frozenset(
    "least to than over under about approximately around roughly below above maximum minimum "
    "within minus exceed exceeding every per after before by".split()
)
_DENIED = (
    "reject|refus|refut|disprov|den(?:y|ie)|doubt|prevent|prohibit|forb[iao]d|disallow|abandon"
    "|withdr[ae]w|cancel|retract|disput|oppos|avoid|stopp?|fail(?:ed|s)?$|false|untrue|wrong"
    "|incorrect|myth|invalid|impossib|contrary|drop(?:s|ped)?$|lack|instead|unable|against$"
    "|limit|restrict|exce(?:pt|ss)|exclu"
)
_CLAIMED = "claim|alleg|believ|assum|suspect|suppos|fear|hope|propos|consider|suggest"
_DENIAL, _OPINION = re.compile(_DENIED), re.compile(f"{_DENIED}|{_CLAIMED}")
_OPENS_CLAUSE = frozenset("that to of from for whether about the a an any".split())
_ARTICLES = frozenset("of the a an our your its their these those this that to any".split())
_EXCEPTION = re.compile(
    r"\b(?:(?:as|so) long as|other than|apart from|only|but (?:not|only|never)|provid(?:ed|ing)\b"
    r"|in case|subject to|yet to|far from)\b",
    re.IGNORECASE,
)
_NO_NEGATION = re.compile(
    r"\bnot (?:only|just)\b|\bno (?:doubt|matter)\b|\bwhether or not\b|\([^()]*\)|`+[^`]*`+",
    re.IGNORECASE,
)
_CLAUSE_BEFORE = re.compile(
    r".*(?:[;()]|\s[—–-]\s|—"
    r"|,\s*(?:and|but|so|yet|because|since|whereas|as|which|who|although|though)\b(?=[^,]*$))",
    re.IGNORECASE | re.DOTALL,
)
_CLAUSE_AFTER = re.compile(r";|,\s*(?:and|so|which|who|whereas)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ITEM = re.compile(r"[ \t]*(?:[-*•+]|\d+[.)])[ \t]+")
_BEFORE = re.compile(r"[^\W_](?:[-‐‑/_'’])?\Z|\d[.,:]\Z")
_SIGN = re.compile(r"(?:[±$€£¥<≤≥~≈] ?|[-−+#]|\d[-–/.,:])\Z")
_AFTER = re.compile(r"[-‐‑/_'’]?[^\W_]")
_FIGURE_AFTER = re.compile(
    r"[.,:/–-]\d|\s?[%‰°′″'\"]|[²³⁰-⁹₀-₉]|\s+(?:or (?:more|less|fewer|later|earlier|higher|lower)"
    r"|at (?:most|least)|and (?:above|below)|maximum|minimum|per)\b|\s+to [$€£]?\d",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?<![\w.,])(?:\d[\d.,]*|[a-zA-Z]+)$")
_COUNTED = re.compile(r"[^\S\n]?\n?[^\S\n]*-?([^\W\d_]+)")


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
    closed = _CONDITIONS | _LATE | _LIMITS | {"but", "within", "least"}
    return denies(word) or word in closed or _DENIAL.match(word) is not None


def cut_problem(
    content: str, parts: Sequence[tuple[int, int]], around: tuple[str, str] = ("", "")
) -> str:
    """Why a quote of these parts of a passage's text turns the sense, or nothing.

    What the draft itself denies, or makes a condition, ``around`` the quote is not left out.
    """
    problems = [_cut_word(content, *part) for part in parts]
    for (_, end), (start, _) in pairwise(parts):
        problems.append(_gap(content, end, start))
    problems.append(
        _cut_sentence(content, parts[0][0], parts[-1][1], *({*words_of(said)} for said in around))
    )
    return next(filter(None, problems), "")


def _cut_word(content: str, start: int, end: int) -> str:
    before, after = content[max(0, start - 4) : start], content[end : end + 20]
    first, last = content[start], content[end - 1]
    is_cut: object = (
        (first.isalnum() and _BEFORE.search(before))
        or (last.isalnum() and _AFTER.match(after))
        or (
            first in "-‐‑/_'’.,:"
            and before[-1:].isalnum()
            and content[start + 1 : start + 2].isalnum()
        )
    )
    if not is_cut and first.isdigit():
        is_cut = _SIGN.search(before)
    if (
        not is_cut
        and last.isalnum()
        and any(map(is_figure, words_of(content[max(start, end - 40) : end])[-2:]))
    ):
        is_cut = _FIGURE_AFTER.match(after) or _counts_what_follows(content, start, end)
    around = _excerpt(content[max(0, start - 20) : end + 20])
    return f"The quote cuts a word or a figure of the passage: “{around}”." if is_cut else ""


def _counts_what_follows(content: str, start: int, end: int) -> bool:
    number, noun = _COUNT.search(content, max(start, end - 40), end), _COUNTED.match(content, end)
    if not number or not noun or not is_figure(number[0].lower()) or number[0].lower() == "one":
        return False
    return noun[1] in ("am", "May") or noun[1].lower() not in ENGLISH


def _cut_sentence(
    content: str, start: int, end: int, said_before: set[str], said_after: set[str]
) -> str:
    starts = sentence_starts(content)
    first = starts[bisect_right(starts, start) - 1]
    last = [*starts, len(content)][bisect_left(starts, end)]
    item = _ITEM.match(content, first)
    before = content[first:start]
    after, quoted = content[end:last], words_of(content[start:end])
    found = _governs_before(before, is_figure(quoted[0]) if quoted else False)
    if item:
        introduction = words_of(_introduction(content, first))
        found += [word for word in introduction if denies(word) or word == "only"]
    if word := next((word for word in found if not _restated(word, said_before, said_after)), ""):
        return f"The passage says “{word}” before it: “{_excerpt(before[-80:])} …”."
    if "?" in after and words_of(content[first:start]):
        return "The passage asks this: its question mark is left out."
    following = after if after.strip(" .!*_\"')”’\n") else content[last : last + 80]
    exception = re.match(
        r"\W*(?:except|unless|excluding|but not|only (?:if|when))\b", following, re.I
    )
    is_said = not (said_before | said_after).isdisjoint(_CONDITIONS | {"only", "when"})
    is_said = is_said or any(map(denies, said_after))
    if not is_said and (exception or (len(quoted) > 2 and _governs_after(after))):
        return f"The passage continues: “… {_excerpt(following)}”."
    return ""


def _introduction(content: str, first: int) -> str:
    """The lead-in or heading of the list that the item at ``first`` is in."""
    for line in reversed(content[max(0, first - _MAX_GAP) : first].rstrip().split("\n")):
        text = line.strip(" *_")
        if text and not _ITEM.match(line):
            return f"{text.strip('#: ')} " if text.startswith("#") or text.endswith(":") else ""
    return ""


def _restated(word: str, said: set[str], said_after: set[str]) -> bool:
    """Whether the draft's own words have a word of the same class."""
    if word in _CONDITIONS:
        conditions = _CONDITIONS | _LATE | {"with", "provided", "starting", "for"}
        return not (said | said_after).isdisjoint(conditions)
    if denies(word) or word == "only" or _OPINION.match(word):
        return any(denies(own) or own in ("only", "just") or _OPINION.match(own) for own in said)
    return not said.isdisjoint(_LIMITS)


def _governs_before(before: str, is_before_figure: bool) -> list[str]:
    """The words before a quote that turn it."""
    plain = _NO_NEGATION.sub(" ", before)
    clause = _CLAUSE_BEFORE.sub("", plain)
    words, sentence = words_of(clause), words_of(plain[plain.rfind(";") + 1 :])
    found = [word for word in words if denies(word) or word == "only"]
    found += [word for word in sentence if word in _CONDITIONS]
    found += _EXCEPTION.findall(clause)
    if words and words[-1] in _OPENS_CLAUSE:
        found += filter(_OPINION.match, words[-5:])
    while words and words[-1] in _ARTICLES:
        words.pop()
    found += [word for word in words[-1:] if word in _LIMITS or _DENIAL.match(word)]
    if is_before_figure:
        found += [word for word in words_of(clause)[-2:] if word in _BOUNDS]
    return found


def _governs_after(after: str) -> bool:
    """Whether what follows a quote in its sentence turns it."""
    remark = re.match(r"\s*\(([^()]*)\)", after)
    if remark and any(map(turns, words_of(remark[1]))):
        return True
    clause = _CLAUSE_AFTER.split(_NO_NEGATION.sub(" ", after))[0]
    head, _, contrast = clause.lower().partition("but ")
    words, near = words_of(head), words_of(head)[:4]
    return (
        any(word in _CONDITIONS for word in words)
        or words[:1] in (["when"], ["whenever"], ["once"])
        or _EXCEPTION.search(clause) is not None
        or any(denies(word) for word in near[:3])
        or any(map(_DENIAL.match, near))
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
    if within:
        is_sound = not words_of(content[within[-1] : end])
    else:
        is_sound = (is_remark or is_aside) and len(words) <= _MAX_ASIDE
    turned = (
        denies(w) or w in _CONDITIONS or w == "only" if is_remark else turns(w) for w in words
    )
    is_list = re.search(r"(?:^|\n)[ \t]*#|:[*_]*[ \t]*(?:\n|$)", gap)
    if not words or len(gap) > _MAX_GAP or any(turned) or _EXCEPTION.search(gap) or is_list:
        is_sound = False
    return "" if is_sound else f"The ellipsis leaves out “{_excerpt(gap)}”."


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:120]
