"""What learning has reached, in a file of arrays: nothing else is written, and nothing that is read is executed."""

import hashlib
from pathlib import Path

import jax
import numpy as np

from .._files import load_arrays, part_beside
from ..fitting.likelihoods import Likelihood
from ..fitting.optimise import Optimum
from ..fitting.parameters import free_names

PLAIN = ("z", "starts", "tried", "heights")


def write(path: Path, given: Likelihood, found: Optimum) -> None:
    """Store an optimum, complete or not; the file is there as a whole or not at all."""
    arrays = {name: getattr(found, name) for name in PLAIN}
    numbers = np.array([found.log_posterior, found.log_likelihood, found.evaluations, found.converged, found.complete])
    length = np.array([len(one) for one in found.paths], dtype=int)
    paths = np.concatenate([np.zeros(0), *found.paths])
    path.parent.mkdir(parents=True, exist_ok=True)
    target = part_beside(path)
    with open(target, "wb") as file:
        np.savez(file, **arrays, numbers=numbers, length=length, paths=paths, about=_about(given))
    target.replace(path)


def read(path: Path, given: Likelihood) -> Optimum:
    """What `write` stored, or a sentence that says why it does not serve."""
    if not path.is_file():
        raise ValueError(f"{path} is a folder, a pipe or a device: name another file.")
    try:
        with load_arrays(path) as stored:
            have = {name: stored[name] for name in (*PLAIN, "numbers", "length", "paths", "about")}
        same = np.array_equal(have["about"], _about(given))
        found = _optimum(have, len(free_names(given.parameters))) if same else None
    except Exception as error:  # a file that is cut short or foreign can fail in any way
        raise ValueError(f"{path} holds no results of learning ({error}): delete it, or name another file.") from error
    if found is None:
        raise ValueError(
            f"{path} holds results for other parameters or other decisions: delete it, or name another file."
        )
    return found


def _optimum(have: dict[str, np.ndarray], count: int) -> Optimum:
    """An optimum of so many numbers from its arrays, if they have the right shapes."""
    z, starts, tried, heights = (np.asarray(have[name], dtype=float) for name in PLAIN)
    length, paths = have["length"].astype(int), np.asarray(have["paths"], dtype=float)
    shapes = (z.shape, starts.shape, tried.shape, heights.shape, paths.shape)
    if shapes != ((count,), (len(starts), count), (len(heights), count), (len(heights),), (length.sum(),)):
        raise ValueError(f"arrays of the shapes {shapes}")
    height, total, evaluations, converged, complete = map(float, have["numbers"])
    parts = np.split(paths, np.cumsum(length)[:-1]) if len(length) else []
    return Optimum(z, height, total, starts, tried, heights, int(evaluations), bool(converged), bool(complete),
                   tuple(parts))  # fmt: skip


def _about(given: Likelihood) -> np.ndarray:
    """A fingerprint of the parameters and of the decisions."""
    mark = hashlib.sha256("\n".join(free_names(given.parameters)).encode())
    for leaf in jax.tree_util.tree_leaves(given.data):
        mark.update(np.ascontiguousarray(leaf, dtype=float).tobytes())
    return np.frombuffer(mark.digest(), dtype=np.uint8)
