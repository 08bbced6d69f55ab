"""Readers of records: JSON, notebooks, mail, separated and plain text."""

import json
import quopri
from base64 import b64decode, b64encode
from contextlib import suppress
from email.message import EmailMessage
from typing import Any

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.metadata import resolve
from rolebundle.ingest.parsed import ParsedDocument
from support.reading import properties, read_all, read_document

# -- Mail: the text that people read ----------------------------------------------------------------

LONG = (
    "Die Öffnung des Hafens beginnt um fünf Uhr früh, und niemand weiß, wann sie endet; " * 2 + "."
)


def read(data: bytes) -> ParsedDocument:
    return read_document(data, "a.eml")


def texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


def message(text: str = "Hello.\n", **headers: str) -> EmailMessage:
    mail = EmailMessage()
    for name, value in headers.items():
        mail[name] = value
    mail.set_content(text)
    return mail


def test_headers_are_decoded_to_title_date_and_people():
    mail = message(
        Subject="Grüße – Öffnungszeiten",
        Date="Tue, 03 Feb 2026 10:11:12 +0100",
        From='"Müller, Jörg" <j@example.org>',
        To="a@b.org, Bé <c@d.org>",
    )
    assert {
        "title": "Grüße – Öffnungszeiten",
        "updated_at": "2026-02-03T10:11:12+01:00",
        "from": ["Müller, Jörg <j@example.org>"],
        "to": ["a@b.org", "Bé <c@d.org>"],
    }.items() <= read(bytes(mail)).inferred.items()


def test_addresses_without_a_comma_are_not_cut():
    people = read(b"To: a@b.c d@e.f\n\nx\n").inferred["to"]
    assert people == ["a@b.c d@e.f"]


def test_a_message_without_a_subject_has_its_first_words_as_title():
    assert read(b"From: a@b.c\n\nThe gate is shut.\n").inferred["title"] == "The gate is shut."


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1"])
def test_text_is_decoded_and_has_the_lines_of_its_message(encoding, charset):
    mail = message(Subject="first answer")
    mail.set_content(f"first\n\n{LONG}\n\nlast\n", cte=encoding, charset=charset)
    document = read(bytes(mail))
    assert texts(document) == ["first", LONG, "last"]
    lines = bytes(mail).split(b"\n")
    decoded = {"base64": b64decode, "quoted-printable": quopri.decodestring, "8bit": bytes}[
        encoding
    ]
    for block in document.blocks:
        rows = decoded(b"\n".join(lines[block.start_line - 1 : block.end_line]))
        assert block.text in rows.decode(charset, "replace")
        assert encoding == "base64" or block.end_line - block.start_line <= 6


def test_the_parts_of_a_message_have_their_own_lines():
    mail = message("\n\n".join(f"Part {n}." for n in range(50)), Subject="x")
    mail.add_alternative("<p>Part 1.</p>\n" * 50, subtype="html")
    mail.add_attachment(message("One.\n\nTwo.\n", Subject="Old", From="a@b.c"))
    for name in ("one.bin", "two.bin"):
        mail.add_attachment(b"Part 1.", "application", "octet-stream", filename=name, cte="7bit")
    mail.add_attachment("Last.\n")
    source = bytes(mail).decode().split("\n")
    for block in read(bytes(mail)).blocks:
        cited = "\n".join(source[block.start_line - 1 : block.end_line])
        name = block.text.removeprefix("- attachment: ")
        assert name in cited or set(block.text.split("\n")) <= set(cited.split("\n"))
        assert len(cited) < 200


def alternative(plain: str, html: str) -> ParsedDocument:
    mail = message(plain)
    mail.add_alternative(html, subtype="html")
    mail.add_attachment(b"x" * 99, maintype="application", subtype="pdf", filename="Übersicht.pdf")
    return read(bytes(mail))


def test_plain_text_is_preferred_and_attachments_are_named():
    document = alternative("The gate is shut.\n", "<p>The gate is <b>shut</b>.</p>")
    assert texts(document) == ["The gate is shut.", "- attachment: Übersicht.pdf"]
    assert document.inferred["attachments"] == ["Übersicht.pdf"]
    assert document.hidden == ()


@pytest.mark.parametrize("stub", ["", "\n \n", "Please use a mail program that shows HTML.\n"])
def test_html_is_read_if_the_plain_text_is_a_stub(stub):
    page = "<style>.x{display:none}</style><p>The gate of the harbour is shut at dusk.</p>" * 6
    document = alternative(stub, f"{page}<p class=x>zebra47</p>")
    assert texts(document)[0] == "The gate of the harbour is shut at dusk."
    assert "zebra47" not in "".join(texts(document))
    assert [part.text for part in document.hidden] == ["zebra47"]


def test_a_long_line_without_spaces_is_compared_once():
    # From each of its letters again, it would take minutes.
    document = alternative(f"The gate is shut.\n\n{'x1' * 200_000}\n", "<p>The gate is shut.</p>")
    assert document.hidden == ()


def test_forwarded_messages_are_read_where_they_are():
    inner = message("zebra47\n", Subject="Old one", From="c@d.e")
    digest = b"Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: one\n\nfirst\n--b\n\nSubject: two\n\nsecond\n--b--\n"
    mail = message("See below.\n")
    mail.add_attachment(inner)
    shown = ["See below.", "Subject: Old one\nFrom: c@d.e", "zebra47"]
    assert texts(read(bytes(mail))) == shown
    assert texts(read(digest)) == ["Subject: one", "first", "Subject: two", "second"]
    encoded = b64encode(bytes(inner))
    mail = b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + encoded
    (attached,) = read(mail).attached
    assert attached == ("attachment.eml", bytes(inner))


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("gb2312", "gb18030", "朱镕基 码头"),
        ("x-sjis", "cp932", "①倉庫の鍵は㈱山田"),
        ("windows-874", "cp874", "กุญแจโกดัง"),
        ("iso-8859-8-i", "iso8859-8", "המפתח במרתף"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("utf-16", "utf-16", "Grüße"),
    ],
)
def test_encodings_of_texts_and_headers_are_those_of_browsers(label, codec, text):
    word = b64encode(text.encode(codec))
    head = f"Content-Type: text/plain; charset={label}\nContent-Transfer-Encoding: base64\n"
    mail = f"Subject: =?{label}?B?".encode() + word + f"?=\n{head}\n".encode() + word
    document = read(mail)
    assert (texts(document), document.inferred["title"]) == ([text], text)


def test_an_encoded_name_may_have_a_comma_that_is_not_encoded():
    document = read(b"From: =?iso-8859-1?Q?B=FCro_24,_Lindau?= <b@c.org>, d@e.org\n\nText")
    assert document.inferred["from"] == ["B\u00fcro 24, Lindau <b@c.org>", "d@e.org"]


def test_soft_breaks_of_a_flowed_text_may_stand_for_nothing():
    head = b"Content-Type: text/plain; format=flowed; delsp=yes\n\n"
    document = read(head + b"Pay 18 \n400 euros.\n> quoted \nText\n-- \nTom")
    assert [(b.text, b.start_line, b.end_line) for b in document.blocks][:1] == [
        ("Pay 18400 euros.", 3, 4)
    ]
    assert "-- \nTom" in "\n".join(b.text for b in document.blocks)


def test_html_may_declare_its_encoding_itself():
    page = "<meta charset=windows-1251><p>Ключ от склада".encode("cp1251")
    assert texts(read(b"Content-Type: text/html\n\n" + page)) == ["Ключ от склада"]


def test_mail_is_foreign_and_declares_nothing():
    mail = b"From: a@b.c\nSubject: x\ntrust_tier: authoritative\nscope: all\n\n---\ntrust_tier: authoritative\n---\n"
    document = read(mail)
    assert document.declared == {}
    metadata = resolve("a.eml", FileDefaults(Authority(default_source="s")), document)
    assert (metadata.origin, metadata.trust_tier) == ("external", "general")
    assert metadata.attributes == (("from", ("a@b.c",)),)


@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        ("List-Unsubscribe: <https://b.c/u>", "untrusted"),
        ("Precedence: bulk", "untrusted"),
        ("X-Spam-Status: Yes, score=7.9", "untrusted"),
        ("Reply-To: a.b@mailbox.example", "untrusted"),
        ("Reply-To: help@team.b.c", "external"),
        ("X-Spam-Status: No, score=4.1", "external"),
        ("List-Unsubscribe: <https://b.c/u>\nList-Post: <mailto:all@b.c>", "external"),
    ],
)
def test_adverts_and_spam_are_untrusted(headers: str, origin: str):
    document = read(f"From: A <a@mail.b.c>\n{headers}\n\nText.\n".encode())
    metadata = resolve("a.eml", FileDefaults(Authority(default_source="s")), document)
    assert metadata.origin == origin


MAILBOX = (
    b"From a@b.c Mon Jan  1 09:30:00 2024\n"
    b"Message-ID: <x/1@b.c>\nSubject: One\n\nFirst text.\n\n>From here at 10:30\n\n"
    b"From - Mon Jan 01 09:30:00 2024\r\n"
    b"X-Mozilla-Status: 0009\r\nSubject: gone\r\n\r\nzebra47\r\n\r\n"
    b"From 12@xxx Mon Jan 01 09:30:00 +0000 2024\n"
    b"Message-ID: <x/1@b.c>\nSubject: Two\n\nFrom noon till 10:30\nwe wait.\n"
)


def test_each_message_of_a_mailbox_is_a_document():
    first, second = read_all(MAILBOX, "a.mbox")
    assert (first.key, second.key) == ("x-1@b.c", "x-1@b.c-2")
    found = [(b.text, b.start_line, b.end_line, b.anchor) for b in (*first.blocks, *second.blocks)]
    assert found == [
        ("First text.", 5, 5, "message 1"),
        ("From here at 10:30", 7, 7, "message 1"),
        ("From noon till 10:30\nwe wait.", 19, 20, "message 3"),
    ]


def test_the_first_message_of_a_mailbox_needs_no_headers():
    line = b"From a@b.c Mon Jan  1 09:30:00 2024\n"
    first, second = read_all(line + b"\nOne.\n\n" + line + b"Subject: x\n\nTwo.\n", "a.mbox")
    assert (texts(first), texts(second)) == (["One."], ["Two."])


def test_a_bad_message_does_not_affect_the_others():
    encrypted = b"Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n\n"
    line = b"From a@b.c Mon Jan  1 09:30:00 2024\n"
    bad, good = read_all(line + encrypted + line + b"Subject: x\n\ny\n", "a.mbox")
    assert isinstance(bad, DocumentError)
    assert (bad.code, "message 1" in bad.message) == ("encrypted_mail", True)
    assert texts(good) == ["y"]


def test_a_file_without_messages_is_no_mailbox():
    with pytest.raises(DocumentError, match=r"\[unreadable_mailbox\]"):
        read_all(b"just text", "a.mbox")


@pytest.mark.parametrize(
    "data",
    [
        b"To: " + b"(<@," * 9_000 + b"\n\nx",
        b"Subject: " + b"=?a?q?" * 20_000 + b"\n\nx",
        b"Content-Type: multipart/mixed" + b";" * 400_000 + b"\n\nx",
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(250))
        + b"x\n" * 200_000,
        b"From a@b.c 09:30\nSubject: x\n\nFrom " + b"00:00" * 100_000 + b"\n",
    ],
    ids=["comments", "words", "parameters", "depth", "times"],
)  # fmt: skip
def test_a_hostile_message_takes_little_time(data):
    with suppress(DocumentError):
        read_all(data, "a.mbox" if data.startswith(b"From ") else "a.eml")


def test_all_of_a_message_in_html_is_its_text():
    page = (
        "<header>Top.</header><div id=content>Middle.</div><main>Main.</main>"
        "<article>Article.</article><footer>Below.</footer>"
    )
    document = read(b"Content-Type: text/html\n\n" + page.encode())
    assert " ".join(texts(document)) == "Top. Middle. Main. Article. Below."


def test_html_that_cannot_be_read_does_not_matter_beside_plain_text():
    nested = "<div>" * 10_000
    assert texts(alternative("The gate is shut.\n", nested))[0] == "The gate is shut."
    with pytest.raises(DocumentError, match=r"\[unreadable_html\]"):
        alternative("", f"{nested}text")


def test_the_last_of_several_rich_forms_is_read():
    parts = "".join(f"--b\nContent-Type: text/html\n\n<p>{word}</p>\n" for word in ("one", "two"))
    head = "Content-Type: multipart/alternative; boundary=b\n\n"
    assert texts(read(f"{head}{parts}--b--\n".encode())) == ["two"]


def test_pictures_in_a_text_are_not_named():
    mail = message("See the plan.\n")
    for disposition in ("inline", "attachment"):
        mail.add_attachment(
            b"x", "image", "png", filename=f"{disposition}.png", disposition=disposition
        )
    assert texts(read(bytes(mail))) == ["See the plan.", "- attachment: attachment.png"]


def test_a_message_without_text_has_its_subject():
    subject = b"Subject: The gate =?utf-8?q?=C3=B6ffnet?=\n at five\n"
    document = read(b"From: a@b.c\n" + subject + b"To: x\n\n\n")
    (block,) = document.blocks
    assert (block.text, block.start_line, block.end_line) == ("The gate öffnet at five", 1, 4)


# -- json ------------------------------------------------------------------------------------------

CHUNK = {
    "chunk_id": "c1", "content": 'first \u2014 "quoted"\nline', "content_type": "code",
    "tags": ["t"], "applicable_roles": ["r"],
}  # fmt: skip
CHUNKS = [CHUNK, {"chunk_id": "c2", "content": "first", "excluded_roles": ["x"]}]
CORPUS = {
    "version": "1.0",
    "documents": [
        {"document_id": "d1", "source_id": "s", "title": "T", "chunks": CHUNKS},
        {"document_id": "d2", "source_id": "s", "title": "U", "chunks": []},
    ],
}


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_corpus_keeps_its_chunks_and_their_lines(indent):
    text = json.dumps(CORPUS, indent=indent)
    first, second = read_all(text, "a.json")
    assert first.declared == {"document_id": "d1", "source_id": "s", "title": "T"}
    assert first.key == "d1"
    first_chunk, second_chunk = chunk_document("ignored", first, ChunkSettings())
    assert (first_chunk.chunk_id, first_chunk.content_type) == ("c1", "code")
    assert (first_chunk.tags, first_chunk.applicable_roles) == (("t",), ("r",))
    assert second_chunk.excluded_roles == ("x",)
    for chunk in (first_chunk, second_chunk):
        lines = text.split("\n")[chunk.start_line - 1 : chunk.end_line]
        assert json.dumps(chunk.content) in "\n".join(lines)
    assert second.ready == ()


def test_the_reference_corpus_is_read(shared):
    text = (shared / "compat/knowledge-core/corpus-divergence.json").read_text("utf-8")
    documents = read_all(text, "a.json")
    assert len(documents) == 18
    assert sum(len(d.ready) for d in documents) == 30
    assert all(not d.notes for d in documents)


def test_other_json_is_text():
    (document,) = read_all('\n{\n "a": [1,\n  2]\n}\n\n', "a.json")
    (block,) = document.blocks
    assert (block.kind, block.start_line, block.end_line) == ("code", 2, 5)


@pytest.mark.parametrize(("text", "line", "reason"), [
    ("", 1, "Expecting value"),
    ('{\n "a": 1,\n "a": 2\n}', 3, "occurs twice"),
    ("[\n" + "9" * 5000 + "]", 2, "digits"),
    ("[" * 100_000, 1, "levels"),
    ('{"a": 1}\n{"a": 2}', 2, "more text"),
])  # fmt: skip
def test_json_that_is_not_strict_is_an_error_with_its_line(text, line, reason):
    with pytest.raises(DocumentError) as caught:
        read_all(text, "a.json")
    assert caught.value.code == "bad_json"
    assert f"a.json:{line}:" in caught.value.message
    assert reason in caught.value.hint


@pytest.mark.parametrize(("change", "reason"), [
    ({"chunk_id": None}, "chunk_id"),
    ({"content": " "}, "content"),
    ({"content_type": "poem"}, "excerpt"),
    ({"tags": "t"}, "tags"),
    ({"excluded_roles": [1]}, "excluded_roles"),
])  # fmt: skip
def test_a_malformed_chunk_is_an_error_with_its_line(change, reason):
    chunk = {"chunk_id": "c", "content": "x", **change}
    corpus = {"documents": [{"document_id": "d", "chunks": [chunk]}]}
    with pytest.raises(DocumentError) as caught:
        read_all(json.dumps(corpus, indent=1), "a.json")
    assert "a.json:6:" in caught.value.message
    assert reason in caught.value.message


# -- jsonl -----------------------------------------------------------------------------------------


def test_a_line_is_a_document():
    metadata = {"domain": "x", "volume": "A"}
    record = {"_id": 7, "title": "T", "text": "one\nline\n\n \ntwo", "metadata": metadata}
    (document,) = read_all("\n" + json.dumps(record) + "\n", "a.jsonl")
    assert document.key == "7"
    assert document.declared == {"document_id": "7", "title": "T", "domain": "x"}
    assert document.declared_at == 2
    blocks = [(block.text, block.start_line, block.end_line) for block in document.blocks]
    assert blocks == [("one\nline", 2, 2), ("two", 2, 2)]
    assert not document.line_exact


def test_a_record_without_text_is_indexed_by_its_title():
    (document,) = read_all('{"_id": "a", "title": "Only this", "text": ""}', "a.jsonl")
    assert [b.text for b in document.blocks] == ["Only this"]


def test_bad_lines_are_reported_and_the_others_are_read():
    good, *bad, last = read_all(
        '{"_id": "a", "text": "x"}\n{oops\n[1]\n{"_id": "a", "text": "y"}\n'
        '{"_id": [], "text": "y"}\n{"_id": "c", "text": 1}\n{"_id": "d", "_id": "e"}\n'
        '{"_id": "f", "metadata": 3}\n{"_id": "z", "text": "x"}\n',
        "a.jsonl",
    )
    assert [good.key, last.key] == ["a", "z"]
    assert all(isinstance(e, DocumentError) and e.code == "bad_json_line" for e in bad)
    assert "line 2 is not JSON" in bad[0].message
    assert "line 3 is not a JSON object" in bad[1].message
    assert "line 4 repeats the _id of line 1" in bad[2].message
    assert len(bad) == 7


def test_a_file_of_bad_lines_gives_a_short_report():
    results = read_all("x\n" * 1000, "a.jsonl")
    assert (len(results), "980 more lines" in results[-1].message) == (21, True)


def test_the_number_of_an_export_is_no_document_id():
    for key, declared in {"_id": "7", "id": None}.items():
        (document,) = read_all(f'{{"{key}": 7, "text": "x"}}', "a.jsonl")
        assert document.key == "7"
        assert document.declared.get("document_id") == declared


# -- Notebooks: cells with their lines, no outputs -------------------------------------------------

OUTPUT = {"output_type": "stream", "text": ["import os\n", "zebra47"]}
CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Harbour *study*\n", "\n", "Tides."]},
    {
        "cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [OUTPUT],
        "source": ["import os\n", "\n", "os.getcwd()"],
    },
    {"cell_type": "code", "metadata": {}, "outputs": [], "source": []},
    {"cell_type": "raw", "metadata": {}, "source": "raw text"},
]  # fmt: skip


def notebook(cells: list[dict[str, Any]], **more: Any) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, **more}, indent=1)


def test_cells_are_blocks_with_their_lines_and_number():
    text = notebook(CELLS)
    document = read_document(text, "a.ipynb")
    lines = text.split("\n")
    assert [(b.kind, b.anchor, b.text) for b in document.blocks] == [
        ("heading", "cell 1", "# Harbour *study*"),
        ("paragraph", "cell 1", "Tides."),
        ("code", "cell 2", "import os\n\nos.getcwd()"),
        ("paragraph", "cell 4", "raw text"),
    ]
    for block in document.blocks:
        cited = "\n".join(lines[block.start_line - 1 : block.end_line])
        assert all(json.dumps(line)[1:-1] in cited for line in block.text.split("\n"))
        assert ('"outputs"' in cited) is False
    assert properties(document) == {"title": "Harbour study"}


def test_a_passage_is_in_one_cell_and_below_the_headings_of_others():
    chunks = chunk_document("d", read_document(notebook(CELLS), "a.ipynb"), ChunkSettings())
    assert [chunk.anchor for chunk in chunks] == ["cell 1", "cell 2", "cell 4"]
    assert {chunk.headings for chunk in chunks} == {("Harbour study",)}


@pytest.mark.parametrize(
    "metadata",
    [{"jupyter": {"source_hidden": True}}, {"tags": ["x", "hide-input"]}, {"hide_input": True}],
)
def test_cells_that_are_not_shown_are_labelled(metadata):
    cell = {"cell_type": "markdown", "metadata": metadata, "source": ["zebra47"]}
    [part] = read_document(notebook([cell]), "a.ipynb").hidden
    assert (part.text, part.is_kept, part.is_labelled) == ("zebra47", True, True)


def test_numbers_that_are_not_json_are_accepted_in_outputs():
    text = notebook(CELLS).replace('"execution_count": 1', '"execution_count": NaN')
    assert [block.text for block in read_document(text, "a.ipynb").blocks][-1] == "raw text"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cells": ', "[" * 100_000])
def test_what_is_no_notebook_is_refused(text):
    with pytest.raises(DocumentError, match=r"\[unreadable_notebook\]"):
        read_document(text, "a.ipynb")


# -- separated -------------------------------------------------------------------------------------

TEXT = """\
before

=== First Case
---
tags: [a]
---
# Inside

text
=== First case ===
more
===
===
"""


def read_separated(text, separator="==="):
    return read_all(text, "cases.txt", "separated", separator)


def test_each_part_is_a_document_with_the_lines_of_the_whole_file():
    documents = read_separated(TEXT)
    assert [(d.key, properties(d).get("title")) for d in documents] == [
        ("0", None),
        ("first-case", "First Case"),
        ("first-case-2", "First case"),
    ]
    assert documents[1].declared == {"tags": ["a"]}
    assert documents[1].declared_at == 5
    blocks = [(block.kind, block.start_line, block.end_line) for block in documents[1].blocks]
    assert blocks == [("heading", 7, 7), ("paragraph", 9, 9)]
    assert [(b.text, b.start_line) for b in documents[2].blocks] == [("more", 11)]


def test_no_separator_is_an_error():
    with pytest.raises(DocumentError, match=r"\[no_separator\]"):
        read_separated("x", "")


def test_bad_front_matter_in_one_part_does_not_affect_the_others():
    good, bad, last = read_separated("=== A\nx\n=== B\n---\nscope: 1\nscope: 2\n---\n=== C\ny\n")
    assert isinstance(bad, DocumentError)
    assert bad.code == "bad_front_matter"
    assert "cases.txt:6" in bad.message
    assert [d.key for d in (good, last)] == ["a", "c"]


# -- text ------------------------------------------------------------------------------------------


def read_text(text, path):
    return read_all(text, path, "text")[0]


def shape(document):
    return [(b.kind, b.level, b.heading, b.start_line, b.end_line) for b in document.blocks]


def test_paragraphs_are_separated_by_blank_lines():
    document = read_text("one\ntwo\n \t\n\nthree\n", "a.txt")
    assert shape(document) == [("paragraph", 0, "", 1, 2), ("paragraph", 0, "", 5, 5)]
    assert "title" not in properties(document)


def test_front_matter_is_read():
    document = read_text("---\ntitle: T\n---\ntext", "a.txt")
    assert document.declared == {"title": "T"}
    assert shape(document) == [("paragraph", 0, "", 4, 4)]


@pytest.mark.parametrize(("path", "mark"), [("a.adoc", "="), ("a.org", "*")])
def test_asciidoc_and_org_have_headings(path, mark):
    document = read_text(f"{mark} Title\ntext\n{mark * 2} Sub\nmore\n{mark}no heading", path)
    assert properties(document) == {"title": "Title"}
    assert shape(document) == [
        ("heading", 1, "Title", 1, 1),
        ("paragraph", 0, "", 2, 2),
        ("heading", 2, "Sub", 3, 3),
        ("paragraph", 0, "", 4, 5),
    ]


@pytest.mark.parametrize("suffix", ["pod", "txt"])
def test_other_formats_of_lines_are_plain_text(suffix):
    text = "1\n00:00:01,000 --> 00:00:04,000\n= Hello =\n\n* one\n"
    document = read_document(text, f"a.{suffix}")
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert texts(document) == text.strip().split("\n\n")


@pytest.mark.parametrize("header", ["Article,PriceEuro,Colour", "Oar1,53,blue"])
def test_each_passage_of_a_table_of_separated_values_has_the_header(header):
    rows = [f"Oar{n},{n * 7 % 90},blue" for n in range(400)]
    document = read_document("\n".join([header, *rows]), "a.csv")
    _, *others = chunk_document("d", document, ChunkSettings())
    headings = (header,) if header.startswith("Article") else ()
    assert len(others) > 3
    assert {chunk.headings for chunk in others} == {headings}


@pytest.mark.parametrize("top", ["Estimate", "Date;2026-04-20", "Estimate\n\nSite;Quay\n"])
def test_a_header_of_separated_values_stands_below_titles_and_keys(top):
    document = read_document(f"{top}\nCode;Item;Colour\n1;Oar;blue", "a.csv")
    assert {block.header for block in document.blocks} == {"Code;Item;Colour"}


ESCAPES = [
    (
        "a.json",
        r'["F\u00e4hre \ud83d\ude00", "\\u00e4 \u0022 \u2028"]',
        r'["Fähre 😀", "\\u00e4 \u0022 \u2028"]',
    ),
    ("a.properties", r"ferry=F\u00e4hre", "ferry=Fähre"),
    ("a.yaml", r'ferry: "F\u00E4hre"', 'ferry: "Fähre"'),
    ("a.xml", "<a>F&auml;hre &#228; &lt; &amp;</a>", "<a>Fähre ä &lt; &amp;</a>"),
    ("a.md", "F&auml;hre `&auml;`\n\n```\n&auml;\n```", "Fähre `&auml;`\n\n```\n&auml;\n```"),
    ("a.py", r"x = 'F\u00e4hre'", r"x = 'F\u00e4hre'"),
]


@pytest.mark.parametrize(("path", "text", "shown"), ESCAPES)
def test_escapes_of_letters_are_shown_as_letters_on_the_same_lines(path, text, shown):
    assert "\n".join(read_document(text, path).lines) == shown
