"""The default model: offline, quiet, and with the same result as its library's own pooling."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.embedding import static
from rolebundle.embedding.static import StaticProvider
from rolebundle.errors import EmbedderError

PROVIDER = StaticProvider()


def test_loading_logs_nothing_and_imports_no_http_client():
    code = """
import logging, sys
def refuse(event, args):
    if event.startswith(("socket.connect", "socket.getaddrinfo")):
        raise SystemExit(f"network: {event} {args}")
sys.addaudithook(refuse)
from rolebundle.embedding.static import StaticProvider
StaticProvider().embed_passages(["text"])
print(logging.getLogger().handlers, logging.getLogger().level == logging.WARNING)
print([n for n in ("wordllama", "requests", "urllib3", "httpx", "huggingface_hub") if n in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split("\n")[:2] == ["[] True", "[]"]
    assert result.stderr == ""


@pytest.mark.slow
def test_pooling_gives_the_same_bits_as_wordllama():
    # In a process of its own: importing wordllama sets up the root logger.
    code = """
from pathlib import Path
import numpy as np, wordllama
from rolebundle.embedding.static import DIMENSIONS, MODEL, StaticProvider
texts = ["one", "a longer text than the first", "naïve café 同期", "x" * 500, "twice twice"] * 20
theirs = wordllama.WordLlama.load(
    MODEL, cache_dir=Path(wordllama.__file__).parent, dim=DIMENSIONS, disable_download=True
)
print(np.array_equal(StaticProvider().embed_passages(texts), theirs.embed(texts)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "True"


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.text(max_size=400))
def test_a_vector_depends_only_on_its_text(texts: list[str], neighbour: str):
    alone = [PROVIDER.embed_passages([text])[0] for text in texts]
    among = PROVIDER.embed_passages([neighbour, *texts, neighbour])[1:-1]
    assert np.array_equal(np.array(alone), among)
    assert np.isfinite(among).all()


def test_capitals_that_only_emphasize_do_not_change_a_vector():
    vectors = PROVIDER.embed_passages(
        [
            "THE BOUNDARY LAYER OF A WING",
            "the boundary layer of a wing",
            "run a VACUUM",
            "run a vacuum",
        ]
    )
    assert np.array_equal(vectors[0::2], vectors[1::2])
    assert PROVIDER.fluency("PRESSURE DISTRIBUTIONS OVER SLENDER BODIES") == 1


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    for use in (lambda p: p.identity, lambda p: p.embed_queries(["text"])):
        with pytest.raises(EmbedderError, match="wordllama is not installed") as caught:
            use(StaticProvider())
        assert caught.value.code == "static_model_missing"


@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_a_damaged_package_is_reported(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if content is not None:
        for name in (
            f"weights/{static.MODEL}_256.safetensors",
            f"tokenizers/{static.MODEL}_tokenizer_config.json",
        ):
            (tmp_path / name).parent.mkdir()
            (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(static, "_package_folder", lambda: tmp_path)
    with pytest.raises(EmbedderError) as caught:
        StaticProvider().embed_passages(["text"])
    assert caught.value.code == "static_model_missing"
    assert caught.value.hint


@pytest.mark.parametrize(
    "question", ["Can a stolen tablet replay a token?", "API rate limits", "!?", "", "\x00"]
)
def test_fluency_is_full_for_english(question: str) -> None:
    assert PROVIDER.fluency(question) == 1
