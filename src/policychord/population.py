"""`Population`: many agents as one stacked Composer under vmap."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from ._types import State, Time
from .agent import Composer, Decision, Memory


class Population(eqx.Module):
    """Agents that differ in numbers only. What all of them share is kept once, what differs has a leading agent axis.

    `Population([leader, follower, follower])` stacks composers, `Population(composer, count)` repeats one.
    It decides for all at once: the state it is given has a leading agent axis (what each agent sees). With `chunk`
    only so many decide at a time, which bounds the memory that thousands of agents need.
    """

    stacked: Composer
    differs: tuple[bool, ...] = eqx.field(static=True)  # for each array of the composer
    count: int = eqx.field(static=True)
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
        # thousands of agents are often of few kinds: only those are compared
        place: dict[int, int] = {}
        kind = np.array([place.setdefault(id(composer), len(place)) for composer in composers])
        first = np.unique(kind, return_index=True)[1].tolist()
        split = [eqx.partition(composers[i], eqx.is_array) for i in first]
        first_arrays, rest = split[0]
        for i, (_, other) in zip(first, split, strict=True):
            if not eqx.tree_equal(rest, other):
                raise ValueError(
                    f"composers[{i}] differs from composers[0] in more than numbers (classes, functions, names or "
                    "options): agents of one population share those. Functions must be the same object."
                )
        leaves = [jax.tree_util.tree_leaves(arrays) for arrays, _ in split]
        stacked, differs = [], []
        for i, variants in enumerate(zip(*leaves, strict=True)):
            if any(v.shape != variants[0].shape for v in variants):
                raise ValueError(
                    f"array {i} of the composers has different shapes: {sorted({v.shape for v in variants})}."
                )
            same = all(v is variants[0] or np.array_equal(v, variants[0]) for v in variants)
            differs.append(not same)
            stacked.append(variants[0] if same else jnp.stack(variants)[kind])
        arrays = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(first_arrays), stacked)
        self.stacked, self.differs, self.count = eqx.combine(arrays, rest), tuple(differs), len(composers)
        self.chunk = chunk

    @property
    def names(self) -> tuple[str, ...]:
        """The primitives' names."""
        return self.stacked.names

    def start(self) -> Memory:
        """The memories of agents that have not decided yet."""
        return self._for_each(lambda composer, i: composer.start(), jnp.arange(self.count))

    def decide(self, key: Key[Array, ""], state: State, k: Time = 0, memory: Memory | None = None) -> Decision:
        """Every agent decides on what it sees, with a random stream of its own."""
        memory = self.start() if memory is None else memory
        for path, leaf in jax.tree_util.tree_leaves_with_path(state):
            if jnp.shape(leaf)[:1] != (self.count,):
                raise ValueError(
                    f"the population has {self.count} agents, but what they see has shape {jnp.shape(leaf)} at "
                    f"view{jax.tree_util.keystr(path)}: every array needs a leading agent axis of {self.count}."
                )

        def one(composer: Composer, i: Array, view: State, memory: Memory) -> Decision:
            return composer.decide(jax.random.fold_in(key, i), view, k, memory)

        return self._for_each(one, jnp.arange(self.count), state, memory)

    def member(self, i: Int[Array, ""] | int) -> Composer:
        """The composer of agent i."""
        own, composer_of = self._split()
        return composer_of([leaf[i] for leaf in own])

    def _for_each(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """vmap over the agents: of the composer only what differs."""
        own, composer_of = self._split()

        def one(own: list[Array], *arguments: Any) -> Any:
            return function(composer_of(own), *arguments)

        if self.chunk is not None and self.chunk < self.count:
            return jax.lax.map(lambda given: one(*given), (own, *arguments), batch_size=self.chunk)
        return jax.vmap(one, axis_size=self.count)(own, *arguments)

    def _split(self) -> tuple[list[Array], Callable[[list[Array]], Composer]]:
        """(what differs, with a leading agent axis; the function that makes a composer of one agent's share of it)."""
        arrays, rest = eqx.partition(self.stacked, eqx.is_array)
        leaves, structure = jax.tree_util.tree_flatten(arrays)

        def composer_of(own: list[Array]) -> Composer:
            left = iter(own)
            filled = [next(left) if differs else leaf for leaf, differs in zip(leaves, self.differs, strict=True)]
            return eqx.combine(jax.tree_util.tree_unflatten(structure, filled), rest)

        return [leaf for leaf, differs in zip(leaves, self.differs, strict=True) if differs], composer_of
