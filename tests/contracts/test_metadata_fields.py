"""What holds for every field of the metadata, so that a new one is described in one place."""

from typing import get_args

from rolebundle.contracts.documents import LATER_FIELDS, DocumentMetadata
from rolebundle.contracts.ingest import METADATA_KEYS, KeyKind, keys_that
from rolebundle.contracts.request import Where
from rolebundle.storage.digests import DOCUMENT_COLUMNS
from rolebundle.storage.documents import texts_of

STORED = DocumentMetadata._fields[:-1]  # without `reach`, which is kept with the claims
DERIVED = {"inferred_at", "self_declared", "refused_claims", "attributes"}
NOT_FILTERED = {
    "governance: roles, policy and the rules of documents decide": {*keys_that("governs")},
    "the text is searched for them": {"title", "retrieval_hints"},
    "`path` and `updated_after` look at them": {"uri", "updated_at"},
    "`as_of` decides": {*keys_that("limits")},
    "they describe the text, and tags are for a person's own order": {"language", "source_kind"},
    "they say how the metadata came about": {"inferred_at", "self_declared", "refused_claims"},
}


def test_each_has_a_column() -> None:
    own_tables = {"document_id", "source_id"}
    assert {*STORED} - {*DOCUMENT_COLUMNS.split(", ")} == own_tables


def test_each_can_be_declared_unless_it_is_derived() -> None:
    assert {*STORED} - {*METADATA_KEYS} == DERIVED


def test_each_that_is_declared_has_at_most_one_kind() -> None:
    keys = [key for kind in get_args(KeyKind) for key in keys_that(kind)]
    assert len(keys) == len({*keys})
    assert {*METADATA_KEYS} - {*keys} == {"updated_at"}


def test_each_can_be_filtered_by_or_there_is_a_reason() -> None:
    assert {*STORED} - {*Where.model_fields} == set.union(*NOT_FILTERED.values())


def test_each_key_of_where_has_texts() -> None:
    document = DocumentMetadata("id", "source", "title", "uri", updated_at="2026-01-01T00:00:00Z")
    columns = document._asdict() | {"path": "a.md", "tags": ("t",), "attributes": (("k", ("v",)),)}
    keys = {*Where.model_fields, "updated_at"} - {"updated_after", "updated_before"}
    assert all(texts_of(key, columns) for key in keys)


def test_later_fields_have_a_default() -> None:
    # A digest covers them only if they are set, so that the digests of older corpora stay valid.
    assert {*LATER_FIELDS} <= DocumentMetadata._field_defaults.keys()
