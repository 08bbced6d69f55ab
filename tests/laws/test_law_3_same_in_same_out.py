"""Law 3. Same in, same out: byte for byte, except the timings in ``diagnostics``."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.interfaces.parse import request_from
from rolebundle.retrieval import pipeline, semantic
from rolebundle.storage import store, vector_search
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.amounts import few_examples
from support.corpora import NOW, ask, built, document, file_of, fill
from support.fake_embedder import HashingProvider
from support.rich_corpus import answers, rich_corpus, without_timings
from support.strategies import corpora, overlays, requests

TESTS = Path(__file__).parent.parent


@few_examples
@given(
    documents=corpora(),
    waiting=st.integers(0, 3),
    role=st.none() | overlays(),
    requests_drawn=st.lists(requests(), min_size=1, max_size=2),
)
def test_two_runs_return_the_same_bundle(
    folder: Path,
    documents: list[StoredDocument],
    waiting: int,
    role: Overlay | None,
    requests_drawn: list[dict[str, Any]],
) -> None:
    provider = HashingProvider()
    with built(folder, documents, provider, waiting=waiting) as corpus:
        first = [ask(corpus, role, provider, **fields) for fields in requests_drawn]
        with open_reader(corpus.path) as again:
            # In reverse order, because earlier requests must not matter.
            second = [ask(again, role, provider, **fields) for fields in reversed(requests_drawn)]
    for bundle, repeated, fields in zip(first, reversed(second), requests_drawn, strict=True):
        now = request_from(fields).as_of or NOW
        assert bundle.query.generated_at == iso_utc(now), "read a clock"
        ours, theirs = (without_timings(b.model_dump_json()) for b in (bundle, repeated))
        assert ours == theirs


@few_examples
@given(data=st.data(), documents=corpora(least=2), role=st.none() | overlays())
def test_an_updated_corpus_and_a_rebuilt_one_answer_alike(
    folder: Path, data: st.DataObject, documents: list[StoredDocument], role: Overlay | None
) -> None:
    """Also if what ties at the edge of the pool does not fit into it."""
    drawn_requests = data.draw(st.lists(requests(), min_size=1, max_size=2))
    # Passages of equal scores that are no copies.
    documents = [*documents, document("t0", ["token rotation"]), document("t1", ["rotation token"])]
    provider = HashingProvider()
    with built(folder, documents, provider) as rebuilt, built(folder, [], provider) as updated:
        with open_writer(updated.path) as corpus:
            for original in data.draw(st.permutations(documents)):
                name = original.metadata.document_id
                if data.draw(st.booleans()):
                    # An earlier version, with the same passages the other way round.
                    texts = [stored_chunk.content for stored_chunk in original.chunks]
                    former = document(f"{name}-former", texts[::-1])
                    fill(corpus, [former], provider)
                    with corpus.writing():
                        store.remove_files(corpus, [file_of(f"{name}-former").location])
                        store.drop_unused(corpus)
                fill(corpus, [original], provider)
        depth = data.draw(st.integers(1, 4))
        with (
            patch.object(pipeline, "POOL_DEPTH", depth),
            patch.object(semantic, "POOL_DEPTH", depth),
            patch.object(vector_search, "MARGIN", data.draw(st.integers(1, 2))),
        ):
            for fields in drawn_requests:
                pair = [ask(corpus, role, provider, **fields) for corpus in (rebuilt, updated)]
                first, second = (bundle.without_timings() for bundle in pair)
                for plain in (first, second):
                    for key in ("file", "corpus_id", "generation"):
                        plain["corpus"].pop(key)
                assert first == second


def test_pythons_hash_seed_does_not_matter(folder: Path) -> None:
    path = rich_corpus(folder)
    script = (
        "import sys, pathlib\n"
        "from support.rich_corpus import answers\n"
        "print(*answers(pathlib.Path(sys.argv[1])), sep='\\n')\n"
    )
    # This process has a random seed, if it has not the other one of these two.
    seed = "2024" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    environment = os.environ | {
        "PYTHONHASHSEED": seed,
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
    }
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout == ("\n".join(answers(path)) + "\n").encode()
