"""Every trial for itself: do the weights change in this trial? Here or on a cluster, by the sweeps' engine.

Radii, units and cells are those of all trials together, so that estimates can be compared. A trial is kept as soon as
it is there: the same command goes on with those that are missing.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._types import Watch
from ..choices.data import as_csv
from ..inference import findings
from ..tracks.decisions import Decisions, decide, of_trial, thin
from ..tracks.explained import estimates_of
from ..tracks.motion import Motion, card_of, describe
from ..tracks.reading import Tracks
from ..tracks.verdict import judge
from .cache import FOLDER, MissingError, Result, load_result, save_result
from .engine import run_tasks
from .page import Results
from .store import prepare
from .tracks import TrackPlan
from .versions import code_version

LEAST = 100  # decisions of a trial that can be fitted


class _TrialFit(NamedTuple):
    """What one trial says about its weights; nats are held out, over blocks of its time."""

    trial: str
    decisions: int
    call: str
    acts: str  # by sum or by sample: the way of acting that explains the trial better
    gate: str  # the one that was judged
    gain: float  # of the gate over constant weights
    error: float
    moved: float  # the largest standard deviation of a force's share of the weights
    held_out: dict[str, float]  # of each model
    estimates: dict[str, float]  # of the model that the verdict is about
    cpu_seconds: float


def run_trials(
    motion: Motion, plan: TrackPlan, out: Path, pool: Executor, workers: int, watch: Watch
) -> list[_TrialFit]:
    """Fit the trials that are not there yet on a pool; those with too few decisions are left out."""
    every = decide(motion, plan.forces)
    names = [trial.name for trial in motion.trials]
    parts = {
        name: _alone(motion, thin(of_trial(every, number), plan.most), number) for number, name in enumerate(names)
    }
    fitted = {name: part for name, part in parts.items() if part[1].size >= LEAST}
    if not fitted:
        raise ValueError(f"no trial has {LEAST} decisions: ask for decisions closer together (--every), or fit all "
                         "trials together with  policychord tracks fit")  # fmt: skip
    prepare(out)
    places = {name: out / FOLDER / "trials" / f"{_identity(plan, name, *part)}.npz" for name, part in fitted.items()}
    return _compute(fitted, places, plan, pool, workers, watch)


def _alone(motion: Motion, decisions: Decisions, number: int) -> tuple[Motion, Decisions]:
    """One trial as if there were no others."""
    return motion._replace(trials=(motion.trials[number],)), decisions._replace(trial=np.zeros(decisions.size, int))


def _fit_trial(plan: TrackPlan, name: str, motion: Motion, decisions: Decisions) -> _TrialFit:
    before = time.process_time()
    verdict = judge(motion, decisions, plan.forces, surrogates=plan.surrogates, seed=plan.seed)
    judged = verdict.judged
    estimates = {row[0]: row[1] for row in estimates_of(verdict.model, verdict.decisions.block)}
    return _TrialFit(name, decisions.size, judged.call, judged.acts, judged.gate, judged.gain.mean, judged.gain.error,
                    judged.moved, {score.name: score.held_out for score in verdict.comparison.scores}, estimates,
                    time.process_time() - before)  # fmt: skip


def _identity(plan: TrackPlan, name: str, motion: Motion, decisions: Decisions) -> str:
    """All that a trial's fit depends on: code, plan and decisions."""
    digest = hashlib.sha256(json.dumps([code_version(judge.__module__), name, plan.model_dump(mode="json")]).encode())
    for array in (
        motion.trials[0].position,
        *decisions.seen,
        decisions.action,
        decisions.block,
        decisions.cells.points,
    ):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _compute(
    fitted: dict[str, tuple[Motion, Decisions]],
    places: dict[str, Path],
    plan: TrackPlan,
    pool: Executor,
    workers: int,
    watch: Watch,
) -> list[_TrialFit]:
    rows: dict[str, _TrialFit] = {}
    for name, place in places.items():
        with suppress(MissingError):
            earlier = load_result(place).value
            if isinstance(earlier, _TrialFit) and earlier.trial == name:  # else somebody else's file: fitted again
                rows[name] = earlier
    tasks = [(name, (plan, name, *fitted[name])) for name in fitted if name not in rows]
    if tasks:
        watch("fitting trials", len(rows), len(fitted))
    for name, row in run_tasks(pool, workers, [judge.__module__], _fit_trial, tasks):
        rows[name] = row
        save_result(places[name], name, Result(row, row.cpu_seconds))
        if len(rows) < len(fitted):
            watch("fitting trials", len(rows), len(fitted))
    return [rows[name] for name in fitted]


def _table_of(rows: Sequence[_TrialFit]) -> str:
    """A table with a line for each trial, as CSV."""
    names = ("trial", "decisions", "call", "acts", "gate", "gain", "error", "moved", "cpu_seconds")
    lines: list[dict[str, Any]] = []
    for row in rows:
        line: dict[str, Any] = {name: getattr(row, name) for name in names}
        line |= {f"held out: {name}": value for name, value in row.held_out.items()}
        lines.append(line | row.estimates)
    return as_csv(lines)


def page_of_trials(rows: Sequence[_TrialFit], tracks: Tracks, motion: Motion, plan: TrackPlan) -> Results:
    """What stands on the page of all trials, and in its files."""
    from ..tracks.figures import draw_trials

    calls, gains, left = [row.call for row in rows], np.array([row.gain for row in rows]), len(motion.trials)
    others = [f"{call}: {calls.count(call)}" for call in dict.fromkeys(calls) if call != "re-weighting"]
    verdict = f"Weights change in {calls.count('re-weighting')} of {len(rows)} trials"
    verdict += f" ({'; '.join(others)})." if others else "."
    sentences = [f"Gain over constant weights: {gains.mean():+.4f} ± {gains.std(ddof=1) / len(rows) ** 0.5:.4f} nats "
                 "per decision, over trials."] if len(rows) > 1 else []  # fmt: skip
    judged = [[row.trial, row.gate, row.acts, f"{row.moved:.3f}"] for row in rows]
    return Results(
        kind="tracks trials", source=tracks.source, verdict=verdict,
        columns=["trial", "decisions", "call", "gain over constant"],
        rows=[[row.trial, f"{row.decisions:,}", row.call, f"{row.gain:+.4f} ± {row.error:.4f}"] for row in rows],
        sentences=[*sentences, "Every trial is fitted for itself, and held out over blocks of its time."],
        warnings=[f"{left - len(rows)} of {left} trials have fewer than {LEAST} decisions and are left out."
                  ] if len(rows) < left else [],
        estimates=("the gate that was judged in each trial", findings.table(
            ["trial", "gate", "acts", "largest sd of a weight"], judged) + "\n\nAll parameters are in `trials.csv`."),
        card=findings.table(["what", "how much"], describe(card_of(tracks, motion))), details=[],
        pictures={"trials": (draw_trials, ([(row.trial, row.gain, row.error, row.call) for row in rows],),
                             "What gating adds in each trial, with 95% intervals.")},
        tables={"trials.csv": _table_of(rows)},
        record={"plan": plan.model_dump(), "trials": [row._asdict() for row in rows]},
    )  # fmt: skip
