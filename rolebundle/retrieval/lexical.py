"""The lexical lane: BM25 of the task's terms and of the role's, scored separately.

All visible compartments are searched as if they were one index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rolebundle.contracts.terms import Lane
from rolebundle.contracts.why import SearchAim
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.values import Query, Term
from rolebundle.storage import compartments
from rolebundle.storage.corpus import Corpus, once_in_snapshot
from rolebundle.storage.lexical_index import Phrase, phrase_of
from rolebundle.storage.passages import chunks_of, first_by_score, passages_by_rowid
from rolebundle.text.forms import index_tokens, stems_in_any_language
from rolebundle.text.languages import (
    ENGLISH_STOP_WORDS,
    STOP_WORDS,
    likely_languages,
    stop_words_of,
)
from rolebundle.text.spellings import others_of
from rolebundle.text.words import is_english, is_ordinary, rarity, stem

if TYPE_CHECKING:
    from rolebundle.storage.postings import Indices, Occurrences, Postings

MAX_RARE_CHUNKS = 50
"""The most chunks that have an exact term that counts as rare."""
EXACT_PROPOSED = 5
"""How many of the best chunks with a rare exact term are proposed."""
MIN_CHUNKS_OF_SPELLING = 2
"""How many chunks must have a word that is taken for the right spelling of another one; in a corpus
of under a hundred chunks, one is enough."""
MIN_LETTERS, MAX_LETTERS = 4, 20
"""The length of words that may be misspelled."""
MIN_LETTERS_OF_SLIP, MIN_LETTERS_OF_REPLACED = 5, 8
"""Not in English: the fewest letters of a corrected word; and if the slip replaced a letter."""
MAX_CORRECTED = 4
"""How many words of a task are corrected at most, and how many spellings of each are compared."""
_AGENT_NOUN = re.compile("(.{3,})ers?$")
"""English stems do not join roofer and roof."""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MIN_IDF = 1e-6


# -- the lane ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WordSearch:
    """The postings of words, ready to be searched for the task's terms, or for the role's.

    Attributes:
        aim: whose terms they are.
        postings: of the chunks that are visible.
        terms: what is searched for.
        rare_exact: the rare exact words and phrases of the task; the best chunks with each are
            proposed, too.
    """

    lane: ClassVar[Lane] = "lexical"
    aim: SearchAim
    postings: CombinedPostings
    terms: Sequence[Term]
    rare_exact: Sequence[str] = ()

    def propose(self, depth: int, within: Sequence[int] | None = None) -> dict[int, float]:
        """Rowid → BM25 of the best chunks."""
        exact = ([Term(phrase), *map(Term, others_of(phrase))] for phrase in self.rare_exact)
        best = (self.postings.best(terms, EXACT_PROPOSED, within) for terms in exact)
        having = [rowid for rowids in best for rowid in rowids]
        return self.score(having) | self.postings.best(self.terms, depth, within)

    def score(self, rowids: Sequence[int]) -> dict[int, float]:
        """Rowid → BM25, of the chunks that have one of the terms."""
        scores = self.postings.scores(self.terms, rowids)
        return {rowid: score for rowid, score in scores.items() if score}


def word_searches(
    corpus: Corpus, query: Query, rare_exact: Sequence[str] = (), *, only_facts: bool = False
) -> list[WordSearch]:
    """The searches for the task's terms and for the role's.

    Args:
        corpus: an open corpus.
        query: the built query.
        rare_exact: the rare exact words and phrases of the task.
        only_facts: search remembered facts, by the statistics of documents and facts.
    """
    postings = _postings(corpus, only_facts=only_facts)
    return [
        WordSearch("task_words", postings, query.task_terms, rare_exact),
        WordSearch("role_words", postings, query.expansion_terms),
    ]


def read_ahead(corpus: Corpus, query: Query) -> None:
    """Read all words of a query at once, and keep them in memory."""
    terms = [
        *query.task_terms,
        *query.expansion_terms,
        *(term for word in query.content_words for term in word),
        *map(Term, query.task.exact),
    ]
    for postings in _all_postings(corpus).parts:
        postings.read(corpus, [_phrase(term) for term in terms])


def exact_words(corpus: Corpus, query: Query) -> tuple[list[str], list[str]]:
    """The rare exact words and phrases of a task, and the exact ones that occur nowhere."""
    exact = [[Term(phrase), *map(Term, others_of(phrase))] for phrase in query.task.exact]
    counts = list(zip(query.task.exact, _postings(corpus).frequencies(exact), strict=True))
    rare = [phrase for phrase, count in counts if 0 < count <= MAX_RARE_CHUNKS]
    return rare, [phrase for phrase, count in counts if not count]


def with_corrections(corpus: Corpus, query: Query) -> Query:
    """The query in which each misspelled word of the task is searched as a known one as well.

    - Looked at are words that neither English nor a visible chunk has. Names and the function words
      of all languages are never corrected.
    - A word is misspelled if one change of a letter, which is a likely slip
      (:func:`_is_likely_slip`), makes it one that ``MIN_CHUNKS_OF_SPELLING`` chunks have.
    - Of several such words, an English task takes function words first, then English words, then
      the more frequent.
    - A task in another language takes the more frequent, if a passage of its language has the word:
      it has correct words that English lacks, and other forms of known words.
    """
    postings = _postings(corpus)
    languages = frozenset(query.task.languages)
    own = sorted(query.positions_by_wording[0] - query.name_positions)
    words = list(query.content_words)
    positions = [position for position in own if _may_be_misspelled(words[position][0].text)]
    if not postings.parts or not positions:
        return query
    counts = postings.frequencies([words[position] for position in positions])
    corrected: dict[str, str] = {}
    unknown = [position for position, count in zip(positions, counts, strict=True) if not count]
    stems: list[Term] = []
    for position in unknown[:MAX_CORRECTED]:
        word = words[position][0].text
        # One word does not show its language, and may be typed without accents (zolta for żółtej).
        # So stems of every language are tried.
        forms = [Term(form, is_form=True) for form in stems_in_any_language(word)]
        forms += [Term(verb) for verb in _AGENT_NOUN.findall(word)]
        found = postings.frequencies([[form] for form in forms])
        if known := [form for form, count in zip(forms, found, strict=True) if count]:
            words[position] = (*words[position], *known)
            stems += known
            continue
        singulars = {stem(word), word.removesuffix("s")}  # "Lends" and "novices" are English.
        if not languages and any(len(s) >= MIN_LETTERS and is_english(s) for s in singulars):
            continue
        changed = [w for w in one_change_away(word) if _is_likely_slip(word, w, languages)]
        frequencies = postings.frequencies([[Term(other)] for other in changed])
        often = [
            (not languages and (other in ENGLISH_STOP_WORDS, is_english(other)), count, other)
            for count, other in zip(frequencies, changed, strict=True)
            if count >= min(MIN_CHUNKS_OF_SPELLING, 1 + postings.chunks // 100)
        ]
        for _, _, other in sorted(often, reverse=True)[:MAX_CORRECTED]:
            if (is_english(other) and not languages) or _occurs_as_is(postings, other, languages):
                corrected[word] = other
                words[position] = (*words[position], Term(other))
                break
    terms = (*query.task_terms, *stems, *map(Term, corrected.values()))
    return query._replace(content_words=tuple(words), task_terms=terms, corrected=corrected)


def _occurs_as_is(postings: CombinedPostings, word: str, languages: frozenset[str]) -> bool:
    """Whether one of the best chunks for a word has it; the index may only know another form.

    Args:
        postings: where to look.
        word: in lower case.
        languages: if any are given, a chunk counts only if it is in one of them. A chunk without a
            recognizable language, such as a table, counts for a word that is not English.
    """
    best = postings.best([Term(word)], EXACT_PROPOSED)
    for passage in passages_by_rowid(postings.corpus, list(best)).values():
        text = f"{passage.document.title} {passage.content}"
        if word in words_of(text):
            shown = likely_languages(text)
            if not languages or (languages & {*shown} if shown else not is_english(word)):
                return True
    return False


def _may_be_misspelled(word: str) -> bool:
    is_plain = MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii() and word.isalpha()
    return is_plain and not is_english(word) and word not in stop_words_of(tuple(STOP_WORDS))


def _is_likely_slip(word: str, other: str, languages: frozenset[str]) -> bool:
    """Whether the change is a typing error, and not another word or another form of the word.

    An English function word has the same first and last letter: which for wich, but not would for
    mould. Another frequent one has the same first letter: not ends for lents. In other
    languages endings differ in forms, the first letter is seldom mistyped, and short words differ
    from others by one letter: ergeben, erheben.
    """
    is_swapped = sorted(word) == sorted(other)
    has_edges = word[0] == other[0] and (is_swapped or word[-1] == other[-1])
    if not languages:
        is_frequent = word[0] != other[0] and is_ordinary(other)
        return has_edges or not (is_frequent or other in ENGLISH_STOP_WORDS)
    is_replaced = len(word) == len(other) and not is_swapped
    least = MIN_LETTERS_OF_REPLACED if is_replaced else MIN_LETTERS_OF_SLIP
    return has_edges and len(word) >= least and other not in stop_words_of(tuple(STOP_WORDS))


def one_change_away(word: str) -> list[str]:
    """The words with a letter removed, replaced or added, or two swapped (Damerau, 1964)."""
    splits = [(word[:cut], word[cut:]) for cut in range(len(word) + 1)]
    found = {head + tail[1:] for head, tail in splits if tail}
    found |= {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    found |= {head + letter + tail[1:] for head, tail in splits if tail for letter in _ALPHABET}
    found |= {head + letter + tail for head, tail in splits for letter in _ALPHABET}
    return sorted(found - {word})


def word_evidence(
    corpus: Corpus, query: Query, rowids: Sequence[int], *, only_facts: bool = False
) -> Evidence:
    """How often the task's content words occur in all visible chunks, and in which of these."""
    postings = _postings(corpus, only_facts=only_facts)
    return Evidence(
        frequencies=postings.frequencies(query.content_words),
        chunks=postings.chunks,
        matches=matching_words(corpus, query.content_words, rowids),
        positions_by_wording=query.positions_by_wording,
        rarities=[rarity(word.text) for word, *_ in query.content_words],
    )


def matching_words(
    corpus: Corpus, words: Sequence[Sequence[Term]], rowids: Sequence[int]
) -> dict[int, frozenset[int]]:
    """Rowid → the positions of the words of which the chunk has a term, for each of the chunks."""
    positions: dict[int, set[int]] = {rowid: set() for rowid in rowids}
    for position, having in enumerate(_all_postings(corpus).matches(words, rowids)):
        for rowid in having:
            positions[rowid].add(position)
    return {rowid: frozenset(matched) for rowid, matched in positions.items()}


@once_in_snapshot
def _postings(corpus: Corpus, *, only_facts: bool = False) -> CombinedPostings:
    """The words of documents, scored by the statistics of documents.

    ``only_facts``: the words of facts, scored by the statistics of documents and facts.
    """
    counted = compartments.searchable_compartments(corpus, with_facts=only_facts)
    searched_ids = [one.id for one in counted if one.is_of_facts is only_facts]
    return CombinedPostings.of(corpus, [one.id for one in counted], searched_ids)


@once_in_snapshot
def _all_postings(corpus: Corpus) -> CombinedPostings:
    """The words of documents and of facts."""
    visible = compartments.searchable_compartments(corpus, with_facts=True)
    return CombinedPostings.of(corpus, [compartment.id for compartment in visible])


class CombinedPostings(NamedTuple):
    """The words of some compartments, as one index.

    Attributes:
        corpus: an open corpus.
        parts: the words of each compartment whose statistics count.
        searched: those of the parts in which it searches.
    """

    corpus: Corpus
    parts: Sequence[Postings]
    searched: Sequence[Postings]

    @classmethod
    def of(
        cls, corpus: Corpus, counted_ids: Sequence[int], searched_ids: Sequence[int] | None = None
    ) -> CombinedPostings:
        """The index of some compartments.

        Args:
            corpus: an open corpus.
            counted_ids: of the compartments whose statistics count.
            searched_ids: of the ones in which it searches; ``None`` for all.
        """
        # Imported here, because numpy takes time.
        from rolebundle.storage.postings import postings_of

        parts = {compartment: postings_of(corpus, compartment) for compartment in counted_ids}
        chosen = counted_ids if searched_ids is None else searched_ids
        return cls(corpus, list(parts.values()), [parts[compartment] for compartment in chosen])

    @property
    def chunks(self) -> int:
        """How many chunks it has."""
        return sum(len(part.rowids) for part in self.parts)

    def best(
        self, terms: Sequence[Term], depth: int, within: Sequence[int] | None = None
    ) -> dict[int, float]:
        """Rowid → score of the best chunks, best first, and of all that tie with the last one.

        Args:
            terms: what is searched for.
            depth: how many chunks.
            within: rowids of the documents to search in; ``None`` for all.
        """
        found: dict[int, float] = {}
        chunks = None if within is None else chunks_of(self.corpus, within)
        for part, weighted, average in self._weighted(terms):
            if part in self.searched:
                only = None if chunks is None else part.indices_of(chunks)
                scores = part.bm25(weighted, average, only)
                found |= part.highest(scores, depth, only)
        return first_by_score(self.corpus, found, depth)

    def scores(self, terms: Sequence[Term], rowids: Sequence[int]) -> dict[int, float]:
        """Rowid → score, for each of these chunks; 0 if it has no term."""
        found = dict.fromkeys(rowids, 0.0)
        for part, weighted, average in self._weighted(terms):
            only = part.indices_of(rowids)
            scores = part.bm25(weighted, average, only)
            found |= zip(part.rowids[only].tolist(), scores.tolist(), strict=True)
        return found

    def frequencies(self, words: Sequence[Sequence[Term]]) -> list[int]:
        """For each word, how many chunks have one of its terms."""
        having = zip(*(self._having(part, words) for part in self.parts), strict=True)
        return [sum(map(len, of_parts)) for of_parts in having] or [0] * len(words)

    def matches(self, words: Sequence[Sequence[Term]], rowids: Sequence[int]) -> list[set[int]]:
        """For each word, which of these rowids are of chunks with one of its terms."""
        found: list[set[int]] = [set() for _ in words]
        for part in self.parts:
            asked = part.indices_of(rowids)
            if not len(asked):
                continue
            for rows, indices in zip(found, self._having(part, words), strict=True):
                rows.update(part.common(asked, indices))
        return found

    def _having(self, part: Postings, words: Sequence[Sequence[Term]]) -> list[Indices]:
        phrases = [[_phrase(term) for term in terms] for terms in words]
        part.read(self.corpus, [phrase for of_word in phrases for phrase in of_word])
        return [part.having(self.corpus, of_word) for of_word in phrases]

    def _weighted(
        self, terms: Sequence[Term]
    ) -> Iterator[tuple[Postings, list[tuple[Occurrences, float, int]], float]]:
        """For each part, what the terms weigh in it, and the mean number of tokens in all."""
        phrases = [_phrase(term) for term in terms]
        found = [part.read(self.corpus, phrases) for part in self.parts]
        average = sum(part.tokens for part in self.parts) / max(1, self.chunks)
        counts = [sum(len(rows) for rows, _ in of_parts) for of_parts in zip(*found, strict=True)]
        pairs = [*zip(terms, counts, strict=False)]  # Without a part there are no counts.
        of_words = {term.text: count for term, count in pairs if not term.is_form}
        most = [max(count, of_words.get(term.word, 0)) for term, count in pairs]
        # The inverse frequencies in the chunks; at least FTS5's floor.
        idfs = [max(_MIN_IDF, math.log((self.chunks - n + 0.5) / (n + 0.5))) for n in most]
        for part, occurrences in zip(self.parts, found, strict=True):
            repeats = (term.repeats for term in terms)
            yield part, list(zip(occurrences, idfs, repeats, strict=True)), average


def _phrase(term: Term) -> Phrase:
    return phrase_of(index_tokens(term.text) if term.is_form else term.text)
