"""Manual pages are read as the words that `man` shows."""

from __future__ import annotations

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_for
from support.reading import read_document


def read(text: str) -> ParsedDocument:
    return read_document(text, "a.1")


def texts(page: str) -> list[str]:
    return [block.text for block in read(page).blocks]


MAN = r"""'\" t
.\" A comment.
.TH "LS\-TOOL" "1" "2025\-10\-07" "Tools 9"
.de Hidden
.SH "not a section"
..
.SH NAME
ls\-tool \- list \fIdirectory\fR contents
.SH "SEE ALL"
.PP
Sort entries if \fB\-c\fR
is given \(em else not.
.TP
.BR \-a ", " \-\-all
do not ignore
.RS
.nf
$ ls \-a  \e
.fi
.ie n .IP "\*(C`x\*(C'" 4
.el .IP "no"
.sp
after a gap
"""


def test_a_page_with_the_macros_of_man() -> None:
    document = read(MAN)
    assert document.inferred == {
        "title": "ls-tool(1) - list directory contents",
        "updated_at": "2025-10-07",
    }
    assert [
        (block.kind, block.text, block.start_line, block.end_line) for block in document.blocks
    ] == [
        ("heading", "NAME", 7, 7),
        ("paragraph", "ls-tool - list directory contents", 8, 8),
        ("heading", "SEE ALL", 9, 9),
        ("paragraph", "Sort entries if -c is given — else not.", 11, 12),
        ("paragraph", "-a, --all\n    do not ignore", 14, 15),
        ("code", "$ ls -a  \\", 18, 18),
        ("paragraph", "x\n    after a gap", 20, 23),
    ]


def test_a_page_with_the_macros_of_mdoc() -> None:
    page = """.Dd $Mdocdate: November 28 2022 $
.Dt TOOL 1
.Os
.Sh NAME
.Nm tool
.Nd open a valve
.Sh SYNOPSIS
.Nm
.Op Fl 46a
.Op Fl D Oo Ar address : Oc Ns Ar port
.Ar
.Sh DESCRIPTION
.Nm
reads
.Dq tool rc
.Pq see Xr rc 5 .
.Bl -tag
.It Fl b Ar value
Use it.
.El
.Bd -literal
a  b
.Ed
"""
    document = read(page)
    assert document.inferred == {"title": "tool(1) - open a valve", "updated_at": "2022-11-28"}
    assert texts(page) == [
        "NAME",
        "tool - open a valve",
        "SYNOPSIS",
        "tool [-46a] [-D [address:]port] file ...",
        "DESCRIPTION",
        "tool reads “tool rc” (see rc(5)).",
        "-b value\n    Use it.",
        "a  b",
    ]


def test_characters() -> None:
    assert texts(".TH A 1\n" + r"\(lqa\(rq \[u00E4]\(:o \s-1B\s0\m[red]c\m[]\h'2n'd \\$1") == [
        "“a” äö Bcd \\$1"
    ]


def test_a_definition_that_does_not_end_hides_no_more_than_the_page() -> None:
    assert texts(".TH A 1\n.ig\nno\n..\nseen\n.am URL\n. ad l\n. .\nalso") == ["seen also"]


def test_another_file_with_such_a_name_is_plain_text() -> None:
    document = read("12:00 start\n.SH no\n")
    assert document.line_exact
    assert [block.text for block in document.blocks] == ["12:00 start\n.SH no"]


def test_only_sections_of_the_manual_are_suffixes_of_pages() -> None:
    for name in ("ls.1", "printf.3posix", "Tcl.n"):
        reader = reader_for(name)
        assert reader is not None and reader.name == "man", name
    assert [reader_for(name) for name in ("map.njk", "build.ninja", "read.nfo")] == [None] * 3
