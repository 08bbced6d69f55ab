"""JSON from outside: what two readers could read differently is refused with a reason."""

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import RolebundleError
from rolebundle.interfaces.json_lines import json_value, rpc_code


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"task": NaN}', "NaN is not a JSON number"),
        (b'{"task": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"task": 1e999}', "out of range"),
        (b'{"task": ' + b"1" * 5_000 + b"}", "more than 400 digits"),
        (b'{"task": "a", "task": "b"}', "occurs twice"),
        (b'\xef\xbb\xbf{"task": "a"}', "BOM"),
        (b'{"task": "\xff"}', "no UTF-8 at byte 11"),
        (b"[" * 100_000, "nested more than 100 levels"),
    ],
)
def test_what_it_must_not_say_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(RolebundleError) as caught:
        json_value(data)
    assert reason in caught.value.message
    assert (caught.value.code, rpc_code(caught.value)) == ("not_json", -32700)


def test_a_key_that_occurs_twice_among_many_is_found_at_once() -> None:
    keys = ",".join(f'"{number}":0' for number in [*range(60_000), 59_999])
    started = perf_counter()
    with pytest.raises(RolebundleError, match="'59999' occurs twice"):
        json_value(f"{{{keys}}}".encode())
    assert perf_counter() - started < 5


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_coded_error(data: bytes) -> None:
    try:
        json_value(data)
    except RolebundleError as error:
        assert error.code == "not_json"
