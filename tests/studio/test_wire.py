"""Frames survive the way, and bytes that are no frame are refused in words."""

import numpy as np
import pytest
from benchmarks.frames import unpack
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from policychord.studio.wire import Frame, pack

FLOATS = arrays(np.float32, array_shapes(min_dims=0, max_dims=3, min_side=0), elements=st.floats(width=32))
NAMES = st.text(max_size=8)


@given(st.dictionaries(NAMES, FLOATS, max_size=4), st.dictionaries(NAMES, st.integers() | st.text(), max_size=3))
def test_a_frame_comes_back(arrays, header):
    header = {name: value for name, value in header.items() if name not in ("part", "arrays")}
    data = pack(Frame("any", header, arrays))
    back = unpack(data)
    assert (back.part, back.header) == ("any", header)
    assert list(back.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_frame(data):
    with pytest.raises(ValueError, match="no frame"):
        unpack(data)


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_a_damaged_frame_is_a_frame_or_refused(where, damage):
    data = bytearray(pack(Frame("gate", {"k": 3}, {"a": np.arange(12.0).reshape(3, 4)})))
    at = where % len(data)
    data[at : at + len(damage)] = damage
    refused = None
    try:
        unpack(bytes(data))
    except ValueError as error:
        refused = str(error)
    assert refused is None or "no frame" in refused


def test_arrays_lie_where_the_browser_can_look_at_them():
    for length in range(8):
        data = pack(Frame("x" * length, {}, {"a": np.ones(3)}))
        assert len(data) % 4 == 0
        assert int.from_bytes(data[:4], "little") % 4 == 0


def test_what_is_not_finite_becomes_null():
    assert unpack(pack(Frame("gate", {"gap": float("nan"), "far": np.float64("inf")}, {}))).header == {
        "gap": None,
        "far": None,
    }
