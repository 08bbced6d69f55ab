"""`rolebundle eval`: from the command line, with its exit codes."""

import json
from pathlib import Path

import pytest

from rolebundle.contracts.evaluation import EvalReport
from support.commands import invoke, is_coded

TEXTS = {
    "a": "boundary layer flow over a flat plate",
    "b": "heat transfer in a boundary layer",
    "c": "buckling of thin cylindrical shells",
    "d": "supersonic flow past a cone",
}


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    corpus = [
        json.dumps({"_id": document_id, "title": f"on {document_id}", "text": text})
        for document_id, text in TEXTS.items()
    ]
    queries = [{"_id": "1", "text": "boundary layer flow"}, {"_id": "2", "text": "shell buckling"}, {"_id": "3", "text": "unjudged"}]  # fmt: skip
    (folder / "corpus.jsonl").write_text("\n".join(corpus), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t1\n2\tc\t1\n", encoding="utf-8"
    )
    return folder


def test_a_collection(collection: Path, tmp_path: Path) -> None:
    reply = invoke("eval", collection, "--lexical-only")
    assert reply.code == 0, reply.err
    assert reply.out.startswith("name: tiny\ncorpus: file ")
    assert ", documents 4, chunks 4\n" in reply.out
    assert "\nmetrics: ndcg@10 1, recall@10 1, recall@100 1, mrr 1\n" in reply.out
    assert "\njudged: 2\n" in reply.out
    assert not list(tmp_path.glob("*.db")), "a collection gets a corpus of its own, and leaves none"


def test_floors(collection: Path) -> None:
    run = ("eval", collection, "--lexical-only", "--fail-under")
    held = invoke(*run, "ndcg@10=0.9", "--fail-under", "seconds=60")
    assert (held.code, "held no" in held.out) == (0, False), held.out
    broken = invoke(*run, "mrr=1.1")
    assert (broken.code, broken.err) == (1, "")
    assert "floors: metric mrr, bound 1.1, at_most no, value 1, held no\n" in broken.out
    assert "\npassed: no\n" in broken.out
    refused = invoke(*run, "ndgc=1")
    is_coded(refused)
    assert (refused.code, "[bad_floor]" in refused.err) == (2, True)


def test_a_golden_set_on_ones_own_corpus(sample_db: Path, tmp_path: Path) -> None:
    golden = tmp_path / "mine.toml"
    golden.write_text(
        'role = "mossline-security-reviewer"\nnow = 2026-11-15\n'
        '[[questions]]\ntask = "Review token rotation before the launch of 3.0"\n'
        'expect = ["security/token-lifecycle-audit.md"]\nmust_not_return = ["marketing/**"]\n'
        'expect_rejection = { "marketing/launch-page-3.0.md" = "forbidden_source" }\n',
        encoding="utf-8",
    )
    reply = invoke("eval", golden, "--db", sample_db, "--lexical-only")
    assert reply.code == 0, reply.err
    assert "\ngovernance: leak_rate 0, rejection_accuracy 1\n" in reply.out
    leaking = golden.read_text("utf-8").replace("marketing/**", "security/**")
    golden.write_text(leaking, encoding="utf-8")
    reply = invoke("eval", golden, "--db", sample_db, "--lexical-only")
    assert (reply.code, reply.err) == (1, "")
    assert "\ngovernance: leak_rate 1, " in reply.out
    what = "question 1, kind must_not_return, about security/**, expected not selected, found selec"
    assert f"\nnot met: {what}" in reply.out


def test_the_golden_set_of_a_role() -> None:
    reply = invoke("eval", "--role", "mossline-security-reviewer", "--json")
    assert reply.code == 0, reply.err
    report = EvalReport.model_validate(reply.json())
    assert (report.name, report.notes, report.passed) == ("mossline-security-reviewer-v1", [], True)
    assert report.governance is not None
    assert [check for check in report.governance.checks if not check.held] == []


@pytest.mark.parametrize(
    ("arguments", "code"), [((), 2), (("none.toml",), 3), (("--role", "nobody"), 3)]
)
def test_what_makes_no_sense_is_coded(
    arguments: tuple[str, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reply = invoke("eval", *arguments)
    is_coded(reply)
    assert (reply.code, reply.out) == (code, "")
