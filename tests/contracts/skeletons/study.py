"""A study to copy: does the mirror step lower the energy at every turn, whatever the problem?

A study of the paper is a folder in `policychord_paper/` with the files experiments (settings included), measures,
claims, figures and report. Here everything stands in one file.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field

from policychord import energy, primitive_cost, problem
from policychord.drawing import blank
from policychord_paper.claim import Claim, Condition, Quantity, all_of
from policychord_paper.study import Study, StudyFigure


class MirrorSettings(BaseModel):
    """Sizes and seed; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    problems: int = Field(default=200, ge=1, description="random problems")


class MirrorEvidence(NamedTuple):
    """What the experiments found."""

    energies: np.ndarray  # (problem, step)


def settings(*, quick: bool = True, seed: int = 0) -> MirrorSettings:
    """What `--quick`, `--full` and `--seed` mean here."""
    return MirrorSettings(seed=seed, problems=20 if quick else 200)


def descend(told: MirrorSettings) -> np.ndarray:
    """A step of the work: it costs time, needs no other step, and its result is kept."""
    rng = np.random.default_rng(told.seed)
    pi = rng.dirichlet(np.full(6, 0.3), (told.problems, 3)).swapaxes(-1, -2)
    eps = np.exp(rng.uniform(-5.0, 2.0, told.problems))
    given = problem(pi=pi, action_cost=3.0 * rng.normal(size=(told.problems, 6)), eps=eps)
    weights, found = np.full((told.problems, 3), 1 / 3), []
    for _ in range(30):
        found.append(energy(given, weights))
        pull = np.log(weights) - primitive_cost(given, weights) + eps[:, None] * given.log_prior
        weights = np.exp((pull - pull.max(-1, keepdims=True)) / (1.0 + eps[:, None]))
        weights /= weights.sum(-1, keepdims=True)
    return np.stack(found, axis=-1)


def experiments(told: MirrorSettings):
    return {"descent": partial(descend, told)}  # workers unpickle it: partials of functions, no lambdas


def gather(told: MirrorSettings, results) -> MirrorEvidence:
    """The evidence, from the results of the steps by name."""
    return MirrorEvidence(energies=results["descent"])


def never_rises(told: MirrorSettings, evidence: MirrorEvidence):
    rise = np.diff(evidence.energies).max()
    return {"largest rise in one step": Quantity(float(rise), "nat"), "problems": told.problems}


def descents(told: MirrorSettings, evidence: MirrorEvidence):
    figure = blank(4, 3)
    axes = figure.subplots()
    axes.plot((evidence.energies - evidence.energies[:, -1:]).T, color="C0")
    axes.set(xlabel="step", ylabel="energy above the last (nat)")
    return figure


def datasets(told: MirrorSettings, evidence: MirrorEvidence):
    return {"descent": xr.Dataset({"energy": (("problem", "step"), evidence.energies, {"units": "nat"})})}


STUDY = Study(
    name="mirror",
    title="The mirror step",
    introduction="Random problems, hot and cold, thirty steps each.",
    settings=settings,
    experiments=experiments,
    evidence=gather,
    # the rule is written before anything is measured
    claims=(
        Claim(
            "M1",
            "the mirror step lowers the energy",
            "nowhere",
            all_of(Condition("largest rise in one step", "<=", 1e-12)),
            never_rises,
        ),
    ),
    figures={"descents": StudyFigure(descents, "The energy of every problem, step by step.", ("M1",))},
    datasets=datasets,
)
