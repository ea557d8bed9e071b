"""Settings of the quadrotor study: Tables S3 and S4 of the paper, and what its scripts add to them."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from ..._names import DURATION, EPS, SEED, SEEDS, Gate, Selection, check_used

Experiment = Literal["pd", "lqr"]  # which pair of controllers is composed
Horizon = Literal["one-step", "cost-to-go"]
PathName = Literal["lemniscate", "circle", "square", "hover"]
Disturbance = Literal["centre", "stale-point"]
DT = 0.02  # s, how long a decision holds
Six = tuple[float, float, float, float, float, float]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Gains(_Frozen):
    """Gains of a cascade."""

    x: tuple[float, float, float] = Field(description="proportional, integral, derivative, along x")
    z: tuple[float, float, float] = Field(description="proportional, integral, derivative, along z")
    pitch: tuple[float, float] = Field(description="proportional and derivative, of the pitch")


class CostWeights(_Frozen):
    """Diagonals of Q and of R."""

    state: Six = Field(description="of x, vx, z, vz, pitch and pitch rate")
    thrust: PositiveFloat = Field(description="of each thrust")


class CompositionSettings(_Frozen):
    """How primitives are composed. `margin` extends the grid past the thrusts' limits, in newtons."""

    gate: Gate = Field(
        default="equilibrium",
        description="where weights come from: equilibrium (the optimal ones), flow or circuit (the paper's dynamics, "
        "from the last decision on), one-step (as its scripts compute them), prior (always 50/50), cheapest (the "
        "primitive with the lowest expected cost) or posterior",
    )
    duration: PositiveFloat = Field(
        default=DURATION, description="how long flow or circuit run at each decision, in the unit of tau"
    )
    tau: PositiveFloat = Field(
        default=1.0, description="time constant of the weights in flow and circuit (Tables S3, S4)"
    )
    selection: Selection = Field(
        default="sample",
        description="the action taken: mean of the mixture, mode (the most probable), sample (drawn, as in "
        "the paper), dither (one controller at a time, in turns that match the weights), or of the posterior",
    )
    horizon: Horizon = Field(
        default="one-step",
        description="what an action is judged by: one-step (the cost of the next state, as in the paper) "
        "or cost-to-go (of all that follow)",
    )
    eps: float = Field(default=0.05, ge=1e-9, le=1e9, description=f"{EPS}; Tables S3, S4")
    prior: tuple[PositiveFloat, PositiveFloat] = Field(
        default=(1.0, 1.0), description="shares of the stabilising and the tracking controller by habit (bias)"
    )
    spread: PositiveFloat = Field(
        default=0.01, description="standard deviation of the primitives, root of Sigma_u in Tables S3, S4 (N)"
    )
    points: int = Field(default=30, ge=2, le=300, description="grid points for each thrust; 30^2 in Tables S3, S4")
    margin: float = Field(
        default=0.0,
        ge=0,
        description="how far the grid of thrusts reaches past what the "
        "motors can do, so that it cuts no controller short (N)",
    )

    @model_validator(mode="after")
    def _used(self) -> Self:
        check_used(self.gate, self.duration, self.tau, self.prior)
        return self


class QuadrotorSettings(_Frozen):
    """The paper's values as defaults; a misspelt setting is an error."""

    seed: int = Field(default=0, ge=0, description=SEED)
    seeds: int = Field(default=1000, ge=2, description=f"{SEEDS}; 1000 in Fig. 5c")
    control_seeds: int = Field(default=200, ge=2, description="episodes at most, wherever something is only a control")
    dt: PositiveFloat = Field(
        default=DT,
        description="sampling time dt, Tables S3, S4: how long a decision holds, a whole number of milliseconds (s)",
    )
    steps: int = Field(default=300, ge=1, description="decisions in an episode (T, Table S3)")
    path: PathName = Field(default="lemniscate", description="the path to follow; lemniscate is a figure of eight")
    scale: PositiveFloat = Field(default=0.75, description="half width of the path, as in the released scripts (m)")
    period: PositiveFloat = Field(default=6.0, description="time for one round (s)")
    start: Six = Field(
        default=(0.0, 0.0, 1.2, 0.0, 0.0, 0.0),
        description="x, vx, z, vz, pitch and pitch rate at the start; x_0, Table S3 (m, m/s, rad, rad/s)",
    )
    disturbance: Disturbance = Field(
        default="stale-point",
        description="where random forces act: centre (of mass), or stale-point (where the drone was when the step "
        "began, as in the paper's simulator; this also turns the drone)",
    )
    force_sd: float = Field(default=0.03, ge=0, description="standard deviation of those forces, sigma_d, Table S3 (N)")
    thrust_sd: float = Field(
        default=0.01, ge=0, description="standard deviation of the actuators' noise, Sigma_u of Table S3 again (N)"
    )
    impulse: float = Field(
        default=1.0, description="force of the push of the LQR pair, for one decision; m_i, Table S4 (N)"
    )
    drag: float = Field(default=0.0, ge=0, description="air drag d in a = -d (1 + |v|) v")
    cost: CostWeights = Field(
        default=CostWeights(state=(1.0, 0.1, 1.0, 0.1, 0.1, 0.1), thrust=0.1), description="what flights cost: Q, R"
    )
    composition: CompositionSettings = Field(default=CompositionSettings(), description="how primitives are composed")
    warm_eps: PositiveFloat = Field(default=0.5, description="a second temperature for the cost-to-go")
    wide_margin: float = Field(
        default=0.04, ge=0, description="margin of a grid that does not cut primitives short (N)"
    )
    temperatures: tuple[PositiveFloat, ...] = Field(
        default=(0.005, 0.05, 0.5, 5.0), min_length=1, description="for the plot of cost against temperature"
    )
    recovered: PositiveFloat = Field(default=0.25, description="distance from the path that counts as back (m)")
    resamples: int = Field(default=2000, ge=100, description="bootstrap resamples for the interval of Cliff's delta")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        from .physics import substeps  # heavy, and only this needs it

        substeps(self.dt)
        return self

    # the baseline's gains are those of the simulator's own PID
    pid_baseline: Gains = Field(
        default=Gains(x=(0.4, 0.05, 0.2), z=(1.25, 0.05, 0.5), pitch=(70000.0, 20000.0)),
        description="gains of the baseline of the PD pair",
    )
    pd_stabilise: Gains = Field(
        default=Gains(x=(0.0, 0.0, 0.05), z=(0.0, 0.0, 0.1), pitch=(70000.0, 20000.0)),
        description="gains of the stabilising PD controller (Table S3)",
    )
    pd_track: Gains = Field(
        default=Gains(x=(0.45, 0.0, 0.2), z=(1.0, 0.0, 0.35), pitch=(14000.0, 10000.0)),
        description="gains of the tracking PD controller (Table S3)",
    )
    lqr_baseline: CostWeights = Field(
        default=CostWeights(state=(1.0, 0.1, 1.0, 0.1, 0.1, 0.1), thrust=0.1),
        description="weights of the baseline of the LQR pair: Q_b, R_b (Table S4)",
    )
    lqr_stabilise: CostWeights = Field(
        default=CostWeights(state=(1e-6, 0.1, 1e-6, 1e-5, 0.5, 0.1), thrust=0.01),
        description="weights of the stabilising LQR: Q_s, R_s (Table S4)",
    )
    lqr_track: CostWeights = Field(
        default=CostWeights(state=(5.0, 0.1, 5.0, 0.1, 0.1, 0.1), thrust=0.1),
        description="weights of the tracking LQR: Q_t, R_t (Table S4)",
    )


# Where an experiment of one's own begins: forces that push and do not turn, and a thrust without the noise of drawing
# it. The paper's choices, which its claims are judged with, are the defaults above.
OWN: Mapping[str, Any] = {"disturbance": "centre"}
OWN_COMPOSITION: Mapping[str, Any] = {"selection": "mean"}


def own_settings(composition: Any = None, **named: Any) -> QuadrotorSettings:
    """Settings for flights that replicate nothing, by name; the command and sweeps begin with these."""
    changes = {} if composition is None else composition
    # anything else than names with values is refused by the model's own check
    composed = {**OWN_COMPOSITION, **changes} if isinstance(changes, Mapping) else changes
    return QuadrotorSettings(**{**OWN, **named, "composition": composed})
