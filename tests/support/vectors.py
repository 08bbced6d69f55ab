"""Check that each vector of a corpus is its model's vector of its chunk's text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rolebundle.embedding.provider import unit_vectors
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_reader
from support.corpora import embedding_texts
from support.fake_embedder import HashingProvider
from support.sound import assert_sound


class TextByText(HashingProvider):
    """Embed each text by itself, also if the dimensions differ from the fake model's."""

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = [super(TextByText, self)._embed([text]) for text in texts]
        return np.concatenate([np.zeros((0, self.identity.dimensions), np.float32), *rows])


def assert_never_mixed(db: Path) -> dict[str, int]:
    """Assert that every vector is its model's vector of the current chunk; count them by model."""
    assert_sound(db)
    counted = {}
    with open_reader(db) as corpus:
        corpus.load_vector_functions()
        for index in vector_index.all_indexes(corpus):
            model = index.identity.model
            beside = dict(
                corpus.rows("SELECT chunk, vector FROM embedded WHERE index_id = ?", (index.id,))
            )
            texts = [model.passage_prefix + text for text in embedding_texts(corpus, [*beside])]
            embedded = TextByText(model).embed_passages(texts)
            expected = unit_vectors(embedded, len(texts), model.dimensions)
            for vector, expected_vector in zip(beside.values(), expected, strict=True):
                assert len(vector) == 4 * model.dimensions
                assert np.allclose(np.frombuffer(vector, dtype="<f4"), expected_vector, atol=1e-5)
            counted[model.model] = len(beside)
    return counted
