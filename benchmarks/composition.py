"""When does composition pay? Five tasks, eight factors, five rivals, in the same episodes: the record of the page.

python -m benchmarks.composition --minutes 30 --out docs/explanation/composition.json

For every task what rollouts follow, the composition's temperature, the planner's settings, the best primitive, the
best fixed mixture and the best rule by hand are chosen in episodes 0 to 49, by the lowest median cost; what is reported
are episodes from 1000 on. With a factor that is not as usual, only the best primitive, mixture and rule are
chosen anew. An episode that ended early (a crash) counts as dearer than all others. What was played is kept in
build/composition: the same command goes on where it was stopped, or where its minutes were over.
"""

import argparse
import datetime
import json
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.composition_tasks import TASKS, Alone, Task
from benchmarks.flight import Blend
from policychord import Composer, Planner, rivals
from policychord.effect_size import cliffs_delta, effect_size
from policychord.loops.step import begin, step, streams_of
from policychord.models import Cost, Rollouts
from policychord.primitives import Gaussian
from policychord.runs.compiled import keep_programs

CHOSEN_IN, FRESH, BATCH = range(50), 1000, 50  # episodes of choices, the first of those reported, and how many at once
EPS, NATS = (0.05, 0.5), (1.0, 10.0, 100.0, 1000.0)
FOLLOWED = 6  # mixtures at random that rollouts may follow, beside each primitive, equal weights, the best fixed one
NOISE, WARMTH = (0.1, 0.3, 0.6), (0.15, 0.5, 1.5)
LATEST = 2  # decisions by which a command may be late
CRASHED = 1e6  # what an episode counts that ended early: more than any that did not
MIXTURES = 100  # that are tried at random, and then again around the best
ONCE = {"planar drone, centre": "planar drone"}  # no factor is varied, and settings are those of another task
TARGETS = (-0.8, -0.3)  # deltas for which the factors are recorded that would give them
BEFORE: list[float] = []  # when to stop


class Cell(NamedTuple):
    """What is not as usual."""

    gains: float = 1.0  # times those of all primitives
    horizon: float = 1.0  # times the task's own
    mass: float = 1.0  # of the model, in true ones
    drag: float = 0.0  # 1/s that the model adds
    delay: int = 0  # decisions by which every command is late, which no model knows
    count: int = 0  # how many primitives; zero is the task's own number
    temperature: float = 1.0  # times the chosen one
    selection: str = "mean"


USUAL = Cell()
# those first that need no other program
FACTORS = {
    "temperature": (0.1, 10.0, 100.0), "mass": (0.7, 1.4), "drag": (1.0,), "delay": (2,), "gains": (0.5, 2.0),
    "horizon": (0.2, 2.0), "selection": ("mode", "sample"), "count": (2, 4, 8),
}  # fmt: skip


class Late(eqx.Module):
    """An agent whose commands arrive some decisions later than they are made."""

    agent: Any
    delay: Any
    rest: Any

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.agent.names)

    def start(self) -> Any:
        return self.agent.start(), jnp.tile(self.rest, (LATEST, 1))

    def decide(self, key: Any, view: Any, k: Any, memory: Any) -> Any:
        inner, waiting = memory
        made = self.agent.decide(key, view, k, inner)
        waiting = jnp.concatenate([waiting, made.action[None]])
        return made._replace(action=waiting[LATEST - self.delay], memory=(made.memory, waiting[1:]))


@eqx.filter_jit
def play(agent: Any, env: Any, steps: int, numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What each of these episodes costs, and whether it ended early."""

    def episode(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        streams = streams_of(jax.random.key(0), number)

        def one(carry: Any, k: Any) -> Any:
            carry, record = step(agent, env, streams, carry, k)
            return carry, record.reward

        last, rewards = jax.lax.scan(one, begin(agent, env, streams), jnp.arange(steps))
        return -jnp.sum(rewards), ~last.alive

    return jax.vmap(episode)(numbers)


@eqx.filter_jit
def medians_of(late: Late, env: Any, steps: int, numbers: jax.Array) -> jax.Array:
    """The median cost of these episodes with each of many fixed mixtures, the rows of the agent's weights."""

    def one(weights: jax.Array) -> jax.Array:
        cost, ended = play(eqx.tree_at(lambda a: a.agent.weights, late, weights), env, steps, numbers)
        return jnp.median(jnp.where(ended, CRASHED, cost))

    return jax.lax.map(one, late.agent.weights)


class Bench(NamedTuple):
    """A task, and the folder with what was played of it."""

    task: Task
    folder: Path

    def kept(self, name: str, make: Callable[[], Any]) -> np.ndarray:
        """An array under this name: from the folder, or made now."""
        file = self.folder / f"{name}.npy"
        if not file.exists():
            if time.time() > BEFORE[0]:
                raise TimeoutError
            began = time.process_time()
            made = np.asarray(make())
            self.folder.mkdir(parents=True, exist_ok=True)
            np.save(file.with_suffix(".part.npy"), made)
            file.with_suffix(".part.npy").rename(file)
            said = f"median {np.median(made[0]):.1f}" if made.ndim == 2 else ""
            print(f"{self.folder.name}: {name} {said} ({time.process_time() - began:.1f} s)", flush=True)
        return np.load(file)

    def costs(self, name: str, agent: Callable[[], Any], cell: Cell, episodes: range) -> np.ndarray:
        """The cost of every episode, and which ended early: two rows."""

        def make() -> np.ndarray:
            late = Late(agent(), jnp.asarray(cell.delay), self.task.rest)
            some = [episodes[i : i + BATCH] for i in range(0, len(episodes), BATCH)]
            found = [play(late, self.task.env, self.task.steps, jnp.asarray(list(one))) for one in some]
            cost, ended = (np.concatenate([np.asarray(one[i]) for one in found]) for i in range(2))
            return np.stack([np.where(ended, CRASHED, cost), ended.astype(float)])

        return self.kept(f"{name} {episodes.start}-{episodes.stop}", make)

    def controllers(self, cell: Cell) -> dict[str, Any]:
        """The primitives' commands."""
        names = list(self.task.controllers)[: cell.count or self.task.usual]
        return {name: self.task.weaker(self.task.controllers[name], jnp.asarray(cell.gains)) for name in names}

    def steps(self, cell: Cell) -> int:
        return max(1, round(self.task.horizon * cell.horizon))

    def composer(self, cell: Cell, follow: str, eps: float, nats: float, gate: str) -> Composer:
        task = self.task
        numbers = (jnp.asarray(number) for number in (nats / cell.temperature, cell.mass, cell.drag))
        parts = {name: Gaussian(one, task.spread, outside=task.outside) for name, one in self.controllers(cell).items()}
        model = task.model(*numbers)
        followed = parts
        if follow != "each":
            blend = Blend(tuple(self.controllers(cell).values()), jnp.asarray(weights_of(follow, len(parts))))
            followed = {"mixture": Gaussian(blend, task.spread, outside=task.outside)}
        later = Rollouts(followed, task.actions, model.predict, model.stage, steps=self.steps(cell))
        price = Cost(model.stage, predict=model.predict, cost_to_go=later)
        return Composer(parts, price, task.actions, eps, selection=cell.selection, gate=gate)

    def planner(self, cell: Cell, follow: str, noise: float, warmth: float) -> Planner:
        """As many simulated steps as the composition takes."""
        task = self.task
        model = task.model(jnp.asarray(1.0), jnp.asarray(cell.mass), jnp.asarray(cell.drag))
        samples = task.actions.size * (len(self.controllers(cell)) if follow == "each" else 1)
        return rivals.mppi(
            task.actions, model.predict, model.stage, steps=self.steps(cell) + 1, samples=samples,
            noise=jnp.asarray(noise), temperature=jnp.asarray(warmth), nominal=task.rest,
        )  # fmt: skip

    def gate(self, cell: Cell, episodes: range, follow: str, eps: float, nats: float) -> np.ndarray:
        """The composition."""
        name = f"equilibrium {named(cell)} eps {eps:g} nats {nats:g}{after(follow)}"
        return self.costs(name, lambda: self.composer(cell, follow, eps, nats, "equilibrium"), cell, episodes)

    def cheapest(self, cell: Cell, episodes: range, follow: str) -> np.ndarray:
        """The primitive with the cheapest rollouts: it has no temperature, and acts by its mean."""
        cell = cell._replace(temperature=1.0, selection="mean")
        return self.costs(
            f"cheapest {named(cell)}{after(follow)}",
            lambda: self.composer(cell, follow, 0.5, 100.0, "cheapest"),
            cell,
            episodes,
        )

    def plan(self, cell: Cell, episodes: range, follow: str, noise: float, warmth: float) -> np.ndarray:
        cell = cell._replace(gains=1.0, temperature=1.0, selection="mean")
        if follow != "each":
            cell = cell._replace(count=0)  # more primitives take no more steps
        name = f"mppi {named(cell)} noise {noise:g} warmth {warmth:g}{after(follow)}"
        return self.costs(name, lambda: self.planner(cell, follow, noise, warmth), cell, episodes)

    def alone(self, cell: Cell, episodes: range) -> dict[str, np.ndarray]:
        """Each primitive."""
        cell = Cell(gains=cell.gains, delay=cell.delay, count=cell.count)
        return {
            name: self.costs(f"alone {name} {named(cell._replace(count=0))}", lambda c=one: only(c), cell, episodes)
            for name, one in self.controllers(cell).items()
        }

    def hand(self, cell: Cell, episodes: range) -> dict[str, np.ndarray]:
        """Each rule by hand."""
        cell = Cell(delay=cell.delay)
        return {
            name: self.costs(f"hand {name} {named(cell)}", lambda a=one: a, cell, episodes)
            for name, one in self.task.hand.items()
        }

    def weights(self, cell: Cell) -> np.ndarray:
        """Of the fixed mixture that is best in the episodes of choices."""
        cell = Cell(gains=cell.gains, delay=cell.delay, count=cell.count or self.task.usual)
        parts = tuple(self.controllers(cell).values())
        episodes = jnp.asarray(list(CHOSEN_IN)[::2])

        def medians(tried: np.ndarray) -> jax.Array:
            late = Late(Alone(parts, jnp.asarray(tried)), jnp.asarray(cell.delay), self.task.rest)
            return medians_of(late, self.task.env, self.task.steps, episodes)

        def make() -> np.ndarray:
            rng = np.random.default_rng(0)
            n = len(parts)
            tried = np.concatenate([np.eye(n), np.full((1, n), 1 / n), rng.dirichlet(np.full(n, 0.7), MIXTURES)])
            best = tried[int(jnp.argmin(medians(tried)))]
            near = np.abs(best + rng.normal(0, 0.1, (MIXTURES, n)))
            tried = np.concatenate([best[None], near / near.sum(axis=1, keepdims=True)])
            return tried[int(jnp.argmin(medians(tried)))]

        return self.kept(f"weights {named(cell)}", make)

    def mixture(self, cell: Cell, episodes: range) -> np.ndarray:
        cell = Cell(gains=cell.gains, delay=cell.delay, count=cell.count or self.task.usual)
        weights = jnp.asarray(self.weights(cell))
        return self.costs(
            f"mixture {named(cell)}", lambda: Alone(tuple(self.controllers(cell).values()), weights), cell, episodes
        )


def after(follow: str) -> str:
    return "" if follow == "each" else f", follow {follow}"


def mixture_of(weights: np.ndarray) -> str:
    """The name of a mixture that rollouts follow: its weights in hundredths."""
    return " ".join(f"{weight:.2f}" for weight in weights)


def weights_of(follow: str, count: int) -> np.ndarray:
    """The weights that `mixture_of` names, with zeros or without the last ones where the primitives are others."""
    weights = np.array([float(word) for word in follow.split()])
    weights = np.pad(weights, (0, count))[:count]
    return weights / weights.sum() if weights.sum() > 0 else np.full(count, 1 / count)


def only(controller: Any) -> Alone:
    return Alone((controller,), jnp.ones(1))


def named(cell: Cell) -> str:
    """What is not as usual, in words."""
    changed = [f"{name} {value}" for name, value in cell._asdict().items() if value != getattr(USUAL, name)]
    return ", ".join(changed) or "usual"


def best(found: dict[Any, np.ndarray]) -> Any:
    """The name with the lowest median cost."""
    return min(found, key=lambda name: np.median(found[name][0]))


def choose(bench: Bench) -> dict[str, Any]:
    """What rollouts follow, the temperature, and the planner's settings, in the episodes of choices.

    First each primitive and the best fixed mixture are followed at all temperatures, then other mixtures at the best.
    The cheapest rollout chooses among the same for itself; the planner has the composition's budget.
    """
    n = bench.task.usual
    fixed = mixture_of(bench.weights(USUAL))
    random = np.random.default_rng(1).dirichlet(np.ones(n), FOLLOWED)
    mixtures = [fixed, *map(mixture_of, [*np.eye(n), np.full(n, 1 / n), *random])]
    composed = {told: bench.gate(USUAL, CHOSEN_IN, *told) for told in product(("each", fixed), EPS, NATS)}
    _, eps, nats = best(composed)
    composed |= {told: bench.gate(USUAL, CHOSEN_IN, *told) for told in product(mixtures, (eps,), (nats,))}
    follow, eps, nats = best(composed)
    cheapest = best({told: bench.cheapest(USUAL, CHOSEN_IN, told) for told in ("each", *mixtures)})
    noise, warmth = best({told: bench.plan(USUAL, CHOSEN_IN, follow, *told) for told in product(NOISE, WARMTH)})
    tried = {f"{f}, eps {e:g}, nats {n:g}": short(np.median(found[0])) for (f, e, n), found in composed.items()}
    chosen = {"follow": follow, "eps": eps, "nats": nats, "cheapest follows": cheapest}
    return {**chosen, "noise": noise, "warmth": warmth, "fixed": fixed, "tried": tried}


def compare(bench: Bench, chosen: dict[str, Any], cell: Cell, episodes: range) -> dict[str, Any]:
    """The composition and its rivals in the same fresh episodes."""
    ours = bench.gate(cell, episodes, chosen["follow"], chosen["eps"], chosen["nats"])
    primitive, rule = best(bench.alone(cell, CHOSEN_IN)), best(bench.hand(cell, CHOSEN_IN))
    weights = "/".join(f"{w:.2f}" for w in bench.weights(cell))
    rivals = {
        "best primitive": (primitive, bench.alone(cell, episodes)[primitive]),
        "best fixed mixture": (weights, bench.mixture(cell, episodes)),
        "cheapest rollout": ("", bench.cheapest(cell, episodes, chosen["cheapest follows"])),
        "MPPI": ("", bench.plan(cell, episodes, chosen["follow"], chosen["noise"], chosen["warmth"])),
        "best by hand": (rule, bench.hand(cell, episodes)[rule]),
    }
    if cell == USUAL and chosen["cheapest follows"] != "each":
        rivals["cheapest, each followed"] = ("", bench.cheapest(cell, episodes, "each"))
    judged = {name: {"who": who, **summary(costs), **duel(ours[0], costs[0])} for name, (who, costs) in rivals.items()}
    if cell == USUAL:
        for name, (_, costs) in rivals.items():
            judged[name]["factors"] = {str(delta): factor_for(delta, costs[0]) for delta in TARGETS}
    return {**summary(ours), "episodes": len(episodes), "rivals": judged}


def summary(costs: np.ndarray) -> dict[str, float]:
    low, median, high = np.quantile(costs[0], [0.25, 0.5, 0.75])
    return {"median": short(median), "quartiles": [short(low), short(high)], "crashes": int(costs[1].sum())}


def duel(ours: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """Cliff's delta (negative: ours costs less), and in which share of the episodes ours costs less (Wilson, 95%)."""
    effect = effect_size(ours, theirs, paired=True)
    n, share = len(ours), float(np.mean(ours < theirs) + np.mean(ours == theirs) / 2)
    z = 1.96
    middle, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    wins = [short((middle + sign * half) / (1 + z**2 / n)) for sign in (-1, 1)]
    delta = [short(effect.delta), short(effect.low), short(effect.high)]
    return {"delta": delta, "wins": [short(share), *wins]}


def factor_for(delta: float, costs: np.ndarray) -> float:
    """By which factor all costs would have to fall for this delta against what they are now: their spread in a number.

    cliffs_delta(c x, x) rises with c, from -1 at zero to 0 at one.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if cliffs_delta(middle * costs, costs) < delta else (low, middle)
    return short(high)


def short(number: float) -> float:
    return float(f"{number:.4g}")


def measure(name: str, folder: Path, seeds: int) -> tuple[Bench, dict[str, Any]]:
    """A task's part of the record, where all is as usual."""
    bench, source = Bench(TASKS[name](), folder / name), ONCE.get(name, name)
    chosen = choose(Bench(TASKS[source](), folder / source))
    primitives = list(bench.task.controllers)[: bench.task.usual]
    usual = compare(bench, chosen, USUAL, range(FRESH, FRESH + seeds))
    told = {"chosen": chosen, "horizon": bench.task.horizon, "primitives": primitives, "usual": usual, "cells": []}
    return bench, told


def vary(bench: Bench, told: dict[str, Any], factor: str, episodes: range) -> None:
    """Add the levels of one factor to a task's part of the record, all else as usual."""
    for level in FACTORS[factor]:
        if factor != "count" or level != bench.task.usual:
            found = compare(bench, told["chosen"], USUAL._replace(**{factor: level}), episodes)
            told["cells"].append({"factor": factor, "level": level, **found})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="fresh episodes, where all is as usual")
    parser.add_argument("--fewer", type=int, default=50, help="fresh episodes, for each level of a factor")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--factors", nargs="*", default=list(FACTORS), choices=list(FACTORS))
    parser.add_argument("--folder", type=Path, default=Path("build/composition"))
    parser.add_argument("--out", type=Path, default=None, help="the record, of what was played")
    told = parser.parse_args()
    keep_programs()
    jax.config.update("jax_enable_x64", True)
    BEFORE.append(time.time() + 60 * told.minutes)
    begun: dict[str, tuple[Bench, dict[str, Any]]] = {}
    for name in told.tasks:
        with suppress(TimeoutError):
            begun[name] = measure(name, told.folder, told.seeds)
    for factor, name in product(told.factors, begun):  # so that what there is after some minutes is there of all tasks
        if name not in ONCE:
            with suppress(TimeoutError):
                vary(*begun[name], factor, range(FRESH, FRESH + told.fewer))
    if time.time() > BEFORE[0]:
        print("The minutes are over: the same command goes on from here.")
    record = {
        "date": datetime.date.today().isoformat(),
        "jax": jax.__version__,
        "tasks": {name: begun[name][1] for name in TASKS if name in begun},
    }
    if told.out is not None:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text(
            json.dumps(record, indent=None, separators=(",", ":")).replace('{"factor"', '\n{"factor"') + "\n"
        )
        print(f"Wrote {told.out}.")


if __name__ == "__main__":
    main()
