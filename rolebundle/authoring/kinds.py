"""What kind of document a file is, by its format, its name, its folders and its headings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of document.

    Attributes:
        document_type: its name.
        domain: the field that its documents belong to; empty if that is open.
        readers: formats of which every document is of this kind.
        names: matches the name of a file of this kind, without its suffix, in lower case.
        folders: names of folders, in lower case, whose documents are of this kind.
        headings: words of which the headings of such a document have some.
        least: how many of these words tell the kind; 0 if headings do not tell it.
        globs: globs of names that tell the kind in every folder.
    """

    document_type: str
    domain: str = ""
    readers: frozenset[str] = frozenset()
    names: str = ""
    folders: frozenset[str] = frozenset()
    headings: frozenset[str] = frozenset()
    least: int = 0
    globs: tuple[str, ...] = ()


class KindFound(NamedTuple):
    """The kind of one document. ``by`` is what tells it, ``evidence`` a sentence for a person."""

    kind: Kind
    by: str
    evidence: str


def _set(words: str) -> frozenset[str]:
    return frozenset(_folded(word) for word in words.split())


def _folded(name: str) -> str:
    """The words of a folder's name or of a heading, in lower case, without numbers before them."""
    words = re.sub(r"[\W_]+", " ", name.lower()).split()
    while words and words[0].isdigit():
        words.pop(0)
    return " ".join(words)


# The first one that matches counts, so the special ones come first. The names are those that
# templates and collections of such documents use.
KINDS: tuple[Kind, ...] = (
    Kind(
        "changelog",
        names=r"change[-_]?(log|s)|history|news|release[-_ ]?notes?|whatsnew|versions"
        r"|what'?s[-_ ]new",
        folders=_set(
            "changelog changelogs changes newsfragments releases"
            " release-notes release_notes whatsnew"
        ),
        headings=_set("added changed deprecated removed fixed unreleased bugfixes"),
        least=3,
    ),
    Kind("readme", names=r"(.*[-_])?read[-_]?me([-_.].*)?"),
    Kind(
        "license",
        names=r"licen[cs]es?([-_.].*)?|copying([-_.].*)?|copyright|notice"
        r"|third[-_]party.*",
    ),
    Kind("code-of-conduct", names=r"code[-_]of[-_]conduct"),
    Kind(
        "contributing",
        names=r"contributing|developing|hacking|maintainers?"
        r"|governance",
    ),
    Kind("security-policy", "security", names=r"security([-_]policy)?"),
    Kind(
        "threat-model",
        "security",
        names=r".*threat[-_ ]model.*",
        folders=_set("threat-models threat_models threatmodels"),
        headings=_set(
            "threats threat assets attacker attackers"
            " mitigations abuse stride trust_boundaries attack"
        ),
        least=2,
    ),
    Kind(
        "postmortem",
        "operations",
        names=r".*(post[-_ ]?mortem|incident[-_ ]report|retrospective"
        r"[-_ ]incident).*",
        folders=_set("postmortems postmortem post-mortems incidents incident-reports"),
        headings=_set(
            "timeline root_cause impact detection contributing_factors"
            " action_items resolution lessons_learned what_went_wrong what_happened"
        ),
        least=3,
    ),
    Kind(
        "runbook",
        "operations",
        names=r".*(run[-_ ]?book|play[-_ ]?book).*",
        folders=_set("runbooks runbook playbooks playbook on-call oncall"),
        headings=_set(
            "symptoms diagnosis mitigation rollback escalation alert alerts recovery"
            " prerequisites verification"
        ),
        least=3,
    ),
    Kind(
        "troubleshooting",
        "operations",
        names=r".*(trouble[-_ ]?shooting|known[-_ ]issues"
        r"|common[-_ ](errors|problems|issues)|debugging).*",
    ),
    Kind(
        "adr",
        "engineering",
        names=r"adr[-_ ]?\d+.*",
        folders=_set("adr adrs decisions decision-records architecture-decisions"),
        headings=_set(
            "context decision consequences"
            " status decision_drivers considered_options alternatives_considered"
        ),
        least=3,
    ),
    Kind(
        "design-doc",
        "engineering",
        names=r".*(design[-_ ]doc|architecture|rfc[-_ ]?\d+"
        r"|proposal).*",
        folders=_set("rfcs rfc design designs design-docs proposals peps architecture"),
        headings=_set(
            "goals non-goals motivation proposal alternatives"
            " drawbacks unresolved_questions prior_art detailed_design"
        ),
        least=3,
    ),
    Kind("roadmap", "product", names=r".*road[-_ ]?map.*|milestones?"),
    Kind(
        "requirements",
        "product",
        names=r".*(requirements?|user[-_ ]stor(y|ies)|prd|spec"
        r"|specification)([-_ ].*)?",
        folders=_set("requirements specs prds"),
        headings=_set("user_stories acceptance_criteria requirements out_of_scope success_metrics"),
        least=2,
    ),
    Kind(
        "meeting-notes",
        names=r".*(meeting|minutes|stand[-_ ]?up|retro|1[-_]?on[-_]?1|one[-_]on"
        r"[-_]one|weekly[-_ ]sync|kick[-_ ]?off|call[-_ ]notes).*",
        folders=_set("meetings minutes meeting-notes meeting_notes standups retros"),
        headings=_set(
            "attendees agenda action_items participants present minutes apologies next_meeting"
        ),
        least=2,
    ),
    Kind(
        "journal",
        names=r"\d{4}-\d{2}-\d{2}|\d{4}-w\d{2}",
        folders=_set("journal daily dailies diary logbook journals daily-notes"),
    ),
    Kind("faq", names=r".*faqs?|.*frequently[-_ ]asked.*"),
    Kind("glossary", names=r".*(glossary|terminology|definitions)"),
    Kind("style-guide", "documentation", names=r".*(style[-_ ]?guide|writing[-_ ]guide).*"),
    Kind(
        "tutorial",
        "documentation",
        names=r".*(tutorial|getting[-_ ]?started|quick[-_ ]?start"
        r"|first[-_ ]steps|walk[-_ ]?through|introduction|intro|overview).*",
        folders=_set(
            "tutorials tutorial getting-started getting_started quickstart intro learn walkthroughs"
        ),
    ),
    Kind(
        "installation",
        "documentation",
        names=r"install(ing|ation)?([-_.].*)?|set[-_ ]?up"
        r"([-_ ]guide)?",
    ),
    Kind(
        "migration-guide",
        "documentation",
        names=r".*(migrat(ing|ion)|upgrad(e|ing)"
        r"|porting).*",
    ),
    Kind(
        "api-reference",
        "documentation",
        # In the middle of a name, as in `orders-api-queue-is-full`, it is about one program.
        names=r"(api|reference)([-_.].*)?"
        r"|.*[-_.](api|reference)([-_.]?(docs?|v?\d+))?(\..*)?",
        folders=_set("api apidocs api-reference reference refs ref api_reference apidoc"),
    ),
    Kind(
        "guide",
        "documentation",
        names=r".*(how[-_ ]?to|guide|cook[-_ ]?book|best[-_ ]"
        r"practices|recipes).*",
        folders=_set(
            "guides guide howto how-to howtos cookbook recipes"
            " topics user_guide user-guide manual handbook"
        ),
    ),
    Kind("man-page", "documentation", readers=frozenset({"man"})),
    Kind("mail", readers=frozenset({"eml", "mbox"})),
    Kind("transcript", readers=frozenset({"subtitles"})),
    Kind("slides", readers=frozenset({"pptx"})),
    Kind("spreadsheet", readers=frozenset({"xlsx"})),
    Kind("notebook", readers=frozenset({"ipynb"})),
    Kind("data", readers=frozenset({"json"})),
    Kind(
        "test-code",
        "engineering",
        names=r"(test_.*|.*[-_.](test|spec)|conftest)",
        readers=frozenset({"source"}),
        folders=_set("test tests testing spec specs"),
        globs=("**/test_*", "**/*_test.*", "**/*.test.*", "**/*.spec.*", "**/conftest.py"),
    ),
    Kind("source-code", "engineering", readers=frozenset({"source"})),
)

DOMAINS: dict[str, frozenset[str]] = {
    "security": _set("security infosec appsec"),
    "operations": _set("operations ops sre oncall on-call infrastructure infra incidents"),
    "engineering": _set("engineering dev development src lib architecture"),
    "product": _set("product products roadmap requirements"),
    "documentation": _set("docs doc documentation manual handbook guides"),
    "support": _set("support helpdesk tickets customer-support"),
    "marketing": _set("marketing campaigns launch press"),
    "sales": _set("sales crm"),
    "legal": _set("legal contracts compliance licenses"),
    "finance": _set("finance accounting budget invoices"),
    "people": _set("hr people hiring onboarding recruiting"),
    "research": _set("research papers studies experiments"),
    "design": _set("design ux ui"),
}
"""Domain → names of folders, in lower case, that tell it."""

_LEFT_BEHIND = (
    Kind(
        "archived",
        folders=_set(
            "archive archived archives old deprecated legacy attic obsolete outdated trash"
        ),
    ),
    Kind("draft", folders=_set("draft drafts wip scratch sandbox tmp temp")),
)
"""What a folder says of everything below it, whatever else it is."""

_TEXT_READERS = frozenset("markdown text rst org html docx opendocument pdf".split())
_LEADING_NUMBER = re.compile(r"^\d{1,4}[-_. ]+(?=\D)")
_REQUIREMENTS_OF_PIP = re.compile(
    r"(?:(?:dev|docs?|tests?)[-_])?requirements(?:[-_](?:base|ci|dev|docs?|lint|prod|tests?))?\.(?:txt|in)"
).fullmatch
_MAX_NAMED_HEADINGS = 4


def kind_of_document(path: str, reader: str, headings: Sequence[str]) -> KindFound | None:
    """The kind of a document; ``None`` if nothing tells it.

    The format counts before the name of the file, that before the folders, the innermost first, and
    those before the headings. Code is known by its format, and tests by their names or folders.

    Args:
        path: relative to the folder that is looked at.
        reader: the name of the reader that reads it.
        headings: of the document, in order.
    """
    *folders, file_name = path.lower().split("/")
    for kind in _LEFT_BEHIND:
        for folder in folders:
            if _folded(folder) in kind.folders:
                return KindFound(kind, "folder", f"the folder {folder}")
    if reader == "source":
        return _kind_of_code(_plain(file_name), folders)
    for kind in KINDS:
        if reader in kind.readers:
            return KindFound(kind, "format", f"read as {reader}")
    if reader not in _TEXT_READERS:
        return None
    named = _kind_by_name(file_name)
    if named is not None:
        return KindFound(named, "name", f"the name of {path.rpartition('/')[2]}")
    for folder in reversed(folders):
        for kind in _TEXT_KINDS:
            if _folded(folder) in kind.folders:
                return KindFound(kind, "folder", f"the folder {folder}")
    return _kind_by_headings(headings)


def domain_of_folder(folder: str) -> str:
    """The domain that the name of a folder tells; empty if it tells none."""
    name = _folded(folder)
    return next((domain for domain, names in DOMAINS.items() if name in names), "")


def domain_of_type(document_type: str) -> str:
    """The domain that documents of a type belong to; empty if that is open."""
    return next((kind.domain for kind in KINDS if kind.document_type == document_type), "")


def _kind_of_code(name: str, folders: Sequence[str]) -> KindFound:
    tests, code = KINDS[-2:]
    if re.fullmatch(tests.names, name):
        return KindFound(tests, "name", f"the name {name}")
    inside = next((folder for folder in reversed(folders) if _folded(folder) in tests.folders), "")
    if inside:
        return KindFound(tests, "folder", f"the folder {inside}")
    return KindFound(code, "format", "read as source")


def _kind_by_name(file_name: str) -> Kind | None:
    if _REQUIREMENTS_OF_PIP(file_name):
        return KINDS[-1]
    if file_name.endswith(".feature"):
        return KINDS[-2]
    name = _plain(file_name)
    kinds = (kind for kind in _TEXT_KINDS if kind.names and re.fullmatch(kind.names, name))
    return next(kinds, None)


def _plain(file_name: str) -> str:
    """The name of a file without its suffix and a number before it."""
    return _LEADING_NUMBER.sub("", _without_suffix(file_name))


def _kind_by_headings(headings: Sequence[str]) -> KindFound | None:
    own = [_folded(heading) for heading in headings]
    best: tuple[int, Kind, list[str]] | None = None
    for kind in _TEXT_KINDS:
        if not kind.least:
            continue
        present = [word for word in sorted(kind.headings) if _is_heading(word, own)]
        if len(present) >= kind.least and (best is None or len(present) > best[0]):
            best = len(present), kind, present
    if best is None:
        return None
    named = ", ".join(best[2][:_MAX_NAMED_HEADINGS])
    return KindFound(best[1], "headings", f"headings: {named}")


def _is_heading(word: str, headings: Iterable[str]) -> bool:
    return any(heading == word or heading.startswith(f"{word} ") for heading in headings)


def _without_suffix(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and stem and len(suffix) <= 5 and suffix.isalnum() else name


_TEXT_KINDS = tuple(kind for kind in KINDS if not kind.readers)

CODE = frozenset({"source-code", "test-code", "data"})
"""The types of documents that are no prose."""
