"""Speed of the flock: against the same simulation with SciPy's RK45 for every decision, and by the flock's size.

python -m benchmarks.flock --out build/bench-flock.json
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

from policychord import Problem
from policychord.studies.flock.parts import flock, world
from policychord.studies.flock.scenarios import scenario
from policychord.studies.flock.settings import FlockSettings
from policychord.studies.flock.simulate import simulate

from .timing import Record

ROUNDS = 5
SLICE = 4  # steps of the paper's flock that RK45 is timed on; a step costs it the same at any time
SIZES = {40: 100, 400: 40, 4000: 4, 10_000: 3}  # boids: steps
TARGET = 200.0


def by_rk45(problem: Problem, start: np.ndarray) -> np.ndarray:
    """The flow tau dw/dt = -w + S(w) to t = 10, as the released scripts integrate it."""
    pi, s, eps, log_prior = (np.asarray(field) for field in problem)

    def flow(_, w):
        y = log_prior - pi.T @ (np.log(pi @ w) + s) / eps
        response = np.exp(y - y.max())
        return response / response.sum() - w

    return solve_ivp(flow, (0.0, 10.0), start, method="RK45", rtol=1e-6, atol=1e-8).y[:, -1]


def reference_us(settings: FlockSettings) -> tuple[float, float]:
    """Microseconds for each boid and step, by RK45 from the previous weights, and how far its weights are from ours."""
    env = world(settings)
    boid = flock(settings, env).member(0)
    trace = simulate(settings.model_copy(update={"steps": SLICE + 1, "seeds": 1}))
    problems = jax.jit(jax.vmap(jax.vmap(lambda view: boid.problem(view))))
    views = jax.vmap(env.observe)(jax.tree.map(lambda a: a[0], trace.state))
    made = jax.tree.map(np.asarray, problems(views))
    far, spent = 0.0, 0.0
    for k in range(1, SLICE + 1):
        for i in range(settings.boids):
            one = Problem(*(field[k, i] for field in made))
            begun = time.process_time()
            found = by_rk45(one, trace.weights[0, k - 1, i])
            spent += time.process_time() - begun
            far = max(far, float(np.abs(found - trace.weights[0, k, i]).max()))
    return 1e6 * spent / (SLICE * settings.boids), far


def ours_us(settings: FlockSettings) -> float:
    """CPU microseconds for each boid and step of a whole simulation, building, solving, drawing and moving included."""
    spent = []
    simulate(settings)  # compiles
    for _ in range(ROUNDS):
        begun = time.process_time()
        simulate(settings)
        spent.append(time.process_time() - begun)
    return 1e6 * statistics.median(spent) / (settings.boids * settings.steps * settings.seeds)


def against_rk45() -> list[Record]:
    """40 boids, 440 steps: the reference on a slice, scaled; it is timed without building its problems."""
    lines = []
    theirs, far = reference_us(scenario("polarization", seeds=1))
    for seeds in (1, 8):
        ours = ours_us(scenario("polarization", seeds=seeds))
        note = f"weights within {far:.0e}; the whole run {ours * 40 * 440 * 1e-6:.2f} s against {theirs * 0.0176:.0f} s"
        lines.append(Record(f"40 boids, 440 steps, {seeds} seeds", ours, "RK45", theirs, theirs / ours, 1e-10, note))
    return lines


def by_size() -> list[Record]:
    """Cost for each boid and step, in a start square that grows with the flock, so that its density stays the same."""
    lines = []
    for boids, steps in SIZES.items():
        size = 2.5 * math.sqrt(boids / 40)
        settings = scenario("polarization", boids=boids, steps=steps, seeds=1, start_size=size)
        note = f"{world(settings).search}, start square of {2 * size:.0f} m"
        lines.append(Record(f"{boids} boids, {steps} steps", ours_us(settings), note=note))
    return lines


def main() -> None:
    """Read the command line, measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bench-flock.json"), help="where to write the records")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    console = Console(width=None if sys.stdout.isatty() else 140)
    lines = [*against_rk45(), *by_size()]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps([line._asdict() for line in lines], indent=2))
    table = Table(title="CPU microseconds for each boid and step")
    for name in ("measured", "ours", "RK45", "ratio", "note"):
        table.add_column(name)
    for line in lines:
        theirs, ratio = ("", "") if line.ratio is None else (f"{line.reference_us:,.0f}", f"{line.ratio:,.0f}")
        table.add_row(line.name, f"{line.ours_us:.1f}", theirs, ratio, line.note)
    console.print(table)
    best = max(line.ratio for line in lines if line.ratio)
    console.print(f"end to end {best:,.0f} times faster; target {TARGET:g}: {'met' if best >= TARGET else 'NOT met'}")


if __name__ == "__main__":
    main()
