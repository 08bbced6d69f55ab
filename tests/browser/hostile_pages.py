"""A corpus whose documents attack the page that shows them.

Each attack tries to run a script, to load something, or to hide or reorder what is shown. It is in
the text, the title, the headings, the tags and the source of a document, in the name of a file, in
the words and reasons of a role, and in marks and decisions. What gets through leaves a trace: the
window's variable ``canary``, an element named ``canary``, or a request to ``leak.example``.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from support.commands import invoke

SCRIPT = "<script>window.canary=1;alert(1)</script>"
ATTACKS = (
    SCRIPT,
    '<img id=canary src=x onerror="window.canary=1">',
    "<svg id=canary onload=window.canary=1><script>window.canary=1</script></svg>",
    f"</pre></article></main></body></html>{SCRIPT}",
    f"</style>{SCRIPT}<style>body{{display:none}}@import url(//leak.example/a.css)</style>",
    f"</script>{SCRIPT}",
    f"</title></summary></details></option></select></textarea>{SCRIPT}",
    '"><input id=canary autofocus onfocus=window.canary=1>',
    "' autofocus onfocus='window.canary=1' x='",
    "{{ 7*7 }}{{ self.__init__.__globals__ }}{% include '/etc/passwd' %}{# gone #}",
    '<iframe id=canary srcdoc="<script>parent.canary=1</script>"></iframe>',
    "[click](javascript:window.canary=1) <a id=canary href=javascript:window.canary=1>click</a>",
    '<meta http-equiv=refresh content="0;url=http://leak.example/">',
    "<base id=canary href=http://leak.example/><link rel=stylesheet href=http://leak.example/a.css>",
    "<form id=canary action=http://leak.example/><button autofocus>send</button></form>",
    "<object id=canary data=http://leak.example/a></object><embed src=http://leak.example/b>",
    "<noscript><img id=canary src=http://leak.example/n.png></noscript>",
    f"<!--><!--{SCRIPT}--><![CDATA[>]]>{SCRIPT}",
    "<math><mtext><table><mglyph><style><!--</style><img id=canary src=x onerror=window.canary=1>",
    "<plaintext id=canary><xmp>everything after this is text",
    "<b id=canary name=canary class=hidden style='position:fixed;inset:0;background:red'>over all</b>",
    "<div id=canary style='background:url(http://leak.example/s.png)'>styled</div>",
    "<video id=canary autoplay><source src=http://leak.example/v onerror=window.canary=1></video>",
    "&lt;script&gt;window.canary=1&lt;/script&gt; &amp;lt;script&amp;gt; &#60;script&#62;",
    "+ADw-script+AD4-window.canary=1+ADw-/script+AD4-",
    "\u202egnp.exe\u202c \u2066isolated\u2069 zero\u200bwidth \U000e0041tag \u00adsoft",
    "line\u2028separated\u2029<scr\u2028ipt>window.canary=1</scr\u2028ipt>",
    "e" + "\u0301" * 2_000 + " Zalgo",
    "![picture](http://leak.example/p.png) ![data](data:image/svg+xml,<svg/onload=window.canary=1>)",
    "'\"`></a></code></span></li></ul></table></svg></title>" + SCRIPT,
)
TASK = f"token rotation {SCRIPT} {{{{ 7*7 }}}} \u202e"
ROLE = "hostile-role"


def write_documents(folder: Path) -> None:
    """A document for each attack, and one with a line of a million characters."""
    folder.mkdir()
    for number, attack in enumerate(ATTACKS):
        fields = {
            "title": f"{attack} {number}",
            "tags": [attack, f"tag {number}"],
            "document_type": attack[:60],
            "domain": attack[:60],
            "source_id": f"wiki {attack}"[:100],
            "authors": [attack],
            "custom": attack,
            "updated_at": "2026-10-01",
        }
        text = f"Rotation of a token {number}: {attack}"
        heading = attack.replace("\n", " ")
        body = f"# {heading}\n\n{text}\n\n```\n{text}\n```\n\n## Token `{heading}`\n\n{text}\n"
        path = folder / f"{number:02} {attack[:40].replace('/', '∕')}.md"
        path.write_text(f"---\n{yaml.safe_dump(fields)}---\n\n{body}", encoding="utf-8")
    (folder / "long.txt").write_text(f"token rotation {SCRIPT} " * 23_000, encoding="utf-8")


def hostile_role() -> dict[str, Any]:
    """A role with attacks in everything that it may say."""
    return {
        "version": "1.0",
        "role_id": ROLE,
        "label": SCRIPT,
        "mission": f"Rotate tokens. {ATTACKS[6]}",
        "anti_goals": list(ATTACKS),
        "vocabulary": {
            "preferred_terms": [SCRIPT, "token"],
            "boost_phrases": [ATTACKS[1], "rotation of a token"],
        },
        "source_policy": {
            "preferred_sources": [{"pattern": "img", "reason": ATTACKS[3], "boost": 2.0}],
            "forbidden_sources": [
                {"pattern": "svg", "reason": ATTACKS[7]},
                {"pattern": "iframe", "reason": ATTACKS[8]},
            ],
        },
        "retrieval_policy": {"max_selected_chunks": 30, "min_score": 0.0},
        "synthesis_policy": {"prioritize": list(ATTACKS[:5])},
    }


def hostile_corpus(folder: Path) -> Path:
    """The corpus file of these documents, with the role, marks and a decision.

    Returns:
        The corpus file. Its folder of overlays, beside it, has the role.
    """
    db = folder / "hostile.db"
    write_documents(folder / "pages")
    overlays = folder / "hostile.db.overlays"
    overlays.mkdir()
    (overlays / f"{ROLE}.json").write_text(json.dumps(hostile_role()), encoding="utf-8")
    outcome = invoke("ingest", folder / "pages", "--lexical-only", "--workers", "1", "--db", db)
    assert outcome.code == 0, outcome.err
    for number in (0, 1, 20):
        document_id = next(name for name in document_ids(db) if f"/{number:02} " in name)
        marked = invoke(
            *("mark", "set", document_id, ("disputed", "rejected")[number == 1]),
            *("--by", ATTACKS[1], "--reason", ATTACKS[5], "--db", db),
        )
        assert marked.code == 0, marked.err
    decision = ("decisions", "add", f"No rotation of a token {ATTACKS[4]}", "--by", SCRIPT)
    decided = invoke(*decision, "--about", SCRIPT, "--reason", ATTACKS[6], "--db", db)
    assert decided.code == 0, decided.err
    return db


def document_ids(db: Path) -> list[str]:
    """All documents of a corpus."""
    listed = invoke("ls", "--limit", "1000", "--db", db, "--json").json()
    return [entry["document_id"] for entry in listed["documents"]]
