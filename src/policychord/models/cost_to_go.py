"""Costs-to-go: `riccati` for linear worlds, `Rollouts` of the agent's own primitives, and a formula fitted to these."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float
from scipy.linalg import solve_discrete_are

from .._calls import call
from .._types import Action, ArrayLike, Observation, Time, in_native_order
from ..actions import AbstractActions, Grid, Sampled
from ..primitives.base import AbstractPrimitive, Draws
from ..primitives.columns import drawable
from ..primitives.policy import Policy
from .base import AbstractModel, Reference, Scaled, Sum
from .cost import BlackBox, Cost, Random, Tabular, as_price
from .gaussian import GaussianTarget

Matrix = Float[np.ndarray, "_ _"]


class Regulator(NamedTuple):
    """The best linear controller u = -gain x, and what a state costs from there on: x^T cost_to_go x."""

    gain: Matrix  # (actions, states)
    cost_to_go: Matrix  # (states, states): `Cost(cost_to_go=...)` takes it as it is


def riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike) -> Regulator:
    """The endless horizon of x' = A x + B u with the cost x^T Q x + u^T R u: P = Q + A^T P A - A^T P B K.

    `Cost(lambda x, u, k: u @ R @ u, predict=..., cost_to_go=P)` is a receding horizon in one matrix; differences to a
    target take its place in `target`.
    """
    A, B, Q, R = (np.asarray(matrix, dtype=float) for matrix in (A, B, Q, R))
    states, actions = B.shape if B.ndim == 2 else (0, 0)
    for name, matrix, shape in (("A", A, (states, states)), ("Q", Q, (states, states)), ("R", R, (actions, actions))):
        if matrix.shape != shape or not states:
            raise ValueError(
                f"{name} has shape {matrix.shape} and B {B.shape}: with s states and u actions pass A (s, s), "
                "B (s, u), Q (s, s) and R (u, u)."
            )
    try:
        P = solve_discrete_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise ValueError(
            "no controller keeps the cost finite: every direction that grows by itself must be reached by B and priced "
            f"by Q, and R must be positive definite ({error})."
        ) from error
    return Regulator(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), P)


def linearise(
    predict: Callable[[Observation, Action, Time], Observation], observation: ArrayLike, action: ArrayLike, k: Time = 0
) -> tuple[Matrix, Matrix]:
    """(A, B): how the next state changes with state and action around these, both vectors."""
    at = jnp.asarray(observation, dtype=float), jnp.asarray(action, dtype=float)
    A, B = jax.jacfwd(lambda x, u: jnp.asarray(call("predict", predict, x, u, k)), argnums=(0, 1))(*at)
    return np.asarray(A), np.asarray(B)


Follow = Literal["each", "prior"]
Reduce = Literal["min", "softmin"]


class Rollouts(eqx.Module):
    """What the next `steps` steps will cost if the primitives are followed from a state: `Cost(cost_to_go=...)`.

    - `primitives`: the agent's own, the dict that `Composer` is given; each is followed by its mean, or, on labels, by
      its most probable action; one of which `Sampled` actions are drawn and no mean is known, by its median.
    - `predict(observation, action, k)`: the next observation, `Random` for a world with chance, of which the mean over
      its futures counts; `stage_cost(observation, action, k)`: what a step costs.
    - `follow`: `each` follows one primitive after another, and takes the least of their costs (`reduce="min"`) or
      -ln mean exp(-cost) (`"softmin"`); `prior` follows the equal mixture of their means.

    Choose `steps` so that the weights no longer change with more; five steps are often no better than one.
    """

    primitives: tuple[AbstractPrimitive, ...]
    actions: AbstractActions
    predict: Callable[[Observation, Action, Time], Observation] | Random
    stage_cost: Callable[[Observation, Action, Time], ArrayLike]
    steps: int = eqx.field(static=True)
    follow: Follow = eqx.field(static=True)
    reduce: Reduce = eqx.field(static=True)

    def __init__(
        self,
        primitives: Mapping[str, AbstractPrimitive] | Sequence[AbstractPrimitive],
        actions: AbstractActions,
        predict: Callable[[Observation, Action, Time], Observation] | Random,
        stage_cost: Callable[[Observation, Action, Time], ArrayLike],
        *,
        steps: int = 30,
        follow: Follow = "each",
        reduce: Reduce = "min",
    ):
        if isinstance(predict, Tabular):
            raise ValueError(
                "predict is Tabular: in a finite world the cost-to-go is a linear system, so pass it to Cost as a "
                "function of the state, or follow the table by Random."
            )
        if not (isinstance(steps, int | np.integer) and steps >= 1):
            raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
        if follow not in ("each", "prior"):
            raise ValueError(f"follow = {follow!r}: use 'each' or 'prior'.")
        if reduce not in ("min", "softmin"):
            raise ValueError(f"reduce = {reduce!r}: use 'min' or 'softmin'.")
        self.primitives = tuple(primitives.values() if isinstance(primitives, Mapping) else primitives)
        self.actions, self.predict, self.stage_cost = actions, predict, as_price(stage_cost)
        self.steps, self.follow, self.reduce = int(steps), follow, reduce
        if follow == "prior" and self.actions.labels:
            raise ValueError('follow = "prior" mixes means, and the mean of labels is not an action: use "each".')

    def __call__(self, observation: Observation, k: Time) -> Float[Array, ""]:
        """The cost of the next steps from here."""
        return _reduced(self.each(observation, k), self.reduce)

    def each(self, observation: Observation, k: Time) -> Float[Array, " followed"]:
        """The cost of following each primitive from here, or the one of following their mixture."""

        def mean(x: Observation, t: Time) -> Array:
            return jnp.mean(jnp.stack([self._act(p, x, t) for p in self.primitives]), axis=0)

        plain = self._in_numpy(observation, k)
        if plain is not None:
            return plain
        if self.follow == "prior":
            return self._cost(mean, observation, k)[None]
        return jnp.stack([self._cost(partial(self._act, p), observation, k) for p in self.primitives])

    def _in_numpy(self, observation: Observation, k: Time) -> Float[Array, " followed"] | None:
        """The same in one call of ordinary Python for all states and primitives, if no part of it needs JAX."""
        actions, predict, stage = self.actions, self.predict, self.stage_cost
        asked = [p.in_rows(actions) if isinstance(p, Policy) else None for p in self.primitives]
        if not (isinstance(predict, BlackBox) and isinstance(stage, BlackBox)) or any(ask is None for ask in asked):
            return None
        sides: tuple[Any, Any] = (-jnp.inf, jnp.inf)
        if not actions.labels:
            box = actions.radius is None if isinstance(actions, Grid) else not getattr(actions, "squash", True)
            if not (box and isinstance(actions, Grid | Sampled)):
                return None
            sides = actions.low, actions.high
        floats = jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), observation)
        arguments = jax.tree_util.tree_map(jnp.asarray, (floats, k, *sides))
        ndim = jax.tree_util.tree_map(jnp.ndim, arguments)
        followed = 1 if self.follow == "prior" else len(asked)
        follow = partial(_follow_rows, asked, predict, stage, self.steps, followed, ndim)
        shape = jax.ShapeDtypeStruct((followed,), jnp.result_type(float))
        return jax.pure_callback(follow, shape, *arguments, vmap_method="broadcast_all")

    def _cost(self, act: Callable[[Observation, Time], Array], observation: Observation, k: Time) -> Float[Array, ""]:
        def advance(number: Array | int, x: Observation, i: Array) -> tuple[Observation, Array]:
            action = act(x, k + i)
            cost = jnp.asarray(call("stage_cost", self.stage_cost, x, action, k + i), dtype=float)
            return self._follow(x, action, k + i, number), cost

        observation = jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), observation)

        def future(number: Array | int) -> Array:
            _, costs = jax.lax.scan(partial(advance, number), observation, jnp.arange(self.steps))
            return jnp.sum(costs)

        return self._mean(future)

    def _mean(self, future: Callable[[Any], Any]) -> Any:
        """What a future is on average, over those of a world with chance."""
        if not isinstance(self.predict, Random):
            return future(0)
        every = jax.vmap(future)(jnp.arange(self.predict.samples))
        return jax.tree_util.tree_map(partial(jnp.mean, axis=0), every)

    def _follow(self, x: Observation, action: Array, k: Time, number: Array | int) -> Observation:
        """The next observation; in a world with chance that of the future with this number."""
        if isinstance(self.predict, Random):
            stream = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.predict.seed), number), k)
            following = call("predict", self.predict.predict, x, action, k, stream)
        else:
            following = call("predict", self.predict, x, action, k)
        return jax.tree_util.tree_map(lambda new, old: jnp.asarray(new, dtype=old.dtype), following, x)

    def _act(self, primitive: AbstractPrimitive, observation: Observation, k: Time) -> Array:
        actions = self.actions
        if isinstance(actions, Sampled):
            (primitive,) = drawable((primitive,), actions, observation, k)
        mean = getattr(primitive, "centre", None)
        if mean is not None and not self.actions.labels:
            own = mean(actions, observation, k)
            if isinstance(actions, Sampled) and actions.squash:
                return actions.at_points(own[None]).points[0]
            return actions.inside(own)
        if isinstance(actions, Sampled):
            assert isinstance(primitive, Draws)  # a composer refuses other ones
            middle = jnp.full((1, *actions.low.shape), 0.5)
            return actions.at_points(primitive.sample(middle, actions, observation, k)).points[0]
        log_prob = primitive.log_prob(actions, observation, k)
        return actions.at(jnp.argmax(log_prob)) if self.actions.labels else actions.mean(jnp.exp(log_prob))


def _follow_rows(
    asked: list[Any], predict: BlackBox, stage: BlackBox, steps: int, followed: int, ndim: Any, *batch: Any
) -> Float[np.ndarray, "... followed"]:
    """The cost of following each of the policies, or the mean of all, from each state of a batch, in NumPy."""
    arrays = jax.tree_util.tree_map(np.asarray, batch)
    rows = jax.tree_util.tree_map(lambda a, n: a.reshape(-1, *a.shape[a.ndim - n :]), arrays, ndim)
    # all futures side by side, policy after policy
    x, k, low, high = jax.tree_util.tree_map(lambda a: np.concatenate([a] * followed), rows)
    each, count = followed == len(asked), len(k) // followed
    parts = [slice(i * count, (i + 1) * count) if each else slice(None) for i in range(len(asked))]
    price, move = stage.answer, predict.answer
    total = np.zeros(len(k))
    for _ in range(steps):
        questions = [(jax.tree_util.tree_map(lambda a, part=part: a[part], x), k[part]) for part in parts]
        answers = [ask(*question) for ask, question in zip(asked, questions, strict=True)]
        if low.ndim > 1:  # of labels there are no sides
            answers = [np.clip(answer, low[part], high[part]) for answer, part in zip(answers, parts, strict=True)]
        action = np.concatenate(answers) if each else np.mean(answers, axis=0)
        total += np.asarray(price(x, action, k), dtype=float).reshape(len(k))
        following = move(x, action, k)
        x = jax.tree_util.tree_map(lambda new, old: np.asarray(new, dtype=old.dtype).reshape(old.shape), following, x)
        k = k + 1
    return np.moveaxis(total.reshape(followed, *arrays[1].shape), 0, -1)


def simulated_steps(model: AbstractModel, actions: int) -> int | None:
    """How many steps of the world a model simulates to price so many actions; None for a model that it does not know.

    Of the model of an agent with n primitives and d actions and `Rollouts` of m steps: d (1 + n m).
    """
    if isinstance(model, Scaled):
        return simulated_steps(model.model, actions)
    if isinstance(model, Sum):
        parts = [simulated_steps(part, actions) for part in model.models.values()]
        return None if None in parts else sum(part for part in parts if part is not None)
    if isinstance(model, Reference | GaussianTarget):
        return actions if isinstance(model, GaussianTarget) else 0
    if not isinstance(model, Cost):
        return None
    if model.predict is None:
        return 0
    futures, later, to_go = model.predict.samples if isinstance(model.predict, Random) else 1, 0, model.cost_to_go
    if isinstance(to_go, Rollouts):
        followed = 1 if to_go.follow == "prior" else len(to_go.primitives)
        later = followed * to_go.steps * (to_go.predict.samples if isinstance(to_go.predict, Random) else 1)
    return actions * futures * (1 + later)


LEARNING_RATE, TRAINING = 0.01, 3000  # of the network: Adam, steps over all states at once
RIDGE = 1e-8


def _reduced(costs: Float[Array, " followed"], reduce: Reduce) -> Float[Array, ""]:
    """The least cost, or -ln mean exp(-cost)."""
    return jnp.min(costs) if reduce == "min" else np.log(len(costs)) - logsumexp(-costs)


class FittedCostToGo(eqx.Module):
    """A cost-to-go fitted to rollouts: one value for each primitive that is followed, then their least or soft least.

    `fit_cost_to_go` makes it. `error` is what it tells about itself: the RMS difference to rollouts from states that
    were kept from the fit; `explained` is the share of their variance that it gets right, one at best.
    """

    features: Callable[[Observation], ArrayLike]
    layers: tuple[tuple[Array, Array], ...]  # (weights, bias), tanh between them; one layer is linear
    scale: Float[Array, "2 f"]  # middle and width of each feature
    unit: Float[Array, "2 m"]  # middle and width of each value
    reduce: Reduce = eqx.field(static=True)
    error: float = eqx.field(static=True)
    explained: float = eqx.field(static=True)

    def __call__(self, observation: Observation, k: Time) -> Float[Array, ""]:
        """The cost of the next steps from here; the step k plays no part."""
        values = self._values(jnp.asarray(call("features", self.features, observation), dtype=float))
        return _reduced(values, self.reduce)

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
