"""The gate: three primitives over one axis of actions, a cost with a valley, and everything that follows from them."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..._types import Watch
from ...core.circuit import circuit
from ...core.equilibrium import solve
from ...core.flow import flow
from ...core.objective import AnyProblem, energy, problem
from ...core.regularisers import Tsallis
from ...core.stability import TimeScales, circuit_stability, time_scales
from ..inputs import Input, changed, check_names, describe_inputs, inputs_of, values_of
from ..jobs import Job, pursue
from ..wire import Frame
from .base import Page

REACH, POINTS = 3.0, 121
ACTIONS = np.linspace(-REACH, REACH, POINTS)
ROWS = 48  # of the grid on the simplex
HORIZON = 12.0  # of paths, in units of tau
SAVED = 121  # moments of a path


class GatingSettings(BaseModel):
    """What every gate has; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    eps: float = Field(default=0.5, gt=0, description="Temperature: low follows the cost, high the prior.")
    regulariser: Literal["entropy", "Tsallis"] = Field(
        default="entropy",
        description="What keeps weights near the prior: with the entropy all have some, with Tsallis some have none.",
    )
    alpha: float = Field(
        default=1.5, ge=1, le=2, description="Order of the Tsallis regulariser: 1 is the entropy, 2 is sparsemax."
    )


ORDERLESS = {"alpha": "The entropy has no order: choose Tsallis first."}


def regulariser_of(settings: GatingSettings) -> Tsallis | None:
    """What keeps weights near the prior; None is the entropy."""
    return Tsallis(settings.alpha) if settings.regulariser == "Tsallis" else None


class _GateSettings(GatingSettings):
    """One gating problem with three primitives."""

    prior_1: float = Field(default=1.0, gt=0, description="Habit of the first primitive, against the others'.")
    prior_2: float = Field(default=1.0, gt=0, description="Habit of the second primitive, against the others'.")
    prior_3: float = Field(default=1.0, gt=0, description="Habit of the third primitive, against the others'.")
    position_1: float = Field(default=-1.6, description="The action that the first primitive favours.")
    position_2: float = Field(default=0.2, description="The action that the second primitive favours.")
    position_3: float = Field(default=1.7, description="The action that the third primitive favours.")
    spread_1: float = Field(default=0.5, gt=0, description="Standard deviation of the first primitive.")
    spread_2: float = Field(default=0.5, gt=0, description="Standard deviation of the second primitive.")
    spread_3: float = Field(default=0.5, gt=0, description="Standard deviation of the third primitive.")
    valley: float = Field(default=0.9, description="The action that costs least.")
    depth: float = Field(default=3.0, ge=0, description="How much less it costs than actions far away.")
    width: float = Field(default=1.0, gt=0, description="Standard deviation of the valley.")
    start_1: float = Field(default=0.8, ge=0, le=1, description="Where the flow starts: weight of the first primitive.")
    start_2: float = Field(default=0.1, ge=0, le=1, description="Where the flow starts: weight of the second.")
    tau: float = Field(default=1.0, gt=0, description="Time constant of the weights, in the flow and in the circuit.")
    ladder: Literal["stable", "plain"] = Field(
        default="stable",
        description="The circuit's faster layers: plain divides tau by 10, 100, 1000; stable shortens them with eps.",
    )

    @model_validator(mode="after")
    def _fits(self):
        if self.start_1 + self.start_2 > 1 + 1e-9:
            raise ValueError(
                f"start_1 + start_2 = {self.start_1 + self.start_2:g}: weights sum to 1, so lower one of them."
            )
        return self


PRIMITIVES, COST, GATING, PATHS = "Primitives", "Cost", "Gate", "Flow and circuit"
INPUTS = (
    Input("eps", "Temperature", GATING, 0.02, 10.0, 0.01, "nats", "log"),
    Input("regulariser", "Regulariser", GATING),
    Input("alpha", "Order (Tsallis)", GATING, 1.0, 2.0, 0.05),
    *(Input(f"prior_{i}", f"Prior {i}", GATING, 0.05, 10.0, 0.01, "", "log") for i in (1, 2, 3)),
    *(Input(f"position_{i}", f"Position {i}", PRIMITIVES, -REACH, REACH, 0.01) for i in (1, 2, 3)),
    *(Input(f"spread_{i}", f"Spread {i}", PRIMITIVES, 0.1, 2.0, 0.01) for i in (1, 2, 3)),
    Input("valley", "Valley", COST, -REACH, REACH, 0.01),
    Input("depth", "Depth", COST, 0.0, 12.0, 0.05, "nats"),
    Input("width", "Width", COST, 0.2, 3.0, 0.01),
    Input("start_1", "Start, weight 1", PATHS, 0.0, 1.0, 0.01),
    Input("start_2", "Start, weight 2", PATHS, 0.0, 1.0, 0.01),
    Input("tau", "Time constant", PATHS, 0.1, 5.0, 0.05, "s"),
    Input("ladder", "Time scales", PATHS),
)


class _Gate(NamedTuple):
    """Settings, and the parts that are still to be drawn."""

    settings: _GateSettings
    left: tuple[str, ...]
    job: Job | None = None  # flow and circuit, whose first programs take seconds to compile


# What is seen first comes first, and what each part does not depend on.
PARTS = {"gate": ("start_1", "start_2", "tau", "ladder"), "flow": ("ladder",), "circuit": ()}


def _gate_problem(settings: _GateSettings) -> AnyProblem:
    """The gating problem that the settings describe."""
    u = ACTIONS[:, None]
    position, spread, prior = (_three(settings, name) for name in ("position", "spread", "prior"))
    pi = np.exp(-0.5 * ((u - position) / spread) ** 2)
    cost = settings.depth * (1 - np.exp(-0.5 * ((u[:, 0] - settings.valley) / settings.width) ** 2))
    return problem(
        pi=pi / pi.sum(axis=0), action_cost=cost, eps=settings.eps, prior=prior / prior.sum(),
        regulariser=regulariser_of(settings),
    )  # fmt: skip


def _three(settings: _GateSettings, name: str) -> np.ndarray:
    return np.array([getattr(settings, f"{name}_{i}") for i in (1, 2, 3)])


def _simplex_grid(rows: int = ROWS) -> np.ndarray:
    """Weights on a triangular grid, row by row: row i has i + 1 points."""
    return np.array([[rows - i, i - j, j] for i in range(rows + 1) for j in range(i + 1)]) / rows


def _start(settings: _GateSettings) -> np.ndarray:
    """Where the flow starts: slightly inside, since a primitive without weight never gets any back in the circuit."""
    inside = np.maximum([settings.start_1, settings.start_2, 1 - settings.start_1 - settings.start_2], 1e-3)
    return inside / inside.sum()


def _scales(settings: _GateSettings) -> TimeScales:
    """The circuit's time constants: the library's stable ladder, or the same ratios whatever the temperature."""
    return time_scales(settings.eps if settings.ladder == "stable" else 1.0, settings.tau)


def _equilibrium_frame(settings: _GateSettings) -> Frame:
    """Primitives, cost, the optimal mixture with its certificate, and the energy of every mixture."""
    posed = _gate_problem(settings)
    best = solve(posed)
    grid = _simplex_grid()
    header: dict[str, Any] = {
        "gap": float(best.certificate.gap), "distance": float(best.certificate.distance), "passes": int(best.passes),
        "energy": float(energy(posed, best.weights)), "eps": settings.eps, "rows": ROWS,
        "zeros": [bool(zero) for zero in best.weights == 0.0],  # exact ones: the arrays below are rounded to float32
    }  # fmt: skip
    arrays = {
        "actions": ACTIONS, "pi": posed.pi.T, "cost": posed.action_cost, "mixture": posed.pi @ best.weights,
        "weights": best.weights, "prior": np.exp(posed.log_prior), "grid": grid,
        "landscape": energy(posed, grid) - header["energy"],
    }  # fmt: skip
    return Frame("gate", header, arrays)


def _flow_frame(watch: Watch, settings: _GateSettings) -> Frame:
    """The flow from where it was clicked: it only loses energy."""
    posed = _gate_problem(settings)
    path = flow(posed, HORIZON * settings.tau, _start(settings), settings.tau, SAVED)
    lowest = energy(posed, solve(posed).weights)
    return Frame("flow", {"tau": settings.tau}, {
        "times": path.times, "weights": path.weights, "energy": path.energy - lowest,
    })  # fmt: skip


def _circuit_frame(watch: Watch, settings: _GateSettings) -> Frame:
    """The circuit's layers in time from the same start, and whether it settles at all."""
    posed, ladder = _gate_problem(settings), _scales(settings)
    verdict = circuit_stability(posed, ladder)
    path = circuit(posed, HORIZON * settings.tau, ladder, start=_start(settings), save=4 * SAVED)
    layers = path.layers
    header = {
        "stable": bool(verdict.stable), "growth": float(verdict.growth), "ladder": settings.ladder,
        **{f"tau_{name}": float(value) for name, value in zip(TimeScales._fields, ladder, strict=True)},
    }  # fmt: skip
    arrays = {
        "times": path.times, "b": layers.b, "y": layers.y, "log_m": layers.log_m, "r": layers.r, "w": layers.w,
        "weights": path.weights,
    }  # fmt: skip
    return Frame("circuit", header, arrays)


def _snippet(settings: _GateSettings) -> str:
    """The same in Python."""
    lists = {name: _three(settings, name).tolist() for name in ("position", "spread", "prior")}
    ladder = "posed.eps" if settings.ladder == "stable" else "1.0"
    names = (
        "Tsallis, " if settings.regulariser == "Tsallis" else ""
    ) + "circuit, circuit_stability, flow, problem, solve, time_scales"
    regulariser = f", regulariser=Tsallis({settings.alpha})" if settings.regulariser == "Tsallis" else ""
    return f"""\
import numpy as np
from policychord import {names}

u = np.linspace({-REACH}, {REACH}, {POINTS})
position, spread = np.array({lists["position"]}), np.array({lists["spread"]})
prior = np.array({lists["prior"]})
pi = np.exp(-0.5 * ((u[:, None] - position) / spread) ** 2)
cost = {settings.depth} * (1 - np.exp(-0.5 * ((u - {settings.valley}) / {settings.width}) ** 2))
posed = problem(pi=pi / pi.sum(axis=0), action_cost=cost, eps={settings.eps}, prior=prior / prior.sum(){regulariser})

best = solve(posed)
print("weights", best.weights.round(4), "proved within", best.certificate.gap)

start = np.array({_start(settings).tolist()})
path = flow(posed, t1={HORIZON * settings.tau}, start=start, tau={settings.tau})
print("the flow ends at", path.weights[-1].round(4))

scales = time_scales({ladder}, tau={settings.tau})
print("the circuit settles:", bool(circuit_stability(posed, scales).stable))
layers = circuit(posed, t1={HORIZON * settings.tau}, time_scales=scales, start=start).layers
"""  # fmt: skip


# ------------------------------------------------------------------ as a page


def _change(state: _Gate, changes: Mapping[str, Any]) -> _Gate:
    check_names(INPUTS, changes)
    settings = changed(state.settings, changes, INPUTS)
    return state if settings == state.settings else state._replace(settings=settings, left=tuple(PARTS))


def _frame(state: _Gate) -> tuple[_Gate, Frame | None]:
    part, *left = state.left
    if part == "gate":
        frame = _equilibrium_frame(state.settings)
    else:
        job, ended = pursue(state.job, _flow_frame if part == "flow" else _circuit_frame, state.settings)
        if not ended:
            return state._replace(job=job), None
        try:
            frame = job.result()
        except ValueError as error:  # what cannot be integrated is named where it would be drawn
            frame = Frame(part, {"fault": str(error)}, {})
    header = {**frame.header, **inputs_of(values_of(INPUTS, state.settings), PARTS[part])}
    return state._replace(left=tuple(left), job=None), frame._replace(header=header)


def _describe(state: _Gate) -> dict[str, Any]:
    now, default = (values_of(INPUTS, settings) for settings in (state.settings, _GateSettings()))
    idle = {} if state.settings.regulariser == "Tsallis" else ORDERLESS
    return {"settings": now, "defaults": default, "snippet": _snippet(state.settings), "idle": idle}


GATE = Page(
    name="gate",
    title="Gate",
    inputs=lambda: describe_inputs([_GateSettings], INPUTS),
    begin=lambda: _Gate(_GateSettings(), tuple(PARTS)),
    change=_change,
    restart=lambda state: state._replace(settings=_GateSettings(), left=tuple(PARTS)),
    describe=_describe,
    frame=_frame,
    settled=lambda state: not state.left,
)
