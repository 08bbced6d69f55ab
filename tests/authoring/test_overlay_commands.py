"""`overlay new`, `overlay try` and `overlay suggest`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolebundle.contracts.authoring import OverlaySuggestions, OverlayTrial
from rolebundle.policy.overlay_values import merge, validate
from support.commands import Outcome, invoke

OARS = [
    f"# Oar {n}\n\nA cracked oar is glued and varnished; varnish dries {n} days.\n"
    for n in range(6)
]


def own_overlay(corpus: Path, role: str) -> Path:
    return corpus.with_name(f"{corpus.name}.overlays") / f"{role}.json"


def new(corpus: Path, *arguments: str | Path) -> Outcome:
    return invoke("overlay", "new", *arguments, "--db", corpus)


def write(corpus: Path, role: str, **values: object) -> Path:
    path = own_overlay(corpus, role)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": "1.0", "role_id": role, "mission": "m", **values}))
    return path


class TestNew:
    def test_from_the_corpus(self, corpus: Path) -> None:
        outcome = new(corpus, "release-manager")
        assert outcome.code == 0, outcome.err
        values = json.loads(own_overlay(corpus, "release-manager").read_text())
        assert values["source_policy"]["preferred_sources"][0]["path"] == "CHANGELOG.md"
        assert invoke("overlay", "lint", "release-manager", "--db", corpus).code == 0

    def test_from_another_role_it_extends(self, corpus: Path) -> None:
        assert new(corpus, "my-writer", "--from", "technical-writer").code == 0
        assert (
            json.loads(own_overlay(corpus, "my-writer").read_text())["extends"]
            == "technical-writer"
        )

    @pytest.mark.parametrize("template", ["blank", "security-reviewer"])
    def test_from_a_template(self, corpus: Path, template: str) -> None:
        assert new(corpus, "mine", "--template", template).code == 0
        assert invoke("overlay", "lint", "mine", "--db", corpus).code == 0
        assert "extends" not in json.loads(own_overlay(corpus, "mine").read_text())

    def test_from_examples_it_has_the_terms_that_set_them_apart(
        self, corpus: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "oars").mkdir()
        for number, text in enumerate(OARS):
            (tmp_path / "oars" / f"{number}.md").write_text(text)
        outcome = new(corpus, "boat-builder", "--examples", tmp_path / "oars")
        assert outcome.code == 0, outcome.err
        values = json.loads(own_overlay(corpus, "boat-builder").read_text())
        words = [*values["vocabulary"]["boost_phrases"], *values["vocabulary"]["preferred_terms"]]
        assert any("varnish" in word for word in words) and "jetty" not in words
        assert "in 6 of 6 passages" in values["notes"]["vocabulary.boost_phrases[0]"]

    def test_questions_bring_the_passages_that_answer_them(
        self, corpus: Path, tmp_path: Path
    ) -> None:
        questions = tmp_path / "asked.txt"
        questions.write_text(
            "# asked in spring\nis the jetty of wood?\nwho paints the jetty?\nold jetty\n"
            "jetty budget\njetty plan\n"
        )
        outcome = new(corpus, "carpenter", "--questions", questions)
        assert outcome.code == 0, outcome.err
        values = json.loads(own_overlay(corpus, "carpenter").read_text())
        assert any("jetty" in word for word in values["vocabulary"]["boost_phrases"])

    def test_questions_without_an_end(self, corpus: Path) -> None:
        refused = new(corpus, "x", "--questions", Path("/dev/zero"))
        assert refused.code == 2 and "unreadable_questions" in refused.err

    def test_too_few_examples(self, corpus: Path, notes: Path) -> None:
        refused = new(corpus, "x", "--examples", notes / "README.md")
        assert refused.code == 2 and "too_few_examples" in refused.err

    def test_one_way_only(self, corpus: Path) -> None:
        assert new(corpus, "x", "--from", "code-reviewer", "--template", "blank").code == 2

    def test_a_role_never_extends_itself(self, corpus: Path) -> None:
        assert new(corpus, "code-reviewer", "--from", "code-reviewer").code == 2

    def test_never_over_another_file(self, corpus: Path, tmp_path: Path) -> None:
        output = tmp_path / "mine.json"
        assert new(corpus, "mine", "--template", "blank", "--output", output).code == 0
        before = output.read_bytes()
        assert new(corpus, "mine", "--from", "code-reviewer", "--output", output).code == 3
        planned = new(corpus, "mine", "--from", "code-reviewer", "--output", output, "--dry-run")
        assert planned.code == 0 and "code-reviewer" in planned.out
        assert output.read_bytes() == before

    def test_a_folder_that_is_missing_is_not_made(self, corpus: Path, tmp_path: Path) -> None:
        for more in ((), ("--dry-run",)):
            output = tmp_path / "none" / "mine.json"
            refused = new(corpus, "mine", "--template", "blank", "--output", output, *more)
            assert refused.code == 2 and f"{output.parent}: there is no such folder" in refused.err
            assert not output.parent.exists()

    def test_a_corpus_that_is_a_folder(self, tmp_path: Path) -> None:
        refused = new(tmp_path, "mine", "--template", "blank")
        assert refused.code == 2 and f"{tmp_path}: is a folder" in refused.err
        assert not own_overlay(tmp_path, "mine").exists()

    def test_without_a_corpus(self, tmp_path: Path) -> None:
        refused = invoke("overlay", "new", "mine", "--db", tmp_path / "none.db")
        assert refused.code == 2 and "--template blank" in refused.err


class TestTry:
    def test_ranks_with_and_without_and_what_moved_them(self, corpus: Path) -> None:
        write(
            corpus, "boatman",
            vocabulary={"preferred_terms": ["oars"]},
            source_policy={
                "preferred_sources": [{"path": "boats/**", "reason": "our boats"}],
                "forbidden_sources": [{"path": "archive/**", "reason": "old"}],
            },
        )  # fmt: skip
        outcome = invoke(
            "overlay", "try", "boatman", "jetty", "--lexical-only", "--json", "--db", corpus
        )
        trial = OverlayTrial.model_validate_json(outcome.out)
        by_path = {passage.locator.partition(":")[0]: passage for passage in trial.passages}
        old = by_path["archive/jetty-2019.md"]
        assert old.rank_without and old.rank_with is None and old.code == "forbidden_source"
        barge = by_path["boats/barge.md"]
        assert "boost:preferred-source(path boats/**: our boats×1.5)" in barge.moved_by
        assert any(
            "oars" in rule for passage in trial.passages for rule in passage.moved_by
        ) == any("oars" in rule for rule in trial.rules_used)
        text = invoke("overlay", "try", "boatman", "jetty", "--lexical-only", "--db", corpus).out
        assert "forbidden_source" in text and "our boats" in text

    def test_a_file_that_is_no_role_yet(self, corpus: Path, tmp_path: Path) -> None:
        path = tmp_path / "mine.json"
        path.write_text('{"version": "1.0", "role_id": "mine"}')
        assert invoke("overlay", "try", path, "jetty", "--lexical-only", "--db", corpus).code == 0


class TestSuggest:
    def suggest(self, corpus: Path, role: str = "boatman") -> OverlaySuggestions:
        outcome = invoke("overlay", "suggest", role, "--json", "--db", corpus)
        assert outcome.code == 0, outcome.err
        return OverlaySuggestions.model_validate_json(outcome.out)

    def ask(self, corpus: Path, *tasks: str) -> None:
        assert invoke("audit", "set", "--mode", "on", "--query", "text", "--db", corpus).code == 0
        for task in tasks:
            assert invoke("retrieve", task, "--role", "boatman", "--db", corpus).code == 0

    def test_it_says_how_to_turn_the_audit_on(self, corpus: Path) -> None:
        write(corpus, "boatman")
        assert "audit set --mode on --query text" in self.suggest(corpus).problem
        invoke("audit", "set", "--mode", "on", "--query", "digest", "--db", corpus)
        assert "does not keep the texts" in self.suggest(corpus).problem

    def test_forbidden_hits_are_never_part_of_the_safe_patch(self, corpus: Path) -> None:
        rule = {"path": "archive/**", "reason": "old"}
        write(corpus, "boatman", source_policy={"forbidden_sources": [rule, {"pattern": "x"}]})
        self.ask(corpus, "older plan of the jetty")
        found = self.suggest(corpus)
        [hit] = [
            suggestion for suggestion in found.suggestions if suggestion.kind == "forbidden_hits"
        ]
        assert hit.place == "source_policy.forbidden_sources[0]" and not hit.is_safe
        assert hit.questions == ["older plan of the jetty"]
        assert hit.patch == {"source_policy": {"forbidden_sources": [{"pattern": "x"}]}}
        assert "source_policy" not in found.patch

    def test_terms_and_rules_that_match_nothing_are_taken_out(self, corpus: Path) -> None:
        vocabulary = {"boost_phrases": ["jetty", "submarine"], "preferred_terms": ["oars"]}
        rules = [{"path": "boats/**"}, {"path": "planes/**"}]
        path = write(
            corpus, "boatman", vocabulary=vocabulary, source_policy={"preferred_sources": rules}
        )
        found = self.suggest(corpus)
        patched = merge(
            json.loads(path.read_text()), {**found.patch, "version": "1.0", "role_id": "boatman"}
        )
        overlay = validate(patched)
        assert not isinstance(overlay, list)
        assert overlay.vocabulary.boost_phrases == ["jetty"]
        assert [rule.path for rule in overlay.source_policy.preferred_sources] == ["boats/**"]

    def test_what_comes_from_rolebundle_may_match_nothing(self, corpus: Path) -> None:
        found = self.suggest(corpus, "code-reviewer")
        assert found.is_shipped and not found.suggestions
        write(corpus, "boatman", extends="code-reviewer", vocabulary={"boost_phrases": ["yak"]})
        places = [suggestion.place for suggestion in self.suggest(corpus).suggestions]
        assert places == ["vocabulary.boost_phrases"]

    def test_a_role_of_rolebundle_is_copied_before_it_is_edited(self, corpus: Path) -> None:
        assert invoke("audit", "set", "--mode", "on", "--query", "text", "--db", corpus).code == 0
        task = ("quantum chromodynamics lagrangian", "--role", "code-reviewer")
        assert invoke("retrieve", *task, "--db", corpus).code == 0
        output = invoke("overlay", "suggest", "code-reviewer", "--db", corpus).out
        command = output.split("`")[-2].split()
        assert command[0] == "rolebundle"
        assert invoke(*command[1:]).code == 0
        assert (corpus.parent / f"{corpus.name}.overlays" / "code-reviewer.json").exists()

    def test_a_question_without_an_answer_names_the_missing_words(self, corpus: Path) -> None:
        write(corpus, "boatman")
        self.ask(corpus, "quantum chromodynamics lagrangian")
        kinds = [
            suggestion
            for suggestion in self.suggest(corpus).suggestions
            if suggestion.kind == "no_answer"
        ]
        assert any("chromodynamics" in suggestion.message for suggestion in kinds)

    def test_a_question_with_thin_evidence_names_the_missing_words(self, corpus: Path) -> None:
        write(corpus, "boatman")
        task = "Which jetty has a helicopter licence for tourists of Norway?"
        self.ask(corpus, task)
        found = self.suggest(corpus).suggestions
        assert {suggestion.kind for suggestion in found} == {"no_answer"}
        assert any("'helicopter'" in suggestion.message for suggestion in found)
        assert all(suggestion.questions == [task] for suggestion in found)

    def test_stale_answers(self, corpus: Path) -> None:
        write(corpus, "boatman", retrieval_policy={"freshness_max_age_days": 0.000001})
        self.ask(corpus, "jetty plan")
        [stale] = [
            suggestion
            for suggestion in self.suggest(corpus).suggestions
            if suggestion.kind == "stale_answers"
        ]
        assert stale.place == "retrieval_policy.freshness_max_age_days"

    def test_nothing_is_written(self, corpus: Path) -> None:
        write(corpus, "boatman", vocabulary={"boost_phrases": ["submarine"]})
        self.ask(corpus, "jetty")
        before = {path: path.read_bytes() for path in corpus.parent.rglob("*") if path.is_file()}
        self.suggest(corpus)
        after = {path: path.read_bytes() for path in corpus.parent.rglob("*") if path.is_file()}
        assert {
            path: text
            for path, text in after.items()
            if "-shm" not in path.name and "-wal" not in path.name
        } == {
            path: text
            for path, text in before.items()
            if "-shm" not in path.name and "-wal" not in path.name
        }
