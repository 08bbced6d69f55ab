"""Evidence kinds that a role requires, and passages that are for a bridge role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.interfaces.render import text
from rolebundle.retrieval.passage_text import packet
from rolebundle.storage.documents import StoredDocument
from support.corpora import ask, built, chunk, document, overlay


def bundle_for(folder: Path, role: dict[str, Any], *documents: StoredDocument) -> RetrievalBundle:
    with built(folder, documents) as corpus:
        return ask(corpus, overlay(**role), task="token", lexical_only=True)


def requiring(*kinds: str) -> dict[str, Any]:
    return {"synthesis_policy": {"required_evidence_kinds": [*kinds]}}


def missing(bundle: RetrievalBundle) -> list[str]:
    return [w.message for w in bundle.warnings if w.code == "EVIDENCE_KIND_MISSING"]


def with_headings(*headings: str) -> StoredDocument:
    plain = document("d", ["token"])
    return StoredDocument(plain.metadata, (chunk("d#0", "token", headings=headings),), None)


class TestEvidenceKinds:
    @pytest.mark.parametrize(
        "evidence",
        [
            document("d", ["token"], document_type="abuse-case"),
            document("d", ["token"], document_type="Abuse Cases"),
            document("d", ["token"], tags=("x", "abuse_case")),
            document("d", ["token"], attributes=(("evidence_kind", ("other", "abuse case")),)),
            with_headings("Abuse cases"),
            with_headings("Threats", "3. Known abuse cases (draft)", "T1"),
        ],
    )
    def test_documents_that_show_a_kind(self, tmp_path: Path, evidence: StoredDocument) -> None:
        bundle = bundle_for(tmp_path, requiring("finding", "abuse-case"), evidence)
        assert [chunk.evidence_kinds for chunk in bundle.selected] == [["abuse-case"]]
        assert missing(bundle) == ["no passage shows what the role requires: finding"]

    @pytest.mark.parametrize(
        "unrelated",
        [
            document("abuse-case", ["token abuse case"], title="Abuse case"),
            document("d", ["token"], document_type="abuse", tags=("case",)),
            document("d", ["token"], document_type="misabuse-case"),
            document("d", ["token"], tags=("case of abuse",)),
            document("d", ["token"], attributes=(("kind", ("abuse-case",)),)),
        ],
    )
    def test_documents_that_do_not_show_a_kind(
        self, tmp_path: Path, unrelated: StoredDocument
    ) -> None:
        bundle = bundle_for(tmp_path, requiring("abuse-case"), unrelated)
        assert [chunk.evidence_kinds for chunk in bundle.selected] == [None]
        assert len(missing(bundle)) == 1

    def test_every_text_names_what_is_missing(self, tmp_path: Path) -> None:
        bundle = bundle_for(
            tmp_path, requiring("proof\n## of\x1b[2J", " "), document("d", ["token"])
        )
        message = "no passage shows what the role requires: proof ## of [2J"
        assert missing(bundle) == [message]
        for form in (text(bundle), packet(bundle)):
            assert message in form
