"""Notebooks: cells with their lines, no outputs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.parsed import ParsedDocument
from support.reading import read_document

CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Harbour *study*\n", "\n", "Tides."]},
    {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [{"output_type": "stream", "text": ["import os\n", "zebra47"]}],
        "source": ["import os\n", "\n", "os.getcwd()"],
    },
    {"cell_type": "code", "metadata": {}, "outputs": [], "source": []},
    {"cell_type": "raw", "metadata": {}, "source": "raw text"},
]


def notebook(cells: list[dict[str, Any]], **more: Any) -> str:
    metadata = {"kernelspec": {"language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, **more}, indent=1)


def read(text: str) -> ParsedDocument:
    return read_document(text, "a.ipynb")


def test_cells_are_blocks_with_their_lines_and_number():
    text = notebook(CELLS)
    document = read(text)
    lines = text.split("\n")
    assert [(b.kind, b.anchor, b.text) for b in document.blocks] == [
        ("heading", "cell 1", "# Harbour *study*"),
        ("paragraph", "cell 1", "Tides."),
        ("code", "cell 2", "import os\n\nos.getcwd()"),
        ("paragraph", "cell 4", "raw text"),
    ]
    for block in document.blocks:
        cited = lines[block.start_line - 1 : block.end_line]
        if block.aligned:
            assert [
                json.loads(line.rstrip(",")).rstrip("\n") for line in cited
            ] == block.text.split("\n")
        else:
            assert json.dumps(block.text) in cited[0]
    assert document.inferred == {
        "title": "Harbour study",
        "programming_language": "python",
    }


def test_a_passage_is_in_one_cell_and_below_the_headings_of_others():
    chunks = chunk_document("d", read(notebook(CELLS)), ChunkSettings())
    assert [(c.anchor, c.headings) for c in chunks] == [
        ("cell 1", ("Harbour study",)),
        ("cell 2", ("Harbour study",)),
        ("cell 4", ("Harbour study",)),
    ]


def test_outputs_are_not_read():
    assert "zebra47" not in repr(read(notebook(CELLS)).blocks)


@pytest.mark.parametrize(
    "metadata",
    [
        {"jupyter": {"source_hidden": True}},
        {"tags": ["hide-input"]},
        {"tags": ["x", "remove-cell"]},
        {"hide_input": True},
        {"hidden": True},
    ],
)
@pytest.mark.parametrize("kind", ["code", "markdown"])
def test_cells_that_are_not_shown_are_labelled(metadata: dict[str, Any], kind: str):
    document = read(notebook([{"cell_type": kind, "metadata": metadata, "source": ["zebra47"]}]))
    assert [(part.text, part.is_kept, part.is_labelled) for part in document.hidden] == [
        ("zebra47", True, True)
    ]


def test_comments_in_markdown_cells_are_left_out():
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["a <!-- zebra47 --> b"]}]
    document = read(notebook(cells))
    assert "zebra47" not in repr(document.blocks)
    assert "zebra47" in repr(document.hidden)


def test_numbers_that_are_not_json_are_accepted_in_outputs():
    text = notebook(CELLS).replace('"execution_count": 1', '"execution_count": NaN')
    assert [block.text for block in read(text).blocks][-1] == "raw text"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cells": ', "[" * 100_000])
def test_what_is_no_notebook_is_refused(text: str):
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert caught.value.code == "unreadable_notebook"
