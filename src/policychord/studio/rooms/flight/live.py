"""A flight that is watched: what can be set, who flies, and what they have flown."""

from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ....worlds.quadrotor.agents import Composed
from ....worlds.quadrotor.settings import Experiment, QuadrotorSettings
from ...inputs import Input
from .flying import FASTEST, LONGEST, Drone, Push

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
