"""List documents by prefix, and look several references up at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.contracts.request import MAX_REFERENCES, ListRequest
from rolebundle.errors import UsageError
from rolebundle.retrieval.listing import list_documents, look_up_all
from rolebundle.retrieval.lookup import ReferenceScope
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from support.corpora import build, document

OWNER = ReferenceScope(absolute=True, folder="/docs/guides")
IDS_AND_PATHS = ReferenceScope()
NAMES = ("guides/a", "guides/b", "guides-old/c", "notes/deep/d")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    documents = [document(name, ["one", "two"], source_id="wiki") for name in NAMES]
    documents.append(document("mail-1", ["one"], source_id="mail"))
    with open_reader(build(tmp_path_factory.mktemp("listing"), documents)) as opened:
        yield opened


def listed(corpus: Corpus, prefix: str | None, scope: ReferenceScope = IDS_AND_PATHS) -> list[str]:
    page = list_documents(corpus, ListRequest(prefix=prefix), scope)
    return [item.document_id for item in page.documents]


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        (None, ["guides-old/c", "guides/a", "guides/b", "mail-1", "notes/deep/d"]),
        ("guides", ["guides/a", "guides/b"]),
        ("./guides/", ["guides/a", "guides/b"]),
        ("guides/a.md", ["guides/a"]),
        ("notes", ["notes/deep/d"]),
        ("mail", ["mail-1"]),
        ("wiki", ["guides-old/c", "guides/a", "guides/b", "notes/deep/d"]),
        ("guides*/?.md", ["guides-old/c", "guides/a", "guides/b"]),
        ("**/d", ["notes/deep/d"]),
    ],
)
def test_a_prefix_is_a_folder_a_path_a_source_or_a_glob(
    corpus: Corpus, prefix: str | None, names: list[str]
) -> None:
    assert listed(corpus, prefix) == names


@pytest.mark.parametrize("prefix", ["/docs/guides", "/docs/guides/*.md", ".", "a.md", "../guides"])
def test_a_path_on_this_machine_counts_only_if_allowed(corpus: Corpus, prefix: str) -> None:
    assert set(listed(corpus, prefix, OWNER)) <= {"guides/a", "guides/b"}
    if prefix == ".":
        return
    with pytest.raises(UsageError) as error:
        listed(corpus, prefix)
    assert error.value.code == "not_found"


def test_paths_of_files_are_shown_only_if_allowed(corpus: Corpus) -> None:
    [listed] = list_documents(corpus, ListRequest(prefix="guides/a"), OWNER).documents
    [hidden] = list_documents(corpus, ListRequest(prefix="guides/a"), IDS_AND_PATHS).documents
    assert (listed.absolute_path, hidden.absolute_path) == ("/docs/guides/a.md", None)
    assert (listed.path, listed.chunks, listed.source_id) == ("guides/a.md", 2, "wiki")


def test_pages_are_complete_and_without_repetition(corpus: Corpus) -> None:
    after, names = None, []
    while True:
        page = list_documents(corpus, ListRequest(limit=2, after=after), IDS_AND_PATHS)
        names += [item.document_id for item in page.documents]
        if page.next is None:
            break
        after = page.next
    assert names == listed(corpus, None)


def test_what_no_role_may_read_is_not_listed(corpus: Corpus) -> None:
    scope = ReferenceScope(may_read=lambda passage: passage.document.source_id == "mail")
    assert listed(corpus, None, scope) == ["mail-1"]
    with pytest.raises(UsageError) as error:
        listed(corpus, "guides", scope)
    assert error.value.hint == "list all documents with ls"


def test_references_and_globs_are_looked_up_together(corpus: Corpus) -> None:
    answer = look_up_all(
        corpus, ["guides/*.md", "guides/a", "mail-1#0", "nothing", "no/*.x"], IDS_AND_PATHS
    )
    assert [found.reference for found in answer.lookups] == ["guides/a", "guides/b", "mail-1#0"]
    assert [(f.reference, f.code) for f in answer.failures] == [
        ("nothing", "not_found"),
        ("no/*.x", "not_found"),
    ]


def test_a_glob_with_too_many_documents_gives_the_first(tmp_path: Path) -> None:
    documents = [document(f"n/{number:03}", ["x"]) for number in range(MAX_REFERENCES + 1)]
    with open_reader(build(tmp_path, documents)) as corpus:
        answer = look_up_all(corpus, ["n/*"], IDS_AND_PATHS)
    assert len(answer.lookups) == MAX_REFERENCES
    assert [failure.code for failure in answer.failures] == ["too_many_documents"]
