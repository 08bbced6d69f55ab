"""The source policy of a drafted overlay: preferred documents, folders and types. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rolebundle.authoring.relevance import words_of_name
from rolebundle.authoring.subject import (
    NAME_REASON,
    Named,
    Subject,
    best_documents,
    documents_of,
    passages_about,
)
from rolebundle.authoring.terms import content_stems
from rolebundle.contracts.overlay import Overlay
from rolebundle.policy.source_rules import RuleSubject, rule_matches
from rolebundle.retrieval.filter import PREFERRED_SOURCE_BOOST
from rolebundle.text.counts import counted
from rolebundle.text.globs import matches

MAX_DOCUMENT_RULES = 6
MAX_BEST_DOCUMENTS = 12
"""If more documents are nearly as much about the subject as the best one, none has its own rule."""
MIN_SHARE_ABOUT_ROLE = 0.25
"""A document has a rule of its own only if at least this share of its passages is about the role.
What one of seventy passages mentions says nothing of the others."""
MENTIONS_EVERYTHING = frozenset({"changelog", "release-notes", "license", "code-of-conduct"})
"""Types of documents that have words of every role. A boost of their type is enough."""
MAX_FOLDER_RULES = 4
BEST_BOOST, NAMED_FOLDER_BOOST, LEAST_BOOST = 4.0, 3.5, 1.5
"""The boosts of the best document's rule, of a folder that is called like the role, of others."""
FIELD_TYPE_BOOST = 3.0
TYPE_BOOST_STEP = 0.3
OVERVIEW_TYPE, OVERVIEW_BOOST = "readme", 1.2
"""What introduces a folder to everybody."""
QUESTIONABLE_TYPES: Mapping[str, tuple[float, str]] = {
    "archived": (0.4, "old by the name of its folder"),
    "draft": (0.5, "unfinished by the name of its folder"),
    "license": (0.5, "the same text in every project"),
    "code-of-conduct": (0.5, "the same text in every project"),
    "test-code": (0.6, "checks of the code, hardly ever an answer"),
}
"""Types that rank lower unless they belong to the role's field: factor and reason."""
_FOLDER_LIFT = 1.5
_MIN_FOLDER_DOCUMENTS = 3

Values = dict[str, Any]


def draft_source_policy(
    values: Values,
    subject: Subject,
    named: Mapping[str, Named],
    types: Sequence[str],
    base: Overlay | None,
    notes: dict[str, str],
) -> Values:
    """The source policy of an overlay.

    Args:
        values: what the overlay has so far.
        subject: what the role is about.
        named: document id → what rules see of the document.
        types: the types of documents of the role's field, the most useful first.
        base: the role that it extends; ``None`` for none.
        notes: gets the evidence of each entry: place in the overlay → reason.
    """
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
        named[document.metadata.document_id].document_type for document in documents_of(subject)
    )
    own_types = dict(base.source_policy.document_type_boosts) if base else {}
    boosts = dict(inherited.get("document_type_boosts", {}))
    for rank, kind in enumerate(kind for kind in types if present[kind]):
        place = f"source_policy.document_type_boosts.{kind}"
        boosts[kind] = round(max(1.2, FIELD_TYPE_BOOST - TYPE_BOOST_STEP * rank), 2)
        notes[place] = (
            f"{counted(present[kind], 'document')} of this type, which belongs to the role's field"
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


def _document_rules(
    subject: Subject, named: Mapping[str, Named], types: Sequence[str]
) -> list[Values]:
    """Rules for the files that are most about the subject."""
    about, totals = passages_about(subject)
    best = [
        (document, share)
        for document, share in best_documents(subject)
        for name in [document.metadata.document_id]
        if named[name].document_type not in MENTIONS_EVERYTHING.difference(types)
        and about[name] >= MIN_SHARE_ABOUT_ROLE * totals[name]
    ]
    # If many are alike, none of them is the one to look at first, and folders and types tell more.
    if len(best) > MAX_BEST_DOCUMENTS:
        return []
    several = Counter(document.path for document in documents_of(subject))
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


def _folder_rules(subject: Subject) -> list[Values]:
    """Rules for the folders whose name, or whose documents, are about the subject.

    Those whose name has a word of the role's name come first.
    """
    inside = {subject.passages.words[position].document for position in subject.inside}
    folders: defaultdict[str, set[str]] = defaultdict(set)
    documents = documents_of(subject)
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
    chosen_folders: list[str] = []
    for is_unnamed, _, folder, own, total in sorted(found):
        if any(
            f"{folder}/".startswith(f"{chosen_folder}/")
            or f"{chosen_folder}/".startswith(f"{folder}/")
            for chosen_folder in chosen_folders
        ):
            continue
        chosen_folders.append(folder)
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
        for document in documents_of(subject)
    ]
    inherited = [
        rule
        for rule in base.source_policy.preferred_sources
        if any(rule_matches(rule, document_subject) for document_subject in subjects)
    ]

    def boost_by_base(path: str) -> float:
        subject_of_path = next(
            document_subject
            for document_subject in subjects
            if matches(path, document_subject.paths[0])
        )
        boosts = (rule.boost for rule in inherited if rule_matches(rule, subject_of_path))
        return next((boost or PREFERRED_SOURCE_BOOST for boost in boosts), 0.0)

    own = [rule for rule in rules if rule["boost"] > boost_by_base(rule["path"])]
    own += [rule.model_dump(exclude_none=True, exclude_defaults=True) for rule in inherited]
    return sorted(own, key=lambda rule: -rule.get("boost", PREFERRED_SOURCE_BOOST))


def _literal(path: str) -> str:
    """A glob that matches one path."""
    return path.replace("*", "?")
