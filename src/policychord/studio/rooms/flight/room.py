"""Flights: any of the study's controllers side by side under the same forces, pushed at will, and looked at again."""

import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ....worlds.quadrotor.settings import CompositionSettings, QuadrotorSettings
from ...inputs import check_limits, check_names, describe_inputs, in_words
from ...wire import LARGEST
from ..base import Room
from .flying import Push, check_push, order_pushes, read_pushes, rewind, where_they_part, write_pushes
from .frames import frame
from .live import INPUTS, NAMES, OF_HOW, OF_VIEW, FlightView, LiveFlight, crew, launch_missing, length, over, standard


def _begin() -> LiveFlight:
    view = FlightView()
    settings = QuadrotorSettings(composition=standard(view))
    return launch_missing(LiveFlight(settings, view, (), 0.0, (), frozenset(), None, 0, (-1, -1), 0, False))


def _change(live: LiveFlight, changes: Mapping[str, Any]) -> LiveFlight:
    """Whatever is changed, the flight is simulated again with it up to the moment that is shown."""
    check_names(INPUTS, {name: value for name, value in changes.items() if name != "pushes"})
    try:
        view = FlightView(**{**live.view.model_dump(), **{n: v for n, v in changes.items() if n in OF_VIEW}})
        how = standard(view) if "scenario" in changes else live.settings.composition
        how = CompositionSettings(**{**how.model_dump(), **{n: v for n, v in changes.items() if n in OF_HOW}})
        rest = {name: value for name, value in changes.items() if name not in OF_VIEW | OF_HOW | {"pushes"}}
        settings = QuadrotorSettings(**{**live.settings.model_dump(), **rest, "composition": how})
    except ValidationError as error:
        raise ValueError(in_words(error)) from None
    for model in (view, how, settings):
        check_limits(INPUTS, model, list(changes))
    other = (settings.seed, view.flight) != (live.settings.seed, live.view.flight)
    pushes = read_pushes(changes["pushes"]) if "pushes" in changes else () if other else live.pushes
    if "playing" in changes and view.playing and over(live):
        live = live._replace(moment=0.0)
    return _settle(live, settings, view, pushes, other)


def _settle(
    live: LiveFlight, settings: QuadrotorSettings, view: FlightView, pushes: tuple[Push, ...], other: bool
) -> LiveFlight:
    """The state with these settings; `other`: another flight, which begins at its start."""
    world = _world(settings, view) != _world(live.settings, live.view)
    # who only looks from elsewhere does not hold up time
    same = view.playing and live.view.playing and (settings, pushes) == (live.settings, live.pushes)
    new = live._replace(settings=settings, view=view, pushes=pushes, drawn=live.drawn and same and not other)
    if other or world:
        new = new._replace(drones=(), wind=None)
    elif pushes != live.pushes:
        k = where_they_part(pushes, live.pushes)
        new = new._replace(drones=tuple(rewind(drone, k) for drone in live.drones), edition=live.edition + 1)
    new = new._replace(moment=0.0 if other else min(new.moment, length(new)))
    there = [(drone.name, drone.how) for drone in new.drones]
    return new if there == list(crew(settings, view).items()) else launch_missing(new)


def _world(settings: QuadrotorSettings, view: FlightView) -> tuple[Any, ...]:
    """What every drone depends on."""
    return settings.model_copy(update={"composition": CompositionSettings()}), view.experiment


def _act(live: LiveFlight, act: Mapping[str, Any]) -> LiveFlight:
    """Look at another moment, push all drones at it, or forget the pushes."""
    if unknown := set(act) - {"moment", "push", "forget"}:
        raise ValueError(f"act = {str(sorted(unknown))[:60]}: use moment, push or forget.")
    if "forget" in act:
        live = _settle(live, live.settings, live.view, (), False)
    if "moment" in act:
        moment = act["moment"]
        if isinstance(moment, bool) or not isinstance(moment, int | float) or not abs(moment) <= LARGEST:
            raise ValueError(f"moment = {str(moment)[:60]}: pass seconds from the start of the flight.")
        live = live._replace(moment=min(max(float(moment), 0.0), length(live)), drawn=False)
    if "push" not in act:
        return live
    towards, k = act["push"], math.ceil(live.moment / live.settings.dt - 1e-6)
    if not (isinstance(towards, list) and len(towards) == 2):
        raise ValueError(f"push = {str(towards)[:60]}: pass two velocities, to the right and upwards, in m/s.")
    if k >= live.settings.steps:
        raise ValueError("the flight is over: go back to an earlier moment to push, or fly another.")
    view = live.view.model_copy(update={"playing": True})
    return _settle(live, live.settings, view, order_pushes([*live.pushes, check_push(k, *towards)]), False)


def _describe(live: LiveFlight) -> dict[str, Any]:
    brought = {**QuadrotorSettings().model_dump(), **FlightView().model_dump(), **standard(live.view).model_dump()}
    brought["scenario"] = live.view.scenario  # chosen, not deviated from
    now = {**live.settings.model_dump(), **live.settings.composition.model_dump(), **live.view.model_dump()}
    return {
        "settings": {name: now[name] for name in NAMES} | {"pushes": write_pushes(live.pushes)},
        "defaults": {name: brought[name] for name in NAMES} | {"pushes": ""},
        "snippet": _snippet(live),
    }  # fmt: skip


def _snippet(live: LiveFlight) -> str:
    """The same flight in Python: the study's own functions, or the room's where a push came."""
    usual = QuadrotorSettings()
    changed = {n: v for n, v in live.settings.model_dump().items() if v != getattr(usual, n) and n in NAMES}
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    who = ",\n".join(f"    {name!r}: {_composition(how)}" for name, how in crew(live.settings, live.view).items())
    if live.pushes:
        room = "policychord.studio.rooms.flight"
        more = f"from {room}.flying import Push, fly_pushed\n"
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
settings = QuadrotorSettings({settings})
who = {{
{who},
}}
{pushes}costs = {{}}
for name, how in who.items():
{body}    print(f"{{name}}: {{costs[name]:.1f}}")
"""


def _composition(how: CompositionSettings | None) -> str:
    if how is None:
        return "None"
    usual = CompositionSettings()
    changed = {name: value for name, value in how.model_dump().items() if value != getattr(usual, name)}
    return f"CompositionSettings({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


FLIGHT = Room(
    name="flight",
    title="Flight",
    inputs=lambda: describe_inputs([FlightView, CompositionSettings, QuadrotorSettings], INPUTS),
    begin=_begin,
    change=_change,
    restart=lambda live: live._replace(moment=0.0, view=live.view.model_copy(update={"playing": True}), drawn=False),
    describe=_describe,
    frame=frame,
    settled=lambda live: live.drawn and (over(live) or not live.view.playing),
    act=_act,
)
