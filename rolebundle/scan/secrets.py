"""Secrets in a text: keys, tokens and passwords, by the forms that their issuers publish.

The forms are those of the issuers' documentation (GitHub's and GitLab's token formats, AWS's unique
identifiers, RFC 7468 for keys, RFC 7519 for JSON Web Tokens, …). A form with a fixed prefix is
enough by itself; a value that is only named a secret must look random as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import log2
from typing import NamedTuple

from rolebundle.contracts.finding import Finding, ascii_note
from rolebundle.scan.linear import LinearPatterns

MAX_FOUND = 1_000
"""How often one form is reported in one text. What is left over is for quarantine."""

_REACH = 4_096
# A private key of 16,384 bits has 13 kB; keys in PGP blocks are larger.
_LONGEST_KEY = 65_536
_END_OF_KEY = "-----END "
_SHOWN = 4

# Documentation's own placeholders.
_PLACEHOLDER = re.compile(
    r"example|dummy|placeholder|changeme|change_me|your[-_]?|redacted|sample|xxxx|\*\*\*|<|\$\{|0000000"
    r"|1234567890|abcdefghij|\.\.\.",
    re.IGNORECASE,
)


class Form(NamedTuple):
    """How one kind of secret looks.

    ``named`` is for values that only their name calls a secret; they must look random.
    """

    kind: str
    begins: str
    goes_on: str
    bits: float = 2.5
    named: bool = False


FORMS = (
    Form(
        "private_key",
        r"-----BEGIN ",
        r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[^-]{32,}"
        r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    Form("putty_key", r"PuTTY-User-Key-File-[23]: ", r"[\s\S]+?Private-MAC: [0-9a-f]+"),
    Form("age_key", r"AGE-SECRET-KEY-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    Form("aws_access_key", r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)", r"[A-Z0-9]{16}\b"),
    Form("github_token", r"gh[pousr]_", r"[A-Za-z0-9_]{36,255}\b"),
    Form("github_token", r"github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b"),
    Form("gitlab_token", r"\bgl(?:pat|dt|ft|soat|rt|cbt|ptt|imt|agent|oas|ffct)-", r"[\w-]{20,64}"),
    Form("slack_token", r"\bxox[abeoprs]-", r"(?:\d+-)*[A-Za-z0-9-]{10,}"),
    Form("slack_token", r"\bxapp-", r"\d-[A-Z0-9]+-\d+-[a-z0-9]+"),
    Form(
        "slack_webhook", r"hooks\.slack\.com/services/T", r"[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}"
    ),
    Form("stripe_key", r"\b[rs]k_(?:live|prod)_", r"[0-9A-Za-z]{20,}"),
    Form("google_api_key", r"\bAIza", r"[\w-]{35}"),
    Form("google_oauth_secret", r"\bGOCSPX-", r"[\w-]{28}"),
    Form("google_oauth_token", r"\bya29\.", r"[\w-]{30,}"),
    Form("openai_key", r"\bsk-(?:proj|svcacct|admin)-", r"[\w-]{20,}"),
    Form("openai_key", r"\bsk-", r"[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    Form("anthropic_key", r"\bsk-ant-", r"[a-z0-9]+-[\w-]{40,}"),
    Form("huggingface_token", r"\bhf_", r"[A-Za-z]{34,}\b"),
    Form("npm_token", r"\bnpm_", r"[A-Za-z0-9]{36}\b"),
    Form("pypi_token", r"\bpypi-AgE", r"[\w-]{50,}"),
    Form("sendgrid_key", r"\bSG\.", r"[\w-]{22}\.[\w-]{43}"),
    Form("twilio_key", r"\bSK", r"[0-9a-f]{32}\b", 3.0),
    Form("mailgun_key", r"\bkey-", r"[0-9a-f]{32}\b", 3.0),
    Form("shopify_token", r"\bshp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}\b"),
    Form("square_token", r"\b(?:sq0csp-|sq0atp-|EAAA)", r"[\w-]{22,60}", 3.5),
    Form("digitalocean_token", r"\bdo[opr]_v1_", r"[0-9a-f]{64}\b"),
    Form("databricks_token", r"\bdapi", r"[0-9a-f]{32}\b", 3.0),
    Form("grafana_token", r"\bglsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}\b"),
    Form("vault_token", r"\bhv[sb]\.", r"[\w-]{24,}"),
    Form("telegram_token", r"\b[0-9]{8,10}:AA", r"[\w-]{33}"),
    Form("discord_token", r"\b[MNO][A-Za-z0-9_-]{23,25}\.", r"[\w-]{6}\.[\w-]{27,}", 3.5),
    Form("artifactory_key", r"\bAKCp", r"[A-Za-z0-9]{60,}\b"),
    Form("azure_storage_key", r"AccountKey=", r"[A-Za-z0-9+/]{86}=="),
    Form("json_web_token", r"\beyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{16,}"),
    Form(
        "password_in_url",
        r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|rediss?|amqps?|mssql|ftp|smtp)://",
        r"[^\s:/@]{1,64}:[^\s:/@]{8,128}@[A-Za-z0-9.-]+",
        3.0,
        named=True,
    ),
    Form(
        "named_secret",
        r"(?i:(?:api[_-]?key|secret[_-]?(?:access[_-]?)?key|client[_-]?secret|access[_-]?token"
        r"|auth[_-]?token|secret|passw(?:or)?d|private[_-]?key)[\"']?\s{0,3}(?::=|=>|=|:)\s{0,3}[\"'])",
        r"[A-Za-z0-9+/_.~!@#%^&*=-]{16,200}[\"']",
        3.5,
        named=True,
    ),
)


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The secrets in a text, in order; no note holds more than the beginning of one."""
    found: list[Finding] = []
    done = 0
    for number, start, match_end, matched in _patterns().spans(text, MAX_FOUND):
        form = FORMS[number]
        if start < done or not _is_secret(form, matched):
            continue
        end = match_end
        if form.kind == "private_key" and _END_OF_KEY not in matched:
            end = _end_of_key(text, end)
        done = end
        shown = "" if form.named else f", begins with {matched[:_SHOWN]!r}"
        note = ascii_note(f"{form.kind.replace('_', ' ')}{shown}")
        found.append(Finding(f"secret_{form.kind}", start, end, note))
    return tuple(found)


def masked(text: str, findings: Iterable[Finding]) -> str:
    """The text with each secret replaced by its kind; its lines stay where they are."""
    parts: list[str] = []
    done = 0
    for finding in findings:
        if not finding.kind.startswith("secret_") or finding.start < done:
            continue
        lines = text.count("\n", finding.start, finding.end)
        kind = finding.kind.removeprefix("secret_")
        parts += (text[done : finding.start], f"[masked: {kind}]", "\n" * lines)
        done = finding.end
    parts.append(text[done:])
    return "".join(parts)


@cache
def _patterns() -> LinearPatterns:
    return LinearPatterns([(form.begins, form.goes_on) for form in FORMS], _REACH)


def _is_secret(form: Form, matched: str) -> bool:
    if form.kind == "private_key":
        return True
    value = _value(matched) if form.named else matched
    if _PLACEHOLDER.search(value):
        return False
    if form.kind == "named_secret" and not (_has_digit(value) and _has_letter(value)):
        return False  # A sentence or a name of a setting.
    return _bits(value) >= form.bits


def _end_of_key(text: str, end: int) -> int:
    """Where a key ends that goes on for longer than a match may."""
    last = text.find(_END_OF_KEY, end, end + _LONGEST_KEY)
    if last < 0:
        return end
    line = text.find("\n", last)
    return len(text) if line < 0 else line


def _value(matched: str) -> str:
    """The part after the name: what is between the quotes, or between the colon and the at."""
    if matched[-1] in "\"'":
        body = matched[:-1]
        return body[max(body.rfind('"'), body.rfind("'")) + 1 :]
    return matched.split("://", 1)[1].split(":", 1)[1].split("@", 1)[0]


def _has_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _has_letter(value: str) -> bool:
    return any(character.isalpha() for character in value)


def _bits(value: str) -> float:
    """Shannon's entropy of the characters, in bits for each."""
    total = len(value)
    return -sum(n / total * log2(n / total) for n in Counter(value).values())
