"""Step 1: key terms of the task, and what a role adds to them, separately."""

from __future__ import annotations

import pytest

from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.query import (
    MAX_CONTENT_WORDS,
    MAX_REPEATS,
    MAX_TASK_TERMS,
    build_query,
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

    def test_a_long_compound_is_cut_at_eight_parts(self) -> None:
        # One look-up in the index a part: a compound of a hundred kilobytes must not cost seconds.
        compounds = [text for text in task_terms("-".join("abcdefghijkl")) if "-" in text]
        assert compounds == ["a-b-c-d-e-f-g-h", "i-j-k-l"]


class TestExpansion:
    PHRASES = (
        "threat model", "trust boundary", "security advisory",
        "one two three", "one two three four", "token", "privilege boundary",
    )  # fmt: skip

    def test_the_first_three_boost_phrases_are_added_for_any_task(self) -> None:
        role = overlay(vocabulary={"boost_phrases": [*self.PHRASES]})
        assert expansion("bake bread", role) == [*self.PHRASES[:3]]

    def test_further_phrases_need_more_than_30_percent_of_their_words_in_the_task(self) -> None:
        ten = " ".join(f"w{n}" for n in range(10))
        role = overlay(vocabulary={"boost_phrases": ["a1", "a2", "a3", ten]})
        # 3 of 10 words is 30%, which is not more than 30%; 4 of 10 is.
        assert ten not in expansion("w0 w1 w2", role)
        assert ten in expansion("w0 w1 w2 w3", role)

    def test_at_most_eight_phrases_in_all(self) -> None:
        phrases = [f"token p{n}" for n in range(20)]
        role = overlay(vocabulary={"boost_phrases": phrases})
        assert expansion("token", role) == phrases[:8]

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

    def test_added_phrases_add_their_synonyms(self) -> None:
        role = overlay(
            vocabulary={
                "boost_phrases": ["known vulnerability"],
                "synonyms": {"vulnerability": ["weakness"]},
            }
        )
        assert expansion("bake bread", role) == ["known vulnerability", "weakness"]


class TestContentWords:
    def content(self, task: str) -> list[str]:
        return [
            " ".join(term.label for term in word) for word in build_query(task, None).content_words
        ]

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

    def test_a_script_without_spaces_has_pairs_of_letters(self) -> None:
        assert self.content("数据库 v2") == ["~数据", "~据库", "v2"]
        assert self.content("数") == ["~数"]

    @pytest.mark.parametrize("pattern", ["word{}", "größe{}"])
    def test_their_number_is_bounded(self, pattern: str) -> None:
        words = [pattern.format(n) for n in range(200)]
        assert [word.split()[0] for word in self.content(" ".join(words))] == (
            words[:MAX_CONTENT_WORDS]
        )


class TestAppliedFilters:
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
