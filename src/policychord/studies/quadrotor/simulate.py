"""Flights: every controller of an experiment through the same weather, a thousand seeds in one call each."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...agent import Composer
from ...envs.quadrotor import Quadrotor, seen
from ...loops.rollout import rollout
from .parts import FIXED, Pilot, composer, pilot, world
from .settings import Composition, Experiment, QuadrotorSettings

ALONE = ("baseline", "stabilise", "track")
SHOWN = 16  # episodes of which the whole flight is kept
BATCH = 100  # episodes at once: few enough for the processor's cache, and any number of seeds is one compiled program


class Flight(NamedTuple):
    """What one controller did in all episodes."""

    cost: Float[np.ndarray, " episode"]  # total, as the paper counts it
    distance: Float[np.ndarray, "episode sample"]  # from the path's row, in metres
    stabilising: Float[np.ndarray, "episode time"]  # weight of the stabilising primitive (1 for a controller alone)
    impulse_time: Int[np.ndarray, " episode"]
    states: Float[np.ndarray, "shown sample 6"]  # as seen, of the first episodes


# a name -> how it composes; None: a controller alone or the fixed mixture
Roster = Mapping[str, Composition | None]


def roster(settings: QuadrotorSettings) -> dict[str, Composition | None]:
    """All that are compared: the controllers alone, compositions of the primitives, and a fixed mixture."""
    given = settings.composition
    mean = given.model_copy(update={"selection": "mean"})
    wide = mean.model_copy(update={"margin": settings.wide_margin})
    ahead = wide.model_copy(update={"horizon": "cost-to-go"})
    return dict.fromkeys(ALONE) | {
        "equilibrium, sample": given.model_copy(update={"selection": "sample"}),
        "equilibrium, sample, wide": given.model_copy(update={"selection": "sample", "margin": settings.wide_margin}),
        "equilibrium, dither": given.model_copy(update={"selection": "dither"}),
        "equilibrium, mean": mean,
        "equilibrium, mean, wide": wide,
        # the scripts apply the primitives' own means, and on the wide grid a primitive's mean is its own
        "one-step gate": wide.model_copy(update={"gate": "one-step"}),
        FIXED: None,
        "cost-to-go": ahead,
        "cost-to-go, warm": ahead.model_copy(update={"eps": settings.warm_eps}),
    }


def fly(settings: QuadrotorSettings, experiment: Experiment, name: str, how: Composition | None) -> Flight:
    """One controller in every episode. Disturbances depend on the seed, the episode and the step only."""
    agent, env = ready(settings, experiment, name, how)
    size = min(settings.seeds, BATCH)
    # the last batch is as long as the others, and cut
    batches = [fly_episodes(settings, agent, env, range(k, k + size)) for k in range(0, settings.seeds, size)]
    whole = Flight(*(np.concatenate(parts)[: settings.seeds] for parts in zip(*batches, strict=True)))
    return whole._replace(states=whole.states[:SHOWN].copy())


def ready(
    settings: QuadrotorSettings, experiment: Experiment, name: str, how: Composition | None
) -> tuple[Composer | Pilot, Quadrotor]:
    """Who flies, and where."""
    if how is not None and how.selection == "sample":
        # a sampled thrust has the actuators' noise in it already: that is what the primitives' spread stands for
        env = world(settings.model_copy(update={"thrust_sd": 0.0}), experiment)
    else:
        env = world(settings, experiment)
    agent = pilot(settings, experiment, name) if how is None else composer(settings, experiment, how)
    return agent, env


def fly_episodes(settings: QuadrotorSettings, agent, env: Quadrotor, episodes: Sequence[int]) -> Flight:
    """Episodes by number, all at once, each with its whole flight."""
    trace = rollout(agent, env, steps=settings.steps, episodes=episodes, seed=settings.seed)
    states = _all_states(trace.state, trace.final_state)
    path = np.asarray(env.path)[: settings.steps + 1]
    return Flight(
        cost=-np.asarray(trace.total_reward),
        distance=np.hypot(states[..., 0] - path[:, 0], states[..., 2] - path[:, 2]),
        stabilising=np.asarray(trace.weights)[..., 0],
        impulse_time=np.asarray(trace.final_state.impulse_time),
        states=states,
    )


def programs(who: Roster) -> dict[str, list[str]]:
    """Names by what has to be compiled for them: those that differ in numbers only share a program."""
    found: dict[str, list[str]] = {}
    for name, how in who.items():
        key = "fixed weights" if how is None else f"{how.gate}, {how.selection}, {how.points} points"
        found.setdefault(key, []).append(name)
    return found


def fly_all(settings: QuadrotorSettings, experiment: Experiment, who: Roster | None = None) -> dict[str, Flight]:
    """Every controller of a roster. Those that share a program take turns, the others fly side by side."""
    who = roster(settings) if who is None else who

    def in_turn(names: Sequence[str]) -> dict[str, Flight]:
        return {name: fly(settings, experiment, name, who[name]) for name in names}

    longest_first = sorted(programs(who).values(), key=lambda names: -sum(who[name] is not None for name in names))
    with ThreadPoolExecutor(2) as pool:  # two at once: one compiles while the other flies
        found = {name: flight for some in pool.map(in_turn, longest_first) for name, flight in some.items()}
    return {name: found[name] for name in who}


@jax.jit
def _seen(states):
    return jax.vmap(jax.vmap(seen))(states)


def _all_states(before, final) -> Float[np.ndarray, "episode sample 6"]:
    last = jax.tree.map(lambda a: jnp.asarray(a)[:, None], final)
    return np.concatenate([np.asarray(_seen(before)), np.asarray(_seen(last))], axis=1)
