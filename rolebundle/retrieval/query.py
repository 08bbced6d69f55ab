"""Build the query from a task and an overlay. Pure.

The task's own terms and the role's expansion terms are separate. Both propose chunks, but only the
task's terms count as relevance to the task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.values import Query, Task, Term
from rolebundle.text.figures import Figure, find_figures
from rolebundle.text.forms import forms, phrase_form, spaced
from rolebundle.text.languages import (
    CALLED,
    ENGLISH_STOP_WORDS,
    is_unspaced,
    likely_languages,
    stop_words_of,
)
from rolebundle.text.spellings import folded, spellings, with_whole_numbers, without_invisible
from rolebundle.text.tasks import OPEN_TASK, words_for_open_tasks
from rolebundle.text.words import lower_capitals, other_forms

SIGNATURE_PHRASES = 3
MAX_BOOST_PHRASES = 8
MIN_SHARE_OF_PHRASE = 0.3
MAX_SYNONYMS = 2
# Bounds for a task of a hundred kilobytes: the lexical lane's cost grows with its terms.
MAX_TASK_TERMS = 128
MAX_CONTENT_WORDS = 48
MAX_REPEATS = 8
MAX_EXACT = 64
_MAX_EXACT_CHARS = 10_000
_DAY_FORMS = ("{m:02} {d:02}", "{d:02} {m:02}", "{d} {m}")
_MIN_DIGITS = 3
"""A shorter number is mostly an amount, and means nothing alone."""
STEM_REPEATS = 2
"""How often a stem is in the query; its word is there once, as the stem matches other forms, too.

docs/quality.md has how it was chosen.
"""

# Letters and digits with their combining marks, as in a token of the lexical index. Possessive, so
# that a word of a megabyte is read once and not once for each letter.
_LETTERS = r"[^\W_]++(?:[\u0300-\u036f]++[^\W_]*+)*+"
_WORD = re.compile(_LETTERS)
# v2.1.3, src/auth.py, Pan-Tompkins, std::vector, E_CONFLICT:409, with at most eight parts.
_COMPOUND = re.compile(
    rf"(?<![^\W_])(?<![\u0300-\u036f]){_LETTERS}(?:[-./:_@#]{{1,2}}{_LETTERS}){{1,7}}"
)
# boundary-layer, conditions--that, upper/lower: common words.
_HYPHENATED = re.compile(r"[a-z]{2,}(?:(?:-{1,2}|/)[a-z]{2,})+")
# Possessive, too. A capital after a full stop is no sign of a name.
_CAPITALIZED = re.compile(r"(?<=[^\W_]|[,;:()\"'“”’]) [\"'(“]?([^\W\d_a-z][^\W_]++)")
_LETTERS_AND_DIGITS = re.compile(r"(?<![^\W_])(?=[^\W\d_]++\d|\d++[^\W\d_])[^\W_]++")
# What can only be meant exactly. The opening quote begins a word; a phrase has at most 200 letters.
_QUOTED = re.compile(r"(?<![^\W_])[\"“„«]\s*([^\"“”„«»\n]{2,200}?)\s*[\"”“»](?![^\W_])")
_IDENTIFIER = re.compile(r"(?<![^\W_])(?:--)?[^\W_]++(?:[-./:_@#]{1,2}[^\W_]++)*+")
# "2019-03", and neither "since 2019", which asks about today, nor "ISO 9001:2015" or "#2019".
_YEAR = re.compile(
    r"(?<![\w.:/#$€£-])(?<!since )(?<!seit )(?<!depuis )(?<!desde )((?:19|20)\d\d)"
    r"(?:-\d\d(?:-\d\d)?)?(?![\w:/%-]|\.\d)",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"[\w./:@#-]*\w")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DOTTED_NUMBER = re.compile(r"v?\d+(?:\.\d+)+", re.IGNORECASE)
_SHORT_ABBREVIATION = 3
_MIN_DIGITS_OF_PART = 4
"""A shorter number within a word, as in A320, means nothing alone; that in FY2022 does."""
# e.g. and i.e. are left out: as phrases they would match every text with the same abbreviation.
_ABBREVIATION = re.compile(
    r"(?<![^\W_])(?<![-./:_@#])(?:e\.g|i\.e)\b\.?(?![-./:_@#]?[^\W_])", re.IGNORECASE
)
# don't, the 's of today's, the l' of French and Italian l'eau. They are searched, because a task
# may quote a message ("can't connect"), but are content words only if the task has no others.
_CONTRACTION = re.compile(
    r"\b[a-z]+n['’]t\b|(?<=[^\W_])['’](?:s|re|ve|ll|d|m)\b|\b(?:[cdjlmnst]|qu)['’](?=[^\W_])",
    re.IGNORECASE,
)


def build_query(task: str, overlay: Overlay | None, also: Sequence[str] = ()) -> Query:
    """Expand a task by a role's vocabulary.

    Args:
        task: any text.
        overlay: the role, or ``None`` for the task alone.
        also: other tasks of the task; their terms are added to the task's.

    Returns:
        The lexical terms of the task and of the role, the texts whose meaning is searched, and the
        rules that were applied.
    """
    tasks = tuple(map(read_task, (task, *also)))
    content_words = tuple(dict.fromkeys(word for task in tasks for word in task.content_words))
    positions = {word: position for position, word in enumerate(content_words)}
    rules = [rule for task in tasks for rule in task.rules]
    if also:
        rules.append(f"task:also({len(also)})")
    expansion: tuple[Term, ...] = ()
    filters: tuple[dict[str, Any], ...] = ()
    if overlay is not None:
        expansion, expansion_rules = _expansion(tasks[0], overlay)
        filters = _filters(overlay)
        rules += expansion_rules
        if overlay.source_policy.forbidden_sources:
            rules.append(f"filter:forbidden({len(overlay.source_policy.forbidden_sources)})")
    return Query(
        wordings=tasks,
        task_terms=_merged_terms(tasks),
        content_words=content_words,
        positions_by_wording=tuple(frozenset(positions[w] for w in t.content_words) for t in tasks),
        name_positions=frozenset(
            position
            for position, (word, *_) in enumerate(content_words)
            if not word.is_form and word.text in tasks[0].names
        ),
        expansion_terms=expansion,
        applied_rules=tuple(rules),
        applied_filters=filters,
    )


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared, without regard to case."""
    return _WORD.findall(folded(text).casefold())


def _merged_terms(tasks: Iterable[Task]) -> tuple[Term, ...]:
    """The terms of all tasks; their repeats are added, up to a bound."""
    repeats: Counter[Term] = Counter()
    for task in tasks:
        repeats.update({term._replace(repeats=1): term.repeats for term in task.terms})
    limit = MAX_REPEATS * STEM_REPEATS
    return tuple(term._replace(repeats=min(count, limit)) for term, count in repeats.items())


def read_task(text: str) -> Task:
    """Read everything from the text of a task."""
    shown = without_invisible(text)
    shortened = _ABBREVIATION.sub(" ", shown)
    normalized = lower_capitals(with_whole_numbers(shortened if _WORD.search(shortened) else shown))
    languages = likely_languages(normalized)
    unspaced_words: list[str] = []
    has_forms = bool(languages) or not normalized.isascii()
    if has_forms:
        # Both spellings: an older corpus has the words without the spaces.
        unspaced_words = [_as_indexed(word) for word in _WORD.findall(normalized)]
        normalized = spaced(normalized)
    stop_words = stop_words_of(languages)
    words = [_as_indexed(word) for word in _WORD.findall(normalized)]
    spaced_words = frozenset(words)
    words += [word for word in unspaced_words if word not in spaced_words]
    informative = [word for word in words if word.lower() not in stop_words]
    # "Who are we?" has only stop words. Then they are searched.
    counts = Counter(informative or words)
    contractions = " ".join(_CONTRACTION.findall(normalized))
    contracted = frozenset(map(_as_indexed, _WORD.findall(contractions)))
    content_texts = [word for word in counts if word not in contracted] or [*counts]
    content_texts = content_texts[:MAX_CONTENT_WORDS]
    content_words: list[tuple[Term, ...]] = [(Term(word),) for word in content_texts]
    counts.update(_as_indexed(phrase) for phrase in _QUOTED.findall(normalized) if " " in phrase)
    compounds = _COMPOUND.findall(normalized)
    # The parts of a version say nothing alone.
    counts.update(_as_indexed(compound) for compound in filter(_DOTTED_NUMBER.fullmatch, compounds))
    others = _other_spellings(shown)
    if asking := words_for_open_tasks(words_of(normalized)):
        others[OPEN_TASK] = tuple(asking)
    if not languages:
        of_words = ((word, other_forms(word.lower())) for word in content_texts)
        others |= {form: (word.lower(),) for word, found in of_words for form in found}
    counts.update(list(others))
    term_counts = [(counts, 1, False)]
    if has_forms:
        word_forms = forms(normalized, languages, stop_words if informative else ())
        # A stem of one letter matches no more than its word, which is often a symbol: β, x.
        stems = Counter(stem for stem in word_forms.stems if len(stem) > 1)
        term_counts.append((stems, STEM_REPEATS, True))
        term_counts.append((Counter([*word_forms.letters, *word_forms.pairs]), 1, True))
        content_words = _with_forms(content_texts, languages)
    content_words = [
        (*terms, *(Term(other) for other, replaced in others.items() if word in replaced))
        for terms in content_words
        for word in [folded(terms[0].text).lower()]
    ]
    word_of = {stem.text: word.text for word, *stems in content_words for stem in stems}
    # most_common is stable: of equally frequent terms the first in the task are used.
    repeats = {
        (term, form): factor * min(count, MAX_REPEATS)
        for counted, factor, form in term_counts
        for term, count in counted.most_common(MAX_TASK_TERMS)
    }
    return Task(
        text=text,
        languages=languages,
        words=words_of(text),
        terms=tuple(Term(t, n, form, word_of.get(t, "")) for (t, form), n in repeats.items()),
        content_words=tuple(content_words[:MAX_CONTENT_WORDS]),
        names=_names(shown),
        exact=_exact(shown),
        years=tuple(_YEAR.findall(text)),
        as_written={word.lower(): word for word in _WRITTEN.findall(text)},
        rules=tuple(
            f"task:cut({len(counted)} terms to {MAX_TASK_TERMS})"
            for counted, _, _ in term_counts
            if len(counted) > MAX_TASK_TERMS
        ),
    )


def _with_forms(words: Iterable[str], languages: Sequence[str]) -> list[tuple[Term, ...]]:
    """Each word with its stems; scripts without spaces as pairs of letters, each like a word."""
    content_words: list[tuple[Term, ...]] = []
    for word in words:
        word_forms = forms(word, languages)
        if is_unspaced(word):
            pairs = word_forms.pairs or word_forms.letters
            content_words += [(Term(pair, is_form=True),) for pair in pairs]
        else:
            stems = dict.fromkeys(word_forms.stems)
            content_words.append((Term(word), *(Term(stem, is_form=True) for stem in stems)))
    return list(dict.fromkeys(content_words))


def _names(text: str) -> frozenset[str]:
    """The words that look like names."""
    # In a text of capitals a capital says nothing. A short abbreviation is often written out.
    capitalized = [] if text.isupper() else _CAPITALIZED.findall(text)
    likely = (w for w in capitalized if not (w.isupper() and len(w) <= _SHORT_ABBREVIATION))
    names = (w for w in likely if w[0].isupper() and folded(w).lower() not in CALLED)
    return frozenset(map(_as_indexed, (*names, *_LETTERS_AND_DIGITS.findall(text))))


def _exact(text: str) -> tuple[str, ...]:
    """The quoted phrases, and the words that can only be meant exactly: numbers and identifiers.

    An identifier has letters and digits, a capital within (``asyncTimeout``), signs between its
    parts (``async_timeout``, ``src/auth.py``), or is an option (``--log-file``).
    """
    beginning = _ABBREVIATION.sub(" ", text[:_MAX_EXACT_CHARS])
    identifiers = filter(_is_identifier, _IDENTIFIER.findall(with_whole_numbers(beginning)))
    found = map(_as_indexed, (*_QUOTED.findall(beginning), *identifiers))
    return tuple(dict.fromkeys(found))[:MAX_EXACT]


def _is_identifier(word: str) -> bool:
    if word.startswith("--") or (len(word) > 1 and any(map(str.isdigit, word))):
        return not word.isdigit() or len(word) >= _MIN_DIGITS
    return bool(_CAMEL.search(word) or re.search("[_./:@#]", word)) and not _is_common(word)


def _is_common(compound: str) -> bool:
    """Whether a compound only joins common words, so that its parts are enough."""
    if _HYPHENATED.fullmatch(compound):
        return True
    return all(word in ENGLISH_STOP_WORDS for word in words_of(compound))


def _other_spellings(text: str) -> dict[str, tuple[str, ...]]:
    """Other spellings of the task's words, and the words that each stands for."""
    found = {one.other: one.words for one in spellings(folded(text))[:MAX_CONTENT_WORDS]}
    # Only the beginning, because a task may be long.
    beginning = text[:_MAX_EXACT_CHARS]
    for figure in find_figures(beginning) if re.search(r"\d", beginning) else ():
        if figure.unit == "date":
            found |= dict.fromkeys(_days_as_numbers(figure), (*words_of(figure.text),))
    for other, words in [*found.items()]:
        numbers = (part for part in other.split() if part.isdecimal() and part != other)
        found |= dict.fromkeys((n for n in numbers if len(n) >= _MIN_DIGITS_OF_PART), words)
    return found


def _days_as_numbers(figure: Figure) -> list[str]:
    """A day of the year as the words of ``2026-12-05``, ``05.12.2026`` and ``5.12.``."""
    days = [value[1:] for kind, value in figure.readings if kind == "date"]
    return [form.format(m=m, d=d) for m, d in days if m and d for form in _DAY_FORMS]


def _expansion(task: Task, overlay: Overlay) -> tuple[tuple[Term, ...], list[str]]:
    vocabulary = overlay.vocabulary
    distinct_words = frozenset(task.words)
    rules = []

    signature = vocabulary.boost_phrases[:SIGNATURE_PHRASES]
    relevant = [
        phrase
        for phrase in vocabulary.boost_phrases[SIGNATURE_PHRASES:]
        # Enough of its words.
        if sum(w in distinct_words for w in words_of(phrase))
        > MIN_SHARE_OF_PHRASE * len(words_of(phrase))
    ]
    boosts = (signature + relevant)[:MAX_BOOST_PHRASES]
    if boosts:
        rules.append(f"vocab:boost({len(boosts)} phrases, {len(signature)} signature)")

    preferred = [
        term for term in vocabulary.preferred_terms if _contains_phrase(task.words, words_of(term))
    ]
    if preferred:
        rules.append(f"vocab:preferred({len(preferred)} terms)")

    expanded = [task.words, *(words_of(text) for text in (*boosts, *preferred))]
    synonyms: list[str] = []
    for canonical, alternatives in vocabulary.synonyms.items():
        if any(_contains_phrase(words, words_of(canonical)) for words in expanded):
            synonyms += alternatives[:MAX_SYNONYMS]
            rules.append(f"vocab:synonym({canonical})")

    texts = map(_as_indexed, (*boosts, *preferred, *synonyms))
    terms = [Term(text) for text in dict.fromkeys(texts)]
    in_forms = _phrase_forms([term.text for term in terms], task.languages)
    return (*terms, *(Term(text, is_form=True) for text in in_forms)), rules


def _phrase_forms(phrases: Iterable[str], languages: tuple[str, ...]) -> list[str]:
    """The phrases as their forms, in the task's languages and in their own."""
    with_forms = [phrase for phrase in phrases if languages or not phrase.isascii()]
    if not with_forms:
        return []
    phrase_forms = (
        phrase_form(phrase, language)
        for phrase in with_forms
        for language in dict.fromkeys((*languages, *likely_languages(phrase), ""))
    )
    return list(dict.fromkeys(filter(None, phrase_forms)))


def _as_indexed(text: str) -> str:
    # The index folds case by its own tables. Python would change "straße" to "strasse", which the
    # index does not contain. So only ASCII text is folded here.
    return text.lower() if text.isascii() else text


def _contains_phrase(words: list[str], phrase: list[str]) -> bool:
    """Whether ``words`` contains the words of the phrase, one directly after the other."""
    return bool(phrase) and f" {' '.join(phrase)} " in f" {' '.join(words)} "


def _filters(overlay: Overlay) -> tuple[dict[str, Any], ...]:
    source_policy, policy = overlay.source_policy, overlay.retrieval_policy
    filters: list[dict[str, Any]] = [
        {"field": "excluded_roles", "op": "not_in", "value": [overlay.role_id]}
    ]
    forbidden, allowed = source_policy.forbidden_sources, source_policy.allowed_sources
    for op, rules in (("not_contains", forbidden), ("contains", allowed)):
        if rules:
            conditions = [rule.condition for rule in rules]
            filters.append({"field": "source", "op": op, "value": conditions})
    if policy.role_mismatch_penalty >= 1:
        filters.append({"field": "applicable_roles", "op": "contains", "value": [overlay.role_id]})
    if policy.freshness_max_age_days is not None and policy.stale_penalty >= 1:
        filters.append({"field": "age_days", "op": "lt", "value": policy.freshness_max_age_days})
    return tuple(filters)
