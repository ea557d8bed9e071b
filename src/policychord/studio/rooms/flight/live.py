"""A flight that is watched: what can be set, what was flown, and what the page draws of it."""

import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from ....loops import streams_of
from ....worlds.quadrotor.agents import BASELINE, Composed
from ....worlds.quadrotor.agents import reference_path as path_of
from ....worlds.quadrotor.flights import program
from ....worlds.quadrotor.physics import Quadrotor
from ....worlds.quadrotor.settings import Experiment, QuadrotorSettings
from ...inputs import Input
from ...wire import Frame
from ..base import FRAMES_PER_SECOND
from .flying import FASTEST, LONGEST, Drone, Push, flight, fly_on

Rival = Literal["none", Composed]  # a Literal inside another is flattened
Layout = Literal["apart", "together", "in depth"]


class FlightView(BaseModel):
    """Who flies, which flight, and how it is watched; none of it changes what a drone does."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    experiment: Experiment = Field(
        default="pd", description="Which two controllers are composed. The LQR pair meets an impulse in every flight."
    )
    scenario: Composed = Field(
        default="cost-to-go", description="How they are composed; each of the study's ways brings its numbers."
    )
    composed: bool = Field(default=True, description="Fly the composition that is set below.")
    mixture: bool = Field(default=True, description="Fly the average of both controllers' commands: no gate at all.")
    stabilise: bool = Field(default=True, description="Fly the stabilising controller alone.")
    track: bool = Field(default=True, description="Fly the tracking controller alone.")
    baseline: bool = Field(default=False, description="Fly the standard controller: PID, or LQR for the LQR pair.")
    rival: Rival = Field(default="none", description="Fly a second composition of the study, with its own numbers.")
    flight: int = Field(default=0, ge=0, description="Which episode of the study: each has gusts of its own.")
    layout: Layout = Field(default="apart", description="Each drone in a place of its own, or all in one.")
    turn: float = Field(default=20.0, description="From where the scene is seen; drag it, or use the arrow keys.")
    tilt: float = Field(default=15.0, description="From how high the scene is seen.")
    pace: float = Field(default=1.0, gt=0, description="Seconds of flight in a second.")
    onward: bool = Field(default=True, description="When a flight is over, begin the next, unless it was pushed.")
    playing: bool = Field(default=True, description="Let time go on.")
    push_speed: float = Field(default=1.0, ge=0, description="By how much a push changes every drone's velocity.")
    push_angle: float = Field(default=45.0, description="Where to: 0 is right, 90 is up.")


WHAT, WHO, GATING, WORLD, PUSHING, WATCH = "Experiment", "Who flies", "Gate", "World", "Push", "Watching"
INPUTS = (
    Input("experiment", "Pair", WHAT, source="paper"),
    Input("scenario", "Composition", WHAT),
    Input("flight", "Flight", WHAT, 0, 999, 1),
    Input("composed", "Composed", WHO),
    Input("mixture", "Fixed 50/50", WHO),
    Input("stabilise", "Stabilise alone", WHO),
    Input("track", "Track alone", WHO),
    Input("baseline", "Baseline (PID, LQR)", WHO),
    Input("rival", "Second composition", WHO),
    Input("gate", "Weights", GATING),
    Input("horizon", "Horizon", GATING),
    Input("selection", "Action taken", GATING),
    Input("eps", "Temperature", GATING, 0.005, 20.0, 0.001, "nats", "log"),
    Input("margin", "Grid beyond limits", GATING, 0.0, 0.1, 0.005, "N"),
    Input("force_sd", "Gusts", WORLD, 0.0, 0.1, 0.001, "N", source="paper"),
    Input("thrust_sd", "Motor noise", WORLD, 0.0, 0.05, 0.001, "N", source="paper"),
    Input("impulse", "Impulse (LQR pair)", WORLD, 0.0, 3.0, 0.05, "N", source="paper"),
    Input("disturbance", "Forces act at", WORLD, source="paper"),
    Input("path", "Path", WORLD, source="paper"),
    Input("scale", "Size of the path", WORLD, 0.2, 1.5, 0.05, "m", source="paper"),
    Input("steps", "Length", WORLD, 50, LONGEST, 10, "of 20 ms", source="paper"),
    Input("seed", "Seed", WORLD, 0, 999, 1),
    Input("push_speed", "Speed", PUSHING, 0.1, FASTEST, 0.05, "m/s"),
    Input("push_angle", "Direction", PUSHING, -180.0, 180.0, 5.0, "degrees"),
    Input("layout", "Layout", WATCH),
    Input("turn", "Turned by", WATCH, -80.0, 80.0, 1.0, "degrees"),
    Input("tilt", "Seen from above", WATCH, 0.0, 80.0, 1.0, "degrees"),
    Input("pace", "Pace", WATCH, 0.1, 4.0, 0.05, "x real time", "log"),
    Input("onward", "On to the next flight", WATCH),
    Input("playing", "Playing", WATCH),
)


class LiveFlight(NamedTuple):
    """A flight that is watched."""

    settings: QuadrotorSettings
    view: FlightView
    pushes: tuple[Push, ...]
    moment: float  # s
    drones: tuple[Drone, ...]
    compiled: frozenset[str]  # programs that have been compiled, or whose compilation has been announced
    wind: np.ndarray | None
    edition: int  # of the record: another whenever its past or its drones have changed
    sent: tuple[int, int]  # edition and decisions that the page has
    tick: int
    drawn: bool  # whether this moment has been drawn


def length(live: LiveFlight) -> float:
    return live.settings.steps * live.settings.dt


def over(live: LiveFlight) -> bool:
    return live.moment >= length(live) - 1e-9


# ------------------------------------------------------------------ drawn


def frame(live: LiveFlight) -> tuple[LiveFlight, Frame]:
    """The moment, and the record of the flight whenever it has more than the page knows."""
    live = live._replace(tick=live.tick + 1)
    missing = {program(drone.how) for drone in live.drones} - live.compiled
    if missing:  # this takes seconds, so it is said before it is done
        return live._replace(compiled=live.compiled | missing), Frame("moment", {**_now(live), "compiling": True}, {})
    if live.drawn and live.view.playing:
        later = live.moment + live.view.pace / FRAMES_PER_SECOND
        live = live._replace(moment=min(later, length(live)))
    live = _catch_up(live)
    if live.sent != (live.edition, _reach(live)):
        return live._replace(sent=(live.edition, _reach(live)), drawn=True), _record(live)
    return live._replace(drawn=True), Frame("moment", _now(live), {})


def _catch_up(live: LiveFlight) -> LiveFlight:
    """Every drone, flown at least to the moment that is shown."""
    needed = min(math.ceil(live.moment / live.settings.dt + 1e-6) + 1, live.settings.steps)
    numbers = (live.settings.seed, live.view.flight)
    drones = tuple(fly_on(drone, *numbers, live.pushes, needed) for drone in live.drones)
    wind = live.wind
    if wind is None:
        wind = np.asarray(_gusts(live.drones[0].env, *map(jnp.asarray, numbers)))
    return live._replace(drones=drones, wind=wind)


def _reach(live: LiveFlight) -> int:
    """Decisions that all drones have made."""
    return min(live.settings.steps, *(sum(len(rows.cost) for rows in drone.bouts) for drone in live.drones))


def _now(live: LiveFlight) -> dict[str, Any]:
    return {
        "moment": live.moment, "playing": live.view.playing, "over": over(live), "edition": live.edition,
        "tick": live.tick,
    }  # fmt: skip


def _record(live: LiveFlight) -> Frame:
    """All that was flown: states, weights, certificates, costs, the path and the wind."""
    known, steps, view = _reach(live), live.settings.steps, live.view
    rows = [flight(drone, known) for drone in live.drones]
    course = path_of(live.settings)[:, [0, 2]]
    states = np.stack([flown.states for flown in rows])
    arrays = {
        "states": states,
        "distance": np.hypot(*np.moveaxis(states[..., [0, 2]] - course[: known + 1], -1, 0)),
        "weight": np.stack([flown.stabilising for flown in rows]),
        "gap": np.stack([flown.gap for flown in rows]),
        "cost": np.concatenate(
            [np.zeros((len(rows), 1)), np.cumsum(np.stack([flown.cost for flown in rows]), axis=1)], axis=1
        ),
        "path": course,
        "gusts": live.wind[:known] if live.wind is not None else np.zeros((known, 2)),
    }
    meets = view.experiment == "lqr" and live.settings.impulse > 0
    header = {
        **_now(live), "dt": live.settings.dt, "steps": steps, "known": known, "flight": view.flight,
        "drones": [_describe(drone, view) for drone in live.drones],
        "pushes": [list(push) for push in live.pushes],
        "impulse": int(live.drones[0].marks[0][0].impulse_time) if meets else None,
        "force_sd": live.settings.force_sd,
        "round": math.ceil(live.settings.period / live.settings.dt) + 1,  # rows of the path until it repeats itself
    }  # fmt: skip
    return Frame("flight", header, arrays)


def _describe(drone: Drone, view: FlightView) -> dict[str, Any]:
    role = drone.name if drone.how is None or drone.name == "composed" else "rival"
    label = BASELINE[view.experiment] if drone.name == "baseline" else drone.name
    gate = drone.how.gate if drone.how is not None else None
    return {"name": drone.name, "role": role, "label": label, "gate": gate}


@eqx.filter_jit
def _gusts(env: Quadrotor, seed: jax.Array, episode: jax.Array) -> Float[jax.Array, "step 2"]:
    """The force of the wind at every decision: the same for all, whatever they do."""
    streams = streams_of(jax.random.key(seed), episode)
    when = env.reset(streams.start).impulse_time
    force = lambda k: env.disturb(jax.random.fold_in(streams.environment, k), k, when)[1]  # noqa: E731
    return jax.lax.map(force, jnp.arange(LONGEST))
