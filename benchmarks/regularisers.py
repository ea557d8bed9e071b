"""Problems with other regularisers and complexities: answers without a certificate, certificates exceeded, time.

python -m benchmarks.regularisers                       # everything, an hour on one core
python -m benchmarks.regularisers --only stress --problems 25000 --seed 3        # a part of it
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from policychord import Entropy, Outcome, Tsallis, certify, problem, solve
from policychord.core._newton import solve_convex
from policychord.core.convex import ConvexProblem
from policychord_paper.theory import identities as others

from .adversarial import COSTS, PRIMITIVES, PRIORS, STARTS
from .families import SIZES, Arrays
from .timing import Contender, take_turns

ALPHAS = (1.0, 1.25, 1.5, 2.0)
SHAPES = ((3, 4), (3, 30), (6, 40))  # few, because each costs a compilation: (primitives, actions)
BATCH = 256
TOL = 1e-10
KINDS = 24  # batches, each of one kind, when alpha = 1 is compared with the entropy
SAME = 1e-8  # weights that differ by less agree
TIMED = {
    "entropy": None, "entropy, caps": Entropy(0.6), "alpha 1.25": Tsallis(1.25), "alpha 1.5": Tsallis(1.5),
    "alpha 2": Tsallis(2.0), "alpha 1.25, caps": Tsallis(1.25, 0.6), "alpha 1.5, caps": Tsallis(1.5, 0.6),
    "alpha 2, caps": Tsallis(2.0, 0.6),
}  # fmt: skip


class Drawn(NamedTuple):
    """A batch of problems, its kinds, and the weights to start from."""

    kinds: tuple[str, ...]
    arrays: Arrays
    problems: ConvexProblem
    start: np.ndarray


class Tried(NamedTuple):
    """What became of the problems of a batch."""

    alpha: np.ndarray
    capped: np.ndarray
    failed: np.ndarray
    passes: np.ndarray


def draw(seed: int, index: int, batch: int = BATCH) -> Drawn:
    """Batch number `index`: any primitives, cost, prior and start of `adversarial`; every alpha, half with caps."""
    rng = np.random.default_rng([seed, index])
    n, d = SHAPES[index % len(SHAPES)]
    kinds = tuple(list(table)[rng.integers(len(table))] for table in (PRIMITIVES, COSTS, PRIORS, STARTS))
    arrays = Arrays(
        PRIMITIVES[kinds[0]](rng, batch, n, d), COSTS[kinds[1]](rng, batch, d), 10.0 ** rng.uniform(-3.0, 1.0, batch),
        PRIORS[kinds[2]](rng, batch, n),
    )  # fmt: skip
    caps = np.where(rng.random((batch, 1)) < 0.5, 1.0, rng.uniform(1.0 / n + 1e-3, 1.0, (batch, n)))
    problems = problem(**arrays._asdict(), regulariser=Tsallis(rng.choice(ALPHAS, batch), caps))
    start = STARTS[kinds[3]](rng, arrays)
    return Drawn(kinds, arrays, problems, arrays.prior if start is None else start)


def attempt(drawn: Drawn) -> Tried:
    """Solve a batch and certify it anew; nothing that the solver says of itself counts."""
    given = drawn.problems
    with jax.enable_x64(True):
        weights, _, passes, outcome = (np.asarray(a) if i != 1 else a for i, a in enumerate(
            solve_convex(given, drawn.start, TOL)
        ))  # fmt: skip
    usable = np.isfinite(weights).all(-1) & (np.abs(weights.sum(-1) - 1.0) <= 1e-12) & (weights >= 0.0).all(-1)
    safe = np.where(usable[:, None], weights, np.exp(given.log_prior))
    proven = usable & (certify(given, safe).gap <= TOL) & (outcome == Outcome.CONVERGED)
    return Tried(given.alpha, (given.caps < 1.0).any(-1), ~proven, passes)


def stress(problems: int, seed: int, console: Console) -> dict[str, Any]:
    """Failures and passes by alpha and caps."""
    tried = []
    for index in range(-(-problems // BATCH)):
        drawn = draw(seed, index)
        found = attempt(drawn)
        tried.append(found)
        for k in np.flatnonzero(found.failed):
            console.print(f"failed: batch {index}, {k}: {drawn.kinds}, eps {drawn.arrays.eps[k]:.2g}, alpha "
                          f"{found.alpha[k]}, capped {found.capped[k]}, passes {found.passes[k]}")  # fmt: skip
    alpha, capped, failed, passes = (np.concatenate(column) for column in zip(*tried, strict=True))
    rows = {}
    for order in ALPHAS:
        for caps in (False, True):
            chosen = (alpha == order) & (capped == caps)
            rows[f"alpha {order:g}{', caps' if caps else ''}"] = {
                "count": int(chosen.sum()), "failures": int(failed[chosen].sum()),
                "passes": float(passes[chosen].mean()), "p99": float(np.percentile(passes[chosen], 99)),
            }  # fmt: skip
    return rows


def distances(count: int, seed: int) -> dict[str, Any]:
    """For each alpha, with and without caps: certificates of weights near and far against their true error."""
    rows = {}
    for order in ALPHAS:
        for caps in (1.0, 0.6):
            rng = np.random.default_rng([seed, round(100 * order), round(10 * caps)])
            pi = rng.gamma(10 ** rng.uniform(-1, 1, (count, 1, 1)), size=(count, 12, 4)) + 1e-9
            given = problem(
                pi=pi / pi.sum(1, keepdims=True), action_cost=rng.normal(scale=3.0, size=(count, 12)),
                eps=10 ** rng.uniform(-2, 1, count), regulariser=Tsallis(order, caps),
            )  # fmt: skip
            best = solve(given, tol=1e-13)
            away = np.minimum(rng.dirichlet(np.ones(4), count), caps)
            room = caps - away
            away += (1.0 - away.sum(-1, keepdims=True)) * room / np.maximum(room.sum(-1, keepdims=True), 1e-300)
            share = 10 ** rng.uniform(-6, 0, (count, 1))
            w = best.weights + share * (away - best.weights)
            error = np.abs(w - best.weights).sum(-1) - best.certificate.distance  # at least
            bound = certify(given, w).distance
            rows[f"alpha {order:g}{', caps' if caps < 1 else ''}"] = {
                "count": count, "exceeded": int((error > bound).sum()), "error/bound at most": (error / bound).max(),
            }  # fmt: skip
    return rows


def entropy(count: int, seed: int) -> dict[str, Any]:
    """alpha = 1 against the entropy's own route, on every problem whose optimum both know to `SAME`."""
    answer = jax.jit(lambda p: solve(p, tol=1e-21))  # in jit nothing is raised where rounding forbids so small a gap
    rows = {f"{n} primitives, {d} actions": [] for n, d in SHAPES}
    for index in range(KINDS):
        given = {name: jnp.asarray(a) for name, a in draw(seed, index, -(-count // KINDS)).arrays._asdict().items()}
        one = answer(problem(**given))
        other = answer(problem(**given, regulariser=Tsallis(jnp.ones(len(one.weights)))))
        off = np.abs(one.weights - other.weights).sum(-1)
        known = np.maximum(one.certificate.distance, other.certificate.distance) <= SAME
        apart = off > one.certificate.distance + other.certificate.distance
        rows[list(rows)[index % len(SHAPES)]].append(np.stack([off, known, apart | (known & (off > SAME))], axis=-1))
    joined = {name: np.concatenate(found).T for name, found in rows.items()}
    return {
        name: {
            "count": off.size, "known": int(known.sum()), "largest |w - w|, known": (off * known).max(),
            "exceeded": int(exceeded.sum()),
        }
        for name, (off, known, exceeded) in joined.items()
    }  # fmt: skip


def speed(count: int, seed: int) -> dict[str, Any]:
    """Every regulariser at size A against the entropy, all on the JAX route and in turn."""
    arrays = SIZES["A"].draw(np.random.default_rng(seed), count)._asdict()
    given = {name: problem(**arrays, regulariser=one) for name, one in TIMED.items()}
    times = take_turns({name: Contender(lambda p=p: solve(p, route="jax"), count) for name, p in given.items()})
    return {
        name: {"us": us, "/ entropy": us / times["entropy"], "passes": float(solve(given[name]).passes.mean())}
        for name, us in times.items()
    }  # fmt: skip


def general(count: int, seed: int) -> dict[str, Any]:
    """Five other complexities against an independent optimiser whose optima are verified by their residual."""
    batch = others.other_problems(seed, count)
    found = solve(batch, tol=1e-14)
    judged = [others.minimise_other(batch, k) for k in range(batch.eps.size)]
    off = np.abs(found.weights - np.stack([one.weights for one in judged])).max(-1)
    residual = np.array([one.residual for one in judged])
    parts = np.split(np.arange(batch.eps.size), len(others.COMPLEXITIES))
    return {
        name: {
            "count": count, "uncertified": int((~(found.certificate.gap <= TOL))[part].sum()),
            "largest |w - judge|": off[part].max(), "exceeded": int((off[part] > SAME).sum()),
            "judge's residual": residual[part].max(),
        }
        for name, part in zip(others.COMPLEXITIES, parts, strict=True)
    }  # fmt: skip


def show(title: str, rows: dict[str, Any], console: Console) -> None:
    """A table with a line for each kind."""
    table = Table(title=title)
    table.add_column("kind")
    for name in next(iter(rows.values())):
        table.add_column(name, justify="right")
    for kind, row in rows.items():
        table.add_row(kind, *(str(value) if isinstance(value, int) else f"{value:.3g}" for value in row.values()))
    console.print(table)


def main() -> int:
    """Read the command line, run, write; 1 after any failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = {"stress": 100_000, "distances": 2000, "entropy": 2000, "general": 200, "speed": SIZES["A"].batch}
    parser.add_argument("--only", choices=sizes, action="append", help="run this part, may be given several times")
    parser.add_argument("--problems", type=int, help="problems of each part in place of its own number")
    parser.add_argument("--seed", type=int, default=0, help="which problems to draw")
    parser.add_argument("--out", type=Path, default=Path("build/regularisers.json"), help="where to write the tables")
    given = parser.parse_args()
    console, tables = Console(), {}
    parts = {"distances": distances, "general": general, "speed": speed,
             "stress": lambda count, seed: stress(count, seed, console)}  # fmt: skip
    for name, run in parts.items():
        if name in (given.only or sizes):
            tables[name] = run(given.problems or sizes[name], given.seed)
            show(name, tables[name], console)
    if "entropy" in (given.only or sizes):
        with jax.enable_x64(True):
            tables["entropy"] = entropy(given.problems or sizes["entropy"], given.seed)
        show("alpha = 1 against the entropy", tables["entropy"], console)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"seed": given.seed, **tables}, indent=2, default=float))
    bad = sum(row.get(key, 0) for rows in tables.values() for row in rows.values()
              for key in ("failures", "exceeded", "uncertified"))  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
