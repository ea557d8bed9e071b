"""Mechanisms, regularisers and ways of combining, against a cone solver: `python -m benchmarks.mechanisms`.

The mechanisms are `solve`, `flow` and `circuit`, and the gates "flow" and "circuit" of an agent. A cell fails where the
weights in the end differ from the judge's, the certificate is exceeded, or the circuit is not stable.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from policychord import Tsallis, circuit, circuit_stability, flow, problem, solve
from policychord.agent import Circuit, Flow, Memory, Options
from policychord.core.convex import over_batch

from .tables import keep

D, N = 8, 4
LONG = 40.0  # tau
# order and caps; the entropy without caps is the paper's own, and has its own programs
REGULARISERS = {
    "entropy": None, "entropy, caps": (1.0, 0.4), "Tsallis 1.25": (1.25, 1.0), "Tsallis 1.5": (1.5, 1.0),
    "Tsallis 2": (2.0, 1.0), "Tsallis 1.5, caps": (1.5, 0.4), "Tsallis 2, caps": (2.0, 0.4),
}  # fmt: skip
COMBINATIONS = ("mixture", "product", "own function")
WITHIN = 2e-5  # of the judge, whose own error is up to 1e-5
GATE_WITHIN = 1e-4  # agents integrate with looser tolerances
RISE = 1e-10  # of the energy between two moments, relative to one plus its size


class Drawn(NamedTuple):
    """Arrays of random problems that all regularisers and combinations share."""

    pi: np.ndarray
    cost: np.ndarray
    eps: np.ndarray
    prior: np.ndarray
    factors: np.ndarray  # of the quadratic function


def draw(seed: int, count: int) -> Drawn:
    """Temperatures from .1 to 3, costs of a few nats, priors of full support."""
    rng = np.random.default_rng(seed)
    pi = rng.gamma(10 ** rng.uniform(-0.3, 0.7, (count, 1, 1)), size=(count, D, N)) + 1e-4
    return Drawn(
        pi / pi.sum(1, keepdims=True), rng.normal(scale=2.0, size=(count, D)), 10 ** rng.uniform(-1.0, 0.5, count),
        rng.dirichlet(np.full(N, 4.0), count), rng.normal(size=(count, D, N)) / 2.0,
    )  # fmt: skip


def quadratic(weights: Any, given: Any) -> Any:
    """|A w|^2 + s . A w: convex, with nothing else in common with the others."""
    factors, cost = given
    return jnp.sum((factors @ weights) ** 2) + cost @ (factors @ weights)


def pose(drawn: Drawn, combination: str, order: Any) -> Any:
    """A batch of problems; `order` has a row (alpha, cap) for each, or is None for the entropy."""
    regulariser = None if order is None else Tsallis(order[:, 0], np.repeat(order[:, 1:], N, axis=1))
    common = {"eps": drawn.eps, "prior": drawn.prior, "regulariser": regulariser}
    if combination == "own function":
        return problem(complexity=quadratic, n=N, parameters=(drawn.factors, drawn.cost), **common)
    return problem(pi=drawn.pi, action_cost=drawn.cost, combine=combination, **common)


def judge(drawn: Drawn, k: int, combination: str, alpha: float, cap: float) -> np.ndarray:
    """The optimum of problem number k by Clarabel, from the objective as it is written on paper."""
    pi, s, eps, prior, factors = (np.asarray(a)[k] for a in drawn)
    w = cvxpy.Variable(N)
    if combination == "mixture":
        complexity = -cvxpy.sum(cvxpy.entr(pi @ w)) + s @ (pi @ w)
    elif combination == "product":
        q = np.exp(-s) / np.exp(-s).sum()
        complexity = cvxpy.log_sum_exp(np.log(pi) @ w) - q @ (np.log(pi) @ w)
    else:
        complexity = cvxpy.sum_squares(factors @ w) + s @ (factors @ w)
    if alpha == 1.0:
        divergence = -cvxpy.sum(cvxpy.entr(w)) - np.log(prior) @ w
    elif alpha == 2.0:
        divergence = cvxpy.sum_squares(w) / 2 - prior @ w
    else:
        divergence = cvxpy.sum(cvxpy.power(w, alpha)) / (alpha * (alpha - 1)) - prior ** (alpha - 1) @ w / (alpha - 1)
    limits = [w >= 0, cvxpy.sum(w) == 1] + ([w <= cap] if cap < 1.0 else [])
    with warnings.catch_warnings():  # it says so where it stops short of these tolerances
        warnings.simplefilter("ignore")
        precise = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
        cvxpy.Problem(cvxpy.Minimize(complexity + eps * divergence), limits).solve(solver="CLARABEL", **precise)
    return np.asarray(w.value)


def weigh(kind: Any, posed: Any) -> np.ndarray:
    """The weights of an agent's gate from even weights, for a batch of problems."""

    def one(gate: Any, each: Any, begin: Any) -> Any:
        memory = Memory(begin, jnp.zeros(N), jnp.zeros(()), gate.start(N))
        return gate.weigh(each, jnp.ones(N, bool), memory, Options(1e-10, "jax")).weights

    with jax.enable_x64(True):
        begin = jnp.full((len(posed.eps), N), 1.0 / N)
        together = eqx.filter_jit(lambda gate, posed, begin: over_batch(partial(one, gate), posed, begin))
        return np.asarray(together(kind(LONG), jax.tree.map(jnp.asarray, posed), begin))


def run(drawn: Drawn, combination: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The cells of these regularisers: the largest error of each mechanism, what failed, and stability."""
    count, plain = len(drawn.eps), names == ["entropy"]
    order = np.repeat([REGULARISERS[name] or (1.0, 1.0) for name in names], count, axis=0)
    many = Drawn(*(np.concatenate([part] * len(names)) for part in drawn))
    posed = pose(many, combination, None if plain else order)
    best = np.stack([judge(many, k, combination, *order[k]) for k in range(len(order))])
    path = flow(posed, LONG, save=81)
    ends = {
        "solve": solve(posed).weights, "flow": path.weights[:, -1],
        "circuit": circuit(posed, LONG, save=2).weights[:, -1],
        "gate flow": weigh(Flow, posed), "gate circuit": weigh(Circuit, posed),
    }  # fmt: skip
    off = {name: np.abs(weights - best).max(-1) for name, weights in ends.items()}
    failed = {name: ~(o <= (GATE_WITHIN if "gate" in name else WITHIN)) for name, o in off.items()}
    # weights on the way are far from the optimum, and must be as near as their certificate says
    way = np.abs(path.weights[:, 1:20] - best[:, None]).sum(-1)
    exceeded = way > path.certificate.distance[:, 1:20] + 2 * N * WITHIN
    rises = np.max(np.diff(path.energy, axis=-1) / (1.0 + np.abs(path.energy[:, 1:])), axis=-1)
    unstable, zeros = ~circuit_stability(posed).stable, ends["solve"] == 0.0
    cells = {}
    for k, name in enumerate(names):
        rows = slice(k * count, (k + 1) * count)
        cells[f"{combination}, {name}"] = {
            "problems": count, "error": {way: float(o[rows].max()) for way, o in off.items()},
            "failed": {way: int(f[rows].sum()) for way, f in failed.items()},
            "certificate exceeded": int(exceeded[rows].sum()), "largest rise of V": float(rises[rows].max()),
            "unstable": int(unstable[rows].sum()), "exact zeros": float(zeros[rows].mean()),
        }  # fmt: skip
    return cells


def bad(cell: dict[str, Any]) -> int:
    """How much is wrong in a cell."""
    rises = cell["largest rise of V"] > RISE
    return sum(cell["failed"].values()) + cell["certificate exceeded"] + cell["unstable"] + int(rises)


def record(path: Path, cells: dict[str, dict[str, Any]]) -> None:
    """Keep the table for the page."""
    ways = next(iter(cells.values()))["error"]
    columns = {"cell": "", "problems": "d"} | dict.fromkeys(ways, ".0e") | {"exact zeros": ".0%", "failures": "d"}
    rows = [
        [name, cell["problems"], *cell["error"].values(), cell["exact zeros"], bad(cell)]
        for name, cell in cells.items()
    ]
    keep(path, "mechanisms", "python -m benchmarks.mechanisms", columns, rows)


def main() -> int:
    """Read the command line, run, write; 1 after any failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100, help="of each cell")
    parser.add_argument("--seed", type=int, default=0, help="which problems to draw")
    parser.add_argument("--out", type=Path, default=Path("build/mechanisms.json"), help="where to write the cells")
    parser.add_argument("--record", type=Path, help="keep the table that a page shows")
    given = parser.parse_args()
    drawn, cells = draw(given.seed, given.problems), {}
    for combination in COMBINATIONS:
        for names in (["entropy"], [name for name in REGULARISERS if name != "entropy"]):
            cells |= run(drawn, combination, names)
            print(f"{combination}: {', '.join(names)}", flush=True)
    table = Table(title=f"{given.problems} problems each: largest |w - judge| in the end")
    ways = next(iter(cells.values()))["error"]
    for column in ("cell", *ways, "largest rise of V", "exact zeros", "bad"):
        table.add_column(column)
    for name, cell in cells.items():
        errors = [f"{error:.0e}" for error in cell["error"].values()]
        table.add_row(name, *errors, f"{cell['largest rise of V']:.0e}", f"{cell['exact zeros']:.0%}", str(bad(cell)))
    Console(width=140).print(table)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"seed": given.seed, "cells": cells}, indent=2))
    if given.record:
        record(given.record, cells)
    return 1 if any(map(bad, cells.values())) else 0


if __name__ == "__main__":
    sys.exit(main())
