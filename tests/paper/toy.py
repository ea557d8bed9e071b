"""A study of three steps, small enough to be run over and over. Each step notes that it was done."""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from pydantic import BaseModel

from policychord.drawing import blank
from policychord_paper.claim import Claim, Condition, all_of
from policychord_paper.reproduce import Chosen, reproduce
from policychord_paper.study import Control, Finding, Study, StudyFigure


class ToySettings(BaseModel):
    """`diary` is where steps note that they were done; a step waits or fails if it is told to."""

    seed: int = 0
    diary: str
    wait_for: str = ""
    fail_without: str = ""
    die_without: str = ""


class ToyEvidence(NamedTuple):
    """What the three steps drew."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray


def draw(settings, name, number):
    if name == "second":
        while settings.wait_for and not Path(settings.wait_for).exists():
            time.sleep(0.02)
        if settings.fail_without and not Path(settings.fail_without).exists():
            raise ValueError(f"fail_without {settings.fail_without}: make this file first.")
        if settings.die_without and not Path(settings.die_without).exists():
            os.kill(os.getpid(), 9)
    with open(settings.diary, "a", encoding="utf-8") as file:
        file.write(f"{name}\n")
    return np.random.default_rng([settings.seed, number]).normal(size=100)


def experiments(settings):
    return {name: partial(draw, settings, name, i) for i, name in enumerate(("first", "second", "third"))}


def positive(settings, evidence):
    return {"mean": evidence.first.mean()}


def curve(settings, evidence):
    figure = blank(3, 2)
    figure.subplots().plot(evidence.second)
    return figure


def datasets(settings, evidence):
    return {"draws": xr.Dataset({"third": ("draw", evidence.third)})}


TOY = Study(
    name="toy",
    title="A toy",
    introduction="Three steps.",
    settings=ToySettings,
    experiments=experiments,
    evidence=lambda settings, results: ToyEvidence(**results),
    claims=[Claim("X1", "the mean is positive", "nowhere", all_of(Condition("mean", ">", 0)), positive, "0.1")],
    figures={"curve": StudyFigure(curve, "A *curve*.", ("X1",))},
    datasets=datasets,
    controls=lambda settings, evidence: [Control("none", "Does it?", {"x": 1.0}, "It does.")],
    findings=lambda settings, evidence: [Finding("What", "Nothing.")],
)


def run(out, diary, workers=1, **more):
    """The toy study; `more` are its settings or options of the run."""
    options = {name: more.pop(name) for name in ("fresh", "watch") if name in more}
    return reproduce([Chosen(TOY, ToySettings(diary=str(diary), **more))], out, workers=workers, **options)


if __name__ == "__main__":  # in a process of its own, to be interrupted: folder, diary, the file to wait for
    run(Path(sys.argv[1]), sys.argv[2], 2, wait_for=sys.argv[3], watch=lambda done: print(done.step, flush=True))
