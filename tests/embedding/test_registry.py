"""Providers by name, and their settings."""

from __future__ import annotations

import pytest

from rolebundle.embedding.registry import (
    ProviderSpec,
    provider_for,
)
from rolebundle.errors import ConfigurationError


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
