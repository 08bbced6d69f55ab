"""The bundle: the reference's parse, ours round-trip, and one is pinned whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests

GOLDEN = Path(__file__).parent.parent / "golden" / "bundle.json"


class TestTheReferences:
    @pytest.mark.parametrize("name", ["bundle-minimal", "bundle-weak"])
    def test_its_bundles_parse(self, shared: Path, name: str) -> None:
        text = (shared / "compat" / "knowledge-core" / f"{name}.json").read_text("utf-8")
        bundle = RetrievalBundle.model_validate_json(text)
        # Nothing of it is lost, and ours is only added.
        ours = bundle.model_dump(exclude_none=True)
        assert _without(json.loads(text), ours) == {}

    def test_what_reads_its_bundles_finds_its_fields_in_ours(self, shared: Path) -> None:
        folder = shared / "compat" / "knowledge-core"
        theirs = json.loads((folder / "bundle-minimal.json").read_text("utf-8"))
        ours = json.loads(GOLDEN.read_text("utf-8"))
        assert _missing_keys(theirs, ours) == []


def _without(part: Any, complete: Any) -> dict[str, Any]:
    """What of ``part`` does not stand in ``complete`` as it is."""
    return {
        name: value for name, value in part.items() if not _stands_in(value, complete.get(name))
    }


def _stands_in(part: Any, complete: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(complete, dict) and all(
            _stands_in(v, complete.get(k)) for k, v in part.items()
        )
    if isinstance(part, list):
        return len(part) == len(complete) and all(map(_stands_in, part, complete))
    return part is None or part == complete


# Counts by name differ from corpus to corpus, and these fields may be left out by either.
_FREE = {"source_breakdown"}
_OPTIONAL = {"applicable_roles", "excluded_roles", "packet_context_summary", "version"}


def _missing_keys(theirs: Any, ours: Any, place: str = "") -> list[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        missing = [f"{place}.{key}" for key in theirs if key not in ours and key not in _OPTIONAL]
        for key in theirs.keys() & ours.keys() - _FREE:
            missing += _missing_keys(theirs[key], ours[key], f"{place}.{key}")
        return missing
    if isinstance(theirs, list) and isinstance(ours, list) and theirs and ours:
        return _missing_keys(theirs[0], ours[0], f"{place}[]")
    return []


@few_examples
@given(documents=corpora(), role=overlays(), fields=requests())
def test_every_bundle_goes_to_json_and_back(
    documents: list[StoredDocument], role: Overlay, fields: dict[str, Any]
) -> None:
    provider = HashingProvider()
    with scratch_folder() as folder, built(folder, documents, provider, waiting=1) as corpus:
        bundle = ask(corpus, role, provider, **fields)
    back = RetrievalBundle.model_validate_json(bundle.to_json())
    assert back == bundle
    assert json.loads(back.to_json()) == json.loads(bundle.to_json())
    assert back.to_json(indent=2).encode("utf-8")


def golden_bundle(folder: Path) -> str:
    """A bundle with something of everything: each code, most warnings, both lanes."""
    day = "2026-10-01T00:00:00Z"
    plan = "Rotate the signing token every thirty days and audit each rotation."
    documents = [
        document(
            "policy",
            [plan, "A lost token is revoked at once."],
            source_id="security-policy", title="Token policy", document_type="policy",
            domain="security", trust_tier="authoritative", updated_at=day,
            tags=("token", "rotation"), applicable_roles=("reviewer",),
        ),
        document("policy-2019", ["Rotate the token each year."], source_id="security-policy",
                 trust_tier="authoritative", updated_at="2019-01-01T00:00:00Z"),
        document("copy", [plan], source_id="wiki", updated_at=day),
        document("newer", ["Rotation of a token is audited by hand."], source_id="wiki",
                 trust_tier="preferred", updated_at=day, supersedes=("older.md",)),
        document("older", ["Rotation of a token is not audited."], source_id="wiki",
                 trust_tier="preferred", updated_at=day),
        document("advert", ["The best token rotation on the market."], source_id="marketing"),
        document("other-team", ["Our token rotation."], excluded_roles=("reviewer",)),
        document("far", ["Bread and butter."], updated_at=day),
        document("forwarded", ["Mail: audit the token rotation."], origin="untrusted"),
        document("shared-drive", ["Their token rotation."], origin="external"),
        document("notes", ["Token notes, первая ротация, 数据.", "A token, a token, a token."]),
    ]  # fmt: skip
    role = overlay(
        mission="Find weak spots in how secrets are kept.",
        vocabulary={
            "boost_phrases": ["signing token", "key ceremony"],
            "preferred_terms": ["token"],
            "synonyms": {"rotation": ["renewal", "replacement", "never used"]},
            "suppress_phrases": ["the best"],
        },
        source_policy={
            "preferred_sources": [{"pattern": "security", "reason": "ours", "boost": 1.8}],
            "forbidden_sources": [{"pattern": "marketing", "reason": "not evidence"}],
            "trust_tier_boosts": {"authoritative": 2.0, "general": 0.8},
        },
        retrieval_policy={
            "max_selected_chunks": 2,
            "freshness_max_age_days": 365.0,
            "stale_penalty": 1.0,
            "require_source_diversity": True,
            "max_chunks_per_source": 1,
            "min_score": 0.2,
        },
    )
    provider = HashingProvider()
    with built(folder, documents, provider, waiting=1) as corpus:
        bundle = ask(corpus, role, provider, task="audit the token rotation", action="execute")
    text = bundle.to_json(indent=2)
    text = re.sub(r'("(?:latency|lexical|semantic)_ms"): [^,\n]+', r"\1: 0", text)
    text = re.sub(r'("corpus_id"): "[^"]+"', r'\1: "…"', text)
    return re.sub(r'("file"): "[^"]+"', r'\1: "corpus.db"', text) + "\n"


def test_a_whole_bundle_is_as_it_was(tmp_path: Path) -> None:
    bundle_json = golden_bundle(tmp_path)
    if os.environ.get("ROLEBUNDLE_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(bundle_json, encoding="utf-8")
    assert bundle_json == GOLDEN.read_text("utf-8"), (
        "if the change is meant: ROLEBUNDLE_UPDATE_GOLDEN=1, and read the diff"
    )


def test_the_golden_bundle_shows_every_rejection_code() -> None:
    rejected_summary = json.loads(GOLDEN.read_text("utf-8"))["rejected_summary"]
    assert [*rejected_summary] == [
        "forbidden_source", "role_mismatch", "taint_blocked", "stale", "requires_approval",
        "low_score", "duplicate", "conflict_downrank", "budget_cut",
    ]  # fmt: skip
