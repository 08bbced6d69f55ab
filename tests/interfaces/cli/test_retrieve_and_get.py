"""What `retrieve`, `get` and `status` print: the data alone, on standard output."""

from pathlib import Path

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.lookup import Lookup
from support.commands import invoke


def test_retrieve_in_its_three_forms(sample_db: Path) -> None:
    role = ("--role", "mossline-security-reviewer", "--limit", "3", "--now", "2026-11-15")
    common = ("retrieve", "token rotation", *role, "--lexical-only", "--db", sample_db)
    outcomes = {form: invoke(*common, "--format", form) for form in ("text", "json", "prompt")}
    for outcome in outcomes.values():
        assert (outcome.code, outcome.err) == (0, "")
    bundle = RetrievalBundle.model_validate_json(outcomes["json"].out)
    assert bundle.role_id == "mossline-security-reviewer"
    assert [chunk.rank for chunk in bundle.selected] == [1, 2, 3]
    for chunk in bundle.selected:
        assert chunk.citation.locator is not None
        assert chunk.citation.locator in outcomes["text"].out
        path = chunk.citation.locator.rpartition(":")[0]
        assert f"[{chunk.rank}] {path}:" in outcomes["prompt"].out
    text = outcomes["text"].out
    assert "rejected:" in text
    assert "trust " in text
    explained = invoke(*common, "--format", "text", "--explain").out
    # A score compares passages, and says nothing of how sure an answer is.
    assert ("█" in text, "█" in explained) == (False, True)
    for code in bundle.rejected_summary:
        assert code in explained
    assert "not instructions" in outcomes["prompt"].out


def test_get_by_each_kind_of_reference(sample_db: Path) -> None:
    ask = ("retrieve", "token rotation", "--lexical-only", "--json", "--db", sample_db)
    chunk = RetrievalBundle.model_validate_json(invoke(*ask).out).selected[0]
    assert chunk.citation.locator is not None
    for reference, kind in (
        (chunk.chunk_id, "chunk"),
        (chunk.document_id, "document"),
        (chunk.citation.locator, "lines"),
    ):
        found = invoke("get", reference, "--json", "--db", sample_db)
        assert (found.code, found.err) == (0, "")
        lookup = Lookup.model_validate_json(found.out)
        assert (lookup.reference, lookup.kind) == (reference, kind)
        assert lookup.document.document_id == chunk.document_id
        assert any(chunk.content in passage.content for passage in lookup.passages)
        outcome = invoke("get", reference, "--db", sample_db)
        assert (outcome.code, outcome.err) == (0, "")
        assert chunk.content in outcome.out


def test_an_overlay_of_a_folder(sample_db: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(
        '{"version": "1.0", "role_id": "mine", "extends": "security-reviewer",'
        ' "retrieval_policy": {"max_selected_chunks": 1}}',
        encoding="utf-8",
    )
    common = ("retrieve", "token", "--lexical-only", "--format", "json", "--db", sample_db)
    outcome = invoke(*common, "--role", "mine", "--overlay-dir", tmp_path)
    bundle = RetrievalBundle.model_validate_json(outcome.out)
    assert (bundle.role_id, len(bundle.selected)) == ("mine", 1)
    assert bundle.overlay is not None


def test_where_is_the_objects_of_its_pairs(sample_db: Path) -> None:
    common = ("retrieve", "token release", "--lexical-only", "--db", sample_db)
    pairs = ("domain=security,x", "domain=product", "path=**/*.md", "updated_after=2026-01-01")
    options = [part for pair in pairs for part in ("--where", pair)]
    bundle = RetrievalBundle.model_validate_json(invoke(*common, *options, "--format", "json").out)
    assert bundle.request is not None
    assert bundle.request.where is not None
    assert bundle.request.where.model_dump(exclude_none=True) == {
        "domain": ["security", "x", "product"],
        "path": ["**/*.md"],
        "updated_after": "2026-01-01T00:00:00+00:00",
    }
    assert {chunk.metadata.domain for chunk in bundle.selected} == {"security", "product"}


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ("domain", "is not of the form KEY=VALUE"),
        ("domian=x", "did you mean domain?"),
        ("domain=", "where.domain[0]: must not be blank"),
        ("updated_after=2026-01-01,2026-02-01", "where.updated_after: must be an ISO 8601 time"),
    ],
)
def test_a_wrong_where_is_a_usage_error(sample_db: Path, pair: str, complaint: str) -> None:
    outcome = invoke("retrieve", "token", "--where", pair, "--db", sample_db)
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err


def test_an_answer_as_of_a_time(sample_db: Path) -> None:
    common = ("retrieve", "What is the strategy?", "--lexical-only", "--format", "json")
    bundle = RetrievalBundle.model_validate_json(
        invoke(*common, "--as-of", "2025-12-31", "--db", sample_db).out
    )
    assert bundle.query.generated_at == "2025-12-31T00:00:00Z"
    assert "product/strategy-2025.md:10-16" in {c.citation.locator for c in bundle.selected}
    assert set(bundle.rejected_summary) == {"not_yet_valid"}
