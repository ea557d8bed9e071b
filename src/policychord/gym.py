"""Gymnasium and Stable-Baselines3: our environments for their agents, our agents for their environments.

Importing this module registers our environments: `gymnasium.make("policychord/Pendulum-v0", gravity=9.81)`. Programs
that do not import it say `gymnasium.make("policychord.gym:policychord/Pendulum-v0")`.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from ._types import Action, Array, ArrayLike, Observation, State, Time
from .actions import Finite
from .agent import Composer, Decision, Memory
from .envs.bandit import Bandit
from .envs.base import AbstractEnv, Box, Discrete, Step, Variable
from .envs.pendulum import Pendulum
from .envs.quadrotor import Quadrotor
from .loops.rollout import episode_numbers
from .loops.step import NO_STREAMS, Carry, Record, step, streams_of
from .loops.trace import Labels, Trace, complaints, trace_of

# Name -> (environment, steps of an episode). A new environment is a new line.
REGISTERED: dict[str, tuple[type[AbstractEnv], int]] = {
    "policychord/Bandit-v0": (Bandit, 10),
    "policychord/Pendulum-v0": (Pendulum, 200),
    "policychord/Quadrotor-v0": (Quadrotor, 300),
}

# Spaces whose members are one array of numbers.
ARRAYS = spaces.Box | spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete

Observe = Callable[[Any], Observation]  # from what the environment sends to what a composer's parts expect


class GymEnv(gymnasium.Env[np.ndarray, Any]):
    """One of our environments behind Gymnasium's interface; observations are its `signals` in float32.

    `reset(seed=s)` begins episode s of `rollout(agent, env, seed=0)`, with the same start and the same disturbances.
    Without a seed the number of the episode is drawn.
    """

    def __init__(self, env: AbstractEnv):
        self.env, self.metadata = env, {"render_modes": []}
        signals, action = env.spaces()
        self.observation_space = _space(signals)
        self.action_space = _space(action)
        self._state, self._episode, self._k = None, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # a seed too large to number an episode still seeds the generator that draws the number
        numbered = seed is not None and seed < 2**32
        self._episode = int(seed if numbered else self.np_random.integers(2**32))  # type: ignore[arg-type]
        self._state, seen = _begin(self.env, np.asarray(self._episode, dtype=np.uint32))
        self._k = 0
        return self._observation(seen), {}

    def step(self, action: Action) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        # as arrays, since JAX compiles anew for every plain number
        episode, k = np.asarray(self._episode, dtype=np.uint32), np.asarray(self._k)
        moved, seen = _move(self.env, episode, k, self._state, self._allowed(action))
        self._state, self._k = moved.state, self._k + 1
        return self._observation(seen), float(moved.reward), bool(moved.terminated), False, {}

    def _allowed(self, action: Action) -> np.ndarray:
        """The action as the physics takes it. JAX would take the nearest label for one that is not there."""
        values, space = np.asarray(action), self.action_space
        if isinstance(space, spaces.Discrete):
            if values.shape == () and values in space:
                return values
        elif values.shape == space.shape and np.all(np.isfinite(values)):
            return values.astype(float)  # float32 here would round the physics too
        raise ValueError(f"action = {action!r}: the environment takes {space}.")

    def _observation(self, seen: jax.Array) -> np.ndarray:
        return np.asarray(seen, dtype=self.observation_space.dtype)


# Keys are made inside from the episode's number, so that an environment in mid-episode can be pickled.
@eqx.filter_jit
def _begin(env: AbstractEnv, episode: ArrayLike) -> tuple[State, jax.Array]:
    state = env.reset(streams_of(jax.random.key(0), episode).start)
    return state, env.signals(state)


@eqx.filter_jit
def _move(env: AbstractEnv, episode: ArrayLike, k: Time, state: State, action: Action) -> tuple[Step, jax.Array]:
    streams = streams_of(jax.random.key(0), episode)
    moved = env.step(jax.random.fold_in(streams.environment, k), state, action, k)
    return moved, env.signals(moved.state)


def _space(space: Box | Discrete) -> gymnasium.Space[Any]:
    if isinstance(space, Discrete):
        return spaces.Discrete(space.size)
    return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)


def register() -> None:
    """Make our environments known to Gymnasium; again changes nothing."""
    for name, (_, steps) in REGISTERED.items():
        if name not in gymnasium.registry:
            # by words, not by objects, so that the registration can be stored and sent to other processes
            entry = f"{__name__}:_make"
            gymnasium.register(name, entry_point=entry, kwargs={"registered": name}, max_episode_steps=steps)


def _make(registered: str, render_mode: str | None = None, **settings: Any) -> GymEnv:
    """An environment from Gymnasium's keyword arguments, which are those of the environment's own class."""
    kind, _ = REGISTERED[registered]
    known = list(inspect.signature(kind).parameters)
    # TypeErrors, because Stable-Baselines3 asks for pictures first and on that error again without; Gymnasium goes on
    # with "was raised from the environment creator", hence no full stops
    if render_mode is not None:
        raise TypeError(f"render_mode = {render_mode!r}: {registered} draws no pictures, so leave it out")
    if unknown := sorted(set(settings) - set(known)):
        raise TypeError(f"{registered} has no setting {', '.join(unknown)}: it has {', '.join(known)}")
    return GymEnv(kind(**settings))


class PredictState(NamedTuple):
    """What a `Predictor` needs from its last call, for each environment of a batch."""

    memory: Memory
    k: jax.Array


class Predictor:
    """A Composer behind Stable-Baselines3's `predict`, so that anybody's `evaluate_policy` can run it.

    `observe(observation)`, written with jax.numpy, makes the state that the composer's parts expect; without it they
    get the observation, which has `ndim` axes. With `deterministic=True` nothing is drawn: an agent that samples takes
    the mean instead, or the most probable label. Gates and selections with a memory (`one-step`, `dither`), and parts
    that use k, need the state passed on from call to call.
    """

    def __init__(
        self, composer: Composer, observe: Callable[[Any], Any] | None = None, *, ndim: int = 1, seed: int = 0
    ):
        self.composer, self.observe, self.ndim = composer, observe, ndim
        self.certain = composer
        labels = _has_labels(composer)
        if composer.selection == "sample" or (composer.selection == "dither" and labels):
            self.certain = composer.replace(selection="mode" if labels else "mean")
        self._root, self._calls = jax.random.key(seed), 0

    def predict(
        self,
        observation: ArrayLike,
        state: PredictState | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, PredictState]:
        """(action, state) for one observation, or (actions, state) for a batch of them.

        Where `episode_start` is true the memory begins anew. Every call draws new random numbers.
        """
        seen = _numbers(observation)
        if seen.ndim not in (self.ndim, self.ndim + 1):
            raise ValueError(
                f"observation has shape {seen.shape}: one has {self.ndim} axes and a batch {self.ndim + 1}, or pass "
                "ndim=... to Predictor."
            )
        many = seen if seen.ndim > self.ndim else seen[None]
        agent = self.certain if deterministic else self.composer
        state = _beginning(agent, len(many)) if state is None else state
        if len(state.k) != len(many):
            raise ValueError(
                f"state remembers {len(state.k)} environments, but there are {len(many)} observations: pass the state "
                "of the last call with this batch, or None to begin."
            )
        fresh = np.broadcast_to(np.asarray(False if episode_start is None else episode_start, dtype=bool), len(many))
        self._calls += 1
        decision, state = _predict(agent, self.observe, jax.random.fold_in(self._root, self._calls), many, state, fresh)
        action = np.asarray(decision.action)
        told = (decision.outcome, decision.weights, decision.certificate.gap, np.ones(len(many), bool))
        for complaint, _ in complaints(agent.names, *told):
            warnings.warn(complaint + ". Look at the observation, or call composer.problem there.", stacklevel=2)
        return (action if seen.ndim > self.ndim else action[0]), state


def _beginning(agent: Composer, count: int) -> PredictState:
    start = jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (count, *a.shape)), agent.start())
    return PredictState(start, jnp.zeros(count, dtype=int))


@eqx.filter_jit
def _predict(
    agent: Composer, observe: Observe | None, key: jax.Array, many: Array, state: PredictState, fresh: Array
) -> tuple[Decision, PredictState]:
    start = agent.start()

    def one(i: Array, observation: Array, memory: Memory, k: Array, fresh: Array) -> tuple[Decision, PredictState]:
        memory = jax.tree_util.tree_map(lambda new, old: jnp.where(fresh, new, old), start, memory)
        k = jnp.where(fresh, 0, k)
        decision = agent.decide(jax.random.fold_in(key, i), _view(observe, observation), k, memory)
        return decision, PredictState(decision.memory, k + 1)

    return jax.vmap(one)(jnp.arange(len(many)), many, *state, fresh)


def _view(observe: Observe | None, observation: Array) -> Observation:
    """What the composer's parts see, in float64 like everything that is certified, though environments send less."""
    if jnp.issubdtype(observation.dtype, jnp.floating):
        observation = observation.astype(float)
    return observation if observe is None else observe(observation)


def _numbers(observation: ArrayLike) -> np.ndarray:
    values = np.asarray(observation)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"observation is a {type(observation).__name__}: one array of numbers is expected. Wrap the environment in "
            "gymnasium.wrappers.FlattenObservation."
        )
    return values


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
    about; the environment says what it did. `observe(observation)`, written with jax.numpy, makes the state that the
    composer's parts expect. The same seed gives the same start and the same random numbers to every agent.

    Labels are the environment's own; quantities beyond its limits are cut to them, as an actuator would. The trace
    ends with the longest episode, or after `steps`. However it ends, by an error or Ctrl-C too, all environments are
    closed.
    """
    numbers = episode_numbers(seeds, "seeds")
    with ExitStack() as closing:
        worlds = _open(env, len(numbers), closing)
        steps = _length(worlds[0], steps)
        to_env = _translator(agent, worlds[0].action_space)
        dtype = _dtype(worlds[0].observation_space)
        keys, memory = _start_all(agent, numbers)
        first = [world.reset(seed=int(number))[0] for world, number in zip(worlds, numbers, strict=True)]
        seen = np.stack([np.asarray(one, dtype=dtype) for one in first])
        everybody, all_worlds = _SideBySide(agent, observe, keys), _Worlds(worlds, to_env)
        carry, records = Carry(Observed(seen), memory, np.ones(len(worlds), bool)), []
        for k in range(steps):
            carry, record = step(everybody, all_worlds, NO_STREAMS, carry, np.asarray(k))
            records.append(record)
            if not carry.alive.any():
                break
    together = Record(*jax.tree_util.tree_map(lambda *column: np.stack(column, axis=1), *records))
    variables = {"observation": Variable(tuple(f"signal_{i}" for i in range(seen.ndim - 1)))}
    return trace_of(together, carry.state, Labels(agent.names, tuple(numbers.tolist()), variables))


class _SideBySide(NamedTuple):
    """One agent in several environments, each with a random stream of its own; it answers in NumPy."""

    agent: Composer
    to_observation: Observe | None
    keys: jax.Array

    def decide(self, key: None, seen: Array, k: Time, memory: Memory) -> Decision:
        decision = _decide_all(self.agent, self.to_observation, self.keys, seen, k, memory)
        # the memory stays where the next decision wants it
        action, weights, certificate, outcome = jax.tree_util.tree_map(np.asarray, decision[:-1])
        return Decision(action, weights, certificate, outcome, decision.memory)


class _Worlds:
    """Gymnasium environments as one of ours. Those that are over are not asked again."""

    def __init__(self, worlds: list[gymnasium.Env], to_env: Callable[[np.ndarray], Any]):
        self.worlds, self.to_env, self.over = worlds, to_env, np.zeros(len(worlds), bool)

    def observe(self, state: Observed) -> np.ndarray:
        return state.observation

    def step(self, key: None, state: Observed, action: np.ndarray, k: Time) -> Step:
        seen, reward = state.observation.copy(), np.zeros(len(self.worlds))
        for i in np.flatnonzero(~self.over):
            seen[i], reward[i], terminated, truncated, _ = self.worlds[i].step(self.to_env(action[i]))
            self.over[i] = terminated or truncated
        return Step(Observed(seen), reward, self.over.copy())


@eqx.filter_jit
def _start_all(agent: Composer, numbers: Array) -> tuple[jax.Array, Memory]:
    keys = jax.vmap(lambda number: streams_of(jax.random.key(0), number).agent)(jnp.asarray(numbers))
    return keys, _beginning(agent, len(numbers)).memory


@eqx.filter_jit
def _decide_all(
    agent: Composer, observe: Observe | None, keys: jax.Array, seen: Array, k: Time, memory: Memory
) -> Decision:
    def one(key: jax.Array, observation: Array, memory: Memory) -> Decision:
        return agent.decide(jax.random.fold_in(key, k), _view(observe, observation), k, memory)

    return jax.vmap(one)(keys, seen, memory)


def _open(env: str | Callable[[], gymnasium.Env], count: int, closing: ExitStack) -> list[gymnasium.Env]:
    """That many environments, each of which will be closed whatever happens to the others."""
    if not (isinstance(env, str) or callable(env)):
        raise ValueError(f"env is a {type(env).__name__}: pass a registered name, or a function that makes one.")
    worlds: list[gymnasium.Env] = []
    for _ in range(count):
        world = gymnasium.make(env) if isinstance(env, str) else env()
        if any(world is other for other in worlds):
            raise ValueError("env() gave the same environment twice: episodes run side by side, make one for each.")
        closing.callback(world.close)
        worlds.append(world)
    return worlds


def _length(world: gymnasium.Env, steps: int | None) -> int:
    limit = None if world.spec is None else world.spec.max_episode_steps
    steps = limit if steps is None else steps
    if steps is None:
        raise ValueError("steps is not given, and the environment's spec does not limit an episode: pass steps=...")
    if not (isinstance(steps, int | np.integer) and steps >= 1):
        raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
    return int(steps)


def _dtype(space: gymnasium.Space[Any]) -> Any:
    """Of the observations: some environments reset to other types than they step to."""
    if isinstance(space, ARRAYS):
        return space.dtype
    raise ValueError(
        f"the environment's observations are a {type(space).__name__}, one array of numbers is expected: wrap it, "
        "env=lambda: gymnasium.wrappers.FlattenObservation(gymnasium.make(...))."
    )


def _translator(agent: Composer, space: gymnasium.Space[Any]) -> Callable[[np.ndarray], Any]:
    """From one of the composer's actions to one that the environment takes, or why there is none."""
    points = np.asarray(agent.actions.points)
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        if _has_labels(agent):
            raise ValueError(
                f"the composer's actions are labels, but the environment takes {space}: use a Grid, or numbers with a "
                "point, Finite([[-1.0], [1.0]])."
            )
        if points[0].size != int(np.prod(space.shape)):
            raise ValueError(
                f"the composer's actions have shape {points.shape[1:]}, but the environment takes {space}."
            )
        return lambda action: np.clip(action.reshape(space.shape).astype(space.dtype), space.low, space.high)
    if not isinstance(space, ARRAYS):
        raise ValueError(f"the environment takes {space}, which no action set of ours describes: wrap it.")
    listed = _has_labels(agent) if space.shape == () else isinstance(agent.actions, Finite)
    whole = points.astype(space.dtype)
    if not (listed and np.array_equal(whole, points) and all(point in space for point in whole)):
        example = f"Finite({space.n})" if isinstance(space, spaces.Discrete) and space.start == 0 else "Finite([...])"
        raise ValueError(
            f"the environment takes {space}, so each of the composer's actions must be one of those: {example}."
        )
    return lambda action: int(action) if space.shape == () else action.astype(space.dtype)


def _has_labels(agent: Composer) -> bool:
    return isinstance(agent.actions, Finite) and agent.actions.labels


register()
