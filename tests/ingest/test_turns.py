"""Passages that stand alone: turns, messages, mails; and links, tags and tasks of notes."""

from itertools import groupby
from pathlib import Path

import pytest

from ingest.office.word import docx, paragraph
from rolebundle.contracts.documents import message_of
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.clauses import with_clauses
from rolebundle.ingest.turns import messages, with_turns
from rolebundle.retrieval.packet import packet
from rolebundle.text.links import found_in, leads_to
from rolebundle.workspace import Workspace
from support.reading import read_document
from support.source_tree import Tree

LONG = "The key of the boathouse is with the harbour master, and he wants it back. " * 4
SMALL = ChunkSettings(size=120, maximum=200)
THREAD = (
    "{0}: Ann Ek <a@x.org>\n{1}: 3 Mar 2026\n{2}: Bo\n\nWhere is the key?\n\n"
    "{0}: Bo Li <b@x.org>\n{1}: 4 Mar 2026\n{2}: Ann\n\nIn the box.\n"
)
HEAD = (
    "From: Bo Li <b@x.org>\nTo: Ann Ek <a@x.org>, c@x.org\nDate: Wed, 4 Mar 2026 10:00:00 +0100\n"
)


def chunks(text, path="a.txt", settings=SMALL):
    return chunk_document("d", with_turns(read_document(text, path)), settings)


@pytest.mark.parametrize(("turn", "label"), [
    ("Ann Ek: {}", "Ann Ek"),
    ("**Ann Ek:** {}", "Ann Ek"),
    ("**Ann Ek**: {}", "Ann Ek"),
    ("- Ann Ek: {}", "Ann Ek"),
    ("[12:03] Ann Ek: {}", "[12:03] Ann Ek"),
    ("[00:12:03] Ann Ek: {}", "[00:12:03] Ann Ek"),
    ("Ann Ek (12:03 PM): {}", "Ann Ek (12:03 PM)"),
    ("[12:03] <ann> {}", "[12:03] <ann"),
    ("[12/03/2026, 14:05:09] Ann Ek: {}", "[12/03/2026, 14:05:09] Ann Ek"),
    ("3/12/26, 2:05\u202fPM - Ann Ek: {}", "3/12/26, 2:05 PM - Ann Ek"),
    ("Ann Ek   0:03\n{}", "Ann Ek 0:03"),
])  # fmt: skip
@pytest.mark.parametrize("path", ["a.txt", "a.md"])
def test_a_chunk_within_a_turn_says_who_speaks(turn, label, path):
    other = turn.replace("Ann Ek", "Bo").replace("ann", "bo")
    text = "\n\n".join(form.format(part) for form, part in [
        (turn, LONG), (other, LONG), (turn, "Yes."), (other, "No."),
    ])  # fmt: skip
    found = chunks(text, path)
    assert all(c.content == "\n".join(text.split("\n")[c.start_line - 1 : c.end_line])
               or c.content in text for c in found)  # fmt: skip
    within = [c for c in found if c.content[:9] not in turn and c.headings[-1:] == (label,)]
    assert within, "its first turn is cut"
    assert not any(LONG.strip()[-20:] in c.content and "Yes." in c.content for c in found)


@pytest.mark.parametrize("text", [
    "Name: Ek\nCity: Lund\nZip: 22100\nPhone: 4711\nMail: a@x.org\n",
    "We met at noon.\n\nNote: bring the key.\n\nThen we left.\n\nNote: lock it.\n",
])  # fmt: skip
def test_other_texts_with_colons_stay_as_they_are(text):
    document = read_document(text, "a.txt")
    assert with_turns(document) == document


def test_a_day_above_the_turns_of_a_chat_is_theirs():
    turns = "".join(f"[1{n}:00] {name}: {LONG[:90]}\n" for n, name in enumerate(["Ann", "Bo"] * 3))
    text = f"Monday, 2 March 2026\n\n{turns}\n3 March 2026\n\n{turns}"
    days = {c.headings[0].rpartition(",")[0] for c in chunks(text) if c.content[:1] == "["}
    assert days == {"2 March 2026", "3 March 2026"}


@pytest.mark.parametrize("names", [("From", "Sent", "To"), ("Von", "Gesendet", "An")])
def test_messages_of_a_thread_are_passages(names):
    found = chunks(THREAD.format(*names), settings=ChunkSettings())
    assert [(c.headings, c.anchor, c.start_line) for c in found] == [
        (("Ann Ek <a@x.org>, 3 Mar 2026",), "message 1", 1),
        (("Bo Li <b@x.org>, 4 Mar 2026",), "message 2", 7),
    ]


ON = "On 3 Mar 2026 Ann wrote"
AM = "Am 3.3.2026 um 10:00, Ann Ek\nschrieb"
HEADERS = "From: Ann\nSent: 3 March\nTo: Bo"


@pytest.mark.parametrize(("text", "expected"), [
    (f"New.\n\n{ON}:\n> Old.\n>\n> Ann", [("", "New."), (ON, f"{ON}:\nOld.\n\nAnn")]),
    (f"New.\n\n{AM}:\n> Old.", [("", "New."), (AM.replace("\n", " "), f"{AM}:\nOld.")]),
    (f"New.\n{ON}:\n> Old.\n> {ON}:\n>> Older.",
     [("", "New."), (ON, f"{ON}:\nOld."), (ON, f"{ON}:\nOlder.")]),
    (f"New.\n\n-----Original Message-----\n{HEADERS}\n\nOld.",
     [("", "New.\n\n-----Original Message-----"), ("Ann, 3 March", f"{HEADERS}\n\nOld.")]),
    (f"New.\n\n-----Ursprüngliche Nachricht-----\n{HEADERS}\n\nOld.\n\n> Older.\n\nAnn",
     [("", "New.\n\n-----Ursprüngliche Nachricht-----"), ("Ann, 3 March", f"{HEADERS}\n\nOld."),
      ("quoted", "Older."), ("Ann, 3 March", "Ann")]),
    ("> Old.\n\nNew.", [("quoted", "Old."), ("", "New.")]),
    ("New.\n\nAnn\n\n> Old.\n> > Older.", [("", "New.\n\nAnn"), ("quoted", "Old."), ("quoted", "Older.")]),
    ("> where?\nhere\n> when?\nnow", [("", "> where?\nhere\n> when?\nnow")]),
])  # fmt: skip
def test_what_a_mail_quotes_is_apart_without_marks(text, expected):
    found = [(label, "\n".join(own).strip()) for label, _, own in messages(text.split("\n"))]
    assert [one for one in found if one[1]] == expected


@pytest.mark.parametrize(("page", "expected"), [
    (f"<p>New.</p><p>{ON}:</p><blockquote><p>Old.</p>{ON}:<blockquote>Older.</blockquote></blockquote>",
     [("", "New."), (ON, f"{ON}:\n\nOld."), (ON, f"{ON}:\n\nOlder.")]),
    ("<p>New.</p><blockquote>Old.</blockquote><p>Ann</p>",
     [("", "New."), ("quoted", "Old."), ("", "Ann")]),
    ("<blockquote>where?</blockquote><p>here</p><blockquote>when?</blockquote>now",
     [("", "> where?\n\nhere\n\n> when?\n\nnow")]),
])  # fmt: skip
def test_what_an_html_mail_quotes_is_apart(page, expected):
    mail = f"From: a@x.org\nContent-Type: text/html; charset=utf-8\n\n{page}"
    blocks = read_document(mail, "a.eml").blocks
    found = [
        (header, "\n\n".join(block.text for block in group))
        for (header, _), group in groupby(blocks, key=lambda block: (block.header, block.anchor))
    ]
    assert found == expected
    anchors = {block.anchor for block in read_document(page, "a.html").blocks}
    assert anchors == {""}, "a page quotes no messages"


def test_any_depth_of_quotes_is_read():
    assert sum(text.count("deep") for _, _, [*lines] in messages(["> " * 5000 + "deep"])
               for text in lines) == 1  # fmt: skip


def test_a_mail_has_its_people_and_a_quoted_one_is_one_passage(tmp_path: Path):
    tree = Tree(tmp_path)
    body = LONG.replace(". ", ".\n")
    quoted = "".join(f"> {line}\n" for line in body.strip().split("\n"))
    tree.write("1.eml", f"{HEAD}Subject: Key\n\n{body}".replace("Bo Li", "Cy Poe"))
    tree.write("2.eml", f"{HEAD}Subject: Re: Key\n\nFine.\n\nOn 3 Mar 2026 Cy wrote:\n{quoted}")
    tree.ingest()
    headings = dict(tree.rows("SELECT content, headings FROM chunk WHERE anchor = ''"))
    assert '["from Bo Li to Ann Ek, c@x.org, 2026-03-04"]' in headings.values()
    answer = Engine(Workspace(tree.db)).retrieve(RetrievalRequest(task="key of the boathouse"))
    same = [shown for shown in answer.selected if "boathouse" in shown.content]
    assert [len(shown.same_in or ()) for shown in same] == [1]


def test_a_mail_that_is_quoted_in_part_is_not_in_that_place(tmp_path: Path):
    tree = Tree(tmp_path)
    old, more = "The audit of the bakery begins on 7 April.", "Please send us the plans by post."
    tree.write("1.eml", f"{HEAD}Subject: audit\n\n{old}\n{more}\n")
    tree.write("2.eml", f"{HEAD}Subject: Re: audit\n\nWe come.\n\n> {old}\n")
    tree.write("3.eml", f"{HEAD}Subject: Re: audit\n\nFine.\n\n> {old}\n> {more}\n")
    tree.ingest()
    answer = Engine(Workspace(tree.db)).retrieve(RetrievalRequest(task="audit of the bakery"))
    [own] = [row for row in answer.selected if "bakery" in row.content]
    assert own.same_in == ["3.eml:8-9"]


def test_tags_and_links_are_found_but_not_in_code():
    text = (
        "#home/garden `#no` (#yes) [x](#part) #1 #2026plan #fff [[wifi#Setup|the wifi]] "
        "[y](sub/o%20k.md#h) [z](https://x.org/z.md) [up](../up.md) http://x.org/#z\n"
    )
    found = found_in([text], "notes/a.md")
    assert [value for kind, value in found if kind == "tag"] == [
        "home", "home/garden", "yes", "2026plan",
    ]  # fmt: skip
    links = [value for kind, value in found if kind == "links"]
    assert links == ["wifi", "notes/sub/o k.md", "/up.md"]


@pytest.mark.parametrize(("link", "name", "leads"), [
    ("wifi", "/notes/WiFi.md", True), ("notes/wifi.md", "wifi", True),
    ("/wifi.md", "/wifi.md", True), ("/wifi.md", "/notes/wifi.md", False),
    ("notes/wifi.md", "/wifi.md", False), ("wifi 2", "wifi", False),
])  # fmt: skip
def test_a_name_without_folder_is_the_file_in_any(link, name, leads):
    assert leads_to(link, [name]) is leads


def test_notes_are_searched_by_tag_link_and_task(tmp_path: Path):
    tree = Tree(tmp_path)
    tree.write("notes/wifi.md", "---\naliases: [Guest network]\n---\n# Wi-Fi\n\nThe router note.\n")
    tree.write("a.md", "The router note, see [[wifi|it]]. #home\n\n- [ ] paint\n")
    tree.write("b.md", "The router note of the [[Guest network]].\n\n- [x] paint\n")
    tree.write("c.md", "The router note, see [it](notes/wifi.md).\n")
    tree.write("wifi.txt", "The router note.\n")
    tree.ingest()
    engine = Engine(Workspace(tree.db))

    def found(**where: object) -> list[str]:
        request = RetrievalRequest.model_validate({"task": "router note", "where": where})
        return sorted(
            shown.citation.locator.partition(":")[0] for shown in engine.retrieve(request).selected
        )

    assert found(tags="home") == ["a.md"]
    assert found(links_to="notes/wifi.md") == found(links_to="WIFI") == ["a.md", "c.md"]
    assert (found(task="open"), found(task="done")) == (["a.md"], ["b.md"])
    about = engine.get("notes/wifi.md").document
    assert about.linked_from == ["w/a.md", "w/b.md", "w/c.md"]
    assert engine.get("a.md").document.linked_from is None


LEASE = """Lease between Ann Oak and Ben Elm.

{}1. Term
It begins on 1 May.

{}2. Rent
It is 840 euros.

{}3. Pets
One cat is allowed.
"""


@pytest.mark.parametrize("sign", ["", "§ ", "Article ", "**"])
def test_numbered_clauses_are_passages(sign):
    document = with_clauses(read_document(LEASE.format(*[sign] * 3), "lease.txt"))
    found = chunk_document("lease", document, ChunkSettings())
    assert [(c.headings, c.start_line, c.end_line) for c in found][-2:] == [
        ((f"{sign.strip('*')}2. Rent",), 6, 7), ((f"{sign.strip('*')}3. Pets",), 9, 10),
    ]  # fmt: skip
    assert found[-3].headings == (f"{sign.strip('*')}1. Term",)


@pytest.mark.parametrize(("name", "is_long"), [
    ("§ {} Rent", True), ("Article {}: Rent", True), ("Cláusula {}", False), ("{}. Rent", False),
])  # fmt: skip
@pytest.mark.parametrize("suffix", ["md", "html", "docx"])
def test_a_section_with_the_heading_of_a_clause_is_a_passage(name, is_long, suffix):
    parts = [("#", "Lease"), ("", "We agree.")]
    for number in (1, 2, 3) if name.startswith("{") else (2, 4, 11):
        parts += [("##", name.format(number)), ("", f"It holds: {number}.")]
    parts += [("", LONG)] * 15 * is_long
    if suffix == "docx":
        level = '<w:outlineLvl w:val="{}"/>'
        data: str | bytes = docx("".join(
            paragraph(text, in_paragraph=mark and level.format(len(mark) - 1)) for mark, text in parts
        ))  # fmt: skip
    elif suffix == "html":
        tags = {"#": "h1", "##": "h2", "": "p"}
        data = "".join(f"<{tags[mark]}>{text}</{tags[mark]}>" for mark, text in parts)
    else:
        data = "".join(f"{mark} {text}".strip() + "\n\n" for mark, text in parts)
    document = with_clauses(read_document(data, f"a.{suffix}"))
    found = chunk_document("d", document, ChunkSettings())
    assert [chunk.content.count("It holds") for chunk in found[:4]] == [0, 1, 1, 1]
    assert all(chunk.headings[0] == "Lease" for chunk in found)


def test_numbered_sections_of_a_long_manual_are_read_together():
    steps = "".join(f"## {number}. Step\n\nDo it.\n\n" for number in range(1, 4))
    document = with_clauses(read_document(f"# Manual\n\n{steps}{LONG * 15}\n", "a.md"))
    found = chunk_document("d", document, ChunkSettings())
    assert max(chunk.content.count("Do it.") for chunk in found) > 1


@pytest.mark.parametrize("text", [
    "To buy\n\n1. Milk\n2. Bread\n3. Apples\n\nBy Friday.\n",
    "1. We met.\nAnn came.\n\n2. We ate.\nBen cooked.\n\n3. We left.\nIt was late.\n",
    "1. Term\nMay.\n\n2. Rent\nLow.\n\n4. Pets\nNone.\n",
])  # fmt: skip
def test_lists_and_sentences_are_no_clauses(text):
    document = read_document(text, "note.txt")
    assert with_clauses(document) is document


def test_what_is_new_in_a_mail_stands_above_what_it_quotes(tmp_path: Path):
    tree = Tree(tmp_path)
    mail = (
        f"{HEAD}Subject: Re: Quadrats\n\nTake the small frame of 25 cm.\n\n"
        "On 3 Mar 2026 Cy wrote:\n> I would count all in the big frame of 50 cm, every metre.\n>\n"
        "> On 1 Mar 2026 Bo wrote:\n> > Do we count shoots in a frame? Do count shoots in a frame.\n"
    )
    tree.write("1.eml", mail)
    tree.ingest()
    answer = Engine(Workspace(tree.db)).retrieve(RetrievalRequest(task="count shoots in a frame"))
    assert [row.citation.anchor for row in answer.selected] == [None, "quoted 1", "quoted 2"]
    assert answer.selected[0].scores.lexical < answer.selected[2].scores.lexical == 1
    assert "older than the mail that quotes it" in packet(answer)


def test_a_reply_that_is_a_file_of_its_own_stands_above_the_mail_that_it_quotes(tmp_path: Path):
    tree = Tree(tmp_path)
    old = (
        "The audit of the bakery begins on 7 April at the bakery with Mr Thiessen."
        + " Please." * 20
    )
    asked = "Could the audit of the bakery begin in May, please?"
    tree.write("1.eml", f"{HEAD}Subject: audit\n\n{old}\n")
    tree.write(
        "2.eml", f"{HEAD}Subject: Re: audit\n\n{asked}\n\nOn 3 Mar 2026 Cy wrote:\n> {old}\n"
    )
    tree.write(
        "3.eml",
        f"{HEAD}Subject: Re: Re: audit\n\nAgreed, we come on 19 May.\n\nOn 4 Mar 2026 Bo wrote:\n"
        f"> {asked}\n>\n> On 3 Mar 2026 Cy wrote:\n> > {old}\n",
    )
    tree.write("evil/4.eml", f"{HEAD}Subject: Re: audit\n\nOff, says the office.\n\n> {old}\n")
    tree.write("rolebundle.toml", '[[rule]]\nglob = "evil/**"\ntrust_tier = "untrusted"\n')
    tree.ingest()
    answer = Engine(Workspace(tree.db)).retrieve(RetrievalRequest(task="audit of the bakery"))
    own = [row for row in answer.selected if "evil" not in row.document_id]
    assert [row.document_id for row in own] == ["w/3.eml", "w/2.eml", "w/1.eml"]
    assert [len(row.same_in or ()) for row in own] == [0, 1, 3]
    evil = next(row.rank for row in answer.selected if "office" in row.content)
    assert evil > own[-1].rank, "an untrusted mail displaces no other one with a quote"


@pytest.mark.parametrize(
    ("anchor", "message"),
    [
        ("quoted 2", ("", 2)),
        ("message 3, quoted 1", ("message 3", 1)),
        ("message 3", ("message 3", 0)),
        ("sheet quoted prices", ("sheet quoted prices", 0)),
    ],
)
def test_which_message_of_a_mail_an_anchor_names(anchor: str, message: tuple[str, int]) -> None:
    assert message_of(anchor) == message
