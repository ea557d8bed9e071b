"""What learning has reached, in a file of arrays: nothing else is written, and nothing that is read is executed."""

import hashlib
from pathlib import Path

import jax
import numpy as np

from ..._files import load_arrays, part_beside
from ..likelihoods import Likelihood
from ..optimise import Optimum
from ..parameters import free_names

PLAIN = ("z", "starts", "tried", "heights")


def write_optimum(path: Path, likelihood: Likelihood, optimum: Optimum) -> None:
    """Store an optimum, complete or not; the file is there as a whole or not at all."""
    arrays = {name: getattr(optimum, name) for name in PLAIN}
    numbers = np.array(
        [optimum.log_posterior, optimum.log_likelihood, optimum.evaluations, optimum.converged, optimum.complete]
    )
    length = np.array([len(series) for series in optimum.paths], dtype=int)
    paths = np.concatenate([np.zeros(0), *optimum.paths])
    path.parent.mkdir(parents=True, exist_ok=True)
    target = part_beside(path)
    with open(target, "wb") as file:
        np.savez(file, **arrays, numbers=numbers, length=length, paths=paths, about=_about(likelihood))
    target.replace(path)


def read_optimum(path: Path, likelihood: Likelihood) -> Optimum:
    """What `write` stored, or a sentence that says why it does not serve."""
    if not path.is_file():
        raise ValueError(f"{path} is a folder, a pipe or a device: name another file.")
    try:
        with load_arrays(path) as stored:
            have = {name: stored[name] for name in (*PLAIN, "numbers", "length", "paths", "about")}
        same = np.array_equal(have["about"], _about(likelihood))
        optimum = _optimum(have, len(free_names(likelihood.parameters))) if same else None
    except Exception as error:  # a file that is cut short or foreign can fail in any way
        raise ValueError(f"{path} holds no results of learning ({error}): delete it, or name another file.") from error
    if optimum is None:
        raise ValueError(
            f"{path} holds results for other parameters or other decisions: delete it, or name another file."
        )
    return optimum


def _optimum(have: dict[str, np.ndarray], count: int) -> Optimum:
    """An optimum of so many numbers from its arrays, if they have the right shapes."""
    z, starts, tried, heights = (np.asarray(have[name], dtype=float) for name in PLAIN)
    length, paths = have["length"].astype(int), np.asarray(have["paths"], dtype=float)
    shapes = (z.shape, starts.shape, tried.shape, heights.shape, paths.shape)
    if shapes != ((count,), (len(starts), count), (len(heights), count), (len(heights),), (length.sum(),)):
        raise ValueError(f"arrays of the shapes {shapes}")
    height, total, evaluations, converged, complete = map(float, have["numbers"])
    parts = np.split(paths, np.cumsum(length)[:-1]) if len(length) else []
    return Optimum(
        z=z,
        log_posterior=height,
        log_likelihood=total,
        starts=starts,
        tried=tried,
        heights=heights,
        evaluations=int(evaluations),
        converged=bool(converged),
        complete=bool(complete),
        paths=tuple(parts),
    )


def _about(likelihood: Likelihood) -> np.ndarray:
    """A fingerprint of the parameters and of the decisions."""
    mark = hashlib.sha256("\n".join(free_names(likelihood.parameters)).encode())
    for leaf in jax.tree_util.tree_leaves(likelihood.data):
        mark.update(np.ascontiguousarray(leaf, dtype=float).tobytes())
    return np.frombuffer(mark.digest(), dtype=np.uint8)
