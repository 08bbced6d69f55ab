"""A corpus in which the order is not obvious, and the answers to a fixed list of requests.

A new process imports this file, so it imports neither pytest nor hypothesis.
"""

import re
from pathlib import Path
from typing import Any

from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from support.corpora import ask, build, document, overlay
from support.fake_embedder import HashingProvider
from support.values import WORDS


def without_timings(text: str) -> str:
    return re.sub(r'"(latency_ms|lexical_ms|semantic_ms)":[^,}]*', r'"\1":0', text)


def rich_document(n: int, *texts: str, **fields: Any) -> StoredDocument:
    """A document of many words, one of several sources and tiers; ``texts`` are more passages."""
    mixed = [" ".join(WORDS[(n * step + k) % len(WORDS)] for k in range(6)) for step in (1, 3, 5)]
    return document(
        f"d{n}",
        [*mixed, *texts],
        source_id=f"source-{n % 5}",
        trust_tier=("authoritative", "preferred", "general", "untrusted")[n % 4],
        tags=WORDS[n % 5 : n % 5 + 3],
        **fields,
    )


def rich_corpus(folder: Path) -> Path:
    """A corpus in which the order is not obvious: ties, copies, superseded documents, sources."""
    documents = [
        rich_document(
            n, "token rotation audit", supersedes=(f"d{n + 9}", "d20") if n % 7 == 0 else ()
        )
        for n in range(24)
    ]
    return build(folder, documents, HashingProvider(), name="rich.db")


RICH_POLICY = """
[reader]
scopes = ["shared", "hr"]
access_level = "confidential"
deny_patterns = ["d7.md"]
may_set_time = true
"""
"""The policy of a reader of most of the documents."""

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
                ).model_dump_json(exclude_none=True)
            )
            for task in ("token rotation audit", "naïve ключ release of the kernel 🚀")
            for role in (None, RICH_ROLE)
            for fusion in ("weighted", "rrf")
            for lexical in (False, True)
        ]
