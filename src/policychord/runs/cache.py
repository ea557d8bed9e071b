"""Results of steps on disk, each under a name made from everything that it depends on.

Files are data: one npz with the arrays and, as JSON, how they are put together. Reading one executes nothing. A file
that does not have this form, or names what is not a record of this package, counts as missing.
"""

import hashlib
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import load_arrays
from .store import write_bytes
from .versions import code_version, our_packages

FOLDER = ".work"
FORMAT = 1  # of the files; those of another format are made again
STRUCTURE = "structure"
RECORD, ARRAY, SCALAR, TUPLE, TABLE = "record", "array", "scalar", "tuple", "dict"  # what stands for what JSON lacks


class MissingError(LookupError):
    """There is no result under this name, or it cannot be read."""


class Result(NamedTuple):
    """What a step returned, and the seconds that it took."""

    value: Any
    seconds: float


def step_files(out: Path, study: str, steps: Mapping[str, Sequence[str]], *settings: Any) -> dict[str, Path]:
    """The file of each step, which is named with the modules that it uses.

    Another seed, setting, data file or version of their code is another file. Steps that depend on results of other
    studies have the settings of those behind their own.
    """
    common = [study, *(part.model_dump_json() for part in settings)]
    common += [text for part in settings for text in _contents(part)]

    def place(step: str, modules: Sequence[str]) -> Path:
        digest = hashlib.sha256("\0".join([step, code_version(*modules), *common]).encode()).hexdigest()[:16]
        words = re.sub(r"[^a-zA-Z0-9.]+", "-", step).strip("-")
        return out / FOLDER / study / f"{words}-{digest}.npz"

    return {step: place(step, modules) for step, modules in steps.items()}


def save_result(path: Path, step: str, result: Result) -> None:
    """Write the result of a step. Raises TypeError, with the place in the result, if it is not plain data."""
    write_bytes(path, as_bytes(result, f"the result of step {step!r}"))


def load_result(path: Path) -> Result:
    """The result in a file."""
    try:
        if not path.is_file():  # a pipe would never end
            raise FileNotFoundError(path)
        return _read(path)
    except Exception as error:  # a file that is cut short or foreign can fail in any way: the step is done again
        raise MissingError(str(path)) from error


def as_bytes(result: Result, what: str) -> bytes:
    """A result as a file holds it; `what` names what is not plain data."""
    arrays: list[np.ndarray] = []
    value = _encode(result.value, what, arrays)
    text = json.dumps({"format": FORMAT, "seconds": result.seconds, "value": value})
    file, structure = io.BytesIO(), np.frombuffer(text.encode(), np.uint8)
    np.savez(file, allow_pickle=False, **{STRUCTURE: structure}, **{str(k): array for k, array in enumerate(arrays)})
    return file.getvalue()


def from_bytes(content: bytes) -> Result:
    """What `as_bytes` was given."""
    try:
        return _read(io.BytesIO(content))
    except Exception as error:
        raise MissingError(f"{len(content)} bytes") from error


def _read(file: Any) -> Result:
    with load_arrays(file) as arrays:
        whole = json.loads(arrays[STRUCTURE].tobytes())
        if whole["format"] != FORMAT:
            raise ValueError(f"format {whole['format']}")
        return Result(_decode(whole["value"], arrays), float(whole["seconds"]))


def forget_others(out: Path, study: str, wanted: Iterable[Path]) -> None:
    """Delete what this run did not use: results of other settings or of older code."""
    for path in set((out / FOLDER / study).glob("*")) - set(wanted):
        if path.is_symlink() or not path.is_dir():  # a folder is none of ours
            path.unlink(missing_ok=True)


def _encode(value: Any, where: str, arrays: list[np.ndarray]) -> Any:
    """A value in what JSON has; arrays go to the list, and their number stands for them."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    jax = sys.modules.get("jax")  # who has not loaded it has none of its arrays
    if type(value) is np.ndarray or isinstance(value, np.generic) or (jax and isinstance(value, jax.Array)):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"{where} is an array of Python objects: return numbers or text.")
        arrays.append(array)
        return {SCALAR if isinstance(value, np.generic) else ARRAY: len(arrays) - 1}
    if type(value) is list:
        return [_encode(part, f"{where}[{k}]", arrays) for k, part in enumerate(value)]
    if type(value) is tuple:
        return {TUPLE: [_encode(part, f"{where}[{k}]", arrays) for k, part in enumerate(value)]}
    if type(value) is dict:
        return {
            TABLE: [[_encode(part, f"{where}[{name!r}]", arrays) for part in (name, value[name])] for name in value]
        }
    kind = type(value)
    name = f"{kind.__module__}:{kind.__qualname__}"
    try:
        known = _record(name) is kind
    except ValueError:
        known = False
    if not known:
        raise TypeError(
            f"{where} is a {kind.__name__} ({kind.__module__}): return plain data, which are numbers, text, arrays, "
            f"lists, tuples, dictionaries and NamedTuples of {' or '.join(sorted(our_packages()))}."
        )
    fields = {field: _encode(getattr(value, field), f"{where}.{field}", arrays) for field in value._fields}
    return {RECORD: name, "fields": fields}


def _decode(value: Any, arrays: Any) -> Any:
    if isinstance(value, list):
        return [_decode(part, arrays) for part in value]
    if not isinstance(value, dict):
        return value
    if RECORD in value:
        kind, fields = _record(value[RECORD]), value["fields"]
        if set(fields) != set(kind._fields):
            raise ValueError(f"{value[RECORD]} with the fields {sorted(fields)}")
        return kind._make(_decode(fields[name], arrays) for name in kind._fields)
    ((kind, inner),) = value.items()
    if kind in (ARRAY, SCALAR):
        array = arrays[str(int(inner))]
        return array[()] if kind == SCALAR else array
    if kind == TUPLE:
        return tuple(_decode(part, arrays) for part in inner)
    if kind == TABLE:
        return {_decode(name, arrays): _decode(part, arrays) for name, part in inner}
    raise ValueError(f"{kind} is not part of this format")


def _record(name: str) -> Any:
    """A NamedTuple class of our packages by `module:Class`; nothing else is ever looked up."""
    module, _, qualname = name.partition(":")
    if module.split(".")[0] not in our_packages() or "__" in name:
        raise ValueError(f"{name} is in none of {sorted(our_packages())}")
    kind: Any = import_module(module)
    for part in qualname.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise ValueError(f"{name} is not a NamedTuple")
    return kind


def _contents(settings: Any) -> list[str]:
    """Digests of the files that settings point to."""
    digests = []
    for value in dict(settings).values():
        if isinstance(value, Path):
            files = sorted(value.iterdir()) if value.is_dir() else [value]
            digests += [hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()]
    return digests
