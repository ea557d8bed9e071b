"""Flights: any of the study's controllers side by side under the same forces, pushed at will, and looked at again."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field

from ...._types import Watch
from ....loops import streams_of
from ....worlds.quadrotor.agents import BASELINE, FIXED, Composed, Roster, roster
from ....worlds.quadrotor.agents import reference_path as path_of
from ....worlds.quadrotor.flights import program
from ....worlds.quadrotor.physics import Quadrotor
from ....worlds.quadrotor.settings import CompositionSettings, Experiment, QuadrotorSettings
from ...inputs import Input, changed, check_names, describe_inputs, differences, inputs_of, values_of
from ...jobs import Job, pursue
from ...wire import LARGEST, Frame
from ..base import FRAMES_PER_SECOND, Page
from .flying import BOUT, FASTEST, LONGEST, Drone, Push, flight, fly_on, launch, rewind

MOST = 40  # pushes in one flight
_NUMBER = r"-?\d{1,3}(?:\.\d{1,4})?"
_WRITTEN = re.compile(rf"(\d{{1,5}})\*({_NUMBER})\*({_NUMBER})")
Rival = Literal["none", Composed]  # a Literal inside another is flattened
Layout = Literal["apart", "together", "in depth"]


class _FlightView(BaseModel):
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


WATCHED = ("layout", "turn", "tilt", "pace", "onward", "playing", "push_speed", "push_angle")  # not of the flight


class _LiveFlight(NamedTuple):
    """A flight that is watched."""

    settings: QuadrotorSettings
    view: _FlightView
    pushes: tuple[Push, ...]
    moment: float  # s
    drones: tuple[Drone, ...]
    compiled: frozenset[str]  # programs that have been compiled
    wind: np.ndarray | None
    edition: int  # of the record: another whenever its past or its drones have changed
    sent: tuple[int, int]  # edition and decisions that the page has
    tick: int
    drawn: bool  # whether this moment has been drawn
    job: Job | None = None  # which compiles programs


def _length(live: _LiveFlight) -> float:
    return live.settings.steps * live.settings.dt


def _over(live: _LiveFlight) -> bool:
    return live.moment >= _length(live) - 1e-9


# ------------------------------------------------------------------ changed


def _begin() -> _LiveFlight:
    view = _FlightView()
    settings = QuadrotorSettings(composition=_standard(view))
    return _launch_missing(_LiveFlight(settings, view, (), 0.0, (), frozenset(), None, 0, (-1, -1), 0, False))


def _standard(view: _FlightView) -> CompositionSettings:
    """The composition that a scenario brings."""
    how = roster(QuadrotorSettings())[view.scenario]
    assert how is not None
    return how


def _crew(settings: QuadrotorSettings, view: _FlightView) -> Roster:
    """Who flies, by the study's names."""
    chosen: Roster = {"composed": settings.composition} if view.composed else {}
    if view.rival != "none":
        chosen[view.rival] = roster(QuadrotorSettings())[view.rival]
    alone = {FIXED: view.mixture, "baseline": view.baseline, "stabilise": view.stabilise, "track": view.track}
    return chosen | {name: None for name, flies in alone.items() if flies}


def _launch_missing(live: _LiveFlight) -> _LiveFlight:
    """The same moment with the drones that the settings ask for: those that are unchanged keep what they flew."""
    had = {drone.name: drone for drone in live.drones}
    wanted = _crew(live.settings, live.view)
    if not wanted:
        raise ValueError("no drone flies: switch on at least one of them.")
    drones = tuple(
        had[name] if name in had and had[name].how == how
        else launch(live.settings, live.view.experiment, name, how, live.view.flight)
        for name, how in wanted.items()
    )  # fmt: skip
    return live._replace(drones=drones, edition=live.edition + 1, drawn=False)


def _change(live: _LiveFlight, changes: Mapping[str, Any]) -> _LiveFlight:
    """Whatever is changed, the flight is simulated again with it up to the moment that is shown."""
    check_names(INPUTS, {name: value for name, value in changes.items() if name != "pushes"})
    view = changed(live.view, changes, INPUTS)
    how = changed(_standard(view) if "scenario" in changes else live.settings.composition, changes, INPUTS)
    settings = changed(live.settings.model_copy(update={"composition": how}), changes, INPUTS)
    other = (settings.seed, view.flight) != (live.settings.seed, live.view.flight)
    pushes = _read_pushes(changes["pushes"]) if "pushes" in changes else () if other else live.pushes
    if "playing" in changes and view.playing and _over(live):
        live = live._replace(moment=0.0)
    return _settle(live, settings, view, pushes, other)


def _settle(
    live: _LiveFlight, settings: QuadrotorSettings, view: _FlightView, pushes: tuple[Push, ...], other: bool
) -> _LiveFlight:
    """The state with these settings; `other`: another flight, which begins at its start."""
    world = _world(settings, view) != _world(live.settings, live.view)
    # who only looks from elsewhere does not hold up time
    same = view.playing and live.view.playing and (settings, pushes) == (live.settings, live.pushes)
    new = live._replace(settings=settings, view=view, pushes=pushes, drawn=live.drawn and same and not other)
    if inputs_of(_settings(new), WATCHED) != inputs_of(_settings(live), WATCHED):
        new = new._replace(sent=(-1, -1))  # the page waits for a record of these settings
    if other or world:
        new = new._replace(drones=(), wind=None)
    elif pushes != live.pushes:
        k = _where_they_part(pushes, live.pushes)
        new = new._replace(drones=tuple(rewind(drone, k) for drone in live.drones), edition=live.edition + 1)
    new = new._replace(moment=0.0 if other else min(new.moment, _length(new)))
    there = [(drone.name, drone.how) for drone in new.drones]
    return new if there == list(_crew(settings, view).items()) else _launch_missing(new)


def _world(settings: QuadrotorSettings, view: _FlightView) -> tuple[Any, ...]:
    """What every drone depends on."""
    return settings.model_copy(update={"composition": CompositionSettings()}), view.experiment


def _act(live: _LiveFlight, act: Mapping[str, Any]) -> _LiveFlight:
    """Look at another moment, push all drones at it, or forget the pushes."""
    if unknown := set(act) - {"moment", "push", "forget"}:
        raise ValueError(f"act = {str(sorted(unknown))[:60]}: use moment, push or forget.")
    if "forget" in act:
        live = _settle(live, live.settings, live.view, (), False)
    if "moment" in act:
        moment = act["moment"]
        if isinstance(moment, bool) or not isinstance(moment, int | float) or not abs(moment) <= LARGEST:
            raise ValueError(f"moment = {str(moment)[:60]}: pass seconds from the start of the flight.")
        live = live._replace(moment=min(max(float(moment), 0.0), _length(live)), drawn=False)
    if "push" not in act:
        return live
    towards, k = act["push"], math.ceil(live.moment / live.settings.dt - 1e-6)
    if not (isinstance(towards, list) and len(towards) == 2):
        raise ValueError(f"push = {str(towards)[:60]}: pass two velocities, to the right and upwards, in m/s.")
    if k >= live.settings.steps:
        raise ValueError("the flight is over: go back to an earlier moment to push, or fly another.")
    view = live.view.model_copy(update={"playing": True})
    return _settle(live, live.settings, view, _order_pushes([*live.pushes, _check_push(k, *towards)]), False)


def _describe(live: _LiveFlight) -> dict[str, Any]:
    # a scenario is chosen, not deviated from
    standard = QuadrotorSettings(), _FlightView(scenario=live.view.scenario), _standard(live.view)
    return {
        "settings": _settings(live),
        "defaults": values_of(INPUTS, *standard) | {"pushes": ""},
        "snippet": _snippet(live),
        "idle": _idle(live),
    }


def _settings(live: _LiveFlight) -> dict[str, Any]:
    now = values_of(INPUTS, live.settings, live.settings.composition, live.view)
    return now | {"pushes": _write_pushes(live.pushes)}


def _idle(live: _LiveFlight) -> dict[str, str]:
    """Inputs that do nothing now, and why."""
    own = [control.name for control in INPUTS if control.group == GATING]
    idle = {} if live.view.composed else dict.fromkeys((*own, "scenario"), "The composed drone does not fly.")
    if live.view.experiment == "pd":
        idle["impulse"] = "Only flights of the LQR pair meet an impulse."
    return idle


def _snippet(live: _LiveFlight) -> str:
    """The same flight in Python: the study's own functions, or the page's where a push came."""
    shown = {control.name for control in INPUTS}
    other = {n: v for n, v in differences(live.settings, QuadrotorSettings()).items() if n in shown}
    who = ",\n".join(f"    {name!r}: {_composition(how)}" for name, how in _crew(live.settings, live.view).items())
    if live.pushes:
        page = "policychord.studio.pages.flight"
        more = f"from {page}.flying import Push, fly_pushed\n"
        pushes = f"pushes = {list(live.pushes)!r}  # decision, m/s to the right, m/s upwards\n"
        body = f"""\
    flight = fly_pushed(settings, {live.view.experiment!r}, name, how, {live.view.flight}, pushes)
    costs[name] = flight.cost.sum()
"""
    else:
        more = "from policychord.worlds.quadrotor import agent_and_world, fly_episodes\n"
        pushes = ""
        body = f"""\
    agent, world = agent_and_world(settings, {live.view.experiment!r}, name, how)
    flight = fly_episodes(settings, agent, world, episodes=[{live.view.flight}])
    costs[name] = flight.cost[0]
"""
    return f"""\
import jax

jax.config.update("jax_enable_x64", True)  # certificates are honest in float64 only
from policychord.worlds.quadrotor import CompositionSettings, QuadrotorSettings
{more}
settings = QuadrotorSettings({_as_arguments(other)})
who = {{
{who},
}}
{pushes}costs = {{}}
for name, how in who.items():
{body}    print(f"{{name}}: {{costs[name]:.1f}}")
"""


def _composition(how: CompositionSettings | None) -> str:
    return "None" if how is None else f"CompositionSettings({_as_arguments(differences(how, CompositionSettings()))})"


def _as_arguments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _check_push(k: int, x: Any, z: Any) -> Push:
    """A push from what a page says, which may be anything."""
    for axis, value in (("x", x), ("z", z)):
        # an integer may be too large for a float, so it is compared and not converted
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise ValueError(f"push {axis} = {str(value)[:60]}: pass a velocity in m/s.")
    if math.hypot(x, z) > FASTEST + 0.01:
        raise ValueError(f"push = {math.hypot(x, z):.3g} m/s: at most {FASTEST:g} m/s.")
    return Push(k, round(float(x), 3), round(float(z), 3))


def _write_pushes(pushes: Sequence[Push]) -> str:
    """Pushes in characters that an address holds as they are: 61*0.8*-0.3_130*0*1.2."""
    return "_".join(f"{push.k}*{push.x:g}*{push.z:g}" for push in pushes)


def _read_pushes(text: Any) -> tuple[Push, ...]:
    """What `_write_pushes` wrote."""
    if text == "":
        return ()
    written = [_WRITTEN.fullmatch(part) for part in str(text)[:2000].split("_")]
    if not all(written):
        raise ValueError(f"pushes = {str(text)[:60]}: write them as decision*x*z, joined by _, with x and z in m/s.")
    return _order_pushes([_check_push(int(push[1]), float(push[2]), float(push[3])) for push in written if push])


def _order_pushes(pushes: Sequence[Push]) -> tuple[Push, ...]:
    """Pushes in the order in which they come, if they are not too many."""
    if len(pushes) > MOST:
        raise ValueError(f"{len(pushes)} pushes: at most {MOST} in one flight. Forget them and begin again.")
    return tuple(sorted(pushes, key=lambda push: push.k))


def _where_they_part(some: Sequence[Push], others: Sequence[Push]) -> int:
    """The first decision at which one of two different flights is pushed and the other is not."""
    pairs = zip_longest(some, others)
    return next(min(push.k for push in pair if push is not None) for pair in pairs if pair[0] != pair[1])


# ------------------------------------------------------------------ drawn


def _frame(live: _LiveFlight) -> tuple[_LiveFlight, Frame | None]:
    """The moment, and the record of the flight whenever it has more than the page knows."""
    live = live._replace(tick=live.tick + 1)
    programs = frozenset(program(drone.how) for drone in live.drones)
    if programs - live.compiled:  # this takes seconds
        job, ended = pursue(live.job, _compile, live.drones)
        if not ended:
            said = Frame("compiling", {"computing": ["flight"], "words": "Compiling the controllers"}, {})
            return live._replace(job=job), said if job is not live.job else None
        job.result()
        live = live._replace(job=None, compiled=live.compiled | programs, sent=(-1, -1))
    if live.drawn and live.view.playing:
        later = live.moment + live.view.pace / FRAMES_PER_SECOND
        live = live._replace(moment=min(later, _length(live)))
    live = _catch_up(live)
    if live.sent != (live.edition, _reach(live)):
        return live._replace(sent=(live.edition, _reach(live)), drawn=True), _record(live)
    return live._replace(drawn=True), Frame("moment", _now(live), {})


def _compile(watch: Watch, drones: tuple[Drone, ...]) -> None:
    """A bout of each drone that is not shown: the first of a program takes seconds."""
    for done, drone in enumerate(drones):
        watch(drone.name, done, len(drones))
        fly_on(drone, 0, 0, (), len(drone.bouts) * BOUT + 1)


def _catch_up(live: _LiveFlight) -> _LiveFlight:
    """Every drone, flown at least to the moment that is shown."""
    needed = min(math.ceil(live.moment / live.settings.dt + 1e-6) + 1, live.settings.steps)
    numbers = (live.settings.seed, live.view.flight)
    drones = tuple(fly_on(drone, *numbers, live.pushes, needed) for drone in live.drones)
    wind = live.wind
    if wind is None:
        wind = np.asarray(_gusts(live.drones[0].env, *map(jnp.asarray, numbers)))
    return live._replace(drones=drones, wind=wind)


def _reach(live: _LiveFlight) -> int:
    """Decisions that all drones have made."""
    return min(live.settings.steps, *(sum(len(rows.cost) for rows in drone.bouts) for drone in live.drones))


def _now(live: _LiveFlight) -> dict[str, Any]:
    return {
        "moment": live.moment, "playing": live.view.playing, "over": _over(live), "edition": live.edition,
        "tick": live.tick,
    }  # fmt: skip


def _record(live: _LiveFlight) -> Frame:
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
        **inputs_of(_settings(live), WATCHED), **_now(live),
        "dt": live.settings.dt, "steps": steps, "known": known, "flight": view.flight,
        "drones": [_drone(drone, view) for drone in live.drones],
        "pushes": [list(push) for push in live.pushes],
        "impulse": int(live.drones[0].marks[0][0].impulse_time) if meets else None,
        "force_sd": live.settings.force_sd,
        "round": math.ceil(live.settings.period / live.settings.dt) + 1,  # rows of the path until it repeats itself
    }  # fmt: skip
    return Frame("flight", header, arrays)


def _drone(drone: Drone, view: _FlightView) -> dict[str, Any]:
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


FLIGHT = Page(
    name="flight",
    title="Flight",
    inputs=lambda: describe_inputs([_FlightView, CompositionSettings, QuadrotorSettings], INPUTS),
    begin=_begin,
    change=_change,
    restart=lambda live: live._replace(moment=0.0, view=live.view.model_copy(update={"playing": True}), drawn=False),
    describe=_describe,
    frame=_frame,
    settled=lambda live: live.drawn and (_over(live) or not live.view.playing),
    act=_act,
    moves=True,
)
