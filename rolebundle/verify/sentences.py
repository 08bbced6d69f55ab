"""Whether the words of a sentence, and its names, stand in the evidence. Pure.

The measure is word overlap: a sentence is *covered* if at least half of its content words stand
in three consecutive sentences of a passage. That does not mean that the passage supports it. A
near copy of a passage's sentence that differs in a negation or (English) an opposite ``differs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from rolebundle.contracts.dates import is_of_date
from rolebundle.contracts.documents import LANGUAGE, Passage
from rolebundle.resources import data_file
from rolebundle.retrieval.query import words_of
from rolebundle.text.languages import STOP_WORDS, TITLES, clear_language
from rolebundle.text.replaced import document_pattern, says
from rolebundle.text.tokens import tokens_of
from rolebundle.text.words import (
    content_words,
    known_language,
    language_of,
    sentences_of,
    stem,
    stems_of,
)

COVERED = 0.5
"""The least share of a sentence's content words that must stand together."""
MIN_WORDS = 3
"""The least number of them, or all if there are fewer."""
_WINDOW = 3
_COMPOUNDING = ("de", "nl")
_PART = 4
"""Only longer parts of compounds are known by themselves: "Gerät" of "Röntgengerät"."""


class Match(NamedTuple):
    """Where most of a sentence's content words stand together.

    ``share`` is the part of them that stands there, ``word_count`` how many there are.
    """

    share: float
    word_count: int
    passage: Passage | None = None
    text: str = ""

    @property
    def is_covered(self) -> bool:
        """Whether enough of them stand there."""
        least = min(MIN_WORDS, self.word_count)
        return self.share >= COVERED and self.share * self.word_count >= least > 0


def is_translated(text: str, passage: Passage) -> bool:
    """Whether a text and a passage are surely in different languages."""
    own = known_language(passage.content) or declared_language(passage)
    return len({known_language(text), own} - {""}) > 1


def declared_language(passage: Passage) -> str:
    """The language of the document of a passage; ``""`` if it is English or unknown."""
    return dict(passage.document.attributes).get(LANGUAGE, ("",))[0]


def language_sample(text: str, passages: Sequence[Passage]) -> str:
    """What shows the language of a text: its own words, or those of a passage that it cites."""
    return text if clear_language(text) or not passages else passages[0].content


def best_match(text: str, passages: Sequence[Passage]) -> Match:
    """The three consecutive sentences with the most content words of a text."""
    words, language = content_words(text), clear_language(text)
    best = Match(0.0, len(words))
    for passage in passages:
        # A line or the cells of a table seldom show their language.
        is_shown = known_language(passage.content) and declared_language(passage) != language
        sample = passage.content if is_shown else text
        head = content_words("\n".join((passage.document.title, *passage.headings)), sample)
        if words.isdisjoint(content_words(passage.content, sample) | head):
            continue
        for window, found in _windows(passage.content, sample):
            missing = words - found - head
            share = 1 - len(missing) / len(words)
            if share > best.share:
                best = Match(share, len(words), passage, window)
    return best


@lru_cache(maxsize=1024)
def _windows(content: str, sample: str) -> tuple[tuple[str, frozenset[str]], ...]:
    sentences = sentences_of(content)
    words = [content_words(sentence, sample) for sentence in sentences]
    return tuple(
        ("".join(sentences[at : at + _WINDOW]), frozenset().union(*words[at : at + _WINDOW]))
        for at in range(max(1, len(sentences) - _WINDOW + 1))
    )


def without_numbers(text: str, sample: str = "") -> frozenset[str]:
    """The content words of a text without its numbers, days of the week and months."""
    dates = content_words(" ".join(filter(is_of_date, words_of(text))), sample or text)
    return frozenset(word for word in content_words(text, sample) - dates if not word.isdecimal())


def sentences_about(text: str, other: str, share: float, least: int) -> list[str]:
    """The sentences of another text with more than a share of a text's words, and ``least``."""
    words = without_numbers(text)
    shared = {sentence: words & content_words(sentence) for sentence in sentences_of(other)}
    return [s for s, own in shared.items() if len(own) > share * len(words) and len(own) >= least]


class LikeSentence(NamedTuple):
    """A sentence, the words that it and its headings share with a text, and which are no names."""

    text: str
    shared: frozenset[str]
    nouns: frozenset[str]


_TWO_CAPITALS = re.compile(r"[^\W\d_a-zß-ÿ][\w-]+ [^\W\d_a-zß-ÿ][\w-]+")


def sentences_like(text: str, passage: Passage) -> list[LikeSentence]:
    """The sentences of a passage with a word of a text, and another one there or in its headings.

    Those with most of them are first.
    """
    words, has_compounds = without_numbers(text), language_of(text) in _COMPOUNDING
    head = content_words(" ".join((passage.document.title, *passage.headings)))
    found = []
    for before, one in pairwise(("", *_parts_of(passage))):
        sentence = before + one if says(one, "there") else one
        theirs = content_words(sentence)
        shared = words & theirs
        if has_compounds:
            ends = tuple(word for word in theirs if len(word) > _PART)
            shared |= {word for word in words if word.endswith(ends)}
        is_statement = not one.lstrip("-* ").startswith(("#", "[ ]", "[x]"))
        is_named = says(one, "absent", "revoked") or (bool(shared & head) and says(one, "change"))
        if shared and is_statement and (is_named or len(shared | (words & head)) > 1):
            texts = (n[0] for s in (text, sentence) for n in names_in(s))
            # In German, two neighbours with capitals are most likely a name.
            both = {*_TWO_CAPITALS.findall(text)}.intersection(_TWO_CAPITALS.findall(sentence))
            names = content_words(" ".join((*texts, *both)), sentence)
            found.append(LikeSentence(sentence, shared | (words & head), shared - names))
    return sorted(found, key=lambda like: len(like.shared), reverse=True)


# -- near copies -----------------------------------------------------------------------------------

_LIKE = 0.7
"""The least share of a sentence's content words that a sentence has of which it is a near copy."""
_WORDS = data_file(__file__, "words.toml")["copies"]
_OPPOSITE_OF: dict[str, set[str]] = {}
for _pair in _WORDS["opposites"].split():
    _one, _other = map(stem, _pair.split("/"))
    _OPPOSITE_OF.setdefault(_one, set()).add(_other)
    _OPPOSITE_OF.setdefault(_other, set()).add(_one)
CLAUSE_END = re.compile(
    r"[;:()—–]|[.!?]\s|\n(?=[\s*•\d.-]*[A-Z])|\b(?:but|unless|until|if|when|because|so|while)\b"
)
"""Where what a negation denies ends at the latest."""
_CLAUSE_ENDS, _NO = _WORDS["ends"], _WORDS["no"]
_DENIAL = document_pattern("denial")
_CONTRAST = re.compile(r"[,;(–—]\s*\Z|\b(?:and|but|und|et|mais|y|e|en|maar)\s+\Z", re.IGNORECASE)
_REFUSAL = re.compile("".join(_WORDS["refusal"]), re.IGNORECASE)
"""Words that deny without a negation, so that a negation need not turn the sense."""
_EXCEPTION = re.compile(_WORDS["exception"], re.IGNORECASE)
_DENIED_WORDS = 2
"""How many content words after a negation it denies; the last one before it if there are none."""
_DENIED_END = re.compile(_WORDS["denied_end"], re.IGNORECASE)
_NO_DENIAL = re.compile("".join(_WORDS["no_denial"]), re.IGNORECASE)
_CONCORD = ("fr", "es", "it")
"""In these languages two negations deny; in others they affirm."""


@cache
def clause_end(language: str) -> re.Pattern[str]:
    """Where a clause ends in a language; it may end before."""
    more = _CLAUSE_ENDS.get(language)
    return re.compile(f"{CLAUSE_END.pattern}|{more}", re.IGNORECASE) if more else CLAUSE_END


@lru_cache(maxsize=4096)
def _polarity(text: str, language: str) -> tuple[frozenset[str], dict[str, str]]:
    """The stems that a text affirms, in clauses without a negation, and those that it denies.

    The latter is a mapping from each denied stem to the stem that must occur for it to count:
    "noise" in "no noise on the pontoon".
    """
    affirmed, denied = set[str](), dict[str, str]()
    for clause in clause_end(language).split(_NO_DENIAL.sub(" ", text)):
        denials = [*_DENIAL.finditer(clause)]
        if not denials:
            affirmed.update(stems_of(clause, language).content)
        elif len(denials) == 1 or language in _CONCORD:
            after = _DENIED_END.split(clause[denials[0].end() :], maxsplit=1)[0]
            before = clause[: denials[0].start()]
            # In "two, not one" the words before are those that hold.
            last = () if _CONTRAST.search(before) else stems_of(before, language).content[-1:]
            stems = (stems_of(after, language).content or last)[:_DENIED_WORDS]
            is_of_noun = re.fullmatch(_NO.get(language, ""), denials[0][0], re.IGNORECASE)
            denied |= {one: stems[0] if is_of_noun else one for one in stems}
    return frozenset(affirmed), denied


def is_excepted(text: str, sentence: str) -> bool:
    """Whether a text has a word of what a sentence excepts."""
    match = _EXCEPTION.search(sentence)
    return match is not None and bool(content_words(text) & content_words(match["what"], text))


class Difference(NamedTuple):
    """What a sentence says otherwise than its evidence, in words, and the text of it there."""

    what: str
    passage: Passage
    text: str = ""


def difference(text: str, passages: Sequence[Passage], sample: str) -> Difference | None:
    """The word in which a near copy of a passage's sentence turns its sense, or ``None``.

    ``sample`` shows the language of the text.
    """
    words, language = without_numbers(_DENIAL.sub(" ", text), sample), language_of(sample)
    # Other languages have more words in one.
    if len(words) < (MIN_WORDS if language == "en" else MIN_WORDS - 1):
        return None
    affirmed, denied = _polarity(text, language)
    best, most = None, _LIKE
    for passage in passages:
        # In a table "no" is a number or a value.
        sentences = sentences_of(passage.content) if passage.content_type != "table" else ()
        for number, sentence in enumerate(sentences):
            theirs = content_words(sentence, sample)
            own, missing = words - theirs - {*denied}, theirs - words
            pairs = ((w, other) for w in sorted(own) for other in _OPPOSITE_OF.get(w, ()))
            opposites = [f'"{w}" for "{other}"' for w, other in pairs if other in missing]
            share = (len(words & theirs) + len(opposites)) / len(words)
            if "?" in sentence or (share <= most if best else share < most):
                continue
            affirms, denies_too = _polarity(sentence, language)
            around = sentences[max(0, number - 1) : number + 2]
            near = affirms.difference(*(_polarity(other, language)[1] for other in around))
            turned = {w for w in affirmed - {*denied} - affirms if denies_too.get(w) in words}
            turned |= {w for w in near - affirmed if denied.get(w) in theirs}
            is_opposite = any(_OPPOSITE_OF.get(word, set()) & affirms for word in denied)
            is_opposite |= is_excepted(text, sentence)
            if is_opposite or _REFUSAL.search(text) or _REFUSAL.search(sentence):
                turned = set()
            named = [w for w in words_of(sentence) if turned & content_words(w, sample)]
            found = "".join(opposites[:1])
            if turned:
                found = f'"not" before "{[*named, *sorted(turned)][0]}"'
            best, most = Difference(found, passage, sentence.strip()), share
    return best if best and best.what else None


def _parts_of(passage: Passage) -> Sequence[str]:
    """The sentences of a passage, or the rows of a table."""
    is_table = passage.content_type == "table"
    return passage.content.split("\n") if is_table else sentences_of(passage.content)


def likeliest_part(
    text: str, passages: Sequence[Passage], sample: str
) -> tuple[Passage, str] | None:
    """The sentence or row with most words of a text, and a third of them at least, or ``None``.

    None if another one has as many.
    """
    words = without_numbers(text, sample)
    parts = [(passage, part) for passage in passages for part in dict.fromkeys(_parts_of(passage))]
    shared = [len(words & content_words(part, sample)) for _, part in parts]
    most = max(shared, default=0)
    is_clear = shared.count(most) == 1 and most > 1 and 3 * most >= len(words)
    return parts[shared.index(most)] if is_clear else None


def is_repeated(text: str, source: Passage, others: Sequence[Passage]) -> bool:
    """Whether others repeat the sentences of a source with most words of a text."""
    content = "\n".join(_line_of(other) for other in others)
    shared = {part: len(content_words(text) & content_words(part)) for part in _parts_of(source)}
    least = max(shared.values(), default=0) / 2
    own = [s for s, n in shared.items() if n > least]
    return any(shared.values()) and all(tokens_of(s).line.lower() in content for s in own)


# -- names -----------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(?P<identifier>`[^`\n]+`|(?<![\w/.-])(?:-{1,2}[a-z][\w-]+"
    r"|[A-Za-z_~./]*[A-Za-z_][\w-]*(?:[./:=_]+[\w~-]+)+(?:\(\))?|\w+\(\)"
    r"|[a-z]+[A-Z]\w*|[A-Z]+[a-z]+[A-Z]\w*|[A-Z]{2,}\d+)(?!\w))"
    r"|(?<![\w`'’./-])[A-Z][\w-]*[a-z\d][\w-]*"
    r"(?: (?:(?:d[aeiu]|del(?:la)?|v[ao]n|of) )?(?:[A-Z][\w-]*|\d[\w.-]*))*"
    r"|(?P<acronym>\b[A-Z]{2,}\b)"
)
SENTENCE_START = re.compile(r"(?:^|[.!?:|>(“\"*_—–#\n-])[\W_]*$")
"""Before a word that may be capitalized because a sentence begins with it."""
_CAPITALIZING = ("de", "lb")
_FUNCTION_WORDS = STOP_WORDS["en"] - TITLES | {*_WORDS["function_words"].split()}


def names_in(text: str, *languages: str) -> Iterator[re.Match[str]]:
    """The identifiers, acronyms and capitalized names of a text; of one word, inside a sentence.

    Languages that capitalize nouns have identifiers only. ``languages`` are those that the text may
    be in if it shows none.
    """
    known = known_language(text)
    of_text = {known} if known else {*languages}
    has_names = of_text.isdisjoint(_CAPITALIZING)
    function_words = _FUNCTION_WORDS.union(*(STOP_WORDS.get(code, ()) for code in of_text))
    for whole in _NAME.finditer(text):
        first, _, rest = whole[0].partition(" ")
        is_start = SENTENCE_START.search(text, max(0, whole.start() - 40), whole.start())
        # "La Scala", "Owner of Kittiwake": the first word is no part of the name.
        is_part = first.lower() not in function_words and not (is_start and rest[:1].islower())
        match: re.Match[str] | None = whole
        if rest and not (is_part or whole["identifier"]):
            match = _NAME.search(text, whole.start() + len(first), whole.end())
        if match and (match["identifier"] or (has_names and (rest or not is_start))):
            yield match


def unknown_parts(name: str, evidence: Sequence[Passage]) -> list[str]:
    """The words of a name that stand nowhere in the evidence."""
    lines = [_line_of(passage) for passage in evidence]
    has_compounds = any(language_of(p.content) in _COMPOUNDING for p in evidence)
    unknown = []
    for part in re.split(r"[\s()./\\,:`\[\]{}'\"]+", name):
        token = tokens_of(part).line.lower()
        word = token.rstrip()
        forms = {token, f"{word}s ", f"{word.removesuffix('s')} "}
        forms |= {word} if has_compounds and len(word) > _PART else set()
        is_word = sum(map(str.isalpha, part)) > 1 and part.lower() not in TITLES
        if is_word and not any(f in line for f in forms for line in lines):
            unknown.append(part)
    return unknown


@lru_cache(maxsize=1024)
def _line_of(passage: Passage) -> str:
    own = passage.document.title, *passage.headings, passage.path.replace("/", " "), passage.content
    return tokens_of("\n".join(own)).line.lower()
