"""Secrets: each format is found, never shown whole, and masked without moving a line."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

import pytest

from rolebundle.scan.confidential import find_secrets
from rolebundle.scan.secrets import masked
from scan.secret_forms import SECRET_FORMS, harmless_lines, some
from support.amounts import lengths, linear_time, rounds

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


# Generated from random characters, so that no file of this project contains a secret.
FORMATS: dict[str, Callable[[random.Random], str]] = {
    "private_key": lambda c: (
        "-----BEGIN RSA PRIVATE"
        + " KEY-----\n"
        + "\n".join(some(c, ALNUM + "+/", 64) for _ in range(c.choice([8, 25, 120])))
        + "\n-----END RSA PRIVATE"
        + " KEY-----"
    ),
    "aws_access_key": lambda c: "AK" + "IA" + some(c, string.ascii_uppercase + "234567", 16),
    "github_token": lambda c: c.choice(["ghp", "gho", "ghs"]) + "_" + some(c, ALNUM, 36),
    "gitlab_token": lambda c: "glpat" + "-" + some(c, ALNUM, 20),
    "slack_token": lambda c: "xoxb" + "-" + some(c, string.digits, 12) + "-" + some(c, ALNUM, 24),
    "stripe_key": lambda c: "sk_live" + "_" + some(c, ALNUM, 24),
    "google_api_key": lambda c: "AI" + "za" + some(c, ALNUM, 35),
    "openai_key": lambda c: "sk-proj" + "-" + some(c, ALNUM, 48),
    "anthropic_key": lambda c: "sk-ant" + "-api03-" + some(c, ALNUM, 95),
    "huggingface_token": lambda c: "hf" + "_" + some(c, string.ascii_letters, 34),
    "npm_token": lambda c: "npm" + "_" + some(c, ALNUM, 36),
    "pypi_token": lambda c: "pypi" + "-AgEIcHlwaS5vcmc" + some(c, ALNUM, 80),
    "sendgrid_key": lambda c: "SG." + some(c, ALNUM, 22) + "." + some(c, ALNUM, 43),
    "twilio_key": lambda c: "SK" + some(c, HEX, 32),
    "digitalocean_token": lambda c: "dop_v1" + "_" + some(c, HEX, 64),
    "telegram_token": lambda c: some(c, "123456789", 9) + ":AA" + some(c, ALNUM, 33),
    "azure_storage_key": lambda c: "AccountKey=" + some(c, ALNUM, 86) + "==",
    "json_web_token": lambda c: (
        "eyJ" + some(c, ALNUM, 30) + ".eyJ" + some(c, ALNUM, 50) + "." + some(c, ALNUM, 43)
    ),
    "password_in_url": lambda c: "postgres://app:" + some(c, ALNUM, 18) + "@db.internal/x",
    "named_secret": lambda c: 'client_secret = "' + some(c, ALNUM, 30) + '7a"',
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_secret_is_found_and_masked(kind: str) -> None:
    chance = random.Random(kind)
    for _ in range(50):
        secret = FORMATS[kind](chance)
        text = f"Über die Einrichtung:\n\n  value: {secret}\nNext line \U0001f511.\n"
        (finding,) = find_secrets(text)
        assert finding.kind == f"secret_{kind}"
        assert text[finding.start : finding.end].strip("\n") in secret
        masked_text = masked(text, [finding])
        assert masked_text.count("\n") == text.count("\n")
        assert find_secrets(masked_text) == ()
        for part in (secret[i : i + 12] for i in range(18, len(secret) - 30, 7)):
            assert part not in masked_text.replace("PRIVATE KEY", "")
        tail = finding.note.rpartition("'")[0].rpartition("'")[2]
        assert len(tail) <= 4


@rounds(2, 40)
def test_common_forms_of_secrets_are_found_and_masked(rounds: int) -> None:
    missed = []
    for name, form in SECRET_FORMS.items():
        for number in range(rounds):
            text, secret = form(random.Random(f"{name} {number}"))
            text = f"Before.\n{text}\nAfter.\n"
            masked_text = masked(text, find_secrets(text))
            parts = [secret[i : i + 10] for i in range(8, max(9, len(secret) - 12), 5)]
            if masked_text == text or any(part in masked_text for part in parts):
                missed.append(name)
    assert len(missed) <= len(SECRET_FORMS) * rounds * 0.05, missed


@rounds(500, 5_000)
def test_identifiers_examples_and_placeholders_are_no_secrets(rounds: int) -> None:
    lines = harmless_lines(rounds)
    reported = [name for name, line in lines if find_secrets(f"{line}\n")]
    assert len(reported) <= len(lines) * 0.01, reported


@pytest.mark.parametrize("first", ["GITHUB_TOKEN=", "token: ", ""])
def test_the_issuers_format_says_more_than_the_name(first: str) -> None:
    (finding,) = find_secrets(first + FORMATS["github_token"](random.Random(1)))
    assert finding.kind == "secret_github_token"


def test_only_the_value_is_masked() -> None:
    value = "x9Kf2LpQ7vRt4WmZ"
    for before, after in (
        ("DB_PASSWORD=", ""),
        ('{"password": "', '"}'),
        ("https://me:", "@git.internal/a.git"),
        ("Server=db;Password=", ";Encrypt=True"),
    ):
        text = f"{before}{value}{after}"
        assert masked(text, find_secrets(text)).replace("[masked: ", "").endswith(f"]{after}")
        assert masked(text, find_secrets(text)).startswith(before)


def test_a_variable_of_the_environment_is_masked_to_its_end() -> None:
    text = "DB_PASSWORD=aB3,dE5;gH7)x&z!9\nnext"
    assert masked(text, find_secrets(text)) == "DB_PASSWORD=[masked: named_secret]\nnext"


def test_a_private_key_without_an_end_is_masked_whole() -> None:
    chance = random.Random(3)
    key = FORMATS["private_key"](chance).partition("-----END")[0] * 1
    masked_text = masked(f"a\n{key}", find_secrets(f"a\n{key}"))
    assert masked_text.split() == ["a", "[masked:", "private_key]"]


def test_a_page_about_keys_has_no_secret() -> None:
    # As the documentation of a module for TLS shows the files that it reads.
    page = (
        "-----BEGIN RSA PRIVATE" + " KEY-----\n... (private key in base64 encoding) ...\n"
        "-----END RSA PRIVATE"
        + " KEY-----\n-----BEGIN CERTIFICATE-----\n... (certificate in base64 "
        "PEM encoding) ...\n-----END CERTIFICATE-----\n"
    )
    assert find_secrets(page) == ()


@pytest.mark.parametrize(
    "text",
    [
        "The access key AKIAIOSFODNN7EXAMPLE is Amazon's own example.",
        "password = 'changeme-please-123456'",
        'Set `api_key = "<your key here 12345>"` in the file.',
        "postgres://user:password@localhost/db",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "A private key begins with BEGIN PRIVATE KEY.",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sk-learn and hf_hub are packages; SKU-12345; pypi-simple",
        'The secret: "nobody knows how it works"',
        "def connect(password: Optional[bool], api_key: Dict[str, Any], token: t.Optional[AnyStr]):",
    ],
)
def test_ordinary_text_has_no_findings(text: str) -> None:
    assert find_secrets(text) == ()


def test_a_text_without_secrets_is_not_masked() -> None:
    assert masked("a\nb", []) == "a\nb"


@pytest.mark.sample(6)
@lengths
@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN ",
        "ghp_",
        "eyJ",
        "password='a",
        "AKIA",
        "PuTTY-User-Key-File-2: ",
        "postgres://",
        "M" * 24 + ".",
        "a://b:",
        "api_key = 'a",
        "login a password ",
        ":5432:a:b:",
        "a" * 32 + "-",
        "+1 ",
        "a@",
        "4111 ",
        "DE89 3704 ",
        "-----BEGIN PRIVATE KEY-----" + "a" * 33,
    ],
)
def test_long_text_takes_linear_time(piece: str, length: int) -> None:
    find_secrets("x")
    text = piece * (length // len(piece))
    with linear_time(length):
        find_secrets(text)
