"""The corpus page: its sources, indexes, quarantine and documents, and what a check finds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.contracts.doctor import DoctorReport
from rolebundle.contracts.lookup import Listing
from rolebundle.contracts.status import CorpusStatus
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import Site
from rolebundle.storage.content.quarantine import Flagged

MAX_ROWS = 100


class Documents(NamedTuple):
    """The list of documents on the page.

    Attributes:
        listing: one page of them; ``None`` if ``problem`` says why there is none.
        prefix: what they were narrowed to; empty for all.
        after: the document that the page before ended with; empty for the first page.
    """

    listing: Listing | None
    prefix: str = ""
    after: str = ""
    problem: str = ""


class OwnerFacts(NamedTuple):
    """What only the owner sees.

    Attributes:
        flagged: the first documents in quarantine.
        quarantined: how many there are.
        report: the checks of the corpus; ``None`` if it was not checked.
    """

    flagged: Sequence[Flagged]
    quarantined: int
    report: DoctorReport | None


def corpus_page(
    status: CorpusStatus, documents: Documents, site: Site, owner: OwnerFacts | None
) -> str:
    """The page of a corpus.

    Args:
        status: what it contains.
        documents: one page of its documents.
        site: the application around the page.
        owner: what only the owner sees; ``None`` for an agent.
    """
    return render(
        "corpus",
        site,
        status=status,
        documents=documents,
        sources=sorted(status.sources, key=lambda source: (-source.documents, source.source_id)),
        owner=owner,
        flagged=[(name, json.loads(name.scanned.kinds)) for name in owner.flagged] if owner else [],
        max_rows=MAX_ROWS,
    )
