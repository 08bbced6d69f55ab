"""Lint overlays and policies: mistakes in a file, rules that contradict each other or never match.

An error is a rule that has no effect, or the opposite effect. A warning is a rule that may be
unintended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from rolebundle.contracts.base import did_you_mean
from rolebundle.contracts.overlay import LintProblem, Overlay, SourceRule, Vocabulary
from rolebundle.contracts.policy import EVERY_SCOPE, AgentAccess, AgentRule, Policy, PolicySummary
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.policy import overlays
from rolebundle.policy.access import denies, may_see, policy_problem
from rolebundle.policy.policy_file import parse_policy
from rolebundle.storage.compartments import searchable_compartments, visible_compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import DocumentKind, count_types, document_kinds, scopes_and_files
from rolebundle.storage.lexical_index import Phrase, phrase_of
from rolebundle.storage.records import StoredPolicy, load_policy
from rolebundle.text.forms import index_tokens, phrase_form
from rolebundle.text.languages import likely_languages

_LISTS = ("preferred_sources", "allowed_sources", "forbidden_sources")
# More names take too long to compare.
_MAX_COMPARED = 2_000
# The parts of names that a glob may have.
_WORD = re.compile(r"[^\W_]{4,40}")
_GLOB_SIGNS = frozenset("*?[]{}!\\")


def lint_error(place: str, code: str, message: str) -> LintProblem:
    """A rule that has no effect, or the opposite effect. ``place`` is empty for the whole file."""
    return LintProblem(level="error", place=place, code=code, message=message)


def lint_warning(place: str, code: str, message: str) -> LintProblem:
    """A rule that may be unintended."""
    return LintProblem(level="warning", place=place, code=code, message=message)


def lint_overlay(
    path: Path,
    folders: Sequence[Path],
    corpus: Corpus | None,
    kinds: Sequence[DocumentKind] | None = None,
) -> list[LintProblem]:
    """The findings for the overlay in a file, in the order of the checks.

    If the overlay does not load, these are the errors that prevent it.

    Args:
        path: the file.
        folders: the folders of the overlays that it may extend.
        corpus: the corpus that its rules and words are checked against, or None for the overlay
            alone.
        kinds: the kinds of the documents in the corpus, if they are known already.
    """
    findings = [
        lint_error(place, code, f"{message}; {hint}".removesuffix("; "))
        for place, code, message, hint in overlays.problems_of(path, folders)
    ]
    if findings:
        return findings
    resolved = overlays.load_file(path, folders)
    findings += _name(resolved.overlay, path, folders)
    if not resolved.overlay.mission.strip():
        message = "is empty, so agents cannot tell what the role is for"
        findings.append(lint_warning("mission", "empty_mission", message))
    findings += _contradictions(resolved.overlay.vocabulary)
    if corpus is not None:
        kinds = kinds or document_kinds(corpus)
        findings += unmatched_values(resolved, corpus, kinds, folders)
        findings += excluded_rules(resolved.overlay, kinds)
    return findings


def unmatched_values(
    resolved: overlays.ResolvedOverlay,
    corpus: Corpus,
    kinds: Sequence[DocumentKind],
    folders: Sequence[Path],
) -> list[LintProblem]:
    """The rules and words of an overlay that match nothing in a corpus.

    What it inherits from an overlay that comes with rolebundle is written for any corpus.
    """
    unmatched = [
        *unmatched_rules(resolved.overlay, kinds, count_types(corpus)),
        *unmatched_words(resolved.overlay.vocabulary, corpus),
    ]
    shipped = next(filter(overlays.is_shipped, resolved.ancestors), None)
    if shipped is None:
        return unmatched
    inherited = {
        finding.message
        for finding in unmatched_values(
            overlays.load_file(shipped, folders), corpus, kinds, folders
        )
    }
    return [finding for finding in unmatched if finding.message not in inherited]


def _subjects(kinds: Iterable[DocumentKind]) -> set[overlays.RuleSubject]:
    return {overlays.rule_subject(kind, kind.path) for kind in kinds}


def _rules(overlay: Overlay, *lists: str) -> Iterator[tuple[str, SourceRule]]:
    """The rules of some lists of a source policy, each with its place."""
    for name in lists:
        for index, rule in enumerate(getattr(overlay.source_policy, name)):
            yield f"source_policy.{name}[{index}]", rule


def _name(overlay: Overlay, path: Path, folders: Sequence[Path]) -> Iterator[LintProblem]:
    expected = f"{overlay.role_id}.json"
    if path.name == expected:
        return
    # In an overlay folder the file would be looked up by its role and then refused.
    problem = lint_error if overlays.found_by_name(path, folders) else lint_warning
    message = f"the file of this role must be named {expected}, not {path.name}"
    yield problem("role_id", "overlay_name_mismatch", message)


def _contradictions(words: Vocabulary) -> Iterator[LintProblem]:
    suppressed = {phrase.casefold() for phrase in words.suppress_phrases}
    lists = (("boost_phrases", "boosted"), ("preferred_terms", "preferred"))
    for name, effect in lists:
        for index, phrase in enumerate(getattr(words, name)):
            if phrase.casefold() in suppressed:
                place = f"vocabulary.{name}[{index}]"
                message = f"{phrase!r} is both {effect} and suppressed; remove it from one list"
                yield lint_error(place, "contradiction", message)


def unmatched_rules(
    overlay: Overlay, kinds: Sequence[DocumentKind], types: Collection[str]
) -> Iterator[LintProblem]:
    """The rules and boosts that match no document of a corpus with documents of these types."""
    policy, subjects = overlay.source_policy, _subjects(kinds)
    # A pattern is searched for in all three names. A boost applies to one name, spelled exactly.
    all_names = {name for names, _ in subjects for name in names}
    folders = {
        f"{'/'.join(parts[:depth])}/**"
        for parts in {tuple(kind.path.split("/")[:-1]) for kind in kinds}
        for depth in range(1, len(parts) + 1)
        # As a glob, such a name would match other folders or none.
        if _GLOB_SIGNS.isdisjoint("/".join(parts[:depth]))
    }
    for place, rule in _rules(overlay, *_LISTS):
        if any(overlays.rule_matches(rule, subject) for subject in subjects):
            continue
        if rule.pattern is None:
            glob = rule.path or ""
            problem = _unmatched(f"{place}.path", "file with the path", glob, folders)
            words = {word for kind in kinds for word in _WORD.findall(kind.path)}
            yield _or_near(problem, glob.strip("*/"), {word: f"**{word}**" for word in words})
        else:
            problem = _unmatched(place, "source, type or domain", rule.pattern, all_names)
            # A pattern does not match paths.
            globs = sorted(folders, key=len, reverse=True)
            named = {glob.split("/")[-2]: f'"path": "{glob}"' for glob in globs}
            yield _or_near(problem, rule.pattern, named)
    exact: tuple[tuple[str, str, Collection[str]], ...] = (
        ("trust_tier_boosts", "document with the trust tier", {kind.trust_tier for kind in kinds}),
        ("document_type_boosts", "document of the type", types),
        ("domain_boosts", "document of the domain", {kind.domain for kind in kinds}),
    )
    for name, description, present in exact:
        for key in getattr(policy, name):
            if key not in present:
                yield _unmatched(f"source_policy.{name}.{key}", description, key, present)


def _unmatched(place: str, description: str, name: str, present: Collection[str]) -> LintProblem:
    guess = did_you_mean(name, sorted(present)[:_MAX_COMPARED])
    message = f"matches nothing in this corpus: it has no {description} {name!r}{guess}"
    return lint_warning(place, "never_matches", message)


def _or_near(problem: LintProblem, name: str, choices: Mapping[str, str]) -> LintProblem:
    """The problem, with what the name most similar to this one stands for if it names none."""
    near = get_close_matches(name[:200], sorted(choices)[:_MAX_COMPARED], n=1)
    if not near or problem.message.endswith("?"):
        return problem
    message = f"{problem.message}; did you mean {choices[near[0]]}?"
    return problem.model_copy(update={"message": message})


def unmatched_words(words: Vocabulary, corpus: Corpus) -> Iterator[LintProblem]:
    """The words of a vocabulary that no passage of a corpus has, in any of their forms."""
    for place, (phrase, passages) in word_counts(words, corpus).items():
        if not passages:
            message = f"matches nothing in this corpus: no passage has {phrase!r}"
            yield lint_warning(place, "never_matches", message)


def word_counts(words: Vocabulary, corpus: Corpus) -> dict[str, tuple[str, int]]:
    """The words of a vocabulary, and how many passages of a corpus have each in any of its forms.

    Returns:
        place → (word or phrase, passages), in the order of the format.
    """
    lists = {
        "preferred_terms": words.preferred_terms,
        **{f"synonyms.{term}": phrases for term, phrases in words.synonyms.items()},
        "boost_phrases": words.boost_phrases,
        "suppress_phrases": words.suppress_phrases,
    }
    places = [
        (f"vocabulary.{name}[{index}]", phrase)
        for name, phrases in lists.items()
        for index, phrase in enumerate(phrases)
    ]
    # Imported here, because numpy takes time.
    from rolebundle.storage.postings import postings_of

    forms = [_forms(phrase) for _, phrase in places]
    counts = [0] * len(places)
    for compartment in searchable_compartments(corpus):
        part = postings_of(corpus, compartment.id)
        found = (len(part.having(corpus, phrases)) for phrases in forms)
        counts = [count + new for count, new in zip(counts, found, strict=True)]
    return {place: (phrase, count) for (place, phrase), count in zip(places, counts, strict=True)}


def _forms(phrase: str) -> list[Phrase]:
    """A phrase and its forms, as they are indexed."""
    texts = [phrase]
    if not phrase.isascii():
        languages = dict.fromkeys((*likely_languages(phrase), ""))
        texts += [index_tokens(phrase_form(phrase, language)) for language in languages]
    return [phrase_of(text) for text in texts]


def excluded_rules(overlay: Overlay, kinds: Sequence[DocumentKind]) -> Iterator[LintProblem]:
    """The preferred and allowed rules whose every match in a corpus is excluded by others."""
    policy, subjects = overlay.source_policy, _subjects(kinds)

    def is_excluded(subject: overlays.RuleSubject) -> bool:
        """Whether a subject is forbidden, or not among the allowed."""
        if any(overlays.rule_matches(rule, subject) for rule in policy.forbidden_sources):
            return True
        allowed = policy.allowed_sources
        return bool(allowed) and not any(overlays.rule_matches(rule, subject) for rule in allowed)

    excluded = {subject for subject in subjects if is_excluded(subject)}
    if subjects and excluded == subjects:
        message = "every document of this corpus is forbidden, or is not among the allowed"
        yield lint_error("source_policy", "forbids_everything", message)
    for place, rule in _rules(overlay, "preferred_sources", "allowed_sources"):
        matched = {subject for subject in subjects if overlays.rule_matches(rule, subject)}
        if matched and matched <= excluded:
            message = f"every match of {rule.condition!r} in this corpus is excluded by other rules"
            yield lint_error(place, "forbidden_hides_rule", message)


def lint_policy(
    policy: Policy, corpus: Corpus | None = None, roles: Collection[str] | None = None
) -> list[LintProblem]:
    """The findings for a policy, and for its effect on a corpus if one is given.

    Args:
        policy: the policy.
        corpus: the corpus.
        roles: the roles that have an overlay; ``None`` if they are not known.
    """
    findings = [*_lint_rules(policy, roles)]
    if corpus is not None:
        documents = scopes_and_files(corpus)
        for agent, rule in policy.agents.items():
            findings += _lint_against(agent, rule, documents)
    return findings


def lint_active_policy(corpus: Corpus, roles: Collection[str] | None = None) -> list[LintProblem]:
    """The findings for the policy of a corpus."""
    stored = load_policy(corpus)
    if stored is None:
        message = "no policy was set: everyone sees every document, with or without an agent id"
        return [lint_warning("", "no_policy", message)]
    policy, code, problem = _stored_policy(stored)
    findings = [lint_error("", code, f"everyone is denied: {problem}")] if problem else []
    return [*findings, *(lint_policy(policy, corpus, roles) if policy else ())]


def _stored_policy(stored: StoredPolicy) -> tuple[Policy | None, str, str]:
    """A stored policy, and the code and message of why it denies everyone; empty if it does not."""
    try:
        policy = parse_policy(stored.content, stored.format, stored.location or "the policy")
    except RolebundleError as error:
        return None, error.code, error.message
    return policy, "policy_doubtful", policy_problem(stored)


def _lint_rules(policy: Policy, roles: Collection[str] | None) -> Iterator[LintProblem]:
    if not policy.agents:
        yield lint_warning("", "no_agents", "names no agent: everyone is denied")
    for agent, rule in policy.agents.items():
        if rule.access_level != "denied" and not rule.scopes:
            message = f'is empty: it sees nothing; every scope is ["{EVERY_SCOPE}"]'
            yield lint_error(f"{agent}.scopes", "no_scopes", message)
        for role in rule.roles or ():
            if roles is not None and role not in roles:
                message = f"{role!r} has no overlay; roles: {', '.join(sorted(roles)) or 'none'}"
                yield lint_warning(f"{agent}.roles", "unknown_role", message)
        if rule.roles and not rule.role_required:
            message = "is false: without a role, no overlay forbids it any source"
            yield lint_warning(f"{agent}.role_required", "role_optional", message)


def _lint_against(
    agent: str, rule: AgentRule, documents: Sequence[tuple[str, str, str]]
) -> Iterator[LintProblem]:
    scopes = {scope for scope, _, _ in documents}
    for scope in rule.scopes:
        if scope not in {EVERY_SCOPE, *scopes}:
            known = ", ".join(sorted(scopes)) or "none"
            message = f"no document has the scope {scope!r}; in the corpus: {known}"
            yield lint_warning(f"{agent}.scopes", "unknown_scope", message)
    for pattern in rule.deny_patterns:
        if not any(denies(pattern, path, location) for _, path, location in documents):
            message = f"{pattern!r} matches no document of the corpus"
            yield lint_warning(f"{agent}.deny_patterns", "pattern_matches_nothing", message)


def report_policy(corpus: Corpus, agent: str | None = None) -> PolicySummary:
    """The active policy and its effect.

    Args:
        corpus: a corpus as its owner sees it.
        agent: the only agent to report on.

    Raises:
        UsageError: the policy does not name that agent.
    """
    with corpus.reading():
        stored = load_policy(corpus)
        visible = visible_compartments(corpus)
    total = sum(compartment.documents for compartment in visible)
    policy, problem = Policy(agents={}), ""
    if stored is not None:
        found, _, problem = _stored_policy(stored)
        policy, visible = found or policy, [] if problem else visible
        if agent is not None and agent not in policy.agents:
            reason = f"{agent}: the policy does not name this agent, so it sees nothing"
            step = f"agents: {', '.join(policy.agents) or 'none'}"
            raise UsageError("unknown_agent", reason, step)
    return PolicySummary(
        policy=stored is not None,
        location=stored.location if stored else "",
        set_at=stored.set_at if stored else "",
        doubt=problem,
        documents=total,
        agents=[
            AgentAccess(
                agent=name,
                documents=sum(place.documents for place in visible if may_see(rule, place)),
                **rule.model_dump(exclude_none=True),
            )
            for name, rule in policy.agents.items()
            if agent in (None, name)
        ],
    )
