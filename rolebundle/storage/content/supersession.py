"""Which documents replace others: the claims to supersede, and which of them count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rolebundle.contracts.document import Superseder
from rolebundle.contracts.terms import ORIGINS, TRUST_TIERS
from rolebundle.storage.connection import Corpus


def superseders(
    corpus: Corpus, documents: Iterable[int]
) -> tuple[dict[int, tuple[Superseder, ...]], dict[int, tuple[str, ...]]]:
    """By document: what replaces it, and the ids of what claims to, but may not."""
    # If documents claim to replace one another in a cycle, none of these claims counts. "above" is
    # whatever replaces the newer document, directly or in several steps. Claims that do not count
    # make no cycle.
    rows = corpus.rows(
        f"SELECT old.id, max({_counts('claim', 'new', 'old')}) AS counts, new.document_id, "
        "new.trust_tier, new.updated_at, new.valid_from FROM document old "
        "JOIN file old_file ON old_file.id = old.file "
        "JOIN supersession claim ON claim.superseded IN (old.document_id, old_file.path) "
        "JOIN document new ON new.id = claim.newer "
        "WHERE old.id IN (SELECT value FROM json_each(?)) AND new.id <> old.id "
        "AND NOT EXISTS (WITH RECURSIVE above (id) AS (SELECT new.id UNION SELECT further.newer "
        "FROM above JOIN document below ON below.id = above.id "
        "JOIN file below_file ON below_file.id = below.file JOIN supersession further "
        "ON further.superseded IN (below.document_id, below_file.path) "
        "JOIN document next ON next.id = further.newer "
        f"WHERE {_counts('further', 'next', 'below')}) "
        "SELECT 1 FROM above WHERE id = old.id) "
        "GROUP BY old.id, new.id ORDER BY old.id, new.document_id",
        (sorted(documents),),
    )
    newer: dict[int, tuple[Superseder, ...]] = {}
    ignored: dict[int, tuple[str, ...]] = {}
    for old, counts, document_id, trust_tier, updated_at, valid_from in rows:
        if not counts:
            ignored[old] = (*ignored.get(old, ()), document_id)
        else:
            superseder = Superseder(document_id, trust_tier, updated_at, valid_from)
            newer[old] = (*newer.get(old, ()), superseder)
    return newer, ignored


class Claim(NamedTuple):
    """A document that another one claims to replace, and the id or path that the claim names."""

    row: int
    document_id: str
    name: str


def claims_of(corpus: Corpus, document: int) -> list[Claim]:
    """The documents that a document claims to replace, whether or not it may, ordered by id."""
    return corpus.select(
        Claim,
        "supersession claim JOIN document old ON old.id <> claim.newer "
        "AND (old.document_id = claim.superseded "
        "OR old.file IN (SELECT id FROM file WHERE path = claim.superseded)) "
        "WHERE claim.newer = ? ORDER BY document_id",
        (document,),
        {"row": "old.id", "name": "superseded"},
    )


def _counts(claim: str, new: str, old: str) -> str:
    """The SQL condition under which a claim to supersede counts, given the names of the tables.

    A less trusted document must not hide a more trusted one by claiming to replace it, nor may a
    document from outside hide one of our own. Documents of other sources are beyond its reach,
    unless the owner says otherwise.
    """
    new_tier = _position(TRUST_TIERS, f"{new}.trust_tier")
    old_tier = _position(TRUST_TIERS, f"{old}.trust_tier")
    return (
        f"({claim}.reach <> 'none' AND ({new}.source = {old}.source OR {claim}.reach = 'any' "
        f"OR {claim}.reach = 'less_trusted' AND {new_tier} < {old_tier}) "
        f"AND {new_tier} <= {old_tier} "
        f"AND {_position(ORIGINS, f'{new}.origin')} <= {_position(ORIGINS, f'{old}.origin')})"
    )


def _position(values: Sequence[str], column: str) -> str:
    """The position of a column's value among fixed words, as SQL."""
    cases = " ".join(f"WHEN '{value}' THEN {number}" for number, value in enumerate(values))
    return f"CASE {column} {cases} END"
