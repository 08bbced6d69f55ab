"""What a quote leaves out of the passage's own sentences, and whether that turns the sense. Pure.

A quote is only a part of what a passage says. It must not be cut so that the reader believes
something else. The rules look at the passage's sentence around the quote:

1. A word, a compound or a figure is not cut: not "safe" of "unsafe", not "5" of "1.5" or "5 MB".
2. Before the quote, in the same clause: no negation and no "only"; close to it no denial ("we
   rejected that"), no limit ("at most", "some of"); in the same sentence no condition ("if").
   A list's introduction ("We never:") counts as before its items.
3. After the quote: no condition or exception in the same clause ("unless"), no "but" with a
   negation, no negation or denial right after it ("is not", "was rejected"), no question mark.
4. An ellipsis leaves out an insertion between commas, dashes or parentheses, or whole sentences, or
   the end of a sentence and whole sentences; never words that deny, limit, or set a condition.

The words are English.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rolebundle.text.stop_words import ENGLISH, NEGATIONS, NUMBER_WORDS
from rolebundle.verification.draft.parse import is_abbreviation

MAX_GAP = 400
"""Characters that an ellipsis may leave out."""
_MAX_INSERTION = 12  # Words.
_MAX_LEAD_IN = 400  # Characters between a list's introduction and the item.

_CONDITIONS = frozenset(
    "if unless except excepting excluding exclusive assuming supposing until "
    "till lest otherwise".split()
)
_LATE_CONDITIONS = frozenset("when whenever once where wherever while".split())
_LIMITS = frozenset(
    "only solely merely just hardly rarely seldom barely scarcely almost nearly some few fewer "
    "less most many several certain half part partly mostly mainly usually sometimes often "
    "typically generally may might could perhaps possibly probably maybe allegedly supposedly "
    "reportedly apparently likely unlikely".split()
)
_BOUNDS = frozenset(
    "most least to than over under about approximately around roughly below above maximum minimum "
    "within minus almost nearly exceed exceeding every per after before by".split()
)
_REPORTING_WORDS = frozenset(
    "says said say claims claimed claim argues argued argue believes believed believe thinks "
    "thought "
    "according reports reported suggests suggested unlike instead rather however although "
    "though despite contrary versus".split()
)
# Words that say that something is not so, or is not done; the end of the word is open.
_DENIALS = re.compile(
    r"(?:reject|refus|refut|disprov|den(?:y|ie)|doubt|prevent|prohibit|forb[iao]d|disallow|abandon"
    r"|withdr[ae]w|cancel|retract|hypothe|disput|oppos|discourag|banned|avoid|stopp?|fail(?:ed|s)?$"
    r"|false|untrue|wrong|incorrect|inaccura|mistake|mistook|myth|invalid|obsolete|impossib|contrary"
    r"|drop(?:s|ped)?$|ceas|lack|instead|unable|unlikely|unsupported|against$)",
)
_LIMITING = re.compile("limit|restrict|condition|caveat|exce(?:pt|ss)|exclu|maxim|minim|scarce")
# With "that" after them: what follows is somebody's opinion, or not done.
_OPINIONS = re.compile(
    "claim|alleg|rumou?r|believ|assum|suspect|specul|imagin|pretend|suppos|fear|hope|wish"
)
_PLANS = frozenset("considered considers proposed proposes proposal suggested suggests".split())
_IS = frozenset("is are was were be been being has have had turned proved seems".split())
_OPENS_CLAUSE = frozenset("that to of from for whether about".split())
_NOT_DONE = re.compile(r"\b(?:yet to(?: be)?|far from(?: being)?|about to)\s*$", re.IGNORECASE)
_ONLY_NEGATION = re.compile(
    r"\bnot (?:only|just|least|to mention)\b|\bno (?:doubt|matter|wonder)\b|\bwhether or not\b",
    re.IGNORECASE,
)
_ARTICLES = frozenset("of the a an our your their its these those this that to any".split())
_ASKS = frozenset(
    "who what when where why how which whose is are was were do does did can could should would "
    "will has have had may must shall".split()
)
_SHORT_QUOTE = 3  # Words.

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_PARENTHESES = re.compile(r"\([^()]*\)|\s[—–-]\s[^—–()]*\s[—–-](?=\s)")
# A comma and "and" begin a new clause, but not in "Nobody, and that is firm, may …".
_CLAUSE_BEFORE = re.compile(
    r".*(?:[;()]|\s[—–-]\s|—"
    r"|,\s*(?:and|but|so|yet|because|since|whereas|which|who|although|though)\b(?=[^,]*$))",
    re.IGNORECASE | re.DOTALL,
)
_CLAUSE_AFTER = re.compile(r";|,\s*(?:and|so|which|who|whereas)\b", re.IGNORECASE)
_EXCEPTIONS = re.compile(
    r"\b(?:(?:as|so) long as|other than|apart from|aside from|save (?:for|in)|only"
    r"|but (?:not|only|never)|provid(?:ed|ing) that|on condition|in case|with the exception"
    r"|subject to)\b|, provid(?:ed|ing)\b",
    re.IGNORECASE,
)
# How the next sentence takes back what was said: an exception that is no sentence, or a denial.
_TAKEN_BACK = re.compile(
    r"\s*(?:(?:except|unless|excluding|but not|only (?:if|when))\b[^,;.!?]{0,80}[.!?]"
    r"|(?:this|that|it|all this) (?:is|was) (?:false|untrue|wrong|incorrect|not true|not the case"
    r"|no longer true|no longer the case|a myth)\s*[.!;:]"
    r"|we (?:\w+ )?(?:rejected|dropped|abandoned|withdrew|cancell?ed) (?:this|that|it)\b)",
    re.IGNORECASE,
)
_EXCEPTION_NEXT = re.compile(r"\W*(?:except|unless|excluding|but not|if)\b", re.IGNORECASE)
_REMARK_NEXT = re.compile(r"\s*\(([^()]*)\)")
_BREAK = re.compile(
    r"[.!?][\"')\]”’»*_`]*\s+(?=[^\sa-z])"
    r"|[。！？]"
    r"|\n[ \t]*\n\s*"
    r"|\n(?=[ \t]*(?:[-*•+|#>]|\d+[.)])[ \t])"
    r"|(?:^|(?<=\n))[ \t]*#[^\n]*\n"
)
_NUMBERED = re.compile(r"(?:^|\n)[ \t]*\d{1,4}$")
_ITEM = re.compile(r"[ \t]*(?:[-*•+]|\d+[.)])[ \t]+")
_HEADING_OR_LEAD_IN = re.compile(r"(?:^|\n)[ \t]*#|:[*_]*[ \t]*(?:\n|$)")
_GLUED_BEFORE = re.compile(r"[^\W_][-‐‑/_'’]$|\d[.,:]$")
_SIGN_BEFORE = re.compile(r"(?:[±$€£¥<≤≥~≈] ?|\S ?> ?|[-−+#]|\d[-–/.,:])$")
_GLUED_AFTER = re.compile(r"[-‐‑/_'’][^\W_]|['’][^\W_]")
_FIGURE_AFTER = re.compile(r"[.,:/–-]\d|\s?[%‰°′″'\"²³]|[⁰-⁹₀-₉]")
_BOUND_AFTER = re.compile(
    r"\s+(?:or (?:more|less|fewer|later|earlier|higher|lower)|at (?:most|least)|maximum|minimum|per"
    r"|and (?:above|below)|to (?=[$€£]?\d))",
    re.IGNORECASE,
)
_JOINTS = "-‐‑/_'’.,:"
_NUMBER_AT_END = re.compile(r"(?<![\w.,])(?:\d[\d.,]*|[a-zA-Z]+)$")
_NEXT_WORD = re.compile(r"[^\S\n]?\n?[^\S\n]*-?([^\W\d_]+)")


def words_of(text: str) -> list[str]:
    """The words of a text in lowercase, with straight apostrophes."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def denies(word: str) -> bool:
    """Whether a lowercase word is a negation."""
    return word in NEGATIONS or word.endswith("n't")


def is_figure(word: str) -> bool:
    """Whether a lowercase word is a number."""
    return word in NUMBER_WORDS or any(map(str.isdigit, word))


@lru_cache(maxsize=512)
def sentence_starts(content: str) -> tuple[int, ...]:
    """Where the sentences, items and lines of a passage begin; the first is 0."""
    starts = [0]
    for match in _BREAK.finditer(content):
        stop = match.start()
        is_inner = match[0][0] == "." and (
            is_abbreviation(content, stop, 0) or _NUMBERED.search(content, max(0, stop - 9), stop)
        )
        if not is_inner:
            starts.append(match.end())
    return tuple(starts)


def cut_problem(content: str, start: int, end: int) -> str | None:
    """Why a quote of ``content[start:end]`` turns the sense, or ``None``."""
    starts = sentence_starts(content)
    first = starts[bisect_right(starts, start) - 1]
    after = bisect_left(starts, end)
    if after < len(starts) and starts[after] == end and end < len(content):
        after += not content[end - 1].isspace() and not words_of(content[end - 1 : end])
    last = [*starts, len(content)][after]
    quoted = words_of(content[start:end])
    if item := _ITEM.match(content, first):
        before = _lead_in(content, first) + content[item.end() : start]
    else:
        before = content[first:start]
    text_after = content[end:last]
    problem = _before_problem(before, quoted)
    if len(quoted) < _SHORT_QUOTE and not _EXCEPTION_NEXT.match(text_after):
        return problem
    problem = problem or _after_problem(text_after)
    if not problem and _TAKEN_BACK.match(content, last):
        problem = _continues(content[last : last + 80])
    if (
        not problem
        and "?" in text_after
        and (words_of(content[first:start]) or quoted[0] not in _ASKS)
    ):
        problem = "The passage asks this: its question mark is left out."
    return problem


def gap_problem(content: str, start: int, end: int) -> str | None:
    """Why an ellipsis must not leave out ``content[start:end]``, or ``None``."""
    gap = content[start:end]
    if len(gap) > MAX_GAP:
        return f"The ellipsis leaves out {len(gap)} characters; {MAX_GAP} are allowed."
    words = words_of(gap)
    if not words:
        return "The ellipsis leaves out nothing."
    if problem := next((word for word in words if turns(word)), None):
        return f"The ellipsis leaves out “{problem}”: “{_excerpt(gap)}”."
    if _EXCEPTIONS.search(gap) or _HEADING_OR_LEAD_IN.search(gap):
        return f"The ellipsis leaves out what limits the rest: “{_excerpt(gap)}”."
    starts = sentence_starts(content)
    within = starts[bisect_right(starts, start) : bisect_right(starts, end)]
    if not within:
        if _is_insertion(content, start, end):
            return None
        return f"The ellipsis leaves out a part of the sentence: “{_excerpt(gap)}”."
    if words_of(content[within[-1] : end]):
        return "The ellipsis joins parts of two sentences."
    return _after_problem(content[start : within[0]])


def turns(word: str) -> bool:
    """Whether a lowercase word denies, limits or sets a condition."""
    return (
        denies(word)
        or word in _CONDITIONS
        or word in _LATE_CONDITIONS
        or word in _LIMITS
        or word in _REPORTING_WORDS
        or word in ("but", "within", "least")
        or _LIMITING.match(word) is not None
        or _DENIALS.match(word) is not None
    )


def _is_insertion(content: str, start: int, end: int) -> bool:
    """Whether a gap is an insertion: between two commas, two dashes, or in parentheses."""
    gap = content[start:end].strip()
    inner = gap.strip(" ,()—–-")
    words = words_of(inner)
    opening = gap[0] if gap[0] in ",(—–-" else content[:start].rstrip()[-1:]
    closing = gap[-1] if gap[-1] in ",)—–-" else content[end:].lstrip()[:1]
    if opening + closing not in (",,", "()", "——", "––", "--"):
        return False
    is_clause = not words or words[0] in ("and", "or", "nor", "so", "yet")
    return not is_clause and len(words) <= _MAX_INSERTION and not set(",;:()") & set(inner)


def cut_word(content: str, start: int, end: int) -> str | None:
    """Why ``content[start:end]`` is cut inside a word, a compound or a figure, or ``None``."""
    before, after = content[max(0, start - 4) : start], content[end : end + 3]
    first, last = content[start], content[end - 1]
    around = f"“{_excerpt(content[max(0, start - 20) : end + 20])}”."
    has_joint = (content[start] in _JOINTS and before[-1:].isalnum()) or (
        content[end - 1] in _JOINTS and after[:1].isalnum()
    )
    is_cut_before = first.isalnum() and (before[-1:].isalnum() or _GLUED_BEFORE.search(before))
    is_cut_after = last.isalnum() and (after[:1].isalnum() or _GLUED_AFTER.match(after))
    if is_cut_before or is_cut_after or has_joint:
        return f"The quote cuts a word of the passage: {around}"
    has_sign = first.isdigit() and _SIGN_BEFORE.search(before)
    is_cut_after = last.isdigit() and _FIGURE_AFTER.match(after)
    has_more = _is_counting(content, start, end) or _is_bounded_after(content, start, end)
    if has_sign or is_cut_after or has_more:
        return f"The quote cuts a figure: {around}"
    return None


def _is_bounded_after(content: str, start: int, end: int) -> bool:
    """Whether a limit follows a figure at the end of the quote: "5 days at most"."""
    last_words = words_of(content[max(start, end - 40) : end])[-2:]
    return any(map(is_figure, last_words)) and _BOUND_AFTER.match(content, end) is not None


def _is_counting(content: str, start: int, end: int) -> bool:
    """Whether a number at the end of the quote counts what follows: "500 MB", "three users"."""
    number = _NUMBER_AT_END.search(content, max(start, end - 40), end)
    follows = _NEXT_WORD.match(content, end)
    if not number or not follows:
        return False
    word = number[0].lower()
    is_number = word[0].isdigit() or (word in NUMBER_WORDS and word != "one")
    return is_number and (follows[1] in ("am", "May") or follows[1].lower() not in ENGLISH)


def _lead_in(content: str, first: int) -> str:
    """The introduction of the list that the item at ``first`` is in; its colon is left out."""
    before = content[max(0, first - _MAX_LEAD_IN) : first]
    while True:
        above, _, line = before.rstrip().rpartition("\n")
        if not line:
            return ""
        if not _ITEM.match(line):
            heading = line.strip(" *_")
            if heading.startswith("#"):
                return f"{heading.lstrip('#')} "
            return f"{heading[:-1]} " if heading.endswith(":") else ""
        before = above


def _before_problem(before: str, quoted: Sequence[str]) -> str | None:
    plain = _PARENTHESES.sub(" ", _ONLY_NEGATION.sub(" ", before))
    clause = _CLAUSE_BEFORE.sub("", plain)
    words = words_of(clause)
    governing: Iterable[str] = (word for word in words if denies(word) or word == "only")
    sentence = words_of(plain[plain.rfind(";") + 1 :])
    conditions = (
        word
        for number, word in enumerate(sentence)
        if word in _CONDITIONS or (word in ("when", "whenever") and not number)
    )
    close = []
    if words and words[-1] in _OPENS_CLAUSE | _ARTICLES:
        # "We rejected the proposal that …"
        close = [
            word
            for word in words[-5:]
            if _DENIALS.match(word) or _OPINIONS.match(word) or word in _PLANS
        ]
    while words and words[-1] in _ARTICLES:
        words.pop()
    close += [word for word in words[-1:] if word in _LIMITS or _DENIALS.match(word)]
    if quoted and is_figure(quoted[0]):
        close += [word for word in words_of(clause)[-2:] if word in _BOUNDS]
    if phrase := _EXCEPTIONS.search(clause) or _NOT_DONE.search(clause):
        close.append(phrase[0])
    for word in (*governing, *conditions, *close):
        return f"The passage says “{word}” before it: “{_excerpt(before[-80:])} …”."
    return None


def _after_problem(after: str) -> str | None:
    remark = _REMARK_NEXT.match(after)
    if remark and any(map(turns, words_of(remark[1]))):
        return _continues(after)
    plain = _PARENTHESES.sub(" ", after)
    border = _CLAUSE_AFTER.search(plain)
    clause = plain[: border.start()] if border else plain
    words = words_of(clause)
    head, _, contrast = clause.lower().partition("but ")
    is_turned = (
        any(word in _CONDITIONS for word in words)
        or words[:1] in (["when"], ["whenever"], ["once"])
        or _EXCEPTIONS.search(clause)
        or any(denies(word) for word in words_of(head)[:3])
        or _is_denied(words_of(head)[:4])
        or any(denies(word) or word in _CONDITIONS for word in words_of(contrast))
    )
    return _continues(after) if is_turned else None


def _is_denied(words: Sequence[str]) -> bool:
    """Whether what was said before is denied: "was rejected", "failed"."""
    return any(
        _DENIALS.match(word) and (not number or words[number - 1] in _IS or words[0] in _IS)
        for number, word in enumerate(words)
    )


def _continues(following_text: str) -> str:
    return f"The passage continues: “… {_excerpt(following_text)}”."


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:120]
