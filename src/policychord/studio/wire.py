"""Frames between the server and the page, in one layout that `page/wire.js` reads as well.

    4 bytes    length of the header, little-endian
    header     JSON, padded with spaces to a multiple of 4; "arrays" lists [name, shape] in order
    arrays     float32, little-endian, row by row, one after another

The padding keeps every array where the browser can look at it without copying.
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._types import Array


class Frame(NamedTuple):
    """What there is to draw. A newer frame of the same part replaces one that was not sent yet."""

    part: str
    header: Mapping[str, Any]
    arrays: Mapping[str, Array]


def pack(frame: Frame) -> bytes:
    """The frame as bytes. A number that is not finite has no place in JSON: it becomes null."""
    arrays = {name: np.ascontiguousarray(array, dtype="<f4") for name, array in frame.arrays.items()}
    shapes = [[name, list(array.shape)] for name, array in arrays.items()]
    header = {"part": frame.part, **frame.header, "arrays": shapes}
    text = json.dumps({name: _plain(value) for name, value in header.items()}, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    return b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays.values())])


def unpack(data: bytes) -> Frame:
    """The frame that `pack` was given, as the page reads it; bytes that are no frame are a ValueError."""
    try:
        (length,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + length])
        arrays, place = {}, 4 + length
        for name, shape in header.pop("arrays"):
            count = math.prod(shape)
            arrays[name] = np.frombuffer(data, "<f4", count, place).reshape(shape)
            place += 4 * count
        if place != len(data):
            raise ValueError(f"{len(data) - place} bytes are left over")
        return Frame(header.pop("part"), header, arrays)
    except (struct.error, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"these {len(data)} bytes are no frame: {error}.") from None


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
