"""Frames as the page reads them; the library only writes them."""

import json
import math
import struct

import numpy as np

from policychord.studio.wire import Frame


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
