"""What a role's name says of its work: a shipped role, and words of its field. Pure.

The words belong to the field in any organization. They find the passages of a folder from which its
own terms are taken, and those that the folder has become terms of the overlay themselves.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rolebundle.text.words import stem


class Field(NamedTuple):
    """A field of work.

    Attributes:
        names: words in the name of a role of this field; two joined by ``+`` must both be in it. A
            word of every role, such as "writer", counts only if the name has no other word, or
            joined: a fiction writer does not write documentation.
        words: words of the field.
        types: the document types that are made for it, the most important first.
        base: the shipped role that a role of this field extends; empty if there is none.
    """

    names: str
    words: str
    types: tuple[str, ...] = ()
    base: str = ""


# The first one counts for the shipped role, so the special ones come first.
FIELDS: tuple[Field, ...] = (
    Field(
        "security sec appsec infosec privacy pentester threat vulnerability trust",
        "security vulnerability threat attack attacker authentication authorization permission"
        " token secret password encryption certificate injection sandbox privilege exploit"
        " advisory audit untrusted sensitive malicious",
        ("threat-model", "security-policy", "security-audit", "security-advisory"),
        "security-reviewer",
    ),
    Field(
        "release releaser releases upgrade upgrader migration migrator",
        "release changelog version deprecated deprecation breaking upgrade migration compatibility"
        " tag publish backport rollback milestone",
        ("changelog", "release-notes", "migration-guide", "roadmap"),
    ),
    Field(
        "newcomer onboarding beginner newbie student learner trainee intern starter novice"
        " apprentice new+user first+user",
        "introduction tutorial install installation quickstart overview basics beginner setup",
        ("tutorial", "readme", "installation", "guide", "contributing", "glossary", "faq"),
    ),
    Field(
        "oncall call incident incidents responder sre operations operator ops devops sysadmin"
        " system+administrator network+administrator admin infrastructure reliability platform"
        " support helpdesk firefighter",
        "incident outage alert error failure timeout restart rollback recovery backup monitoring"
        " deploy deployment crash troubleshooting log workaround escalation degraded",
        ("runbook", "postmortem", "troubleshooting", "installation", "migration-guide", "faq"),
        "incident-responder",
    ),
    Field(
        "test tester testing qa quality verifier",
        "test coverage regression fixture assertion failure edge bug reproduce flaky mock",
        ("test-plan", "contributing", "test-code", "troubleshooting"),
        "code-reviewer",
    ),
    Field(
        "performance perf optimizer speed scalability",
        "performance speed latency throughput memory benchmark cache profiling slow fast overhead"
        " optimization bottleneck",
        ("benchmark", "design-doc"),
    ),
    Field(
        "architect architecture designer",
        "architecture decision design trade-off component layer interface module dependency"
        " constraint alternative consequence",
        ("adr", "design-doc", "requirements"),
    ),
    Field(
        "api integrator integration client consumer embedder sdk",
        "api endpoint request response parameter argument usage client integration"
        " callback interface",
        ("api-reference", "tutorial", "guide", "readme", "migration-guide"),
    ),
    Field(
        "packager packaging distributor build builder maintainer+package",
        "dependency build package distribution install wheel release version compile platform",
        ("installation", "changelog", "contributing", "license"),
    ),
    Field(
        "legal compliance lawyer counsel licensing license licence auditor regulatory",
        "license copyright compliance contract privacy retention policy liability obligation"
        " attribution regulation consent",
        ("license", "security-policy", "requirements"),
    ),
    Field(
        "finance financial accountant accounting treasurer budget buyer purchaser bookkeeper",
        "budget cost invoice payment price expense funding salary tax quote refund spend",
    ),
    Field(
        "product pm strategist owner customer market",
        "roadmap customer user feature priority requirement feedback goal launch metric adoption"
        " proposal market",
        ("roadmap", "requirements", "design-doc", "changelog", "meeting-notes"),
        "product-manager",
    ),
    Field(
        "docs doc documentation writer author editor copywriter technical+writer technical+editor"
        " technical+author technical+communicator localizer translator",
        "documentation guide tutorial style reader terminology glossary page reference heading",
        ("style-guide", "readme", "tutorial", "guide", "glossary", "api-reference", "contributing"),
        "technical-writer",
    ),
    Field(
        "project planner scrum coordinator secretary organizer organiser chair lead+team"
        " program programme delivery event",
        "plan deadline milestone task action decision agenda meeting owner schedule status blocker"
        " follow-up due",
        ("meeting-notes", "roadmap", "requirements"),
    ),
    Field(
        "research researcher scientist analyst data statistician scholar historian",
        "study experiment result hypothesis method evidence dataset analysis measure finding paper"
        " metric sample",
        ("notebook", "report", "spreadsheet"),
    ),
    Field(
        "contributor maintainer developer software engineer programmer coder code reviewer review"
        " dev",
        "contributing review bug fix refactor test convention api change design function module"
        " patch commit",
        ("contributing", "adr", "design-doc", "changelog", "api-reference", "source-code"),
        "code-reviewer",
    ),
    Field(
        "teaching teacher tutor instructor lecturer professor educator trainer coach mentor",
        "course lecture lesson exercise homework explanation tutorial introduction student quiz"
        " overview basics intuition",
        ("tutorial", "guide", "slides", "glossary", "faq"),
    ),
    Field(
        "people hr recruiter hiring manager+people",
        "hiring interview candidate onboarding salary review feedback leave policy growth",
        ("meeting-notes",),
    ),
    Field(
        "community moderator list",
        "question answer reply thread announcement proposal objection agree volunteer",
        ("mail", "faq", "contributing"),
    ),
)

_GENERIC = frozenset(
    stem(word)
    for word in """
    a an the of for and in my our team person role agent bot head chief lead leader senior junior
    manager expert specialist guru buddy duty engineer officer staff member assistant reviewer
    review writer author editor responder owner administrator strategist
    """.split()
)


class RoleName(NamedTuple):
    """What the name of a role says.

    Attributes:
        own: its words, without those of every role, such as "manager".
        fields: the fields that it names, in the order of ``FIELDS``.
    """

    own: tuple[str, ...]
    fields: tuple[Field, ...]

    @property
    def base(self) -> str:
        """The shipped role that it may extend; empty if there is none."""
        return next((field.base for field in self.fields if field.base), "")

    @property
    def words(self) -> list[str]:
        """The words of its fields."""
        return list(dict.fromkeys(word for field in self.fields for word in field.words.split()))

    @property
    def types(self) -> list[str]:
        """The document types of its fields, the most important first."""
        return list(dict.fromkeys(name for field in self.fields for name in field.types))


def read_role_name(role_id: str) -> RoleName:
    """What the name of a role says of its field.

    If its words name several fields, only the one that comes first among ``FIELDS`` counts:
    "security-reviewer" is of the field of security and not of that of reviews.
    """
    parts = [part for part in re.split(r"[-._]+", role_id.lower()) if part]
    stems = [stem(part) for part in parts]
    if {"on", "call"} <= set(parts):
        stems.append("oncall")
    own = [part for part in parts if stem(part) not in _GENERIC] or parts
    special = {stem(part) for part in own}.union(stems[len(parts) :])
    fields = [field for field in FIELDS if _names(field, special, set(stems))]
    return RoleName(tuple(dict.fromkeys(own)), tuple(fields[:1]))


def label_of(role_id: str) -> str:
    """A role's name for people: "release-manager" → "Release Manager"."""
    return " ".join(part.capitalize() for part in re.split(r"[-._]+", role_id) if part)


def _names(field: Field, special: set[str], stems: set[str]) -> bool:
    """Whether a name of these words is of the field. ``special`` are not words of every role."""
    names = [{stem(part) for part in name.split("+")} for name in field.names.split()]
    return any(name <= (stems if len(name) > 1 else special) for name in names)
