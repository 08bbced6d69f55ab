"""Law 2. Governance costs no recall: what policy rejects takes no place from what it allows.

Precisely, with no token budget, no floor and no hard limit of a source, for a task of which
something is visible (law 10): let F be the passages that a lane can
find in the corpus at all (they match a term of the task or of the role; or, with the semantic lane,
they have a vector), and A those of them that match the request's ``where`` and are not rejected by
policy, not superseded and not in the request's ``seen``, as a copy neither. Then

- ``|selected| = min(limit, number of different texts in A)``,
- the same request on the corpus without the passages that are not in A selects as many, and the
  same texts if there are fewer than ``limit``,
- with the lexical lane alone and fewer than ``limit`` selected, every passage of A is in the pool.

The bound: a lane proposes at most 4,096 passages, which no corpus here reaches.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import DocumentMetadata, Passage, Superseder
from rolebundle.contracts.overlay import Overlay, SourceRule
from rolebundle.interfaces.parse import request_from
from rolebundle.retrieval.lexical import with_corrections
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.values import POOL_DEPTH
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.passages import passages_by_rowid
from support.amounts import few_examples
from support.compartments import match_expression, search_everywhere
from support.corpora import FLAGGED, NOW, ask, build, built, document, overlay, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import LONG, corpora, overlays, requests

CROWD = POOL_DEPTH + 30
PROVIDER = HashingProvider()

# Each ranks above everything else for "token rotation", and has more chunks than a lane proposes.
_outranking = [f"token rotation token rotation x{n}" for n in range(CROWD)]
CROWDS: dict[str, list[StoredDocument]] = {
    "none": [],
    "forbidden": [document("crowd", _outranking, source_id="crowd-source")],
    "excluded": [document("crowd", _outranking, excluded_roles=("reviewer",))],
    "untrusted": [document("crowd", _outranking, origin="untrusted")],
    "external": [document("crowd", _outranking, origin="external")],
    "confidential": [document("crowd", _outranking, sensitivity="confidential")],
    "flagged": [document("crowd", _outranking, FLAGGED)],
    "of others": [document("crowd", _outranking, applicable_roles=("writer",))],
    "stale": [document("crowd", _outranking, updated_at="2001-01-01T00:00:00Z")],
    "superseded": [
        document("crowd", _outranking, trust_tier="authoritative"),
        document("newer", ["an audit"], supersedes=("crowd",)),
    ],
    "copies": [document("crowd", ["token rotation"] * CROWD)],
    "alike": [
        # The title counts double, so these long passages rank above every short one.
        document(
            "crowd",
            [f"{LONG} token rotation {'x' * n}" for n in range(1, CROWD + 1)],
            title="token rotation " * 20,
        )
    ],
    "allowed": [document("crowd", _outranking)],
}
FORBIDS_THE_CROWD = {"pattern": "crowd-source", "reason": "not for us"}


@cache
def _base(kind: str) -> bytes:
    with scratch_folder() as place:
        return build(place, CROWDS[kind], PROVIDER).read_bytes()


@st.composite
def governed(draw: st.DrawFn) -> Overlay:
    drawn = draw(overlays(min_score=0.0, diversity="soft")).model_dump(exclude_none=True)
    policy = drawn.pop("source_policy")
    if draw(st.booleans()):
        policy["forbidden_sources"] = [*policy["forbidden_sources"], FORBIDS_THE_CROWD]
    return overlay(**drawn, source_policy=policy)


DISTANT = [document("d0", ["one sentence on the rotation of keys, quite far down"])]
NO_FLOOR = overlay(retrieval_policy={"min_score": 0.0})


def behind(kind: str, limit: int, role: Overlay = NO_FLOOR, **fields: Any) -> Any:
    """An example of one short passage that ranks below a crowd."""
    return example(
        kind=kind,
        documents=DISTANT,
        role=role,
        limit=limit,
        fields={"task": "token rotation", "lexical_only": True} | fields,
        task_matches_crowd=True,
    )


@few_examples
@given(
    kind=st.sampled_from([*CROWDS]),
    documents=corpora(most=6),
    role=governed(),
    limit=st.integers(1, 40),
    fields=requests(token_budget=None, limit=None, evidence=None),
    task_matches_crowd=st.booleans(),
)
@behind("alike", 2)
@example(
    kind="alike",
    documents=[document("d0", [f"{LONG} token still"], title="token " * 5)],
    role=NO_FLOOR,
    limit=2,
    fields={"task": "token " * 5, "lexical_only": False},
    task_matches_crowd=False,
)
@behind("copies", 2)
@behind("external", 3, lexical_only=False, action="execute")
@behind("flagged", 3, action="execute")
@behind("of others", 3, overlay(retrieval_policy={"min_score": 0.0, "role_mismatch_penalty": 1.0}))
@behind("allowed", 5, seen=[f"crowd#{n}" for n in range(CROWD)])
@behind(
    "forbidden",
    5,
    overlay(source_policy={"forbidden_sources": [FORBIDS_THE_CROWD]}),
    lexical_only=False,
)
@behind(
    "allowed",
    5,
    overlay(
        source_policy={"allowed_sources": [{"path": "d0.*"}]}, retrieval_policy={"min_score": 0.0}
    ),
)
def test_what_policy_rejects_takes_no_place(
    folder: Path,
    kind: str,
    documents: list[StoredDocument],
    role: Overlay,
    limit: int,
    fields: dict[str, Any],
    task_matches_crowd: bool,
) -> None:
    task = "token rotation " * task_matches_crowd + fields["task"]
    fields = fields | {"task": task, "limit": limit}
    lexical_only = fields["lexical_only"]
    with built(folder, documents, PROVIDER, base=_base(kind)) as corpus:
        bundle = ask(corpus, role, PROVIDER, **fields)
        findable = _findable(corpus, fields, role)
        every = [*passages_by_rowid(corpus, corpus.column("SELECT id FROM chunk")).values()]
    seen = {passage.content for passage in every if passage.chunk_id in fields.get("seen", ())}
    allowed = [
        passage
        for passage in every
        if _is_allowed(passage, role, NOW, fields) and passage.content not in seen
    ]
    expected = [passage for passage in allowed if passage.rowid in findable]
    texts = {_text_key(passage.content) for passage in expected}
    selected = {_text_key(passage.content) for passage in bundle.selected}

    if _is_off_topic(bundle):
        assert bundle.selected == []
        return
    assert len(bundle.selected) == min(limit, len(texts))
    assert len(selected) == len(bundle.selected), "a copy took a place"
    if len(bundle.selected) < limit:
        assert selected == texts
        if lexical_only:
            pool = {entry.chunk_id for entry in (*bundle.selected, *bundle.rejected)}
            assert {passage.chunk_id for passage in expected} <= pool

    # The same corpus without the passages that policy rejects.
    names = {passage.chunk_id for passage in allowed}
    is_whole_crowd = all(c.chunk_id in names for d in CROWDS[kind] for c in d.chunks)
    base = _base(kind if is_whole_crowd else "none")
    stored = documents if is_whole_crowd else [*CROWDS[kind], *documents]
    with built(
        folder, [_only(document, names) for document in stored], PROVIDER, base=base
    ) as cleared:
        alone = ask(cleared, role, PROVIDER, **fields)
    if _is_off_topic(alone):
        return  # Only what policy rejects has the task's words.
    assert len(alone.selected) == len(bundle.selected)
    if len(bundle.selected) < limit:
        assert {_text_key(passage.content) for passage in alone.selected} == selected


def _only(document: StoredDocument, names: set[str]) -> StoredDocument:
    chunks = tuple(chunk for chunk in document.chunks if chunk.chunk_id in names)
    return StoredDocument(document.metadata, chunks, document.scanned)


def _is_off_topic(bundle: RetrievalBundle) -> bool:
    return bundle.evidence is not None and bundle.evidence.support == "off_topic"


def _findable(corpus: Corpus, fields: dict[str, Any], role: Overlay) -> set[int]:
    if not fields["lexical_only"]:
        return {*corpus.column("SELECT chunk FROM embedded")}
    query = with_corrections(corpus, build_query(fields["task"], role, fields.get("also", ())))
    rowids: set[int] = set()
    for terms in (query.task_terms, query.expansion_terms):
        if terms:
            rowids |= {*search_everywhere(corpus, match_expression(terms))}
    return rowids


def _is_allowed(passage: Passage, role: Overlay, now: datetime, fields: dict[str, Any]) -> bool:
    """Whether policy allows a passage, written as simply as possible."""
    document, sources, limits = passage.document, role.source_policy, role.retrieval_policy
    if not _matches(passage, fields.get("where", {})):
        return False
    if any(_rule_matches(rule, passage) for rule in sources.forbidden_sources):
        return False
    allowed = sources.allowed_sources
    if allowed and not any(_rule_matches(rule, passage) for rule in allowed):
        return False
    if role.role_id in passage.excluded_roles:
        return False
    as_of = fields.get("as_of") and request_from({"task": "x", "as_of": fields["as_of"]}).as_of
    now = as_of or now
    until = document.valid_until
    is_over = until is not None and now > datetime.fromisoformat(until)
    if is_over or _begins_later(document, now, as_of):
        return False
    if not all(_begins_later(newer, now, as_of) for newer in passage.superseded_by):
        return False
    is_for_other_roles = passage.applicable_roles and role.role_id not in passage.applicable_roles
    if is_for_other_roles and limits.role_mismatch_penalty == 1:
        return False
    risky = fields.get("action") in ("execute", "external_send")
    if document.sensitivity == "confidential" and fields.get("action") == "external_send":
        return False
    if passage.flags and risky and not fields.get("approval"):
        return False
    is_untrusted = "untrusted" in (document.origin, document.trust_tier)
    if is_untrusted and (risky or fields.get("action") == "suggest"):
        return False
    if document.origin == "external" and risky and not fields.get("approval"):
        return False
    date = document.updated_at or document.inferred_at
    if date is None or limits.freshness_max_age_days is None:
        return True
    age = (now - datetime.fromisoformat(date)).total_seconds() / 86_400
    return not (limits.stale_penalty == 1 and age > limits.freshness_max_age_days)


def _rule_matches(rule: SourceRule, passage: Passage) -> bool:
    if rule.path:
        # No generated path or glob has a folder or a bracket, so that fnmatch means the same.
        return fnmatchcase(passage.path, rule.path)
    document = passage.document
    names = "\n".join((document.source_id, document.document_type, document.domain)).casefold()
    return str(rule.pattern).casefold() in names


def _begins_later(
    document: DocumentMetadata | Superseder, now: datetime, as_of: datetime | None
) -> bool:
    dates = [document.valid_from, document.updated_at if as_of else None]
    return any(date is not None and datetime.fromisoformat(date) > now for date in dates)


def _folded(texts: str | Sequence[str]) -> set[str]:
    return {*map(str.casefold, [texts] if isinstance(texts, str) else texts)}


def _matches(passage: Passage, where: dict[str, Any]) -> bool:
    document = passage.document
    texts = {
        "source": document.source_id,
        "document_type": document.document_type,
        "domain": document.domain,
        "tags": document.tags,
    }
    for key, wanted in where.items():
        if key in texts:
            matches = _folded(wanted) & _folded(texts[key])
        elif key == "attributes":
            values = {name.casefold(): _folded(texts) for name, texts in document.attributes}
            matches = all(
                values.get(name.casefold(), set()) & _folded(texts)
                for name, texts in wanted.items()
            )
        elif key == "path":
            globs = [wanted] if isinstance(wanted, str) else wanted
            names = (passage.path, document.uri)
            matches = any(fnmatchcase(name, glob) for name in names for glob in globs)
        else:
            bound = datetime.fromisoformat(wanted).replace(tzinfo=UTC)
            date = document.updated_at and datetime.fromisoformat(document.updated_at)
            matches = date and (date >= bound if key == "updated_after" else date < bound)
        if not matches:
            return False
    return True


def _text_key(text: str) -> object:
    """Equal for texts that are copies of each other."""
    return tuple(text.split())
