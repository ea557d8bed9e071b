"""Flights: any of the study's controllers side by side in the same weather, pushed at will, and replayed."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...envs.paths import path
from ...studies.quadrotor.comparing import BASELINE
from ...studies.quadrotor.controllers import DT
from ...studies.quadrotor.parts import FIXED
from ...studies.quadrotor.settings import Composition, Experiment, QuadrotorSettings
from ...studies.quadrotor.simulate import roster
from ..controls import Control, check_limits, check_names, described, in_words
from ..wire import Frame
from .base import Room
from .flying import LONGEST, Drone, flight, flown, gusts, launched, rewound
from .pushes import FASTEST, Push, allowed, push, read, where_they_part, written

Composed = Literal[
    "cost-to-go", "cost-to-go, warm", "one-step gate", "equilibrium, sample", "equilibrium, sample, wide",
    "equilibrium, mean", "equilibrium, mean, wide", "equilibrium, dither",
]  # fmt: skip
Rival = Literal["nobody", Composed]  # a Literal inside another is flattened
Layout = Literal["apart", "together", "in depth"]
PICTURE = 1 / 30  # s from one picture to the next, as the session sends them


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
    rival: Rival = Field(default="nobody", description="Fly a second composition of the study, with its own numbers.")
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
CONTROLS = (
    Control("experiment", "Pair", WHAT, source="paper"),
    Control("scenario", "Composition", WHAT),
    Control("flight", "Flight", WHAT, 0, 999, 1),
    Control("composed", "Composed", WHO),
    Control("mixture", "Fixed 50/50", WHO),
    Control("stabilise", "Stabilise alone", WHO),
    Control("track", "Track alone", WHO),
    Control("baseline", "Baseline (PID, LQR)", WHO),
    Control("rival", "Second composition", WHO),
    Control("gate", "Weights", GATING),
    Control("horizon", "Horizon", GATING),
    Control("selection", "Action taken", GATING),
    Control("eps", "Temperature", GATING, 0.005, 20.0, 0.001, "nats", "log"),
    Control("margin", "Grid beyond limits", GATING, 0.0, 0.1, 0.005, "N"),
    Control("force_sd", "Gusts", WORLD, 0.0, 0.1, 0.001, "N", source="paper"),
    Control("thrust_sd", "Motor noise", WORLD, 0.0, 0.05, 0.001, "N", source="paper"),
    Control("impulse", "Impulse (LQR pair)", WORLD, 0.0, 3.0, 0.05, "N", source="paper"),
    Control("disturbance", "Forces act at", WORLD, source="paper"),
    Control("path", "Path", WORLD, source="paper"),
    Control("scale", "Size of the path", WORLD, 0.2, 1.5, 0.05, "m", source="paper"),
    Control("steps", "Length", WORLD, 50, LONGEST, 10, "of 20 ms", source="paper"),
    Control("seed", "Seed", WORLD, 0, 999, 1),
    Control("push_speed", "Speed", PUSHING, 0.1, FASTEST, 0.05, "m/s"),
    Control("push_angle", "Direction", PUSHING, -180.0, 180.0, 5.0, "degrees"),
    Control("layout", "Layout", WATCH),
    Control("turn", "Turned by", WATCH, -80.0, 80.0, 1.0, "degrees"),
    Control("tilt", "Seen from above", WATCH, 0.0, 80.0, 1.0, "degrees"),
    Control("pace", "Pace", WATCH, 0.1, 4.0, 0.05, "x real time", "log"),
    Control("onward", "On to the next flight", WATCH),
    Control("playing", "Playing", WATCH),
)
WORDS = {  # where the study's settings have no words of their own
    "gate": "equilibrium: the optimum, proved. one-step: as the paper's scripts. prior: always half and half.",
    "horizon": "What a thrust is judged by: the state 20 ms later, or all that follows (x'P x of the baseline's LQR).",
    "selection": "What is done with the mixture: its mean, its most probable thrust, one drawn from it, or turns.",
    "eps": "Temperature of the gate: low follows the cost, high takes half of each.",
    "margin": "How far the grid of thrusts reaches past the motors' limits, so that it cuts no controller short.",
    "force_sd": "Random force on each axis, drawn anew every 20 ms (standard deviation).",
    "thrust_sd": "Random thrust that each pair of motors adds (standard deviation).",
    "impulse": "Force on both axes for 20 ms, once in a flight of the LQR pair.",
    "disturbance": "centre: of mass. stale-point: where the drone was 20 ms ago, as in the paper's simulator.",
    "path": "What is to be followed.",
    "scale": "Width of the path's half.",
    "seed": "Gusts of all flights.",
}
_NAMES = {control.name for control in CONTROLS}
_VIEW, _HOW = set(FlightView.model_fields), set(Composition.model_fields)


class Live(NamedTuple):
    """A flight that is watched."""

    settings: QuadrotorSettings
    view: FlightView
    pushes: tuple[Push, ...]
    moment: float  # s
    drones: tuple[Drone, ...]
    ready: frozenset[str]  # programs that have been compiled, or whose compilation has been announced
    wind: np.ndarray | None
    edition: int  # of the record: another whenever its past or its drones have changed
    sent: tuple[int, int]  # edition and decisions that the page has
    tick: int
    drawn: bool  # whether this moment has been drawn


def standard(view: FlightView) -> Composition:
    """The composition that a scenario brings."""
    how = roster(QuadrotorSettings())[view.scenario]
    assert how is not None
    return how


def crew(settings: QuadrotorSettings, view: FlightView) -> dict[str, Composition | None]:
    """Who flies, by the study's names."""
    chosen: dict[str, Composition | None] = {"composed": settings.composition} if view.composed else {}
    if view.rival != "nobody":
        chosen[view.rival] = roster(QuadrotorSettings())[view.rival]
    alone = {FIXED: view.mixture, "baseline": view.baseline, "stabilise": view.stabilise, "track": view.track}
    return chosen | {name: None for name, flies in alone.items() if flies}


def prepared(live: Live) -> Live:
    """The same moment with the drones that the settings ask for: those that are unchanged keep what they flew."""
    had = {drone.name: drone for drone in live.drones}
    wanted = crew(live.settings, live.view)
    if not wanted:
        raise ValueError("nobody flies: switch on at least one of the drones.")
    drones = tuple(
        had[name] if name in had and had[name].how == how
        else launched(live.settings, live.view.experiment, name, how, live.view.flight)
        for name, how in wanted.items()
    )  # fmt: skip
    return live._replace(drones=drones, edition=live.edition + 1, drawn=False)


def length(live: Live) -> float:
    return live.settings.steps * DT


def over(live: Live) -> bool:
    return live.moment >= length(live) - 1e-9


def program(how: Composition | None) -> str:
    """What has to be compiled for a drone."""
    return "alone" if how is None else f"{how.gate}, {how.selection}, {how.points}"


# ------------------------------------------------------------------ frames


def frame(live: Live) -> tuple[Live, Frame]:
    """The moment, and the record of the flight whenever it has more than the page knows."""
    live = live._replace(tick=live.tick + 1)
    missing = {program(drone.how) for drone in live.drones} - live.ready
    if missing:  # this takes seconds, so it is said before it is done
        return live._replace(ready=live.ready | missing), Frame("moment", {**_now(live), "compiling": True}, {})
    if live.drawn and live.view.playing:
        later = live.moment + live.view.pace * PICTURE
        live = live._replace(moment=min(later, length(live)))
    live = caught_up(live)
    if live.sent != (live.edition, _reach(live)):
        return live._replace(sent=(live.edition, _reach(live)), drawn=True), record(live)
    return live._replace(drawn=True), Frame("moment", _now(live), {})


def caught_up(live: Live) -> Live:
    """Every drone, flown at least to the moment that is shown."""
    needed = min(math.ceil(live.moment / DT + 1e-6) + 1, live.settings.steps)
    numbers = (live.settings.seed, live.view.flight)
    drones = tuple(flown(drone, *numbers, live.pushes, needed) for drone in live.drones)
    wind = live.wind
    if wind is None:
        wind = np.asarray(gusts(live.drones[0].env, *map(jnp.asarray, numbers)))
    return live._replace(drones=drones, wind=wind)


def _reach(live: Live) -> int:
    """Decisions that all drones have made."""
    return min(live.settings.steps, *(sum(len(rows.cost) for rows in drone.bouts) for drone in live.drones))


def _now(live: Live) -> dict[str, Any]:
    return {
        "moment": live.moment, "playing": live.view.playing, "over": over(live), "edition": live.edition,
        "tick": live.tick,
    }  # fmt: skip


def record(live: Live) -> Frame:
    """All that was flown: states, weights, certificates, costs, the path and the weather."""
    known, steps, view = _reach(live), live.settings.steps, live.view
    rows = [flight(drone, known) for drone in live.drones]
    course = path(live.settings.path, steps=steps, scale=live.settings.scale, period=live.settings.period)[:, [0, 2]]
    states = np.stack([one.states for one in rows])
    arrays = {
        "states": states,
        "distance": np.hypot(*np.moveaxis(states[..., [0, 2]] - course[: known + 1], -1, 0)),
        "weight": np.stack([one.stabilising for one in rows]),
        "gap": np.stack([one.gap for one in rows]),
        "cost": np.concatenate(
            [np.zeros((len(rows), 1)), np.cumsum(np.stack([one.cost for one in rows]), axis=1)], axis=1
        ),
        "path": course,
        "gusts": live.wind[:known] if live.wind is not None else np.zeros((known, 2)),
    }
    meets = view.experiment == "lqr" and live.settings.impulse > 0
    header = {
        **_now(live), "dt": DT, "steps": steps, "known": known, "flight": view.flight,
        "drones": [_described(drone, view) for drone in live.drones],
        "pushes": [list(one) for one in live.pushes],
        "impulse": int(live.drones[0].marks[0][0].impulse_time) if meets else None,
        "force_sd": live.settings.force_sd,
        "round": math.ceil(live.settings.period / DT) + 1,  # rows of the path until it repeats itself
    }  # fmt: skip
    return Frame("flight", header, arrays)


def _described(drone: Drone, view: FlightView) -> dict[str, Any]:
    role = drone.name if drone.how is None or drone.name == "composed" else "rival"
    label = BASELINE[view.experiment] if drone.name == "baseline" else drone.name
    gate = drone.how.gate if drone.how is not None else None
    return {"name": drone.name, "role": role, "label": label, "gate": gate}


# ------------------------------------------------------------------ as a room


def begin() -> Live:
    view = FlightView()
    settings = QuadrotorSettings(composition=standard(view))
    return prepared(Live(settings, view, (), 0.0, (), frozenset(), None, 0, (-1, -1), 0, False))


def change(live: Live, changes: Mapping[str, Any]) -> Live:
    """Whatever is changed, the flight is flown anew with it up to the moment that is shown."""
    check_names(CONTROLS, {name: value for name, value in changes.items() if name != "pushes"})
    told = dict(changes)
    try:
        view = FlightView(**{**live.view.model_dump(), **{n: v for n, v in told.items() if n in _VIEW}})
        how = standard(view) if "scenario" in told else live.settings.composition
        how = Composition(**{**how.model_dump(), **{n: v for n, v in told.items() if n in _HOW}})
        rest = {name: value for name, value in told.items() if name not in _VIEW | _HOW | {"pushes"}}
        settings = QuadrotorSettings(**{**live.settings.model_dump(), **rest, "composition": how})
    except ValidationError as error:
        raise ValueError(in_words(error)) from None
    for model in (view, how, settings):
        check_limits(CONTROLS, model, list(told))
    other = (settings.seed, view.flight) != (live.settings.seed, live.view.flight)
    pushes = read(told["pushes"]) if "pushes" in told else () if other else live.pushes
    if "playing" in told and view.playing and over(live):
        live = live._replace(moment=0.0)
    return _settled_on(live, settings, view, pushes, other)


def _settled_on(
    live: Live, settings: QuadrotorSettings, view: FlightView, pushes: tuple[Push, ...], other: bool
) -> Live:
    """The state with these settings; `other`: another flight, which begins at its start."""
    world = _world(settings, view) != _world(live.settings, live.view)
    # who only looks from elsewhere does not hold up time
    same = view.playing and live.view.playing and (settings, pushes) == (live.settings, live.pushes)
    new = live._replace(settings=settings, view=view, pushes=pushes, drawn=live.drawn and same and not other)
    if other or world:
        new = new._replace(drones=(), wind=None)
    elif pushes != live.pushes:
        k = where_they_part(pushes, live.pushes)
        new = new._replace(drones=tuple(rewound(drone, k) for drone in live.drones), edition=live.edition + 1)
    new = new._replace(moment=0.0 if other else min(new.moment, length(new)))
    there = [(drone.name, drone.how) for drone in new.drones]
    return new if there == list(crew(settings, view).items()) else prepared(new)


def _world(settings: QuadrotorSettings, view: FlightView) -> tuple[Any, ...]:
    """What every drone depends on."""
    return settings.model_copy(update={"composition": Composition()}), view.experiment


def act(live: Live, given: Mapping[str, Any]) -> Live:
    """Look at another moment, push all drones at it, or forget the pushes."""
    if unknown := set(given) - {"moment", "push", "forget"}:
        raise ValueError(f"act = {str(sorted(unknown))[:60]}: use moment, push or forget.")
    if "forget" in given:
        live = _settled_on(live, live.settings, live.view, (), False)
    if "moment" in given:
        moment = given["moment"]
        if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
            raise ValueError(f"moment = {str(moment)[:60]}: pass seconds from the start of the flight.")
        live = live._replace(moment=min(max(float(moment), 0.0), length(live)), drawn=False)
    if "push" not in given:
        return live
    towards, k = given["push"], math.ceil(live.moment / DT - 1e-6)
    if not (isinstance(towards, list) and len(towards) == 2):
        raise ValueError(f"push = {str(towards)[:60]}: pass two velocities, to the right and upwards, in m/s.")
    if k >= live.settings.steps:
        raise ValueError("the flight is over: go back to an earlier moment to push, or fly another.")
    view = live.view.model_copy(update={"playing": True})
    return _settled_on(live, live.settings, view, allowed([*live.pushes, push(k, *towards)]), False)


def told(live: Live) -> dict[str, Any]:
    brought = {**QuadrotorSettings().model_dump(), **FlightView().model_dump(), **standard(live.view).model_dump()}
    brought["scenario"] = live.view.scenario  # chosen, not deviated from
    now = {**live.settings.model_dump(), **live.settings.composition.model_dump(), **live.view.model_dump()}
    return {
        "settings": {name: now[name] for name in _NAMES} | {"pushes": written(live.pushes)},
        "defaults": {name: brought[name] for name in _NAMES} | {"pushes": ""},
        "snippet": snippet(live),
    }  # fmt: skip


def snippet(live: Live) -> str:
    """The same flight in Python: the study's own functions, or the room's where somebody has pushed."""
    usual = QuadrotorSettings()
    changed = {n: v for n, v in live.settings.model_dump().items() if v != getattr(usual, n) and n in _NAMES}
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    who = ",\n".join(f"    {name!r}: {_composition(how)}" for name, how in crew(live.settings, live.view).items())
    if live.pushes:
        more = "from policychord.studio.rooms.flying import fly\nfrom policychord.studio.rooms.pushes import Push\n"
        pushes = f"pushes = {list(live.pushes)!r}  # decision, m/s to the right, m/s upwards\n"
        body = f"""\
    flight = fly(settings, {live.view.experiment!r}, name, how, {live.view.flight}, pushes)
    costs[name] = flight.cost.sum()
"""
    else:
        more = "from policychord.studies.quadrotor.simulate import fly_episodes, ready\n"
        pushes = ""
        body = f"""\
    agent, world = ready(settings, {live.view.experiment!r}, name, how)
    flight = fly_episodes(settings, agent, world, episodes=[{live.view.flight}])
    costs[name] = flight.cost[0]
"""
    return f"""\
import jax

jax.config.update("jax_enable_x64", True)  # certificates are honest in float64 only
from policychord.studies.quadrotor.settings import Composition, QuadrotorSettings
{more}
settings = QuadrotorSettings({settings})
who = {{
{who},
}}
{pushes}costs = {{}}
for name, how in who.items():
{body}    print(f"{{name}}: {{costs[name]:.1f}}")
"""


def _composition(how: Composition | None) -> str:
    if how is None:
        return "None"
    usual = Composition()
    changed = {name: value for name, value in how.model_dump().items() if value != getattr(usual, name)}
    return f"Composition({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def controls() -> list[dict[str, Any]]:
    shown = described([FlightView, Composition, QuadrotorSettings], CONTROLS)
    return [{**one, "description": WORDS.get(one["name"], one["description"])} for one in shown]


assert set(get_args(Composed)) <= set(roster(QuadrotorSettings()))

FLIGHT = Room(
    name="flight",
    title="Flight",
    controls=controls,
    begin=begin,
    change=change,
    restart=lambda live: live._replace(moment=0.0, view=live.view.model_copy(update={"playing": True}), drawn=False),
    told=told,
    frame=frame,
    settled=lambda live: live.drawn and (over(live) or not live.view.playing),
    act=act,
)
