"""Gymnasium and Stable-Baselines3: our environments for their agents, our agents for their environments.

Importing this module registers our environments: `gymnasium.make("policychord/Pendulum-v0")`.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from .actions import Finite
from .agent import Composer, Memory
from .envs.bandit import Bandit
from .envs.base import AbstractEnv, Box, Discrete, Variable
from .envs.pendulum import Pendulum
from .loops.rollout import AGENT, START, WEATHER, episode_numbers, stream, warn_if_not_converged
from .loops.trace import Labels, Trace

# Name -> (environment, steps of an episode). A new environment is a new line.
REGISTERED: dict[str, tuple[type[AbstractEnv], int]] = {
    "policychord/Bandit-v0": (Bandit, 10),
    "policychord/Pendulum-v0": (Pendulum, 200),
}


class GymEnv(gymnasium.Env):
    """One of our environments behind Gymnasium's interface; observations are its `signals` in float32."""

    def __init__(self, env: AbstractEnv, render_mode: str | None = None):
        self.env, self.render_mode, self.metadata = env, render_mode, {"render_modes": []}
        signals, action = env.spaces()
        self.observation_space = _space(signals)
        self.action_space = _space(action)
        self._move = eqx.filter_jit(
            lambda env, root, state, action, k: env.step(jax.random.fold_in(root, k), state, action, k)
        )
        self._state, self._root, self._k = None, None, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31))
        root = jax.random.key(number)
        self._state = self.env.reset(stream(root, 0, START))
        self._root, self._k = stream(root, 0, WEATHER), 0
        return self._observation(), {}

    def step(self, action):
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        step = self._move(self.env, self._root, self._state, jnp.asarray(action), self._k)
        self._state, self._k = step.state, self._k + 1
        return self._observation(), float(step.reward), bool(step.terminated), False, {}

    def _observation(self):
        return np.asarray(self.env.signals(self._state), dtype=self.observation_space.dtype)


def register() -> None:
    """Make our environments known to Gymnasium; again changes nothing."""
    for name, (kind, steps) in REGISTERED.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=_Maker(kind), max_episode_steps=steps)


class _Maker:
    """Builds an environment from Gymnasium's keyword arguments; those of the environment are its fields."""

    def __init__(self, kind: type[AbstractEnv]):
        self.kind = kind

    def __call__(self, render_mode: str | None = None, **fields) -> GymEnv:
        return GymEnv(self.kind(**fields), render_mode=render_mode)


def _space(space: Box | Discrete) -> gymnasium.Space:
    if isinstance(space, Discrete):
        return gymnasium.spaces.Discrete(space.size)
    return gymnasium.spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)


class PredictState(NamedTuple):
    """What a `Predictor` needs from its last call, for each environment of a batch."""

    memory: Memory
    k: jax.Array


class Predictor:
    """A Composer behind Stable-Baselines3's `predict`, so that anybody's `evaluate_policy` can run it.

    `observe(observation)` makes the state that the composer's parts expect; without it they get the observation, which
    has `ndim` axes. With `deterministic=True` an agent that samples takes the mean instead, or the most probable label.
    Gates and selections with a memory (`one-step`, `dither`), and parts that use k, need the state passed on from call
    to call.
    """

    def __init__(
        self, composer: Composer, observe: Callable[[Any], Any] | None = None, *, ndim: int = 1, seed: int = 0
    ):
        self.composer, self.observe, self.ndim = composer, observe, ndim
        self.certain = composer
        if composer.selection == "sample":
            self.certain = composer.replace(selection="mode" if _has_labels(composer) else "mean")
        self._root, self._calls = jax.random.key(seed), 0

    def predict(self, observation, state: PredictState | None = None, episode_start=None, deterministic: bool = False):
        """(action, state) for one observation, or (actions, state) for a batch of them."""
        observation = np.asarray(observation)
        if observation.ndim not in (self.ndim, self.ndim + 1):
            raise ValueError(
                f"observation has shape {observation.shape}: {self.ndim} axes for one, {self.ndim + 1} for a batch."
            )
        many = observation if observation.ndim > self.ndim else observation[None]
        agent = self.certain if deterministic else self.composer
        fresh = np.ones(len(many), bool) if state is None else np.zeros(len(many), bool)
        if episode_start is not None:
            fresh = fresh | np.asarray(episode_start, dtype=bool)
        state = _beginning(agent, len(many)) if state is None else state
        self._calls += 1
        decision, state = _predict(agent, self.observe, jax.random.fold_in(self._root, self._calls), many, state, fresh)
        action = np.asarray(decision.action)
        return (action if observation.ndim > self.ndim else action[0]), state


def _beginning(agent: Composer, count: int) -> PredictState:
    start = jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (count, *a.shape)), agent.start())
    return PredictState(start, jnp.zeros(count, dtype=int))


@eqx.filter_jit
def _predict(agent: Composer, observe, key, many, state: PredictState, fresh):
    start = agent.start()

    def one(i, observation, memory, k, fresh):
        memory = jax.tree_util.tree_map(lambda new, old: jnp.where(fresh, new, old), start, memory)
        k = jnp.where(fresh, 0, k)
        view = observation if observe is None else observe(observation)
        decision = agent.decide(jax.random.fold_in(key, i), view, k, memory)
        return decision, PredictState(decision.memory, k + 1)

    return jax.vmap(one)(jnp.arange(len(many)), many, *state, fresh)


class Observed(NamedTuple):
    """The state of somebody else's environment, as far as it shows."""

    observation: np.ndarray


def play(
    agent: Composer,
    env: str | Callable[[], gymnasium.Env],
    *,
    seeds: int | Iterable[int] = 1,
    steps: int | None = None,
    observe: Callable[[Any], Any] | None = None,
) -> Trace:
    """Run a Composer in any Gymnasium environment, one episode for each seed, all side by side.

    `env` is a registered name or a function that makes one. The composer's model predicts what an action will bring
    about; the environment says what it did. `observe(observation)` makes the state that the composer's parts expect.
    The same seed gives the same start and the same random numbers to every agent.
    """
    numbers = episode_numbers(seeds)
    make = (lambda: gymnasium.make(env)) if isinstance(env, str) else env
    worlds = [make() for _ in numbers]
    try:
        steps = _length(worlds[0], steps)
        to_env = _translator(agent, worlds[0].action_space)
        luck = jax.vmap(lambda number: stream(jax.random.key(0), number, AGENT))(jnp.asarray(numbers))
        seen = np.stack([world.reset(seed=int(number))[0] for world, number in zip(worlds, numbers, strict=True)])
        memory = _beginning(agent, len(worlds)).memory
        alive, records = np.ones(len(worlds), bool), []
        for k in range(steps):
            decision = _decide_all(agent, observe, luck, seen, jnp.asarray(k), memory)
            action, memory = np.asarray(decision.action), decision.memory
            record = (
                seen,
                action,
                *(np.asarray(a) for a in (decision.weights, *decision.certificate, decision.converged)),
            )
            seen, reward, over = seen.copy(), np.zeros(len(worlds)), np.zeros(len(worlds), bool)
            for i in np.flatnonzero(alive):
                seen[i], reward[i], terminated, truncated, _ = worlds[i].step(to_env(action[i]))
                over[i] = terminated or truncated
            records.append((*record, reward, alive))
            alive = alive & ~over
            if not alive.any():
                break
    finally:
        for world in worlds:
            world.close()
    before, action, weights, gap, distance, converged, reward, was_alive = (
        np.stack(column, axis=1) for column in zip(*records, strict=True)
    )
    variables = {"observation": Variable(tuple(f"signal_{i}" for i in range(seen.ndim - 1)))}
    trace = Trace(
        Observed(before), Observed(seen), action, weights, gap, distance, converged, reward, was_alive,
        log_prob=None, labels=Labels(agent.names, tuple(numbers.tolist()), variables),
    )  # fmt: skip
    warn_if_not_converged(trace)
    return trace


@eqx.filter_jit
def _decide_all(agent: Composer, observe, luck, seen, k, memory: Memory):
    def one(luck, observation, memory):
        view = observation if observe is None else observe(observation)
        return agent.decide(jax.random.fold_in(luck, k), view, k, memory)

    return jax.vmap(one)(luck, seen, memory)


def _has_labels(agent: Composer) -> bool:
    return isinstance(agent.actions, Finite) and agent.actions.labels


def _length(world: gymnasium.Env, steps: int | None) -> int:
    limit = None if world.spec is None else world.spec.max_episode_steps
    steps = limit if steps is None else steps
    if steps is None:
        raise ValueError("this environment has no step limit of its own: pass steps=...")
    if steps < 1:
        raise ValueError(f"steps = {steps}: pass at least 1.")
    return steps


def _translator(agent: Composer, space: gymnasium.Space) -> Callable[[np.ndarray], Any]:
    """From one of the composer's actions to one that the environment takes, or why there is none."""
    shape = agent.actions.points.shape[1:]
    if isinstance(space, gymnasium.spaces.Discrete):
        if not _has_labels(agent):
            raise ValueError(f"the environment takes {space}, so the composer needs labels: Finite({space.n}).")
        if agent.actions.size > space.n:
            raise ValueError(f"the composer has {agent.actions.size} actions, the environment takes {space}.")
        return lambda action: int(action) + int(space.start)
    if isinstance(space, gymnasium.spaces.Box) and int(np.prod(space.shape)) == int(np.prod(shape)):
        return lambda action: np.asarray(action).reshape(space.shape).astype(space.dtype)
    raise ValueError(f"the composer's actions have shape {shape}, but the environment takes {space}.")


register()
