"""A manifest that is wrong: the error names the file, the section, the key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.ingest.manifests import parse_manifest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "not readable as TOML"),
        ("rules = []", "m.toml: rules: unknown key; did you mean rule?"),
        ("rule = 1", "m.toml: rule: must be a list (it is 1)"),
        ("rule = [1]", "m.toml: rule 1: must be an object"),
        ("[[rule]]\ndomain = 'x'", "m.toml: rule 1.glob: is missing"),
        ("[[rule]]\nglob = ''", "m.toml: rule 1.glob: must not be blank"),
        ("[[rule]]\nglob = 'a'\n[[rule]]\nglob = 'b'\nreadr = 'x'", "rule 2.readr: unknown key"),
        ("[[rule]]\nglob = 'a'\nreader = 3", "m.toml: rule 1.reader: must be a text (it is 3)"),
        ("[[rule]]\nglob = 'a'\nreader = 'x'", "m.toml rule 1: no reader is called 'x'"),
        ("[[rule]]\nglob = 'a'\ntags = [true]", "m.toml: rule 1.tags: must be a text"),
        ("[[rule]]\nglob = 'a'\nmax_trust = 'most'", "m.toml: rule 1.max_trust: must be one of"),
        ("max_trust = 'general '", 'did you mean general? (it is "general ")'),
        ("trust_documents = 'yes'", "m.toml: trust_documents: must be true or false"),
        ("ignore = 'a'", "m.toml: ignore: must be a list"),
        ("ignore_keys = [1]", "m.toml: ignore_keys[0]: must be a text"),
        ("chunking = 3", "m.toml: chunking: must be an object"),
        ("[chunking]\nsice = 3", "m.toml: chunking.sice: unknown key; did you mean size?"),
        ("[chunking]\nsize = 1.5", "m.toml: chunking.size: must be a whole number (it is 1.5)"),
        ("[defaults]\nsensitivity = 'x'\nscope = 3", " (and 1 more mistake)"),
    ],
)
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_manifest(text.encode(), Path("m.toml"))
    assert message in caught.value.message
    assert caught.value.hint
