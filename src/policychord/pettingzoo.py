"""PettingZoo: our environments with several agents for others, our agents in theirs (extra `pettingzoo`)."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector.utils import create_empty_array

from ._types import ArrayLike, State
from .agent import Composer
from .gym import (
    Observed,
    begin_episode,
    beginning,
    cast,
    decide_all,
    episode_of,
    in_numpy,
    move_episode,
    put,
    stacked,
    traced,
    translator,
)
from .loops.environment import AbstractEnv
from .loops.rollout import episode_numbers
from .loops.step import Record, streams_of
from .loops.trace import Trace

Reward = Callable[[State, State], ArrayLike]


class ParallelEnv(pettingzoo.ParallelEnv[str, np.ndarray, np.ndarray]):
    """One of our environments with several agents, such as a flock, behind PettingZoo's parallel interface.

    The agents are called agent_0, agent_1, ... Each sees its own row of `observe`, as one vector of float32, and acts
    with its own row of the action. All get the environment's reward, or their entry of `reward(state, next state)`.
    An episode is cut after `steps`. `reset(seed=s)` begins episode s of `rollout(agent, env, seed=0)`.
    """

    def __init__(self, env: AbstractEnv, steps: int = 200, reward: Reward | None = None):
        if not (isinstance(steps, int | np.integer) and steps >= 1):
            raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
        self.metadata = {"name": type(env).__name__.lower(), "render_modes": [], "is_parallelizable": True}
        self.env, self.steps, self.reward, self.render_mode = env, steps, reward, None
        action: Any = env.spaces().action
        seen = jax.eval_shape(lambda: env.observe(env.reset(jax.random.key(0))))
        shapes = [leaf.shape[:1] for leaf in jax.tree_util.tree_leaves(seen)]
        if {*shapes, getattr(action, "low", np.zeros(0)).shape[:1]} != {shapes[0]} or shapes[0] == ():
            raise ValueError(
                f"{type(env).__name__} takes actions {action} and shows arrays with the first axes {shapes}: an "
                "environment for several agents has a leading agent axis in both."
            )
        rows = jax.eval_shape(lambda: _rows(env, env.reset(jax.random.key(0))))
        self.possible_agents = [f"agent_{i}" for i in range(rows.shape[0])]
        self.agents: list[str] = []
        self.observation_spaces = {
            name: spaces.Box(-np.inf, np.inf, rows.shape[1:], np.float32) for name in self.possible_agents
        }
        self.action_spaces = {
            name: spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
            for name, low, high in zip(self.possible_agents, action.low, action.high, strict=True)
        }
        self._random, self._episode, self._k = np_random()[0], 0, 0
        self._state: Any = None

    def observation_space(self, agent: str) -> spaces.Box:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Box:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if seed is not None:
            self._random = np_random(seed)[0]
        self._episode = episode_of(seed, self._random)
        self._state, seen = begin_episode(self.env, _rows, np.asarray(self._episode, np.uint32))
        self._k, self.agents = 0, list(self.possible_agents)
        return self._each(np.asarray(seen, np.float32)), self._each([{} for _ in self.agents])

    def step(self, actions: Mapping[str, Any]) -> Any:
        if set(actions) != set(self.agents) or not self.agents:
            raise ValueError(f"actions are for {sorted(actions)}: pass one for each of {self.agents or 'nobody'}.")
        rows = np.stack([np.asarray(actions[name], dtype=float) for name in self.agents])
        if rows.shape != self.env.spaces().action.low.shape or not np.all(np.isfinite(rows)):  # type: ignore[union-attr]
            raise ValueError(f"actions have shape {rows.shape[1:]}: each agent takes {self.action_spaces['agent_0']}.")
        before = self._state
        episode, k = np.asarray(self._episode, np.uint32), np.asarray(self._k)
        moved, seen = move_episode(self.env, _rows, episode, k, before, rows)
        self._state, self._k = moved.state, self._k + 1
        paid = moved.reward if self.reward is None else self.reward(before, moved.state)
        rewards = np.broadcast_to(np.asarray(paid, dtype=float), len(self.agents)).tolist()
        over, late = bool(moved.terminated), self._k >= self.steps
        answers = [rewards, *([flag] * len(rewards) for flag in (over, late)), [{} for _ in rewards]]
        shown = [self._each(answer) for answer in (np.asarray(seen, np.float32), *answers)]
        if over or late:
            self.agents = []
        return tuple(shown)

    def _each(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))


def _rows(env: AbstractEnv, state: State) -> jax.Array:
    """What each agent sees, as one row of numbers."""
    leaves = jax.tree_util.tree_leaves(env.observe(state))
    return jnp.concatenate([jnp.reshape(leaf, (*leaf.shape[:1], -1)) for leaf in leaves], axis=1)


def play(
    agents: Composer | Mapping[str, Composer],
    env: Callable[[], Any],
    *,
    steps: int,
    seeds: int | Iterable[int] = 1,
    observe: Callable[[Any], Any] | None = None,
) -> dict[str, Trace]:
    """Run composers in a PettingZoo parallel environment, one episode for each seed; a trace for each agent by name.

    `agents` is one composer for all, or one for each agent by name: agents of different kinds may have different
    primitives, actions and models. `env` makes the environment, and `observe` is as in `policychord.gym.play`, for the
    observation of one agent. Agents that share a composer decide in one compiled call. An agent that has left is not
    asked again: its trace says so by `alive`.
    """
    numbers = episode_numbers(seeds, "seeds")
    with ExitStack() as closing:
        worlds = [env() for _ in numbers]
        for world in worlds:
            closing.callback(world.close)
        names = list(worlds[0].possible_agents)
        seats = _seats(agents, names, worlds[0], numbers)
        shown = [world.reset(seed=int(number))[0] for world, number in zip(worlds, numbers, strict=True)]
        for name, seat in seats.items():
            seat.begin([observations.get(name) for observations in shown])
        for k in range(steps):
            _decide(seats, observe, np.asarray(k))
            for e, world in enumerate(worlds):
                acting = {name: seats[name].action(e) for name in world.agents if seats[name].alive[e]}
                if acting:
                    _tell(seats, e, world.step(acting), set(world.agents))
            going_on = [seat.finish() for seat in seats.values()]  # all of them record the step
            if not any(going_on):
                break
    return {name: traced(seat.agent.names, numbers, seat.records, Observed(seat.seen)) for name, seat in seats.items()}


class _Seat:
    """One agent of the environment in all episodes: who decides for it, what it sees, and what is recorded."""

    def __init__(self, agent: Composer, keys: jax.Array, space: Any, to_env: Callable[[np.ndarray], Any]):
        self.agent, self.keys, self.space, self.to_env = agent, keys, space, to_env
        self.memory = beginning(agent, len(keys)).memory
        self.records: list[Record] = []
        self.seen: Any = None

    def begin(self, observations: list[Any]) -> None:
        """Take place; in an episode in which the agent is not there from the start it never acts."""
        self.alive = np.array([observation is not None for observation in observations])
        nothing = create_empty_array(self.space, 1, np.zeros)
        nothing = jax.tree_util.tree_map(lambda rows: rows[0], nothing)
        self.seen = stacked(
            [cast(self.space, nothing if observation is None else observation) for observation in observations]
        )

    def decided(self, decision: Any) -> None:
        self.decision, self.memory = in_numpy(decision), decision.memory
        self.next = jax.tree_util.tree_map(np.copy, self.seen)
        self.reward, self.after = np.zeros(len(self.alive)), np.zeros(len(self.alive), bool)

    def action(self, episode: int) -> Any:
        return self.to_env(self.decision.action[episode])

    def finish(self) -> bool:
        """Record the step; whether the agent goes on anywhere."""
        made = self.decision
        decided = made.weights, *made.certificate, made.outcome, made.cut
        self.records.append(Record(Observed(self.seen), made.action, *decided, self.reward, self.alive))
        self.seen, self.alive = self.next, self.alive & self.after
        return bool(self.alive.any())


def _seats(agents: Any, names: list[str], world: Any, numbers: np.ndarray) -> dict[str, _Seat]:
    chosen = dict.fromkeys(names, agents) if isinstance(agents, Composer) else dict(agents)
    if set(chosen) != set(names):
        raise ValueError(f"agents are {sorted(chosen)}: pass a composer for each of {names}, or one for all.")
    roots = jax.vmap(lambda number: streams_of(jax.random.key(0), number).agent)(jnp.asarray(numbers))
    seats = {}
    for i, name in enumerate(names):
        keys = jax.vmap(lambda root, i=i: jax.random.fold_in(root, i))(roots)
        to_env = translator(chosen[name], world.action_space(name))
        seats[name] = _Seat(chosen[name], keys, world.observation_space(name), to_env)
    return seats


def _decide(seats: dict[str, _Seat], observe: Any, k: np.ndarray) -> None:
    """All agents that share a composer, in all episodes, at once."""
    shared: dict[int, list[_Seat]] = {}
    for seat in seats.values():
        shared.setdefault(id(seat.agent), []).append(seat)
    for group in shared.values():
        keys = jnp.concatenate([seat.keys for seat in group])
        seen = jax.tree_util.tree_map(lambda *rows: np.concatenate(rows), *(seat.seen for seat in group))
        memory = jax.tree_util.tree_map(lambda *rows: jnp.concatenate(rows), *(seat.memory for seat in group))
        decision = decide_all(group[0].agent, observe, keys, seen, k, memory)
        count = len(group[0].keys)
        for i, seat in enumerate(group):
            own = slice(i * count, (i + 1) * count)
            seat.decided(jax.tree_util.tree_map(lambda a, own=own: a[own], decision))


def _tell(seats: dict[str, _Seat], episode: int, answer: Any, left: set[str]) -> None:
    """What a step of one episode brought to each agent."""
    shown, rewards, terminated, truncated, _ = answer
    for name, observation in shown.items():
        seat = seats[name]
        put(seat.next, episode, cast(seat.space, observation))
        seat.reward[episode] = rewards[name] if seat.alive[episode] else 0.0
        seat.after[episode] = name in left and not (terminated[name] or truncated[name])
