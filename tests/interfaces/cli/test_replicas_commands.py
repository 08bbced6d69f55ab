"""`rolebundle replica publish` and `pull`: what they say, what they refuse, and what they leave."""

from pathlib import Path

import pytest

from rolebundle.storage.opening import open_reader
from rolebundle.storage.publications import publications
from support.commands import Outcome, invoke, is_coded
from support.corpora import build, document
from support.templates import Template

POLICY = """
[ada]
scopes = ["engineering"]
access_level = "internal"

[boss]
scopes = ["engineering", "hr"]
access_level = "confidential"
"""


def make(folder: Path) -> None:
    db = build(
        folder,
        [
            document("plan", ["the token plan"], scope="engineering"),
            document("pay", ["the token pay"], scope="hr", sensitivity="confidential"),
        ],
        name="team.db",
    )
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    assert invoke("policy", "set", folder / "policy.toml", "--db", db).code == 0
    assert invoke("replica", "keygen", folder / "team.key").code == 0


@pytest.fixture
def db(template: Template) -> Path:
    return template.put_back() / "team.db"


def publish(db: Path, target: str | Path, *options: str | Path) -> Outcome:
    outcome = invoke(
        "replica", "publish", target, "--key", db.parent / "team.key", "--db", db, *options
    )
    is_coded(outcome)
    return outcome


def pull(db: Path, source: str | Path, replica: Path) -> Outcome:
    outcome = invoke("replica", "pull", source, "--key", db.parent / "team.pub", "--db", replica)
    is_coded(outcome)
    return outcome


def targets(db: Path) -> list[str]:
    with open_reader(db) as corpus:
        return [known.target for known in publications(corpus)]


def staged(db: Path) -> list[Path]:
    return list(Path(f"{db}.published").iterdir())


def test_the_audience_of_a_target_does_not_change(db: Path) -> None:
    share = db.parent / "share"
    assert publish(db, share, "--agent", "ada").code == 0
    before = (share / "replica-manifest.json").read_bytes()
    for audience in (["--agent", "boss"], ["--level", "confidential"]):
        refused = publish(db, share, *audience)
        assert (refused.code, "[other_audience]" in refused.err) == (2, True)
    assert (share / "replica-manifest.json").read_bytes() == before
    assert publish(db, share).code == 0


@pytest.mark.parametrize(
    ("target", "code"), [("missing/share", "target_missing"), ("team.key", "target_is_file")]
)
def test_a_target_that_takes_nothing_is_forgotten(
    target: str, code: str, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each purge would name it for ever."""
    monkeypatch.chdir(db.parent)
    refused = publish(db, target, "--agent", "ada")
    assert refused.code != 0 and f"[{code}]" in refused.err
    assert (targets(db), staged(db)) == ([], [])


def test_a_pull_from_nowhere_leaves_nothing(db: Path, tmp_path: Path) -> None:
    reader = tmp_path / "reader"
    refused = pull(db, "missing", reader / "r.db")
    assert (refused.code, "[nothing_published]" in refused.err) == (2, True)
    assert list(reader.iterdir()) == []


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\u202elines", " ", "x" * 201])
def test_a_publisher_has_a_plain_name(name: str, db: Path) -> None:
    refused = publish(db, db.parent / "share", "--agent", "ada", "--name", name)
    assert (refused.code, "a name of 1 to 200 characters" in refused.err) == (2, True)
    assert targets(db) == []


def test_a_reader_sees_for_which_agent_it_is(db: Path) -> None:
    replica = db.parent / "reader" / "r.db"
    publish(db, db.parent / "share", "--agent", "ada", "--name", "head\noffice")
    pulled = pull(db, db.parent / "share", replica).out
    assert "publisher head office, agent ada, " in pulled and "documents 1, " in pulled
    assert "from head office, with this replica" in invoke("policy", "show", "--db", replica).out
    status = invoke("status", "--db", replica).out
    assert "rolebundle corpus embed" not in status
    assert "replica: publisher head office, agent ada, " in status


def test_a_published_replica_is_not_ingested(db: Path) -> None:
    """Its manifest differs each time, so each ingest would change what is published."""
    folder = db.parent / "documents"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"name": "a document"}', encoding="utf-8")
    (folder / "note.md").write_text("# A note\n\nabout tokens\n", encoding="utf-8")
    assert publish(db, folder / "share", "--agent", "ada").code == 0
    ingested = invoke("ingest", folder, "--lexical-only", "--db", db.parent / "other.db")
    assert ingested.code == 0 and "files: 2 added" in ingested.out + ingested.err


def test_a_publisher_is_warned_that_readers_need_another_key(db: Path) -> None:
    share = db.parent / "share"
    publish(db, share, "--agent", "ada")
    invoke("replica", "keygen", db.parent / "next.key")
    renewed = publish(db, share, "--key", db.parent / "next.key")
    assert "another key, whose public key its readers need" in renewed.err
    assert "[bad_signature]" in pull(db, share, db.parent / "r.db").err


def test_a_target_is_forgotten(db: Path) -> None:
    """Only if its readers answer no more, or if that is meant."""
    share = db.parent / "share"
    options = ("--agent", "ada", "--expires", "1s", "--grace", "1d")
    assert publish(db, share, *options).code == 0
    outcome = invoke("replica", "forget", db.parent / "other", "--db", db)
    assert outcome.code == 2 and "[not_published]" in outcome.err and str(share) in outcome.err
    refused = invoke("replica", "forget", share, "--db", db)
    assert refused.code == 2 and "[may_answer]" in refused.err
    assert targets(db) == [str(share)] and staged(db) == []
    assert invoke("replica", "forget", share, "--yes", "--db", db).code == 0
    assert targets(db) == []
    assert (share / "replica-manifest.json").exists()
    assert publish(db, share, "--agent", "ada").code == 0
