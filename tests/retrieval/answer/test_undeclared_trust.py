"""A corpus in which nothing declares trust cannot have a match of high trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.contracts.terms import TrustTier
from support.corpora import ask, built, document, overlay


@pytest.mark.parametrize(
    ("tier", "elsewhere", "is_warned"),
    [
        ("general", "general", False),
        ("general", "untrusted", False),
        ("general", "authoritative", True),
        ("general", "preferred", True),
        ("untrusted", "general", True),
    ],
)
def test_the_warning_needs_a_declaration(
    tmp_path: Path, tier: TrustTier, elsewhere: TrustTier, is_warned: bool
) -> None:
    documents = [
        document("answer", ["token rotation"], trust_tier=tier),
        document("other", ["bread and flour"], trust_tier=elsewhere),
    ]
    with built(tmp_path, documents) as corpus:
        bundle = ask(corpus, overlay(), task="token rotation", lexical_only=True)
    assert [chunk.document_id for chunk in bundle.selected] == ["answer"]
    codes = {warning.code for warning in bundle.warnings}
    assert bundle.fallback is not None
    assert ("NO_HIGH_TRUST_MATCH" in codes) == is_warned
    assert (bundle.fallback.action == "degrade") == is_warned
    assert bundle.provenance.trust_posture == ("weak" if is_warned else "undeclared")
