"""Flights: any of the study's controllers side by side under the same forces, pushed at will, and looked at again."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ....worlds.quadrotor.agents import FIXED, Roster, roster
from ....worlds.quadrotor.settings import CompositionSettings, QuadrotorSettings
from ...inputs import changed, check_names, describe_inputs, differences, values_of
from ...wire import LARGEST
from ..base import Room
from .flying import FASTEST, Push, launch, rewind
from .live import INPUTS, FlightView, LiveFlight, frame, length, over

MOST = 40  # pushes in one flight
_NUMBER = r"-?\d{1,3}(?:\.\d{1,4})?"
_WRITTEN = re.compile(rf"(\d{{1,5}})\*({_NUMBER})\*({_NUMBER})")


def _begin() -> LiveFlight:
    view = FlightView()
    settings = QuadrotorSettings(composition=_standard(view))
    return _launch_missing(LiveFlight(settings, view, (), 0.0, (), frozenset(), None, 0, (-1, -1), 0, False))


def _standard(view: FlightView) -> CompositionSettings:
    """The composition that a scenario brings."""
    how = roster(QuadrotorSettings())[view.scenario]
    assert how is not None
    return how


def _crew(settings: QuadrotorSettings, view: FlightView) -> Roster:
    """Who flies, by the study's names."""
    chosen: Roster = {"composed": settings.composition} if view.composed else {}
    if view.rival != "none":
        chosen[view.rival] = roster(QuadrotorSettings())[view.rival]
    alone = {FIXED: view.mixture, "baseline": view.baseline, "stabilise": view.stabilise, "track": view.track}
    return chosen | {name: None for name, flies in alone.items() if flies}


def _launch_missing(live: LiveFlight) -> LiveFlight:
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


def _change(live: LiveFlight, changes: Mapping[str, Any]) -> LiveFlight:
    """Whatever is changed, the flight is simulated again with it up to the moment that is shown."""
    check_names(INPUTS, {name: value for name, value in changes.items() if name != "pushes"})
    view = changed(live.view, changes, INPUTS)
    how = changed(_standard(view) if "scenario" in changes else live.settings.composition, changes, INPUTS)
    settings = changed(live.settings.model_copy(update={"composition": how}), changes, INPUTS)
    other = (settings.seed, view.flight) != (live.settings.seed, live.view.flight)
    pushes = _read_pushes(changes["pushes"]) if "pushes" in changes else () if other else live.pushes
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
        k = _where_they_part(pushes, live.pushes)
        new = new._replace(drones=tuple(rewind(drone, k) for drone in live.drones), edition=live.edition + 1)
    new = new._replace(moment=0.0 if other else min(new.moment, length(new)))
    there = [(drone.name, drone.how) for drone in new.drones]
    return new if there == list(_crew(settings, view).items()) else _launch_missing(new)


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
    return _settle(live, live.settings, view, _order_pushes([*live.pushes, _check_push(k, *towards)]), False)


def _describe(live: LiveFlight) -> dict[str, Any]:
    # a scenario is chosen, not deviated from
    standard = QuadrotorSettings(), FlightView(scenario=live.view.scenario), _standard(live.view)
    return {
        "settings": values_of(INPUTS, live.settings, live.settings.composition, live.view)
        | {"pushes": _write_pushes(live.pushes)},
        "defaults": values_of(INPUTS, *standard) | {"pushes": ""},
        "snippet": _snippet(live),
    }


def _snippet(live: LiveFlight) -> str:
    """The same flight in Python: the study's own functions, or the room's where a push came."""
    shown = {control.name for control in INPUTS}
    other = {n: v for n, v in differences(live.settings, QuadrotorSettings()).items() if n in shown}
    who = ",\n".join(f"    {name!r}: {_composition(how)}" for name, how in _crew(live.settings, live.view).items())
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
