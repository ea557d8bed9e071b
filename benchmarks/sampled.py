"""How far the weights on `Sampled` actions are from those of all actions, and how often the error bars hold.

python -m benchmarks.sampled --repeats 24 --dims 1 2 6 17 --record docs/how-to/which_gate.json

144 problems: 1, 2, 6, 17 dimensions; 2, 4, 8 Gaussian primitives whose means are typically .7, 1.4 or 4.2 sd apart;
quadratic costs with coupled axes and others; eps .2 and 1. Each is drawn anew in every repeat. The judge knows nothing
of control variates: it solves the problem on 2^16 points that the primitives drew, in one dimension on a fine grid.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from scipy.stats import binomtest, norm, qmc

from policychord import Composer, problem, solve
from policychord.actions import Sampled
from policychord.models import Cost
from policychord.primitives import Gaussian

from .tables import keep

# titles of the page's table, and how the numbers are written
COLUMNS = {
    "dimensions": "d", "cost": "s", "median error of a weight": ".4f", "largest error, RMS: median": ".4f",
    "90% of the problems": ".4f", "95% intervals hold": ".3f", "from": ".3f", "to": ".3f",
    "us a decision": ".0f", "times its solve": ".1f",
}  # fmt: skip
COUNTS, APART, EPS, JUDGE = (2, 4, 8), (0.5, 1.0, 3.0), (0.2, 1.0), 2**16


class Case(NamedTuple):
    """The numbers of a problem: it is the observation of an agent that has none of its own."""

    mean: Any  # (n, dim)
    sd: Any  # (n, dim)
    goal: Any  # (dim,)
    bend: Any  # (dim, dim)
    eps: Any


def quadratic(case: Case, u: Any, k: Any) -> Any:
    """(u - g)^T M (u - g)."""
    return (u - case.goal) @ case.bend @ (u - case.goal)


def wavy(case: Case, u: Any, k: Any) -> Any:
    """Linear far out, with waves."""
    return jnp.sqrt(1 + quadratic(case, u, k)) + jnp.mean(jnp.sin(3 * u))


COSTS = {"quadratic": quadratic, "other": wavy}


def draw_case(dim: int, n: int, apart: float, eps: float, cost: str) -> Case:
    """A problem, the same for the same arguments."""
    rng = np.random.default_rng([dim, n, int(10 * apart), int(10 * eps), cost == "other"])
    root = rng.normal(size=(dim, dim)) / np.sqrt(dim)
    bend = root @ root.T + 0.1 * np.eye(dim)
    mean, goal = (rng.normal(size=size) * apart / np.sqrt(dim) for size in ((n, dim), dim))
    sd = np.exp(0.2 * rng.normal(size=(n, dim)))
    return Case(*map(jnp.asarray, (mean, sd, goal, 2 * bend / np.trace(bend), eps)))


def judge(case: Case, cost: Any, seed: int = 0) -> np.ndarray:
    """The weights on very many points, by importance sampling alone, or on a grid."""
    mean, sd = np.asarray(case.mean), np.asarray(case.sd)
    n, dim = mean.shape
    if dim == 1:
        u = np.linspace((mean - 9 * sd).min(), (mean + 9 * sd).max(), 20_001)[:, None]
        pi = norm.pdf(u, mean[:, 0], sd[:, 0])
        price = np.asarray(jax.vmap(lambda one: cost(case, one, 0))(jnp.asarray(u)))
        return np.asarray(solve(problem(pi=pi / pi.sum(0), action_cost=price, eps=float(case.eps))).weights)
    rng = np.random.default_rng(seed)
    drawn = [qmc.Sobol(dim, scramble=True, rng=rng).random(JUDGE // n) for _ in range(n)]
    u = np.concatenate(
        [m + s * norm.ppf(np.clip(z, 1e-12, 1 - 1e-12)) for m, s, z in zip(mean, sd, drawn, strict=True)]
    )
    log_pi = np.stack([norm.logpdf(u, m, s).sum(axis=1) for m, s in zip(mean, sd, strict=True)], axis=1)
    log_q = logsumexp(log_pi, axis=1) - np.log(n)
    pi = np.exp(log_pi - log_q[:, None])
    price = np.asarray(jax.vmap(lambda one: cost(case, one, 0))(jnp.asarray(u)))
    return np.asarray(solve(problem(pi=pi / pi.sum(0), action_cost=price + log_q, eps=float(case.eps))).weights)


def agent_of(dim: int, n: int, cost: Any, **options: Any) -> Composer:
    """An agent whose primitives and cost are what the observation says."""
    primitives = [Gaussian(lambda x, k, a=a: x.mean[a], lambda x, k, a=a: x.sd[a]) for a in range(n)]
    return Composer(primitives, Cost(cost), Sampled(dim=dim, **options), lambda x, k: x.eps, tol=1e-12, route="jax")


@eqx.filter_jit
def repeat(agent: Composer, case: Case, uniforms: Any) -> Any:
    """(weights, both ends of their 95% intervals) with each set of uniform numbers."""

    def one(own: Any) -> Any:
        found = eqx.tree_at(lambda a: a.actions.uniforms, agent, own).weigh(case)
        return found.weights, *agent.interval(found)

    return jax.lax.map(one, uniforms)


@eqx.filter_jit
def decide_all(agent: Composer, cases: Case) -> Any:
    """The weights of a batch of problems, as an agent in many episodes is asked."""
    return jax.vmap(lambda case: agent.weigh(case).weights)(cases)


def microseconds(dim: int, cost: Any, count: int, n: int = 4, batch: int = 256, tries: int = 5) -> tuple[float, float]:
    """CPU time of a decision in a batch, everything included (drawing, pricing, solving, the error bar), and of its
    problem alone when it is solved in the same batch: the least of several tries."""
    agent = agent_of(dim, n, cost, count=count).replace(route="auto", tol=1e-10)
    cases = [draw_case(dim, n, 1.0, 1.0, name) for name in COSTS]
    cases = jax.tree_util.tree_map(lambda *a: jnp.stack(a * (batch // len(a))), *cases)
    given = jax.tree_util.tree_map(np.asarray, jax.jit(jax.vmap(agent.problem))(cases))
    found = []
    for work in (lambda: decide_all(agent, cases), lambda: solve(given, tol=1e-10).weights):
        jax.block_until_ready(work())
        spent = []
        for _ in range(tries):
            begun = time.process_time()
            jax.block_until_ready(work())
            spent.append(time.process_time() - begun)
        found.append(min(spent) / batch * 1e6)
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--dims", type=int, nargs="+", default=[1, 2, 6, 17])
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--record", type=Path, help="a file of tables, to which each line is added")
    told = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{told.count} points, {told.repeats} repeats of each problem; off: RMS over repeats of the largest |dw|")
    rows = []
    for dim, (name, cost) in product(told.dims, COSTS.items()):
        typical, largest, held = [], [], []
        sets = jnp.stack([Sampled(dim=dim, count=told.count, seed=s).uniforms for s in range(told.repeats)])
        for n in COUNTS:
            agent = agent_of(dim, n, cost, count=told.count)
            for apart, eps in product(APART, EPS):
                case = draw_case(dim, n, apart, eps, name)
                weights, low, high = map(np.asarray, repeat(agent, case, sets))
                right = judge(case, cost)
                off = np.abs(weights - right)
                typical.append(np.median(off))
                largest.append(np.sqrt(np.mean(off.max(axis=1) ** 2)))
                held.append((low <= right) & (right <= high))
        inside = np.concatenate([one.ravel() for one in held])
        # weights of one problem sum to one and share their points: a repeat of a problem counts once
        low, high = binomtest(round(inside.mean() * (m := len(held) * told.repeats)), m).proportion_ci()
        took, solving = microseconds(dim, cost, told.count)
        rows.append(
            (dim, name, np.median(typical), np.median(largest), np.quantile(largest, 0.9), inside.mean(), low, high,
             took, took / solving)
        )  # fmt: skip
        print(
            f"{dim:>2} dimensions, {name:<9}: median |dw| {rows[-1][2]:.4f}; off median {rows[-1][3]:.4f}"
            f", 90% {rows[-1][4]:.4f}; 95% intervals hold {inside.mean():.3f} [{low:.3f}, {high:.3f}]; "
            f"{took:.0f} us a decision (n 4, in a batch), {took / solving:.1f} times its solve", flush=True,
        )  # fmt: skip
        if told.record:
            add_row(told.record, told.repeats, [_plain(cell) for cell in rows[-1]])


def add_row(path: Path, repeats: int, row: list[Any]) -> None:
    """Keep a line of the table, in place of an earlier one of the same dimension and cost."""
    before = json.loads(path.read_text(encoding="utf-8")).get("sampled", {}).get("rows", []) if path.is_file() else []
    others = [one for one in before if one[:2] != row[:2]]
    order = sorted([*others, row], key=lambda one: (one[0], one[1] == "other"))
    keep(path, "sampled", f"python -m benchmarks.sampled --repeats {repeats}", COLUMNS, order)


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, str | int) else float(f"{cell:.5g}")


if __name__ == "__main__":
    main()
