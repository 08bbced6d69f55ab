"""The mapper of rows: what comes out is what the annotations say, or the corpus is damaged."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Attributes
from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.stored_values import records


class Inner(NamedTuple):
    words: tuple[str, ...]
    numbers: tuple[int, ...]


class Outer(NamedTuple):
    name: str
    inner: Inner
    tier: Literal["a", "b"]
    is_set: bool
    size: int
    vector: bytes
    until: str | None
    attributes: Attributes


ROW = ("n", '["x"]', '["1"]', "a", 1, 7, b"v", None, '{"k": ["v"]}')
values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.binary(max_size=3),
    st.sampled_from(["", "a", "[]", '["x"]', "[1]", "{}", '{"k": "v"}', '{"k": [1]}', "[" * 9999]),
)  # fmt: skip


def test_a_row_as_it_is_stored() -> None:
    [record] = records(Outer, [ROW])
    assert record == (
        "n", (("x",), (1,)), "a", True, 7, b"v", None, (("k", ("v",)),)
    )  # fmt: skip


@given(place=st.integers(0, len(ROW) - 1), value=values)
def test_any_other_value_is_damage(place: int, value: Any) -> None:
    row = [*ROW]
    row[place] = value
    try:
        [record] = records(Outer, [ROW, row])[1:]
    except CorpusCorrupt as error:
        assert error.exit_code == 7 and "doctor" in error.hint
        return
    assert isinstance(record.name, str) and record.tier in ("a", "b")
    assert all(isinstance(word, str) for word in record.inner.words)
    assert all(type(number) is int for number in record.inner.numbers)
    assert record.is_set is True or record.is_set is False
    assert type(record.size) is int and type(record.vector) is bytes
    assert record.until is None or isinstance(record.until, str)
    assert all(isinstance(text, str) for _, texts in record.attributes for text in texts)


@pytest.mark.parametrize("row", [ROW[:-1], (*ROW, 1)])
def test_another_number_of_columns_is_damage(row: tuple[Any, ...]) -> None:
    with pytest.raises(CorpusCorrupt):
        records(Outer, [row])
