"""Secrets and personal data in a text.

One search finds both, because each search reads the whole text.
"""

from __future__ import annotations

import re
from functools import cache

from rolebundle.resources import inverted
from rolebundle.scan import secrets
from rolebundle.scan.finding import Finding, ascii_note, overlaps
from rolebundle.scan.linear import LinearPatterns

MAX_FINDINGS_PER_FORMAT = 1_000
"""How often one format is reported in one text."""

_MAX_MATCH_BYTES = 1_024
_SHOWN_CHARS = 4


Findings = tuple[Finding, ...]


def find_confidential(text: str) -> tuple[Findings, Findings]:
    """The secrets and the personal data in a text, each in order.

    A note shows at most the first characters of a secret, and nothing of personal data. What is
    part of a secret is no personal data.
    """
    found: list[tuple[int, int, int]] = []
    count = len(secrets.FORMATS)
    personal: list[Finding] = []
    for number, start, end, matched in _patterns().spans(text, MAX_FINDINGS_PER_FORMAT):
        if number < count:
            places = secrets.places(secrets.FORMATS[number], text, start, end, matched)
            found += ((*place, number) for place in places)
        else:
            kind = secrets.PERSONAL[number - count].kind
            if place := _personal_place(kind, text, start, end):
                personal.append(Finding(f"personal_{kind}", *place, kind.replace("_", " ")))
    found.sort(key=lambda secret: (secret[0], secret[2]))
    findings: list[Finding] = []
    masked_until = 0
    for start, end, number in found:
        if start >= masked_until:
            masked_until = end
            format_ = secrets.FORMATS[number]
            note = format_.kind.replace("_", " ")
            if format_.value == "whole":
                note += f", begins with {text[start : start + _SHOWN_CHARS]!r}"
            findings.append(Finding(f"secret_{format_.kind}", start, end, ascii_note(note)))
    outside = tuple(finding for finding in personal if not overlaps(finding, findings))
    return tuple(findings), outside


def of_people(personal: Findings, text: str) -> Findings:
    """Personal data without the mail addresses that are in no list.

    One address says who wrote a text, or whom to ask, and so does each one in angle brackets.
    """
    mails = [finding for finding in personal if finding.kind == "personal_mail_address"]
    addresses = [finding for finding in mails if text[finding.start - 1] != "<"]
    listed = set[Finding]()
    for number, finding in enumerate(addresses):
        near = addresses[max(0, number - MIN_LISTED) : number + MIN_LISTED]
        near = [other for other in near if abs(other.start - finding.start) <= LIST_CHARS]
        if len({text[other.start : other.end].lower() for other in near}) >= MIN_LISTED:
            listed.add(finding)
    return tuple(f for f in personal if f in listed or f.kind != "personal_mail_address")


def find_secrets(text: str) -> Findings:
    """The secrets in a text, in order."""
    return find_confidential(text)[0]


def without_secrets(text: str) -> str:
    """A short text, such as a path, with each secret masked."""
    return secrets.masked(text, find_secrets(text))


@cache
def _patterns() -> LinearPatterns:
    formats = (*secrets.FORMATS, *secrets.PERSONAL)
    expressions = [(format_.begins, format_.goes_on) for format_ in formats]
    return LinearPatterns(expressions, _MAX_MATCH_BYTES)


# -- personal data --
#
# Personal data in a text: mail addresses, phone numbers, IBANs and card numbers.
#
# A number counts only if its check digits are right (ISO 13616 for IBANs, ISO 7812 for cards) or if
# it is written like a phone number (ITU-T E.123). Mail addresses of roles (RFC 2142) and of the
# domains that RFC 2606 reserves for examples belong to no person.


MIN_LISTED = 5
"""This number of different mail addresses ..."""
LIST_CHARS = 1_000
"""... this near to one another are a list of people."""


_ROLES = secrets.expression("role_mailbox")
_NO_DOMAIN = secrets.expression("no_domain")
_TOP_LEVEL = secrets.expression("top_level_domain")
_CARD = secrets.expression("known_card")
_FILE_ENDINGS = frozenset("js ts go hs rb cs db gz xz so md py rs sh ps pm".split())
_IBAN_LENGTHS = inverted(secrets.TABLE["iban_countries"])
_NUMBER_NEIGHBOURS = frozenset("0123456789.,-_/:+=#%$&@*^~ABCDEFabcdef\\")
_MIN_PHONE, _MAX_PHONE = 9, 15
_MIN_PLAIN_PHONE = 11


def _personal_place(kind: str, text: str, start: int, end: int) -> tuple[int, int] | None:
    """Start and end of the personal data in a match of its format, or ``None`` without any."""
    before = text[start - 1] if start else ""
    matched = text[start:end]
    if kind == "mail_address":
        return (start, end) if _is_mail_address(matched, before, text[start - 7 : start]) else None
    after = text[end : end + 1]
    if after and (after.isalnum() or (after in "-_=@:/" and text[end + 1 : end + 2].isalnum())):
        return None
    if kind == "iban":
        is_apart = not before.strip(" \t\n:;,\"'(<>|=*`")
        end = start + _iban_length(matched)
        return (start, end) if is_apart and end > start else None
    if before and (before.isalnum() or before in _NUMBER_NEIGHBOURS):
        return None
    is_personal = _is_phone_number(matched) if kind == "phone_number" else _is_card_number(matched)
    return (start, end) if is_personal else None


def _is_mail_address(address: str, before: str, context: str) -> bool:
    if before and before in ":/" and not context.endswith("mailto:"):
        return False  # The user of an URL, or a path.
    mailbox, _, domain = address.rpartition("@")
    top_level = domain.rpartition(".")[2]
    if _ROLES.fullmatch(mailbox) or not any(map(str.isalpha, mailbox)):
        return False
    is_file = not _TOP_LEVEL.fullmatch(top_level) or top_level.lower() in _FILE_ENDINGS
    return not is_file and not _NO_DOMAIN.fullmatch(domain)


def _is_phone_number(matched: str) -> bool:
    number = matched.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").lstrip(".: ")
    is_named = number != matched
    digits = re.sub(r"\D", "", number)
    groups = re.findall(r"\d+", number)
    if not number.startswith(("+", "(+")):
        is_american = re.fullmatch(r"\([2-9]\d\d\)[ .-]?\d{3}[ .-]\d{4}", number) is not None
        return is_american or (is_named and 6 <= len(digits) <= _MAX_PHONE)
    if digits.startswith("0") or not _MIN_PHONE <= len(digits) <= _MAX_PHONE:
        return False
    if len(groups) == 1 or re.fullmatch(r"\+\d+\.\d+", number):
        return is_named or (len(groups) == 1 and len(digits) >= _MIN_PLAIN_PHONE)
    # `+1 2 3 4 5 6 7 8 9` is a list of numbers. A group of one digit is a trunk prefix: `(0)`.
    return len(groups[0]) <= 3 and all(len(group) > 1 for group in groups[1:] if group != "0")


def _iban_length(matched: str) -> int:
    """The length in characters of the IBAN at the beginning of a match; 0 if there is none."""
    length = int(_IBAN_LENGTHS.get(matched[:2], 0))
    # A space follows each fourth character, or none.
    end = length + (length - 1) // 4 if " " in matched[:5] else length
    number = matched[:end].replace(" ", "")
    if not length or len(number) != length or matched[end : end + 1].isalnum():
        return 0
    as_digits = "".join(str(int(character, 36)) for character in number[4:] + number[:4])
    return end if int(as_digits) % 97 == 1 else 0


def _is_card_number(matched: str) -> bool:
    digits = re.sub(r"\D", "", matched)
    groups = [*map(len, re.split(r"[ -]", matched))]
    if groups not in ([len(digits)], [4, 4, 4, 4], [4, 6, 5], [4, 6, 4]):
        return False
    # The last digit is the check digit of the others (Luhn's algorithm).
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    is_checked = (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0
    return is_checked and _CARD.fullmatch(digits) is not None
