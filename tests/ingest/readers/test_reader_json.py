import json

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from support.reading import read_all

CORPUS = {
    "version": "1.0",
    "documents": [
        {
            "document_id": "d1",
            "source_id": "s",
            "title": "T",
            "house_key": 1,
            "chunks": [
                {
                    "chunk_id": "c1",
                    "content": 'first \u2014 "quoted"\nline',
                    "content_type": "code",
                    "tags": ["t"],
                    "applicable_roles": ["r"],
                },
                {"chunk_id": "c2", "content": "first", "excluded_roles": ["x"]},
            ],
        },
        {"document_id": "d2", "source_id": "s", "title": "U", "chunks": []},
    ],
}


def read(text, path="a.json"):
    return read_all(text, path)


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_corpus_keeps_its_chunks_and_their_lines(indent):
    text = json.dumps(CORPUS, indent=indent)
    first, second = read(text)
    assert first.declared == {"document_id": "d1", "source_id": "s", "title": "T"}
    assert first.key == "d1"
    assert "house_key" in first.notes[0]
    first_chunk, second_chunk = chunk_document("ignored", first, ChunkSettings())
    assert (
        first_chunk.chunk_id,
        first_chunk.content_type,
        first_chunk.tags,
        first_chunk.applicable_roles,
    ) == (
        "c1",
        "code",
        ("t",),
        ("r",),
    )
    assert second_chunk.excluded_roles == ("x",)
    for chunk in (first_chunk, second_chunk):
        lines = text.split("\n")[chunk.start_line - 1 : chunk.end_line]
        assert json.dumps(chunk.content) in "\n".join(lines)
    assert second.ready == ()


def test_the_reference_corpus_is_read(shared):
    text = (shared / "compat/knowledge-core/corpus-divergence.json").read_text("utf-8")
    documents = read(text)
    assert len(documents) == 18
    assert sum(len(d.ready) for d in documents) == 30
    assert all(not d.notes for d in documents)


def test_other_json_is_text():
    (document,) = read('\n{\n "a": [1,\n  2]\n}\n\n')
    (block,) = document.blocks
    assert (block.kind, block.start_line, block.end_line) == ("code", 2, 5)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "Expecting value"),
        ('{\n "a": 1,\n "a": 2\n}', 3, "occurs twice"),
        ('{\n "a": [\n NaN]\n}', 3, "NaN"),
        ("[1,\n -Infinity]", 2, "Infinity"),
        ("[\n" + "9" * 5000 + "]", 2, "digits"),
        ("\n" + "[" * 101 + "]" * 101, 2, "levels"),
        ("[" * 100_000, 1, "levels"),
        ('{"a":' * 50_000, 1, "levels"),
        ('{"a": 1}\n{"a": 2}', 2, "more text"),
        ('{"a"\n 1}', 2, ""),
        ('["\x01"]', 1, "control"),
    ],
)
def test_json_that_is_not_strict_is_an_error_with_its_line(text, line, reason):
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert caught.value.code == "bad_json"
    assert f"a.json:{line}:" in caught.value.message
    assert reason in caught.value.hint


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"chunk_id": None}, "chunk_id"),
        ({"content": " "}, "content"),
        ({"content_type": "poem"}, "excerpt"),
        ({"tags": "t"}, "tags"),
        ({"excluded_roles": [1]}, "excluded_roles"),
    ],
)
def test_a_malformed_chunk_is_an_error_with_its_line(change, reason):
    chunk = {"chunk_id": "c", "content": "x", **change}
    corpus = {"documents": [{"document_id": "d", "chunks": [chunk]}]}
    with pytest.raises(DocumentError) as caught:
        read(json.dumps(corpus, indent=1))
    assert "a.json:6:" in caught.value.message
    assert reason in caught.value.message


def test_surrogates_never_reach_a_chunk():
    corpus = '{"documents": [{"document_id": "d", "chunks": [{"chunk_id": "c", "content": "a\\ud800\\u0000"}]}]}'
    (document,) = read(corpus)
    assert document.ready[0].content == "a\ufffd\ufffd"
