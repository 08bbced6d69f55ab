"""Step 1: key terms of the task, and what a role adds to them, separately."""

from __future__ import annotations

import pytest

from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.candidate import Term
from rolebundle.retrieval.query import (
    MAX_CONTENT_WORDS,
    MAX_REPEATS,
    MAX_TASK_TERMS,
    build_query,
    words_of,
)
from support.corpora import overlay


def task_terms(task: str) -> dict[str, int]:
    terms = build_query(task, None).task_terms
    return {term.text: term.weight for term in terms if not term.form}


def expansion(task: str, role: Overlay) -> list[str]:
    return [term.text for term in build_query(task, role).expansion_terms]


class TestTaskTerms:
    def test_stop_words_are_left_out(self) -> None:
        assert task_terms("How do we rotate the token?") == {"rotate": 1, "token": 1}

    def test_a_task_of_stop_words_searches_them(self) -> None:
        assert task_terms("Who are we?") == {"who": 1, "are": 1, "we": 1}

    @pytest.mark.parametrize("letter", ["β", "Ω", "µ", "я", "x"])
    def test_a_lone_letter_counts_once(self, letter: str) -> None:
        terms = build_query(f"die Zelle {letter} und der Strom", None).task_terms
        assert [term for term in terms if len(term.text) == 1] == [Term(letter)]

    def test_a_repeated_word_keeps_its_weight(self) -> None:
        assert task_terms("token, token and Token: rotation") == {"token": 3, "rotation": 1}

    def test_weight_is_bounded(self) -> None:
        assert task_terms("token " * 50) == {"token": MAX_REPEATS} == {"token": 8}

    def test_too_many_terms_are_cut_by_frequency_and_then_order(self) -> None:
        task = " ".join(f"word{n}" for n in range(200)) + " word199"
        terms = build_query(task, None)
        texts = [term.text for term in terms.task_terms]
        assert len(texts) == MAX_TASK_TERMS == 128
        assert texts[:3] == ["word199", "word0", "word1"]
        assert terms.applied_rules == ("task:cut(200 terms to 128)",)

    @pytest.mark.parametrize(
        ("task", "phrase", "parts"),
        [
            ("v2.1.3 fails", "v2.1.3", ["v2", "1", "3", "fails"]),
            ("read src/auth.py", "src/auth.py", ["read", "src", "auth", "py"]),
            ("E_CONFLICT:409", "e_conflict:409", ["e", "conflict", "409"]),
            ("call user_id", "user_id", ["call", "user", "id"]),
            ("grow std::vector", "std::vector", ["grow", "std", "vector"]),
            ("mail root@example", "root@example", ["mail", "root", "example"]),
        ],
    )
    def test_a_compound_is_a_phrase_besides_its_parts(
        self, task: str, phrase: str, parts: list[str]
    ) -> None:
        assert [*task_terms(task)][: len(parts) + 1] == [*parts, phrase]

    def test_words_with_hyphens_are_searched_as_one_word_too(self) -> None:
        assert [*task_terms("on-boarding by e-mail")] == [
            *("boarding", "e", "mail", "e-mail", "onboarding", "email")
        ]
        assert [*task_terms("Pan-Tompkins")] == ["pan", "tompkins", "pan-tompkins", "pantompkins"]
        assert [*task_terms("E-409 of 2026-11-15")] == [
            "e",
            "409",
            "2026",
            "11",
            "15",
            "e-409",
            "2026-11-15",
        ]
        [boarding] = build_query("on-boarding", None).content_words
        assert [term.text for term in boarding] == ["boarding", "onboarding"]

    def test_a_task_in_capitals_has_the_terms_of_the_same_task_in_lower_case(self) -> None:
        task = "Is the boundary-layer of std::vector e.g. laminar?"
        assert task_terms(task.upper()) == task_terms(task)

    @pytest.mark.parametrize(
        "task", ["wait, what - no", "a - b", "-x", "x-", "end. Begin", "a...b"]
    )
    def test_punctuation_makes_no_compound(self, task: str) -> None:
        assert all(text.isalnum() for text in task_terms(task))

    def test_a_long_compound_is_cut_at_eight_parts(self) -> None:
        # One look-up in the index a part: a compound of a hundred kilobytes must not cost seconds.
        compounds = [text for text in task_terms("-".join("abcdefghijkl")) if "-" in text]
        assert compounds == ["a-b-c-d-e-f-g-h", "i-j-k-l"]

    @pytest.mark.parametrize(
        "word", ["Straße", "İstanbul", "ﬁnal", "re\u0301sume\u0301", "ΣΊΣΥΦΟΣ"]
    )
    def test_a_word_that_is_not_ascii_is_not_folded(self, word: str) -> None:
        # The index folds case by its own tables; Python's would ask it for "strasse".
        assert task_terms(word) == {word: 1}

    def test_a_text_without_words_has_no_terms(self) -> None:
        assert build_query("!? 🚀 \x00", None).task_terms == ()


class TestExpansion:
    PHRASES = (
        "threat model", "trust boundary", "security advisory",
        "one two three", "one two three four", "token", "privilege boundary",
    )  # fmt: skip

    def test_without_a_role_there_is_no_expansion(self) -> None:
        built = build_query("token rotation", None)
        assert built.expansion_terms == ()
        assert built.applied_filters == ()
        assert built.applied_rules == ()

    def test_the_first_three_boost_phrases_are_added_for_any_task(self) -> None:
        role = overlay(vocabulary={"boost_phrases": [*self.PHRASES]})
        assert expansion("bake bread", role) == [*self.PHRASES[:3]]

    def test_further_phrases_need_more_than_30_percent_of_their_words_in_the_task(self) -> None:
        ten = " ".join(f"w{n}" for n in range(10))
        role = overlay(vocabulary={"boost_phrases": ["a1", "a2", "a3", ten]})
        # 3 of 10 words is 30%, which is not more than 30%; 4 of 10 is.
        assert ten not in expansion("w0 w1 w2", role)
        assert ten in expansion("w0 w1 w2 w3", role)

    def test_one_of_three_words_is_enough_and_one_of_four_is_not(self) -> None:
        role = overlay(vocabulary={"boost_phrases": [*self.PHRASES]})
        found = expansion("one", role)
        assert "one two three" in found  # 1/3 = 33%
        assert "one two three four" not in found  # 1/4 = 25%

    def test_at_most_eight_phrases_in_all(self) -> None:
        phrases = [f"token p{n}" for n in range(20)]
        role = overlay(vocabulary={"boost_phrases": phrases})
        assert expansion("token", role) == phrases[:8]

    def test_preferred_terms_in_the_task_are_added(self) -> None:
        role = overlay(vocabulary={"preferred_terms": ["access control", "CVE", "token"]})
        assert expansion("the Access Control of a cve-2024 tokenizer", role) == [
            "access control",
            "cve",
        ]

    def test_the_words_of_a_preferred_term_must_be_adjacent(self) -> None:
        role = overlay(vocabulary={"preferred_terms": ["access control"]})
        assert expansion("control of access", role) == []
        assert expansion("access under control", role) == []

    def test_at_most_two_synonyms_for_each_canonical_term(self) -> None:
        role = overlay(
            vocabulary={"synonyms": {"auth": ["authentication", "authorization", "login"]}}
        )
        assert expansion("review auth", role) == ["authentication", "authorization"]
        assert expansion("review author", role) == []

    def test_a_canonical_term_of_several_words(self) -> None:
        role = overlay(vocabulary={"synonyms": {"access control": ["permissions"]}})
        assert expansion("review the access control", role) == ["permissions"]

    def test_added_phrases_add_their_synonyms(self) -> None:
        role = overlay(
            vocabulary={
                "boost_phrases": ["known vulnerability"],
                "synonyms": {"vulnerability": ["weakness"]},
            }
        )
        assert expansion("bake bread", role) == ["known vulnerability", "weakness"]

    def test_repeated_phrases_are_searched_once(self) -> None:
        role = overlay(
            vocabulary={"boost_phrases": ["Token"], "preferred_terms": ["token", "TOKEN"]}
        )
        assert expansion("token", role) == ["token"]

    def test_the_rules_that_applied_are_named(self) -> None:
        role = overlay(
            mission="Find risks.",
            vocabulary={
                "boost_phrases": ["a1", "a2", "a3", "token"],
                "preferred_terms": ["token"],
                "synonyms": {"token": ["secret"]},
            },
            source_policy={"forbidden_sources": [{"pattern": "x"}, {"pattern": "y"}]},
        )
        assert build_query("token", role).applied_rules == (
            "vocab:boost(4 phrases, 3 signature)",
            "vocab:preferred(1 terms)",
            "vocab:synonym(token)",
            "filter:forbidden(2)",
        )


class TestTheTasksOwn:
    """The role adds terms of its own and changes nothing of the task's."""

    ROLE = overlay(
        mission="Find risks.",
        vocabulary={"boost_phrases": ["threat"], "preferred_terms": ["token"]},
        retrieval_policy={"expansion_weight": 1.0},
    )

    @pytest.mark.parametrize(
        "task", ["token rotation", "Wer darf Schlüssel tauschen?", "数据 token"]
    )
    def test_the_terms_and_the_semantic_texts_are_the_same_with_a_role(self, task: str) -> None:
        ours, plain = build_query(task, self.ROLE), build_query(task, None)
        assert ours.task_terms == plain.task_terms
        assert ours.content_words == plain.content_words
        assert ours.semantic_texts == plain.semantic_texts == (task,)
        assert "threat" in {term.text for term in ours.expansion_terms}


class TestContentWords:
    def content(self, task: str) -> list[str]:
        return [
            " ".join(term.label for term in word) for word in build_query(task, None).content_words
        ]

    def test_each_word_counts_once_and_compounds_not_besides_their_parts(self) -> None:
        assert self.content("How do we rotate the Token token of src/auth.py?") == [
            "rotate", "token", "src", "auth", "py",
        ]  # fmt: skip

    def test_a_task_of_stop_words_keeps_its_words(self) -> None:
        assert self.content("Who are we?") == ["who", "are", "we"]

    @pytest.mark.parametrize(
        ("task", "content"),
        [
            ("Why don't we revoke keys that they've lost?", ["revoke", "keys", "lost"]),
            ("Show O'Brien's users' roles", ["show", "o", "brien", "users", "roles"]),
            ("Plan tomorrow’s rota", ["plan", "tomorrow", "rota"]),
            ("Où est l'eau de l'hôpital ?", ["Où ~où", "eau ~eau", "hôpital ~hôpital"]),
            ("It isn't", ["isn", "t"]),
        ],
    )
    def test_what_an_apostrophe_joins_is_no_content_word(
        self, task: str, content: list[str]
    ) -> None:
        assert self.content(task) == content

    def test_what_an_apostrophe_joins_is_searched(self) -> None:
        assert task_terms("can't connect") == {"t": 1, "connect": 1}

    @pytest.mark.parametrize(
        ("task", "spelling"),
        [("set up Wi-Fi", "wifi"), ("asyncTimeout", "async timeout"), ("async_timeout", "asynctimeout"),
         ("what is new in v1.35", "1.35"), ("what is new in 1.35", "v1.35")],
    )  # fmt: skip
    def test_a_compound_is_searched_in_other_spellings(self, task: str, spelling: str) -> None:
        assert spelling in task_terms(task)
        assert any(spelling in word for word in self.content(task))

    def test_other_wordings_are_searched_as_one(self) -> None:
        query = build_query("token rotation", None, ["key rotation", "token"])
        words = [word[0].text for word in query.content_words]
        assert words == ["token", "rotation", "key"]
        assert [{words[place] for place in wording} for wording in query.wordings] == [
            {"token", "rotation"}, {"key", "rotation"}, {"token"},
        ]  # fmt: skip
        assert query.semantic_texts == ("token rotation", "key rotation", "token")

    @pytest.mark.parametrize(
        ("task", "exact"),
        [
            ('what is "slow start" for', ("slow start",)),
            ("error 6260 in src/pump.py", ("6260", "src/pump.py")),
            ("pumpControl and E_HOT", ("pumpControl", "e_hot")),
            ("a well-known pump", ()),
        ],
    )
    def test_what_can_only_be_meant_exactly(self, task: str, exact: tuple[str, ...]) -> None:
        assert tuple(map(str.lower, build_query(task, None).exact)) == tuple(map(str.lower, exact))

    def test_in_another_language_a_word_has_its_stem_besides_it(self) -> None:
        # Either is enough: an English text has no stems, and an inflected word is not the same.
        assert self.content("Welche Schlüssel werden von den Prüfern getauscht?") == [
            "Schlüssel ~schlussel", "Prüfern ~pruf", "getauscht ~getauscht",
        ]  # fmt: skip

    def test_stems_in_several_languages_are_one_word(self) -> None:
        naive, token = self.content("naïve token")
        assert naive.startswith("naïve ~naiv ")
        assert token.startswith("token ~tok")

    def test_a_script_without_spaces_has_pairs_of_letters(self) -> None:
        assert self.content("数据库 v2") == ["~数据", "~据库", "v2"]
        assert self.content("数") == ["~数"]

    def test_without_words_there_are_none(self) -> None:
        assert self.content("?! 🚀") == []

    @pytest.mark.parametrize("pattern", ["word{}", "größe{}"])
    def test_their_number_is_bounded(self, pattern: str) -> None:
        words = [pattern.format(n) for n in range(200)]
        assert [word.split()[0] for word in self.content(" ".join(words))] == (
            words[:MAX_CONTENT_WORDS]
        )


class TestAppliedFilters:
    def test_a_role_is_filtered_by_its_name(self) -> None:
        (applied,) = build_query("x", overlay()).applied_filters
        assert (applied.field, applied.op, applied.value) == (
            "excluded_roles",
            "not_in",
            ["reviewer"],
        )

    def test_each_filter_is_named_with_its_values(self) -> None:
        role = overlay(
            source_policy={
                "forbidden_sources": [{"pattern": "marketing"}],
                "allowed_sources": [{"pattern": "policy"}],
            },
            retrieval_policy={
                "freshness_max_age_days": 90.0,
                "stale_penalty": 1.0,
                "role_mismatch_penalty": 1.0,
            },
        )
        filters = [
            (applied.field, applied.op, applied.value)
            for applied in build_query("x", role).applied_filters
        ]
        assert filters[1:] == [
            ("source", "not_contains", ["marketing"]),
            ("source", "contains", ["policy"]),
            ("applicable_roles", "contains", ["reviewer"]),
            ("age_days", "lt", 90.0),
        ]

    def test_a_penalty_under_one_filters_nothing(self) -> None:
        role = overlay(retrieval_policy={"freshness_max_age_days": 90.0, "stale_penalty": 0.9})
        assert len(build_query("x", role).applied_filters) == 1


def test_words_are_the_tokens_of_the_index() -> None:
    assert words_of("Re\u0301sume\u0301 of user_id; v2.1") == [
        "re\u0301sume\u0301", "of", "user", "id", "v2", "1",
    ]  # fmt: skip
