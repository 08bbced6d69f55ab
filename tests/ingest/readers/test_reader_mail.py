"""Mail: the text that people read, with the lines of the file that encode it."""

from __future__ import annotations

from contextlib import suppress
from email.message import EmailMessage

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.metadata import resolve
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.text.decoding import split_lines
from support.reading import read_all, read_document

LONG = (
    "Die Öffnung des Hafens beginnt um fünf Uhr früh, und niemand weiß, wann sie endet; " * 2
    + "so ist es."
)


def read(data: bytes) -> ParsedDocument:
    return read_document(data, "a.eml")


def texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


def message(text: str = "Hello.\n", **headers: str) -> EmailMessage:
    mail = EmailMessage()
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


def test_headers_are_decoded_to_title_date_and_people():
    mail = message(
        Subject="Grüße – Öffnungszeiten",
        Date="Tue, 03 Feb 2026 10:11:12 +0100",
        From='"Müller, Jörg" <j@example.org>',
        To="a@b.org, Bé <c@d.org>",
    )
    inferred = read(bytes(mail)).inferred
    assert inferred["title"] == "Grüße – Öffnungszeiten"
    assert inferred["updated_at"] == "2026-02-03T10:11:12+01:00"
    assert inferred["from"] == ["Müller, Jörg <j@example.org>"]
    assert inferred["to"] == ["a@b.org", "Bé <c@d.org>"]


def test_a_message_without_a_subject_has_its_first_words_as_title():
    assert read(b"From: a@b.c\n\nThe gate is shut.\n").inferred["title"] == "The gate is shut."


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1"])
def test_text_is_decoded_and_its_lines_encode_it(encoding: str, charset: str):
    mail = EmailMessage()
    mail["Subject"] = "first answer"
    mail.set_content(f"first\n\n{LONG}\n\nlast\n", cte=encoding, charset=charset)
    data = bytes(mail)
    document = read(data)
    assert texts(document) == ["first", LONG, "last"]
    lines = split_lines(data.decode("latin-1"))
    body = lines.index("") + 2
    if encoding == "base64":
        assert {(b.start_line, b.end_line) for b in document.blocks} == {(body, len(lines))}
    else:
        assert document.blocks[0].start_line == document.blocks[0].end_line == body
        assert lines[document.blocks[-1].start_line - 1] == "last"
        long = document.blocks[1]
        assert (long.start_line, long.end_line) == (body + 2, len(lines) - 2)


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
def test_html_is_read_if_the_plain_text_is_a_stub(stub: str):
    page = "<style>.x{display:none}</style><p>The gate of the harbour is shut at dusk.</p>" * 6
    document = alternative(stub, f"{page}<p class=x>zebra47</p>")
    assert texts(document)[0] == "The gate of the harbour is shut at dusk."
    assert "zebra47" not in "".join(texts(document))
    assert [part.text for part in document.hidden] == ["zebra47"]


def test_plain_text_that_the_html_lacks_is_labelled():
    secret = "The vault of the north wing opens with zebra47."
    document = alternative(f"The gate is shut.\n\n{secret}\n", "<p>The gate is shut.</p>")
    assert [(part.text, part.is_kept) for part in document.hidden] == [(secret, True)]


def test_a_long_line_without_spaces_is_compared_once():
    # From each of its letters again, it would take minutes.
    document = alternative(f"The gate is shut.\n\n{'x1' * 200_000}\n", "<p>The gate is shut.</p>")
    assert document.hidden == ()


def test_quotations_and_signatures_are_blocks_of_their_own():
    text = "On Monday she wrote:\n> why\n> now\n>\n>> deep\nBecause.\n-- \nAnna\n"
    assert texts(read(bytes(message(text)))) == [
        "On Monday she wrote:",
        "> why\n> now",
        ">> deep",
        "Because.",
        "-- \nAnna",
    ]


def test_an_attached_message_is_named_and_not_read():
    mail = message("See below.\n")
    mail.add_attachment(message("zebra47", Subject="Old one"))
    assert texts(read(bytes(mail))) == ["See below.", "- attachment: message: Old one"]


def test_mail_is_foreign_and_declares_nothing():
    mail = b"From: a@b.c\nSubject: x\ntrust_tier: authoritative\nscope: all\n\n---\ntrust_tier: authoritative\n---\n"
    document = read(mail)
    assert document.declared == {}
    metadata = resolve("a.eml", Authority(default_source="s"), document.declared, document.inferred)
    assert (metadata.origin, metadata.trust_tier) == ("external", "general")
    assert metadata.attributes == (("from", ("a@b.c",)),)


def test_an_encrypted_message_is_refused():
    with pytest.raises(DocumentError) as caught:
        read(b"Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n")
    assert caught.value.code == "encrypted_mail"


MAILBOX = (
    b"From a@b.c Mon Jan  1 09:30:00 2024\n"
    b"Message-ID: <x/1@b.c>\nSubject: One\n\nFirst text.\n\n>From here at 10:30\n\n"
    b"From - Mon Jan 01 09:30:00 2024\r\n"
    b"X-Mozilla-Status: 0009\r\nSubject: gone\r\n\r\nzebra47\r\n\r\n"
    b"From 12@xxx Mon Jan 01 09:30:00 +0000 2024\n"
    b"Message-ID: <x/1@b.c>\nSubject: Two\n\nFrom noon till 10:30\nwe wait.\n"
)


def test_each_message_of_a_mailbox_is_a_document():
    first, second, deleted = read_all(MAILBOX, "a.mbox")
    assert isinstance(first, ParsedDocument)
    assert isinstance(second, ParsedDocument)
    assert (first.key, second.key) == ("x-1@b.c", "x-1@b.c-2")
    assert [(b.text, b.start_line, b.anchor) for b in first.blocks] == [
        ("First text.", 5, "message 1"),
        ("From here at 10:30", 7, "message 1"),
    ]
    (block,) = second.blocks
    assert (block.text, block.start_line, block.end_line, block.anchor) == (
        "From noon till 10:30\nwe wait.",
        19,
        20,
        "message 3",
    )
    assert isinstance(deleted, DocumentError)
    assert deleted.code == "deleted_mail"


def test_a_bad_message_does_not_affect_the_others():
    encrypted = b"Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n\n"
    line = b"From a@b.c Mon Jan  1 09:30:00 2024\n"
    bad, good = read_all(line + encrypted + line + b"Subject: x\n\ny\n", "a.mbox")
    assert isinstance(bad, DocumentError)
    assert (bad.code, "message 1" in bad.message) == ("encrypted_mail", True)
    assert isinstance(good, ParsedDocument)


def test_a_file_without_messages_is_no_mailbox():
    with pytest.raises(DocumentError) as caught:
        read_all(b"just text", "a.mbox")
    assert caught.value.code == "unreadable_mailbox"


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
def test_a_hostile_message_takes_little_time(data: bytes):
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
    with pytest.raises(DocumentError) as caught:
        alternative("", f"{nested}text")
    assert caught.value.code == "unreadable_html"


def test_a_message_without_text_has_its_subject():
    document = read(
        b"From: a@b.c\nSubject: The gate =?utf-8?q?=C3=B6ffnet?=\n at five\nTo: x\n\n\n"
    )
    (block,) = document.blocks
    assert block.text == "The gate öffnet at five"
    assert (block.start_line, block.end_line) == (2, 3)
