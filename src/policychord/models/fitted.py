"""`FittedCostToGo`: what rollouts would say, from a formula that was fitted to them, without simulation."""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._calls import call
from .._types import ArrayLike, Observation, Time, in_native_order
from .rollouts import Rollouts

LEARNING_RATE, TRAINING = 0.01, 3000  # of the network: Adam, steps over all states at once
RIDGE = 1e-8


class FittedCostToGo(eqx.Module):
    """A cost-to-go fitted to rollouts: one value for each primitive that is followed, then their least or soft least.

    `fit_cost_to_go` makes it. `error` is what it tells about itself: the RMS difference to rollouts from states that
    were kept from the fit; `explained` is the share of their variance that it gets right, one at best.
    """

    features: Callable[[Observation], ArrayLike]
    layers: tuple[tuple[Array, Array], ...]  # (weights, bias), tanh between them; one layer is linear
    scale: Float[Array, "2 f"]  # middle and width of each feature
    unit: Float[Array, "2 m"]  # middle and width of each value
    reduce: str = eqx.field(static=True)
    error: float = eqx.field(static=True)
    explained: float = eqx.field(static=True)

    def __call__(self, observation: Observation, k: Time) -> Float[Array, ""]:
        """The cost of the next steps from here; the step k plays no part."""
        values = self._values(jnp.asarray(call("features", self.features, observation), dtype=float))
        return jnp.min(values) if self.reduce == "min" else np.log(len(values)) - jax.nn.logsumexp(-values)

    def _values(self, features: Array) -> Array:
        return _network(self.layers, (features - self.scale[0]) / self.scale[1]) * self.unit[1] + self.unit[0]


def fit_cost_to_go(
    rollouts: Rollouts, states: Observation, *, features: Callable[[Observation], ArrayLike] | None = None,
    degree: int = 3, hidden: int = 0, held_out: float = 0.2, seed: int = 0,
) -> FittedCostToGo:  # fmt: skip
    """Fit the cost-to-go of rollouts from these states (a leading axis), which should be those that it will meet.

    - `features(observation)`: a vector; without it, all products of the observation's numbers up to `degree`.
    - `hidden`: 0 for a linear fit, else the units of the hidden layer of a small network.
    - `held_out`: the share of the states that the fit does not see, and that `error` is measured on.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out = {held_out!r}: a share of the states between 0 and 1.")
    states = in_native_order(states)
    count = len(jax.tree_util.tree_leaves(states)[0])
    kept = np.random.default_rng(seed).permutation(count)
    test, train = np.split(kept, [max(2, round(held_out * count))])
    if len(train) < 2:
        raise ValueError(f"states has {count} rows: pass at least 4, and rather a thousand.")
    chosen = _Powers(degree) if features is None else features
    x = np.asarray(jax.vmap(lambda state: jnp.asarray(call("features", chosen, state), dtype=float))(states))
    y = np.asarray(jax.jit(jax.vmap(lambda state: rollouts.each(state, 0)))(states))
    if not np.all(np.isfinite(x)) or not np.all(np.isfinite(y)):
        raise ValueError("from some of the states features or rollouts are not finite numbers: leave these out.")
    scale = np.stack([x[train].mean(axis=0), x[train].std(axis=0) + 1e-12])
    unit = np.stack([y[train].mean(axis=0), y[train].std(axis=0) + 1e-12])
    inputs, targets = (x - scale[0]) / scale[1], (y - unit[0]) / unit[1]
    layers = _train(inputs[train], targets[train], hidden, seed) if hidden else _least(inputs[train], targets[train])
    off = np.asarray(_network(layers, jnp.asarray(inputs[test]))) * unit[1] + unit[0] - y[test]
    explained = 1.0 - np.sum(off**2) / max(float(np.sum((y[test] - y[test].mean(axis=0)) ** 2)), 1e-300)
    return FittedCostToGo(
        chosen, layers, jnp.asarray(scale), jnp.asarray(unit), rollouts.reduce,
        float(np.sqrt(np.mean(off**2))), float(explained),
    )  # fmt: skip


class _Powers(eqx.Module):
    """All products of an observation's numbers up to a degree."""

    degree: int = eqx.field(static=True)

    def __call__(self, observation: Observation) -> Array:
        numbers = ravel_pytree(jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), observation))[0]
        which = [c for d in range(1, self.degree + 1) for c in combinations_with_replacement(range(len(numbers)), d)]
        return jnp.stack([jnp.prod(numbers[jnp.asarray(c)]) for c in which])


def _network(layers: Any, x: Array) -> Array:
    for i, (weights, bias) in enumerate(layers):
        x = (jnp.tanh(x) if i else x) @ weights + bias
    return x


def _least(x: np.ndarray, y: np.ndarray) -> tuple[tuple[Array, Array], ...]:
    slope = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ y)
    return ((jnp.asarray(slope), jnp.zeros(y.shape[1])),)


def _train(x: np.ndarray, y: np.ndarray, hidden: int, seed: int) -> tuple[tuple[Array, Array], ...]:
    """Least squares by Adam over all states at once."""
    rng = np.random.default_rng([seed, 1])
    sizes = [(x.shape[1], hidden), (hidden, y.shape[1])]
    begin, unravel = ravel_pytree(
        tuple((jnp.asarray(rng.normal(size=s) / np.sqrt(s[0])), jnp.zeros(s[1])) for s in sizes)
    )
    slope = jax.grad(lambda flat: jnp.mean((_network(unravel(flat), jnp.asarray(x)) - y) ** 2))

    def advance(carry: Any, i: Array) -> tuple[Any, None]:
        at, mean, square = carry
        g = slope(at)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        step = (mean / (1 - 0.9 ** (i + 1))) / (jnp.sqrt(square / (1 - 0.999 ** (i + 1))) + 1e-8)
        return (at - LEARNING_RATE * (1 - i / TRAINING) * step, mean, square), None

    zero = jnp.zeros_like(begin)
    (trained, _, _), _ = jax.jit(lambda: jax.lax.scan(advance, (begin, zero, zero), jnp.arange(TRAINING)))()
    return unravel(trained)
