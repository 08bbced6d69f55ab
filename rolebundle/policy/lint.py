"""What is wrong with an overlay, beyond that it loads: rules that contradict, or never match.

An error is a rule that cannot do what it says. A warning is one that may not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rolebundle.contracts.document import DocumentMetadata
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy, SourceRule, Vocabulary
from rolebundle.policy.overlay_json import nearest
from rolebundle.policy.overlays import found_by_name, load_file, problems_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.documents import all_documents

Level = Literal["error", "warning"]

_PREFERRED = "source_policy.preferred_sources"
_ALLOWED = "source_policy.allowed_sources"
_FORBIDDEN = "source_policy.forbidden_sources"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend, and where in the overlay it stands."""

    level: Level
    place: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What policy can match in a corpus: each (source_id, document_type, domain), and the tiers."""

    names: tuple[tuple[str, str, str], ...]
    tiers: frozenset[str]


def lint(path: Path, folders: Sequence[Path], corpus: Corpus | None) -> list[Finding]:
    """All that is wrong with the overlay in a file.

    Args:
        path: the file.
        folders: where the overlays lie that it may extend.
        corpus: what its rules are checked against; ``None`` for the overlay alone.

    Returns:
        The findings, in the order of the checks. An overlay that does not load has errors only
        about that.
    """
    problems = problems_of(path, folders)
    if problems:
        return [
            Finding(
                "error",
                problem.place,
                problem.code,
                f"{problem.message}; {problem.hint}" if problem.hint else problem.message,
            )
            for problem in problems
        ]
    overlay = load_file(path, folders).overlay
    findings = [
        *_name(overlay, path, folders),
        *_vocabulary(overlay.vocabulary),
        *_sources(overlay),
        *_numbers(overlay),
    ]
    if corpus is not None:
        findings += against(overlay, facts_of(document for _, document in all_documents(corpus)))
    return findings


def facts_of(documents: Iterable[DocumentMetadata]) -> Facts:
    """What policy can match among these documents."""
    names = set()
    tiers = set()
    for document in documents:
        names.add((document.source_id, document.document_type, document.domain))
        tiers.add(document.trust_tier)
    return Facts(tuple(sorted(names)), frozenset(tiers))


def against(overlay: Overlay, facts: Facts) -> list[Finding]:
    """What is wrong with an overlay's rules in one corpus."""
    return [*_never_matching(overlay, facts), *_refused_in_corpus(overlay, facts)]


def _name(overlay: Overlay, path: Path, folders: Sequence[Path]) -> Iterator[Finding]:
    expected = f"{overlay.role_id}.json"
    if path.name == expected:
        return
    # Among the overlay folders the file is looked up by role, and is then refused.
    level: Level = "error" if found_by_name(path, folders) else "warning"
    message = f"the role is found by its file's name, which would be {expected}, not {path.name}"
    yield Finding(level, "role_id", "overlay_name_mismatch", message)


def _vocabulary(words: Vocabulary) -> Iterator[Finding]:
    lists = {
        "preferred_terms": words.preferred_terms,
        "boost_phrases": words.boost_phrases,
        "suppress_phrases": words.suppress_phrases,
        **{f"synonyms.{term}": phrases for term, phrases in words.synonyms.items()},
    }
    for name, phrases in lists.items():
        first: dict[str, int] = {}
        for index, phrase in enumerate(phrases):
            before = first.setdefault(phrase.casefold(), index)
            if before != index:
                place = f"vocabulary.{name}[{index}]"
                message = f"{phrase!r} stands there already, as number {before} (counted from 0)"
                yield Finding("warning", place, "duplicate_phrase", message)
    suppressed = {phrase.casefold() for phrase in words.suppress_phrases}
    for name, what in (("boost_phrases", "boosted"), ("preferred_terms", "preferred")):
        for index, phrase in enumerate(lists[name]):
            if phrase.casefold() in suppressed:
                place = f"vocabulary.{name}[{index}]"
                message = f"{phrase!r} is {what} and suppressed: it can be one of them"
                yield Finding("error", place, "contradiction", message)


def _sources(overlay: Overlay) -> Iterator[Finding]:
    policy = overlay.source_policy
    for place, rules in (
        (_PREFERRED, policy.preferred_sources),
        (_ALLOWED, policy.allowed_sources),
    ):
        for index, rule in enumerate(rules):
            # Whatever holds the longer pattern holds the shorter one, too. The other way round,
            # a forbidden pattern inside a preferred family of sources, is a plain exception.
            hiding = _containing(policy.forbidden_sources, rule.pattern)
            if hiding is not None:
                shown = f"{_FORBIDDEN}[{hiding}] ({policy.forbidden_sources[hiding].pattern!r})"
                message = f"every source that {rule.pattern!r} matches is forbidden by {shown}"
                yield Finding("error", f"{place}[{index}]", "forbidden_hides_rule", message)
            shadow = _containing(rules[:index], rule.pattern)
            if shadow is not None:
                message = (
                    f"never comes into play: number {shadow} (counted from 0), "
                    f"{rules[shadow].pattern!r}, matches first whatever {rule.pattern!r} matches"
                )
                yield Finding("warning", f"{place}[{index}]", "shadowed_rule", message)
    for index, rule in enumerate(policy.preferred_sources):
        if rule.boost is not None and rule.boost < 1:
            message = f"a preferred source with the boost {rule.boost:g} ranks lower, not higher"
            yield Finding("warning", f"{_PREFERRED}[{index}].boost", "demoting_boost", message)


def _numbers(overlay: Overlay) -> Iterator[Finding]:
    policy = overlay.retrieval_policy
    if not overlay.mission.strip():
        message = "is empty, so that the semantic lane knows nothing of the role"
        yield Finding("warning", "mission", "empty_mission", message)
    if policy.stale_penalty >= 1 and policy.freshness_max_age_days is None:
        message = "1 rejects what is too old, and without freshness_max_age_days nothing ever is"
        yield Finding("warning", "retrieval_policy.stale_penalty", "no_effect", message)
    default = RetrievalPolicy().max_chunks_per_source
    if policy.max_chunks_per_source != default and not policy.require_source_diversity:
        message = "has no effect while require_source_diversity is false"
        yield Finding("warning", "retrieval_policy.max_chunks_per_source", "no_effect", message)


def _never_matching(overlay: Overlay, facts: Facts) -> Iterator[Finding]:
    policy = overlay.source_policy
    # A pattern looks into all three names; the boosts look up one name, exactly as it is spelled.
    every = {name for names in facts.names for name in names}
    for place, rules in (
        (_PREFERRED, policy.preferred_sources),
        (_ALLOWED, policy.allowed_sources),
        (_FORBIDDEN, policy.forbidden_sources),
    ):
        for index, rule in enumerate(rules):
            if not any(_matches(rule, names) for names in facts.names):
                yield _unmatched(f"{place}[{index}]", "source, type or domain", rule.pattern, every)
    types = {document_type for _, document_type, _ in facts.names}
    domains = {domain for _, _, domain in facts.names}
    exact: tuple[tuple[str, str, Iterable[str], Collection[str]], ...] = (
        (
            "trust_tier_boosts",
            "document with the trust tier",
            policy.trust_tier_boosts,
            facts.tiers,
        ),
        ("document_type_boosts", "document of the type", policy.document_type_boosts, types),
        ("domain_boosts", "document of the domain", policy.domain_boosts, domains),
    )
    for name, what, keys, present in exact:
        for key in keys:
            if key not in present:
                yield _unmatched(f"source_policy.{name}.{key}", what, key, present)


def _unmatched(place: str, what: str, wanted: str, present: Collection[str]) -> Finding:
    guess = nearest(wanted, sorted(present))
    message = f"matches nothing in this corpus: it has no {what} {wanted!r}{guess}"
    return Finding("warning", place, "never_matches", message)


def _refused_in_corpus(overlay: Overlay, facts: Facts) -> Iterator[Finding]:
    policy = overlay.source_policy
    for place, rules in (
        (_PREFERRED, policy.preferred_sources),
        (_ALLOWED, policy.allowed_sources),
    ):
        for index, rule in enumerate(rules):
            if _containing(policy.forbidden_sources, rule.pattern) is not None:
                continue  # Said already, without the corpus.
            matched = [names for names in facts.names if _matches(rule, names)]
            refused = [names for names in matched if _refused(overlay, names)]
            if not refused:
                continue
            shown = ", ".join(" / ".join(names) for names in refused[:_SHOWN])
            more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
            if len(refused) == len(matched):
                message = f"all that {rule.pattern!r} matches here is refused: {shown}{more}"
                yield Finding("error", f"{place}[{index}]", "forbidden_hides_rule", message)
            else:
                message = f"some of what {rule.pattern!r} matches here is refused: {shown}{more}"
                yield Finding("warning", f"{place}[{index}]", "forbidden_overlaps_rule", message)


def _refused(overlay: Overlay, names: Sequence[str]) -> bool:
    policy = overlay.source_policy
    if any(_matches(rule, names) for rule in policy.forbidden_sources):
        return True
    allowed = policy.allowed_sources
    return bool(allowed) and not any(_matches(rule, names) for rule in allowed)


def _matches(rule: SourceRule, names: Iterable[str]) -> bool:
    pattern = rule.pattern.casefold()
    return any(pattern in name.casefold() for name in names)


def _containing(rules: Iterable[SourceRule], pattern: str) -> int | None:
    """The first of the rules that matches whatever ``pattern`` matches."""
    return next((n for n, rule in enumerate(rules) if _matches(rule, (pattern,))), None)
