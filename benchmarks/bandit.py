"""All trials of the bandit study solved as one batch, against integrating the flow trial by trial: contenders in turn.

python -m benchmarks.bandit --out build/bandit.json
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.integrate import solve_ivp

from policychord import Problem, certify, problem, solve
from policychord.choices.data import TASKS
from policychord.choices.learners import believe
from policychord.choices.models import GAP, PAPER, classic, columns, compose, log_proba
from policychord.choices.simulate import GROUPS, SUBJECTS, draw_people, simulate_choices

from .reduction import two_arm_weights
from .rivals import on_simplex, right_hand_side
from .timing import Contender, Record, take_turns

HORIZON = 50.0  # in units of tau; weights taken before some 5 tau are not yet those of the model
FOR_LSODA = 24  # trials, spread over the batch
TARGET = 50.0


def batch(experiment: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Primitives and ln q at all trials of a cohort of the size of the paper's."""
    people = draw_people(GROUPS[experiment]["Hybrid"], SUBJECTS[experiment], seed)
    model = classic("Hybrid", "probit")
    trials = believe(simulate_choices(TASKS[experiment], model, people, seed=seed))
    return columns(PAPER, trials), log_proba(model, trials, people[trials.subject - 1])


def integrate(one: Problem) -> np.ndarray:
    """The flow from uniform weights to 50 tau by LSODA at rtol 1e-6."""
    start = np.exp(one.log_prior)
    path = solve_ivp(right_hand_side(one), (0.0, HORIZON), start, method="LSODA", rtol=1e-6, t_eval=[HORIZON])
    return path.y[:, -1]


def measure(experiment: str, seed: int) -> list[Record]:
    """Batch, exact reduction and LSODA on the same problems."""
    pi, log_q = batch(experiment, seed)
    problems = problem(pi=pi, action_cost=-log_q, eps=0.01)
    few = [Problem(*(field[k] for field in problems)) for k in np.linspace(0, len(pi) - 1, FOR_LSODA).astype(int)]
    contenders = {
        "ours": Contender(lambda: solve(problems), len(pi)),
        "with building, 1e-22": Contender(lambda: compose(pi, log_q, 0.01), len(pi)),
        "reduction": Contender(lambda: two_arm_weights(pi[:, 0], log_q[:, 0] - log_q[:, 1], 0.01), len(pi)),
        "LSODA": Contender(lambda: [integrate(one) for one in few], FOR_LSODA),
    }
    times = take_turns(contenders, rounds=7)
    gap = float(np.max(solve(problems).certificate.gap))
    reached = max(float(certify(one, on_simplex(integrate(one))).gap) for one in few)
    name, lsoda = f"Experiment {experiment}, {len(pi)} trials", times["LSODA"]
    whole = times["with building, 1e-22"]
    return [
        Record(name, times["ours"], "LSODA", lsoda, lsoda / times["ours"], gap, f"it reached {reached:.0e}"),
        Record(f"{name}, built, to {GAP:.0e}", whole, "LSODA", lsoda, lsoda / whole, GAP),
        Record(f"{name}, built", whole, "reduction", times["reduction"], times["reduction"] / whole, GAP),
    ]


def main() -> None:
    """Read the command line, measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bandit.json"), help="where to write the records")
    parser.add_argument("--seed", type=int, default=0, help="which cohort to draw")
    given = parser.parse_args()
    console = Console(width=140)
    lines = [line for experiment in TASKS for line in measure(experiment, given.seed)]
    for line in lines:
        shown = f"{line.ours_us:.2f} us a trial, {line.reference} {line.reference_us:,.1f} us, ratio {line.ratio:,.1f}"
        console.print(f"{line.name}: {shown} {line.note}", highlight=False)
    both = [batch(experiment, given.seed) for experiment in TASKS]
    begun = time.perf_counter()
    for pi, log_q in both:
        compose(pi, log_q, 0.01)
    trials = sum(len(pi) for pi, _ in both)
    console.print(f"all {trials} trials, both experiments: {time.perf_counter() - begun:.2f} s on the clock")
    least = min(line.ratio for line in lines if line.reference == "LSODA" and line.ratio is not None)
    verdict = "met" if least >= TARGET else "NOT met"
    console.print(f"least ratio to LSODA {least:,.0f}; target at least {TARGET:g}: {verdict}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps([line._asdict() for line in lines], indent=2))


if __name__ == "__main__":
    main()
