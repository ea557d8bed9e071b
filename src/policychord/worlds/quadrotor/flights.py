"""Flights of the planar drone: a controller in every episode, several controllers side by side."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from ...agent import Agent
from ...loops.rollout import rollout
from .agents import agent_and_world
from .physics import Quadrotor, QuadrotorState, seen
from .settings import CompositionSettings, Experiment, QuadrotorSettings

SHOWN = 16  # episodes of which the whole flight is kept
BATCH = 100  # episodes at once: few enough for the processor's cache, and any number of seeds is one compiled program


class Flight(NamedTuple):
    """What one controller did in all episodes."""

    cost: Float[np.ndarray, " episode"]  # total, as the paper counts it
    distance: Float[np.ndarray, "episode sample"]  # from the path's row, in metres
    stabilising: Float[np.ndarray, "episode time"]  # weight of the stabilising primitive (1 for a controller alone)
    impulse_time: Int[np.ndarray, " episode"]
    states: Float[np.ndarray, "shown sample 6"]  # as seen, of the first episodes


Flights = Mapping[str, Flight]  # by controller


def fly_controller(
    settings: QuadrotorSettings, experiment: Experiment, name: str, how: CompositionSettings | None
) -> Flight:
    """One controller in every episode. Disturbances depend on the seed, the episode and the step only."""
    agent, env = agent_and_world(settings, experiment, name, how)
    size = min(settings.seeds, BATCH)
    # the last batch is as long as the others, and cut
    batches = [fly_episodes(settings, agent, env, range(k, k + size)) for k in range(0, settings.seeds, size)]
    whole = Flight(*(np.concatenate(parts)[: settings.seeds] for parts in zip(*batches, strict=True)))
    return whole._replace(states=whole.states[:SHOWN].copy())


def fly_episodes(settings: QuadrotorSettings, agent: Agent, env: Quadrotor, episodes: Sequence[int]) -> Flight:
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


@jax.jit
def _seen(states: QuadrotorState) -> jax.Array:
    return jax.vmap(jax.vmap(seen))(states)


def _all_states(before: QuadrotorState, final: QuadrotorState) -> Float[np.ndarray, "episode sample 6"]:
    last = jax.tree.map(lambda a: jnp.asarray(a)[:, None], final)
    return np.concatenate([np.asarray(_seen(before)), np.asarray(_seen(last))], axis=1)


def program(how: CompositionSettings | None) -> str:
    """What has to be compiled: those that differ in numbers only share a program."""
    return "fixed weights" if how is None else f"{how.gate}, {how.selection}, {how.points} points"


def dataset(settings: QuadrotorSettings, flights: Flights) -> xr.Dataset:
    """Costs, distances and weights of all controllers, and whole states of the first episodes."""
    dims = ("controller", "episode")

    def stacked(field: str) -> np.ndarray:
        return np.stack([getattr(flight, field) for flight in flights.values()])

    states = stacked("states")
    variables = {
        "cost": (dims, stacked("cost"), {"long_name": "total cost of the episode", "units": "1"}),
        "distance": ((*dims, "sample"), stacked("distance").astype("float32"), {"units": "m"}),
        "stabilising": ((*dims, "time"), stacked("stabilising").astype("float32"), {"units": "1"}),
        "impulse_time": (("episode",), next(iter(flights.values())).impulse_time, {"units": "decisions"}),
        "state": (("controller", "shown_episode", "sample", "component"), states, {"units": "m, m/s, rad, rad/s"}),
    }
    names = ["x", "vx", "z", "vz", "pitch", "pitch_rate"]
    coordinates = {"controller": list(flights), "component": names, "shown_episode": np.arange(states.shape[1])}
    return xr.Dataset(variables, coords=coordinates, attrs={"settings": settings.model_dump_json()})
