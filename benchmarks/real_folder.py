# ruff: noqa: E501 - scripts of other programs
"""Make a folder of the kinds of files that people have, ingest it, and check every document.

Run: python benchmarks/real_folder.py [FOLDER] [--python PYTHON] [--nodemailer FOLDER]

The files are written by the tools that people use: LibreOffice and pandoc (Debian's packages), mutt,
s-nail and git, and from PyPI nbformat, nbclient, ipykernel, jupytext, python-docx, openpyxl,
xlsxwriter, python-pptx, ebooklib, pysubs2 and fpdf2, which PYTHON has (default: this Python), and
nodemailer of npm. Files whose tool is missing are left out and counted.

Each file says a fact of its own. A file counts if its fact is found in a passage and its title, date
and place are as they should be, or if it is skipped by the name of its kind.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

TODAY = datetime.now(UTC).date().isoformat()
TITLE, DATE = "Valve log", "2024-03-05"


class Expected(NamedTuple):
    """What should become of a file.

    Attributes:
        fact: a text that one of its passages has.
        title: of its document; a regular expression.
        date: its own date, or "inferred", or "" for any.
        place: where the fact is: an anchor or ``p. N``; "" for lines.
        skipped: the name of its kind in the message, if it is skipped.
    """

    fact: str = ""
    title: str = ""
    date: str = ""
    place: str = ""
    skipped: str = ""


class Maker:
    """The folder that is being made, and what is expected of its files."""

    def __init__(self, folder: Path, python: str, nodemailer: Path | None) -> None:
        self.folder, self.python, self.nodemailer = folder, python, nodemailer
        self.expected: dict[str, Expected] = {}
        self.missing: list[str] = []

    def fact(self, path: str) -> str:
        """The fact of a file."""
        return f"Valve {len(self.expected) + 4101} opens at {len(self.expected) + 21} bar."

    def expect(self, path: str, **values: str) -> str:
        """Register a file; returns its fact."""
        fact = "" if "skipped" in values else values.pop("fact", self.fact(path))
        self.expected[path] = Expected(fact, **values)
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return fact

    def write(self, path: str, text: str, **values: str) -> None:
        """Write a text file in which FACT stands for its fact."""
        fact = self.expect(path, **values)
        (self.folder / path).write_text(text.replace("FACT", fact), encoding="utf-8")

    def run(self, tool: str, *command: str, stdin: str | None = None) -> bool:
        """Run a tool in the folder; false if it is missing or fails."""
        try:
            subprocess.run(
                command, input=stdin, text=True, cwd=self.folder, check=True, capture_output=True,
                timeout=300,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            output = getattr(error, "stderr", None) or str(error)
            self.missing.append(f"{tool}: {str(output).strip().splitlines()[-1:]}")
            return False
        return True

    def script(self, tool: str, code: str, *arguments: str) -> bool:
        """Run Python code of a tool."""
        return self.run(tool, self.python, "-c", textwrap.dedent(code), *arguments)

    def drop_missing(self) -> None:
        """Forget the files that no tool has made."""
        for path in [path for path in self.expected if not (self.folder / path).exists()]:
            self.missing.append(path)
            del self.expected[path]


def make(maker: Maker) -> None:
    """Make all files."""
    notes(maker)
    front_matter(maker)
    code_and_data(maker)
    with_pandoc(maker)
    with_libreoffice(maker)
    with_python_libraries(maker)
    mail(maker)
    unreadable_kinds(maker)
    maker.drop_missing()


def notes(maker: Maker) -> None:
    """Plain notes and their formats."""
    maker.write("notes/plain.txt", "FACT\n", title="plain", date="inferred")
    maker.write("notes/README", "Read me\n\nFACT\n", title="README", date="inferred")
    maker.write("notes/heading.md", f"# {TITLE}\n\nFACT\n", title=TITLE, date="inferred")
    maker.write(
        "notes/component.mdx", f"import X from 'x'\n\n# {TITLE}\n\n<X />\n\nFACT\n", title=TITLE
    )
    maker.write("notes/paper.rst", f"{TITLE}\n=========\n\nFACT\n", title=TITLE, date="inferred")
    maker.write("notes/guide.adoc", f"= {TITLE}\n\n== Limits\n\nFACT\n", title=f"{TITLE}|guide")
    maker.write(
        "notes/agenda.org",
        f"#+TITLE: {TITLE}\n\n* TODO Check\n\nFACT\n", title="TODO Check", date="inferred",
    )  # fmt: skip
    page = "<html><head><title>{}</title></head><body><p>FACT</p></body></html>"
    maker.write("notes/page.html", page.format(TITLE), title=TITLE, date="inferred")
    maker.write(
        "notes/page.xhtml",
        '<?xml version="1.0"?>\n' + page.format(TITLE),
        title=TITLE,
        date="inferred",
    )
    fact = maker.expect("notes/latin1.txt", fact="Das Ventil öffnet bei 9 bar.")
    (maker.folder / "notes/latin1.txt").write_bytes(fact.encode("latin-1"))
    fact = maker.expect("notes/windows.md", title=TITLE)
    text = f"# {TITLE}\r\n\r\n{fact}\r\n"
    (maker.folder / "notes/windows.md").write_bytes(text.encode("utf-16"))
    maker.write(
        "notes/valve.1", f'.TH VALVE 1 "{DATE}"\n.SH NAME\nvalve \\- open it\n.PP\nFACT\n',
        title=r"valve\(1\) - open it", date=DATE,
    )  # fmt: skip
    maker.write("notes/Größe & Maß (Kopie).md", f"# {TITLE}\n\nFACT\n", title=TITLE)


def front_matter(maker: Maker) -> None:
    """Front matter as six tools write it."""
    maker.write(
        "obsidian/2024-03-05 Valve log.md",
        f"---\naliases:\n  - valves\ntags: [plant/valves, log]\ncreated: {DATE}T09:12\n"
        "cssclasses:\n  - wide\npublish: false\n---\nFACT [[Other note]] ![[plan.png]]\n",
        title="2024 03 05 Valve log|2024-03-05 Valve log|Valve log",
    )  # fmt: skip
    maker.write(
        "hugo/content/posts/valves.md",
        f'+++\ndate = {DATE}T10:00:00+01:00\ndraft = true\ntitle = "{TITLE}"\nweight = 10\n'
        'tags = ["valves"]\n[cascade]\n  banner = "x.png"\n+++\n\nFACT\n', title=TITLE, date=DATE,
    )  # fmt: skip
    maker.write(
        "hugo/content/about.md",
        f'{{\n  "title": "{TITLE}",\n  "date": "{DATE}",\n  "type": "about"\n}}\n\nFACT\n',
        title=f"{TITLE}|about",
    )
    maker.write(
        "jekyll/_posts/2024-03-05-valves.markdown",
        f"---\nlayout: post\ntitle:  \"{TITLE}\"\ndate:   {DATE} 10:00:00 +0100\n"
        "categories: plant valves\npermalink: /v/:title\n---\nFACT\n\n{% highlight ruby %}\nx\n"
        "{% endhighlight %}\n", title=TITLE, date=DATE,
    )  # fmt: skip
    maker.write(
        "docusaurus/docs/valves.mdx",
        f"---\nid: valves\ntitle: {TITLE}\nsidebar_label: Valves\nsidebar_position: 2\n"
        f"slug: /valves\nlast_update:\n  date: {DATE}\n  author: Ana\n---\n\n:::note\nFACT\n:::\n",
        title=TITLE,
    )
    maker.write(
        "skills/valves/SKILL.md",
        "---\nname: valve-log\ndescription: Reads the log of valves.\nallowed-tools: Read, Bash\n"
        "license: MIT\nmetadata:\n  version: 1.0\n---\n\nFACT\n", title="valve-log|SKILL|Valve log",
    )  # fmt: skip
    maker.write(
        "zettlr/20240305091200.md",
        f'---\ntitle: "{TITLE}"\nid: 20240305091200\nkeywords:\n  - valves\ndate: {DATE}\n'
        "bibliography: refs.bib\n...\n\nFACT @smith2020\n", title=TITLE, date=DATE,
    )  # fmt: skip
    maker.write(
        "mkdocs/docs/valves.md",
        f"---\ntitle: {TITLE}\nhide:\n  - navigation\nstatus: new\n---\n\n!!! note\n    FACT\n",
        title=TITLE,
    )
    maker.write(
        "quarto/valves.qmd",
        f'---\ntitle: "{TITLE}"\nauthor: "Ana"\ndate: "{DATE}"\nformat:\n  html:\n    toc: true\n---\n\nFACT\n',
        title=TITLE, date=DATE,
    )  # fmt: skip
    maker.write(
        "logseq/pages/valves.md",
        f"title:: {TITLE}\ntags:: valves\n\n- FACT\n  - below\n",
        title=f"{TITLE}|valves",
    )


def code_and_data(maker: Maker) -> None:
    """Source code and data."""
    for name, text in {
        "valve.py": "def open_valve():\n    # FACT\n    return 1\n",
        "valve.js": "export function openValve() {\n  // FACT\n}\n",
        "valve.go": "package valve\n\n// FACT\nfunc Open() {}\n",
        "valve.rs": "/// FACT\npub fn open() {}\n",
        "Valve.java": "class Valve {\n  // FACT\n  void open() {}\n}\n",
        "valve.sql": "-- FACT\nCREATE TABLE valve (id INTEGER);\n",
        "valve.yaml": "# FACT\nvalve: 1\n",
        "valve.toml": "# FACT\n[valve]\nbar = 1\n",
        "Makefile": "# FACT\nall:\n\techo\n",
        "valve.tex": "\\documentclass{article}\n\\begin{document}\nFACT\n\\end{document}\n",
        "valve.xml": "<valves><v>FACT</v></valves>\n",
        "valve.sh": "#!/bin/sh\n# FACT\n",
        "valve.unknown": "FACT\n",
    }.items():
        maker.write(f"code/{name}", text, date="inferred")
    maker.write("data/valves.csv", 'id,text\n1,"FACT"\n2,other\n')
    maker.write("data/valves.tsv", "id\ttext\n1\tFACT\n")
    maker.write("data/valves.json", '{"valves": [{"id": 1, "text": "FACT"}]}\n')
    maker.write(
        "data/valves.jsonl", '{"id": 1, "title": "Valve log", "text": "FACT"}\n', title=TITLE
    )
    maker.write("data/valves.ndjson", '{"id": 1, "text": "FACT"}\n')
    maker.write("data/contact.vcf", "BEGIN:VCARD\nVERSION:3.0\nFN:Ana\nNOTE:FACT\nEND:VCARD\n")
    maker.write(
        "data/meeting.ics",
        "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nSUMMARY:Valves\nDESCRIPTION:FACT\n"
        "END:VEVENT\nEND:VCALENDAR\n",
    )
    maker.write("data/valves.bib", "@article{a, title={Valves}, note={FACT}}\n")


def with_pandoc(maker: Maker) -> None:
    """One Markdown file in pandoc's formats."""
    places = {"pptx": r"slide \d", "ipynb": "cell 1"}
    for suffix in (
        "docx",
        "odt",
        "epub",
        "pptx",
        "rst",
        "org",
        "html",
        "tex",
        "ipynb",
        "textile",
        "opml",
    ):
        path = f"pandoc/valves.{suffix}"
        # pandoc sets the time of writing in office files, and keeps the title out of notebooks.
        has_title = suffix in {"docx", "odt", "epub", "pptx", "html"}
        fact = maker.expect(path, title=TITLE if has_title else "", place=places.get(suffix, ""))
        source = (
            f"---\ntitle: {TITLE}\nauthor: Ana\ndate: {DATE}\nlang: en\n---\n\n# Limits\n\n{fact}\n"
        )
        maker.run("pandoc", "pandoc", "-s", "-f", "markdown", "-o", path, stdin=source)


def with_libreoffice(maker: Maker) -> None:
    """A text, a table and slides in LibreOffice's formats."""
    work = maker.folder / ".work"
    work.mkdir()
    for suffix, place in {"odt": "", "docx": "", "pdf": "p. 1", "epub": "", "html": ""}.items():
        fact = maker.expect(
            f"libreoffice/text.{suffix}",
            place=place,
            title=f"{TITLE}|text",
            date="inferred" if suffix in {"html"} else "",
        )
        convert(
            maker,
            work,
            "text",
            suffix,
            writer_page(fact),
            "html",
            "writer_pdf_Export" if suffix == "pdf" else "",
        )
    fact = maker.expect("libreoffice/text.ott", title=f"{TITLE}|text")
    convert(maker, work, "text", "ott", writer_page(fact), "html")
    for suffix in ("doc", "rtf", "fodt"):
        maker.expect(f"libreoffice/text.{suffix}", skipped=suffix)
        convert(maker, work, "text", suffix, writer_page("x"), "html")
    for suffix in ("xlsx", "ods"):
        fact = maker.expect(f"libreoffice/table.{suffix}", place=r"sheet \S+, rows? .*")
        convert(maker, work, "table", suffix, f"id,text\n1,{fact}\n2,other\n", "csv")
    maker.expect("libreoffice/table.xls", skipped="xls")
    convert(maker, work, "table", "xls", "id,text\n1,x\n", "csv")


def writer_page(fact: str) -> str:
    return (
        f"<html><head><title>{TITLE}</title></head><body><h1>Limits</h1><p>{fact}</p>"
        "<table><tr><th>id</th><th>bar</th></tr><tr><td>1</td><td>40</td></tr></table></body></html>"
    )


def convert(
    maker: Maker, work: Path, name: str, suffix: str, text: str, kind: str, export: str = ""
) -> None:
    """Let LibreOffice write ``libreoffice/NAME.SUFFIX`` from a text."""
    (work / f"{name}.{kind}").write_text(text, encoding="utf-8")
    # A page opened as HTML belongs to "Writer/Web", which cannot write every format.
    filters = ["--infilter=HTML (StarWriter)"] if kind == "html" else []
    target = f"{suffix}:{export}" if export else suffix
    maker.run(
        "libreoffice", "soffice", f"-env:UserInstallation=file://{work}/profile", "--headless", *filters,
        "--convert-to", target, "--outdir", str(maker.folder / "libreoffice"), str(work / f"{name}.{kind}"),
    )  # fmt: skip


def with_python_libraries(maker: Maker) -> None:
    """Files that scripts write."""
    path = "office/report.docx"
    # Its first heading is taken for its title, since a template's title stays in a document.
    fact = maker.expect(path, title=f"{TITLE}|Limits", date=DATE)
    maker.script("python-docx", """
        import sys, datetime, docx
        path, fact, title = sys.argv[1:]
        d = docx.Document(); d.core_properties.title = title
        d.core_properties.modified = d.core_properties.created = datetime.datetime(2024, 3, 5)
        d.add_heading("Limits", 1); d.add_paragraph("Before."); t = d.add_table(2, 2)
        t.cell(0, 0).text = "id"; t.cell(0, 1).text = "text"; t.cell(1, 0).text = "1"; t.cell(1, 1).text = fact
        d.sections[0].header.paragraphs[0].text = "Plant 7"; d.save(path)
    """, path, fact, TITLE)  # fmt: skip
    path = "office/valves.xlsx"
    # openpyxl sets the time of the last change when it writes the file.
    fact = maker.expect(path, title=TITLE, date=TODAY, place=r"sheet Valves 2024, rows? .*")
    maker.script("openpyxl", """
        import sys, datetime, openpyxl
        path, fact, title = sys.argv[1:]
        w = openpyxl.Workbook(); w.properties.title = title
        w.properties.modified = w.properties.created = datetime.datetime(2024, 3, 5)
        s = w.active; s.title = "Valves 2024"; s.append(["id", "text", "when", "sum"])
        for i in range(60): s.append([i, fact if i == 40 else "other", datetime.date(2024, 3, 5), f"=A{i+2}*2"])
        w.create_sheet("Empty"); w.save(path)
    """, path, fact, TITLE)  # fmt: skip
    path = "office/numbers.xlsx"
    fact = maker.expect(path, place=r"sheet Data, rows? .*")
    maker.script("xlsxwriter", """
        import sys, xlsxwriter
        path, fact = sys.argv[1:]
        w = xlsxwriter.Workbook(path); s = w.add_worksheet("Data"); s.write_row(0, 0, ["id", "text"])
        s.write_row(1, 0, [1, fact]); c = w.add_chart({"type": "line"}); c.add_series({"values": "=Data!$A$2:$A$2"})
        s.insert_chart("D2", c); w.close()
    """, path, fact)  # fmt: skip
    path = "office/slides.pptx"
    fact = maker.expect(path, title=TITLE, date=DATE, place="slide 2")
    maker.script("python-pptx", """
        import sys, datetime, pptx
        path, fact, title = sys.argv[1:]
        p = pptx.Presentation(); p.core_properties.title = title
        p.core_properties.modified = p.core_properties.created = datetime.datetime(2024, 3, 5)
        for i in (1, 2):
            s = p.slides.add_slide(p.slide_layouts[1]); s.shapes.title.text = f"Slide {i}"
            s.placeholders[1].text = fact if i == 2 else "First"
            s.notes_slide.notes_text_frame.text = "Speak slowly."
        p.save(path)
    """, path, fact, TITLE)  # fmt: skip
    path = "office/manual.pdf"
    fact = maker.expect(path, title=TITLE, date=DATE, place="p. 3")
    maker.script("fpdf2", """
        import sys, datetime, fpdf
        path, fact, title = sys.argv[1:]
        p = fpdf.FPDF(); p.set_title(title)
        p.set_creation_date(datetime.datetime(2024, 3, 5, 12, tzinfo=datetime.timezone.utc))
        for i in (1, 2, 3):
            p.add_page(); p.set_font("Helvetica", size=12); p.multi_cell(0, 8, fact if i == 3 else f"Page {i}.")
        p.output(path)
    """, path, fact, TITLE)  # fmt: skip
    maker.expect("office/scan.pdf", skipped="text layer|has text")
    maker.script("fpdf2", """
        import sys, fpdf
        p = fpdf.FPDF(); p.add_page(); p.rect(10, 10, 50, 50, style="F"); p.output(sys.argv[1])
    """, "office/scan.pdf")  # fmt: skip
    maker.expect("office/locked.pdf", skipped="password|encrypted")
    maker.script("fpdf2", """
        import sys, fpdf
        p = fpdf.FPDF(); p.set_encryption("owner", "user"); p.add_page(); p.set_font("Helvetica", size=12)
        p.cell(text="x"); p.output(sys.argv[1])
    """, "office/locked.pdf")  # fmt: skip
    path = "office/book.epub"
    fact = maker.expect(path, title=TITLE)
    maker.script("ebooklib", """
        import sys
        from ebooklib import epub
        path, fact, title = sys.argv[1:]
        b = epub.EpubBook(); b.set_identifier("id"); b.set_title(title); b.set_language("en")
        c = epub.EpubHtml(title="Limits", file_name="c1.xhtml", lang="en"); c.content = f"<h1>Limits</h1><p>{fact}</p>"
        b.add_item(c); b.toc = (c,); b.add_item(epub.EpubNcx()); b.add_item(epub.EpubNav()); b.spine = ["nav", c]
        epub.write_epub(path, b)
    """, path, fact, TITLE)  # fmt: skip
    path = "notebooks/valves.ipynb"
    fact = maker.expect(path, title=f"{TITLE}|valves", place="cell 3")
    maker.script("nbclient", """
        import sys, nbformat
        from nbclient import NotebookClient
        path, fact, title = sys.argv[1:]; v = nbformat.v4
        n = v.new_notebook(cells=[v.new_markdown_cell("# " + title), v.new_code_cell("print('out' * 9)"),
                                  v.new_markdown_cell(fact)])
        NotebookClient(n, kernel_name="python3").execute(); nbformat.write(n, path)
    """, path, fact, TITLE)  # fmt: skip
    path = "notebooks/script.py"
    fact = maker.expect(path)
    maker.script("jupytext", """
        import sys, nbformat, jupytext
        path, fact = sys.argv[1:]; v = nbformat.v4
        jupytext.write(v.new_notebook(cells=[v.new_markdown_cell(fact), v.new_code_cell("x = 1")]), path, fmt="py:percent")
    """, path, fact)  # fmt: skip
    for suffix in ("srt", "vtt", "ass"):
        path = f"speech/talk.{suffix}"
        fact = maker.expect(path)
        maker.script("pysubs2", """
            import sys, pysubs2
            path, fact = sys.argv[1:]; s = pysubs2.SSAFile()
            for i in range(8): s.append(pysubs2.SSAEvent(start=i*9000, end=i*9000+8000, text=fact if i == 3 else f"Words {i}."))
            s.save(path)
        """, path, fact)  # fmt: skip


def mail(maker: Maker) -> None:
    """Mail as four programs write it, with a subject and a text that need encoding."""
    subject = "Prüfung der Ventile"
    path = "mail/python.eml"
    fact = maker.expect(path, title=subject, date=DATE)
    maker.script("email", """
        import sys, email.message, email.policy
        path, fact, subject = sys.argv[1:]
        m = email.message.EmailMessage(); m["Subject"] = subject; m["From"] = "Ana <ana@example.org>"
        m["To"] = "bo@example.org"; m["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"; m["Message-ID"] = "<1@example.org>"
        m.set_content("Grüße\\n\\n" + fact); m.add_alternative(f"<p>Grüße</p><p>{fact}</p>", subtype="html")
        m.add_attachment(b"x" * 5000, maintype="image", subtype="png", filename="plan.png")
        open(path, "wb").write(m.as_bytes(policy=email.policy.SMTP))
    """, path, fact, subject)  # fmt: skip
    path = "mail/archive.mbox"
    fact = maker.expect(path, title=subject, date=DATE, place="message 2")
    maker.script("mailbox", """
        import sys, mailbox, email.message
        path, fact, subject = sys.argv[1:]; box = mailbox.mbox(path)
        for i in (1, 2):
            m = email.message.EmailMessage(); m["Subject"] = subject; m["From"] = "ana@example.org"
            m["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"; m["Message-ID"] = f"<{i}@example.org>"
            m.set_content(fact if i == 2 else "From here on, first."); box.add(m)
        box.flush()
    """, path, fact, subject)  # fmt: skip
    if maker.nodemailer:
        path = "mail/nodemailer.eml"
        fact = maker.expect(path, title=subject, date=DATE)
        maker.run("nodemailer", "node", "-e", """
            const [modules, path, fact, subject] = process.argv.slice(1);
            const {createTransport} = require(modules + '/node_modules/nodemailer');
            createTransport({streamTransport: true, buffer: true}).sendMail({
                from: 'ana@example.org', to: 'bo@example.org', subject, text: `Grüße\\n${fact}`,
                html: `<p>Grüße</p><p>${fact}</p>`, date: new Date('2024-03-05T10:00:00Z'),
            }).then(sent => require('fs').writeFileSync(path, sent.message));
        """, str(maker.nodemailer), path, fact, subject)  # fmt: skip
    for program in ("mutt", "s-nail"):
        path = f"mail/{program}.mbox"
        fact = maker.expect(path, title=subject, date=TODAY, place="message 1")
        box = str(maker.folder / path)
        common = {
            "mutt": ["mutt", "-F", "/dev/null", "-e", "set charset=utf-8 send_charset=utf-8 copy=yes",
                     "-e", f"set record='{box}' sendmail=/bin/true from=ana@example.org", "-s", subject,
                     "bo@example.org"],
            "s-nail": ["s-nail", "-:/", "-Sttycharset=utf-8", "-Sv15-compat", "-Smta=test://" + box,
                       "-Sfrom=ana@example.org", "-s", subject, "bo@example.org"],
        }[program]  # fmt: skip
        maker.run(program, *common, stdin=f"Grüße\n\n{fact}\n")
    path = "mail/0001-patch.mbox"
    fact = maker.expect(path, title=r"\[PATCH\] .*|.*Valve.*", date=DATE, place="message 1")
    work = maker.folder / ".work"
    work.mkdir(exist_ok=True)
    git = ["git", "-C", str(work), "-c", "user.name=Ana", "-c", "user.email=ana@example.org"]
    (work / "v.txt").write_text("1\n")
    if maker.run("git", *git, "init", "-q") and maker.run("git", *git, "add", "v.txt"):
        maker.run(
            "git", *git, "commit", "-qm", f"Valve limits\n\n{fact}", f"--date={DATE}T10:00:00+0100"
        )
        patch = subprocess.run(
            [*git, "format-patch", "-1", "--stdout"], capture_output=True, check=True
        )
        (maker.folder / path).write_bytes(patch.stdout)


def unreadable_kinds(maker: Maker) -> None:
    """Kinds that no reader has. The message must name the kind."""
    heads = {
        "png": b"\x89PNG\r\n\x1a\n", "jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF", "mp3": b"ID3\x03\x00\x00",
        "mp4": b"\x00\x00\x00 ftypisom", "heic": b"\x00\x00\x00\x18ftypheic", "sqlite": b"SQLite format 3\x00",
        "zip": b"PK\x03\x04\x00\x00", "7z": b"7z\xbc\xaf\x27\x1c\x00", "msg": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "pages": b"PK\x03\x04\x00\x00", "one": b"\xe4\x52\x5c\x7b\x00", "parquet": b"PAR1\x00",
        "tar.gz": gzip.compress(b"\x00" * 600),
    }  # fmt: skip
    for suffix, head in heads.items():
        maker.expect(f"other/file.{suffix}", skipped=suffix.partition(".")[0])
        (maker.folder / f"other/file.{suffix}").write_bytes(head + b"\x00\x01" * 300)
    maker.expect("other/broken.docx", skipped="docx|zip|damaged|broken|unreadable")
    (maker.folder / "other/broken.docx").write_bytes(b"PK\x03\x04 no document")
    maker.expect("other/bomb.docx", skipped="large|ratio|limit")
    with zipfile.ZipFile(maker.folder / "other/bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<a>" + b" " * 300_000_000)


def check(maker: Maker, db: Path, report: dict[str, object]) -> Iterator[str]:
    """What is not as it should be, one line each."""
    skipped = {entry["path"]: entry for entry in report["skipped"]}  # type: ignore[attr-defined]
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as corpus:
        rows = corpus.execute(
            "SELECT file.path, chunk.content, document.title, document.updated_at, document.inferred_at,"
            " chunk.anchor, chunk.page FROM chunk JOIN document ON document.id = chunk.document"
            " JOIN file ON file.id = document.file"
        ).fetchall()
    for path, expected in sorted(maker.expected.items()):
        entry = skipped.get(path)
        if expected.skipped:
            if entry is None:
                yield f"{path}: not skipped"
            elif not re.search(
                expected.skipped, entry["message"].removeprefix(path), re.IGNORECASE
            ):
                yield f"{path}: skipped without its kind: [{entry['code']}] {entry['message']}"
            continue
        if entry is not None:
            yield f"{path}: skipped: [{entry['code']}] {entry['message']}"
            continue
        found = [
            row for row in rows if row[0] == path and expected.fact in " ".join(row[1].split())
        ]
        if not found:
            yield f"{path}: no passage has its fact: {[row[1][:80] for row in rows if row[0] == path]}"
            continue
        _, _, title, updated, inferred, anchor, page = found[0]
        place = anchor or (f"p. {page}" if page else "")
        if expected.title and not re.fullmatch(expected.title, title):
            yield f"{path}: title {title!r}, not {expected.title!r}"
        if expected.date == "inferred" and (updated or not inferred):
            yield f"{path}: date {updated or inferred}, not inferred"
        elif expected.date not in {"", "inferred"} and not (updated or "").startswith(
            expected.date
        ):
            yield f"{path}: date {updated} (inferred {inferred}), not {expected.date}"
        elif not (updated or inferred):
            yield f"{path}: undated"
        if not re.fullmatch(expected.place, place):
            yield f"{path}: place {place!r}, not {expected.place!r}"


def main() -> int:
    """Make the folder, ingest it, print what is wrong; exit code 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where to make it; default: temporary")
    parser.add_argument("--python", default=sys.executable, help="a Python that has the libraries")
    parser.add_argument("--nodemailer", type=Path, help="folder with node_modules/nodemailer")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary) / "folder"
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        maker = Maker(folder.resolve(), arguments.python, arguments.nodemailer)
        make(maker)
        db = Path(temporary) / "corpus.db"
        command = [sys.executable, "-m", "rolebundle", "ingest", str(folder), "--db", str(db)]
        result = subprocess.run(
            [*command, "--lexical-only", "--json"], capture_output=True, text=True, check=False
        )
        if not result.stdout:
            print(result.stderr)
            return 1
        problems = list(check(maker, db, json.loads(result.stdout)))
    kinds = {Path(path).suffix or Path(path).name for path in maker.expected}
    print(f"{len(maker.expected)} files of {len(kinds)} kinds; {len(problems)} problems")
    print("\n".join(problems))
    if maker.missing:
        print("not made: " + ", ".join(maker.missing))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
