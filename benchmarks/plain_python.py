"""A decision with habits and model in NumPy, against the same sums in bare NumPy: CPU time, contenders in turn.

python -m benchmarks.plain_python --out build/bench-plain.json
"""

import jax
import jax.numpy as jnp
import numpy as np

import policychord as pc

from . import unicycle
from .report import Parts, Target, report
from .timing import Contender, Record, take_turns

NAME = "decide, unicycle, 117 actions, 4 habits, 20 steps"
TARGETS = [Target(NAME, "bare NumPy", 0.5)]  # at most twice as slow


def bare(x):
    """What every action costs, with the cheapest habit followed after it: the simulations alone, without a gate."""
    points = np.asarray(unicycle.GRID.points)
    here = np.broadcast_to(x, (len(points), 3))
    total, following, futures = unicycle.cost(here, points, 0), unicycle.move(here, points, 0), []
    for habit in unicycle.HABITS.values():
        y, later = following, 0.0
        for k in range(unicycle.STEPS):
            u = habit(y)
            later, y = later + unicycle.cost(y, u, k), unicycle.move(y, u, k)
        futures.append(later)
    return total + np.min(futures, axis=0)


def deciding(seed):
    """Functions over batches, functions that take one observation, outside of a compiled program, and bare NumPy."""
    x = np.array([0.0, *np.random.default_rng(seed).uniform(-0.5, 0.5, 2)])
    single = {name: pc.Policy(habit, unicycle.SPREAD) for name, habit in unicycle.HABITS.items()}
    batched, key = unicycle.composer(), jax.random.key(0)
    compiled, one_by_one = batched.compiled(), unicycle.composer(single).compiled()
    np.testing.assert_allclose(batched.model.terms(unicycle.GRID, jnp.asarray(x), 0)["cost_to_go"]
                               + unicycle.cost(x, np.asarray(unicycle.GRID.points), 0), bare(x))  # fmt: skip
    times = take_turns({
        "ours": Contender(lambda: np.asarray(compiled(key, x).action)),
        "bare NumPy": Contender(lambda: bare(x)),
        "one observation at a time": Contender(lambda: np.asarray(one_by_one(key, x).action)),
        "not compiled": Contender(lambda: np.asarray(batched.decide(key, x).action)),
    })  # fmt: skip
    ours = times.pop("ours")
    return [Record(NAME, ours, name, us, us / ours) for name, us in times.items()]


def parts(seed: int) -> Parts:
    """Everything that is measured, by name."""
    return {"a decision in NumPy": lambda: deciding(seed)}


if __name__ == "__main__":
    report(__doc__, parts, "CPU microseconds per decision, medians of interleaved rounds", TARGETS,
           "build/bench-plain.json")  # fmt: skip
