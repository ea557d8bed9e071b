"""What the page draws: the moment, and the record of the flight."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....loops import streams_of
from ....worlds.quadrotor.agents import BASELINE
from ....worlds.quadrotor.agents import reference_path as path_of
from ....worlds.quadrotor.flights import program
from ....worlds.quadrotor.physics import Quadrotor
from ...wire import Frame
from ..base import FRAMES_PER_SECOND
from .flying import LONGEST, Drone, flight, fly_on
from .live import FlightView, LiveFlight, length, over


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
