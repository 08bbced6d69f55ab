"""Whether a sentence qualifies the same words in another way than its evidence. Pure.

A *qualifier* says how much ("all", "most"), whether ("must", "may"), when ("before", "after") or
which of two opposites ("longer", "shorter"). Two of one group exclude each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from rolebundle.contracts.dates import is_of_date, weekdays_in
from rolebundle.contracts.documents import Passage
from rolebundle.resources import data_file
from rolebundle.text.amended import is_denied
from rolebundle.text.languages import STOP_WORDS
from rolebundle.text.replaced import says
from rolebundle.text.words import content_words, language_of, sentences_of, stems_of
from rolebundle.verify.sentences import (
    Difference,
    clause_end,
    is_excepted,
    likeliest_part,
    names_in,
    without_numbers,
)

_WORDS = data_file(__file__, "words.toml")
_GROUPS: dict[str, list[list[str]]] = {
    language: [*groups.values()] for language, groups in _WORDS["qualifiers"].items()
}
_FIRST_OPPOSITES = len(_GROUPS["en"])
_FIRST_TURNED = [*_WORDS["qualifiers"]["en"]].index("order")
"""The first group that a negation before it turns: "not open" is "shut"."""
_GROUPS["en"] += [pair.split("/") for pair in _WORDS["copies"]["opposites"].split()]
_ENDS = r"|\b(?:and|und|et|ed?|y|en)\b|,"
_QUALIFIED_WORDS = 2
"""How many content words after a qualifier it is about."""
_MIN_SHARED = 2
"""How many content words a sentence of the evidence must share."""
_MOST = 0.8
"""The least share of its words with which a sentence of the evidence says what a text says."""
_STOP_WORDS = frozenset[str]().union(*STOP_WORDS.values())
_FIRST_WORD = re.compile(r"\A\W*([^\W\d_]+)")
_MAX_NAME = 3
"""Names of as many words, or more, are seldom of persons."""
_MIN_KNOWN = 0.34
"""The least share of the words of a reason in the evidence."""
_BESIDE = 10
"""Characters before a word in which another one stands beside it."""
_BE = re.compile(
    r"\b(?:is|are|was|were|ist|sind|war|est|sont|es|son|è|sono|zijn)\s$", re.IGNORECASE
)
_MEASURE = re.compile(r"\d\S* \w+(?=\W*$)")
_MUST, _MAY = (f"q{[*_WORDS['qualifiers']['en']].index('duty')}_{kind}" for kind in (1, 2))
_DUTIES = {_MUST, _MAY}
_CLAIMS = {
    language: [re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in kinds]
    for language, kinds in _WORDS["claims"].items()
}
_EXTRA, *_INCLUSION = (re.compile(text, re.IGNORECASE) for text in _WORDS["inclusion"].values())
_ARTICLE, _PRONOUN = (re.compile(text, re.IGNORECASE) for text in _WORDS["persons"].values())
_CONDITION, _REASON = (re.compile(text, re.IGNORECASE) for text in _WORDS["clauses"].values())


class Qualifier(NamedTuple):
    """A qualifier, its group, its group and kind in one, and the stems that it is about."""

    text: str
    group: str
    kind: str
    about: frozenset[str]


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The qualifiers of a language, and where the words end that they are about."""
    groups = enumerate(_GROUPS.get(language, [["(?!)"]]))
    named = [f"(?P<q{g}_{k}>{words})" for g, kinds in groups for k, words in enumerate(kinds)]
    qualifier = re.compile(rf"\b(?:{'|'.join(named)})\b", re.IGNORECASE)
    return qualifier, re.compile(clause_end(language).pattern + _ENDS)


@lru_cache(maxsize=4096)
def qualifiers_in(sentence: str, language: str = "en") -> tuple[Qualifier, ...]:
    """The qualifiers of a sentence, each with the stems that it is about.

    These are the first content words after it in its clause. Without any, and for opposites also,
    they are the last ones before it.
    """
    sentence = sentence.replace("’", "'")
    found = []
    qualifier, end = _patterns(language)
    for match in qualifier.finditer(sentence):
        kind = match.lastgroup or ""
        group = kind.partition("_")[0]
        before = end.split(sentence[: match.start()])[-1]
        after = end.split(sentence[match.end() :], maxsplit=1)[0]
        about = stems_of(after, language).content[:_QUALIFIED_WORDS]
        nearest = stems_of(before, language).content[-_QUALIFIED_WORDS:]
        # In German the negation may be in the clause before, or at the end.
        around = before if language == "en" else f"{sentence[: match.start()]} {after}"
        if int(group[1:]) >= _FIRST_TURNED and is_denied(around):
            continue
        if int(group[1:]) == _FIRST_TURNED:  # "21 days before" the start, or after the booking.
            about += _MEASURE.findall(before)
        # "Smoking is forbidden (on the quay)."
        is_behind = (
            not about
            or _BE.search(sentence[max(0, match.start() - _BESIDE) : match.start()]) is not None
        )
        is_predicate = is_behind and int(group[1:]) < _FIRST_TURNED
        if int(group[1:]) >= _FIRST_OPPOSITES or is_predicate:
            about += nearest
        found.append(Qualifier(match[0].lower(), group, kind, frozenset(about)))
    return tuple(found)


def is_said(text: str, passages: Sequence[Passage], sample: str) -> bool:
    """Whether a sentence has nearly all words of a text, its qualifiers, and is denied like it."""
    language = language_of(sample)
    words = content_words(text, sample)

    def sense(of: str) -> tuple[object, ...]:
        kinds = {qualifier.kind for qualifier in qualifiers_in(of, language)}
        return kinds, is_denied(of), bool(_CONDITION.search(of))

    sentences = (one for passage in passages for one in sentences_of(passage.content))
    like_it = (s for s in sentences if len(words & content_words(s, sample)) >= _MOST * len(words))
    return any(sense(one) == sense(text) for one in like_it)


def lost_condition(text: str, passages: Sequence[Passage], sample: str) -> Difference | None:
    """The condition of a sentence of the evidence that a sentence drops, or ``None``."""
    words = content_words(text, sample)
    is_free = not _CONDITION.search(text)
    for passage in passages if is_free else ():
        for sentence in sentences_of(passage.content) if passage.content_type != "table" else ():
            main, condition, rest = (*_CONDITION.split(sentence, maxsplit=1), "", "")[:3]
            own = content_words(main, sample)
            others = content_words(rest, sample) - own
            shared = len(words & own)
            is_repeated = shared >= _MIN_SHARED and 2 * shared >= len(own)
            if condition and is_repeated and 2 * len(words & others) < len(others):
                what = f'the evidence goes on with "{condition}"'
                return Difference(what, passage, sentence.strip())
    return None


def unknown_reason(text: str, passages: Sequence[Passage]) -> Difference | None:
    """The reason that a sentence gives if the evidence has few of its words, or ``None``."""
    match = _REASON.search(text)
    words = content_words(match["reason"], text) if match else frozenset[str]()
    language = language_of(text)
    own = [p for p in passages if words and language_of(p.content) == language]
    parts = ("\n".join((p.document.title, *p.headings, p.content)) for p in own)
    known = frozenset[str]().union(*(content_words(part, text) for part in parts))
    if match and own and len(words & known) < _MIN_KNOWN * len(words):
        return Difference(f'the reason "{match[0].strip()}" stands nowhere in it', own[0])
    return None


def other_weekday(text: str, passages: Sequence[Passage], sample: str) -> Difference | None:
    """The day of the week of a sentence, if its evidence has another one, and not this one.

    The evidence is the sentence or row with most of its words, or all if it has one day only.
    """
    own, all_days = weekdays_in(text), weekdays_in("\n".join(p.content for p in passages))
    likeliest = likeliest_part(text, passages, sample) if own and len(all_days) > 1 else None
    theirs = weekdays_in(likeliest[1]) if likeliest else all_days
    is_clear = len(theirs) == 1 or (theirs and likeliest)
    if len(own) == 1 and is_clear and theirs.isdisjoint(own):
        passage, part = likeliest or (passages[0], "")
        return Difference("the evidence has another day of the week", passage, part)
    return None


def stronger_claim(text: str, passages: Sequence[Passage], sample: str) -> Difference | None:
    """What is a duty, decided or changed if the evidence only allows, proposes or keeps it.

    The evidence is the sentence or row with most of its words.
    """
    language = language_of(sample)
    likeliest = likeliest_part(text, passages, sample)
    if likeliest is None or language not in _CLAIMS:
        return None
    passage, part = likeliest
    around = part if passage.content_type == "table" else passage.content
    kinds = {q.kind for q in qualifiers_in(text, language)}
    theirs = {q.kind for q in qualifiers_in(part, language)}
    changes, stays = ([says(one, kind) for one in (text, part)] for kind in ("change", "stays"))
    decided, *undecided, _ = _CLAIMS[language]
    is_open = any(pattern.search(around) for pattern in undecided) and not decided.search(around)
    what = ""
    if kinds & _DUTIES == {_MUST} and theirs & _DUTIES == {_MAY}:
        what = "the sentence states a duty, the evidence a permission"
    elif (changes, stays) in (([True, False], [False, True]), ([False, True], [True, False])):
        what = "one of the sentence and the evidence states a change, the other that it stays"
    elif is_open and decided.search(text):
        what = "the sentence states a decision, the evidence a proposal or refusal"
    return Difference(what, passage, part.strip()) if what else None


def changes_nothing(text: str, *, is_of_day: bool = False) -> bool:
    """Whether a sentence only proposes something, refuses it, or lets it hold for a time.

    ``is_of_day``: what holds for a time counts.
    """
    _, proposed, refused, for_a_time = _CLAIMS.get(language_of(text), _CLAIMS["en"])
    patterns = proposed, refused, *(() if is_of_day else (for_a_time,))
    return any(pattern.search(text) for pattern in patterns)


def not_included(text: str, passages: Sequence[Passage], sample: str) -> Difference | None:
    """What a sentence includes if a sentence of the evidence excludes or limits it, or ``None``."""
    found = [match["what"] for pattern in _INCLUSION if (match := pattern.search(text))]
    included = [content_words(what, sample) for what in found]
    for passage, sentence in ((p, s) for p in passages if found for s in sentences_of(p.content)):
        theirs = content_words(sentence, sample)
        is_limited = is_denied(sentence) or _CONDITION.search(sentence) or _EXTRA.search(sentence)
        if is_limited and any(what and what <= theirs for what in included):
            what = "the evidence excludes or limits what the sentence includes"
            return Difference(what, passage, sentence.strip())
    return None


def other_person(
    text: str, passages: Sequence[Passage], sample: str, known: Sequence[Passage]
) -> Difference | None:
    """The name of a sentence for which the evidence has another one, or ``None``.

    The evidence is the sentence or row with most of its words. It has none of the sentence's names,
    and neither have the headings above it. The first word of a sentence is a name if ``known``
    passages have it as one.
    """
    likeliest = likeliest_part(text, passages, sample)
    names_known = {name for passage in known for name in _persons_within(passage.content)}
    own = _persons_in(text, names_known)
    if likeliest is None or not own or _PRONOUN.search(likeliest[1]):
        return None
    passage, part = likeliest
    words, theirs = content_words(part, sample), _persons_in(part, names_known)
    names = content_words(" ".join(own), sample)
    said = without_numbers(text, sample) - names
    is_like = 2 * len(said & words) >= len(said) and len(said & words) > _MIN_SHARED
    head = content_words(" ".join((passage.document.title, *passage.headings)), sample)
    if is_like and theirs and names.isdisjoint(words | head):
        return Difference(f'"{own[0]}" for "{theirs[0]}"', passage, part.strip())
    return None


def _persons_in(text: str, known: Set[str]) -> list[str]:
    """The names of one or two words that may be of persons; a ``known`` one may begin the text."""
    first = (w for w in _FIRST_WORD.findall(text) if w in known and w.lower() not in _STOP_WORDS)
    return [*first, *_persons_within(text)]


@lru_cache(maxsize=4096)
def _persons_within(text: str) -> tuple[str, ...]:
    found = (name for name in names_in(text) if not name.lastgroup)
    names = (
        name[0].split()
        for name in found
        if not _ARTICLE.search(text[max(0, name.start() - _BESIDE) : name.start()])
    )
    of_letters = (n for n in names if all(map(str.isalpha, n)) and not any(map(is_of_date, n)))
    return tuple(" ".join(name) for name in of_letters if len(name) < _MAX_NAME)


def other_qualifier(text: str, passages: Sequence[Passage], sample: str) -> Difference | None:
    """The qualifier of a sentence that its evidence excludes, or ``None``."""
    language = language_of(sample)
    words, own = content_words(text, sample), qualifiers_in(text, language)
    said = {mine.kind for mine in own}
    for passage, sentence in ((p, s) for p in passages if own for s in sentences_of(p.content)):
        theirs = qualifiers_in(sentence, language)
        shared = words & content_words(sentence, sample)
        if len(shared) < _MIN_SHARED or is_excepted(text, sentence):
            continue
        for mine, other in product(own, theirs):
            of_kind = [q.about for q in theirs if q.kind == mine.kind]
            is_same = other.kind in said or any(not a or mine.about & a for a in of_kind)
            if mine.group == other.group and mine.about & other.about and not is_same:
                return Difference(f'"{mine.text}" for "{other.text}"', passage, sentence.strip())
    return None
