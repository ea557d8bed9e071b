"""`Population`: many agents as one stacked Composer under vmap. `Groups`: several populations. `Stack`: any trees."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from ._types import Observation, Time, in_native_order
from .agent import Composer, Decision, Memory
from .core._method import Outcome
from .core.objective import Certificate


class Stack(eqx.Module):
    """Trees that differ in numbers only. What all of them share is kept once, what differs has a leading axis."""

    tree: Any
    differs: tuple[bool, ...] = eqx.field(static=True)  # for each array of the tree
    count: int = eqx.field(static=True)

    def member(self, i: Int[Array, ""] | int) -> Any:
        """Tree i."""
        own, tree_of = self._split()
        return tree_of([leaf[i] for leaf in own])

    def take(self, places: Int[np.ndarray, " m"]) -> "Stack":
        """The stack of the trees at these places."""
        own, tree_of = self._split()
        return Stack(tree_of([leaf[places] for leaf in own]), self.differs, len(places))

    def for_each(self, function: Callable[..., Any], *arguments: Any, chunk: int | None = None) -> Any:
        """vmap of function(tree, *arguments): of the trees only what differs. With `chunk`, so many at a time."""
        own, tree_of = self._split()

        def of_member(own: list[Array], *arguments: Any) -> Any:
            return function(tree_of(own), *arguments)

        if chunk is not None and chunk < self.count:
            return jax.lax.map(lambda operands: of_member(*operands), (own, *arguments), batch_size=chunk)
        return jax.vmap(of_member, axis_size=self.count)(own, *arguments)

    def _split(self) -> tuple[list[Array], Callable[[list[Array]], Any]]:
        """(what differs, with a leading axis; the function that makes a tree of one share of it)."""
        arrays, rest = eqx.partition(self.tree, eqx.is_array)
        leaves, structure = jax.tree_util.tree_flatten(arrays)

        def tree_of(own: list[Array]) -> Any:
            left = iter(own)
            filled = [next(left) if differs else leaf for leaf, differs in zip(leaves, self.differs, strict=True)]
            return eqx.combine(jax.tree_util.tree_unflatten(structure, filled), rest)

        return [leaf for leaf, differs in zip(leaves, self.differs, strict=True) if differs], tree_of


def stack(trees: Sequence[Any], name: str = "trees") -> Stack:
    """Trees as one. `name` is what the caller calls them."""
    # thousands are often of few kinds: only those are compared
    place: dict[int, int] = {}
    kind = np.array([place.setdefault(id(tree), len(place)) for tree in trees])
    first = np.unique(kind, return_index=True)[1].tolist()
    split = [eqx.partition(trees[i], eqx.is_array) for i in first]
    first_arrays, rest = split[0]
    for i, (_, other) in zip(first, split, strict=True):
        if not eqx.tree_equal(rest, other):
            raise ValueError(
                f"{name}[{i}] differs from {name}[0] in more than numbers (classes, functions, names or options): "
                "what is stacked shares those. Functions must be the same object."
            )
    leaves = [jax.tree_util.tree_leaves(arrays) for arrays, _ in split]
    stacked, differs = [], []
    for i, variants in enumerate(zip(*leaves, strict=True)):
        if any(v.shape != variants[0].shape for v in variants):
            raise ValueError(f"array {i} of the {name} has different shapes: {sorted({v.shape for v in variants})}.")
        same = all(v is variants[0] or np.array_equal(v, variants[0]) for v in variants)
        differs.append(not same)
        stacked.append(variants[0] if same else jnp.stack(variants)[kind])
    arrays = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(first_arrays), stacked)
    return Stack(eqx.combine(arrays, rest), tuple(differs), len(trees))


class Population(eqx.Module):
    """Agents that differ in numbers only.

    `Population([leader, follower, follower])` stacks composers, `Population(composer, count)` repeats one.
    It decides for all at once: what it is given to see has a leading agent axis. With `chunk` only so many decide at a
    time, which bounds the memory that thousands of agents need.
    """

    members: Stack
    chunk: int | None = eqx.field(static=True)

    def __init__(self, composers: Composer | Sequence[Composer], count: int | None = None, *, chunk: int | None = None):
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk = {chunk!r}: how many agents decide at a time, at least 1, or None for all.")
        if isinstance(composers, Composer):
            if count is None or count < 1:
                raise ValueError(f"count = {count!r}: say how many agents share this composer.")
            composers = [composers] * count
        elif count is not None:
            raise ValueError("count belongs to a single composer; a list already says how many agents there are.")
        if not composers:
            raise ValueError("composers is empty: a population needs at least one agent.")
        self.members, self.chunk = stack(composers, "composers"), chunk

    @property
    def names(self) -> tuple[str, ...]:
        """The primitives' names."""
        return self.members.tree.names

    @property
    def count(self) -> int:
        """How many agents there are."""
        return self.members.count

    def start(self) -> Memory:
        """The memories of agents that have not decided yet."""
        return self.members.for_each(lambda composer: composer.start())

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Memory | None = None
    ) -> Decision:
        """Every agent decides on what it sees, with a random stream of its own."""
        observation = _checked_rows("the population has", self.count, observation)
        memory = self.start() if memory is None else in_native_order(memory)

        def decide_member(composer: Composer, i: Array, seen: Observation, memory: Memory) -> Decision:
            return composer.decide(jax.random.fold_in(key, i), seen, k, memory)

        return self.members.for_each(decide_member, jnp.arange(self.count), observation, memory, chunk=self.chunk)

    def member(self, i: Int[Array, ""] | int) -> Composer:
        """The composer of agent i."""
        return self.members.member(i)


class Groups(eqx.Module):
    """A mixed population: agents with different primitives, models or options, as groups of agents that share theirs.

    `Groups(leaders=Population(leader, 2), followers=Population(follower, 10))`: what they see has a leading agent axis
    of 12, the leaders first. A group may also be a single Composer, as one agent. All act in the same way: actions have
    the same shape. The weights have a place for each name of a primitive, and are NaN where an agent has none of it.
    """

    populations: tuple[Population, ...]
    called: tuple[str, ...] = eqx.field(static=True)  # not a dict: compiled functions sort dicts by their keys

    def __init__(self, **groups: Population | Composer):
        if not groups:
            raise ValueError("a mixed population needs at least one group: Groups(leaders=..., followers=...).")
        for name, group in groups.items():
            if not isinstance(group, Population | Composer):
                raise ValueError(f"{name} is a {type(group).__name__}: pass a Population, or a Composer for one agent.")
        self.called = tuple(groups)
        self.populations = tuple(
            Population(group, 1) if isinstance(group, Composer) else group for group in groups.values()
        )
        kinds = {name: group.members.tree.actions.points for name, group in self.groups.items()}
        if len({(points.shape[1:], str(points.dtype)) for points in kinds.values()}) > 1:
            shapes = ", ".join(f"{name} {points.dtype}{list(points.shape[1:])}" for name, points in kinds.items())
            raise ValueError(f"the groups act in different ways ({shapes}): one environment takes actions of one kind.")

    @property
    def groups(self) -> dict[str, Population]:
        """The groups by their names, in the order of their agents."""
        return dict(zip(self.called, self.populations, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all primitives, each once."""
        return tuple(dict.fromkeys(name for group in self.groups.values() for name in group.names))

    @property
    def count(self) -> int:
        """How many agents there are."""
        return sum(group.count for group in self.groups.values())

    @property
    def places(self) -> dict[str, slice]:
        """Which of the agents belong to each group."""
        ends = np.cumsum([group.count for group in self.groups.values()]).tolist()
        return {
            name: slice(end - group.count, end) for (name, group), end in zip(self.groups.items(), ends, strict=True)
        }

    def start(self) -> dict[str, Memory]:
        """The memories of agents that have not decided yet."""
        return {name: group.start() for name, group in self.groups.items()}

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: dict[str, Memory] | None = None
    ) -> Decision:
        """Every group decides on what its agents see, with random streams of its own."""
        observation = _checked_rows("the groups have", self.count, observation)
        memory = self.start() if memory is None else in_native_order(memory)
        decided, after, has_cut = [], {}, False
        for i, (name, group) in enumerate(self.groups.items()):
            own = jax.tree_util.tree_map(lambda a, name=name: a[self.places[name]], observation)
            decision = group.decide(jax.random.fold_in(key, i), own, k, memory[name])
            columns = jnp.array([self.names.index(primitive) for primitive in group.names])
            shape = group.count, len(self.names)
            weights = jnp.full(shape, jnp.nan).at[:, columns].set(decision.weights)
            cut = jnp.zeros(shape, bool).at[:, columns].set(False if decision.cut is None else decision.cut)
            decided.append((decision.action, weights, decision.certificate, decision.outcome, cut))
            after[name], has_cut = decision.memory, has_cut or decision.cut is not None
        action, weights, certificate, outcome, cut = (
            jax.tree_util.tree_map(lambda *parts: jnp.concatenate(parts), *parts)
            for parts in zip(*decided, strict=True)
        )
        after_all: Any = after
        return Decision(action, weights, certificate, outcome, after_all, cut=cut if has_cut else None)


def _checked_rows(who_has: str, count: int, observation: Observation) -> Observation:
    """What so many agents see, if it has a row for each."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(observation):
        if jnp.shape(leaf)[:1] != (count,):
            raise ValueError(
                f"{who_has} {count} agents, but what they see has shape {jnp.shape(leaf)} at "
                f"observation{jax.tree_util.keystr(path)}: every array needs a leading agent axis of {count}."
            )
    return in_native_order(observation)


class Passive(eqx.Module):
    """A population without members, for environments in which no agent decides: everything moves by its own rule."""

    names: tuple[str, ...] = eqx.field(static=True)
    action_shape: tuple[int, ...] = eqx.field(static=True)

    def start(self) -> Memory:
        """Empty memories."""
        none = jnp.zeros((0, len(self.names)))
        return Memory(none, none, jnp.zeros((0, *self.action_shape)))

    def member(self, i: Int[Array, ""] | int) -> "Passive":
        """There is none, but it would be like this."""
        return self

    def decide(self, key: Key[Array, ""], observation: Observation, k: Time, memory: Memory) -> Decision:
        """No decisions, in the shapes that a population's would have."""
        of = memory.weights.shape[:-1]
        outcome = jnp.full(of, int(Outcome.NOT_OPTIMISED), "int8")
        return Decision(memory.action, memory.weights, Certificate(jnp.zeros(of), jnp.zeros(of)), outcome, memory)
