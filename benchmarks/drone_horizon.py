"""What a horizon of rollouts gives the drone's PD pair, beside PID, the fixed mixture and the Riccati cost-to-go.

python -m benchmarks.drone_horizon --seeds 200 --out build/drone_horizon.json

Settings are chosen in episodes 0 to 49 of the stale-point world, by the lowest median cost, and then flown in fresh
episodes (from 1000) of both worlds. Delta is Cliff's, of costs against PID's: negative is better than PID.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from policychord import Composer, rollout
from policychord._types import Time
from policychord.actions import Sampled
from policychord.envs.quadrotor import HOVER, LARGEST_THRUST, LEAST_THRUST, QuadrotorView
from policychord.models import Cost, Rollouts
from policychord.primitives import Gaussian
from policychord.runs.compiled import keep_programs
from policychord.stats.effect_size import effect_size
from policychord.studies.quadrotor.agents import (
    FIXED,
    Within,
    agent_and_world,
    controllers,
    hover_model,
    roster,
    world,
)
from policychord.studies.quadrotor.experiments import WORLDS
from policychord.studies.quadrotor.settings import QuadrotorSettings

TRIED, FRESH, BATCH = range(50), 1000, 50  # episodes that settings are chosen in, the first of the others, at once
RIVALS = {"PID": "baseline", "stabilise": "stabilise", "track": "track", FIXED: FIXED, "Riccati": "cost-to-go"}


class Chosen(NamedTuple):
    """What is chosen before the fresh episodes."""

    steps: int
    follow: Any
    eps: float


CANDIDATES = [Chosen(*one) for one in product((15, 30), ("each", "prior"), (0.05, 0.5))]


def composed(settings: QuadrotorSettings, chosen: Chosen, count: int = 32) -> Composer:
    """The PD pair with a cost-to-go from its own rollouts in the linear model near hover."""
    flown = controllers(settings, "pd")
    path, (A, B) = flown["track"].path, map(jnp.asarray, hover_model())
    weights = jnp.asarray(settings.cost.state)

    def predict(view: QuadrotorView, thrust: Any, k: Time) -> QuadrotorView:
        return QuadrotorView(A @ view.x + B @ (thrust - HOVER), view.x[4])

    def effort(view: QuadrotorView, thrust: Any, k: Time) -> Any:
        return settings.cost.thrust * jnp.sum((thrust - HOVER) ** 2)

    def stage(view: QuadrotorView, thrust: Any, k: Time) -> Any:
        off = view.x - path[jnp.minimum(k, len(path) - 1)]
        return jnp.sum(weights * off**2) + effort(view, thrust, k)

    pair = {name: Gaussian(Within(flown[name]), settings.composition.spread) for name in ("stabilise", "track")}
    actions = Sampled([LEAST_THRUST] * 2, [LARGEST_THRUST] * 2, count=count)
    later = Rollouts(pair, actions, predict, stage, steps=chosen.steps, follow=chosen.follow)
    model = Cost(effort, predict=predict, cost_to_go=later)
    return Composer(pair, model, actions, chosen.eps, selection="mean")


def costs(agent: Any, settings: QuadrotorSettings, episodes: range) -> np.ndarray:
    """The cost of every episode."""
    env, found = world(settings, "pd"), []
    for first in range(episodes.start, episodes.stop, BATCH):
        some = range(first, min(first + BATCH, episodes.stop))
        found.append(-np.asarray(rollout(agent, env, steps=settings.steps, episodes=some).total_reward))
    return np.concatenate(found)


def choose(settings: QuadrotorSettings, episodes: range) -> tuple[Chosen, dict[str, float]]:
    """The candidate with the lowest median, and the medians of all."""
    medians = {one: float(np.median(costs(composed(settings, one), settings, episodes))) for one in CANDIDATES}
    for one, median in medians.items():
        print(f"chosen from: {one.steps:>3} steps, follow {one.follow:<5}, eps {one.eps:<5g} median {median:.1f}")
    return min(medians, key=lambda one: medians[one]), {str(tuple(one)): value for one, value in medians.items()}


def compare(settings: QuadrotorSettings, chosen: Chosen, seeds: int) -> dict[str, dict[str, float]]:
    """Everybody in the same fresh episodes of one world."""
    fresh = range(FRESH, FRESH + seeds)
    agents = {name: agent_and_world(settings, "pd", key, roster(settings)[key])[0] for name, key in RIVALS.items()}
    agents["rollouts"] = composed(settings, chosen)
    found = {name: costs(agent, settings, fresh) for name, agent in agents.items()}
    table = {}
    for name, values in found.items():
        effect = effect_size(values, found["PID"], paired=True)
        wins = {"wins of rollouts": int(np.sum(found["rollouts"] < values))}
        table[name] = {"median": float(np.median(values)), **effect._asdict(), **wins}
        print(
            f"{settings.disturbance:<12} {name:<12} median {np.median(values):7.1f}  delta against PID "
            f"{effect.delta:+.3f}  rollouts cost less in {wins['wins of rollouts']} of {seeds}"
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
    chosen, medians = choose(settings, range(told.tried))
    print(f"chosen: {chosen}")
    tables = {
        where: compare(settings.model_copy(update={"disturbance": where}), chosen, told.seeds) for where in WORLDS
    }
    told.out.parent.mkdir(parents=True, exist_ok=True)
    told.out.write_text(json.dumps({"chosen": chosen._asdict(), "medians": medians, "worlds": tables}, indent=1))


if __name__ == "__main__":
    main()
