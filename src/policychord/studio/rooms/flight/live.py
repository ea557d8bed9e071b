"""A flight that is watched: who flies, and what they have flown."""

from typing import NamedTuple

import numpy as np

from ....studies.quadrotor.controllers import DT
from ....studies.quadrotor.parts import FIXED
from ....studies.quadrotor.settings import Composition, QuadrotorSettings
from ....studies.quadrotor.simulate import roster
from .flying import Drone, launched
from .pushes import Push
from .view import FlightView


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
