"""Tracks of a file: read, decide, fit, compare, predict, draw, write.

A file that cannot be read leaves nothing behind.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._types import Watch
from ..drawing import film_endings, styled
from ..inference import Fit, draw_differences, findings, to_datatree
from ..inference.findings import comparison_rows, comparison_table, describe_comparison
from ..tracks.decisions import decide, of_trial, thin
from ..tracks.explained import Judged, estimates_of, weights_of
from ..tracks.gating import fit_agent, weigh
from ..tracks.motion import Card, Motion, card_of, describe, leadership, move
from ..tracks.reading import Tracks, read_tracks
from ..tracks.rivals import ALONE, GATED, GATED_SUM, names_of
from ..tracks.settings import TrackPlan
from ..tracks.simulate import Predicted, predict
from ..tracks.verdict import Verdict, judge, plain_slopes
from .doctor import peak_megabytes
from .page import Picture, Results, csv_of, write_results
from .progress import parts
from .store import prepare, save_animation, save_figure, write_dataset, write_json, write_text

HEADLINES = {
    "re-weighting": "The weights of these forces change with the situation.",
    "constant weights": "Constant weights of these forces are enough.",
    "cannot tell": "These data cannot tell whether weights change.",
    "no social force": "No social force is established.",
    "withheld": "No verdict is given about these tracks.",
}
FAR_OFF = 0.4  # largest difference of two distributions from which they count as different
PLURAL = {"trial": "trials", "block of time": "blocks of time"}
Files = Path | Sequence[Path]


class Explained(NamedTuple):
    """What a fit of tracks gave."""

    verdict: Verdict
    agent: Fit | None  # the composed agent, if the verdict is about a gating problem
    slopes: list[tuple[str, float, float, float]]  # of the forces in their plain form
    card: Card
    predicted: tuple[Predicted, ...]
    seconds: float
    megabytes: float | None  # the most memory that the process has held, where the system says
    notes: list[str]
    plan: TrackPlan


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


def run_tracks(
    files: Files, plan: TrackPlan, out: Path, watch: Watch, again: str = ""
) -> tuple[Explained, Results, list[Path]]:
    """Fit, compare, predict, and write the page, its figures and tables, and a labelled tree."""
    begin = time.process_time()
    tracks, motion = load_motion(files, plan)
    every = decide(motion, plan.forces)
    decisions = thin(every, plan.most)
    prepare(out)
    *judging, composing, simulating, drawing = parts(watch, 4.0, 2.0, 0.7 * plan.surrogates, 1.0, 0.5, 1.0)
    verdict = judge(motion, decisions, plan.forces, surrogates=plan.surrogates, seed=plan.seed,
                    progress=lambda words, done, _: judging[done](words, 0, 1))  # fmt: skip
    agent, predicted, notes = None, tuple[Predicted, ...](), list[str]()
    if verdict.judged.call == "re-weighting" and verdict.judged.gate in (GATED, GATED_SUM):
        agent = fit_agent(decisions, free=plan.free, starts=plan.starts, seed=plan.seed, progress=composing)
        simulating("simulating groups with the estimates", 0, 1)
        try:
            predicted = predict(motion, decisions, agent.theta, plan.forces, groups=plan.groups,
                                seconds=plan.seconds, seed=plan.seed)  # fmt: skip
        except ValueError as error:
            notes.append(f"No groups were simulated: {error}")
    if decisions.size < every.size:
        notes.append(f"{decisions.size:,} of {every.size:,} decisions were used, at moments spread evenly in time.")
    card = card_of(tracks, motion)
    drawing("drawing and writing", 0, 1)
    explained = Explained(verdict, agent, plain_slopes(verdict), card, predicted, time.process_time() - begin,
                          peak_megabytes(), notes, plan)  # fmt: skip
    results = page_of(explained, motion)
    written = write_results(out, results, again)
    if agent is not None:
        written.append(write_dataset(out / "fit.zarr", to_datatree(agent, 20, plan.seed)))
    return explained, results, written


def write_tracks(path: Path, tracks: Tracks) -> Path:
    """A long table (trial, frame, id, x, y); who is not there has no row."""
    lines = ["trial,frame,id,x,y"]
    for trial in tracks.trials:
        for frame, column in np.argwhere(np.isfinite(trial.position[..., 0])).tolist():
            x, y = trial.position[frame, column]
            lines.append(f"{trial.name},{frame},{trial.ids[column]},{x:.5f},{y:.5f}")
    return write_text(path, "\n".join(lines) + "\n")


def run_film(files: Files, plan: TrackPlan, trial: int, out: Path, watch: Watch) -> list[Path]:
    """A film of one trial in the colours of the fitted weights."""
    from ..tracks.figures import FRAMES_PER_SECOND, film

    _, motion = load_motion(files, plan)
    if not 0 <= trial < len(motion.trials):
        raise ValueError(f"--trial {trial}: the file has {len(motion.trials)} trials, counted from 0.")
    decisions = decide(motion, plan.forces)
    prepare(out)
    fitted = fit_agent(thin(decisions, plan.most), free=plan.free, starts=plan.starts, seed=plan.seed, progress=watch)
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


def page_of(explained: Explained, motion: Motion) -> Results:
    """What stands on the page of tracks, and in its files."""
    verdict, found = explained.verdict, explained.verdict.model
    columns, rows = comparison_table(verdict.comparison, ALONE)
    estimates = [dict(zip(("parameter", "estimate", "error", "robust_error"), row, strict=True))
                 for row in estimates_of(found, verdict.decisions.block)]  # fmt: skip
    record = {
        **results_of(verdict), "plan": explained.plan.model_dump(), "sentence": verdict.sentence,
        "judged": _plain(verdict.judged), "model": found.model.name,
        "estimates": estimates,
        "slopes": [dict(zip(("force", "slope", "error", "robust_error"), row, strict=True))
                   for row in explained.slopes],
        "predicted": [{"measure": measure.name, "distance": measure.distance, "inside": measure.inside}
                      for measure in explained.predicted],
        "cpu_seconds": explained.seconds, "megabytes": explained.megabytes,
    }  # fmt: skip
    card = findings.table(["what", "how much"], describe(explained.card))
    details = [("How this was found", _verdict(explained)), ("Which forces?", _forces(explained))]
    if explained.predicted:
        details.append(("What the estimates predict", _predictions(explained.predicted)))
    return Results(
        kind="tracks fit", source=explained.card.source, verdict=HEADLINES[verdict.judged.call], columns=columns,
        rows=rows, sentences=[verdict.sentence, " ".join(describe_comparison(verdict.comparison, reference=ALONE))],
        warnings=[*explained.card.notes, *explained.notes],
        estimates=(found.model.name, _estimates(verdict)), card=card, details=details,
        pictures=_pictures(explained, motion), tables={"estimates.csv": csv_of(estimates)}, record=record,
    )  # fmt: skip


def _pictures(explained: Explained, motion: Motion) -> dict[str, Picture]:
    """Figures, those of the verdict first."""
    from ..tracks import figures as draw

    verdict = explained.verdict
    judged, found = verdict.judged, verdict.model
    pictures: dict[str, Picture] = {
        "models": (draw_differences, (verdict.comparison, ALONE), "What each model predicts of decisions "
                   "that it had not seen, with bars of two standard errors over blocks."),
    }  # fmt: skip
    if judged.rank is not None:
        pictures["surrogates"] = (draw.draw_rank, (judged.rank,), "The gain of the judged gate on all decisions, among "
                                  "the gains where there is no re-weighting.")  # fmt: skip
    if judged.call == "re-weighting" and found.model.name == judged.gate:
        names, weights, _ = weights_of(found, names_of(verdict.situations))
        pictures |= _pictures_of_weights(verdict, names, weights, motion)
    pictures |= {
        "card": (draw.draw_card, (explained.card, motion), "The file itself."),
        "leadership": (draw.draw_leadership, (leadership(motion),), "Whose heading comes first, in the first trial."),
    }
    if explained.predicted:
        pictures["predictions"] = (draw.draw_predicted, (explained.predicted,), "Groups that start where the data "
                                   "were, simulated with the estimates, and the data of the same seconds.")  # fmt: skip
    return pictures


def _pictures_of_weights(
    verdict: Verdict, names: tuple[str, ...], weights: np.ndarray, motion: Motion
) -> dict[str, Picture]:
    from ..tracks import figures as draw

    given, model = verdict.decisions, verdict.judged.gate
    return {
        "weights": (draw.draw_weights, (names, weights), f"Shares of the weights over all decisions in the model "
                    f"\"{model}\". The simplex has the three whose weights move most; the orange point is their mean."),
        "tracks": (draw.draw_tracks, (given, names, weights, motion), "The first trial: every decision where it was "
                   "made, in a mixture of the forces' colours by its weights, and the mean weights in time."),
        "neighbours": (draw.draw_map, (given, names, weights), "Mean weight by where the nearest neighbour is: ahead "
                       "is up, rings are quantiles of distance, the outermost one with its number. Bins with fewer "
                       f"than {draw.LEAST} decisions stay empty."),
    }  # fmt: skip


def _plain(judged: Judged) -> dict[str, Any]:
    """The judgement as numbers, lists and names."""
    rank = judged.rank
    return {
        **judged._asdict(), "gain": judged.gain._asdict(), "company": judged.company._asdict(),
        "features": dict(judged.features), "power": dict(judged.power),
        "rank": None if rank is None else {**rank._asdict(), "surrogates": rank.surrogates.tolist(),
                                           "constant": rank.constant.tolist(), "exceeded": rank.exceeded},
    }  # fmt: skip


def results_of(verdict: Verdict) -> dict[str, Any]:
    """The call and the models, for programs."""
    return {
        "call": verdict.judged.call, "models": comparison_rows(verdict.comparison, ALONE),
        "gain_over_constant": verdict.judged.gain._asdict(), "decisions": verdict.decisions.size,
    }  # fmt: skip


def _verdict(explained: Explained) -> str:
    verdict, decisions, unit = explained.verdict, explained.verdict.decisions, explained.card.unit
    judged, layout, zones = verdict.judged, decisions.layout, decisions.layout.zones
    memory = "" if explained.megabytes is None else f", {explained.megabytes:.0f} MB"
    arena = ("A round arena was found: " if len(verdict.arena) == 3 else "The arena: ") + ", ".join(
        f"{number:.4g}" for number in verdict.arena) + f" {unit}. " if verdict.arena else ""  # fmt: skip
    reach = f"The predator is seen up to {layout.reach:.4g} {unit} (--reach). " if "predator" in decisions.names else ""
    how = (
        f"{decisions.size:,} decisions, one every {layout.every:g} s; {100 * judged.resting:.1f}% of all were of "
        f"resting animals and left out. Radii {zones.separation:.4g}, {zones.alignment:.4g}, {zones.cohesion:.4g}"
        f" {unit}. Usual speed {layout.speed:.3g} {unit}/s, usual change of velocity {layout.change:.3g} {unit}/s. "
        f"{arena}{reach}{explained.seconds:.0f} s of processor time{memory}."
    )
    table = findings.table(
        ["model", "what it says"], [[score.name, score.description] for score in verdict.comparison.scores]
    )
    errors = (
        "Held out: nats per decision, under estimates without the decision's fold; errors over the "
        f"{PLURAL[decisions.held_out_by]}, which all individuals share. All models have the same own motion: "
        f"{', '.join(verdict.situations.own_terms)}."
    )
    power = findings.table(
        ["if weights switched between halves by", "a switch of so much would have been seen"],
        [[name, f"±{100 * value:.0f}%" if np.isfinite(value) else "none"] for name, value in judged.power.items()],
    )
    moved = findings.table(
        ["feature", "chi squared for each force"], [[name, f"{chi:.1f}"] for name, chi in judged.features]
    )
    return "\n\n".join([how, errors, table, power, *([moved] if judged.features else [])])


def _forces(explained: Explained) -> str:
    """What each force is worth in a plain weighted sum."""
    rows = [[name, f"{slope:+.3f}", f"{error:.3f}", f"{robust:.3f}"] for name, slope, error, robust in explained.slopes]
    return findings.table(["force", "slope", "error", "error, clustered"], rows) + (
        "\n\nThe slope is the change of velocity, in usual changes, for a force of length one, given all others and "
        "own motion: positive if they follow it."
    )


def _estimates(verdict: Verdict) -> str:
    """A table of the parameters of the model that the verdict is about, but for those of motion and distance."""
    found = verdict.model
    rows = [[name, f"{value:.4g}", f"{error:.2g}", f"{robust:.2g}"]
            for name, value, error, robust in estimates_of(found, verdict.decisions.block)
            if not name.startswith(("own", "burst", "shape"))]  # fmt: skip
    return findings.table(["parameter", "estimate", "error", "error, clustered"], rows) + (
        f'\n\nThese are parameters of the model "{found.model.name}"; those of own motion, of bursts and of how forces '
        'depend on distance (shape) are in `estimates.csv`. "social" is how much forces count in a burst; sd is the '
        "spread along the heading, sideways that across as a multiple of it, tilt how both grow with speed, tail the "
        "degrees of freedom of Student's t. Errors are from the scores with weak priors, and from their sandwich over "
        f"the {PLURAL[verdict.decisions.held_out_by]}."
    )


def _predictions(predicted: Sequence[Predicted]) -> str:
    rows = [[measure.name, f"{np.median(measure.data):.3g}", f"{np.median(measure.simulated):.3g}",
             f"{measure.distance:.2f}"] for measure in predicted]  # fmt: skip
    off = [measure.name for measure in predicted if measure.distance > FAR_OFF]
    verdict = (
        f"{', '.join(off)}: simulated groups differ much from the data, so forces that matter are missing or wrong "
        "(walls? `--arena`)." if off else "Simulated groups are like the data in all of these."
    )  # fmt: skip
    return findings.table(["measure", "median of the data", "of simulated groups", "largest difference"], rows) + (
        "\n\nThe largest difference is that of the two cumulative distributions (Kolmogorov and Smirnov), from 0 to 1. "
        + verdict
    )
