"""A file of tracks, played next to a group that is simulated with the parameters that were fitted to the file."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ..._types import Watch
from ...tracks.decisions import Decisions, decide, hold, marked, members_of, of_trial, thin
from ...tracks.forces import NEEDS, USUAL, ForceSettings, far_apart
from ...tracks.gating import fit_agent, weigh
from ...tracks.motion import Motion, Moved, Smoothing, move
from ...tracks.reading import Tracks
from ...tracks.simulate import Group, simulate_group
from ...tracks.verdict import judge
from ...worlds.flock.measures import flock_spread, polarization
from ..inputs import in_page_words
from ..jobs import Job, pursue
from ..parser import parse
from ..uploads import Upload
from ..wire import Frame
from .base import FRAMES_PER_SECOND

MOST_DECISIONS = 1200  # of the quick fit, spread evenly in time
FEW = 6  # surrogates of each kind
MOST_SHOWN = 20_000  # decisions of a trial whose weights are found
MOST_PLACES = 400  # individuals at once
MOST_PAIRS = 40_000_000  # of individuals, over all decisions: half a minute until their forces are found
LONGEST_FAULT = 500  # characters
# Options of the command that are inputs here.
PAGE_WORDS = ((r"pass --rate HZ", "set Frame rate"), (r"--rate\b", "Frame rate"), (r"\(--every\)", "(Decisions)"),
              (r"\(--smooth SECONDS\)", "(Smoothing)"), (r"\(--leave-out\)", "(Leave out)"))  # fmt: skip


class TracksView(BaseModel):
    """How a file of tracks is read and watched."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rate: float = Field(default=0.0, ge=0, description="Frames a second of your file; 0 where the file says so itself.")
    every: float = Field(default=0.25, gt=0, description="Seconds from one decision to the next.")
    smooth: float = Field(default=0.2, gt=0, description="Seconds under the polynomial that gives velocities.")
    follow: float = Field(
        default=10.0, gt=0, description="After so many seconds the simulated group starts again from the data."
    )
    trial: int = Field(default=1, ge=1, description="Which trial of your file is played.")
    leave_out: str = Field(default="", max_length=200, description="Individuals that belong to no group: a, b.")
    predator: str = Field(default="", max_length=60, description="The individual from which the others flee.")

    @property
    def forces(self) -> ForceSettings:
        """The settings of `policychord tracks fit` that this view means."""
        predator = self.predator.strip() or None
        out = tuple(name.strip() for name in self.leave_out.split(",") if name.strip())
        more = tuple(force for force, needs in NEEDS.items() if needs == "predator" and predator)
        return ForceSettings(forces=(*USUAL, *more), predator=predator, leave_out=out, every=self.every)


READ_BY = ("rate", "every", "smooth", "leave_out", "predator")  # a new value of these needs a new fit


class _Begun(NamedTuple):
    """A simulated group since it last started where the data were."""

    time: float  # s, of the data
    group: Group
    there: int  # how many of its places are taken


class Answer(NamedTuple):
    """A verdict in words, and the estimates of the composed agent, with which a group is simulated."""

    sentence: str
    fit: Any


def answer(watch: Watch, motion: Motion, every: Decisions, settings: ForceSettings) -> Answer:
    """Both, quickly: few decisions and surrogates, one start."""
    given = thin(every, MOST_DECISIONS)
    sentence = judge(motion, given, settings, surrogates=FEW, progress=watch).sentence
    return Answer(sentence, fit_agent(given, starts=1, progress=watch))


class Played(NamedTuple):
    """A file that is played, or what is wrong with it."""

    upload: Upload
    fault: str = ""
    field: str = ""  # the input that mends it
    motion: Motion | None = None
    every: Decisions | None = None
    forces: ForceSettings = ForceSettings()
    fitting: Job | None = None
    answer: Answer | None = None
    weights: np.ndarray | None = None  # of the trial that is played, (frame, id, n)
    begun: _Begun | None = None
    time: float = 0.0  # s into the trial


def open_file(upload: Upload, view: TracksView) -> Played:
    """Read a file and find its decisions; what is wrong with it is kept as a sentence."""
    try:
        tracks = parse("tracks", upload, {"rate": view.rate or None})
        most = max(int(np.isfinite(trial.position[..., 0]).sum(axis=1).max()) for trial in tracks.trials)
        if most > MOST_PLACES:
            raise ValueError(f"{upload.name} has {most} individuals at once: the studio takes up to {MOST_PLACES}; "
                             "policychord tracks fit  takes more.")  # fmt: skip
        _check_pairs(upload.name, tracks, view)
        motion = move(tracks, Smoothing(window=view.smooth))
        return Played(upload, motion=motion, every=decide(motion, view.forces), forces=view.forces)
    except ValueError as error:
        text = str(error)
        field = "rate" if "--rate" in text else ""
        return Played(upload, in_page_words(text, PAGE_WORDS)[:LONGEST_FAULT], field=field)


def _check_pairs(name: str, tracks: Tracks, view: TracksView) -> None:
    """Refuse what would take minutes: everybody sees everybody at every decision."""
    step = max(1, round(view.every * tracks.rate))
    pairs = sum(len(trial.position) // step * len(trial.ids) ** 2 for trial in tracks.trials)
    if pairs > MOST_PAIRS:
        raise ValueError(f"{name} has {pairs:,} pairs of individuals over all decisions: the studio takes up to "
                         f"{MOST_PAIRS:,}; set Decisions farther apart, or use  policychord tracks fit")  # fmt: skip


def seen_by(view: TracksView, played: Played, before: TracksView) -> Played:
    """The same file by other settings."""
    if any(getattr(view, name) != getattr(before, name) for name in READ_BY):
        if played.fitting is not None:
            played.fitting.stop()
        return open_file(played.upload, view)
    if view.trial != before.trial:
        return played._replace(weights=None, begun=None, time=0.0)
    return played if view.follow == before.follow else played._replace(begun=None)


def settled(played: Played, playing: bool) -> bool:
    """Whether nothing new comes until something is changed; asked after a picture."""
    return bool(played.fault) or (played.answer is not None and played.begun is not None and not playing)


def go_on(played: Played, view: TracksView, pace: int, playing: bool) -> Played:
    """The next thing to do: fit, weigh the trial, start the simulated group, or let time go on."""
    motion, every = played.motion, played.every
    if motion is None or every is None:
        return played
    if played.answer is None:
        fitting, ended = pursue(played.fitting, answer, motion, every, played.forces)
        return played._replace(fitting=fitting, answer=fitting.result() if ended else None)
    theta = played.answer.fit.theta
    if played.weights is None:
        return played._replace(weights=_weights(motion, every, theta, view), begun=None)
    if playing:
        played = played._replace(time=played.time + pace / FRAMES_PER_SECOND)
    if played.time >= _length(motion, view):
        played = played._replace(time=0.0, begun=None)
    if played.begun is None or played.time - played.begun.time >= view.follow:
        played = played._replace(begun=_start(motion, every, theta, view, played.time))
    return played


def _trial(motion: Motion, view: TracksView) -> tuple[int, Moved]:
    """The trial that is played, with its number."""
    number = min(view.trial, len(motion.trials)) - 1
    return number, motion.trials[number]


def _length(motion: Motion, view: TracksView) -> float:
    """Seconds of the trial that is played."""
    return (len(_trial(motion, view)[1].position) - 1) / motion.rate


def _weights(motion: Motion, every: Decisions, theta: Mapping[str, Any], view: TracksView) -> np.ndarray:
    """Weights of everybody in the trial at every frame, (frame, id, n); NaN where there is none."""
    number, trial = _trial(motion, view)
    decisions = thin(of_trial(every, number), MOST_SHOWN)
    weights = weigh(decisions, theta)[0] if decisions.size else np.zeros((0, len(decisions.names)))
    return hold(decisions, weights, trial, number)


def _start(motion: Motion, every: Decisions, theta: Mapping[str, Any], view: TracksView, time: float) -> _Begun:
    """A group that starts where the data are now, with places for as many as are ever there: one program for all."""
    settings, (_, trial) = view.forces, _trial(motion, view)
    frame = min(int(time * motion.rate), len(trial.position) - 1)
    members = members_of(trial, settings)
    there = members[np.isfinite(trial.velocity[frame, members]).all(axis=-1)]
    places = max(int(np.isfinite(trial.velocity[:, members, 0]).sum(axis=1).max()), 1)
    position, velocity = far_apart(places), np.zeros((places, 2))
    position[: len(there)], velocity[: len(there)] = trial.position[frame, there], trial.velocity[frame, there]
    steps = int(np.ceil(view.follow / every.layout.every)) + 2
    rows = np.minimum(frame + every.step * np.arange(steps), len(trial.position) - 1)
    marks = marked(trial, rows, settings.predator), marked(trial, rows, None)
    group = simulate_group(every, theta, (position, velocity), steps, seed=frame, settings=settings, marks=marks)
    return _Begun(frame / motion.rate, group, len(there))


# ----------------------------------------------------------------------------------------------- pictures


def picture(played: Played, view: TracksView, selected: int) -> Frame:
    """Both groups at this moment, in the coordinates of the file."""
    header: dict[str, Any] = {
        "file": played.upload.name, "fault": played.fault, "field": played.field, "stage": _stage(played),
        "of": {name: getattr(view, name) for name in READ_BY},
    }  # fmt: skip
    motion, every = played.motion, played.every
    if motion is None or every is None:
        return Frame("tracks", header, {})
    _, trial = _trial(motion, view)
    place, velocity = (_between(values, played.time * motion.rate) for values in (trial.position, trial.velocity))
    weights = np.full((len(trial.ids), len(every.names)), np.nan)
    if played.weights is not None:
        frame = min(int(played.time * motion.rate), len(played.weights) - 1)
        weights = np.where(np.isfinite(velocity[:, :1]), played.weights[frame], np.nan)
    chosen = min(selected, len(trial.ids) - 1)
    member = np.isin(np.arange(len(trial.ids)), members_of(trial, view.forces))
    header |= {
        "time": played.time, "trial": trial.name, "trials": len(motion.trials), "unit": motion.unit,
        "names": list(every.names), "selected": chosen, "who": trial.ids[chosen],
        "present": int((np.isfinite(velocity[:, 0]) & member).sum()), "decisions": every.size,
        "radii": list(every.layout.zones[:3]), "duration": _length(motion, view),
        "order": _order(place[member], velocity[member]),
    }  # fmt: skip
    arrays = {"position": place, "velocity": velocity, "weights": weights, "member": member.astype(float)}
    if played.fitting is not None and played.answer is None:
        header["progress"] = list(played.fitting.progress)
    if played.answer is not None:
        theta = {name: np.asarray(value).tolist() for name, value in played.answer.fit.theta.items()}
        header |= {"sentence": played.answer.sentence, "theta": theta, "fitted": played.answer.fit.decisions}
    if played.begun is not None:
        since = (played.time - played.begun.time) / every.layout.every
        group, count = played.begun.group, played.begun.there
        at = min(max(since, 0.0), len(group.position) - 1.001)
        own, share = int(at), at - int(at)
        p, v = ((1 - share) * a[own, :count] + share * a[own + 1, :count] for a in (group.position, group.velocity))
        header |= {"since": played.time - played.begun.time, "gap": float(group.gap.max()),
                   "simulated_order": _order(p, v)}  # fmt: skip
        arrays |= {"simulated_position": p, "simulated_velocity": v, "simulated_weights": group.weights[own, :count]}
    return Frame("tracks", header, arrays)


def _stage(played: Played) -> str:
    if played.fault:
        return "fault"
    return "playing" if played.begun is not None else "fitting" if played.answer is None else "simulating"


def _between(values: np.ndarray, at: float) -> np.ndarray:
    """Values on the line between two frames; NaN for who is not in both."""
    at = min(at, len(values) - 1)
    frame, share = int(at), at - int(at)
    later = values[min(frame + 1, len(values) - 1)]
    return (1 - share) * values[frame] + share * later if share else values[frame]


def _order(place: np.ndarray, velocity: np.ndarray) -> dict[str, float]:
    there = np.isfinite(velocity).all(axis=-1)
    if there.sum() < 2:
        return {"polarization": float("nan"), "spread": float("nan"), "speed": float("nan")}
    p, v = place[there][None, None], velocity[there][None, None]
    return {"polarization": float(polarization(v)[0, 0]), "spread": float(flock_spread(p)[0, 0]),
            "speed": float(np.linalg.norm(v, axis=-1).mean())}  # fmt: skip


def tracks_snippet(played: Played, view: TracksView) -> str:
    """The same in Python."""
    forces = {"predator": view.forces.predator, "leave_out": view.forces.leave_out or None, "every": view.every}
    words = [f"{name}={value!r}" for name, value in forces.items() if value is not None]
    if view.forces.predator:
        words.insert(0, f"forces={view.forces.forces!r}")
    rate = f", rate={view.rate:g}" if view.rate else ""
    return f"""\
import policychord as pc

pc.enable_x64()  # certificates are honest in float64 only
settings = pc.tracks.ForceSettings({", ".join(words)})
tracks = pc.tracks.read_tracks({played.upload.name!r}{rate})
motion = pc.tracks.move(tracks, pc.tracks.Smoothing(window={view.smooth:g}))
decisions = pc.tracks.thin(pc.tracks.decide(motion, settings), {MOST_DECISIONS})
print(pc.tracks.judge(motion, decisions, settings, surrogates={FEW}).sentence)
agent = pc.tracks.fit_agent(decisions, starts=1)
for measure in pc.tracks.predict(motion, decisions, agent.theta, settings, seconds={view.follow:g}):
    print(measure.name, "largest difference of the distributions", round(measure.distance, 2))
"""
