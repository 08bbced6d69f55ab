import pytest

from rolebundle.ingest.readers.lines import plain_words
from support.amounts import linear_time
from support.reading import read_document

TEXT = """\
.. SPDX-License-Identifier: MIT
   a comment
   of three lines

.. _label:

=====
Title
=====

:Author: Someone
:Date: today

Section
-------

A paragraph that ends like this::

  literal block

  still literal

* one
* two

  more of two

#. first
#. second

.. code-block:: python
   :linenos:

   x = 1

.. note:: Take care

   of this as well.

+---+---+
| a | b |
+---+---+

=== ===
 a   b
=== ===
 1   2
=== ===

Sub :ref:`part <x>`
~~~~~~~~~~~~~~~~~~~

>>> 1 + 1
2

----

.. _site: https://example.org

Other
-----
text right below
"""


def read(text):
    return read_document(text, "a.rst")


def test_blocks_are_the_source_lines_of_each_structure():
    document = read(TEXT)
    assert [(b.kind, b.level, b.heading or b.text.split("\n")[0]) for b in document.blocks] == [
        ("heading", 1, "Title"),
        ("paragraph", 0, ":Author: Someone"),
        ("heading", 2, "Section"),
        ("paragraph", 0, "A paragraph that ends like this::"),
        ("code", 0, "  literal block"),
        ("list", 0, "* one"),
        ("list", 0, "#. first"),
        ("code", 0, ".. code-block:: python"),
        ("paragraph", 0, ".. note:: Take care"),
        ("paragraph", 0, "   of this as well."),
        ("table", 0, "+---+---+"),
        ("table", 0, "=== ==="),
        ("heading", 3, "Sub part"),
        ("code", 0, ">>> 1 + 1"),
        ("paragraph", 0, ".. _site: https://example.org"),
        ("heading", 2, "Other"),
        ("paragraph", 0, "text right below"),
    ]
    assert document.inferred == {"title": "Title"}
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("A :func:`name` call", "A name call"),
        ("``literal`` *stress*", "literal stress"),
        ("`text <https://example.org>`_", "text"),
        ("2 * 3 * 4", "2 * 3 * 4"),
    ],
)
def test_titles_are_plain_words(title, words):
    assert plain_words(title) == words


@pytest.mark.parametrize(
    "line",
    [".. _" + "`a` " * 2000, "== ==\nx\n" * 3000, ".. _" + "\\" * 5000, ":a" * 5000 + "\n===="],
)
def test_hostile_lines_take_linear_time(line):
    read(line + "\n")


def test_targets_without_a_blank_line_take_linear_time():
    targets = "".join(f".. _target{number}:\n" for number in range(20_000))
    with linear_time(len(targets)):
        assert read(f"{targets}text\n").blocks[0].text == "text"


def test_a_footnote_whose_text_begins_on_the_next_line_is_no_comment():
    lines = ["Notes", "=====", "", ".. [#one]", "    The text of the footnote.", "", "    More."]
    kinds = [(block.kind, block.start_line) for block in read("\n".join(lines)).blocks]
    assert kinds == [("heading", 1), ("paragraph", 4), ("paragraph", 7)]
