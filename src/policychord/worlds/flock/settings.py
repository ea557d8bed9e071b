"""Settings of a flock (the defaults are the paper's Table S1), its scenarios by name, and the sizes of the study."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from ..._names import DURATION, EPS, SEED, SEEDS, check_used

Scenario = Literal["polarization", "milling", "leaders", "temperature", "couzin", "cucker-smale", "vicsek"]
Ablation = Literal["fixed-weights", "no-collision-term"]
Update = Literal["synchronous", "sequential"]
Followers = Literal["composed", "couzin", "cucker-smale", "vicsek"]
Form = Literal["released", "original"]


class FlockSettings(BaseModel):
    """One experiment with a flock; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # Table S1
    dt: float = Field(default=0.05, gt=0, description="time step dt (s)")
    boids: int = Field(default=40, ge=1, description="number of boids, N")
    grid: int = Field(default=30, ge=3, le=300, description="points along each axis of the action grid; d_u = 30^2")
    max_speed: float = Field(default=1.0, gt=0, description="largest speed v_max (m/s)")
    max_acceleration: float = Field(default=3.0, gt=0, description="largest acceleration u_max (m/s^2)")
    vision_angle: float = Field(default=320.0, gt=0, le=360, description="vision angle alpha (degrees)")
    separation_radius: float = Field(default=1.0, gt=0, description="nearer than this, boids keep apart: r_sep (m)")
    alignment_radius: float = Field(default=3.0, gt=0, description="from there to this, they align: r_ali (m)")
    cohesion_radius: float = Field(default=12.0, gt=0, description="from there to this, they stay together: r_coh (m)")
    separation_variance: float = Field(
        default=0.1, gt=0, description="of the separation primitive, Sigma_sep ((m/s^2)^2)"
    )
    alignment_variance: float = Field(
        default=0.1, gt=0, description="of the alignment primitive, Sigma_ali ((m/s^2)^2)"
    )
    cohesion_variance: float = Field(default=0.1, gt=0, description="of the cohesion primitive, Sigma_coh ((m/s^2)^2)")
    predicted_variance: float = Field(
        default=0.01, gt=0, description="of the predicted next state, Sigma_p; moves no weight (m^2, m^2/s^2)"
    )
    desired_variance: float = Field(default=0.01, gt=0, description="of the desired next state, Sigma_q (m^2, m^2/s^2)")
    eps: float = Field(default=0.5, ge=1e-9, le=1e9, description=EPS)
    prior: tuple[PositiveFloat, PositiveFloat, PositiveFloat] = Field(
        default=(1.0, 1.0, 1.0),
        description="shares of separation, alignment and cohesion where the cost does not decide (bias)",
    )
    cells: Literal["disc", "square"] = Field(
        default="disc", description="action grid: its points on the disc of u_max (648 of 900), or all of them"
    )

    # what the table leaves open
    steps: int = Field(default=440, ge=1, description="time steps")
    seeds: int = Field(default=8, ge=1, description=SEEDS)
    seed: int = Field(default=0, ge=0, description=SEED)
    update: Update = Field(
        default="synchronous", description="synchronous: all boids move at once; sequential: one after another"
    )
    start: Literal["square", "ring"] = Field(default="square", description="where boids begin")
    start_size: float = Field(
        default=2.5, gt=0, description="half width of the square, or radius of the ring, in which boids start (m)"
    )
    start_pace: float = Field(default=1.0, gt=0, le=1, description="factor on the speeds of a start in the square")
    leaders: int = Field(default=0, ge=0, description="how many of the boids know the goal")
    goal: tuple[float, float] = Field(default=(-15.0, -15.0), description="where leaders want to go: p_g (m)")
    collision_term: bool = Field(default=False, description="whether the model punishes accelerating into neighbours")
    collision_strength: float = Field(default=2.0, ge=0, description="of that term")
    collision_floor: float = Field(default=1e-10, gt=0, lt=1, description="least probability in that term")
    gate: Literal["equilibrium", "flow", "circuit", "cheapest"] = Field(
        default="equilibrium",
        description="where weights come from: the optimum, the flow or the circuit that goes on from the last "
        "decision, or the cheapest force alone",
    )
    duration: float = Field(
        default=DURATION, gt=0, description="how long flow or circuit run at each decision, in the unit of tau"
    )
    tau: float = Field(default=1.0, gt=0, description="time constant of the weights in flow and circuit")
    fixed_weights: bool = Field(default=False, description="keep the weights at the prior, 1/3, a control")
    followers: Followers = Field(default="composed", description="what boids without a goal do")
    form: Form = Field(
        default="released",
        description="followers of the last three scenarios: released (as in the paper's scripts) or original (as "
        "in their own articles)",
    )
    selection: Literal["sample", "mean", "mode"] = Field(default="sample", description="how actions are chosen")
    tol: float = Field(default=1e-10, gt=0, description="bound on the certified gap of every decision")
    search: Literal["auto", "pairs", "cells"] = Field(default="auto", description="how neighbours are found")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.separation_radius < self.alignment_radius < self.cohesion_radius:
            raise ValueError("the radii must grow: separation_radius < alignment_radius < cohesion_radius.")
        if self.leaders > self.boids:
            raise ValueError(f"leaders = {self.leaders} of boids = {self.boids}: a flock cannot have that many.")
        if self.followers == "composed" and self.form != "released":
            raise ValueError(f"form = {self.form!r} belongs to followers of the literature: set followers as well.")
        if self.fixed_weights and self.collision_term:
            raise ValueError("with fixed_weights no model is consulted, so collision_term would be ignored.")
        if self.fixed_weights and self.gate != "equilibrium":
            raise ValueError(f"with fixed_weights no gate is asked, so gate = {self.gate!r} would be ignored.")
        check_used(self.gate, self.duration, self.tau, self.prior)
        if self.search == "cells" and (self.followers != "composed" or self.update == "sequential"):
            raise ValueError("search = 'cells' serves composed boids that are updated synchronously.")
        return self


# What each scenario changes of Table S1. Step counts are those of the paper's figures.
SCENARIOS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "polarization": {"steps": 440},
        "milling": {"boids": 60, "steps": 440, "start": "ring", "start_size": 5.0, "collision_term": True},
        "leaders": {"leaders": 4, "steps": 1220},
        "temperature": {"leaders": 4, "steps": 1500},
        "couzin": {"followers": "couzin", "leaders": 6, "steps": 800, "update": "sequential"},
        "cucker-smale": {
            "followers": "cucker-smale", "leaders": 6, "steps": 1560, "start_pace": 0.5, "update": "sequential",
        },
        "vicsek": {
            "followers": "vicsek", "leaders": 6, "steps": 1000, "start_size": 1.5, "update": "sequential",
        },
    }
)  # fmt: skip
ABLATIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"fixed-weights": {"fixed_weights": True}, "no-collision-term": {"collision_term": False}}
)


def scenario(name: str, ablation: str | None = None, **changes: Any) -> FlockSettings:
    """The settings of a scenario, with changes; a misspelt name or setting is an error."""
    if name not in SCENARIOS:
        raise ValueError(f"scenario = {name!r}: use one of {', '.join(SCENARIOS)}.")
    if ablation is not None and ablation not in ABLATIONS:
        raise ValueError(f"ablation = {ablation!r}: use one of {', '.join(ABLATIONS)}.")
    removed = {} if ablation is None else ABLATIONS[ablation]
    if ablation == "no-collision-term" and not SCENARIOS[name].get("collision_term"):
        raise ValueError(f"ablation = {ablation!r}: {name} has no collision term to remove; milling has.")
    return FlockSettings(**{**SCENARIOS[name], **removed, **changes})
