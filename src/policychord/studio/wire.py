"""Messages from the browser, and frames for it in one layout that `static/wire.js` reads as well.

    4 bytes    length of the header, little-endian
    header     JSON, padded with spaces to a multiple of 4; "arrays" lists [name, shape] in order
    arrays     float32, little-endian, row by row, one after another

The padding keeps every array where the browser can look at it without copying.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json

from .._types import Array

LARGEST = 2**53  # beyond it the page's numbers are not exact, and conversions overflow


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
    text = as_json(header).encode()
    text += b" " * (-len(text) % 4)
    return b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays.values())])


def as_json(value: Any) -> str:
    """JSON of anything that a page may say; a number that is not finite becomes null."""
    return to_json(value, inf_nan_mode="null", fallback=lambda other: other.item()).decode()  # NumPy's numbers


def read_message(text: str) -> dict[str, Any]:
    """What the page asks for, as names with values; every number in it is finite and moderate."""
    try:
        message = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"this message is not JSON: {error}.") from None
    except RecursionError:
        raise ValueError("this message is nested too deeply.") from None
    if not (isinstance(message, dict) and message and set(message) <= {"set", "act", "do", "number"}):
        raise ValueError('a message is {"set": {name: value}}, {"act": {name: value}} or {"do": what}.')
    for word in ("set", "act"):
        if not isinstance(message.get(word, {}), dict):
            raise ValueError(f"{word} = {str(message[word])[:60]}: pass names with values.")
    if message.get("do", "restart") not in ("restart", "rest", "wake"):
        raise ValueError(f"do = {str(message['do'])[:60]}: use restart, rest or wake.")
    return message


def _number(text: str) -> int | float:
    value = float(text)
    if not abs(value) <= LARGEST:
        shown = text if len(text) <= 60 else f"{text[:20]}... ({len(text)} characters)"
        raise ValueError(f"{shown} is not a number that the studio takes: pass one from -2^53 to 2^53.")
    return int(text) if text.lstrip("-").isdigit() else value
