"""Lint an overlay that loads: rules that contradict each other or never match.

An error is a rule that has no effect, or the opposite effect. A warning is a rule that may be
unintended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolebundle.contracts.overlay import Overlay, RetrievalPolicy, SourceRule, Vocabulary
from rolebundle.contracts.reports import LintProblem
from rolebundle.policy.overlays import did_you_mean, found_by_name, load_file, problems_of
from rolebundle.policy.source_rules import RuleSubject, rule_matches, rule_subject
from rolebundle.storage.connection import Corpus
from rolebundle.storage.documents import DocumentKind, document_kinds

_PREFERRED = "source_policy.preferred_sources"
_ALLOWED = "source_policy.allowed_sources"
_FORBIDDEN = "source_policy.forbidden_sources"
_MAX_SHOWN_DOCUMENTS = 3
# More names take too long to compare.
_MAX_COMPARED = 2_000


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What rules can match in a corpus.

    ``folders`` are globs of the files in each folder.
    """

    subjects: tuple[RuleSubject, ...]
    sources: frozenset[str]
    document_types: frozenset[str]
    domains: frozenset[str]
    tiers: frozenset[str]
    folders: frozenset[str]


def lint_error(place: str, code: str, message: str) -> LintProblem:
    """A rule that has no effect, or the opposite effect. ``place`` is empty for the whole file."""
    return LintProblem(level="error", place=place, code=code, message=message)


def lint_warning(place: str, code: str, message: str) -> LintProblem:
    """A rule that may be unintended."""
    return LintProblem(level="warning", place=place, code=code, message=message)


def lint_overlay(path: Path, folders: Sequence[Path], corpus: Corpus | None) -> list[LintProblem]:
    """The findings for the overlay in a file, in the order of the checks.

    Args:
        path: the file.
        folders: the folders of the overlays that it may extend.
        corpus: the corpus that its rules are checked against, or None for the overlay alone.

    Returns:
        The findings. If the overlay does not load, these are only the errors that prevent it.
    """
    problems = problems_of(path, folders)
    if problems:
        return [
            lint_error(
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
        findings += lint_against_corpus(overlay, corpus_facts(document_kinds(corpus)))
    return findings


def corpus_facts(documents: Iterable[DocumentKind]) -> CorpusFacts:
    """What rules can match among these documents."""
    kinds = list(documents)
    return CorpusFacts(
        subjects=tuple(dict.fromkeys(rule_subject(kind, kind.path) for kind in kinds)),
        sources=frozenset(kind.source_id for kind in kinds),
        document_types=frozenset(kind.document_type for kind in kinds),
        domains=frozenset(kind.domain for kind in kinds),
        tiers=frozenset(kind.trust_tier for kind in kinds),
        folders=frozenset(
            f"{'/'.join(parts[:depth])}/**"
            for parts in {tuple(kind.path.split("/")[:-1]) for kind in kinds}
            for depth in range(1, len(parts) + 1)
        ),
    )


def lint_against_corpus(overlay: Overlay, facts: CorpusFacts) -> list[LintProblem]:
    """The findings for an overlay's rules that depend on a corpus."""
    return [*_never_matching(overlay, facts), *_excluded_in_corpus(overlay, facts)]


def _name(overlay: Overlay, path: Path, folders: Sequence[Path]) -> Iterator[LintProblem]:
    expected = f"{overlay.role_id}.json"
    if path.name == expected:
        return
    # In an overlay folder the file would be looked up by its role and then refused.
    problem = lint_error if found_by_name(path, folders) else lint_warning
    message = f"the file of this role must be named {expected}, not {path.name}"
    yield problem("role_id", "overlay_name_mismatch", message)


def _vocabulary(words: Vocabulary) -> Iterator[LintProblem]:
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
                message = f"{phrase!r} repeats number {before} (counted from 0)"
                yield lint_warning(place, "duplicate_phrase", message)
    suppressed = {phrase.casefold() for phrase in words.suppress_phrases}
    for name, effect in (("boost_phrases", "boosted"), ("preferred_terms", "preferred")):
        for index, phrase in enumerate(lists[name]):
            if phrase.casefold() in suppressed:
                place = f"vocabulary.{name}[{index}]"
                message = f"{phrase!r} is both {effect} and suppressed; remove it from one list"
                yield lint_error(place, "contradiction", message)


def _sources(overlay: Overlay) -> Iterator[LintProblem]:
    policy = overlay.source_policy
    for place, rules in (
        (_PREFERRED, policy.preferred_sources),
        (_ALLOWED, policy.allowed_sources),
    ):
        for index, rule in enumerate(rules):
            # A forbidden rule that matches less than this one is an exception, not an error.
            hiding = _covering(policy.forbidden_sources, rule)
            if hiding is not None:
                shown = f"{_FORBIDDEN}[{hiding}] ({policy.forbidden_sources[hiding].condition!r})"
                message = f"all that {rule.condition!r} matches is forbidden by {shown}"
                yield lint_error(f"{place}[{index}]", "forbidden_hides_rule", message)
            shadow = _covering(rules[:index], rule)
            if shadow is not None:
                message = (
                    f"has no effect: number {shadow} (counted from 0), "
                    f"{rules[shadow].condition!r}, matches all that {rule.condition!r} matches"
                )
                yield lint_warning(f"{place}[{index}]", "shadowed_rule", message)
    for index, rule in enumerate(policy.preferred_sources):
        if rule.boost is not None and rule.boost < 1:
            message = f"a preferred source with the boost {rule.boost:g} ranks lower, not higher"
            yield lint_warning(f"{_PREFERRED}[{index}].boost", "demoting_boost", message)
    for place, rules in (
        (_ALLOWED, policy.allowed_sources),
        (_FORBIDDEN, policy.forbidden_sources),
    ):
        for index, rule in enumerate(rules):
            if rule.boost is not None:
                message = "has no effect: only preferred sources have a boost"
                yield lint_warning(f"{place}[{index}].boost", "no_effect", message)


def _numbers(overlay: Overlay) -> Iterator[LintProblem]:
    policy = overlay.retrieval_policy
    if not overlay.mission.strip():
        message = "is empty, so agents cannot tell what the role is for"
        yield lint_warning("mission", "empty_mission", message)
    if policy.stale_penalty >= 1 and policy.freshness_max_age_days is None:
        message = "1 rejects stale documents, but without freshness_max_age_days none is stale"
        yield lint_warning("retrieval_policy.stale_penalty", "no_effect", message)
    default = RetrievalPolicy().max_chunks_per_source
    if policy.max_chunks_per_source != default and not policy.require_source_diversity:
        message = "has no effect while require_source_diversity is false"
        yield lint_warning("retrieval_policy.max_chunks_per_source", "no_effect", message)


def _never_matching(overlay: Overlay, facts: CorpusFacts) -> Iterator[LintProblem]:
    policy = overlay.source_policy
    # A pattern is searched for in all three names. A boost applies to one name, spelled exactly.
    all_names = {*facts.sources, *facts.document_types, *facts.domains}
    for place, rules in (
        (_PREFERRED, policy.preferred_sources),
        (_ALLOWED, policy.allowed_sources),
        (_FORBIDDEN, policy.forbidden_sources),
    ):
        for index, rule in enumerate(rules):
            if any(rule_matches(rule, subject) for subject in facts.subjects):
                continue
            if rule.pattern is None:
                yield _unmatched(
                    f"{place}[{index}].path", "file with the path", rule.path or "", facts.folders
                )
            else:
                yield _unmatched(
                    f"{place}[{index}]", "source, type or domain", rule.pattern, all_names
                )
    exact: tuple[tuple[str, str, Iterable[str], Collection[str]], ...] = (
        (
            "trust_tier_boosts",
            "document with the trust tier",
            policy.trust_tier_boosts,
            facts.tiers,
        ),
        (
            "document_type_boosts",
            "document of the type",
            policy.document_type_boosts,
            facts.document_types,
        ),
        ("domain_boosts", "document of the domain", policy.domain_boosts, facts.domains),
    )
    for name, description, keys, present in exact:
        for key in keys:
            if key not in present:
                yield _unmatched(f"source_policy.{name}.{key}", description, key, present)


def _unmatched(place: str, description: str, name: str, present: Collection[str]) -> LintProblem:
    guess = did_you_mean(name, sorted(present)[:_MAX_COMPARED])
    message = f"matches nothing in this corpus: it has no {description} {name!r}{guess}"
    return lint_warning(place, "never_matches", message)


def _excluded_in_corpus(overlay: Overlay, facts: CorpusFacts) -> Iterator[LintProblem]:
    policy = overlay.source_policy
    subjects = facts.subjects
    all_rules = (*policy.preferred_sources, *policy.allowed_sources, *policy.forbidden_sources)
    if all(rule.path is None for rule in all_rules):
        subjects = tuple({subject.names: subject for subject in subjects}.values())
    for place, rules in (
        (_PREFERRED, policy.preferred_sources),
        (_ALLOWED, policy.allowed_sources),
    ):
        for index, rule in enumerate(rules):
            if _covering(policy.forbidden_sources, rule) is not None:
                continue  # Reported already, without the corpus.
            matched = [subject for subject in subjects if rule_matches(rule, subject)]
            excluded = [subject for subject in matched if _is_excluded(overlay, subject)]
            if not excluded:
                continue
            names = list(dict.fromkeys(_shown(rule, subject) for subject in excluded))
            shown = ", ".join(names[:_MAX_SHOWN_DOCUMENTS])
            hidden_count = len(names) - _MAX_SHOWN_DOCUMENTS
            more = f" and {hidden_count} more" if hidden_count > 0 else ""
            if len(excluded) == len(matched):
                message = (
                    f"every match of {rule.condition!r} in this corpus is excluded: {shown}{more}"
                )
                yield lint_error(f"{place}[{index}]", "forbidden_hides_rule", message)
            else:
                message = (
                    f"some matches of {rule.condition!r} in this corpus are excluded: {shown}{more}"
                )
                yield lint_warning(f"{place}[{index}]", "forbidden_overlaps_rule", message)


def _shown(rule: SourceRule, subject: RuleSubject) -> str:
    return " / ".join(subject.names) if rule.path is None else subject.paths[0]


def _is_excluded(overlay: Overlay, subject: RuleSubject) -> bool:
    policy = overlay.source_policy
    if any(rule_matches(rule, subject) for rule in policy.forbidden_sources):
        return True
    allowed = policy.allowed_sources
    return bool(allowed) and not any(rule_matches(rule, subject) for rule in allowed)


def _covering(rules: Iterable[SourceRule], rule: SourceRule) -> int | None:
    """The index of the first rule that matches everything that ``rule`` matches."""
    return next((index for index, other in enumerate(rules) if _covers(other, rule)), None)


def _covers(other: SourceRule, rule: SourceRule) -> bool:
    if rule.pattern is not None and other.pattern is not None:
        # A name that contains the rule's pattern also contains any shorter pattern inside it.
        return other.pattern.casefold() in rule.pattern.casefold()
    if rule.path is not None and other.path is not None:
        return rule.path == other.path or (
            other.path.endswith("**") and rule.path.startswith(other.path.removesuffix("**"))
        )
    return False
