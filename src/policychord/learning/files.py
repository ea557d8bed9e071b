"""What learning has reached, in a file of arrays: nothing else is written, and nothing that is read is executed."""

import hashlib
import os
from pathlib import Path

import jax
import numpy as np

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
    target = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        np.savez(file, **arrays, numbers=numbers, length=length, paths=paths, about=_about(given))
    target.replace(path)


def read(path: Path, given: Likelihood) -> Optimum:
    """What `write` stored, or a sentence that says why it does not serve."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            have = {name: stored[name] for name in (*PLAIN, "numbers", "length", "paths", "about")}
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{path} holds no results of learning ({error}): delete it, or name another file.") from error
    if not np.array_equal(have["about"], _about(given)):
        raise ValueError(
            f"{path} holds results for other parameters or other decisions: delete it, or name another file."
        )
    height, total, evaluations, converged, complete = have["numbers"].tolist()
    paths = tuple(np.split(have["paths"], np.cumsum(have["length"])[:-1])) if len(have["length"]) else ()
    return Optimum(have["z"], height, total, have["starts"], have["tried"], have["heights"], int(evaluations),
                   bool(converged), bool(complete), paths)  # fmt: skip


def _about(given: Likelihood) -> np.ndarray:
    """A fingerprint of the parameters and of the decisions."""
    mark = hashlib.sha256("\n".join(free_names(given.parameters)).encode())
    for leaf in jax.tree_util.tree_leaves(given.data):
        mark.update(np.ascontiguousarray(leaf, dtype=float).tobytes())
    return np.frombuffer(mark.digest(), dtype=np.uint8)
