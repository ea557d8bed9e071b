"""Tracks of a file: read, decide, fit, compare, predict, draw, write.

A file that cannot be read leaves nothing behind.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .._types import Watch
from ..drawing import film_endings, styled
from ..inference import draw_differences, draw_estimates, findings, fit, to_datatree
from ..inference.decisions import AGENT
from ..inference.findings import comparison_rows, comparison_table, describe_comparison, difference_text
from ..tracks.decisions import decide, of_trial, thin, to_observations
from ..tracks.forces import ForceSettings
from ..tracks.gating import CONSTANT, REGRESSION, WALK, Answer, answer, family_of, weigh
from ..tracks.motion import Card, Motion, Smoothing, card_of, describe, leadership, move
from ..tracks.reading import Tracks, read_tracks
from ..tracks.simulate import Predicted, predict
from ..wording import in_words
from .doctor import peak_megabytes
from .page import Picture, write_page
from .store import prepare, read_settings, save_animation, save_figure, write_dataset, write_json

HEADLINES = {"gating": "gating is needed", "constant": "gating is not needed",
             "worse than constant": "this gate is the wrong model"}  # fmt: skip
FAR_OFF = 0.4  # largest difference of two distributions from which they are said to differ much
PLURAL = {"trial": "trials", "block of time": "blocks of time"}
Files = Path | Sequence[Path]


class TrackPlan(BaseModel):
    """How a file of tracks is read, smoothed and explained."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rate: float | None = Field(default=None, gt=0, description="frames a second, where the file does not say")
    scale: float = Field(default=1.0, gt=0, description="length of one unit of the file")
    unit: str = Field(default="", max_length=12, description="of lengths, such as m or cm")
    columns: dict[str, str] = Field(default={}, description="what a table calls trial, frame, time, id, x, y")
    smoothing: Smoothing = Smoothing()
    forces: ForceSettings = ForceSettings()
    free: tuple[str, ...] = Field(default=(), description="parameters that are fitted; the usual ones unless named")
    most: int = Field(default=20_000, ge=100, description="decisions that are used; of more, evenly spread moments")
    starts: int = Field(default=3, ge=1, le=100)
    groups: int = Field(default=10, ge=1, le=1000, description="simulated groups that are compared with the data")
    seconds: float = Field(default=5.0, gt=0, le=1e6, description="how long each of them is followed")
    seed: int = Field(default=0, ge=0, lt=2**31)


class _Explained(NamedTuple):
    """What a fit of tracks gave."""

    answer: Answer
    card: Card
    predicted: tuple[Predicted, ...]
    seconds: float
    megabytes: float | None  # the most memory that the process has held, where the system says
    files: list[Path]
    notes: list[str]


def read_track_plan(path: Path | None, changes: dict[str, Any]) -> TrackPlan:
    """A plan from a TOML file (or none) with the changes of the command line; what is wrong is said by name."""
    contents: dict[str, Any] = {} if path is None else read_settings(path)
    for name, value in changes.items():
        inner, _, field = name.rpartition(".")
        (contents.setdefault(inner, {}) if inner else contents)[field] = value
    try:
        return TrackPlan.model_validate(contents)
    except ValidationError as error:
        raise ValueError(in_words(error, TrackPlan)) from None


def load_motion(files: Files, plan: TrackPlan) -> tuple[Tracks, Motion]:
    """The tracks of a file, or of several, and their motion."""
    tracks = read_tracks(files, rate=plan.rate, scale=plan.scale, unit=plan.unit, columns=plan.columns)
    return tracks, move(tracks, plan.smoothing)


def run_card(files: Files, plan: TrackPlan, out: Path | None) -> tuple[Card, list[Path]]:
    """The card of a file; with a folder also as a figure and a record."""
    from ..tracks.figures import draw_card

    tracks, motion = load_motion(files, plan)
    card = card_of(tracks, motion)
    if out is None:
        return card, []
    prepare(out)
    figures = save_figure(out / "card", styled(draw_card, card, motion))
    return card, [*figures, write_json(out / "card.json", {**card._asdict(), "smoothing": plan.smoothing.model_dump()})]


def run_tracks(files: Files, plan: TrackPlan, out: Path, watch: Watch) -> _Explained:
    """Fit, compare, predict, and write a page, a summary, figures and a labelled tree."""
    begin = time.process_time()
    tracks, motion = load_motion(files, plan)
    every = decide(motion, plan.forces)
    decisions = thin(every, plan.most)
    prepare(out)
    result = answer(decisions, free=plan.free, starts=plan.starts, seed=plan.seed, progress=watch)
    watch("simulating groups with the estimates", 0, 2)
    predicted, notes = tuple[Predicted, ...](), list[str]()
    try:
        predicted = predict(motion, decisions, result.fit.theta, plan.forces, groups=plan.groups,
                            seconds=plan.seconds, seed=plan.seed)  # fmt: skip
    except ValueError as error:
        notes.append(f"No groups were simulated: {error}")
    if decisions.size < every.size:
        notes.append(f"{decisions.size:,} of {every.size:,} decisions were used, at moments spread evenly in time.")
    card = card_of(tracks, motion)
    watch("drawing and writing", 1, 2)
    explained = _Explained(result, card, predicted, time.process_time() - begin, peak_megabytes(), [], notes)
    return explained._replace(files=_write(explained, motion, plan, out))


def run_film(files: Files, plan: TrackPlan, trial: int, out: Path, watch: Watch) -> list[Path]:
    """A film of one trial in the colours of the fitted weights."""
    from ..tracks.figures import FRAMES_PER_SECOND, film

    _, motion = load_motion(files, plan)
    if not 0 <= trial < len(motion.trials):
        raise ValueError(f"--trial {trial}: the file has {len(motion.trials)} trials, counted from 0.")
    decisions = decide(motion, plan.forces)
    prepare(out)
    some = thin(decisions, plan.most)
    fitted = fit(family_of(some, plan.free), to_observations(some), starts=plan.starts, method="map", hold_out="block",
                compare=False, profiles=False, seed=plan.seed, progress=watch)  # fmt: skip
    watch("filming", 0, 1)
    shown = of_trial(decisions, trial)
    if not shown.size:
        raise ValueError(f"--trial {trial}: nobody is followed long enough in it to decide; choose another.")
    weights, _ = weigh(shown, fitted.theta)
    return [
        save_animation(out / f"film{ending}", film(shown, weights, motion, trial), FRAMES_PER_SECOND)
        for ending in film_endings()
    ]


# ---------------------------------------------------------------------------------------------- writing


def _write(explained: _Explained, motion: Motion, plan: TrackPlan, out: Path) -> list[Path]:
    from ..tracks import figures as draw

    result = explained.answer
    plain = result.judged.call == "gating" and result.judged.acts == "by sample"
    doubt = "" if plain else "Another model explains these decisions as well or better: see the table. "
    pictures: dict[str, Picture] = {
        "models": (draw_differences, (result.comparison, WALK), "What each model predicts of decisions "
                   "that it had not seen, with bars of two standard errors over blocks."),
        "estimates": (draw_estimates, (result.fit,), "Estimates of the composed agent with 95% "
                      "intervals from the curvature of the likelihood, on the scales on which they are free."),
        "weights": (draw.draw_weights, (result,), "Weights of the forces over all decisions in the model "
                    f"\"composed\", each certified. {doubt}The simplex has the three forces whose "
                    "weights move most; the orange point is their mean."),
        "tracks": (draw.draw_tracks, (result, motion), "The first trial: every decision where it was made, in a "
                   "mixture of the forces' colours by its weights in the model \"composed\", and the mean weights of "
                   "all individuals in time."),
        "neighbours": (draw.draw_map, (result,), "Mean weight by where the nearest neighbour is: ahead is up, "
                       "rings are quantiles of distance, the outermost one with its number. Bins with fewer than "
                       f"{draw.LEAST} decisions stay empty."),
        "leadership": (draw.draw_leadership, (leadership(motion),), "Whose heading comes first, in the first trial."),
        "card": (draw.draw_card, (explained.card, motion), "The file itself."),
    }  # fmt: skip
    if explained.predicted:
        pictures["predictions"] = (draw.draw_predicted, (explained.predicted,), "Groups that start where the data "
                                   "were, simulated with the estimates, and the data of the same seconds.")  # fmt: skip
    judged = result.judged
    record = {
        "plan": plan.model_dump(), **results_of(result), "sentence": result.sentence,
        "judged": {**judged._asdict(), "gain": judged.gain._asdict(), "other": judged.other._asdict()},
        "estimates": findings.estimate_rows(result.fit),
        "predicted": [{"measure": measure.name, "distance": measure.distance, "inside": measure.inside}
                      for measure in explained.predicted],
        "cpu_seconds": explained.seconds, "megabytes": explained.megabytes,
    }  # fmt: skip
    title = f"{explained.card.source}: {HEADLINES[judged.call]}"
    return [
        *write_page(out, title, _sections(explained), pictures),
        write_json(out / "tracks.json", record),
        write_dataset(out / "fit.zarr", to_datatree(result.fit, 20, plan.seed)),
    ]


def results_of(result: Answer) -> dict[str, Any]:
    """The call and the models, for programs."""
    return {
        "call": result.judged.call, "models": comparison_rows(result.comparison, WALK),
        "gain_over_constant": result.comparison.difference(AGENT, CONSTANT)._asdict(),
        "decisions": result.decisions.size,
    }  # fmt: skip


def _sections(explained: _Explained) -> list[tuple[str, str]]:
    """The sections of the page."""
    result, card = explained.answer, explained.card
    sections = [
        ("Do they gate?", _verdict(explained)),
        ("Which forces?", _forces(result)),
        ("Estimates", _estimates(result)),
        ("Card", _table(["", ""], [list(row) for row in describe(card)])),
    ]
    if explained.predicted:
        sections.append(("What the estimates predict", _predictions(explained.predicted)))
    notes = [*card.notes, *explained.notes]
    return [*sections, ("Notes", "\n".join(f"- {note}" for note in notes))] if notes else sections


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(findings.table(columns, rows))


def _verdict(explained: _Explained) -> str:
    result, decisions, unit = explained.answer, explained.answer.decisions, explained.card.unit
    layout, zones = decisions.layout, decisions.layout.zones
    memory = "" if explained.megabytes is None else f", {explained.megabytes:.0f} MB"
    how = (
        f"{decisions.size:,} decisions, one every {layout.every:g} s. Radii {zones.separation:.4g}, "
        f"{zones.alignment:.4g} and {zones.cohesion:.4g} {unit}; usual speed {layout.speed:.3g} {unit}/s, usual change "
        f"of velocity {layout.change:.3g} {unit}/s. "
        f"{100 * decisions.clipped:.1f}% of the changes lie outside of the grid and count in its outermost cells. "
        f"Largest certified gap of the weights: {result.fit.gap.max():.1e}. "
        f"{explained.seconds:.0f} s of processor time{memory}."
    )
    columns, rows = comparison_table(result.comparison, WALK)
    table = _table(
        [*columns, "what it says"],
        [[*row, score.description] for row, score in zip(rows, result.comparison.scores, strict=True)],
    )
    errors = (
        "Held out: nats per decision, under estimates without the decision's fold; errors over the "
        f"{PLURAL[decisions.held_out_by]}, which all individuals share."
    )
    sentences = " ".join(describe_comparison(result.comparison, reference=WALK))
    return "\n\n".join([result.sentence, sentences, how, table, errors])


def _forces(result: Answer) -> str:
    """What each force is worth, in the models that have a number for it."""
    slopes, weights = result.comparison.score(REGRESSION).theta()["slope"], result.fit.weights.mean(axis=0)
    rows = [
        [name, f"{slope:+.3f}", difference_text(result.comparison.difference(f"{name} alone", WALK)), f"{weight:.2f}"]
        for name, slope, weight in zip(result.decisions.names, slopes, weights, strict=True)
    ]
    columns = ["force", "slope in the regression", "alone, over a random walk", "mean weight, composed"]
    return _table(columns, rows) + (
        "\n\nThe slope is the change of velocity, in usual changes, for a force of length one: positive if they follow "
        "it. ± is one standard error."
    )


def _estimates(result: Answer) -> str:
    """A table of the composed agent's parameters."""
    rows = [
        [row["parameter"], f"{row['estimate']:.4g}", f"{row['error']:.2g}", f"{row['robust_error']:.2g}",
         row["verdict"] + (f": {row['reason']}" if row["reason"] else "")]
        for row in findings.estimate_rows(result.fit)
    ]  # fmt: skip
    return _table(["parameter", "estimate", "error", "error, clustered", "verdict"], rows) + (
        '\n\nThese are parameters of the model "composed": gain is how strongly a force is followed while it is, sd '
        "the spread along the heading, sideways that across as a multiple of it, tilt how both grow with speed, tail "
        "the degrees of freedom of Student's t, eps the temperature. Gains and sd are in usual changes of velocity. "
        "Errors are from the curvature of the likelihood with its "
        f"weak priors, and from its sandwich over the {PLURAL[result.decisions.held_out_by]}. Temperature is "
        "relative to the cost's fixed scale."
    )


def _predictions(predicted: Sequence[Predicted]) -> str:
    rows = [[measure.name, f"{np.median(measure.data):.3g}", f"{np.median(measure.simulated):.3g}",
             f"{measure.distance:.2f}"] for measure in predicted]  # fmt: skip
    off = [measure.name for measure in predicted if measure.distance > FAR_OFF]
    verdict = (
        f"{', '.join(off)}: simulated groups differ much from the data, so forces that matter are missing or wrong "
        "(walls? `--arena`)." if off else "Simulated groups are like the data in all of these."
    )  # fmt: skip
    return _table(["measure", "median of the data", "of simulated groups", "largest difference"], rows) + (
        "\n\nThe largest difference is that of the two cumulative distributions (Kolmogorov and Smirnov), from 0 to 1. "
        + verdict
    )
