"""Composed flights: our decisions in a batch against a loop that integrates the flow with SciPy at every step.

python -m benchmarks.quadrotor --out build/bench_quadrotor.json
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from scipy.integrate import solve_ivp

from policychord import Problem, certify, rollout
from policychord.worlds.quadrotor.agents import composer, quadrotor_world
from policychord.worlds.quadrotor.settings import CompositionSettings, Experiment, QuadrotorSettings

from .timing import Contender, Record, take_turns

SEEDS, STEPS, SLICE = 100, 60, 12
TARGET = 200.0


def integrate(one: Problem) -> np.ndarray:
    """The flow dw/dt = softmax(-Pi^T (ln Pi w + s)/eps) - w to t = 10, as one decision of such a loop needs it."""
    pi, s, eps, log_prior = (np.asarray(field) for field in one)

    def rate(t, w):
        y = log_prior - pi.T @ (np.log(pi @ w + 1e-300) + s) / eps
        response = np.exp(y - y.max())
        return response / response.sum() - w

    return solve_ivp(rate, (0.0, 10.0), np.exp(log_prior), method="RK45", rtol=1e-8, atol=1e-10).y[:, -1]


def record(experiment: Experiment, seed: int) -> Record:
    """Microseconds of CPU time for one decision: drone, primitives, prices, weights and action on our side; the weights
    alone on the other."""
    settings = QuadrotorSettings(seeds=SEEDS, seed=seed)
    agent = composer(settings, experiment, CompositionSettings(selection="mean"))
    env = quadrotor_world(settings, experiment)

    def ours():
        return np.asarray(rollout(agent, env, steps=STEPS, episodes=SEEDS, seed=seed).reward)

    trace = rollout(agent, env, steps=STEPS, episodes=SLICE, seed=seed)
    moments = [(i, (7 * i) % STEPS) for i in range(SLICE)]
    problems = [agent.problem(env.observe(jax.tree.map(lambda a, at=at: a[at], trace.state)), at[1]) for at in moments]
    contenders = {
        "ours": Contender(ours, SEEDS * STEPS),
        "RK45": Contender(lambda: [integrate(one) for one in problems], SLICE),
    }
    times = take_turns(contenders, rounds=5)
    reached = max(
        float(certify(one, w / w.sum()).gap) for one, w in zip(problems, map(integrate, problems), strict=True)
    )
    note = f"RK45 reached a gap of {reached:.0e}"
    gap = float(np.max(np.asarray(trace.gap)))
    ratio = times["RK45"] / times["ours"]
    return Record(f"{experiment}, one decision", times["ours"], "RK45", times["RK45"], ratio, gap, note)


def main() -> None:
    """Measure both experiments, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("build/bench_quadrotor.json"), help="where to write the records"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    console = Console()
    lines = [record(experiment, given.seed) for experiment in ("pd", "lqr")]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps([line._asdict() for line in lines], indent=2))
    for line in lines:
        verdict = "met" if line.ratio >= TARGET else "NOT met"
        console.print(
            f"{line.name}: {line.ours_us:.1f} us, {line.reference} {line.reference_us:,.0f} us, "
            f"ratio {line.ratio:,.0f} (target {TARGET:g}: {verdict}); our gap {line.certificate:.0e}, {line.note}",
            soft_wrap=True,
        )


if __name__ == "__main__":
    main()
