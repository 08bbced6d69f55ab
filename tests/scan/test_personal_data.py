"""Personal data: what is labelled, and what only looks like it."""

from __future__ import annotations

import pytest

from rolebundle.scan.confidential import find_confidential


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("mail_address", "Write to jane.doe@corp.io, please.", "jane.doe@corp.io"),
        ("mail_address", "[mail](mailto:jane@corp.de)", "jane@corp.de"),
        ("phone_number", "Call +49 30 1234567.", "+49 30 1234567"),
        ("phone_number", "Call +44 (0)20 7946 0958.", "+44 (0)20 7946 0958"),
        ("phone_number", "+4915112345678", "+4915112345678"),
        ("phone_number", "(212) 555-0123", "(212) 555-0123"),
        ("phone_number", "Tel: 030 1234567", "Tel: 030 1234567"),
        ("iban", "IBAN DE89 3704 0044 0532 0130 00.", "DE89 3704 0044 0532 0130 00"),
        ("iban", "GB82WEST12345698765432", "GB82WEST12345698765432"),
        ("card_number", "Card 4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("card_number", "5555555555554444", "5555555555554444"),
        ("card_number", "3782 822463 10005", "3782 822463 10005"),
    ],
)
def test_personal_data_is_found_and_not_quoted(kind: str, text: str, value: str) -> None:
    for before in ("", "Größe \U0001f680: "):
        (finding,) = find_confidential(before + text).personal
        assert finding.kind == f"personal_{kind}"
        assert (before + text)[finding.start : finding.end] == value
        assert finding.note == kind.replace("_", " ")


@pytest.mark.parametrize(
    "text",
    [
        "name@example.com, a@b.example and me@localhost are examples.",
        "git clone git@github.com:a/b.git",
        "From: noreply@corp.io, support@corp.io, dev-request@lists.corp.io",
        "npm i pkg@1.2.3; img@2x.png; getty@tty1.service; @scope/name@latest.js",
        "postgres://app:secret@db.corp.io/x",
        "Version 1.2.3.4, 10.0.0.1 and 2606:2800:21f:cb07",
        "ISBN 978-3-16-148410-0; ISSN 2049-3630",
        "The time zone is +0200, the offset +1.234567890123.",
        "@@ -12,5 +12,7 @@ and +1 2 3 4 5 6 7 8 9 10",
        "DE89 3704 0044 0532 0130 01 has a wrong check digit.",
        "4111 1111 1111 1112 has a wrong check digit.",
        "0.4111111111111111, id-4111111111111111 and 41111111111111110",
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "17000000000000 ns, 1234 5678 9012 3456",
    ],
)
def test_what_looks_like_personal_data_is_none(text: str) -> None:
    assert find_confidential(text).personal == ()


def test_a_part_of_a_secret_is_no_personal_data() -> None:
    found = find_confidential("DB_PASSWORD=x9Kf2Lp@Q7vRt4.io")
    assert [finding.kind for finding in found.secrets] == ["secret_named_secret"]
    assert found.personal == ()
