"""What the quadrotor study may be told: Tables S3 and S4 of the paper, and what its scripts add to them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from ...agent import Gate, Selection
from ...envs.paths import PathName
from ...envs.quadrotor import Disturbance

Experiment = Literal["pd", "lqr"]
Horizon = Literal["one-step", "cost-to-go"]
Six = tuple[float, float, float, float, float, float]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Gains(_Frozen):
    """A cascade: (proportional, integral, derivative) of x and z, (proportional, derivative) of the pitch."""

    x: tuple[float, float, float]
    z: tuple[float, float, float]
    pitch: tuple[float, float]


class CostWeights(_Frozen):
    """Diagonals of Q (x, vx, z, vz, pitch, pitch rate) and of R."""

    state: Six
    thrust: PositiveFloat


class Composition(_Frozen):
    """How primitives are composed. `margin` extends the grid past the thrusts' limits, in newtons."""

    gate: Gate = "equilibrium"
    selection: Selection = "sample"
    horizon: Horizon = "one-step"
    eps: PositiveFloat = 0.05  # Tables S3, S4
    spread: PositiveFloat = 0.01  # root of Sigma_u, Tables S3, S4: the primitives' standard deviation, in newtons
    points: int = Field(default=30, ge=2, description="grid points for each thrust (Tables S3, S4: 30^2)")
    margin: float = Field(default=0.0, ge=0, description="how far the grid reaches past the limits, in newtons")


class QuadrotorSettings(_Frozen):
    """The paper's values as defaults; a misspelt setting is an error."""

    seed: int = Field(default=0, ge=0)
    seeds: int = Field(default=1000, ge=2, description="episodes for each controller (Fig. 5c: 1000)")
    control_seeds: int = Field(default=200, ge=2, description="episodes at most, wherever something is only a control")
    steps: int = Field(default=300, ge=1, description="decisions in an episode (T, Table S3)")
    path: PathName = "lemniscate"
    scale: PositiveFloat = 0.75  # m, the released scripts
    period: PositiveFloat = 6.0  # s
    start: Six = (0.0, 0.0, 1.2, 0.0, 0.0, 0.0)  # x_0, Table S3
    disturbance: Disturbance = "stale-point"  # as in the simulator that the paper used
    force_sd: float = Field(default=0.03, ge=0)  # sigma_d, Table S3; newtons
    thrust_sd: float = Field(default=0.01, ge=0)  # of the actuators, newtons: Sigma_u of Table S3 again
    impulse: float = 1.0  # m_i, Table S4; newtons, in the LQR experiment
    drag: float = Field(default=0.0, ge=0)
    cost: CostWeights = CostWeights(state=(1.0, 0.1, 1.0, 0.1, 0.1, 0.1), thrust=0.1)  # Q, R
    composition: Composition = Composition()
    warm_eps: PositiveFloat = 0.5  # a second temperature for the cost-to-go
    wide_margin: float = Field(default=0.04, ge=0, description="margin of a grid that does not cut primitives short")
    temperatures: tuple[PositiveFloat, ...] = (0.005, 0.05, 0.5, 5.0)  # for the figure of cost against temperature
    recovered: PositiveFloat = Field(default=0.25, description="distance from the path that counts as back, in metres")
    resamples: int = Field(default=2000, ge=100, description="bootstrap resamples for the interval of Cliff's delta")

    # Table S3; the baseline's gains are those of the simulator's own PID
    pid_baseline: Gains = Gains(x=(0.4, 0.05, 0.2), z=(1.25, 0.05, 0.5), pitch=(70000.0, 20000.0))
    pd_stabilise: Gains = Gains(x=(0.0, 0.0, 0.05), z=(0.0, 0.0, 0.1), pitch=(70000.0, 20000.0))
    pd_track: Gains = Gains(x=(0.45, 0.0, 0.2), z=(1.0, 0.0, 0.35), pitch=(14000.0, 10000.0))
    # Table S4
    lqr_baseline: CostWeights = CostWeights(state=(1.0, 0.1, 1.0, 0.1, 0.1, 0.1), thrust=0.1)  # Q_b, R_b
    lqr_stabilise: CostWeights = CostWeights(state=(1e-6, 0.1, 1e-6, 1e-5, 0.5, 0.1), thrust=0.01)  # Q_s, R_s
    lqr_track: CostWeights = CostWeights(state=(5.0, 0.1, 5.0, 0.1, 0.1, 0.1), thrust=0.1)  # Q_t, R_t
