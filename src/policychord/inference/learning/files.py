"""What learning has reached, in a file of arrays: nothing else is written, and nothing that is read is executed."""

import hashlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..._files import load_arrays, part_beside
from ..likelihoods import Likelihood
from ..optimise import Optimum
from ..parameters import free_names


def write_optimum(path: Path, likelihood: Likelihood, optimum: Optimum) -> None:
    """Store an optimum, complete or not; the file is there as a whole or not at all."""
    arrays: dict[str, Any] = optimum._asdict() | {"paths": np.concatenate([np.zeros(0), *optimum.paths])}
    length = np.array([len(series) for series in optimum.paths], dtype=int)
    path.parent.mkdir(parents=True, exist_ok=True)
    target = part_beside(path)
    with open(target, "wb") as file:
        np.savez(file, **arrays, length=length, about=_about(likelihood))
    target.replace(path)


def read_optimum(path: Path, likelihood: Likelihood) -> Optimum:
    """What `write_optimum` stored, or a sentence that says why it does not serve."""
    if not path.is_file():
        raise ValueError(f"{path} is a folder, a pipe or a device: name another file.")
    try:
        with load_arrays(path) as stored:
            have = {name: stored[name] for name in (*Optimum._fields, "length", "about")}
        same = np.array_equal(have.pop("about"), _about(likelihood))
        optimum = _optimum(len(free_names(likelihood.parameters)), **have) if same else None
    except Exception as error:  # a file that is cut short or foreign can fail in any way
        raise ValueError(f"{path} holds no results of learning ({error}): delete it, or name another file.") from error
    if optimum is None:
        raise ValueError(
            f"{path} holds results for other parameters or other decisions: delete it, or name another file."
        )
    return optimum


def _optimum(count: int, *, paths: np.ndarray, length: np.ndarray, **fields: np.ndarray) -> Optimum:
    """An optimum of so many numbers from its arrays, if they have the right shapes."""
    length = length.astype(int)
    arrays: dict[str, Any] = {name: fields.pop(name).astype(float) for name in ("z", "starts", "tried", "heights")}
    starts, tried = len(arrays["starts"]), len(arrays["heights"])
    shapes = [array.shape for array in (*arrays.values(), paths)]
    if shapes != [(count,), (starts, count), (tried, count), (tried,), (length.sum(),)]:
        raise ValueError(f"arrays of the shapes {shapes}")
    kinds: dict[str, Any] = {"evaluations": int, "converged": bool, "complete": bool}
    numbers: dict[str, Any] = {name: kinds.get(name, float)(value) for name, value in fields.items()}
    parts = np.split(paths.astype(float), np.cumsum(length)[:-1]) if len(length) else []
    return Optimum(**arrays, **numbers, paths=tuple(parts))


def _about(likelihood: Likelihood) -> np.ndarray:
    """A fingerprint of the parameters and of the decisions."""
    mark = hashlib.sha256("\n".join(free_names(likelihood.parameters)).encode())
    for leaf in jax.tree_util.tree_leaves(likelihood.data):
        mark.update(np.ascontiguousarray(leaf, dtype=float).tobytes())
    return np.frombuffer(mark.digest(), dtype=np.uint8)
