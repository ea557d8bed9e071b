"""Speed of the flock: against the same simulation with SciPy's RK45 for every decision, and by the flock's size.

python -m benchmarks.flock --out build/bench-flock.json
"""

import argparse
import json
import math
import sys
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

from policychord.worlds.flock.agents import flock_world
from policychord.worlds.flock.flights import simulate_flock
from policychord.worlds.flock.settings import scenario

from .timing import Contender, Record, take_turns

ROUNDS = 9
SIZES = {40: 440, 400: 40, 4000: 4, 10_000: 3, 100_000: 1}  # boids: steps
TARGET = 200.0

axis = np.linspace(-3.0, 3.0, 30)
GRID = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
GRID = GRID[np.linalg.norm(GRID, axis=1) <= 3.0]


def by_rk45(position, velocity, weights, rng) -> np.ndarray:
    """One step of the leaderless flock as one writes it in NumPy, with SciPy's RK45 to t = 10 for every boid."""
    found = np.empty_like(weights)
    for i in range(len(position)):
        offset = np.delete(position - position[i], i, axis=0)
        moving = np.delete(velocity, i, axis=0)
        distance = np.linalg.norm(offset, axis=1)
        towards = offset / distance[:, None]
        seen = towards @ velocity[i] >= np.cos(np.deg2rad(160.0)) * np.linalg.norm(velocity[i])
        near, middle, far = (
            seen & (distance > low) & (distance <= high) for low, high in ((0.0, 1.0), (1.0, 3.0), (3.0, 12.0))
        )
        heading = (moving / np.linalg.norm(moving, axis=1, keepdims=True))[middle]
        own = velocity[i] / np.linalg.norm(velocity[i])
        means = 3.0 * np.stack([
            -((1 - distance) [:, None] * towards)[near].mean(axis=0) if near.any() else np.zeros(2),
            heading.mean(axis=0) if len(heading) else own,
            (((12 - distance) / 9)[:, None] * towards)[far].mean(axis=0) if far.any() else np.zeros(2),
        ])  # fmt: skip
        pi = np.exp(-((GRID[:, None] - means) ** 2).sum(axis=-1) / 0.2)
        pi /= pi.sum(axis=0)
        fast = velocity[i] + 0.05 * GRID
        fast /= np.maximum(np.linalg.norm(fast, axis=1, keepdims=True), 1.0)
        s = 50 * ((fast - (moving[middle].mean(axis=0) if middle.any() else velocity[i])) ** 2).sum(axis=1)

        def flow(_, w, pi=pi, s=s):
            y = -pi.T @ (np.log(pi @ w) + s) / 0.5
            response = np.exp(y - y.max())
            return response / response.sum() - w

        found[i] = solve_ivp(flow, (0.0, 10.0), weights[i], method="RK45", rtol=1e-6, atol=1e-8).y[:, -1]
        rng.choice(len(GRID), p=(pi @ found[i]) / (pi @ found[i]).sum())
    return found


def against_rk45() -> list[Record]:
    """40 boids, 440 steps, against a step of the same flock in its first seconds, in turns and scaled."""
    trace = simulate_flock(scenario("polarization", seeds=1))
    rng = np.random.default_rng(0)
    position, velocity = (field[0] for field in trace.state)
    # the same moments as ours go through: disordered, ordering, ordered
    moments = [5, 100, 350]

    def reference():
        return [by_rk45(position[k], velocity[k], trace.weights[0, k - 1], rng) for k in moments]

    far = max(float(np.abs(w - trace.weights[0, k]).max()) for w, k in zip(reference(), moments, strict=True))
    chosen = {seeds: scenario("polarization", seeds=seeds) for seeds in (1, 8)}
    contenders = {"RK45": Contender(reference, 40 * len(moments))} | {
        str(seeds): Contender(lambda s=s: simulate_flock(s), s.boids * s.steps * s.seeds) for seeds, s in chosen.items()
    }
    times = take_turns(contenders, ROUNDS)
    theirs = times["RK45"]
    lines = []
    for seeds in chosen:
        ours = times[str(seeds)]
        note = f"weights within {far:.0e}; a run of one seed {ours * 0.0176:.2f} s against {theirs * 0.0176:.0f} s"
        lines.append(Record(f"40 boids, 440 steps, seeds: {seeds}", ours, "RK45", theirs, theirs / ours, 1e-10, note))
    return lines


def by_size() -> list[Record]:
    """Cost for each boid and step, in a start square that grows with the flock, so that its density stays the same."""
    chosen = {}
    for boids, steps in SIZES.items():
        size = 2.5 * math.sqrt(boids / 40)
        chosen[boids] = scenario("polarization", boids=boids, steps=steps, seeds=1, start_size=size)
    contenders = {
        str(boids): Contender(lambda s=s: simulate_flock(s), s.boids * s.steps) for boids, s in chosen.items()
    }
    times = take_turns(contenders, rounds=5)
    return [
        Record(f"{boids} boids, {s.steps} steps", times[str(boids)],
               note=f"{flock_world(s).search}, start square of {2 * s.start_size:.0f} m")
        for boids, s in chosen.items()
    ]  # fmt: skip


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
    least = min(line.ratio for line in lines if line.ratio)
    console.print(f"end to end {least:,.0f} times faster; target {TARGET:g}: {'met' if least >= TARGET else 'NOT met'}")


if __name__ == "__main__":
    main()
