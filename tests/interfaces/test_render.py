"""The text of an answer for a person: it cannot steer a terminal, and says what is missing."""

from rolebundle.contracts.bundle import Fallback, KeptBack, RetrievalBundle
from rolebundle.interfaces import render
from rolebundle.retrieval.packet import packet
from support.corpora import ask, built, document, overlay, scratch_folder


def bundle_of(texts: list[str], title: str) -> RetrievalBundle:
    with scratch_folder() as folder:
        documents = [
            document(f"d{n}", [f"token {text}"], title=f"{title} {n}" if title.strip() else "t")
            for n, text in enumerate(texts)
        ]
        with built(folder, documents) as corpus:
            return ask(corpus, overlay(), task="token", lexical_only=True)


def test_an_empty_answer_says_so() -> None:
    with scratch_folder() as folder, built(folder, []) as corpus:
        bundle = ask(corpus, task="token", lexical_only=True)
    assert "No passage was found" in packet(bundle)
    output = render.text(bundle)
    assert "rejected: none" in output
    # Nothing was selected, so there is nothing to trust, and nothing that has an age.
    assert "trust " not in output and "freshness " not in output
    assert "\nno strong match, no answer\n" in output
    assert "\nno_strong_match + no_overlay, block\n" in render.text(bundle, explain=True)


def test_trust_that_nobody_declares_is_no_property_of_an_answer() -> None:
    bundle = bundle_of(["the token"], "t")
    assert bundle.provenance.trust_posture == "undeclared"
    assert "undeclared" not in render.text(bundle) and "declares" not in render.text(bundle)
    assert "trust undeclared" in render.text(bundle, explain=True)


def test_reasons_are_not_cut() -> None:
    bundle = bundle_of(["the token"], "t")
    reasons = ["moved up, because it answers as well", *(f"has word{n:03}" for n in range(40))]
    [chunk] = bundle.selected
    shown = chunk.model_copy(update={"reasons_selected": [*reasons, " ".join(reasons)]})
    lines = render.text(bundle.model_copy(update={"selected": [shown]}), 60)
    assert "; ".join([*reasons, " ".join(reasons)]) in " ".join(lines.split())


def test_undeclared_trust_and_a_number_of_words_are_no_reasons() -> None:
    bundle = bundle_of(["the token"], "t")
    [chunk] = bundle.selected
    plain = chunk.model_copy(update={"reasons_selected": ["general trust, stale"]})
    text = render.text(bundle.model_copy(update={"selected": [plain]}))
    assert "why:" not in text and "general trust" not in text
    assert "why: " not in render.text(bundle)
    assert "why: has the task's only word" in render.text(bundle, explain=True)


def test_a_command_to_copy_names_the_corpus() -> None:
    bundle = bundle_of(["the token"], "t")
    kept_back = [KeptBack(document_id="a", kinds=["secret"])]
    message = "one chunk without a vector: run `rolebundle corpus embed`"
    fallback = Fallback(state="healthy", states=["healthy"], action="warn", message=message)
    shown = bundle.model_copy(update={"kept_back": kept_back, "fallback": fallback})
    output = render.text(shown, 200, advice=lambda text: text.replace("corpus", "corpus --in n"))
    assert "  rolebundle corpus --in n quarantine show a\n" in output
    assert "`rolebundle corpus --in n embed`" in output


def test_an_answer_with_a_caution_is_not_called_healthy() -> None:
    bundle = bundle_of(["the token"], "t")
    for action, named in (("warn", False), ("continue", True)):
        fallback = Fallback(state="healthy", states=["healthy"], action=action, message="m")
        shown = bundle.model_copy(update={"fallback": fallback})
        assert ("healthy" in render.text(shown, explain=True)) is named


def test_a_request_without_a_role_has_no_warning_about_roles() -> None:
    with scratch_folder() as folder, built(folder, [document("d", ["a token"])]) as corpus:
        bundle = ask(corpus, task="token", lexical_only=True)
    assert not bundle.warnings
    assert "role was given" not in render.text(bundle) + packet(bundle)
