"""Lint overlays and policies: mistakes in a file, rules that contradict each other or never match.

An error is a rule that has no effect, or the opposite effect. A warning is a rule that may be
unintended. A note is what the overlay leaves to rolebundle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rolebundle.contracts.base import did_you_mean, dotted
from rolebundle.contracts.overlay import (
    LintProblem,
    Overlay,
    RetrievalPolicy,
    SourceRule,
    Vocabulary,
)
from rolebundle.contracts.policy import AgentAccess, AgentRule, PolicySummary
from rolebundle.contracts.status import RoleStatus
from rolebundle.contracts.terms import level_rank
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.policy.access import may_see, policy_problem
from rolebundle.policy.overlays import (
    OWN_KEYS,
    Layer,
    ResolvedOverlay,
    RuleSubject,
    found_by_name,
    is_shipped,
    list_overlays,
    load_file,
    load_role,
    problems_of,
    rule_matches,
    rule_subject,
)
from rolebundle.policy.policy_change import denies
from rolebundle.policy.policy_file import Policy, parse_policy
from rolebundle.policy.trust import loosened_values
from rolebundle.storage import compartments, records
from rolebundle.storage.compartments import searchable_compartments
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import (
    AccessAttributes,
    DocumentKind,
    access_attributes,
    document_kinds,
)
from rolebundle.storage.lexical_index import Phrase, phrase_of
from rolebundle.text.forms import index_tokens, phrase_form
from rolebundle.text.languages import likely_languages
from rolebundle.text.words import counted, first_of

_LISTS = ("preferred_sources", "allowed_sources", "forbidden_sources")
_MISSING = object()
_MAX_SHOWN_DOCUMENTS = 3
# More names take too long to compare.
_MAX_COMPARED = 2_000


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What rules can match in a corpus."""

    subjects: tuple[RuleSubject, ...]
    names: dict[str, list[str]]
    _matched: dict[tuple[str | None, str | None], frozenset[RuleSubject]] = field(
        default_factory=dict, compare=False
    )

    def matched(self, rule: SourceRule) -> frozenset[RuleSubject]:
        """The subjects that a rule matches. To match many paths takes long, so it is done once."""
        condition = (rule.pattern, rule.path)
        if condition not in self._matched:
            self._matched[condition] = frozenset(
                subject for subject in self.subjects if rule_matches(rule, subject)
            )
        return self._matched[condition]


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
    facts: CorpusFacts | None = None,
) -> list[LintProblem]:
    """The findings for the overlay in a file, in the order of the checks.

    If the overlay does not load, these are the errors that prevent it.

    Args:
        path: the file.
        folders: the folders of the overlays that it may extend.
        corpus: the corpus that its rules and words are checked against, or None for the overlay
            alone.
        facts: what rules can match in the corpus, if that is known already.
    """
    findings = [
        lint_error(
            problem.place,
            problem.code,
            f"{problem.message}; {problem.hint}" if problem.hint else problem.message,
        )
        for problem in problems_of(path, folders)
    ]
    if findings:
        return findings
    resolved = load_file(path, folders)
    findings += _name(resolved.overlay, path, folders)
    findings += _numbers(resolved)
    findings += _vocabulary(resolved.overlay.vocabulary)
    findings += _sources(resolved.overlay)
    if corpus is not None:
        facts = facts or corpus_facts(document_kinds(corpus))
        findings += unmatched_values(resolved, corpus, facts)
        findings += excluded_rules(resolved.overlay, facts)
    return findings


def role_statuses(corpus: Corpus, folders: Sequence[Path]) -> list[RoleStatus]:
    """The overlays that do not come with rolebundle, and what of each matches nothing in a corpus.

    Raises:
        OverlayError: a folder cannot be read.
    """
    entries = [entry for entry in list_overlays(folders) if not is_shipped(Path(entry.path))]
    # To read what rules can match takes long in a large corpus.
    facts = corpus_facts(document_kinds(corpus)) if entries else None
    statuses = []
    for entry in entries:
        unmatched: list[LintProblem] = []
        if facts and not entry.problem:
            unmatched = unmatched_values(load_role(entry.role_id, folders), corpus, facts)
        statuses.append(
            RoleStatus(
                role_id=entry.role_id,
                path=entry.path,
                problem=entry.problem,
                unmatched=[f"{finding.place}: {finding.message}" for finding in unmatched],
            )
        )
    return statuses


def unmatched_values(
    resolved: ResolvedOverlay, corpus: Corpus, facts: CorpusFacts
) -> list[LintProblem]:
    """The rules and words of an overlay that match nothing in a corpus.

    What it inherits from an overlay that comes with rolebundle is written for any corpus.
    """
    unmatched = [
        *unmatched_rules(resolved.overlay, facts),
        *unmatched_words(resolved.overlay.vocabulary, corpus),
    ]
    if is_shipped(resolved.path):
        return unmatched
    values = resolved.overlay.model_dump(exclude={"notes"})
    places = tuple(
        start
        for keys in _key_paths(values, ())
        if (layer := _layer_of(keys, resolved.layers)) and is_shipped(layer.path)
        for start in (f"{dotted(keys)}.", f"{dotted(keys)}[")
    )
    return [finding for finding in unmatched if not f"{finding.place}.".startswith(places)]


def _key_paths(value: object, keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The keys of an object and of the objects in it that have no keys of their own."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _key_paths(inner, (*keys, key))
    else:
        yield keys


def _layer_of(keys: Sequence[str], layers: Sequence[Layer]) -> Layer | None:
    """The file that gives the value of a key, or ``None`` if it is the default."""
    for layer in layers[:1] if keys[0] in OWN_KEYS else layers:
        value: object = layer.values
        for key in keys:
            value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
            if value is None:
                return None  # It removes what the files that it extends give.
        if value is not _MISSING:
            return layer
    return None


def corpus_facts(documents: Iterable[DocumentKind]) -> CorpusFacts:
    """What rules can match among these documents."""
    kinds = list(documents)
    subjects = tuple(dict.fromkeys(rule_subject(kind, kind.path) for kind in kinds))
    names = {
        "sources": sorted({kind.source_id for kind in kinds}),
        "document_types": sorted({kind.document_type for kind in kinds}),
        "domains": sorted({kind.domain for kind in kinds}),
        "trust_tiers": sorted({kind.trust_tier for kind in kinds}),
        "folders": sorted(
            {
                f"{'/'.join(parts[:depth])}/**"
                for parts in {tuple(kind.path.split("/")[:-1]) for kind in kinds}
                for depth in range(1, len(parts) + 1)
            }
        )[:_MAX_COMPARED],
    }
    return CorpusFacts(subjects, names)


def _rules(overlay: Overlay, *lists: str) -> Iterator[tuple[str, SourceRule]]:
    """The rules of some lists of a source policy, each with its place."""
    for name in lists:
        for index, rule in enumerate(getattr(overlay.source_policy, name)):
            yield f"source_policy.{name}[{index}]", rule


def _phrases(words: Vocabulary) -> dict[str, list[str]]:
    """The lists of a vocabulary, in the order of the format."""
    return {
        "preferred_terms": words.preferred_terms,
        **{f"synonyms.{term}": phrases for term, phrases in words.synonyms.items()},
        "boost_phrases": words.boost_phrases,
        "suppress_phrases": words.suppress_phrases,
    }


def _name(overlay: Overlay, path: Path, folders: Sequence[Path]) -> Iterator[LintProblem]:
    expected = f"{overlay.role_id}.json"
    if path.name == expected:
        return
    # In an overlay folder the file would be looked up by its role and then refused.
    problem = lint_error if found_by_name(path, folders) else lint_warning
    message = f"the file of this role must be named {expected}, not {path.name}"
    yield problem("role_id", "overlay_name_mismatch", message)


def _vocabulary(words: Vocabulary) -> Iterator[LintProblem]:
    lists = _phrases(words)
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
    for rules in (policy.preferred_sources, policy.allowed_sources):
        name = "preferred_sources" if rules is policy.preferred_sources else "allowed_sources"
        for index, (place, rule) in enumerate(_rules(overlay, name)):
            # A forbidden rule that matches less than this one is an exception, not an error.
            hiding = _covering(policy.forbidden_sources, rule)
            if hiding is not None:
                condition = policy.forbidden_sources[hiding].condition
                message = (
                    f"all that {rule.condition!r} matches is forbidden by "
                    f"source_policy.forbidden_sources[{hiding}] ({condition!r})"
                )
                yield lint_error(place, "forbidden_hides_rule", message)
            shadow = _covering(rules[:index], rule)
            if shadow is not None:
                message = (
                    f"has no effect: number {shadow} (counted from 0), "
                    f"{rules[shadow].condition!r}, matches all that {rule.condition!r} matches"
                )
                yield lint_warning(place, "shadowed_rule", message)
    for place, rule in _rules(overlay, "preferred_sources"):
        if rule.boost is not None and rule.boost < 1:
            message = f"a preferred source with the boost {rule.boost:g} ranks lower, not higher"
            yield lint_warning(f"{place}.boost", "demoting_boost", message)
    for place, rule in _rules(overlay, "allowed_sources", "forbidden_sources"):
        if rule.boost is not None:
            message = "has no effect: only preferred sources have a boost"
            yield lint_warning(f"{place}.boost", "no_effect", message)


def _numbers(resolved: ResolvedOverlay) -> Iterator[LintProblem]:
    policy = resolved.overlay.retrieval_policy
    if not resolved.overlay.mission.strip():
        message = "is empty, so agents cannot tell what the role is for"
        yield lint_warning("mission", "empty_mission", message)
    if policy.stale_penalty >= 1 and policy.freshness_max_age_days is None:
        message = "1 rejects stale documents, but without freshness_max_age_days none is stale"
        yield lint_warning("retrieval_policy.stale_penalty", "no_effect", message)
    default = RetrievalPolicy().max_chunks_per_source
    if policy.max_chunks_per_source != default and not policy.require_source_diversity:
        message = "has no effect while require_source_diversity is false"
        yield lint_warning("retrieval_policy.max_chunks_per_source", "no_effect", message)
    if resolved.rescaled:
        weights_text = ", ".join(f"{name} {getattr(policy, name):g}" for name in resolved.rescaled)
        message = f"what the given weights leave of 1 is shared: {weights_text}"
        yield LintProblem(
            level="note", place="retrieval_policy", code="rescaled_weights", message=message
        )


def unmatched_rules(overlay: Overlay, facts: CorpusFacts) -> Iterator[LintProblem]:
    """The rules and boosts that match no document of a corpus."""
    policy, names = overlay.source_policy, facts.names
    # A pattern is searched for in all three names. A boost applies to one name, spelled exactly.
    all_names = {*names["sources"], *names["document_types"], *names["domains"]}
    for place, rule in _rules(overlay, *_LISTS):
        if any(rule_matches(rule, subject) for subject in facts.subjects):
            continue
        if rule.pattern is None:
            glob = rule.path or ""
            yield _unmatched(f"{place}.path", "file with the path", glob, names["folders"])
        else:
            yield _unmatched(place, "source, type or domain", rule.pattern, all_names)
    exact: tuple[tuple[str, str, Collection[str]], ...] = (
        ("trust_tier_boosts", "document with the trust tier", names["trust_tiers"]),
        ("document_type_boosts", "document of the type", names["document_types"]),
        ("domain_boosts", "document of the domain", names["domains"]),
    )
    for name, description, present in exact:
        for key in getattr(policy, name):
            if key not in present:
                yield _unmatched(f"source_policy.{name}.{key}", description, key, present)


def _unmatched(place: str, description: str, name: str, present: Collection[str]) -> LintProblem:
    guess = did_you_mean(name, sorted(present)[:_MAX_COMPARED])
    message = f"matches nothing in this corpus: it has no {description} {name!r}{guess}"
    return lint_warning(place, "never_matches", message)


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
    places = [
        (f"vocabulary.{name}[{index}]", phrase)
        for name, phrases in _phrases(words).items()
        for index, phrase in enumerate(phrases)
    ]
    # The door of numpy.
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


def excluded_rules(overlay: Overlay, facts: CorpusFacts) -> Iterator[LintProblem]:
    """The preferred and allowed rules whose matches in a corpus are excluded by others."""
    subjects, excluded_subjects = facts.subjects, _excluded(overlay, facts)
    if subjects and excluded_subjects.issuperset(subjects):
        message = "every document of this corpus is forbidden, or is not among the allowed"
        yield lint_error("source_policy", "forbids_everything", message)
    for place, rule in _rules(overlay, "preferred_sources", "allowed_sources"):
        if _covering(overlay.source_policy.forbidden_sources, rule) is not None:
            continue  # Reported already, without the corpus.
        matched = facts.matched(rule)
        excluded = [s for s in subjects if s in matched and s in excluded_subjects]
        if not excluded:
            continue
        names = dict.fromkeys(
            " / ".join(subject.names) if rule.path is None else subject.paths[0]
            for subject in excluded
        )
        shown = first_of(list(names), _MAX_SHOWN_DOCUMENTS)
        where = f"of {rule.condition!r} in this corpus"
        if len(excluded) == len(matched):
            message = f"every match {where} is excluded: {shown}"
            yield lint_error(place, "forbidden_hides_rule", message)
        else:
            message = f"some matches {where} are excluded: {shown}"
            yield lint_warning(place, "forbidden_overlaps_rule", message)


def _excluded(overlay: Overlay, facts: CorpusFacts) -> frozenset[RuleSubject]:
    """The subjects that are forbidden, or are not among the allowed."""
    policy = overlay.source_policy
    excluded = frozenset[RuleSubject]().union(*map(facts.matched, policy.forbidden_sources))
    if not policy.allowed_sources:
        return excluded
    allowed = frozenset[RuleSubject]().union(*map(facts.matched, policy.allowed_sources))
    return excluded | (frozenset(facts.subjects) - allowed)


def _covering(rules: Iterable[SourceRule], rule: SourceRule) -> int | None:
    """The index of the first rule that matches everything that ``rule`` matches."""
    return next((index for index, covering in enumerate(rules) if _covers(covering, rule)), None)


def _covers(covering: SourceRule, rule: SourceRule) -> bool:
    if rule.pattern is not None and covering.pattern is not None:
        # A name that contains the rule's pattern also contains any shorter pattern inside it.
        return covering.pattern.casefold() in rule.pattern.casefold()
    if rule.path is not None and covering.path is not None:
        return rule.path == covering.path or (
            covering.path.endswith("**") and rule.path.startswith(covering.path.removesuffix("**"))
        )
    return False


def lint_policy(
    policy: Policy, corpus: Corpus | None = None, roles: Collection[str] | None = None
) -> list[LintProblem]:
    """The findings for a policy, and for its effect on a corpus if one is given.

    Args:
        policy: the policy.
        corpus: the corpus.
        roles: the roles that have an overlay; ``None`` if they are not known.
    """
    findings = [*_lint_rules(policy), *_lint_roles(policy, roles)]
    if corpus is not None:
        documents = access_attributes(corpus)
        for agent, rule in policy.agents.items():
            findings += _lint_against(agent, rule, documents)
    return findings


def lint_active_policy(corpus: Corpus, roles: Collection[str] | None = None) -> list[LintProblem]:
    """The findings for the policy of a corpus."""
    stored = records.load_policy(corpus)
    if stored is None:
        message = "no policy was set: everyone sees every document, with or without an agent id"
        return [lint_warning("", "no_policy", message)]
    problem = policy_problem(stored)
    try:
        policy = parse_policy(stored.content, stored.format, stored.location or "the policy")
    except RolebundleError as error:
        return [lint_error("", error.code, f"everyone is denied: {error.message}")]
    findings = lint_policy(policy, corpus, roles)
    if problem:
        message = f"everyone is denied: {problem}"
        findings.insert(0, lint_error("", "policy_doubtful", message))
    return findings


def _lint_rules(policy: Policy) -> Iterator[LintProblem]:
    if not policy.agents:
        yield lint_warning("", "no_agents", "names no agent: everyone is denied")
    for agent, rule in policy.agents.items():
        if rule.access_level == "denied":
            message = "has the access level denied: it sees nothing"
            yield lint_warning(agent, "denied_agent", message)
        elif not rule.scopes:
            message = "is empty, which means EVERY scope, including later ones"
            yield lint_warning(f"{agent}.scopes", "all_scopes", message)
        if rule.access_level == "denied" and rule.may_write:
            message = f"allows {', '.join(rule.may_write)}, but the agent sees nothing"
            yield lint_warning(f"{agent}.may_write", "useless_write", message)
        elif rule.may_write:
            message = f"allows {', '.join(rule.may_write)}: this changes what other agents read"
            yield lint_warning(f"{agent}.may_write", "agent_writes", message)
    for message in loosened_values(policy.trust):
        yield lint_warning("trust", "trust_loosened", message)


def _lint_roles(policy: Policy, roles: Collection[str] | None) -> Iterator[LintProblem]:
    for agent, rule in policy.agents.items():
        for role in rule.roles or ():
            if roles is not None and role not in roles:
                message = f"{role!r} has no overlay; roles: {', '.join(sorted(roles)) or 'none'}"
                yield lint_warning(f"{agent}.roles", "unknown_role", message)
        if rule.roles and not rule.role_required:
            message = "is false: without a role, no overlay forbids it any source"
            yield lint_warning(f"{agent}.role_required", "role_optional", message)


def _lint_against(
    agent: str, rule: AgentRule, documents: Sequence[AccessAttributes]
) -> Iterator[LintProblem]:
    scopes = {document.scope for document in documents}
    for scope in rule.scopes:
        if scope not in scopes:
            known = ", ".join(sorted(scopes)) or "none"
            message = f"no document has the scope {scope!r}; in the corpus: {known}"
            yield lint_warning(f"{agent}.scopes", "unknown_scope", message)
    in_scope = [
        document for document in documents if not rule.scopes or document.scope in rule.scopes
    ]
    rank = level_rank(rule.access_level)
    has_visible = any(rank >= level_rank(document.sensitivity) for document in in_scope)
    if in_scope and not has_visible and rule.access_level != "denied":
        reachable = counted(len(in_scope), "document")
        message = f"{rule.access_level} reaches none of the {reachable} in its scopes"
        yield lint_warning(f"{agent}.access_level", "level_too_low", message)
    for pattern in rule.deny_patterns:
        if not any(denies(pattern, document.path, document.location) for document in documents):
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
        stored = records.load_policy(corpus)
        visible = compartments.visible_compartments(corpus)
    total = sum(compartment.documents for compartment in visible)
    policy, problem = Policy(), ""
    if stored is not None:
        problem = policy_problem(stored)
        try:
            policy = parse_policy(stored.content, stored.format, "the policy")
        except RolebundleError as error:
            problem = error.message
    if stored is not None and agent is not None and agent not in policy.agents:
        raise UsageError(
            "unknown_agent",
            f"{agent}: the policy does not name this agent, so it sees nothing",
            f"agents: {', '.join(policy.agents) or 'none'}",
        )
    return PolicySummary(
        policy=stored is not None,
        location=stored.location if stored else "",
        set_at=stored.set_at if stored else "",
        doubt=problem,
        documents=total,
        agents=[
            AgentAccess(
                agent=name,
                documents=0
                if problem
                else sum(
                    compartment.documents for compartment in visible if may_see(rule, compartment)
                ),
                **rule.model_dump(mode="json", exclude={"facts_per_day"}),
            )
            for name, rule in policy.agents.items()
            if agent in (None, name)
        ],
    )
