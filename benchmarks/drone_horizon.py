"""What a horizon of rollouts gives the drone's PD pair, beside PID, the fixed mixture and the Riccati cost-to-go.

python -m benchmarks.drone_horizon --seeds 200 --out build/drone_horizon.json

Settings are chosen in episodes 0 to 49 of the stale-point world, by the lowest median cost, and then flown in fresh
episodes (from 1000) of both worlds. Delta is Cliff's, of costs against PID's: negative is better than PID. What decides
is `sharpness`, how many nats a unit of cost counts: with one, the costs of the two controllers hardly differ in nats,
and their entropies set the weights. The Riccati cost-to-go has the same choice.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from policychord import Composer, rollout
from policychord._types import Time
from policychord.actions import Sampled
from policychord.effect_size import effect_size
from policychord.models import Cost, Rollouts
from policychord.primitives import Gaussian
from policychord.runs.compiled import keep_programs
from policychord.worlds.quadrotor.agents import (
    FIXED,
    _hover_model,
    agent_and_world,
    composer,
    controllers,
    quadrotor_world,
    roster,
)
from policychord.worlds.quadrotor.physics import HOVER, LARGEST_THRUST, LEAST_THRUST, QuadrotorView
from policychord.worlds.quadrotor.settings import QuadrotorSettings
from policychord_paper.quadrotor.experiments import WORLDS

TRIED, FRESH, BATCH = range(50), 1000, 50  # episodes that settings are chosen in, the first of the others, at once
RIVALS = {"PID": "baseline", "stabilise": "stabilise", "track": "track", FIXED: FIXED, "Riccati": "cost-to-go"}
OURS = "rollouts"


class Chosen(NamedTuple):
    """What is chosen before the fresh episodes."""

    steps: int
    follow: Any
    sharpness: float  # nats for a unit of the task's cost


EPS, SHARPNESS = 0.05, (1.0, 10.0, 100.0)
CANDIDATES = [Chosen(*one) for one in product((15, 30), ("each", "prior"), SHARPNESS)]


class Hover(eqx.Module):
    """The linear model near hover."""

    A: Any
    B: Any

    def __call__(self, view: QuadrotorView, thrust: Any, k: Time) -> QuadrotorView:
        return QuadrotorView(self.A @ view.x + self.B @ (thrust - HOVER), view.x[4])


class Effort(eqx.Module):
    """What the task charges for the thrusts."""

    weight: Any

    def __call__(self, view: QuadrotorView, thrust: Any, k: Time) -> Any:
        return self.weight * jnp.sum((thrust - HOVER) ** 2)


class Stage(eqx.Module):
    """What the task charges for a step."""

    path: Any
    weights: Any
    effort: Effort

    def __call__(self, view: QuadrotorView, thrust: Any, k: Time) -> Any:
        off = view.x - self.path[jnp.minimum(k, len(self.path) - 1)]
        return jnp.sum(self.weights * off**2) + self.effort(view, thrust, k)


def composed(settings: QuadrotorSettings, chosen: Chosen, count: int = 32) -> Composer:
    """The PD pair with a cost-to-go from its own rollouts in the linear model near hover."""
    flown = controllers(settings, "pd")
    predict = Hover(*map(jnp.asarray, _hover_model()))
    effort = Effort(jnp.asarray(chosen.sharpness * settings.cost.thrust))
    stage = Stage(flown["track"].path, chosen.sharpness * jnp.asarray(settings.cost.state), effort)
    pair = {name: Gaussian(flown[name], settings.composition.spread) for name in ("stabilise", "track")}
    actions = Sampled([LEAST_THRUST] * 2, [LARGEST_THRUST] * 2, count=count)
    later = Rollouts(pair, actions, predict, stage, steps=chosen.steps, follow=chosen.follow)
    model = Cost(effort, predict=predict, cost_to_go=later)
    return Composer(pair, model, actions, EPS, selection="mean")


def by_riccati(settings: QuadrotorSettings, sharpness: float) -> Composer:
    """The study's agent with the Riccati cost-to-go, its cost as sharp as this."""
    agent = composer(settings, "pd", roster(settings)["cost-to-go"])
    sharper = jax.tree_util.tree_map(
        lambda a: sharpness * a, (lambda t: (t.M, t.slope, t.bend))(agent.model.action_cost)
    )
    return eqx.tree_at(
        lambda one: (one.model.action_cost.M, one.model.action_cost.slope, one.model.action_cost.bend), agent, sharper
    )


def costs(agent: Any, settings: QuadrotorSettings, episodes: range) -> np.ndarray:
    """The cost of every episode."""
    env, found = quadrotor_world(settings, "pd"), []
    for first in range(episodes.start, episodes.stop, BATCH):
        some = range(first, min(first + BATCH, episodes.stop))
        found.append(-np.asarray(rollout(agent, env, steps=settings.steps, episodes=some).total_reward))
    return np.concatenate(found)


def choose(settings: QuadrotorSettings, episodes: range) -> tuple[Chosen, float, dict[str, float]]:
    """The candidate with the lowest median, Riccati's sharpness by the same rule, and the medians of all."""
    medians: dict[Any, float] = {}
    for one in [*CANDIDATES, *SHARPNESS]:
        agent = composed(settings, one) if isinstance(one, Chosen) else by_riccati(settings, one)
        medians[one] = float(np.median(costs(agent, settings, episodes)))
        name = str(one) if isinstance(one, Chosen) else f"Riccati, sharpness {one:g}"
        print(f"tried: {name:<60} median {medians[one]:.1f}", flush=True)
    best, sharp = (min(some, key=lambda one: medians[one]) for some in (CANDIDATES, SHARPNESS))
    return best, sharp, {str(one): value for one, value in medians.items()}


def compare(settings: QuadrotorSettings, chosen: Chosen, sharp: float, seeds: int) -> dict[str, dict[str, float]]:
    """Everybody in the same fresh episodes of one world."""
    fresh = range(FRESH, FRESH + seeds)
    agents = {name: agent_and_world(settings, "pd", key, roster(settings)[key])[0] for name, key in RIVALS.items()}
    agents[f"Riccati, x{sharp:g}"] = by_riccati(settings, sharp)
    agents[OURS] = composed(settings, chosen)
    agents["cheapest"] = agents[OURS].replace(gate="cheapest")
    found = {name: costs(agent, settings, fresh) for name, agent in agents.items()}
    table = {}
    for name, values in found.items():
        effect = effect_size(values, found["PID"], paired=True)
        wins = int(np.sum(found[OURS] < values))
        table[name] = {"median": float(np.median(values)), **effect._asdict(), "wins of rollouts": wins}
        print(
            f"{settings.disturbance:<12} {name:<14} median {np.median(values):7.1f}  delta against PID "
            f"{effect.delta:+.3f} [{effect.low:+.3f}, {effect.high:+.3f}]  rollouts cost less in {wins} of {seeds}",
            flush=True,
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--tried", type=int, default=len(TRIED), help="episodes in which settings are chosen")
    parser.add_argument("--out", type=Path, default=Path("build/drone_horizon.json"))
    told = parser.parse_args()
    keep_programs()
    jax.config.update("jax_enable_x64", True)
    settings = QuadrotorSettings()
    chosen, sharp, medians = choose(settings, range(told.tried))
    print(f"chosen: {chosen}; Riccati, sharpness {sharp:g}")
    tables = {
        where: compare(settings.model_copy(update={"disturbance": where}), chosen, sharp, told.seeds)
        for where in WORLDS
    }
    told.out.parent.mkdir(parents=True, exist_ok=True)
    told.out.write_text(json.dumps({"chosen": chosen._asdict(), "medians": medians, "worlds": tables}, indent=1))


if __name__ == "__main__":
    main()
