"""Providers by name, and their settings."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rolebundle.embedding.registry import (
    PROVIDERS,
    ProviderSpec,
    parse_rerank_spec,
    provider_for,
)
from rolebundle.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        (" rerank:bge-reranker-v2-m3:f16 ", "rerank", "bge-reranker-v2-m3:f16"),
    ],
)
def test_a_spec_is_parsed_from_its_name(text: str, provider: str, model: str):
    assert parse_rerank_spec(text) == ProviderSpec(provider, model)


@pytest.mark.parametrize("text", ["", "onnx", "Rerank", ":rerank"])
def test_an_unknown_provider_is_refused_with_the_list(text: str):
    with pytest.raises(ConfigurationError) as caught:
        parse_rerank_spec(text)
    assert caught.value.code == "unknown_provider"
    assert all(name in caught.value.hint for name in ("rerank",))
    with pytest.raises(ConfigurationError) as caught:
        provider_for(ProviderSpec("olama"))
    assert all(name in caught.value.hint for name in PROVIDERS)


@pytest.mark.parametrize(
    "spec",
    [
        ProviderSpec("ollama"),
        ProviderSpec("openai", "m"),
        ProviderSpec("static", "another"),
        ProviderSpec("static", prefixes=("", "")),
        ProviderSpec("onnx", "e5-small-v2"),
        ProviderSpec("onnx", url="http://127.0.0.1"),
        ProviderSpec("static", url="http://127.0.0.1"),
    ],
    ids=repr,
)
def test_a_missing_or_useless_setting_is_refused(spec: ProviderSpec):
    with pytest.raises(ConfigurationError) as caught:
        provider_for(spec)
    assert caught.value.hint


def test_the_registry_imports_no_library_of_a_provider():
    # A command that does not embed must not pay for them.
    code = """
import sys
from rolebundle.embedding.registry import ProviderSpec, parse_rerank_spec, provider_for
parse_rerank_spec("rerank:m")
provider_for(ProviderSpec("static"))
provider_for(ProviderSpec("onnx"))
heavy = ("httpx", "httpcore", "ollama", "wordllama", "numpy", "tokenizers", "safetensors",
         "onnxruntime", "pydantic", "ssl")
print([name for name in heavy if name in sys.modules])
import rolebundle.retrieval.rerank
print("httpx" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["[]", "False"]
