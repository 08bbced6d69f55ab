"""What is newer by path, date, declared version or what a text says. Pure.

Also which passage may stand for, or come before, another one: :func:`may_displace`.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import filterfalse
from operator import ge
from typing import NamedTuple

from rolebundle.contracts.dates import date_in_name, entries_of, is_month, newest_words, season_of
from rolebundle.contracts.documents import Passage
from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.resources import data_file
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.values import Candidate, ranking_order
from rolebundle.text.languages import likely_languages, stop_words_of
from rolebundle.text.spellings import folded
from rolebundle.text.words import content_words

*_LISTS, _KINDS = data_file(__file__, "versions.toml").values()
_OLD, _OF_OLD, _COPY_OF, _DRAFT, _FINAL, _FINALS, _SIGNED = map(str.split, _LISTS)
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_OLD_WORD = re.compile(rf"(?:^|[/ _.(-])(?:{'|'.join(_OLD)})(?=$|[/ _.)-])", re.IGNORECASE)
_OLD_END = re.compile(
    rf"{_OLD_WORD.pattern}(?:[ _.()\d-]|v\d|{'|'.join(_OF_OLD)})*(?:/|(?<=\.)\w+$|$)"
    rf"|(?:^|/)(?:{'|'.join(_COPY_OF).replace('_', '[ _-]')})[ _-]",
    re.IGNORECASE,
)
"""``plan old (2).md``, ``old files/a.md``, ``Copy of a.md``; not ``backup and software.md``."""
_STATE = "|".join((*_DRAFT, *_FINAL))
_FINAL_PHRASE = re.compile("|".join(_FINALS).replace("_", "[ _-]"), re.IGNORECASE)
_BEFORE_NUMBER = r"(?i)(?<![^\W_])v(?:er(?:sion)?)?[-_. ]?"
_V_NUMBER = re.compile(
    # v2, version 2, "draft 2 (new).md"; not the day of "draft 2 May.md".
    rf"(?<![^\W_])(?:v(?:er(?:sion)?)?[-_. ]?|(?:{_STATE})[-_ ](?=\d\d?(?: ?\(|\.\w+$)))"
    r"(\d{1,6})(?!\d)",
    re.IGNORECASE,
)
_COPY_NUMBER = re.compile(r" ?\((\d{1,2})\)\.\w+$")
_NUMBER, _WORD = re.compile(r"\d+"), re.compile(r"[^\W_]+")
_VERSION_IN_PATH = re.compile(
    r"(?<![^/_ (-])v\d+(?:\.\d+)*(?=[/_ )-]|\.[a-z]|$)"
    r"|(?<![^/_-])(?!(?:19|20)\d\d/)(?:\d+(?:\.\d+)+|\d+(?=/))(?=[/_-]|\.[a-z]|$)",
    re.IGNORECASE,
)
"""A version in a path: ``v2``, ``5.1``, or a folder ``7``; no year."""
_MIN_SHARED_WORDS = 0.7
"""A passage is of an older version of a page if the newer one has this share of its words."""

MAX_CHECKED_FOR_NEWER = 3
"""How many of the first passages may give their place to a newer version."""
ABOUT_AS_GOOD = 0.7
"""A passage with this share of the first one's score may answer about as well."""
ABOUT_AS_GOOD_IN_SERIES = 0.5
"""The same for a document of the first one's series, which may use other words."""
_VERSION_OF_STATE: Mapping[str, tuple[float]] = (
    dict.fromkeys(_DRAFT, (0.0,))
    | dict.fromkeys(_FINAL, (1e9,))
    | dict.fromkeys(_SIGNED, (math.inf,))
)
"""State in the name of a file → its version, if the name has no number."""
_WITHOUT_STATE = 0.5  # Between a draft and a final version.
_NEW = frozenset("new neu neue neuer nouveau nouvelle nuevo nueva nuovo nuova".split())
_NEW_END = re.compile(rf"[ _.(-](?:{'|'.join(_NEW)})\)?\.\w+$", re.IGNORECASE)
"""``order NEW.txt`` holds in place of ``order.txt``; ``new members.md`` are others."""
_STATES = frozenset([*_VERSION_OF_STATE, *_OLD, "new"])


@lru_cache(maxsize=256)
def words_if_newest_asked(task: str) -> Set[str] | None:
    """The content words of a task that asks for the newest version; ``None`` for other tasks."""
    text = f" {' '.join(words_of(task))} "
    asking = [words.split() for phrase, words in newest_words().items() if f" {phrase} " in text]
    if not asking:
        return None
    return frozenset(text.split()).difference(*asking, stop_words_of(likely_languages(task)))


@lru_cache(maxsize=256)
def kind_if_newest_asked(task: str) -> str:
    """The observed type of document of which a task asks for the newest; empty for none."""
    text = f" {' '.join(words_of(task))} "
    around = (text.partition(f" {phrase} ") for phrase in newest_words() if f" {phrase} " in text)
    near = (word for a, b, c in around for word in (*c.split()[:1], *a.split()[-2:], *b.split()))
    return next((_KIND_OF[word] for word in near if word in _KIND_OF), "")


def put_newest_first(
    ranked: list[Candidate], min_score: float, task_words: Set[str], kind: str = ""
) -> None:
    """Reorder the passages that answer about as well as the first one: the newest first.

    The newest gets the highest of their scores, the next one the second highest, and so on. The set
    of scores stays the same, so that all other passages keep their places.

    With a kind of documents, such as mails, they are of this kind, and come above all others; all
    of the kind do if the task says no more. What is untrusted or without a date does not.
    """
    rows = [row for row in ranked if row.can_be_selected]
    of_kind = [r for r in rows if kind == r.passage.document.ranked_type and recency(r)[0]]
    by_date = equals_newest_first(of_kind or rows, lambda row: row.final, task_words, min_score)
    if of_kind and all(word in _KIND_OF or len(word) == 1 for word in task_words):
        by_date = sorted(of_kind, key=recency, reverse=True)
    finals, least = sorted((row.final for row in by_date), reverse=True), -math.inf
    if of_kind:
        finals = [math.nextafter(rows[0].final, math.inf)] * len(by_date)
    for row in reversed(by_date):
        least = max(finals.pop(), math.nextafter(least, math.inf))
        if least != row.final:
            row.set_final(least, f"by date: {recency(row)[2] or 'none'}")
    ranked.sort(key=ranking_order)


def equals_newest_first(
    rows: Sequence[Candidate],
    score: Callable[[Candidate], float],
    task_words: Set[str],
    min_score: float = 0.0,
) -> list[Candidate]:
    """The rows that answer about as well as the first one, which is among them; the newest first.

    1. They were found in the same round.
    2. They have ``min_score``, and 70% of its score.
    3. They have the required words: those of the task that the first row has. Without these, newer
       passages about something else would come first.

    If a row has more than twice as many of the task's words as the first one, the words of that row
    are required. The first row then comes last, unless it has them, too. Documents of one series,
    such as the minutes of each meeting, use other words: they need 50% of the score, and no
    required words.
    """
    same_round = [row for row in rows if row.round == rows[0].round]
    good_enough = [row for row in same_round if score(row) >= min_score]
    near_best = [row for row in good_enough if score(row) >= ABOUT_AS_GOOD * score(rows[0])]
    if not near_best:
        return []
    words = [task_words & words_with_names(row.passage) for row in near_best]
    most_words = max(words, key=len)
    required = words[0] if 2 * len(words[0]) >= len(most_words) else most_words
    about_as_good = [row for row, own in zip(near_best, words, strict=True) if required <= own]
    series = {_series(row.passage.path) for row in about_as_good}
    others = [
        row
        for row in good_enough
        if row not in about_as_good
        and score(row) >= ABOUT_AS_GOOD_IN_SERIES * score(rows[0])
        and any(_is_one_series(_series(row.passage.path), one) for one in series)
    ]
    copied_on = day_of_copying(row.passage for row in same_round)
    newest = [*about_as_good, *others]
    internal = (score(row) for row in newest if row.passage.document.origin == "internal")
    best_internal = max(internal, default=0.0)

    def order(row: Candidate) -> tuple[int, bool, str, list[int]]:
        # A mail competes by its date only if its score is above that of all internal documents.
        rank, holds, day, numbers = recency(row, copied_on)
        is_above = rank == 1 and score(row) > best_internal
        return 2 if is_above else rank, holds, day, numbers

    newest.sort(key=order, reverse=True)
    return newest if near_best[0] in newest else [*newest, near_best[0]]


def later_sections(first: Candidate, ranked: Iterable[Candidate], task: str) -> Set[str]:
    """The ids of sections about the matter of the first in files of a later date, by their names.

    They have the same heading, and half of the score. If every file of the series has that heading,
    such as "Decisions", a word of the task must stand in both texts.
    """
    if not _date_by_path(first.passage.path):
        return frozenset()
    rows = [row for row in ranked if _series(row.passage.path) == _series(first.passage.path)]
    later = [row for row in rows if is_later_section(row.passage, first.passage)]
    heading = _heading_words(first.passage)
    same = (row.passage.path for row in rows if _heading_words(row.passage) == heading)
    if {*same} == {row.passage.path for row in rows}:
        text = first.passage.content  # Whose words show a language best.
        asked = content_words(task, text) & content_words(text)
        later = [row for row in later if asked & content_words(row.passage.content, text)]
    return {row.chunk_id for row in later if row.final >= ABOUT_AS_GOOD_IN_SERIES * first.final}


def is_later_section(later: Passage, first: Passage) -> bool:
    """Whether it has like headings and a later date than a passage of the same series of files.

    A passage with several sections has the headings of all: more than half of the words must be the
    same. Letters have none.
    """
    if not is_in_later_file(later, first):
        return False
    headings = [_heading_words(passage) for passage in (later, first)]
    return 2 * len(headings[0] & headings[1]) > max(map(len, headings)) or not any(headings)


def is_in_later_file(later: Passage, first: Passage) -> bool:
    """Whether its file has a later date in its name, and else the same name, such as minutes."""
    is_later = _date_by_path(later.path) > _date_by_path(first.path) > ""
    return is_later and _series(later.path) == _series(first.path)


def _heading_words(passage: Passage) -> frozenset[str]:
    return naming_words(words_of(" ".join(passage.headings[-1:])))


def newer_by_path(first: Passage, paths: Iterable[str], task: str) -> list[str]:
    """Which paths are of newer versions of the first passage's file, as its path and they say it.

    They have one name and folder, but for numbers and states: ``draft``, ``old``, ``v2``, a year.
    None if the task names the version or the year of the first one. Of two files only, one may also
    have a later day or month, if it alone is called corrected.
    """
    series, date = _series(first.path), _date_by_path(first.path)
    if names_version(task, first):
        return []
    of_series = [path for path in dict.fromkeys(paths) if _is_one_series(_series(path), series)]
    newer = [path for path in of_series if _is_newer(path, first.path)]
    if len(of_series) == 2 and first.path in of_series and date:
        least = max(recency_by_path(first.path)[1], _WITHOUT_STATE)
        later = [path for path in of_series if _date_by_path(path) > date and path not in newer]
        newer += [path for path in later if least < recency_by_path(path)[1] < math.inf]
    return [p for p in newer if date not in words_of(task) or _date_by_path(p) == date]


def is_older(passage: Passage, than: Passage) -> bool:
    """Whether both documents have a date, and the first one's is earlier."""
    return "" < date_of(passage) < date_of(than)


def date_of(passage: Passage) -> str:
    """The date of a document; empty if it has none."""
    return (passage.document.updated_at or "")[:10]


def dated_entries(passage: Passage) -> list[Passage]:
    """The entries of notes whose text dates them, each as a passage of its day."""
    document, by = passage.document, passage.document.dated_by
    found = entries_of(passage.content, date_of(passage)) if by == "text" else []
    dated = ((text, document._replace(updated_at=day)) for day, text in found if day)
    return [passage._replace(content=text, document=of_day) for text, of_day in dated]


@lru_cache(maxsize=4096)
def _is_newer(path: str, than: str) -> bool:
    """Whether a path says that it holds in place of another one.

    Names with different days or months are of different events. A file that is called new is
    replaced only by one that is called new.
    """
    # Of two files with one name, the old one may say it anywhere, as "old plan.md" does.
    old = _OLD_WORD if _series(path)[:2] == _series(than)[:2] else _OLD_END
    order, other = recency_by_path(path, old), recency_by_path(than, old)
    if (order[:2], other[:2]) == ((True, math.inf), (True, 0.0)):
        return True  # A draft does not replace what is signed, however new it is.
    if order[3] > other[3] > 0 and order[1] > 0 and other[1] < math.inf:
        order = order[:1] + other[1:2] + order[2:]  # v3 comes after "v2 final".
    dates = _date_by_path(path), _date_by_path(than)
    are_comparable = dates[0] == dates[1] or all(date.isdecimal() for date in dates)
    # "pep-2026" is a number, beside "pep-0249".
    are_comparable &= bool(dates[1]) or not re.search(r"(?<!\d)\d{4}(?!\d)", than)
    are_comparable &= bool(order[2] % 1) == bool(other[2] % 1)  # Both have a season, or none.
    is_newer = are_comparable and order != other and all(map(ge, order, other))
    return is_newer and (_is_called_new(path) or not _is_called_new(than))


def _name_words(name: str) -> Sequence[str]:
    """The words of a name without accents; "mis à jour" is one, ``final``."""
    return words_of(_FINAL_PHRASE.sub("final", folded(name)))


def _is_called_new(path: str) -> bool:
    return not _NEW.isdisjoint(_name_words(path))


@lru_cache(maxsize=4096)
def recency_by_path(path: str, old: re.Pattern[str] = _OLD_END) -> tuple[float, ...]:
    """Numbers of a path, the higher the newer: not called old; state; year; version; copy; "new".

    The season of a year is a part of its number: 2026.4 is the winter of 2026.
    """
    states = [n for word in _name_words(path) for n in _VERSION_OF_STATE.get(word, ())]
    state, date = max(states, default=_WITHOUT_STATE), _date_by_path(path)
    version = max(map(int, _V_NUMBER.findall(path)), default=0)
    copy = next(map(int, _COPY_NUMBER.findall(path)), 0)
    # Of what is signed, a number says nothing.
    numbers = (math.inf, math.inf) if state == math.inf else (version, copy)
    year = int(date) + _season_by_path(path) / 10 if date.isdecimal() else 0
    return old.search(path) is None, state, year, *numbers, bool(_NEW_END.search(path))


def _season_by_path(path: str) -> int:
    """The season in the name of a file with a year; 0 without one."""
    words = words_of(path.rpartition("/")[2]) if _date_by_path(path).isdecimal() else ()
    return max(map(season_of, words), default=0)


@lru_cache(maxsize=4096)
def _date_by_path(path: str) -> str:
    return date_in_name(path.rpartition("/")[2].rpartition(".")[0])


def is_draft_by_path(path: str) -> bool:
    """Whether a path says that it is a draft."""
    return recency_by_path(path)[1] < _WITHOUT_STATE


def is_old_by_path(path: str) -> bool:
    """Whether a path says copy, old or archive, at the end of a name or as in "Copy of"."""
    return _OLD_END.search(path) is not None


class _Series(NamedTuple):
    """What the versions of a file have in common: words without numbers and states.

    Attributes:
        folder: the words of its folders.
        words: those of its name.
        before: those before the number of its version, if it has one.
        names: those behind it that begin with a capital letter, as names do.
    """

    folder: frozenset[str]
    words: frozenset[str]
    before: frozenset[str]
    names: frozenset[str]


def _is_one_series(one: _Series, other: _Series) -> bool:
    """Whether two files have the same name and folders, but for numbers and states.

    One name may have more words, as in ``AGM 2025 minutes`` and ``2026-03-19 AGM minutes LP``. If
    both have the number of a version, words behind it are remarks, as in ``plan_v2_no_comments``
    and ``plan_v3_HB``; but ``bill v1 Bonn`` and ``bill v2 Ulm`` have different names there.
    """
    if one.folder != other.folder:
        return False
    are_like = bool(one.words) == bool(other.words)
    has_one_name = are_like and _one_contains_other(one.words, other.words)
    has_remarks = one.before == other.before != frozenset()
    return has_one_name or (has_remarks and _one_contains_other(one.names, other.names))


def _one_contains_other(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether one of them has all words of the other one."""
    return words <= others or others <= words


@lru_cache(maxsize=4096)
def _series(path: str) -> _Series:
    folders, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    number = _V_NUMBER.search(name)
    before, behind = (stem[: number.start()], stem[number.end() :]) if number else ("", "")
    names = " ".join(w for w in _WORD.findall(behind) if w.istitle() and len(w) > 2)
    texts = folders, stem, before, names
    is_left_out = season_of if _season_by_path(path) else is_month
    named = (_name_words(_NUMBER.sub(" ", text)) for text in texts)
    return _Series(*(naming_words(filterfalse(is_left_out, words)) for words in named))


def naming_words(words: Iterable[str]) -> frozenset[str]:
    """The words that tell a name from others: no letters, months or states such as ``draft``."""
    return frozenset(w for w in words if len(w) > 1 and not is_month(w)) - _STATES


def words_with_names(passage: Passage) -> Set[str]:
    """The words of a passage, its headings, title and path, without regard to case."""
    text = " ".join((passage.path, passage.document.title, *passage.headings, passage.content))
    return frozenset(words_of(text))


def day_of(passage: Passage, copied_on: str) -> str:
    """The date of a document, or the day on which its file was written; empty if it was copied."""
    written = (passage.document.inferred_at or "")[:10]
    return date_of(passage) or (written if written != copied_on else "")


def day_of_copying(passages: Iterable[Passage]) -> str:
    """The day on which most of the files without another date were written; empty if none is.

    They were copied or unpacked together, so that the day does not order their contents.
    """
    found = (passage.document for passage in passages)
    written = {(document.document_id, document.inferred_at) for document in found}
    counts = Counter(time[:10] for _, time in written if time)
    day, documents = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return day if documents > 1 and documents * 2 >= counts.total() else ""


def recency(row: Candidate, copied_on: str = "") -> tuple[int, bool, str, list[int]]:
    """The sort key of versions, the newest last.

    Compared are, in this order:

    1. without a date or with one in the future, and untrusted, whose date may be false; others;
       internal;
    2. a path that says copy, old, archive or draft; other paths;
    3. the date; the day on which a file was copied with others is none;
    4. the number in the name (``v2``).
    """
    document = row.passage.document
    if row.freshness == "undated" or "untrusted" in (document.trust_tier, document.origin):
        return 0, True, "", []
    versions = map(int, _V_NUMBER.findall(row.passage.path.rpartition("/")[2]))
    holds = recency_by_path(row.passage.path)[:2] >= (True, _WITHOUT_STATE)
    rank = 2 if document.origin == "internal" else 1
    return rank, holds, day_of(row.passage, copied_on), [*versions]


def version_of(passage: Passage) -> tuple[float, ...]:
    """The version that its document declares, or that its path names; empty without any.

    Without a number, a draft comes before all others, and what is final or signed after them.
    """
    declared = dict(passage.document.attributes).get("version", ())
    return _version_of((*declared,), passage.path)


@lru_cache(maxsize=4096)
def _version_of(declared: tuple[str, ...], path: str) -> tuple[float, ...]:
    names = [*declared, *_VERSION_IN_PATH.findall(path)]
    words = _name_words(path.rpartition("/")[2])
    states = [_VERSION_OF_STATE[word] for word in words if word in _VERSION_OF_STATE]
    numbers = [tuple(map(int, _NUMBER.findall(name))) for name in names if name]
    return next(iter([*numbers, *sorted(states)]), ())


def combine_versions(rows: Iterable[Candidate], task: str) -> None:
    """Write the chunk id of the newer version of a page that stands for an older one.

    Both are in one folder, and their names differ in a version and a state only, or one has more
    words. Their headings, standing and source are equal. The newer one has at least 70% of the
    older one's words, and every word of the task that the older one has. The task does not name the
    older version. The newer one gets the better score.
    """
    pages = defaultdict[tuple[object, ...], list[Candidate]](list)
    for row in rows:
        if row.can_be_selected and version_of(row.passage):
            folder, _ = _without_version(row.passage.path)
            pages[(folder, *row.passage.headings, *standing_of(row))].append(row)
    for page_rows in pages.values():
        page_rows.sort(key=lambda row: version_of(row.passage), reverse=True)
        for number, row in enumerate(page_rows):
            newer = [new for new in page_rows[:number] if not new.newer_version]
            new = next((new for new in newer if _replaces(row.passage, new.passage, task)), None)
            if new is None:
                continue
            lines = {*map(str.strip, new.passage.content.splitlines())}
            own = map(str.strip, row.passage.content.splitlines())
            row.newer_version = new.chunk_id
            row.differing_line = next((line for line in own if line not in lines), "")
            new.raise_to(row.final, f"ranked as its older version {row.chunk_id}")


@lru_cache(maxsize=4096)
def _without_version(path: str) -> tuple[str, frozenset[str]]:
    """The folder of a file and the words of its name, without versions and states."""
    folder, _, name = _VERSION_IN_PATH.sub(" ", folded(path)).rpartition("/")
    return folder, frozenset(_name_words(name.rpartition(".")[0])) - _STATES


def _replaces(old: Passage, new: Passage, task: str) -> bool:
    """Whether the pages are versions of one page, and the new passage has most of the old one."""
    names = [_without_version(passage.path)[1] for passage in (old, new)]
    is_newer = version_of(old) < version_of(new) and _one_contains_other(*names)
    if not is_newer or names_version(task, old):
        return False
    words, new_words = plain_words(old.content), plain_words(new.content)
    shares_most = len(words & new_words) >= _MIN_SHARED_WORDS * len(words)
    return shares_most and words & plain_words(task) <= new_words


@lru_cache(maxsize=256)
def plain_words(text: str) -> frozenset[str]:
    """The words of a text as it spells them, without regard to case."""
    return frozenset(_WORD.findall(text.casefold()))


def names_version(task: str, passage: Passage) -> bool:
    """Whether the task names the version of a passage, or the state that stands for it."""
    version = version_of(passage)
    if states := {state for state, order in _VERSION_OF_STATE.items() if order == version}:
        return not states.isdisjoint(words_of(task))
    number = re.escape(".".join(map(str, version)))
    # "1 December" is not the version of "menu v1"; that of a folder stands alone: "in Django 5".
    before = _BEFORE_NUMBER if _V_NUMBER.search(passage.path) else r"(?<![\d.])v?"
    return bool(number) and re.search(rf"{before}{number}(?!\.?\d)", task) is not None


def standing_of(row: Candidate) -> tuple[object, ...]:
    """What must be equal in two versions, so that one can stand for the other.

    The round, source, trust, origin, sensitivity, scope, roles and flags.
    """
    passage, document = row.passage, row.passage.document
    visible = document.sensitivity, document.scope, passage.applicable_roles, passage.excluded_roles
    origin = document.source_id, document.trust_tier, document.origin
    return (row.round, *origin, *visible, passage.flags)


def may_displace(row: Candidate, other: Candidate) -> bool:
    """Whether the standing is equal, or the trust higher, the origin as good and no flag added.

    So nobody can displace the files of others with the name of a file, or with a quote.
    """
    document, other_document = row.passage.document, other.passage.document
    tier, other_tier = (TRUST_TIERS.index(d.trust_tier) for d in (document, other_document))
    is_as_good = (document.origin, row.round) == (other_document.origin, other.round)
    has_more_trust = tier < other_tier and {*row.passage.flags} <= {*other.passage.flags}
    return standing_of(row) == standing_of(other) or (is_as_good and has_more_trust)
