"""Gymnasium and Stable-Baselines3: our environments for their agents, our agents for their environments.

Importing this module registers our environments: `gymnasium.make("policychord/Pendulum-v0", gravity=9.81)`. Programs
that do not import it say `gymnasium.make("policychord.gym:policychord/Pendulum-v0")`. `gymnasium.make_vec` moves many
of them in one compiled call.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ._calls import call
from ._types import Action, Array, ArrayLike, Observation, State, Time, in_native_order
from .actions import Finite
from .agent import Agent, Composer, Decision, Memory
from .loops.environment import AbstractEnv, Box, Discrete, Step, Variable
from .loops.rollout import episode_numbers
from .loops.step import NO_STREAMS, Carry, Record, step, streams_of
from .loops.trace import Labels, Trace, complaints, trace_of
from .worlds.bandit import Bandit
from .worlds.pendulum import Pendulum
from .worlds.quadrotor.physics import Quadrotor

__all__ = [
    "REGISTERED", "GymEnv", "GymVectorEnv", "Observed", "PredictState", "Predictor", "Recurrent", "play", "register",
]  # fmt: skip

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
        self._episode = episode_of(seed, self.np_random)
        self._state, seen = begin_episode(self.env, _signals, np.asarray(self._episode, dtype=np.uint32))
        self._k = 0
        return self._observation(seen), {}

    def step(self, action: Action) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        # as arrays, since JAX compiles again for every plain number
        episode, k = np.asarray(self._episode, dtype=np.uint32), np.asarray(self._k)
        moved, seen = move_episode(self.env, _signals, episode, k, self._state, _allowed(self.action_space, action))
        self._state, self._k = moved.state, self._k + 1
        return self._observation(seen), float(moved.reward), bool(moved.terminated), False, {}

    def _observation(self, seen: jax.Array) -> np.ndarray:
        return np.asarray(seen, dtype=self.observation_space.dtype)


class GymVectorEnv(VectorEnv[np.ndarray, Any, np.ndarray]):
    """Several of our environments at once, moved in one compiled call: what `gymnasium.make_vec` makes.

    Each is what `gymnasium.make` makes: `reset(seed=s)` begins the episodes s, s + 1, ..., and `reset(seed=[...])`
    those that are listed. One that is over begins again at its next step, whatever its action.
    """

    def __init__(self, env: AbstractEnv, num_envs: int, max_episode_steps: int | None = None):
        self.env, self.num_envs, self.max_episode_steps = env, num_envs, max_episode_steps
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        signals, action = env.spaces()
        self.single_observation_space, self.single_action_space = _space(signals), _space(action)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._random = [np_random()[0] for _ in range(num_envs)]
        self._state: Any = None
        self._episode, self._k = np.zeros(num_envs, np.uint32), np.zeros(num_envs, int)
        self._over = np.ones(num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        wanted = [seed + i for i in range(self.num_envs)] if isinstance(seed, int | np.integer) else seed
        seeds: list[int | None] = [None] * self.num_envs if wanted is None else list(wanted)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed has {len(seeds)} entries: pass one for each of {self.num_envs} environments.")
        for i, own in enumerate(seeds):
            self._random[i] = self._random[i] if own is None else np_random(own)[0]
        self._over[:] = True
        return self._begin(seeds), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        allowed = _allowed(self.single_action_space, actions, (self.num_envs,))
        moved, seen = _move_all(self.env, _signals, self._episode, self._k, self._state, allowed)
        fresh = self._over.copy()  # they begin in this step
        self._state, self._k = moved.state, self._k + 1
        observation = self._begin([None] * self.num_envs, np.asarray(seen)) if fresh.any() else np.asarray(seen)
        reward, terminated = np.where(fresh, 0.0, moved.reward), ~fresh & np.asarray(moved.terminated)
        truncated = ~fresh & (self._k >= (self.max_episode_steps or np.inf))
        self._over = terminated | truncated
        return observation.astype(self.observation_space.dtype), reward, terminated, truncated, {}

    def _begin(self, seeds: list[int | None], seen: np.ndarray | None = None) -> np.ndarray:
        """Begin the episodes of those that are over; the others stay as they are."""
        over = self._over
        drawn = [
            episode_of(seed, random) if begins else 0
            for seed, random, begins in zip(seeds, self._random, over, strict=True)
        ]
        self._episode = np.where(over, np.asarray(drawn, np.uint32), self._episode)
        state, first = _begin_all(self.env, _signals, self._episode)

        def where_over(new: Any, old: Any) -> Any:
            return jnp.where(over.reshape(-1, *[1] * (jnp.ndim(new) - 1)), new, old)

        self._state = state if self._state is None else jax.tree_util.tree_map(where_over, state, self._state)
        self._k = np.where(over, 0, self._k)
        self._over = np.zeros(self.num_envs, bool)
        first = np.asarray(first, dtype=self.observation_space.dtype)
        return first if seen is None else np.where(over[:, None], first, seen)


def episode_of(seed: int | None, random: np.random.Generator) -> int:
    """The number of the episode: the seed, or one that is drawn if there is none or it is too large for a number."""
    return int(seed) if seed is not None and seed < 2**32 else int(random.integers(2**32))


def _allowed(space: gymnasium.Space[Any], action: Any, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Actions as the physics takes them. JAX would take the nearest label for one that is not there."""
    values = np.asarray(action)
    if values.shape == (*batch, *(space.shape or ())):
        if isinstance(space, spaces.Discrete):
            if values.dtype.kind in "iu" and np.all((values >= space.start) & (values < space.start + space.n)):
                return values
        elif np.all(np.isfinite(values)):
            return values.astype(float)  # float32 here would round the physics too
    many = f"{batch[0]} of them from " if batch else ""
    raise ValueError(f"action = {action!r}: the environment takes {many}{space}.")


Look = Callable[[AbstractEnv, State], jax.Array]  # what is shown of a state


# Keys are made inside from the episode's number, so that an environment in mid-episode can be pickled.
def _begin(env: AbstractEnv, look: Look, episode: ArrayLike) -> tuple[State, jax.Array]:
    state = env.reset(streams_of(jax.random.key(0), episode).start)
    return state, look(env, state)


def _move(
    env: AbstractEnv, look: Look, episode: ArrayLike, k: Time, state: State, action: Action
) -> tuple[Step, jax.Array]:
    streams = streams_of(jax.random.key(0), episode)
    moved = env.step(jax.random.fold_in(streams.environment, k), state, action, k)
    return moved, look(env, moved.state)


begin_episode, move_episode = eqx.filter_jit(_begin), eqx.filter_jit(_move)
_begin_all = eqx.filter_jit(eqx.filter_vmap(_begin, in_axes=(None, None, 0)))
_move_all = eqx.filter_jit(eqx.filter_vmap(_move, in_axes=(None, None, 0, 0, 0, 0)))


def _signals(env: AbstractEnv, state: State) -> jax.Array:
    return env.signals(state)


def _space(space: Box | Discrete) -> gymnasium.Space[Any]:
    if isinstance(space, Discrete):
        return spaces.Discrete(space.size)
    return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)


def register() -> None:
    """Make our environments known to Gymnasium; again changes nothing."""
    for name, (_, steps) in REGISTERED.items():
        if name not in gymnasium.registry:
            # by words, not by objects, so that the registration can be stored and sent to other processes
            gymnasium.register(
                name, entry_point=f"{__name__}:_make", vector_entry_point=f"{__name__}:_make_many",
                kwargs={"registered": name}, max_episode_steps=steps,
            )  # fmt: skip


def _make(registered: str, render_mode: str | None = None, **settings: Any) -> GymEnv:
    """An environment from Gymnasium's keyword arguments, which are those of the environment's own class."""
    return GymEnv(_physics(registered, render_mode, settings))


def _make_many(
    registered: str, num_envs: int, max_episode_steps: int, render_mode: str | None = None, **settings: Any
) -> GymVectorEnv:
    return GymVectorEnv(_physics(registered, render_mode, settings), num_envs, max_episode_steps)


def _physics(registered: str, render_mode: str | None, settings: dict[str, Any]) -> AbstractEnv:
    kind, _ = REGISTERED[registered]
    known = list(inspect.signature(kind).parameters)
    # TypeErrors, because Stable-Baselines3 asks for pictures first and on that error again without; Gymnasium goes on
    # with "was raised from the environment creator", hence no full stops
    if render_mode is not None:
        raise TypeError(f"render_mode = {render_mode!r}: {registered} draws no pictures, so leave it out")
    if unknown := sorted(set(settings) - set(known)):
        raise TypeError(f"{registered} has no setting {', '.join(unknown)}: it has {', '.join(known)}")
    return kind(**settings)


class Recurrent(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that shows the state of a recurrent policy next to its own observation.

    Its observations are {"observation": ..., "state": (...)}: the state before the policy sees the observation, zeros
    at the start. So the policy is a primitive as any other, and what the agent sees is all that it decides by:
    `Policy(model, distribution="own", observe=lambda x, k: x["observation"], state=lambda x, k: x["state"])`.
    `policy.predict` gives the next state, whatever action is taken; the arrays of one have a batch axis second, as
    those of sb3-contrib.
    """

    def __init__(self, env: gymnasium.Env, policy: Any):
        super().__init__(env)
        self.policy = policy
        _, state = policy.predict(env.observation_space.sample())
        if state is None:
            raise ValueError(f"policy is a {type(policy).__name__} without a state: it needs no Recurrent around.")
        self._start = tuple(np.zeros_like(part) for part in state)
        parts = [spaces.Box(-np.inf, np.inf, np.squeeze(part, 1).shape, np.float32) for part in self._start]
        self.observation_space = spaces.Dict({"observation": env.observation_space, "state": spaces.Tuple(parts)})
        self._state, self._seen = self._start, None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._seen, info = self.env.reset(seed=seed, options=options)
        self._state = self._start
        return self._shown(), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        _, self._state = self.policy.predict(self._seen, state=self._state, episode_start=np.zeros(1, bool))
        self._seen, reward, terminated, truncated, info = self.env.step(action)
        return self._shown(), reward, terminated, truncated, info

    def _shown(self) -> dict[str, Any]:
        return {"observation": self._seen, "state": tuple(np.squeeze(part, 1) for part in self._state)}


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
        labels = composer.actions.labels
        if composer.selection == "sample" or (composer.selection == "dither" and labels):
            self.certain = composer.replace(selection="mode" if labels else "mean")
        if composer.selection == "posterior" and not labels:
            self.certain = composer.replace(selection="posterior mean")
        self._root, self._calls = jax.random.key(seed), 0
        # each agent is part of its program: nothing of it is looked at again at a call
        self._ask = {
            certain: jax.jit(partial(_predict, agent, observe))
            for certain, agent in ((False, composer), (True, self.certain))
        }
        self._beginnings: dict[tuple[bool, int], PredictState] = {}

    def predict(
        self,
        observation: ArrayLike,
        state: PredictState | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, PredictState]:
        """(action, state) for one observation, or (actions, state) for a batch of them.

        Where `episode_start` is true the memory begins again. Every call draws new random numbers.
        """
        seen = _numbers(observation)
        if seen.ndim not in (self.ndim, self.ndim + 1):
            raise ValueError(
                f"observation has shape {seen.shape}: one has {self.ndim} axes and a batch {self.ndim + 1}, or pass "
                "ndim=... to Predictor."
            )
        many = seen if seen.ndim > self.ndim else seen[None]
        agent = self.certain if deterministic else self.composer
        if state is None:
            kind = deterministic, len(many)
            state = self._beginnings.get(kind) or self._beginnings.setdefault(kind, beginning(agent, len(many)))
        if len(state.k) != len(many):
            raise ValueError(
                f"state remembers {len(state.k)} environments, but there are {len(many)} observations: pass the state "
                "of the last call with this batch, or None to begin."
            )
        fresh = np.broadcast_to(np.asarray(False if episode_start is None else episode_start, dtype=bool), len(many))
        self._calls += 1
        decision, state = self._ask[deterministic](self._root, self._calls, many, in_native_order(state), fresh)
        answer = decision.action, decision.outcome, decision.weights, decision.certificate.gap
        action, outcome, weights, gap = jax.device_get(answer)
        for complaint, _ in complaints(agent.names, outcome, weights, gap, np.ones(len(many), bool)):
            warnings.warn(complaint + ". Look at the observation, or call composer.problem there.", stacklevel=2)
        return (action if seen.ndim > self.ndim else action[0]), state


def beginning(agent: Agent, count: int) -> PredictState:
    """The state of so many environments at the start of their episodes."""
    start = jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (count, *a.shape)), agent.start())
    return PredictState(start, jnp.zeros(count, dtype=int))


def _predict(
    agent: Composer, observe: Observe | None, root: jax.Array, calls: Array, many: Array, state: PredictState,
    fresh: Array,
) -> tuple[Decision, PredictState]:  # fmt: skip
    start, key = agent.start(), jax.random.fold_in(root, calls)

    def decide_row(
        i: Array, observation: Array, memory: Memory, k: Array, fresh: Array
    ) -> tuple[Decision, PredictState]:
        memory = jax.tree_util.tree_map(lambda new, old: jnp.where(fresh, new, old), start, memory)
        k = jnp.where(fresh, 0, k)
        decision = agent.decide(jax.random.fold_in(key, i), _view(observe, observation), k, memory)
        return decision, PredictState(decision.memory, k + 1)

    return jax.vmap(decide_row)(jnp.arange(len(many)), many, *state, fresh)


def _view(observe: Observe | None, observation: Any) -> Observation:
    """What the composer's parts see, in float64 like everything that is certified, though environments send less."""

    def wide(values: Array) -> Array:
        return values.astype(float) if jnp.issubdtype(values.dtype, jnp.floating) else values

    observation = jax.tree_util.tree_map(wide, observation)
    return observation if observe is None else call("observe", observe, observation)


def _numbers(observation: ArrayLike) -> np.ndarray:
    values = np.asarray(observation)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"observation is a {type(observation).__name__}: one array of numbers is expected. Wrap the environment in "
            "gymnasium.wrappers.FlattenObservation."
        )
    return in_native_order(values)


class Observed(NamedTuple):
    """The state of somebody else's environment, as far as it shows: an array, or a dict or tuple of them."""

    observation: Any


Worlds = str | Callable[[], gymnasium.Env | VectorEnv] | VectorEnv


def play(
    agent: Agent,
    env: Worlds,
    *,
    seeds: int | Iterable[int] = 1,
    steps: int | None = None,
    observe: Callable[[Any], Any] | None = None,
) -> Trace:
    """Run an agent in any Gymnasium environment, one episode for each seed, all side by side.

    `env` is a registered name, a function that makes an environment, or a vector of environments with one for each
    seed (or a function that makes it). An agent is a Composer, or anything with `names`, `start()` and `decide(...)`;
    if it has `actions`, they are checked against the environment. A composer's model predicts what an action will
    bring about; the environment says what it did. `observe(observation)`, written with jax.numpy, makes the state that
    the agent's parts expect; observations may be dicts and tuples. The same seed gives the same start and the same
    random numbers to every agent.

    Labels are the environment's own; quantities beyond its limits are cut to them, as an actuator would. The trace
    ends with the longest episode, or after `steps`. However it ends, by an error or Ctrl-C too, all environments are
    closed, except a vector that was handed in.
    """
    numbers = episode_numbers(seeds, "seeds")
    with ExitStack() as closing:
        worlds = _open(env, len(numbers), closing)
        steps = _length(worlds.spec, steps)
        worlds.to_env = translator(agent, worlds.action_space)
        keys, memory = _start_all(agent, numbers)
        seen = worlds.reset([int(number) for number in numbers])
        everybody = _SideBySide(agent, observe, keys)
        carry, records = Carry(Observed(seen), memory, np.ones(len(numbers), bool)), []
        for k in range(steps):
            carry, record = step(everybody, worlds, NO_STREAMS, carry, np.asarray(k))
            records.append(record)
            if not carry.alive.any():
                break
    return traced(agent.names, numbers, records, carry.state)


def traced(names: tuple[str, ...], numbers: np.ndarray, records: list[Record], final: Observed) -> Trace:
    """The trace of records with a leading episode axis, one for each step."""
    together = Record(*jax.tree_util.tree_map(lambda *column: np.stack(column, axis=1), *records))
    axes = np.ndim(jax.tree_util.tree_leaves(final)[0]) - 1
    variables = {"observation": Variable(tuple(f"signal_{i}" for i in range(axes)))}
    return trace_of(together, final, Labels(names, tuple(numbers.tolist()), variables))


class _SideBySide(NamedTuple):
    """One agent in several environments, each with a random stream of its own; it answers in NumPy."""

    agent: Agent
    to_observation: Observe | None
    keys: jax.Array

    def decide(self, key: None, seen: Any, k: Time, memory: Memory) -> Decision:
        return in_numpy(decide_all(self.agent, self.to_observation, self.keys, seen, k, memory))


def in_numpy(decision: Decision) -> Decision:
    """The decision in NumPy, but for the memory, which stays where the next decision wants it."""
    fields = {name: value for name, value in decision._asdict().items() if name != "memory"}
    return Decision(memory=decision.memory, **jax.tree_util.tree_map(np.asarray, fields))


class _Worlds:
    """Gymnasium environments as one of ours. Those that are over are not asked again."""

    to_env: Callable[[np.ndarray], Any]

    def __init__(self, worlds: list[gymnasium.Env]):
        self.worlds, self.over, self.spec = worlds, np.zeros(len(worlds), bool), worlds[0].spec
        self.action_space, self.observation_space = worlds[0].action_space, worlds[0].observation_space
        self.plain = isinstance(self.observation_space, ARRAYS)  # one array, no dict or tuple of them

    def observe(self, state: Observed) -> Any:
        return state.observation

    def reset(self, seeds: list[int]) -> Any:
        first = [world.reset(seed=seed)[0] for world, seed in zip(self.worlds, seeds, strict=True)]
        return stacked([cast(self.observation_space, seen) for seen in first])

    def step(self, key: None, state: Observed, action: np.ndarray, k: Time) -> Step:
        seen, reward = jax.tree_util.tree_map(np.copy, state.observation), np.zeros(len(self.worlds))
        for i in np.flatnonzero(~self.over).tolist():
            shown, reward[i], terminated, truncated, _ = self.worlds[i].step(self.to_env(action[i]))
            if self.plain:  # a third of the time that a step takes here, if it went the general way
                seen[i] = shown
            else:
                put(seen, i, cast(self.observation_space, shown))
            self.over[i] = terminated or truncated
        return Step(Observed(seen), reward, self.over.copy())


class _Vector:
    """A vector of Gymnasium environments as one of ours. What those that are over begin again is not looked at."""

    to_env: Callable[[np.ndarray], Any]

    def __init__(self, env: VectorEnv):
        self.env, self.over, self.spec = env, np.zeros(env.num_envs, bool), env.spec
        self.action_space, self.observation_space = env.single_action_space, env.single_observation_space
        self.mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)

    def observe(self, state: Observed) -> Any:
        return state.observation

    def reset(self, seeds: list[int]) -> Any:
        return cast(self.observation_space, self.env.reset(seed=seeds)[0])  # type: ignore[arg-type]

    def step(self, key: None, state: Observed, action: np.ndarray, k: Time) -> Step:
        if self.mode == AutoresetMode.DISABLED and self.over.any():
            self.env.reset(options={"reset_mask": self.over.copy()})
        shown, reward, terminated, truncated, info = self.env.step(np.stack([self.to_env(row) for row in action]))
        seen = jax.tree_util.tree_map(np.array, cast(self.observation_space, shown))
        ends = np.asarray(terminated | truncated) & ~self.over
        for i in range(self.env.num_envs):
            if self.over[i]:
                put(seen, i, jax.tree_util.tree_map(lambda old, i=i: old[i], state.observation))
            elif ends[i] and "final_obs" in info:  # the vector shows the next start already
                put(seen, i, cast(self.observation_space, info["final_obs"][i]))
        reward = np.where(self.over, 0.0, reward)
        self.over = self.over | ends
        return Step(Observed(seen), reward, self.over.copy())


@eqx.filter_jit
def _start_all(agent: Agent, numbers: Array) -> tuple[jax.Array, Memory]:
    keys = jax.vmap(lambda number: streams_of(jax.random.key(0), number).agent)(jnp.asarray(numbers))
    return keys, beginning(agent, len(numbers)).memory


@eqx.filter_jit
def decide_all(agent: Agent, observe: Observe | None, keys: jax.Array, seen: Any, k: Time, memory: Memory) -> Decision:
    """The decisions of one agent on several observations, each with a random stream and a memory of its own."""

    def decide_row(key: jax.Array, observation: Any, memory: Memory) -> Decision:
        return agent.decide(jax.random.fold_in(key, k), _view(observe, observation), k, memory)

    return jax.vmap(decide_row)(keys, seen, memory)


def _open(env: Any, count: int, closing: ExitStack) -> Any:
    """So many environments, each of which will be closed whatever happens to the others; a given vector stays open."""
    if isinstance(env, VectorEnv):
        return _vector(env, count)
    if not (isinstance(env, str) or callable(env)):
        raise ValueError(
            f"env is a {type(env).__name__}: pass a registered name, a function that makes one, or a VectorEnv."
        )
    worlds: list[gymnasium.Env] = []
    for _ in range(count):
        world = gymnasium.make(env) if isinstance(env, str) else env()
        if any(world is other for other in worlds):
            raise ValueError("env() gave the same environment twice: episodes run side by side, make one for each.")
        closing.callback(world.close)
        if isinstance(world, VectorEnv):
            return _vector(world, count)
        worlds.append(world)
    return _Worlds(worlds)


def _vector(env: VectorEnv, count: int) -> _Vector:
    if env.num_envs != count:
        raise ValueError(f"env is a vector of {env.num_envs} environments, but there are {count} seeds: one for each.")
    return _Vector(env)


def _length(spec: Any, steps: int | None) -> int:
    limit = None if spec is None else spec.max_episode_steps
    steps = limit if steps is None else steps
    if steps is None:
        raise ValueError("steps is not given, and the environment's spec does not limit an episode: pass steps=...")
    if not (isinstance(steps, int | np.integer) and steps >= 1):
        raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
    return int(steps)


def cast(space: gymnasium.Space[Any], observation: Any) -> Any:
    """An observation, or a batch of them, in the types of the space: some environments reset to other types."""
    if isinstance(space, spaces.Dict):
        return {name: cast(part, observation[name]) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(cast(part, value) for part, value in zip(space.spaces, observation, strict=True))
    if isinstance(space, ARRAYS):
        return in_native_order(np.asarray(observation, dtype=space.dtype))
    raise ValueError(
        f"the environment's observations hold a {type(space).__name__}: arrays of numbers are expected, or dicts and "
        "tuples of them. Wrap it, env=lambda: gymnasium.wrappers.TransformObservation(...)."
    )


def stacked(observations: list[Any]) -> Any:
    """Observations as one with a leading axis."""
    return jax.tree_util.tree_map(lambda *rows: np.stack(rows), *observations)


def put(batch: Any, i: int, observation: Any) -> None:
    """Write observation i of a batch."""

    def write(rows: np.ndarray, row: np.ndarray) -> None:
        rows[i] = row

    jax.tree_util.tree_map(write, batch, observation)


def translator(agent: Agent, space: gymnasium.Space[Any]) -> Callable[[np.ndarray], Any]:
    """From one of the agent's actions to one that the environment takes, or why there is none."""
    actions = getattr(agent, "actions", None)
    if actions is None:  # an agent that does not say what it may do
        if isinstance(space, spaces.Box) and space.dtype.kind == "f":
            return lambda action: np.clip(action.reshape(space.shape).astype(space.dtype), space.low, space.high)
        return lambda action: int(action) if space.shape == () else action.astype(space.dtype)
    points = np.asarray(actions.points)
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        if actions.labels:
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
    listed = actions.labels if space.shape == () else isinstance(actions, Finite)
    whole = points.astype(space.dtype)
    if not (listed and np.array_equal(whole, points) and all(point in space for point in whole)):
        example = f"Finite({space.n})" if isinstance(space, spaces.Discrete) and space.start == 0 else "Finite([...])"
        raise ValueError(
            f"the environment takes {space}, so each of the composer's actions must be one of those: {example}."
        )
    return lambda action: int(action) if space.shape == () else action.astype(space.dtype)


register()
