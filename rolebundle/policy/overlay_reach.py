"""How many documents of a corpus each source rule of an overlay touches. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rolebundle.contracts.mistakes import dotted
from rolebundle.contracts.overlay import SourcePolicy, SourceRule
from rolebundle.policy.overlay_lint import CorpusFacts
from rolebundle.policy.source_rules import RuleSubject, rule_subject
from rolebundle.storage.content.documents import KindCount

MAX_EXAMPLES = 3


class Reach(NamedTuple):
    """How many documents a rule touches.

    Attributes:
        documents: how many.
        examples: id of a document and path of its file, of a few of them.
    """

    documents: int
    examples: list[tuple[str, str]]


def rule_reach(
    policy: SourcePolicy, counts: Sequence[KindCount], facts: CorpusFacts
) -> dict[str, Reach]:
    """What each rule and boost of a source policy touches, by its place in the overlay.

    Args:
        policy: the rules.
        counts: all documents of a corpus.
        facts: what rules can match among them.
    """
    return {
        place: Reach(
            sum(document_count.documents for document_count in touched),
            [
                (document_count.document_id, document_count.kind.path)
                for document_count in touched[:MAX_EXAMPLES]
            ],
        )
        for place, touched in _documents_by_rule(policy, counts, facts)
    }


def _documents_by_rule(
    policy: SourcePolicy, counts: Sequence[KindCount], facts: CorpusFacts
) -> Iterator[tuple[str, list[KindCount]]]:
    # The place of each count, so that a rule costs as much as what it matches.
    places = defaultdict[RuleSubject, list[int]](list)
    for place, document_count in enumerate(counts):
        places[rule_subject(document_count.kind, document_count.kind.path)].append(place)
    for name in ("preferred_sources", "allowed_sources", "forbidden_sources"):
        rules: list[SourceRule] = getattr(policy, name)
        for index, rule in enumerate(rules):
            matched = sorted(place for subject in facts.matched(rule) for place in places[subject])
            touched = [counts[place] for place in matched]
            yield dotted(("source_policy", name, index)), touched
    for name, key in (
        ("trust_tier_boosts", "trust_tier"),
        ("document_type_boosts", "document_type"),
        ("domain_boosts", "domain"),
    ):
        for value in getattr(policy, name):
            touched = [
                document_count
                for document_count in counts
                if getattr(document_count.kind, key) == value
            ]
            yield dotted(("source_policy", name, value)), touched
