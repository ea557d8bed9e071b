"""The flock, live: the study's own boids and world, one compiled step after another."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ..._types import Watch
from ...loops import Carry, begin, step, step_in_turn, streams_of
from ...worlds.flock import measures
from ...worlds.flock.agents import FORCES, flock_agents, flock_world
from ...worlds.flock.measures import Numbers
from ...worlds.flock.physics import Flock
from ...worlds.flock.settings import FlockSettings, Scenario, scenario
from ..inputs import Input, changed, check_names, describe_inputs, differences, inputs_of, values_of
from ..jobs import Job, pursue
from ..uploads import Upload
from ..wire import Frame
from . import tracks
from .base import Page
from .tracks import Played, TracksView

EPISODE = 0  # the flight is episode 0 of what the study simulates with the same settings


class _FlockView(BaseModel):
    """How a flock is watched; none of it changes what a boid does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: Scenario = Field(default="polarization", description="The paper's experiments; each brings its numbers.")
    selected: int = Field(default=0, ge=0, description="The boid whose weights are shown; click one to select it.")
    pace: int = Field(default=1, ge=1, description="Time steps for each picture.")
    playing: bool = Field(default=True, description="Let time go on.")


WHAT, ZONES, WATCH, TRACKS = "Experiment", "Zones", "Watching", "Your tracks"
INPUTS = (
    Input("scenario", "Scenario", WHAT),
    Input("eps", "Temperature", WHAT, 0.02, 20.0, 0.01, "nats", "log", "paper"),
    Input("boids", "Boids", WHAT, 2, 1000, 1, source="paper"),
    Input("leaders", "Leaders", WHAT, 0, 100, 1, "boids", source="paper"),
    Input("fixed_weights", "Fixed weights", WHAT),
    Input("separation_radius", "Separation", ZONES, 0.2, 4.0, 0.05, "m", source="paper"),
    Input("alignment_radius", "Alignment", ZONES, 0.4, 8.0, 0.05, "m", source="paper"),
    Input("cohesion_radius", "Cohesion", ZONES, 1.0, 24.0, 0.1, "m", source="paper"),
    Input("vision_angle", "Vision", ZONES, 30.0, 360.0, 5.0, "degrees", source="paper"),
    Input("selected", "Boid", WATCH, 0, 999, 1),
    Input("pace", "Pace", WATCH, 1, 8, 1, "steps"),
    Input("seed", "Seed", WATCH, 0, 999, 1),
    Input("playing", "Playing", WATCH),
    Input("rate", "Frame rate", TRACKS, 0.0, 1000.0, 0.1, "Hz"),
    Input("every", "Decisions", TRACKS, 0.02, 10.0, 0.01, "s", "log"),
    Input("smooth", "Smoothing", TRACKS, 0.02, 10.0, 0.01, "s", "log"),
    Input("follow", "Start again after", TRACKS, 1.0, 60.0, 1.0, "s"),
    Input("trial", "Trial", TRACKS, 1, 999, 1),
    Input("leave_out", "Leave out", TRACKS),
    Input("predator", "Predator", TRACKS),
)


WATCHED = tuple(control.name for control in INPUTS if control.group in (WATCH, TRACKS) and control.name != "seed")


class _LiveFlock(NamedTuple):
    """A flock in flight."""

    settings: FlockSettings
    view: _FlockView
    agents: Any
    env: Flock
    carry: Carry  # positions and velocities, and what the boids remember
    k: int  # steps flown
    weights: Numbers  # of the last decisions
    gap: float  # the worst certificate among them
    drawn: bool  # whether this moment has been drawn
    ready: Any = None  # the agents whose program is compiled
    job: Job | None = None  # which compiles it
    tracks: TracksView = TracksView()
    file: Played | None = None  # of somebody's own, which is then shown in place of the boids


@eqx.filter_jit
def _advance(
    agents: Any, env: Flock, in_turn: bool, seed: jax.Array, carry: Carry, k: jax.Array, steps: jax.Array
) -> tuple[Carry, jax.Array, jax.Array]:
    """`steps` steps of episode `EPISODE` of `rollout`: (carry, weights of the last, its worst certificate)."""
    streams = streams_of(jax.random.key(seed), EPISODE)
    move = step_in_turn if in_turn else step

    def advance(i: Any, before: tuple[Carry, Any, Any]) -> tuple[Carry, Any, Any]:
        carry, record = move(agents, env, streams, before[0], k + i)
        return carry, record.weights, jnp.max(record.gap, initial=0.0)

    weights = jnp.zeros((env.agents, len(FORCES)))
    return jax.lax.fori_loop(0, steps, advance, (carry, weights, jnp.zeros(())))


def _launch(settings: FlockSettings, view: _FlockView) -> _LiveFlock:
    """A flock at its start."""
    agents, env = _parts(settings)
    carry = begin(agents, env, streams_of(jax.random.key(settings.seed), EPISODE))
    weights = np.full((env.agents, len(FORCES)), 1 / len(FORCES))
    return _LiveFlock(settings, view, agents, env, carry, 0, weights, 0.0, False)


def _parts(settings: FlockSettings) -> tuple[Any, Flock]:
    env = flock_world(settings)
    return flock_agents(settings, env), env


def _fly_on(live: _LiveFlock) -> _LiveFlock:
    """The flock some steps later."""
    in_turn = live.settings.update == "sequential"
    # numbers as arrays: a new one needs no new program
    seed, k, pace = (jnp.asarray(number) for number in (live.settings.seed, live.k, live.view.pace))
    carry, weights, gap = _advance(live.agents, live.env, in_turn, seed, live.carry, k, pace)
    return live._replace(
        carry=carry, k=live.k + live.view.pace, weights=np.asarray(weights), gap=float(gap), drawn=False
    )


def _compile(watch: Watch, agents: Any, env: Flock, settings: FlockSettings, carry: Carry) -> None:
    """A step that is not shown: the first of a program takes seconds."""
    numbers = (jnp.asarray(number) for number in (settings.seed, 0, 1))
    seed, k, steps = numbers
    jax.block_until_ready(_advance(agents, env, settings.update == "sequential", seed, carry, k, steps))


def _picture(live: _LiveFlock) -> Frame:
    """Where the boids are, what they weigh, and how orderly they are."""
    position, velocity = (np.asarray(array) for array in live.carry.state)
    p, v = position[None, None], velocity[None, None]
    selected = min(live.view.selected, live.settings.boids - 1)
    header = {
        "k": live.k, "time": live.k * live.settings.dt, "gap": live.gap, "selected": selected,
        "decides": selected < live.env.agents, "leaders": live.settings.leaders, "goal": list(live.settings.goal),
        "radii": [live.settings.separation_radius, live.settings.alignment_radius, live.settings.cohesion_radius],
        "vision": live.settings.vision_angle,
        "polarization": float(measures.polarization(v)[0, 0]), "milling": float(measures.milling(p, v)[0, 0]),
        "goal_distance": float(measures.goal_distance(p, live.settings.goal)[0, 0]),
        **inputs_of(values_of(INPUTS, live.settings, live.view, live.tracks), WATCHED),
    }  # fmt: skip
    return Frame("flock", header, {"position": position, "velocity": velocity, "weights": live.weights})


def _snippet(live: _LiveFlock) -> str:
    """The same flight in Python."""
    changed = _differences(live) | {"steps": max(live.k, 1)}
    words = "".join(f", {name}={value!r}" for name, value in changed.items())
    return f"""\
import jax

jax.config.update("jax_enable_x64", True)  # certificates are honest in float64 only
from policychord.worlds.flock import milling, polarization, scenario, simulate_flock

settings = scenario({live.view.scenario!r}{words})
trace = simulate_flock(settings, episodes=[{EPISODE}])
position, velocity = trace.state
print("polarization", polarization(velocity)[0, -1].round(3))
print("milling", milling(position, velocity)[0, -1].round(3))
"""


# ------------------------------------------------------------------ as a page


def _change(live: _LiveFlock, changes: Mapping[str, Any]) -> _LiveFlock:
    """Numbers change in flight; what decides how it starts, or how many fly, starts it again."""
    check_names(INPUTS, changes)
    live = _change_tracks(live, changes)
    view = changed(live.view, changes, INPUTS)
    kept = {} if "scenario" in changes else _differences(live)
    settings = changed(scenario(view.scenario).model_copy(update=kept), changes, INPUTS)
    if settings == live.settings and "scenario" not in changes:
        return live._replace(view=view, drawn=False)
    agents, env = _parts(settings)
    anew = ("boids", "seed", "start", "start_size", "start_pace", "followers", "update")
    same = all(getattr(settings, name) == getattr(live.settings, name) for name in anew)
    if "scenario" in changes or not same or env.agents != live.env.agents:
        return _launch(settings, view)._replace(tracks=live.tracks, file=live.file, job=live.job)
    return live._replace(settings=settings, view=view, agents=agents, env=env, drawn=False)


def _change_tracks(live: _LiveFlock, changes: Mapping[str, Any]) -> _LiveFlock:
    # an address cannot tell the id 14 from the number
    names = {
        name: f"{changes[name]:g}" for name in ("leave_out", "predator") if type(changes.get(name)) in (int, float)
    }
    view = changed(live.tracks, {**changes, **names}, INPUTS)
    if view == live.tracks:
        return live
    file = None if live.file is None else tracks.seen_by(view, live.file, live.tracks)
    return live._replace(tracks=view, file=file, drawn=False)


def _act(live: _LiveFlock, what: Mapping[str, Any]) -> _LiveFlock:
    """Take a file of tracks, or go back to the boids."""
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            _stop_fit(live)
            return live._replace(file=tracks.open_file(upload, live.tracks), drawn=False)
        case {"boids": True, **rest} if not rest:
            _stop_fit(live)
            return live._replace(file=None, drawn=False)
    raise ValueError(f"act = {str(dict(what))[:60]}: use file or boids.")


def _stop_fit(live: _LiveFlock) -> None:
    if live.file is not None and live.file.fitting is not None:
        live.file.fitting.stop()


def _differences(live: _LiveFlock) -> dict[str, Any]:
    return differences(live.settings, scenario(live.view.scenario))


def _describe(live: _LiveFlock) -> dict[str, Any]:
    # a scenario is chosen, not deviated from, so it has no value to go back to
    standard = scenario(live.view.scenario), _FlockView(scenario=live.view.scenario), TracksView()
    return {
        "settings": values_of(INPUTS, live.settings, live.view, live.tracks),
        "defaults": values_of(INPUTS, *standard),
        "snippet": _snippet(live) if live.file is None else tracks.tracks_snippet(live.file, live.tracks),
        "idle": _idle(live),
    }


def _idle(live: _LiveFlock) -> dict[str, str]:
    """Inputs that do nothing now, and why."""
    if live.file is None:
        names = {control.name for control in INPUTS if control.group == TRACKS}
        idle = dict.fromkeys(names, "Choose a file of tracks first.")
        return idle | ({"eps": "Fixed weights have no temperature."} if live.settings.fixed_weights else {})
    boids = (control.name for control in INPUTS if control.group in (WHAT, ZONES) or control.name == "seed")
    idle = dict.fromkeys(boids, "This is for the boids: go back to them first.")
    if live.file.motion is not None and len(live.file.motion.trials) == 1:
        idle["trial"] = "The file has one trial."
    return idle


def _frame(live: _LiveFlock) -> tuple[_LiveFlock, Frame | None]:
    """The start is shown first, then where the flock is after each bout of steps."""
    if live.file is not None:
        file = tracks.go_on(live.file, live.tracks, live.view.pace, live.view.playing)
        return live._replace(file=file, drawn=True), tracks.picture(file, live.tracks, live.view.selected)
    if live.drawn and live.view.playing:
        if live.ready is not live.agents:
            job, ended = pursue(live.job, _compile, live.agents, live.env, live.settings, live.carry)
            if not ended:
                return live._replace(job=job), None
            job.result()
            live = live._replace(job=None, ready=live.agents)
        live = _fly_on(live)
    return live._replace(drawn=True), _picture(live)


def _restart(live: _LiveFlock) -> _LiveFlock:
    """The same flock from its start, or the file from its first frame."""
    if live.file is not None:
        return live._replace(file=live.file._replace(time=0.0, begun=None), drawn=False)
    return _launch(live.settings, live.view)._replace(tracks=live.tracks)


def _settled(live: _LiveFlock) -> bool:
    """Whether nothing new will be drawn until something is changed."""
    if live.file is not None:
        return live.drawn and tracks.settled(live.file, live.view.playing)
    return live.drawn and not live.view.playing


FLOCK = Page(
    name="flock",
    title="Flock",
    inputs=lambda: describe_inputs([FlockSettings, _FlockView, TracksView], INPUTS),
    begin=lambda: _launch(scenario("polarization"), _FlockView()),
    change=_change,
    restart=_restart,
    describe=_describe,
    frame=_frame,
    settled=_settled,
    act=_act,
    moves=True,
)
