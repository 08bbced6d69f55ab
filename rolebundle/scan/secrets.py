"""Secrets in a text: keys, tokens and passwords, by the formats that their issuers publish.

The formats come from the issuers' documentation (GitHub's and GitLab's token formats, AWS's unique
identifiers, RFC 7468 for keys, RFC 7519 for JSON Web Tokens, …). A fixed prefix is sufficient. A
value that only its name calls a secret must look random too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import log2
from typing import NamedTuple

from rolebundle.scan.finding import Finding, ascii_note
from rolebundle.scan.linear import LinearPatterns

MAX_FINDINGS_PER_FORMAT = 1_000
"""How often one format is reported in one text."""

_MAX_MATCH_BYTES = 4_096
# A private key of 16,384 bits has 13 kB; keys in PGP blocks are larger.
_MAX_KEY_CHARS = 65_536
_END_OF_KEY = "-----END "
_SHOWN_CHARS = 4

# Placeholders in documentation.
_PLACEHOLDER = re.compile(
    r"example|dummy|placeholder|changeme|change_me|your[-_]?|redacted|sample|xxxx|\*\*\*|<|\$\{|0000000"
    r"|1234567890|abcdefghij|\.\.\.",
    re.IGNORECASE,
)


class Format(NamedTuple):
    """The format of one kind of secret.

    Args:
        kind: its name. The finding's kind is ``secret_`` and this name.
        begins: an RE2 expression for its beginning.
        goes_on: an RE2 expression for the rest.
        min_bits: the lowest entropy per character, in bits.
        is_named: whether only a name before the value calls it a secret.
    """

    kind: str
    begins: str
    goes_on: str
    min_bits: float = 2.5
    is_named: bool = False


FORMATS = (
    Format(
        "private_key",
        r"-----BEGIN ",
        r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[^-]{32,}"
        r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    Format("putty_key", r"PuTTY-User-Key-File-[23]: ", r"[\s\S]+?Private-MAC: [0-9a-f]+"),
    Format("age_key", r"AGE-SECRET-KEY-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    Format("aws_access_key", r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)", r"[A-Z0-9]{16}\b"),
    Format("github_token", r"gh[pousr]_", r"[A-Za-z0-9_]{36,255}\b"),
    Format("github_token", r"github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b"),
    Format(
        "gitlab_token", r"\bgl(?:pat|dt|ft|soat|rt|cbt|ptt|imt|agent|oas|ffct)-", r"[\w-]{20,64}"
    ),
    Format("slack_token", r"\bxox[abeoprs]-", r"(?:\d+-)*[A-Za-z0-9-]{10,}"),
    Format("slack_token", r"\bxapp-", r"\d-[A-Z0-9]+-\d+-[a-z0-9]+"),
    Format(
        "slack_webhook", r"hooks\.slack\.com/services/T", r"[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}"
    ),
    Format("stripe_key", r"\b[rs]k_(?:live|prod)_", r"[0-9A-Za-z]{20,}"),
    Format("google_api_key", r"\bAIza", r"[\w-]{35}"),
    Format("google_oauth_secret", r"\bGOCSPX-", r"[\w-]{28}"),
    Format("google_oauth_token", r"\bya29\.", r"[\w-]{30,}"),
    Format("openai_key", r"\bsk-(?:proj|svcacct|admin)-", r"[\w-]{20,}"),
    Format("openai_key", r"\bsk-", r"[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    Format("anthropic_key", r"\bsk-ant-", r"[a-z0-9]+-[\w-]{40,}"),
    Format("huggingface_token", r"\bhf_", r"[A-Za-z]{34,}\b"),
    Format("npm_token", r"\bnpm_", r"[A-Za-z0-9]{36}\b"),
    Format("pypi_token", r"\bpypi-AgE", r"[\w-]{50,}"),
    Format("sendgrid_key", r"\bSG\.", r"[\w-]{22}\.[\w-]{43}"),
    Format("twilio_key", r"\bSK", r"[0-9a-f]{32}\b", 3.0),
    Format("mailgun_key", r"\bkey-", r"[0-9a-f]{32}\b", 3.0),
    Format("shopify_token", r"\bshp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}\b"),
    Format("square_token", r"\b(?:sq0csp-|sq0atp-|EAAA)", r"[\w-]{22,60}", 3.5),
    Format("digitalocean_token", r"\bdo[opr]_v1_", r"[0-9a-f]{64}\b"),
    Format("databricks_token", r"\bdapi", r"[0-9a-f]{32}\b", 3.0),
    Format("grafana_token", r"\bglsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}\b"),
    Format("vault_token", r"\bhv[sb]\.", r"[\w-]{24,}"),
    Format("telegram_token", r"\b[0-9]{8,10}:AA", r"[\w-]{33}"),
    Format("discord_token", r"\b[MNO][A-Za-z0-9_-]{23,25}\.", r"[\w-]{6}\.[\w-]{27,}", 3.5),
    Format("artifactory_key", r"\bAKCp", r"[A-Za-z0-9]{60,}\b"),
    Format("azure_storage_key", r"AccountKey=", r"[A-Za-z0-9+/]{86}=="),
    Format("json_web_token", r"\beyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{16,}"),
    Format(
        "password_in_url",
        r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|rediss?|amqps?|mssql|ftp|smtp)://",
        r"[^\s:/@]{1,64}:[^\s:/@]{8,128}@[A-Za-z0-9.-]+",
        3.0,
        is_named=True,
    ),
    Format(
        "named_secret",
        r"(?i:(?:api[_-]?key|secret[_-]?(?:access[_-]?)?key|client[_-]?secret|access[_-]?token"
        r"|auth[_-]?token|secret|passw(?:or)?d|private[_-]?key)[\"']?\s{0,3}(?::=|=>|=|:)\s{0,3}[\"'])",
        r"[A-Za-z0-9+/_.~!@#%^&*=-]{16,200}[\"']",
        3.5,
        is_named=True,
    ),
)


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The secrets in a text, in order. A note shows at most the first characters of a secret."""
    findings: list[Finding] = []
    done = 0
    for number, start, match_end, matched in _patterns().spans(text, MAX_FINDINGS_PER_FORMAT):
        format_ = FORMATS[number]
        if start < done or not _is_secret(format_, matched):
            continue
        end = match_end
        if format_.kind == "private_key" and _END_OF_KEY not in matched:
            end = _end_of_key(text, end)
        done = end
        shown = "" if format_.is_named else f", begins with {matched[:_SHOWN_CHARS]!r}"
        note = ascii_note(f"{format_.kind.replace('_', ' ')}{shown}")
        findings.append(Finding(f"secret_{format_.kind}", start, end, note))
    return tuple(findings)


def masked(text: str, findings: Iterable[Finding]) -> str:
    """The text with each secret replaced by its kind. Line numbers stay the same."""
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
    return LinearPatterns(
        [(format_.begins, format_.goes_on) for format_ in FORMATS], _MAX_MATCH_BYTES
    )


def _is_secret(format_: Format, matched: str) -> bool:
    if format_.kind == "private_key":
        return True
    value = _value(matched) if format_.is_named else matched
    if _PLACEHOLDER.search(value):
        return False
    if format_.kind == "named_secret" and not (_has_digit(value) and _has_letter(value)):
        return False  # A sentence or the name of a setting.
    return _entropy(value) >= format_.min_bits


def _end_of_key(text: str, end: int) -> int:
    """The end of a key that is longer than a match may be."""
    last = text.find(_END_OF_KEY, end, end + _MAX_KEY_CHARS)
    if last < 0:
        return end
    line = text.find("\n", last)
    return len(text) if line < 0 else line


def _value(matched: str) -> str:
    """The part after the name: between the quotes, or between the colon and the at sign."""
    if matched[-1] in "\"'":
        body = matched[:-1]
        return body[max(body.rfind('"'), body.rfind("'")) + 1 :]
    return matched.split("://", 1)[1].split(":", 1)[1].split("@", 1)[0]


def _has_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _has_letter(value: str) -> bool:
    return any(character.isalpha() for character in value)


def _entropy(value: str) -> float:
    """Shannon's entropy in bits per character."""
    total = len(value)
    return -sum(n / total * log2(n / total) for n in Counter(value).values())
