"""The terms that set some passages apart from the others. Pure.

The statistic is the log-odds ratio with an informative Dirichlet prior (Monroe, Colaresi and Quinn,
"Fightin' Words: Lexical Feature Selection and Evaluation for Identifying the Content of Political
Conflict", Political Analysis 16(4), 2008). For a term in ``a`` of ``A`` foreground passages and in
``b`` of ``B`` others, with the prior ``p`` for its share of all passages::

    z = (logit((a + p) / (A + P)) − logit((b + p) / (B + P))) / sqrt(1 / (a + p) + 1 / (b + p))

A passage counts once for each of its terms, so that one long list of a word is not a subject.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rolebundle.text.languages import likely_languages
from rolebundle.text.stop_words import ENGLISH, STOP_WORDS
from rolebundle.text.words import stem

MAX_WORDS = 3
"""The words of the longest phrase."""
SIGNIFICANT = 3.0
"""The least z of a term. Thousands of terms are compared, so 1.96 would let many in by chance."""
MIN_PRECISION = 0.2
"""A term of which fewer of its passages are the foreground's is of no use to find them."""
MIN_SHARE, MIN_PHRASE_SHARE = 0.12, 0.06
"""A word, or a phrase, that fewer of the foreground's passages have is a detail."""
MAX_COMMON = 0.25
"""A term of more than this share of the other passages is boilerplate of the folder."""
MIN_PASSAGES = 2
"""A term of fewer foreground passages is chance."""
SUBSUMED = 0.6
"""A term is left out if a longer term has at least this share of its foreground passages."""

_PRIOR_PASSAGES = 10.0
_LOWER_CASE_WEIGHT = 2
"""A word of a name is written with a capital at least so many times as often as without."""
_MAX_TERM_CHARS = 60
_REPEATED_LINE_WORDS = 3

# Addresses, paths, names of variables, markup: no words of the language. From the start of a word
# only: from each letter a long line without spaces would take minutes.
_LINK_TARGET = re.compile(r"(?<=\])\([^()\s]{1,500}\)|\{[{%][^{}\n]{1,500}[}%]\}")
_NOT_PROSE = re.compile(
    r"(?<!\S)(?=\S*?(?:://|[_\\=<>@{}$^~]|\w[/.:]\w|\w\())\S+"
    r"|&\w+;|(?<!\w)[-+]{1,2}\w[\w-]*"
)
_TOKEN = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|[^\s\w]|\d[\w.]*|\n")
# Words of every folder: of notes on notes, of dates, of code.
_COMMON = frozenset(
    """
    able add allow already also although always another appear apply ask available begin behave
    certain check choose common complete consider contain continue correct create currently decide
    describe different directly either else exist expect fine form forward handle however idea
    include interest leave level manage match mention month multiple necessary normal offer option
    order originally particular pick prefer previous provide purpose receive recent remain
    remove replace reply return select send separate similar single sometimes
    special specific stay sure switch takes tend therefore though understand unless usual whatever
    whether whole wonder another anything around back become best better big call called came case
    come day days done e.g easy either else enough etc even every everything example far
    few find fine first follow following found full gave general get gets getting give given go
    goes going gone good great happen help high i.e important instead keep kind know known large
    last later least left less let like line list little long look lot made make makes making many
    maybe mean means much near need needed needs never new next note nothing number ok old open
    part people place point possible probably put quite rather read really right run said same say
    second see seem seen set several show side simple simply since small something soon start
    still stuff sure take taken tell text thing things think three time times title today together
    took top true try turn two upon use used useful user users uses using usually value
    via want way well went wish without word work works write wrote year years yet
    january february march april june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday false none null
    """.split()
)


Key = tuple[str, ...]
"""The stems of a term."""

_COMMON_STEMS = frozenset(map(stem, _COMMON))


class Term(NamedTuple):
    """A characteristic term.

    Attributes:
        text: as it is written most often.
        words: its stems.
        inside: the number of foreground passages that have it.
        outside: the number of other passages that have it.
        documents: the number of foreground documents that have it.
        z: the standard score of its log-odds.
    """

    text: str
    words: Key
    inside: int
    outside: int
    documents: int
    z: float


class PassageWords(NamedTuple):
    """A passage as the statistics see it.

    Attributes:
        document: tells its document.
        runs: its content words, in runs of adjacent ones; as they are written.
        stems: the same, as stems.
    """

    document: str
    runs: tuple[tuple[str, ...], ...]
    stems: tuple[tuple[str, ...], ...]


def words_of_passage(
    document: str, text: str, stop_words: frozenset[str] | None = None
) -> PassageWords:
    """The content words of a passage.

    Stop words, punctuation marks and ends of lines separate the runs. Addresses, paths and names of
    variables are no words.

    Args:
        document: tells its document.
        text: its text.
        stop_words: those of its document; ``None`` for those of the language of the text.
    """
    runs = tuple(map(tuple, _runs(text, stop_words_of(text) if stop_words is None else stop_words)))
    return PassageWords(
        document, runs, tuple(tuple(stem(word.lower()) for word in run) for run in runs)
    )


def content_words(text: str) -> list[str]:
    """The content words of a short text, in lower case and in order."""
    return [word.lower() for run in _runs(text, stop_words_of(text)) for word in run]


def content_stems(text: str) -> list[str]:
    """The different stems of the content words of a short text, such as a role's name, in order."""
    return list(dict.fromkeys(map(stem, content_words(text))))


def stop_words_of(text: str) -> frozenset[str]:
    """The words that are no subject in the languages that a text seems to be in."""
    return _stop_words(likely_languages(text))


def without_repeats(texts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The passages of each document without the lines that a document before it has.

    Such lines are notices, signatures, and what a reply quotes: their words say nothing of how many
    documents are about them. Short lines stay.

    Args:
        texts: document → its passages.
    """
    known: set[str] = set()
    plain: dict[str, list[str]] = {}
    for document, passages in texts.items():
        own: set[str] = set()
        remaining_lines = []
        for passage in passages:
            lines = [(line, _folded(line)) for line in passage.split("\n")]
            own.update(folded for _, folded in lines if folded)
            remaining_lines.append("\n".join(line for line, folded in lines if folded not in known))
        plain[document] = remaining_lines
        known |= own
    return plain


def characteristic_terms(
    foreground: Sequence[PassageWords],
    background: Sequence[PassageWords],
    least_share: float = MIN_SHARE,
) -> list[Term]:
    """The terms that the foreground has significantly more often, the most significant first.

    A term is a content word, or a phrase of two or three adjacent ones. Ties are ordered by text. A
    term is left out if a longer one explains it, or if it is the name of a person.

    Args:
        foreground: the passages of the subject.
        background: the other passages. Without any, the most frequent terms of the
            foreground are returned.
        least_share: of the foreground's passages that have a single word.
    """
    inside: Counter[Key] = Counter()
    for passage in foreground:
        inside.update(set(_terms(passage.stems)))
    inside = Counter({key: count for key, count in inside.items() if count >= MIN_PASSAGES})
    outside: Counter[Key] = Counter()
    for passage in background:
        outside.update({key for key in _terms(passage.stems) if key in inside})
    documents: defaultdict[Key, set[str]] = defaultdict(set)
    spellings: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for passage in foreground:
        for key, spelling in zip(_terms(passage.stems), _terms(passage.runs), strict=True):
            if key in inside:
                documents[key].add(passage.document)
                spellings[key][_spelled(spelling)] += 1
    # A word of one or two documents may be their author's habit.
    least = min(3, len({passage.document for passage in foreground}) // 2)
    found = []
    for key, count in inside.items():
        if outside[key] > MAX_COMMON * max(len(background), 1):
            continue
        if len(documents[key]) < least or count < MIN_PRECISION * (count + outside[key]):
            continue
        share = least_share if len(key) == 1 else MIN_PHRASE_SHARE
        if count < share * len(foreground):
            continue
        prior = _PRIOR_PASSAGES * (count + outside[key]) / (len(foreground) + len(background))
        z = _standard_score(count, len(foreground), outside[key], len(background), prior)
        if background and z < SIGNIFICANT:
            continue
        text = min(spellings[key].items(), key=lambda item: (-item[1], len(item[0]), item[0]))[0]
        if len(text) <= _MAX_TERM_CHARS:
            found.append(Term(text, key, count, outside[key], len(documents[key]), round(z, 2)))
    found.sort(key=lambda term: (-term.z, -len(term.words), term.text))
    return _without_names(_without_parts(found), (*foreground, *background))


def terms_named(
    texts: Iterable[str], foreground: Sequence[PassageWords], background: Sequence[PassageWords]
) -> list[Term]:
    """Given words and phrases as terms; without those that are of no use to find the foreground.

    ``text`` is as given. Of several with the same stems the first is returned.
    """
    text_by_key: dict[Key, str] = {}
    for text in texts:
        key = tuple(content_stems(text))
        if key and len(key) <= MAX_WORDS:
            text_by_key.setdefault(key, text)
    inside, outside = (_counts(passages, text_by_key) for passages in (foreground, background))
    found = []
    for key, text in text_by_key.items():
        count = len(inside[key])
        if count >= MIN_PASSAGES and count >= MIN_PRECISION * (count + len(outside[key])):
            prior = (
                _PRIOR_PASSAGES * (count + len(outside[key])) / (len(foreground) + len(background))
            )
            z = _standard_score(count, len(foreground), len(outside[key]), len(background), prior)
            documents = len({foreground[number].document for number in inside[key]})
            found.append(Term(text, key, count, len(outside[key]), documents, round(z, 2)))
    return found


def _counts(passages: Sequence[PassageWords], wanted: Container[Key]) -> dict[Key, list[int]]:
    """Term → the positions of the passages that have it, for the wanted ones."""
    found: defaultdict[Key, list[int]] = defaultdict(list)
    for number, passage in enumerate(passages):
        for key in {key for key in _terms(passage.stems) if key in wanted}:
            found[key].append(number)
    return found


def _terms(runs: Iterable[Sequence[str]]) -> Iterator[Key]:
    for run in runs:
        for start in range(len(run)):
            for end in range(start + 1, min(len(run), start + MAX_WORDS) + 1):
                yield tuple(run[start:end])


def _standard_score(
    inside: int, size: int, outside: int, background_size: int, prior: float
) -> float:
    a, b = inside + prior, outside + prior
    complement_a = max(size + _PRIOR_PASSAGES - a, 0.5)
    complement_b = max(background_size + _PRIOR_PASSAGES - b, 0.5)
    difference = math.log(a / complement_a) - math.log(b / complement_b)
    return difference / math.sqrt(1 / a + 1 / b)


def _without_parts(terms: Sequence[Term]) -> list[Term]:
    """The terms without those that mostly occur as a part of a longer one."""
    longer: defaultdict[Key, int] = defaultdict(int)
    for term in terms:
        for part in _parts(term.words):
            longer[part] = max(longer[part], term.inside)
    return [term for term in terms if longer[term.words] < SUBSUMED * term.inside]


def _without_names(terms: Sequence[Term], passages: Sequence[PassageWords]) -> list[Term]:
    """The terms without phrases of words that are mostly written with a capital.

    In minutes these are the names of those who attended.
    """
    parts = {word for term in terms if len(term.words) > 1 for word in term.words}
    capitals: Counter[str] = Counter()
    for passage in passages:
        for run, stems in zip(passage.runs, passage.stems, strict=True):
            for spelled, word in zip(run, stems, strict=True):
                if word in parts:
                    capitals[word] += 1 if spelled.istitle() else -_LOWER_CASE_WEIGHT
    return [t for t in terms if len(t.words) == 1 or any(capitals[word] <= 0 for word in t.words)]


def _parts(words: Key) -> Iterator[Key]:
    for length in range(1, len(words)):
        for start in range(len(words) - length + 1):
            yield words[start : start + length]


def _runs(text: str, stop_words: frozenset[str]) -> Iterator[list[str]]:
    """The runs of adjacent content words of a text."""
    prose = _NOT_PROSE.sub(" . ", _LINK_TARGET.sub(" . ", text))
    run: list[str] = []
    for token in _TOKEN.findall(prose):
        lower = token.lower()
        if len(token) > 1 and token[0].isalpha() and not _is_common(lower, stop_words):
            run.append(token)
            continue
        # Markup of emphasis and code inside of a line does not end a phrase.
        if run and token not in ("*", "`", '"', "“", "”"):
            yield run
            run = []
    if run:
        yield run


def _is_common(word: str, stop_words: frozenset[str]) -> bool:
    return word in stop_words or stem(word) in _COMMON_STEMS


@lru_cache(maxsize=64)
def _stop_words(languages: tuple[str, ...]) -> frozenset[str]:
    words = ENGLISH
    for language in languages:
        words |= STOP_WORDS.get(language, frozenset())
    return words


def _spelled(words: Key) -> str:
    """The term in lower case; an abbreviation keeps its capitals."""
    return " ".join(word if word.isupper() else word.lower() for word in words)


def _folded(line: str) -> str:
    """A line without the marks of a quotation; empty if it is short."""
    words = line.lstrip("> |\t").split()
    return " ".join(words) if len(words) >= _REPEATED_LINE_WORDS else ""
