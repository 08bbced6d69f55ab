"""Look up references."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.errors import UsageError
from rolebundle.retrieval.lookup import ReferenceScope, look_up
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader, open_writer
from support.corpora import build, chunk, document, file_of, put_file
from support.fake_embedder import HashingProvider


@pytest.fixture
def path(tmp_path: Path) -> Path:
    exact = StoredDocument(
        DocumentMetadata("guide", "wiki", "Guide", "u"),
        (
            chunk("guide#a", "one\ntwo\nthree", start_line=1, end_line=3),
            chunk("guide#b", "five\nsix", start_line=5, end_line=6),
        ),
    )
    markup = StoredDocument(
        DocumentMetadata("page", "site", "Page", "u", trust_tier="preferred"),
        (chunk("page#a", "all of it", start_line=10, end_line=20),),
    )
    newer = document("guide-2", ["text"], supersedes=("guide",))
    return build(tmp_path, [exact, markup, newer], HashingProvider(), waiting=1)


@pytest.fixture
def corpus(path: Path) -> Iterator[Corpus]:
    with open_reader(path) as opened:
        yield opened


class TestLookUp:
    @pytest.mark.parametrize(
        ("lines", "contents"),
        [
            ("1-3", ["one\ntwo\nthree"]),
            ("2-2", ["two"]),
            ("3-5", ["three", "five"]),
            ("0-99", ["one\ntwo\nthree", "five\nsix"]),
        ],
    )
    def test_lines_are_cut_out_of_the_passages_that_contain_them(
        self, corpus: Corpus, lines: str, contents: list[str]
    ) -> None:
        found = look_up(corpus, f"guide.md:{lines}", ReferenceScope())
        assert found.kind == "lines"
        assert [passage.content for passage in found.passages] == contents

    def test_the_locator_names_the_lines_that_were_cut_out(self, corpus: Corpus) -> None:
        (found,) = look_up(corpus, "guide.md:2-4", ReferenceScope()).passages
        assert (found.locator, found.content) == ("guide.md:2-3", "two\nthree")

    def test_extracted_text_is_returned_whole(self, corpus: Corpus) -> None:
        (found,) = look_up(corpus, "page.md:12-13", ReferenceScope()).passages
        assert (found.locator, found.content) == ("page.md:10-20", "all of it")

    @pytest.mark.parametrize(
        ("reference", "chunk_ids"),
        [
            ("#guide:1:1", ["guide#a"]),
            ("#guide:2:1", ["guide#b"]),
            ("#guide:1:2", ["guide#a", "guide#b"]),
            ("#guide:2:999999999", ["guide#b"]),
        ],
    )
    def test_passages_of_a_document_counted_from_one(
        self, corpus: Corpus, reference: str, chunk_ids: list[str]
    ) -> None:
        found = look_up(corpus, reference, ReferenceScope())
        assert (found.kind, found.reference) == ("passages", reference)
        assert [passage.chunk_id for passage in found.passages] == chunk_ids
        assert found.passages[0] in look_up(corpus, "guide", ReferenceScope()).passages

    def test_a_passage_has_its_number_in_the_document(self, corpus: Corpus) -> None:
        assert [
            passage.place for passage in look_up(corpus, "guide", ReferenceScope()).passages
        ] == [1, 2]
        assert [
            passage.place for passage in look_up(corpus, "guide#b", ReferenceScope()).passages
        ] == [2]
        assert [
            passage.place for passage in look_up(corpus, "guide.md:5-5", ReferenceScope()).passages
        ] == [2]

    @pytest.mark.parametrize("reference", ["#guide:3:1", "#guide:0:1", "#guide:1:0"])
    def test_numbers_that_a_document_does_not_have(self, corpus: Corpus, reference: str) -> None:
        with pytest.raises(UsageError) as error:
            look_up(corpus, reference, ReferenceScope())
        assert error.value.code == "not_found"
        assert "#guide:1:2" in error.value.hint

    def test_an_id_that_looks_like_counted_passages_is_an_id(self, tmp_path: Path) -> None:
        documents = [document("a", ["x", "y"]), document("#a:1:1", ["z"])]
        with open_reader(build(tmp_path, documents)) as corpus:
            assert look_up(corpus, "#a:1:1", ReferenceScope()).kind == "document"
            assert look_up(corpus, "##a:1:1:1:1", ReferenceScope()).document.document_id == "#a:1:1"

    @pytest.mark.sample(3)
    @pytest.mark.parametrize(
        "reference",
        ["", "nothing", "guide.md:4-4", "guide.md:3-1", "other.md:1-3",
         "guide.md:1-99999999999", "guide.md:-1-2", "\x00", "' OR 1=1 --", "%", "\ud800",
         "#guide", "#guide:1", "#guide:1:", "#guide:-1:1", "#other:1:1", "##:1:1", "#:1:1", "#\ud800:1:1"],
    )  # fmt: skip
    def test_an_unknown_reference_is_an_error(self, corpus: Corpus, reference: str) -> None:
        with pytest.raises(UsageError) as error:
            look_up(corpus, reference, ReferenceScope())
        assert error.value.code == "not_found"
        assert error.value.hint

    def test_a_document_without_text(self, tmp_path: Path) -> None:
        with open_reader(build(tmp_path, [document("empty", [])])) as corpus:
            with pytest.raises(UsageError, match="has no text") as error:
                look_up(corpus, "empty", ReferenceScope())
            assert error.value.code == "no_text"

    def test_lines_that_belong_to_several_documents(self, tmp_path: Path) -> None:
        path = build(tmp_path, [])
        documents = [
            StoredDocument(
                DocumentMetadata(f"d{n}", "wiki", "t", "u"), (chunk(f"d{n}#0", f"text {n}"),)
            )
            for n in (1, 2)
        ]
        with open_writer(path) as corpus, corpus.writing():
            put_file(corpus, file_of("both"), documents)
        with open_reader(path) as corpus, pytest.raises(UsageError) as error:
            look_up(corpus, "both.md:1-1", ReferenceScope())
        assert error.value.code == "ambiguous_reference"
        assert "d1, d2" in error.value.hint

    def test_a_document_without_these_lines_says_which_it_has(self, corpus: Corpus) -> None:
        with pytest.raises(UsageError) as error:
            look_up(corpus, "guide.md:7-9", ReferenceScope())
        assert "the lines 1 to 6" in error.value.hint

    @pytest.mark.parametrize(
        ("scope", "reference", "is_found"),
        [
            (ReferenceScope(absolute=True), "/docs/guide.md", True),
            (ReferenceScope(absolute=True), "/docs/./guide.md:1-2", True),
            (ReferenceScope(absolute=True), "../docs/guide.md", False),
            (ReferenceScope(absolute=True, folder="/other"), "../docs/guide.md", True),
            (ReferenceScope(absolute=True, folder="/other"), "../docs/guide.md:1-2", True),
            (ReferenceScope(folder="/other"), "../docs/guide.md", False),
            (ReferenceScope(), "/docs/guide.md", False),
        ],
    )
    def test_a_path_on_this_machine_counts_only_if_allowed(
        self, tmp_path: Path, scope: ReferenceScope, reference: str, is_found: bool
    ) -> None:
        path = build(tmp_path, [])
        with open_writer(path) as corpus, corpus.writing():
            put_file(corpus, file_of("guide"), [document("guide", ["one"])])
        with open_reader(path) as corpus:
            if is_found:
                assert look_up(corpus, reference, scope).document.document_id == "guide"
            else:
                with pytest.raises(UsageError) as error:
                    look_up(corpus, reference, scope)
                assert error.value.code == "not_found"

    @pytest.mark.parametrize(
        ("reference", "suggested"),
        [
            ("Guide", "guide"),
            ("giude.md", "guide"),
            ("notes/guide.md:1-2", "guide:1-2"),
            ("#page-2:1:1", "page"),
            ("entirely different", None),
            ("", None),
        ],
    )
    def test_an_error_suggests_what_may_have_been_meant(
        self, corpus: Corpus, reference: str, suggested: str | None
    ) -> None:
        with pytest.raises(UsageError) as error:
            look_up(corpus, reference, ReferenceScope())
        if suggested is None:
            assert "did you mean" not in error.value.hint
        else:
            first = error.value.hint.removeprefix("did you mean ").rstrip("?").split(" or ")[0]
            assert first == suggested

    def test_what_no_role_may_read_is_not_suggested(self, corpus: Corpus) -> None:
        scope = ReferenceScope(may_read=lambda passage: passage.document.source_id != "wiki")
        with pytest.raises(UsageError) as error:
            look_up(corpus, "giude.md", scope)
        assert "guide" not in error.value.hint

    def test_lines_that_end_before_they_begin(self, corpus: Corpus) -> None:
        with pytest.raises(UsageError, match="end before they begin") as error:
            look_up(corpus, "guide.md:3-1", ReferenceScope())
        assert error.value.hint == "ask for guide.md:1-3"
