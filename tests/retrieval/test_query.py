"""The query, and another scoring of the best."""

from pathlib import Path
from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.embedding.provider import ProviderSpec
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.query import (
    MAX_CONTENT_WORDS,
    MAX_REPEATS,
    MAX_TASK_TERMS,
    build_query,
    read_task,
)
from rolebundle.retrieval.rank import MAX_RERANKED, add_rerank_scores
from rolebundle.retrieval.rerank import Reranker
from rolebundle.retrieval.values import Candidate
from rolebundle.workspace import Workspace
from support.bundles import messages
from support.commands import invoke
from support.corpora import NOW, answered, build, document, overlay, set_policy
from support.embedding_server import (
    FAKE,
    MODEL,
    RERANK_PATHS,
    EmbeddingServer,
    Handler,
    known,
    overlap,
)
from support.fake_embedder import HashingProvider
from support.model_folders import write_model
from support.values import candidate, passage, weights

# -- key terms of the task, and what a role adds to them, separately -----------------------


def task_terms(task: str) -> dict[str, int]:
    terms = build_query(task, None).task_terms
    return {term.text: term.repeats for term in terms if not term.is_form}


@pytest.mark.parametrize(
    ("task", "terms"),
    [
        ("How do we rotate the token?", {"rotate": 1, "token": 1}),
        ("token, token and Token: rotation", {"token": 3, "rotation": 1}),
        ("token " * 50, {"token": 8}),
    ],
)
def test_stop_words_are_left_out_and_repeated_words_weigh_more(
    task: str, terms: dict[str, int]
) -> None:
    assert task_terms(task) == terms
    assert MAX_REPEATS == 8


def test_too_many_terms_are_cut_by_frequency_and_then_order() -> None:
    task = " ".join(f"word{n}" for n in range(200)) + " word199"
    terms = build_query(task, None)
    texts = [term.text for term in terms.task_terms]
    assert len(texts) == MAX_TASK_TERMS == 128
    assert texts[:3] == ["word199", "word0", "word1"]
    assert terms.applied_rules == ("task:cut(248 terms to 128)",)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("v2.1.3 fails", ["v2", "1", "3", "fails", "v2.1.3", "2.1.3", "v 2"]),
        ("read src/auth.py", ["read", "src", "auth", "py"]),
        ("E_CONFLICT:409", ["e", "conflict", "409"]),
        ("fill std::vector", ["fill", "std", "vector"]),
        # Words with hyphens are searched as one word, too.
        ("on-boarding by e-mail", ["boarding", "e", "mail", "onboarding", "email"]),
        ("Pan-Tompkins", ["pan", "tompkins", "pantompkins"]),
        ("E-409 of 2026-11", ["e", "409", "2026", "11", "e409"]),
        # A form that has another stem, too: not "meet".
        ("when the meetings pay", ["meetings", "pay", "met", "paid"]),
        # A day as numbers, too.
        ("on 5 June", ["5", "june", "06 05", "05 06", "5 6"]),
        ("am 24. Dezember", ["24", "dezember", "12 24", "24 12"]),
    ],
)
def test_a_compound_is_searched_by_its_parts_and_a_version_as_a_whole_too(
    task: str, words: list[str]
) -> None:
    assert [*task_terms(task)] == words


def test_a_task_in_capitals_has_the_terms_of_the_same_task_in_lower_case() -> None:
    task = "Is the boundary-layer of std::vector e.g. laminar?"
    assert task_terms(task.upper()) == task_terms(task)


TEN = " ".join(f"w{n}" for n in range(10))
MANY_PHRASES = [f"token p{n}" for n in range(20)]
AUTH = {"synonyms": {"auth": ["authentication", "authorization", "login"]}}
FAULT = {"boost_phrases": ["known vulnerability"], "synonyms": {"vulnerability": ["weakness"]}}


@pytest.mark.parametrize(
    ("vocabulary", "task", "expected"),
    [
        # The first three boost phrases are added for any task, others for more than 30 percent of
        # their words.
        ({"boost_phrases": ["a1", "a2", "a3", "a4", TEN]}, "w0 w1 w2", ["a1", "a2", "a3"]),
        ({"boost_phrases": ["a1", "a2", "a3", TEN]}, "w0 w1 w2 w3", ["a1", "a2", "a3", TEN]),
        ({"boost_phrases": MANY_PHRASES}, "token", MANY_PHRASES[:8]),
        # The words of a preferred term must be adjacent.
        ({"preferred_terms": ["access control"]}, "control of access", []),
        ({"preferred_terms": ["access control"]}, "access under control", []),
        # At most two synonyms for each canonical term, also of phrases that were added.
        (AUTH, "review auth", ["authentication", "authorization"]),
        (AUTH, "review author", []),
        (FAULT, "bake bread", ["known vulnerability", "weakness"]),
    ],
)
def test_what_a_role_adds(vocabulary: dict[str, Any], task: str, expected: list[str]) -> None:
    terms = build_query(task, overlay(vocabulary=vocabulary)).expansion_terms
    assert [term.text for term in terms] == expected


class TestContentWords:
    def content(self, task: str) -> list[str]:
        return [
            " ".join(term.label for term in word) for word in build_query(task, None).content_words
        ]

    @pytest.mark.parametrize(
        ("task", "content"),
        [
            ("Why don't we revoke keys that they've lost?", ["revoke", "keys", "lost lose"]),
            ("Show O'Brien's users' roles", ["show", "o", "brien", "users", "roles"]),
            ("Plan tomorrow’s rota", ["plan", "tomorrow", "rota"]),
            ("Où est l'eau de l'hôpital ?", ["eau ~eau", "hôpital ~hôpital"]),
            ("It isn't", ["isn", "t"]),
            ("on-boarding", ["boarding onboarding"]),
            # In another language a word has its stem besides it. Either is enough: an English text
            # has no stems, and an inflected word is not the same.
            ("Welche Schlüssel werden von den Prüfern getauscht?",
             ["Schlüssel ~schlussel", "Prüfern ~pruf", "getauscht ~getauscht"]),
            # A script without spaces has pairs of letters.
            ("数据库 v2", ["~数据", "~据库", "v2 v 2"]),
            ("数", ["~数"]),
        ],
    )  # fmt: skip
    def test_the_words_that_count(self, task: str, content: list[str]) -> None:
        assert self.content(task) == content

    @pytest.mark.parametrize(
        ("task", "content"),
        [
            ("Wer ist mein Anbieter und was muss ich ihm bitte geben?", "anbieter"),
            ("Könnten Sie uns sagen, wieviel die Miete von Herrn Krause war?", "sagen miete krause"),
            ("Koennen wir fuer unsere Wohnung kuendigen?", "wohnung kuendigen"),
            ("Pourriez-vous me dire où sont mes clés, s'il vous plaît ?", "pourriez dire clés"),
            ("À qui devons-nous envoyer notre facture, monsieur ?", "envoyer facture"),
            ("¿Puede usted decirme quién tiene nuestras llaves, por favor?", "decirme llaves"),
            ("¿DONDE ESTAN MIS FACTURAS? ¿CUANTO DEBO?", "facturas"),
            ("Chi deve pagare la nostra bolletta, perché?", "pagare bolletta"),
            ("Quem pode ver as minhas faturas, por favor?", "ver faturas"),
            ("Wie moet mijn rekening betalen, alstublieft?", "rekening betalen"),
            ("Czy mogę zobaczyć moją umowę, proszę pani?", "zobaczyć umowę"),
            ("Vem ska betala vår hyra och varför?", "betala hyra"),
            ("Hvem skal betale min husleie, takk?", "betale husleie"),
            ("Můžete mi říct, kde jsou moje klíče?", "říct klíče"),
            ("Kuka voi maksaa minun vuokrani?", "maksaa vuokrani"),
            # Known languages only: these are words of English tasks.
            ("the war on die size, mine or his man", "war die size mine man"),
        ],
    )  # fmt: skip
    def test_function_words_of_any_language_do_not_count(self, task: str, content: str) -> None:
        words = [word[0].text.lower() for word in build_query(task, None).content_words]
        assert words == content.split()

    @pytest.mark.parametrize(
        ("task", "spelling"),
        [("set up Wi-Fi", "wifi"), ("asyncTimeout", "async timeout"), ("35kg", "35 kg"), ("FY2022", "2022"),
         ("what is new in v1.35", "1.35"), ("for 1,250 euros", "1250"), ("in the U.S.A.", "usa")],
    )  # fmt: skip
    def test_a_compound_is_searched_in_other_spellings(self, task: str, spelling: str) -> None:
        assert spelling in task_terms(task)
        assert any(spelling in word for word in self.content(task))

    def test_other_wordings_are_searched_as_one(self) -> None:
        query = build_query("token rotation", None, ["key rotation", "token"])
        words = [word[0].text for word in query.content_words]
        assert words == ["token", "rotation", "key"]
        assert [{words[place] for place in wording} for wording in query.positions_by_wording] == [
            {"token", "rotation"}, {"key", "rotation"}, {"token"},
        ]  # fmt: skip
        assert [task.text for task in query.wordings] == ["token rotation", "key rotation", "token"]

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
        assert tuple(map(str.lower, read_task(task).exact)) == tuple(map(str.lower, exact))

    @pytest.mark.parametrize("pattern", ["word{}", "größe{}"])
    def test_their_number_is_bounded(self, pattern: str) -> None:
        words = [pattern.format(n) for n in range(200)]
        assert [word.split()[0] for word in self.content(" ".join(words))] == (
            words[:MAX_CONTENT_WORDS]
        )


def test_each_filter_is_named_with_its_values() -> None:
    rules = {
        "forbidden_sources": [{"pattern": "marketing"}],
        "allowed_sources": [{"pattern": "policy"}],
    }
    penalties = {"stale_penalty": 1.0, "role_mismatch_penalty": 1.0, "freshness_max_age_days": 90.0}
    role = overlay(source_policy=rules, retrieval_policy=penalties)
    filters = [
        (applied["field"], applied["op"], applied["value"])
        for applied in build_query("x", role).applied_filters
    ]
    assert filters[1:] == [
        ("source", "not_contains", ["marketing"]),
        ("source", "contains", ["policy"]),
        ("applicable_roles", "contains", ["reviewer"]),
        ("age_days", "lt", 90.0),
    ]


# -- The best candidates are scored again by a cross-encoder in a server ---------------------------

TASK = "token rotation audit"
DOCUMENTS = [
    document("plan", ["token rotation plan", "a moon over the audit"]),
    document("rivals", ["token rotation by rivals"], source_id="rivals"),
    document("secret", ["the token audit of salaries"], scope="hr", source_id="hr"),
]
SIXTY = [document(f"d{n:02}", [f"token {'rotation ' * (n % 3)}{n} words"]) for n in range(60)]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, SIXTY, HashingProvider(), name="team.db")


def make_candidate(name: str, semantic: float) -> Candidate:
    return candidate(passage(name), lexical=0.5, semantic=semantic, cosine=0.5)


def reranked(db: Path, server: EmbeddingServer, api: str, **fields: Any) -> RetrievalBundle:
    with Engine(Workspace(db, HashingProvider()), rerank_url=server.url) as engine:
        request = {"task": TASK, "rerank": f"{api}:{MODEL}", "now": NOW, "limit": 60} | fields
        return engine.retrieve(RetrievalRequest(**request))


def contextual(bundle: RetrievalBundle) -> dict[str, float]:
    return {
        chunk.content: chunk.raw.contextual
        for chunk in bundle.selected
        if chunk.raw and chunk.raw.contextual is not None
    }


def degradations(bundle: RetrievalBundle) -> list[str]:
    return messages(bundle, "RERANK_DEGRADED")


def test_a_worked_example() -> None:
    pool = [make_candidate("a", 1.0), make_candidate("b", 0.8), make_candidate("c", 0.6)]
    add_rerank_scores(pool, lambda _: {"a": 0.2, "b": 0.7, "c": 0.45}, weights())
    # By minimum and maximum a has 0, b 1 and c 0.5: 0.15 · own + 0.85 · score.
    assert [one.semantic for one in pool] == pytest.approx([0.15, 0.97, 0.515])
    assert [one.cross_encoder_score for one in pool] == [0.2, 0.7, 0.45]


def test_what_was_not_read_keeps_its_term_and_what_was_not_asked_counts_as_the_last() -> None:
    pool = [make_candidate(f"{n:02}", 1 - n / 100) for n in range(MAX_RERANKED + 1)]
    scores = {one.chunk_id: 1 - n / 100 for n, one in enumerate(pool[:-1]) if n != 3}
    add_rerank_scores(pool, lambda _: {}, weights())
    before = pool[-1].semantic
    add_rerank_scores(pool, lambda _: scores, weights())
    assert (pool[3].semantic, pool[3].cross_encoder_score) == (0.97, None)
    assert pool[-1].semantic == pytest.approx(0.15 * before)


def test_logits_are_brought_between_0_and_1() -> None:
    reranker = Reranker(ProviderSpec("rerank"), TASK)
    reranker._scores = {"a": -1e308, "b": 0.0, "c": 0.5, "d": 1e308}
    known = reranker.known([passage(name) for name in "abcd"])
    assert known == pytest.approx({"a": 0.0, "b": 0.5, "c": 0.6224593, "d": 1.0})


@pytest.mark.parametrize("api", list(RERANK_PATHS))
def test_the_best_forty_are_scored(db: Path, server: EmbeddingServer, api: str) -> None:
    bundle = reranked(db, server, api)
    scores = contextual(bundle)
    assert 0 < len(scores) <= bundle.rerank.scored == MAX_RERANKED
    assert (bundle.rerank.provider, bundle.rerank.model) == (api, MODEL)
    texts = [
        text for seen in server.seen for text in seen.body.get("texts", seen.body.get("documents"))
    ]
    assert len(texts) == len(set(texts)) == MAX_RERANKED
    assert {seen.body["query"] for seen in server.seen} == {TASK}
    for content, score in scores.items():
        [text] = [text for text in texts if content in text]
        assert score == pytest.approx(overlap(TASK, text), abs=1e-6)
    assert any(
        reason.startswith("reranked: score ") for reason in bundle.selected[0].reasons_selected
    )
    assert bundle.without_timings() == reranked(db, server, api).without_timings()


def test_a_text_that_the_server_cannot_read_keeps_its_score(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    long = "token " * 3000
    documents = [document("a", ["token rotation"]), document("b", ["audit", long])]
    db = build(tmp_path, documents, HashingProvider(), name="long.db")
    bundle = reranked(db, server, "rerank")
    assert contextual(bundle) and long.strip() not in contextual(bundle)
    [message] = degradations(bundle)
    assert message.startswith("1 of the best passages could not be read")


@pytest.mark.parametrize("api", list(RERANK_PATHS))
def test_without_the_server_the_answer_is_the_plain_one(
    db: Path, server: EmbeddingServer, api: str
) -> None:
    server.faults[RERANK_PATHS[api]] = lambda handler: handler.json({"error": "broken"}, 500)
    degraded, plain = reranked(db, server, api), reranked(db, server, "none", rerank=None)
    assert [one.chunk_id for one in degraded.selected] == [one.chunk_id for one in plain.selected]
    assert degraded.rerank is None and not contextual(degraded)
    assert len(degradations(degraded)) == 1
    # The first passages, not each passage.
    assert len(server.seen) < 10


def test_a_server_too_slow_for_the_deadline_changes_nothing(
    db: Path, server: EmbeddingServer
) -> None:
    def slow(handler: Handler) -> None:
        handler.state.stopping.wait(0.4)
        count = len(handler.body["documents"])
        rows = [{"index": n, "relevance_score": 0.5} for n in range(count)]
        handler.json({"results": rows})

    server.faults["/v1/rerank"] = slow
    bundle = reranked(db, server, "rerank", deadline_ms=2000)
    assert bundle.selected and bundle.rerank is None and len(degradations(bundle)) == 1


def test_the_address_is_that_of_the_environment(
    db: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("retrieve", TASK, "--rerank", "rerank", "--lexical-only", "--db", db)
    assert invoke(*arguments).code == 3
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", server.url)
    assert invoke(*arguments, "--format", "json").json()["rerank"]["provider"] == "rerank"
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", "http://user:secret@127.0.0.1")
    refused = invoke(*arguments)
    assert refused.code == 2 and "secret" not in refused.err
    monkeypatch.setenv("ROLEBUNDLE_RERANK_URL", "http://192.0.2.1:8080")
    assert "is not on this machine" in invoke(*arguments).out


def test_only_what_policy_allows_is_sent(tmp_path: Path) -> None:
    db = build(tmp_path, DOCUMENTS, HashingProvider(), name="team.db")
    set_policy(db, {"ada": {"scopes": ["shared"], "access_level": "internal"}})
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "rivals"}]})
    resolved = ResolvedOverlay(role, "digest", Path("reviewer.json"))
    with known() as server, Engine(Workspace(db, HashingProvider())) as engine:
        request = RetrievalRequest(task=TASK, rerank=FAKE, now=NOW, agent="ada")
        bundle = engine.retrieve(request, resolved)
        assert bundle.rejected_summary["forbidden_source"] == 1
        explanation = engine.why(request, "rivals#0", resolved)
    assert server.texts
    assert not any("rivals" in text or "salaries" in text for text in server.texts)
    assert explanation.score.raw.contextual is None


def test_every_interface_takes_the_model(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = tmp_path / "golden.toml"
    golden.write_text(f'[[questions]]\nid = "q"\ntask = "{TASK}"\nexpect = ["d01"]\n')
    ask = ("retrieve", TASK, "--lexical-only", "--db", db, "--format", "json")
    with known():
        assert "rerank" in invoke(*ask, "--rerank", FAKE).json()
        why = invoke("why", "d01", TASK, "--rerank", FAKE, "--lexical-only", "--db", db)
        assert "in context    score" in why.out
        run = invoke("eval", golden, "--db", db, "--lexical-only", "--rerank", FAKE, "--json")
        assert f"reranked by {FAKE}" in run.json()["notes"]
        monkeypatch.setenv("ROLEBUNDLE_RERANK", FAKE)
        assert invoke(*ask).json()["request"]["rerank"] == FAKE
        assert "rerank" not in invoke(*ask, "--rerank", NO_RERANK).json()
    monkeypatch.setenv("ROLEBUNDLE_RERANK", "onnx")
    assert invoke(*ask).code == 3


def test_the_best_twenty_are_scored_by_the_model_of_a_folder(db: Path, tmp_path: Path) -> None:
    model = f"folder:{write_model(tmp_path / 'tiny')}"
    with Engine(Workspace(db, HashingProvider())) as engine:
        request = RetrievalRequest(task=TASK, rerank=model, now=NOW, limit=60)
        bundle = engine.retrieve(request)
        missing = engine.retrieve(request.model_copy(update={"rerank": model + "s"}))
    assert len(contextual(bundle)) == bundle.rerank.scored == 20
    assert (bundle.rerank.provider, bundle.rerank.model) == ("folder", "tiny")
    assert all(0 <= score <= 1 for score in contextual(bundle).values())
    [message] = degradations(missing)
    assert "there is no such folder" in message and missing.selected and not missing.rerank


def test_an_agent_names_no_folder_but_the_owners(db: Path, tmp_path: Path) -> None:
    set_policy(db, {"bot": {"scopes": ["shared"], "access_level": "internal"}})
    model = f"folder:{write_model(tmp_path / 'tiny')}"
    with Engine(Workspace(db, HashingProvider()), rerank=model) as engine:
        request = RetrievalRequest(task=TASK, rerank=model, now=NOW, agent="bot")
        assert engine.retrieve(request)
        with pytest.raises(AccessDenied, match="names no folder"):
            engine.retrieve(request.model_copy(update={"rerank": f"folder:{tmp_path}"}))


def test_a_stem_is_no_rarer_than_its_word_in_texts_of_other_languages() -> None:
    """An English text has the word Papa without a German stem."""
    documents = [document(f"en{n}", [f"What we are to do for Papa, page {n}."]) for n in range(9)]
    letter = "Der Bescheid für den Pflegegrad ist da, und er gilt ab dem ersten Mai: {}."
    documents += [document(f"de{n}", [letter.format(n)]) for n in range(4)]
    documents += [document("mail", ["Weihnachten ist bei Papa, und der bringt die Gänse."])]
    bundle = answered(documents, task="Welchen Pflegegrad hat der Papa?", lexical_only=True)
    assert bundle.selected[0].document_id.startswith("de")
