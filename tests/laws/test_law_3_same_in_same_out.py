"""Law 3. Same in, same out: byte for byte, except the timings in ``diagnostics``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.interfaces.parse import request_from
from rolebundle.storage.opening import open_reader
from rolebundle.storage.store import StoredDocument
from support.amounts import few_examples
from support.corpora import NOW, ask, build, document, overlay, remove
from support.fake_embedder import HashingProvider
from support.strategies import WORDS, corpora, overlays, requests

TESTS = Path(__file__).parent.parent


def without_timings(text: str) -> str:
    return re.sub(
        r'"(latency_ms|lexical_ms|semantic_ms)":[^,}]*',
        r'"\1":0',
        text,
    )


@few_examples
@given(
    documents=corpora(),
    waiting=st.integers(0, 3),
    role=st.none() | overlays(),
    asked=st.lists(requests(), min_size=1, max_size=2),
)
def test_two_runs_return_the_same_bundle(
    folder: Path,
    documents: list[StoredDocument],
    waiting: int,
    role: Overlay | None,
    asked: list[dict[str, Any]],
) -> None:
    path = build(folder, documents, HashingProvider(), waiting=waiting)
    try:
        with open_reader(path) as corpus:
            first = [ask(corpus, role, HashingProvider(), **fields) for fields in asked]
        with open_reader(path) as corpus:
            # In reverse order, because earlier requests must not matter.
            again = [ask(corpus, role, HashingProvider(), **fields) for fields in reversed(asked)]
    finally:
        remove(path)
    for bundle, repeated, fields in zip(first, reversed(again), asked, strict=True):
        now = request_from(fields).as_of or NOW
        assert bundle.query.generated_at == iso_utc(now), "read a clock"
        assert bundle.without_timings() == repeated.without_timings()
        assert without_timings(bundle.to_json()) == without_timings(repeated.to_json())


def rich_corpus(folder: Path) -> Path:
    """A corpus in which the order is not obvious: ties, copies, superseded documents, sources."""
    documents = [
        document(
            f"d{n}",
            [" ".join(WORDS[(n * step + k) % len(WORDS)] for k in range(6)) for step in (1, 3, 5)]
            + ["token rotation audit"],
            source_id=f"source-{n % 5}",
            trust_tier=("authoritative", "preferred", "general", "untrusted")[n % 4],
            tags=WORDS[n % 5 : n % 5 + 3],
            supersedes=(f"d{n + 9}", "d30") if n % 7 == 0 else (),
        )
        for n in range(40)
    ]
    return build(folder, documents, HashingProvider(), name="rich.db")


RICH_ROLE = overlay(
    mission="Audit token rotation.",
    vocabulary={
        "preferred_terms": ["token", "audit", "ключ"],
        "synonyms": {"token": ["credential", "secret"], "audit": ["review"]},
        "boost_phrases": ["token rotation", "threat model", "kernel", "release audit"],
    },
    source_policy={
        "forbidden_sources": [{"pattern": "source-3"}],
        "preferred_sources": [{"pattern": "source-1", "boost": 2.0}],
    },
    retrieval_policy={"require_source_diversity": True, "max_selected_chunks": 12},
)


def answers(path: Path) -> list[str]:
    """The answers of a process to a fixed list of requests, without the timings."""
    with open_reader(path) as corpus:
        return [
            without_timings(
                ask(
                    corpus, role, HashingProvider(), task=task, fusion=fusion, lexical_only=lexical
                ).to_json()
            )
            for task in ("token rotation audit", "naïve ключ release of the kernel", "🚀")
            for role in (None, RICH_ROLE)
            for fusion in ("weighted", "rrf")
            for lexical in (False, True)
        ]


def test_pythons_hash_seed_does_not_matter(folder: Path) -> None:
    path = rich_corpus(folder)
    script = (
        "import importlib.util, sys, pathlib\n"
        f"spec = importlib.util.spec_from_file_location('law_3', {str(Path(__file__))!r})\n"
        "law = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(law)\n"
        "print(*law.answers(pathlib.Path(sys.argv[1])), sep='\\n')\n"
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
