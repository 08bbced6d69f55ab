"""How long pages are: of a live answer, and of a file besides its data."""

from __future__ import annotations

from pathlib import Path

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.engine import Engine
from rolebundle.interfaces.pages.page import Site
from rolebundle.interfaces.pages.views import answer_page
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import overlay_folders

LIVE = Site(
    base=f"/{'t' * 43}/",
    request={"task": "Review the token refresh flow", "role": "mossline-security-reviewer"},
    is_owner=True,
    roles=["mossline-security-reviewer", "mossline-docs-writer"],
)
MAX_LIVE = 250_000
MAX_FILE = 100_000


def bundle_of(db: Path, limit: int) -> RetrievalBundle:
    fields = {**LIVE.request, "limit": limit, "now": "2026-11-15"}
    with Engine(db, overlay_folders()) as engine:
        return engine.retrieve(request_from(fields))


def test_an_answer_with_ten_passages_and_a_hundred_rejections(sample_with_vectors: Path) -> None:
    bundle = bundle_of(sample_with_vectors, 10)
    assert len(bundle.selected) == 10
    assert len(bundle.rejected) > 90
    assert len(answer_page(bundle, LIVE).encode()) <= MAX_LIVE


def test_a_file_besides_its_data(sample_with_vectors: Path) -> None:
    bundle = bundle_of(sample_with_vectors, 10)
    data = len(bundle.model_dump_json().encode())
    assert len(answer_page(bundle).encode()) - data <= MAX_FILE
