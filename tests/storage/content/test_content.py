"""Files, documents and passages as they are stored and read back."""

from collections.abc import Sequence

import pytest

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.storage import documents as stored
from rolebundle.storage import lexical_index, store
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument, StoredFile
from rolebundle.storage.passages import passage_by_id, passages_by_rowid, passages_of_document
from support.compartments import (
    only_compartment,
    search_everywhere,
)
from support.corpora import FLAGGED, all_documents, chunk, document, file_of, fill, put_file
from support.fake_embedder import HashingProvider


def lexical_data(corpus: Corpus) -> list[tuple[object, ...]]:
    """Return every row of the lexical index's internal tables."""
    name = lexical_index.table_name(only_compartment(corpus))
    return corpus.rows(f"SELECT * FROM {name}_data ORDER BY id")


# -- Reading back what was stored: passages with their metadata, and who supersedes whom -----------


class TestPassages:
    def test_every_field_is_read_back(self, corpus: Corpus) -> None:
        stored = document(
            "d",
            [],
            source_id="s",
            title="Ünï",
            uri="file:d",
            document_type="policy",
            domain="security",
            trust_tier="preferred",
            updated_at="2026-01-01T00:00:00Z",
            valid_from="2026-01-02T00:00:00Z",
            valid_until="2026-12-31T23:59:59Z",
            language="de",
            source_kind="export",
            sensitivity="group",
            origin="external",
            scope="team",
            tags=("a", 'b"c'),
            applicable_roles=("reviewer",),
            excluded_roles=("writer",),
            retrieval_hints=("ask me",),
            supersedes=("other",),
            contradicts=("another",),
        )
        own = chunk(
            "d#0",
            "täxt\n",
            headings=("H", "I"),
            content_type="table",
            start_line=3,
            end_line=4,
            page=2,
        )
        fill(corpus, [StoredDocument(stored.metadata, (own,))])
        passage = passage_by_id(corpus, "d#0")
        assert passage is not None
        assert passage.document.tags == ("a", 'b"c')
        for name in stored.metadata._fields:
            assert getattr(passage.document, name) == getattr(stored.metadata, name), name
        assert (passage.content, passage.content_hash) == (own.content, own.content_hash)
        assert (passage.headings, passage.content_type, passage.page) == (("H", "I"), "table", 2)
        assert passage.locator == "d.md:3-4"

    def test_a_chunk_has_the_metadata_of_its_document_and_its_own(self, corpus: Corpus) -> None:
        metadata = document(
            "d", [], tags=("a",), applicable_roles=("reviewer",), excluded_roles=("writer",)
        ).metadata
        chunks = (
            chunk("plain", "one"),
            chunk(
                "own",
                "two",
                tags=("b", "a"),
                applicable_roles=("editor",),
                excluded_roles=("reviewer",),
            ),
        )
        fill(corpus, [StoredDocument(metadata, chunks)])
        plain, own = passages_of_document(corpus, "d")
        assert plain.tags == ("a",)
        assert plain.applicable_roles == ("reviewer",)
        assert plain.excluded_roles == ("writer",)
        # Tags and exclusions add up; the chunk's own roles stand instead of the document's.
        assert own.tags == ("a", "b")
        assert own.applicable_roles == ("editor",)
        assert own.excluded_roles == ("writer", "reviewer")


class TestSupersession:
    def superseders(self, corpus: Corpus) -> dict[str, list[str]]:
        rowids = [rowid for (rowid,) in corpus.rows("SELECT id FROM chunk")]
        found = passages_by_rowid(corpus, rowids).values()
        return {
            passage.document.document_id: [newer.document_id for newer in passage.superseded_by]
            for passage in found
            if passage.superseded_by
        }

    @pytest.mark.parametrize(
        ("claims", "expected"),
        [
            pytest.param("new: old", "old: new", id="by id"),
            pytest.param("new: old.md", "old: new", id="by path"),
            pytest.param("new: old old.md", "old: new", id="by both, once"),
            pytest.param("v3: old; v2: old", "old: v2 v3", id="several, ordered by id"),
            pytest.param("v2: v1; v3: v2", "v1: v2; v2: v3", id="a chain"),
            pytest.param("d: d d.md", "", id="itself"),
            # No claim in a cycle can be trusted; to believe them all would hide them all.
            pytest.param("a: b; b: a", "", id="a cycle of two"),
            pytest.param("a: b.md; b: c.md; c: a.md", "", id="a cycle of three, by path"),
            pytest.param("a: b; b: a; new: a", "a: new", id="from outside a cycle"),
        ],
    )
    def test_who_supersedes_whom(self, corpus: Corpus, claims: str, expected: str) -> None:
        claiming = {
            name: tuple(claimed.split())
            for name, claimed in (claim.split(": ") for claim in claims.split("; "))
        }
        names = {*claiming} | {
            name.removesuffix(".md") for claimed in claiming.values() for name in claimed
        }
        fill(
            corpus,
            [document(name, [name], supersedes=claiming.get(name, ())) for name in sorted(names)],
        )
        found = {name: " ".join(newer) for name, newer in sorted(self.superseders(corpus).items())}
        assert "; ".join(f"{name}: {newer}" for name, newer in found.items()) == expected

    def test_a_claim_counts_in_any_order_of_ingest_and_while_it_is_made(
        self, corpus: Corpus
    ) -> None:
        claiming = document("new", ["y"], supersedes=("old",), trust_tier="preferred")
        fill(corpus, [claiming])
        assert self.superseders(corpus) == {}
        fill(corpus, [document("old", ["x"])])
        assert self.superseders(corpus) == {"old": ["new"]}
        (passage,) = passages_of_document(corpus, "old")
        assert passage.superseded_by[0].trust_tier == "preferred"
        fill(corpus, [document("new", ["y"])])
        assert self.superseders(corpus) == {}
        fill(corpus, [claiming])
        with corpus.writing():
            store.remove_files(corpus, [file_of("new").location])
        assert self.superseders(corpus) == {}

    def test_an_external_document_does_not_supersede_an_internal_one(self, corpus: Corpus) -> None:
        documents = [
            document("ours", ["x"]),
            document("theirs", ["y"], supersedes=("ours",), origin="external"),
            document("web", ["z"], supersedes=("theirs",), origin="untrusted"),
            document("newer", ["w"], supersedes=("web", "theirs")),
        ]
        fill(corpus, documents)
        assert self.superseders(corpus) == {"theirs": ["newer"], "web": ["newer"]}

    @pytest.mark.parametrize(("old", "new", "counts"), [
        ("authoritative", "untrusted", False), ("preferred", "general", False),
        ("general", "general", True), ("general", "authoritative", True),
    ])  # fmt: skip
    def test_a_claim_counts_only_with_as_much_trust(
        self, corpus: Corpus, old: str, new: str, counts: bool
    ) -> None:
        """Otherwise a scraped page could hide a policy by naming it."""
        fill(
            corpus,
            [
                document("policy", ["x"], trust_tier=old),
                document("claim", ["y"], trust_tier=new, supersedes=("policy",)),
            ],
        )
        assert self.superseders(corpus) == ({"policy": ["claim"]} if counts else {})
        [policy] = passages_of_document(corpus, "policy")
        assert policy.ignored_claims == (() if counts else ("claim",))

    @pytest.mark.parametrize(("reach", "tier", "counts"), [
        ("source", "authoritative", False), ("less_trusted", "authoritative", True),
        ("less_trusted", "preferred", False), ("any", "preferred", True), ("any", "general", False),
    ])  # fmt: skip
    def test_documents_of_other_sources(
        self, corpus: Corpus, reach: str, tier: str, counts: bool
    ) -> None:
        fill(
            corpus,
            [
                document("old", ["x"], source_id="policies", trust_tier="preferred"),
                document("new", ["y"], supersedes=("old",), trust_tier=tier, reach=reach),
            ],
        )
        assert self.superseders(corpus) == ({"old": ["new"]} if counts else {})

    def test_a_path_names_every_document_of_the_file(self, corpus: Corpus) -> None:
        with corpus.writing():
            put_file(
                corpus,
                StoredFile("/docs/many.md", "many.md", "h", "r"),
                [document("m1", ["x"]), document("m2", ["y"])],
            )
        fill(corpus, [document("new", ["z"], supersedes=("many.md",))])
        assert self.superseders(corpus) == {"m1": ["new"], "m2": ["new"]}


def test_documents_with_the_same_policy_attributes_are_one_group(corpus: Corpus) -> None:
    fill(
        corpus,
        [
            document("a", ["1"], source_id="w", updated_at="2026-01-01T00:00:00Z"),
            document("b", ["2"], source_id="w", updated_at="2026-02-01T00:00:00Z"),
            document("c", ["3"], source_id="w", origin="external"),
            document("d", ["4"], source_id="v"),
            document("e", ["5"], source_id="v", excluded_roles=("reviewer",)),
            document("f", ["6"], source_id="v", sensitivity="confidential"),
            document("g", ["7"], FLAGGED, source_id="v"),
            # Trust and action depend on whether the tier is ``untrusted``.
            document("h", ["8"], source_id="v", trust_tier="untrusted"),
        ],
    )

    def kinds(by_date: bool) -> list[set[str]]:
        names = {row: metadata.document_id for row, metadata in all_documents(corpus)}
        groups = stored.document_groups(corpus, by_date=by_date)
        assert all(group.document.document_id in "abcdefgh" for group in groups)
        return [{names[row] for row in group.rowids} for group in groups]

    single = [{"c"}, {"d"}, {"e"}, {"f"}, {"g"}, {"h"}]
    assert kinds(by_date=False) == [{"a", "b"}, *single]
    assert kinds(by_date=True) == [{"a"}, {"b"}, *single]
    flags = [group.flags for group in stored.document_groups(corpus, by_date=False)]
    assert flags == [(), (), (), (), (), ("instruction_override",), ()]


def test_groups_by_path(corpus: Corpus) -> None:
    """Documents are apart if policy treats their paths differently, or may do so."""
    documents = [
        document("a", ["1"]),
        document("b", ["2"]),
        document("c", ["3"], source_id="other"),
        document("d", ["4"], source_kind="agent"),
    ]
    fill(corpus, documents)

    def is_first(metadata: DocumentMetadata, path: str) -> bool:
        return metadata.source_kind != "agent" and path == "a.md"

    groups = stored.document_groups(corpus, by_date=False, by_path=is_first)
    assert [(group.path, group.rowids) for group in groups] == [
        ("a.md", [1]),
        ("b.md", [2]),
        ("c.md", [3]),
        ("d.md", [4]),
    ]
    groups = stored.document_groups(corpus, by_date=False, by_path=lambda *_: None)
    assert [group.rowids for group in groups] == [[1, 2], [3], [4]]


def test_a_document_is_in_a_group_for_each_applicable_role_of_its_chunks(corpus: Corpus) -> None:
    metadata = document("a", [], applicable_roles=("writer",)).metadata
    chunks = (chunk("a#0", "1"), chunk("a#1", "2", applicable_roles=("reviewer",)))
    fill(corpus, [StoredDocument(metadata, chunks), document("b", ["3"])])
    groups = stored.document_groups(corpus, by_date=False, by_role=True)
    assert {(group.applicable_roles, *group.rowids) for group in groups} == {
        (("writer",), 1),
        (("reviewer",), 1),
        ((), 2),
    }
    assert [group.applicable_roles for group in stored.document_groups(corpus, by_date=False)] == [
        ()
    ]


# -- Writing files into the corpus: what changed changes, and nothing else -------------------------

PROVIDER = HashingProvider()


def rows(corpus: Corpus) -> dict[str, int]:
    return dict(corpus.rows("SELECT chunk_id, id FROM chunk"))


def vectors(corpus: Corpus) -> dict[str, str]:
    """Chunk id → what is remembered of its vector."""
    return dict(
        corpus.rows("SELECT chunk_id, vector_hash FROM embedded JOIN chunk ON chunk.id = chunk")
    )


def found(corpus: Corpus, word: str) -> set[str]:
    names = {row: name for name, row in rows(corpus).items()}
    return {names[row] for row in search_everywhere(corpus, f'"{word}"')}


def of_chunks(
    document_id: str, chunks: Sequence[tuple[str, str]], **metadata: object
) -> StoredDocument:
    empty = document(document_id, [], **metadata)
    return StoredDocument(empty.metadata, tuple(chunk(name, text) for name, text in chunks))


class TestReplacing:
    BEFORE = of_chunks("d", [("a", "alpha"), ("b", "beta"), ("c", "gamma")])

    @pytest.fixture(autouse=True)
    def _filled(self, corpus: Corpus) -> None:
        fill(corpus, [self.BEFORE], PROVIDER)

    def test_an_unchanged_chunk_keeps_its_row_and_its_vector(self, corpus: Corpus) -> None:
        row, vector = rows(corpus), vectors(corpus)
        fill(corpus, [of_chunks("d", [("a", "alpha"), ("x", "delta"), ("c", "gamma")])])
        assert {name: rows(corpus)[name] for name in "ac"} == {name: row[name] for name in "ac"}
        assert vectors(corpus) == {name: vector[name] for name in "ac"}
        assert (found(corpus, "beta"), found(corpus, "delta")) == (set(), {"x"})
        assert find_problems(corpus) == []

    def test_a_changed_text_under_the_same_id_loses_its_vector(self, corpus: Corpus) -> None:
        row = rows(corpus)
        fill(corpus, [of_chunks("d", [("a", "alpha"), ("b", "other"), ("c", "gamma")])])
        assert rows(corpus) == row
        assert set(vectors(corpus)) == {"a", "c"}
        assert (found(corpus, "beta"), found(corpus, "other")) == (set(), {"b"})
        assert find_problems(corpus) == []

    @pytest.mark.parametrize("field", ["tags", "retrieval_hints"])
    def test_changed_tags_and_hints_are_indexed_and_hints_keep_the_vector(
        self, corpus: Corpus, field: str
    ) -> None:
        before = vectors(corpus)
        chunks = [("a", "alpha"), ("b", "beta"), ("c", "gamma")]
        fill(corpus, [of_chunks("d", chunks, **{field: ("zebra",)})])
        assert found(corpus, "zebra") == {"a", "b", "c"}
        assert vectors(corpus) == (before if field == "retrieval_hints" else {})
        assert find_problems(corpus) == []

    def test_metadata_alone_changes_no_index(self, corpus: Corpus) -> None:
        before = lexical_data(corpus), vectors(corpus)
        chunks = [("a", "alpha"), ("b", "beta"), ("c", "gamma")]
        fill(corpus, [of_chunks("d", chunks, trust_tier="preferred", excluded_roles=("writer",))])
        assert (lexical_data(corpus), vectors(corpus)) == before
        (passage, *_) = passages_of_document(corpus, "d")
        assert (passage.document.trust_tier, passage.excluded_roles) == ("preferred", ("writer",))


class TestIdsAreTaken:
    def test_of_several_files_only_the_refused_one_is_left_out(self, corpus: Corpus) -> None:
        fill(corpus, [document("d", ["old"])])
        with corpus.writing():
            problems = store.put_files(
                corpus,
                [
                    (file_of("a"), [document("a", ["alpha"])]),
                    (file_of("b"), [document("b", ["beta"]), document("d", ["stolen"])]),
                    (file_of("c"), [document("c", ["gamma"]), document("b", ["beta"])]),
                ],
            )
        assert [problem.code if problem else None for problem in problems] == [
            None,
            "duplicate_document_id",
            None,
        ]
        assert set(rows(corpus)) == {"a#0", "b#0", "c#0", "d#0"}
        assert found(corpus, "stolen") == set()
        assert find_problems(corpus) == []
