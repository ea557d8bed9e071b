"""Do plans around a mixture pay? The tasks of `benchmarks.composition`, equal simulated steps, paired fresh episodes.

python -m benchmarks.plan --minutes 30 --out docs/explanation/plan.json

Compositions are those of the record docs/explanation/composition.json. The defaults of `Planner`, `mppi` and `gradient`
were chosen on the planar drone and the cart-pole, in episodes 0 to 39, by the lowest geometric mean of the medians;
rows called "tuned" take what is best there for each task, of four settings. All is reported in episodes from 1000 on.
What was played is kept in build/plan: the same command goes on where it was stopped.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import binom

from benchmarks.composition import BEFORE, CRASHED, USUAL, Bench, Cell, duel, play, weights_of
from benchmarks.composition_tasks import TASKS
from benchmarks.tables import keep
from policychord import Commitment, Composer, Planner, rivals
from policychord.models import Cost
from policychord.runs.compiled import keep_programs

RECORD = Path(__file__).parent.parent / "docs" / "explanation" / "composition.json"
NAMES = tuple(TASKS)
TUNED_IN, FRESH, BATCH = range(40), 1000, 50
MASSES = (0.8, 1.2)
PLANS = ({}, {"noise": 0.1}, {"free": 1}, {"free": 4, "noise": 0.5})
MPPIS = ({}, {"knots": 16}, {"knots": 4}, {"knots": 4, "noise": 0.3})
GRADIENTS = ({}, {"noise": 0.03}, {"noise": 0.3}, {"knots": 4})
OURS, LEARNING = "plan", "plan, learns the model's error"
COMMAND = "python -m benchmarks.plan"


class Arena:
    """A task with the record's settings; every agent simulates the same number of steps in a decision."""

    def __init__(self, name: str, folder: Path):
        self.bench = Bench(TASKS[name](), folder / name)
        told = json.loads(RECORD.read_text(encoding="utf-8"))["tasks"][name]
        self.chosen, self.hand = told["chosen"], told["usual"]["rivals"]["best by hand"]["who"]
        self.ahead = {"steps": self.bench.task.horizon + 1, "samples": self.bench.task.actions.size}

    def composer(self, cell: Cell, gate: str = "equilibrium", **changes: Any) -> Composer:
        follow, eps, nats = (self.chosen[name] for name in ("follow", "eps", "nats"))
        return self.bench.composer(cell, follow, eps, nats, "equilibrium").replace(gate=gate, **changes)

    def model(self, cell: Cell) -> Any:
        return self.bench.task.model(*(jnp.asarray(number) for number in (1.0, cell.mass, cell.drag)))

    def view(self) -> Any:
        env = self.bench.task.env
        return env.observe(env.reset(jax.random.key(0)))

    def plan(self, cell: Cell, kind: Callable[..., Any] = Planner, gate: str = "prior", **told: Any) -> Any:
        """Around the fixed mixture that the composition's rollouts follow; weights of the gate take twice the steps."""
        prior = np.maximum(weights_of(self.chosen["follow"], self.bench.task.usual), 1e-9)
        composer = self.composer(cell, gate, prior=prior / prior.sum())
        if gate == "prior":  # its model plays no part
            composer = composer.replace(model=Cost(self.model(cell).stage))
        return kind(composer, self.model(cell).predict, self.model(cell).stage, **(self.ahead | told))

    def mppi(self, cell: Cell, kind: Callable[..., Planner] = rivals.mppi, **told: Any) -> Planner:
        model = self.model(cell)
        task, about = self.bench.task, {"nominal": self.bench.task.rest}
        return kind(task.actions, model.predict, model.stage, **(self.ahead | about | told))

    def gradient(self, cell: Cell, **told: Any) -> Planner:
        return self.mppi(cell, rivals.gradient, **told)

    def equal(self, cell: Cell) -> Planner:
        plan = self.plan(cell)
        return eqx.tree_at(lambda agent: agent.composer, plan, plan.composer.replace(prior=None))

    def costs(self, name: str, agent: Callable[[], Any], episodes: range) -> np.ndarray:
        """Rows: the cost of every episode, whether it ended early, and the CPU microseconds of a decision."""
        task = self.bench.task

        def make() -> np.ndarray:
            acting, rows = agent(), []
            for first in range(0, len(episodes), BATCH):
                some = episodes[first : first + BATCH]
                began = time.process_time()
                cost, ended = map(np.asarray, play(acting, task.env, task.steps, jnp.asarray(list(some))))
                us = 1e6 * (time.process_time() - began) / (task.steps * len(some))
                rows.append([np.where(ended, CRASHED, cost), ended, np.full(len(some), us)])
            return np.concatenate(rows, axis=1)

        return self.bench.kept(f"{name} {episodes.start}-{episodes.stop}", make)

    def best(self, name: str, make: Callable[..., Any], tried: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        """Of these settings the one with the lowest median in the tuning episodes."""

        def median(told: dict[str, Any]) -> float:
            return float(np.median(self.costs(f"{name} {told}", lambda: make(USUAL, **told), TUNED_IN)[0]))

        return min(tried, key=median)

    def agents(self, cell: Cell) -> dict[str, Callable[[], Any]]:
        """Everybody."""
        tilted = {"selection": "posterior mean"}
        return {
            "composed": lambda: self.composer(cell),
            "cheapest": lambda: self.composer(cell, "cheapest"),
            "posterior": lambda: self.composer(cell, **tilted),
            "posterior, its own gate": lambda: self.composer(cell, "posterior", **tilted),
            "posterior, fixed weights": lambda: self.composer(cell, "prior", **tilted),
            OURS: lambda: self.plan(cell),
            LEARNING: lambda: self.plan(cell, like=self.view()),
            "plan, tuned": lambda: self.plan(cell, **self.best("plan", self.plan, PLANS)),
            "plan, equal weights": lambda: self.equal(cell),
            "plan, weights of the gate": lambda: self.plan(cell, gate="equilibrium"),
            "plan by gradient": lambda: self.plan(cell, by="gradient", free=self.ahead["steps"], knots=8, noise=0.1),
            "commitment": lambda: self.plan(cell, Commitment),
            "MPPI": lambda: self.mppi(cell),
            "MPPI, tuned": lambda: self.mppi(cell, **self.best("MPPI", self.mppi, MPPIS)),
            "gradient on actions": lambda: self.gradient(cell),
            "gradient, tuned": lambda: self.gradient(cell, **self.best("gradient", self.gradient, GRADIENTS)),
            "by hand": lambda: self.bench.task.hand[self.hand],
        }


ROBUST = ("composed", "posterior", OURS, LEARNING, "MPPI", "gradient on actions", "by hand")  # with a wrong mass too
ABLATIONS = (
    "cheapest", "MPPI, tuned", "gradient, tuned", "plan, tuned", "posterior, fixed weights", "plan, equal weights",
    "posterior, its own gate", "commitment", "plan by gradient", "plan, weights of the gate",
)  # fmt: skip


def middle(costs: np.ndarray) -> str:
    """The median with its 95% interval, from order statistics."""
    ordered, n = np.sort(costs), len(costs)
    low, high = int(binom.ppf(0.025, n, 0.5)), int(binom.ppf(0.975, n, 0.5))
    return f"{np.median(costs):.1f} ({ordered[max(low - 1, 0)]:.1f} to {ordered[min(high, n - 1)]:.1f})"


def share(ours: np.ndarray, theirs: np.ndarray) -> str:
    """The ratio of medians, and the share of episodes in which the plan costs less, with Wilson's interval."""
    ours = ours[: len(theirs)]
    won, low, high = duel(ours, theirs)["wins"]
    return f"{np.median(ours) / np.median(theirs):.2f}, {won:.0%} ({low:.0%} to {high:.0%})"


def measure(folder: Path, seeds: int, few: int) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Costs by what is wrong with the model, agent and task, as far as the minutes allow."""
    found: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    arenas = {name: Arena(name, folder) for name in NAMES}
    fresh, fewer = range(FRESH, FRESH + seeds), range(FRESH, FRESH + few)
    parts = [("", USUAL, fresh, ROBUST + ABLATIONS)]
    parts += [(f"mass x {mass}", USUAL._replace(mass=mass), fewer, ROBUST) for mass in MASSES]
    with suppress(TimeoutError):
        for wrong, cell, episodes, agents in parts:  # what matters most first
            for who, name in product(agents, NAMES):
                costs = arenas[name].costs(f"{who} {wrong}".strip(), arenas[name].agents(cell)[who], episodes)
                found.setdefault(wrong, {}).setdefault(who, {})[name] = costs
    order = list(arenas[NAMES[0]].agents(USUAL))
    return {wrong: {who: told[who] for who in order if who in told} for wrong, told in found.items()}


def tables(found: dict[str, dict[str, dict[str, np.ndarray]]], out: Path) -> None:
    """The tables of the page and of the record; what was not played stays as the file has it."""
    usual = found[""]
    counts = {who: min(costs.shape[1] for costs in told.values()) for who, told in usual.items()}
    before = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}

    def table(name: str, agents: dict[str, dict[str, np.ndarray]], cell: Callable[[str, str], str]) -> None:
        old = before.get(name, {"columns": {}, "rows": []})
        kept = {row[0]: dict(zip(old["columns"], row, strict=True)) for row in old["rows"]}
        rows = []
        for who in {**kept, **agents}:
            played = {task: cell(who, task) for task in agents.get(who, ())}
            rows.append([who, *({task: kept.get(who, {}).get(task, "") for task in NAMES} | played).values()])
            if name == "costs":
                rows[-1].append(min(counts.get(who, np.inf), kept.get(who, {}).get("episodes", np.inf)))
        keep(out, name, COMMAND, titles | ({"episodes": "d"} if name == "costs" else {}), rows)

    titles = {"agent": "s", **dict.fromkeys(NAMES, "s")}
    table("costs", usual, lambda who, name: middle(usual[who][name][0]))
    table("medians", usual, lambda who, name: f"{np.median(usual[who][name][0]):.1f}")
    paired = {
        who: {name: costs for name, costs in told.items() if name in usual[OURS]}
        for who, told in usual.items() if who != OURS
    }  # fmt: skip
    table("paired", paired, lambda who, name: share(usual[OURS][name][0], usual[who][name][0]))
    wrong = {f"{who}, {cell}": told for cell, agents in found.items() if cell for who, told in agents.items()}
    table("mass", wrong, lambda who, name: middle(wrong[who][name][0]))
    timed = {who: told for who, told in usual.items() if counts[who] > BATCH}  # the first batch compiles
    table("speed", timed, lambda who, name: f"{np.median(usual[who][name][2][BATCH:]):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="fresh episodes")
    parser.add_argument("--fewer", type=int, default=200, help="of them, for wrong models")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time")
    parser.add_argument("--folder", type=Path, default=Path("build/plan"))
    parser.add_argument("--out", type=Path, default=Path("build/plan.json"))
    told = parser.parse_args()
    keep_programs()
    jax.config.update("jax_enable_x64", True)
    BEFORE.append(time.time() + 60 * told.minutes)
    tables(measure(told.folder, told.seeds, told.fewer), told.out)


if __name__ == "__main__":
    main()
