"""A first overlay of a role: from the name of the role and a folder, or from examples. Pure."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from rolebundle.authoring.fields import RoleName, label_of, read_role_name
from rolebundle.authoring.relevance import (
    LEAST_SHARE,
    Wanted,
    by_document,
    foreground,
    scores,
    wanted_words,
    words_close_to,
    words_of_name,
)
from rolebundle.authoring.survey import Passages, SurveyedDocument, passages_of
from rolebundle.authoring.terms import (
    MIN_SHARE,
    PassageWords,
    Term,
    characteristic_terms,
    content_stems,
    content_words,
    terms_named,
)
from rolebundle.contracts.overlay import Overlay
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.policy.source_rules import RuleSubject, rule_matches
from rolebundle.retrieval.filter import PREFERRED_SOURCE_BOOST
from rolebundle.text.counts import counted
from rolebundle.text.globs import matches
from rolebundle.text.words import stems_of

MAX_BOOST_PHRASES = 8
MAX_PREFERRED_TERMS = 14
SOUGHT_FACTOR = 1.5
"""A word of the role's field leads to its passages less by chance than one that is typical here."""
SIGNATURE_PHRASES = 3
"""The first boost phrases, which are added to every query of the role."""
MAX_DOCUMENT_RULES = 6
MAX_BEST_DOCUMENTS = 12
"""If more documents are nearly as much about the subject as the best one, none has its own rule."""
MIN_SHARE_ABOUT_ROLE = 0.25
"""A document has a rule of its own only if at least this share of its passages is about the role.
What one of seventy passages mentions says nothing of the others."""
MENTIONS_EVERYTHING = frozenset({"changelog", "release-notes", "license", "code-of-conduct"})
"""Types of documents that have words of every role. A boost of their type is enough."""
MAX_FOLDER_RULES = 4
NAME_REASON = "a word of the role's name"
BEST_BOOST, NAMED_FOLDER_BOOST, LEAST_BOOST = 4.0, 3.5, 1.5
"""The boosts of the best document's rule, of a folder that is called like the role, of others."""
FIELD_TYPE_BOOST = 3.0
TYPE_BOOST_STEP = 0.3
OVERVIEW_TYPE, OVERVIEW_BOOST = "readme", 1.2
"""What introduces a folder to everybody."""
WEIGHTS: Mapping[str, float] = {
    "lexical_weight": 0.39,
    "semantic_weight": 0.39,
    "metadata_weight": 0.02,
    "rerank_weight": 0.2,
}
"""Where little metadata is declared, the role's words tell more than sources.

The role's part is 0.22: enough for vague tasks, and natural questions keep their documents. Words
have 0.6 of it, because the ranking counts them 0.15 times (decision 0021).
"""
GUESSED_SHARE = 0.25
"""The least share of the passages of a guessed subject that have a single word which is typical."""
EXPANSION_WEIGHT = 0.5
"""Half of the vocabulary's score is how much of the role's terms a passage has: nearly every
passage has some of the typical terms of its folder."""
QUESTIONABLE_TYPES: Mapping[str, tuple[float, str]] = {
    "archived": (0.4, "old by the name of its folder"),
    "draft": (0.5, "unfinished by the name of its folder"),
    "license": (0.5, "the same text in every project"),
    "code-of-conduct": (0.5, "the same text in every project"),
    "test-code": (0.6, "checks of the code, hardly ever an answer"),
}
"""Types that rank lower unless the role's field is made for them: factor and reason."""

_DOCUMENT_SHARE = 0.5
_FOLDER_LIFT = 1.5
_MIN_FOLDER_DOCUMENTS = 3
_OWN_WEIGHT, _FIELD_WEIGHT = 1.5, 1.0
_TYPE_SHARE = 0.6
_CODE_TYPES = frozenset({"source-code", "test-code"})

Values = dict[str, Any]


class Named(NamedTuple):
    """What rules see of a document once it is ingested."""

    source_id: str
    document_type: str
    domain: str


class OverlayDraft(NamedTuple):
    """A draft: the values of the file, and what a person should know."""

    values: Values
    remarks: list[str]

    @property
    def text(self) -> str:
        """The content of the file."""
        return overlay_text(self.values)


def overlay_text(values: Values) -> str:
    """The values of an overlay as the text of a file."""
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


class Subject(NamedTuple):
    """The passages that a role is about, among others.

    Attributes:
        passages: all passages.
        inside: the positions of the subject's, in order.
        scored: how much each passage is about it.
        sought: the words by which the passages were found → why they were sought.
        is_guessed: whether they were only found by words.
    """

    passages: Passages
    inside: Sequence[int]
    scored: Sequence[float]
    sought: Mapping[str, str] = MappingProxyType({})
    is_guessed: bool = False


def usable(documents: Sequence[SurveyedDocument]) -> list[SurveyedDocument]:
    """The documents whose words may stand in an overlay, which every agent of the role may read."""
    return [
        document
        for document in documents
        if document.metadata.sensitivity != "confidential"
        and document.metadata.scope == "shared"
        and document.metadata.trust_tier != "untrusted"
    ]


def draft_for_role(
    role_id: str,
    documents: Sequence[SurveyedDocument],
    named: Mapping[str, Named],
    base: Overlay | None = None,
    base_values: Values | None = None,
    provider: EmbeddingProvider | None = None,
) -> OverlayDraft:
    """The overlay of a role, by its name and what a folder has.

    Args:
        role_id: the role.
        documents: what the folder has.
        named: document id → what rules will see of the document.
        base: the shipped role that it extends; ``None`` for none.
        base_values: all values of that role if the new file replaces it instead of extending it,
            because it has the same id.
        provider: finds words that are close to a name of no known field; ``None`` for none.

    Raises:
        EmbedderError: the model cannot be used.
    """
    name = read_role_name(role_id)
    documents = usable(documents)
    passages = passages_of(documents)
    subject = subject_of_name(name, passages, named, provider)
    remarks = []
    if not subject.inside:
        remarks.append(
            f"nothing in the folder has the words of the name {role_id!r}; add terms by hand, or "
            "derive them: rolebundle overlay new --examples"
        )
    values = _head(role_id, base, base_values, subject)
    _fill(values, subject, named, name.types, base)
    return OverlayDraft(values, remarks)


def draft_from_examples(
    role_id: str,
    examples: Sequence[SurveyedDocument],
    questions: Sequence[str],
    documents: Sequence[SurveyedDocument],
    named: Mapping[str, Named],
) -> OverlayDraft:
    """The overlay of a role, by documents and questions of its work.

    The passages that answer a question best count as examples as well.

    Args:
        role_id: the role.
        examples: documents of its work; they may be among ``documents``.
        questions: what the role asks.
        documents: what the corpus has.
        named: document id → what rules see of the document.
    """
    ids = {document.metadata.document_id for document in examples}
    others = [
        document for document in usable(documents) if document.metadata.document_id not in ids
    ]
    passages = passages_of([*examples, *others])
    types = _types(passages, named)
    scored = [0.0] * len(passages.words)
    for question in questions:
        wanted = Wanted(wanted_words(dict.fromkeys(question.split(), 1.0)), {})
        for position, score in _best(scores(passages, wanted, types)):
            scored[position] = max(scored[position], score)
    for position, words in enumerate(passages.words):
        if words.document in ids:
            scored[position] = 1.0
    inside = [position for position, score in enumerate(scored) if score]
    subject = Subject(passages, inside, scored, _words_of_questions(questions))
    values = _head(role_id, None, None, subject)
    _fill(values, subject, named, [], None)
    remarks = []
    if not values["vocabulary"]["boost_phrases"]:
        remarks.append("the examples have no words that the other documents lack")
    return OverlayDraft(values, remarks)


def _words_of_questions(questions: Sequence[str]) -> dict[str, str]:
    """The words of the questions, the most frequent first → why they are sought."""
    counts = Counter(
        word for question in questions for word in dict.fromkeys(content_words(question))
    )
    return {
        word: f"in {counted(count, 'question')} of the role" for word, count in counts.most_common()
    }


def subject_of_name(
    name: RoleName,
    passages: Passages,
    named: Mapping[str, Named],
    provider: EmbeddingProvider | None,
) -> Subject:
    """The passages that are about the field that a role's name tells.

    If it tells no field, words of the folder that are close to it in meaning count.

    Raises:
        EmbedderError: the model cannot be used.
    """
    sought = dict.fromkeys(name.words, "a word of the role's field")
    weights = dict.fromkeys(sought, _FIELD_WEIGHT)
    if not name.fields and provider is not None:
        for word, cosine in words_close_to(name.own, passages, provider).items():
            sought[word] = f"close in meaning to the role's name (cosine {cosine:.2f})"
            weights[word] = cosine
    sought |= dict.fromkeys(name.own, NAME_REASON)
    weights |= dict.fromkeys(name.own, _OWN_WEIGHT)
    types = {kind: _TYPE_SHARE / (1 + 0.2 * rank) for rank, kind in enumerate(name.types)}
    scored = scores(passages, Wanted(wanted_words(weights), types), _types(passages, named))
    return Subject(passages, foreground(passages, scored), scored, sought, is_guessed=True)


def _best(scored: Sequence[float]) -> list[tuple[int, float]]:
    """The three best positions with a share of the best score; none if nothing fits."""
    order = sorted(range(len(scored)), key=lambda position: (-scored[position], position))[:3]
    best = max(scored, default=0.0)
    return [(position, scored[position] / best) for position in order if scored[position] > 0]


def _types(passages: Passages, named: Mapping[str, Named]) -> list[str]:
    return [
        named[words.document].document_type if words.document in named else ""
        for words in passages.words
    ]


# -- values --------------------------------------------------------------------------------------


def _head(
    role_id: str, base: Overlay | None, base_values: Values | None, subject: Subject
) -> Values:
    values: Values = {"version": "1.0", "role_id": role_id}
    if base_values is not None:
        copied = {
            key: value for key, value in base_values.items() if key not in ("extends", "notes")
        }
        return {**values, **copied, "role_id": role_id}
    if base is not None:
        values["extends"] = base.role_id
    values["label"] = label_of(role_id)
    if base is None:
        titles = [document.metadata.title for document, _ in _best_documents(subject)[:3]]
        about = f", such as {', '.join(titles)}" if titles else ""
        values["mission"] = (
            f"Do the work of the {label_of(role_id)} with the documents here{about}."
        )
    return values


def _fill(
    values: Values,
    subject: Subject,
    named: Mapping[str, Named],
    types: Sequence[str],
    base: Overlay | None,
) -> None:
    """Add vocabulary, source policy and notes."""
    notes: dict[str, str] = {}
    values["vocabulary"] = {
        **values.get("vocabulary", {}),
        **_vocabulary(subject, base, notes),
    }
    values["source_policy"] = _source_policy(values, subject, named, types, base, notes)
    values["retrieval_policy"] = {
        **values.get("retrieval_policy", {}),
        **WEIGHTS,
        "expansion_weight": EXPANSION_WEIGHT,
    }
    values["notes"] = notes


def _vocabulary(subject: Subject, base: Overlay | None, notes: dict[str, str]) -> Values:
    inside = [subject.passages.words[position] for position in subject.inside]
    chosen = set(subject.inside)
    others = [
        words for position, words in enumerate(subject.passages.words) if position not in chosen
    ]
    # By a name the passages were found by words, and single words of theirs are often chance.
    least_share = GUESSED_SHARE if subject.is_guessed else MIN_SHARE
    found = characteristic_terms(inside, others, least_share)
    sought = terms_named(subject.sought, inside, others)
    reasons = {term: subject.sought[term.text] for term in sought}
    known = {term.words for term in sought}
    if subject.is_guessed and len(sought) >= SIGNATURE_PHRASES:
        # Without a word that was sought, a term is of another subject that the passages share.
        stems = {stem for words in known for stem in words}
        found = [term for term in found if stems.intersection(term.words)]
    terms = [*sought, *(term for term in found if term.words not in known)]
    terms.sort(key=lambda term: (-term.z, term.text))
    boosts = _signature(terms, inside, sought)
    boosts += [term for term in _phrases_first(terms) if term not in boosts]
    boosts = boosts[:MAX_BOOST_PHRASES]
    preferred = [term for term in terms if term not in boosts][:MAX_PREFERRED_TERMS]

    def evidence(term: Term) -> str:
        counts = (
            f"in {term.inside} of {counted(len(inside), 'passage')} about the role, of "
            f"{counted(term.documents, 'document')}, and in {term.outside} of {len(others)} others"
        )
        why = reasons.get(term, f"typical of these passages: z {term.z:g}")
        return f"{why}; {counts}"

    lists: dict[str, list[str]] = {}
    for key, own in (("boost_phrases", boosts), ("preferred_terms", preferred)):
        if base is not None and not own:
            continue  # What the shipped role has stays.
        lists[key] = [term.text for term in own]
        notes.update({f"vocabulary.{key}[{n}]": evidence(term) for n, term in enumerate(own)})
    if base is not None:
        _add_inherited(lists, base, subject.passages.documents, notes)
    return lists


def _add_inherited(
    lists: dict[str, list[str]],
    base: Overlay,
    documents: Sequence[SurveyedDocument],
    notes: dict[str, str],
) -> None:
    """Add the terms of the role that is extended which the documents have.

    A list in the file replaces the inherited one, so they would be lost.
    """
    texts = [
        _stemmed(passage.text)
        for document in {entry.metadata.document_id: entry for entry in documents}.values()
        for passage in document.passages
    ]
    taken = {term.casefold() for terms in lists.values() for term in terms}
    for key, terms in lists.items():
        for term in getattr(base.vocabulary, key):
            phrase = _stemmed(term)
            number = sum(phrase in text for text in texts)
            if number and term.casefold() not in taken:
                taken.add(term.casefold())
                place = f"vocabulary.{key}[{len(terms)}]"
                notes[place] = f"from {base.role_id}; in {counted(number, 'passage')} here"
                terms.append(term)


def _stemmed(text: str) -> str:
    """The stems of all words, as the lexical index compares phrases."""
    return f" {' '.join(stems_of(text, 'en').all)} "


def _phrases_first(terms: Sequence[Term]) -> list[Term]:
    """The terms in their order, phrases before single words of the same strength."""
    order = {term: rank for rank, term in enumerate(terms)}
    return sorted(terms, key=lambda term: order[term] - (6 if len(term.words) > 1 else 0))


def _signature(
    terms: Sequence[Term], inside: Sequence[PassageWords], sought: Collection[Term]
) -> list[Term]:
    """The terms that together lead to the most passages of the subject, and to few others.

    They are added to every query of the role, so they are what a vague task is answered from.
    """
    sets = {
        term: {
            number
            for number, words in enumerate(inside)
            if any(
                run[start : start + len(term.words)] == term.words
                for run in words.stems
                for start in range(len(run) - len(term.words) + 1)
            )
        }
        for term in [*terms[:40], *(term for term in terms[40:] if term in sought)]
    }
    chosen: list[Term] = []
    covered: set[int] = set()

    def gain(term: Term) -> float:
        precision = term.inside / (term.inside + term.outside)
        if term in sought:
            precision *= SOUGHT_FACTOR
        # What is covered already counts a little, so that the last ones are not chance.
        return precision * (len(sets[term] - covered) + 0.25 * len(sets[term] & covered))

    while len(chosen) < SIGNATURE_PHRASES and len(chosen) < len(sets):
        best = max((term for term in sets if term not in chosen), key=gain)
        chosen.append(best)
        covered |= sets[best]
    return chosen


def _source_policy(
    values: Values,
    subject: Subject,
    named: Mapping[str, Named],
    types: Sequence[str],
    base: Overlay | None,
    notes: dict[str, str],
) -> Values:
    inherited: Values = dict(values.get("source_policy") or {})
    # The first rule that matches a document counts.
    rules = [*_document_rules(subject, named, types), *_folder_rules(subject)]
    rules.sort(key=lambda rule: -rule["boost"])
    policy = inherited
    if base is None:
        policy["preferred_sources"] = rules
    elif rules:
        policy["preferred_sources"] = _with_inherited(rules, base, subject, named)
    present = Counter(
        named[document.metadata.document_id].document_type for document in _all(subject)
    )
    own_types = dict(base.source_policy.document_type_boosts) if base else {}
    boosts = dict(inherited.get("document_type_boosts", {}))
    for rank, kind in enumerate(kind for kind in types if present[kind]):
        place = f"source_policy.document_type_boosts.{kind}"
        boosts[kind] = round(max(1.2, FIELD_TYPE_BOOST - TYPE_BOOST_STEP * rank), 2)
        notes[place] = (
            f"{counted(present[kind], 'document')} of this type; made for the role's field"
        )
    if present[OVERVIEW_TYPE] and OVERVIEW_TYPE not in boosts and OVERVIEW_TYPE not in own_types:
        boosts[OVERVIEW_TYPE] = OVERVIEW_BOOST
        notes[f"source_policy.document_type_boosts.{OVERVIEW_TYPE}"] = (
            f"{counted(present[OVERVIEW_TYPE], 'document')}; introduces the rest"
        )
    for kind, (factor, reason) in QUESTIONABLE_TYPES.items():
        if present[kind] and kind not in boosts and kind not in own_types:
            boosts[kind] = factor
            notes[f"source_policy.document_type_boosts.{kind}"] = (
                f"questionable: {counted(present[kind], 'document')}, {reason}"
            )
    if boosts:
        policy["document_type_boosts"] = boosts
    return policy


def _best_documents(subject: Subject) -> list[tuple[SurveyedDocument, float]]:
    """The documents that are most about the subject, the best first; one for each file.

    Each has the share of its score in the best one.
    """
    scored = by_document(subject.passages, subject.scored)
    best = max(scored.values(), default=0.0)
    inside = {subject.passages.words[position].document for position in subject.inside}
    by_path: dict[str, tuple[SurveyedDocument, float]] = {}
    for document in _all(subject):
        score = scored[document.metadata.document_id]
        share = score / best if best > 0 else 0.0
        is_about = document.metadata.document_id in inside and share >= _DOCUMENT_SHARE
        if is_about and (document.path not in by_path or share > by_path[document.path][1]):
            by_path[document.path] = document, share
    return sorted(by_path.values(), key=lambda pair: (-pair[1], pair[0].path))


def _document_rules(
    subject: Subject, named: Mapping[str, Named], types: Sequence[str]
) -> list[Values]:
    """Rules for the files that are most about the subject."""
    about, totals = _passages_about(subject)
    best = [
        (document, share)
        for document, share in _best_documents(subject)
        for name in [document.metadata.document_id]
        if named[name].document_type not in MENTIONS_EVERYTHING.difference(types)
        and about[name] >= MIN_SHARE_ABOUT_ROLE * totals[name]
    ]
    # If many are alike, none of them is the one to look at first, and folders and types tell more.
    if len(best) > MAX_BEST_DOCUMENTS:
        return []
    several = Counter(document.path for document in _all(subject))
    rules = []
    for document, share in best[:MAX_DOCUMENT_RULES]:
        if several[document.path] > 1:
            continue  # A rule for a mailbox says nothing of its messages.
        name = document.metadata.document_id
        title = " ".join(document.metadata.title.split())[:80]
        boost = LEAST_BOOST + (BEST_BOOST - LEAST_BOOST) * share
        rules.append(
            {
                "path": _literal(document.path),
                "boost": round(boost, 2),
                "reason": f"{about[name]} of {totals[name]} passages are about the role: {title}",
            }
        )
    return rules


def _passages_about(subject: Subject) -> tuple[Counter[str], Counter[str]]:
    """Document id → how many of its passages are about the role, and how many it has."""
    least = LEAST_SHARE * max(subject.scored, default=0.0)
    documents = [words.document for words in subject.passages.words]
    about = Counter(
        document
        for document, score in zip(documents, subject.scored, strict=True)
        if score >= least > 0
    )
    return about, Counter(documents)


def _folder_rules(subject: Subject) -> list[Values]:
    """Rules for the folders whose name, or whose documents, are about the subject.

    Those whose name has a word of the role's name come first.
    """
    inside = {subject.passages.words[position].document for position in subject.inside}
    folders: defaultdict[str, set[str]] = defaultdict(set)
    documents = _all(subject)
    for document in documents:
        parts = document.path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folders["/".join(parts[:depth])].add(document.metadata.document_id)
    share = len(inside) / max(1, len(documents))
    name_stems = {
        stem
        for word, reason in subject.sought.items()
        if reason == NAME_REASON
        for stem in content_stems(word)
    }
    found = []
    for folder, names in folders.items():
        own = len(names & inside)
        lift = own / len(names) / share if share else 0.0
        is_named = bool(name_stems.intersection(content_stems(words_of_name(folder))))
        if is_named or (own >= _MIN_FOLDER_DOCUMENTS and lift >= _FOLDER_LIFT):
            found.append((not is_named, -own * min(lift, 4.0), folder, own, len(names)))
    chosen: list[Values] = []
    taken: list[str] = []
    for is_unnamed, _, folder, own, total in sorted(found):
        if any(
            f"{folder}/".startswith(f"{other}/") or f"{other}/".startswith(f"{folder}/")
            for other in taken
        ):
            continue
        taken.append(folder)
        reason = f"{own} of its {total} documents are about the role; {share:.0%} of all are"
        boost = LEAST_BOOST
        if not is_unnamed:
            boost, reason = NAMED_FOLDER_BOOST, f"its name has {NAME_REASON}"
        chosen.append({"path": f"{_literal(folder)}/**", "boost": boost, "reason": reason})
    return chosen[:MAX_FOLDER_RULES]


def _with_inherited(
    rules: Sequence[Values], base: Overlay, subject: Subject, named: Mapping[str, Named]
) -> list[Values]:
    """The rules, and those of the role that is extended which match something here.

    A list in the file replaces the inherited one. The first rule that matches a document counts, so
    the stronger ones come first.
    """
    subjects = [
        RuleSubject((*named[document.metadata.document_id],), (document.path,))
        for document in _all(subject)
    ]
    inherited = [
        rule
        for rule in base.source_policy.preferred_sources
        if any(rule_matches(rule, each) for each in subjects)
    ]

    def boost_by_base(path: str) -> float:
        named_here = next(each for each in subjects if matches(path, each.paths[0]))
        boosts = (rule.boost for rule in inherited if rule_matches(rule, named_here))
        return next((boost or PREFERRED_SOURCE_BOOST for boost in boosts), 0.0)

    own = [rule for rule in rules if rule["boost"] > boost_by_base(rule["path"])]
    own += [rule.model_dump(exclude_none=True, exclude_defaults=True) for rule in inherited]
    return sorted(own, key=lambda rule: -rule.get("boost", PREFERRED_SOURCE_BOOST))


def _all(subject: Subject) -> list[SurveyedDocument]:
    """The documents of the passages, each once."""
    unique = {document.metadata.document_id: document for document in subject.passages.documents}
    return list(unique.values())


def _literal(path: str) -> str:
    """A glob that matches one path."""
    return path.replace("*", "?")
