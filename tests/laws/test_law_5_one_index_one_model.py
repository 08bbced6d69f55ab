"""Law 5. One index, one model: vectors of two models are never compared."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.contracts.overlay import Overlay
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.bundles import without_semantic_state
from support.corpora import ask, built
from support.fake_embedder import IDENTITY, HashingProvider
from support.strategies import corpora, overlays, requests

other_identities = st.one_of(
    st.sampled_from(["provider", "model", "digest", "query_prefix", "passage_prefix"]).flatmap(
        lambda name: st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(
            lambda text: IDENTITY._replace(**{name: text})
        )
    ),
    st.integers(1, 64).map(lambda dimensions: IDENTITY._replace(dimensions=dimensions)),
).filter(lambda identity: identity != IDENTITY)


@few_examples
@given(
    documents=corpora(least=1),
    role=st.none() | overlays(),
    fields=requests(lexical_only=None),
    identity=other_identities,
)
def test_an_index_of_another_model_is_never_used(
    folder: Path,
    documents: list[StoredDocument],
    role: Overlay | None,
    fields: dict[str, Any],
    identity: ModelIdentity,
) -> None:
    other_model = HashingProvider(identity)
    with built(folder, documents, HashingProvider()) as corpus:
        bundle = ask(corpus, role, other_model, **fields)
        lexical = ask(corpus, role, None, **fields)

        assert other_model.query_count == 0, "embedded a query without an index of the same model"
        warnings = {warning.code: warning.message for warning in bundle.warnings}
        assert "the index was made by" in warnings["SEMANTIC_LANE_DEGRADED"]
        assert without_semantic_state(bundle) == without_semantic_state(lexical)
