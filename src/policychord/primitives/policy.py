"""`Policy`: anybody's trained policy as a primitive, through plain Python; or the distribution that it has itself."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._calls import call, takes_step
from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions, Grid, Sampled
from .base import AbstractPrimitive
from .gaussian import Gaussian, log_mass

_Kind = Literal["labels", "values", "clipped", "squashed"]


class _OwnDistribution(NamedTuple):
    """What kind of distribution a trained policy has. `parameters` gives its numbers for given observations.

    `labels`: logits of each label. `values`: Q of each label, for a softmax of Q / temperature. `clipped`: u = y, cut
    to the limits, with y Gaussian. `squashed`: u = tanh(y), stretched to the limits. Each number of y has a mean and an
    sd.
    """

    kind: _Kind
    network: Any  # what has the distribution, an SB3 policy
    shape: tuple[int, ...]  # of the numbers for one observation: (labels,), or (2, dim) for means and sds
    low: np.ndarray  # the limits of an action; for labels the first of them
    high: np.ndarray

    def parameters(self, observation: Any, state: Any = None) -> np.ndarray:
        """The numbers for a batch of observations: logits, values, or means and standard deviations."""
        import torch

        network = self.network
        network.set_training_mode(False)
        with torch.no_grad():
            seen = network.obs_to_tensor(observation)[0]
            if self.kind == "values":
                return network.q_net(seen).double().cpu().numpy()
            if hasattr(network, "actor"):
                mean, log_sd, more = network.actor.get_action_dist_params(seen)
                distribution = network.actor.action_dist.proba_distribution(mean, log_sd, **more)
            elif state is None:
                distribution = network.get_distribution(seen)
            else:
                state = tuple(
                    torch.as_tensor(np.array(part), dtype=torch.float32, device=network.device) for part in state
                )
                begun = torch.zeros(state[0].shape[1], device=network.device)
                distribution = network.get_distribution(seen, state, begun)[0]
            inner = distribution.distribution
            numbers = inner.logits if self.kind == "labels" else torch.stack([inner.mean, inner.stddev], -2)
            return numbers.double().cpu().numpy()

    def log_prob(
        self, actions: AbstractActions, parameters: Float[Array, "..."], temperature: Float[Array, ""] | None
    ) -> Float[Array, " d"]:
        """ln probability of every action of the set, which is what the policy plays, rounded to the set."""
        if self.kind in ("labels", "values"):
            return self._of_labels(actions, parameters if temperature is None else parameters / temperature)
        mean, sd = parameters
        if isinstance(actions, Grid):
            return self._of_cells(actions, mean, sd)
        points = actions.points.reshape(actions.size, -1)
        if points.shape[1] != len(self.low) or actions.labels:
            raise ValueError(
                f"the policy acts with {len(self.low)} numbers between limits, but the actions are points of shape "
                f"{actions.points.shape[1:]}: use a Grid, or vectors of {len(self.low)}."
            )
        inner = self.inner(jnp.clip(points, *self._within()))
        density = -0.5 * ((inner - mean) / sd) ** 2 - jnp.log(sd) - self._stretch(inner)
        return jax.nn.log_softmax(jnp.sum(density, axis=-1))

    def fits(self, actions: Sampled) -> None:
        """Complain unless these actions are the policy's own: as many numbers, squashed where it squashes."""
        if self.kind in ("labels", "values"):
            raise ValueError(
                f"the policy chooses among labels, and Sampled actions are numbers: Finite({self.shape[0]})."
            )
        if actions.low.shape != self.low.shape:
            raise ValueError(f"the policy acts with {len(self.low)} numbers, Sampled with {len(actions.low)}.")
        # where the limits are not known yet, a composer has compared them when it was made
        same = is_traced(actions.low) or np.allclose([actions.low, actions.high], [self.low, self.high])
        if actions.squash == (self.kind == "squashed") and (same or not actions.squash):
            return
        limits = f"low = {self.low.tolist()}, high = {self.high.tolist()}"
        raise ValueError(
            f"the policy squashes its actions into {limits}: use Sampled with these and squash=True."
            if self.kind == "squashed"
            else "the policy does not squash its actions: use Sampled without squash."
        )

    def inner(self, action: Float[Array, "..."]) -> Float[Array, "..."]:
        """y, the Gaussian number behind an action; infinite at the limits of a squashed one."""
        if self.kind == "clipped":
            return action
        return jnp.arctanh(jnp.clip(2.0 * (action - self.low) / (self.high - self.low) - 1.0, -1.0, 1.0))

    def _stretch(self, inner: Array) -> Array | float:
        """ln du/dy, along each axis."""
        if self.kind == "clipped":
            return 0.0
        # 1 - tanh^2 y = 4 / (e^y + e^-y)^2, which keeps its digits far out
        return jnp.log(2.0 * (self.high - self.low)) - 2.0 * jnp.logaddexp(inner, -inner)

    def _within(self) -> tuple[np.ndarray, np.ndarray]:
        """The limits, without the two ends of a squashed action, at which its density is not a number."""
        margin = 0.0 if self.kind == "clipped" else 1e-6 * (self.high - self.low)
        return self.low + margin, self.high - margin

    def _of_labels(self, actions: AbstractActions, log_prob: Array) -> Array:
        place = actions.points - self.low
        known = (place >= 0) & (place < self.shape[0])
        if not actions.labels or (not is_traced(known) and not np.all(known)):
            raise ValueError(
                f"the policy chooses among {self.shape[0]} labels from {int(self.low)} on, so the actions must be some "
                f"of those: Finite({self.shape[0]})."
            )
        # a label that it does not have makes everything NaN, which no certificate survives
        return jax.nn.log_softmax(jnp.where(known, log_prob[jnp.clip(place, 0, self.shape[0] - 1)], jnp.nan))

    def _of_cells(self, grid: Grid, mean: Array, sd: Array) -> Array:
        """Each point has the probability of its cell; the outermost cells have all that lies beyond."""
        if len(grid.axes) != len(self.low):
            raise ValueError(f"the policy acts with {len(self.low)} numbers, but the grid has {len(grid.axes)} axes.")
        whole = jnp.zeros(1)
        for i, axis in enumerate(grid.axes):
            edges = (axis[1:] + axis[:-1]) / 2
            side = _OwnDistribution(self.kind, None, (2, 1), self.low[i], self.high[i])
            z = (side.inner(edges) - mean[i]) / sd[i]
            if self.kind == "clipped":  # what is cut to a limit lies there, in the cell of the limit
                z = jnp.where(edges >= self.high[i], jnp.inf, jnp.where(edges < self.low[i], -jnp.inf, z))
            ends = jnp.concatenate([jnp.full(1, -jnp.inf), z, jnp.full(1, jnp.inf)])
            whole = (whole[:, None] + log_mass(ends[:-1], ends[1:])).ravel()
        return whole if grid.kept is None else jax.nn.log_softmax(whole[grid.kept])


def _own_distribution(policy: Any) -> _OwnDistribution:
    """The distribution that this policy has, or why it has none that a composer can use."""
    network = getattr(policy, "policy", policy)  # an algorithm has a policy; a policy is one
    name = type(policy).__name__
    space: Any = getattr(network, "action_space", None)
    has_values = callable(getattr(network, "q_net", None))
    has_actor = hasattr(getattr(network, "actor", None), "get_action_dist_params")
    if hasattr(space, "n") and hasattr(space, "start") and (has_values or hasattr(network, "get_distribution")):
        kind: _Kind = "values" if has_values else "labels"
        first = np.asarray(int(space.start))
        return _OwnDistribution(kind, network, (int(space.n),), first, first)
    if hasattr(space, "low") and (has_actor or hasattr(network, "get_distribution")):
        low, high = (np.asarray(end, dtype=float).ravel() for end in (space.low, space.high))
        kind = "squashed" if has_actor or network.squash_output else "clipped"
        return _OwnDistribution(kind, network, (2, len(low)), low, high)
    raise ValueError(
        f"policy is a {name} with actions {space}: distribution='own' reads policies of Stable-Baselines3 for labels "
        "or for numbers between limits (PPO, A2C, SAC, DQN and their like). Give another one a spread instead."
    )


class Policy(AbstractPrimitive):
    """Whatever `predict(observation)` answers, with a spread around it; or the policy's own distribution.

    `policy` is an object with Stable-Baselines3's `predict(observation, state=None, episode_start=None,
    deterministic=False)`, or a function of (observation) or (observation, k) that gives an action. `predict` is given a
    batch of observations and answers with a batch of actions, as Stable-Baselines3 does; a function is given one
    observation at a time, or with `batched=True` many at once, with a leading axis, and k for each. Both run as
    ordinary Python (torch, NumPy, a look-up), outside the compiled loop.

    - `spread`: on a grid, the standard deviation of a Gaussian around the answer. On a list of labels, the probability
      shared by the other actions.
    - `outside`: where an answer beyond the action set goes, "clip" or "tail", as in `Gaussian`.
    - `observe(observation, k)` makes what the policy sees of what the agent sees; without it they are the same.
    - `distribution="own"`, in place of a spread, takes the distribution of a Stable-Baselines3 policy: PPO's and A2C's
      categorical or Gaussian, SAC's squashed Gaussian, the softmax of DQN's values (`spread` is its temperature then,
      1 if it is not given). On a grid every point has the probability of its cell. Of `Sampled` actions PPO and A2C
      take the Gaussian, cut at the sides of the box; SAC needs `Sampled(low, high, squash=True)` with its own limits.
    - `state(observation, k)`: the state of a recurrent policy before it sees this, a tuple of arrays. It is part of
      what the agent sees; `policychord.gym.Recurrent` is an environment that shows it. The policy's batches have their
      axis second, as those of sb3-contrib.
    """

    policy: "Identified" = eqx.field(static=True)
    spread: Float[Array, "..."] | None
    own: bool = eqx.field(static=True)
    outside: Literal["clip", "tail"] = eqx.field(static=True)
    batched: bool = eqx.field(static=True)
    stepped: bool = eqx.field(static=True)  # whether it is a function of k, too
    observe: Callable[[Observation, Time], Any] | None
    state: Callable[[Observation, Time], Any] | None

    def __init__(
        self,
        policy: Any,
        spread: ArrayLike | None = None,
        observe: Callable[[Observation, Time], Any] | None = None,
        *,
        distribution: Literal["spread", "own"] = "spread",
        state: Callable[[Observation, Time], Any] | None = None,
        outside: Literal["clip", "tail"] | None = None,
        batched: bool = False,
    ):
        if not (callable(getattr(policy, "predict", None)) or callable(policy)):
            raise ValueError(
                f"policy is a {type(policy).__name__}: pass an object with predict(observation, ...), or a function."
            )
        if distribution not in ("spread", "own"):
            raise ValueError(f"distribution = {distribution!r}: use 'spread' (around its answer) or 'own'.")
        if state is not None and not hasattr(policy, "predict"):
            raise ValueError("state belongs to a policy with predict; a function can look at the observation itself.")
        if batched and hasattr(policy, "predict"):
            raise ValueError("batched belongs to a function; an object with predict is given batches anyway.")
        if outside not in (None, "clip", "tail") or (outside is not None and distribution == "own"):
            raise ValueError(
                f"outside = {outside!r}: use 'clip' (move the answer to the border) or 'tail' (leave it), and nothing "
                "with distribution='own', which says itself what lies beyond the limits."
            )
        if distribution == "spread" or spread is not None:
            values = np.asarray(np.nan if spread is None else spread, dtype=float)
            if not np.all(np.isfinite(values) & (values > 0)):
                raise ValueError(
                    f"spread = {values.tolist()}: pass a positive number, or distribution='own' for a policy that has "
                    "one; a policy without any spread cannot be mixed."
                )
        self.own = distribution == "own"
        if self.own and _own_distribution(policy).kind != "values" and spread is not None:
            raise ValueError(
                f"spread = {spread!r}: {type(policy).__name__} has a distribution of its own; only one with values "
                "(DQN) needs a spread, as the temperature of their softmax. Leave it out."
            )
        self.policy, self.observe, self.state = Identified(policy), observe, state
        self.outside, self.batched = outside or "clip", batched
        self.stepped = not hasattr(policy, "predict") and takes_step(policy, otherwise=False)
        self.spread = None if spread is None else jnp.asarray(values)

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        if self.own:
            own = _own_distribution(self.policy.value)
            return own.log_prob(actions, self._ask(observation, k, own.shape, np.dtype(float), own), self.spread)
        spread = jnp.asarray(self.spread)
        if actions.labels:
            if spread.ndim or (not is_traced(spread) and not np.asarray(spread) < 1):
                raise ValueError(f"spread = {spread}: with labels it is one probability, so it lies below 1.")
            answer = self._ask(observation, k, (), np.dtype(actions.points.dtype))
            chosen = actions.points == answer
            shared = spread if actions.size > 1 else 0.0  # there is no other action
            others = jnp.log(shared) - np.log(max(actions.size - 1, 1))
            # an answer that is not in the list gives NaN, which no certificate survives
            log_prob = jnp.where(chosen, jnp.log1p(-shared), others)
            return jnp.where(jnp.any(chosen), log_prob, jnp.nan)
        answer = self._ask(observation, k, actions.points.shape[1:], np.dtype(actions.points.dtype))
        return Gaussian(lambda _, k: answer, sd=spread, outside=self.outside).log_prob(actions, observation, k)

    def gaussian(self, actions: Sampled, observation: Observation, k: Time) -> Gaussian:
        """What it would do here, as the Gaussian that `Sampled` actions are drawn from."""
        self.check_drawn(actions)
        if not self.own:
            answer, spread = self._ask(observation, k, actions.low.shape, np.dtype(float)), self.spread
            return Gaussian(lambda x, k: answer, lambda x, k: spread, outside=self.outside)
        own = _own_distribution(self.policy.value)
        mean, sd = self._ask(observation, k, own.shape, np.dtype(float), own)
        return Gaussian(lambda x, k: mean, lambda x, k: sd, outside="tail")

    def check_drawn(self, actions: Sampled) -> None:
        """Complain unless these actions can be drawn from it."""
        if self.own:
            _own_distribution(self.policy.value).fits(actions)
        elif actions.squash:
            raise ValueError(
                "a policy with a spread speaks of actions, and squashed ones are drawn before they are squashed: "
                "leave squash out, or use distribution='own' with a policy that squashes (SAC)."
            )

    def centre(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, "..."]:
        """What the policy answers, without any spread."""
        return self._ask(observation, k, actions.points.shape[1:], np.dtype(actions.points.dtype))

    def in_rows(self, actions: AbstractActions) -> Callable[[Any, np.ndarray], np.ndarray] | None:
        """The same for NumPy batches of (observations, k), without JAX; None if `observe` or `state` are needed."""
        if self.observe is not None or self.state is not None:
            return None
        shape, dtype = actions.points.shape[1:], np.dtype(actions.points.dtype)
        return partial(_answer_rows, self._questions(None, shape, dtype), None)

    def _questions(self, own: _OwnDistribution | None, shape: tuple[int, ...], dtype: np.dtype) -> "_Questions":
        return _Questions(self.policy.value, own, self.batched, self.stepped, shape, dtype)

    def _ask(
        self,
        observation: Observation,
        k: Time,
        shape: tuple[int, ...],
        dtype: np.dtype,
        own: _OwnDistribution | None = None,
    ) -> Array:
        """The policy's answer: an action, or the numbers of its own distribution."""
        seen = observation if self.observe is None else self.observe(observation, k)
        state = None if self.state is None else tuple(self.state(observation, k))
        arguments = jax.tree_util.tree_map(jnp.asarray, (seen, state, k))
        ndim = jax.tree_util.tree_map(jnp.ndim, arguments)
        ask = partial(_answer, self._questions(own, shape, dtype), ndim)
        if not is_traced(*jax.tree_util.tree_leaves(arguments)):
            return jnp.asarray(ask(*arguments))  # an error in the policy arrives as it was raised
        return jax.pure_callback(ask, jax.ShapeDtypeStruct(shape, dtype), *arguments, vmap_method="broadcast_all")


class Identified:
    """Anything, compared by identity, so that it can be part of what a compiled function is known by."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identified) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _Questions(NamedTuple):
    """Whom to ask, how, and what the answer to one observation looks like."""

    policy: Any
    own: _OwnDistribution | None
    batched: bool
    stepped: bool
    shape: tuple[int, ...]
    dtype: np.dtype


def _answer(questions: _Questions, ndim: Any, observation: Any, state: Any, k: Any) -> np.ndarray:
    """The policy's answers to observations with any number of leading axes."""
    arguments = jax.tree_util.tree_map(np.asarray, (observation, state, k))
    rows = jax.tree_util.tree_map(lambda a, n: a.reshape(-1, *a.shape[a.ndim - n :]), arguments, ndim)
    answer = _answer_rows(questions, rows[1], rows[0], rows[2])
    return answer.reshape((*arguments[2].shape, *questions.shape))


def _answer_rows(questions: _Questions, state: Any, many: Any, k: np.ndarray) -> np.ndarray:
    """The policy's answers to NumPy rows: to all at once if it can, else to one after another."""
    policy, own, batched, stepped, shape, dtype = questions
    count = len(k)
    if own is not None or hasattr(policy, "predict"):
        before = None if state is None else tuple(np.moveaxis(part, 0, 1) for part in state)
        answer = np.asarray(_predicted(policy, own, many, before))
    else:
        answer = np.asarray(_asked(policy, batched, count, *((many, k) if stepped else (many,))))
    if answer.size != count * int(np.prod(shape)):
        raise ValueError(
            f"the policy answered with shape {answer.shape} to {count} observations: "
            f"one action of shape {shape} for each was expected."
        )
    exact = answer.reshape((count, *shape)).astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(exact.ravel(), answer.ravel()):
        raise ValueError(f"the policy answered {answer.ravel()[:4].tolist()}, but the actions are whole numbers.")
    return exact


def _asked(policy: Any, batched: bool, count: int, *given: Any) -> ArrayLike:
    """What a function says of these observations: of all at once, or of one after another."""
    if batched:
        return call("the policy", policy, *given)
    rows = (jax.tree_util.tree_map(lambda a, i=i: a[i], given) for i in range(count))
    return [call("the policy", policy, *row) for row in rows]


def _predicted(policy: Any, own: _OwnDistribution | None, many: Any, state: Any) -> ArrayLike:
    """What a policy with `predict`, or its own distribution, says of a batch of observations."""
    try:
        if own is not None:
            return own.parameters(many, state)
        answer, after = policy.predict(many, **({} if state is None else {"state": state}), deterministic=True)
    except Exception as error:  # other people's code may raise anything
        shape = np.shape(jax.tree_util.tree_leaves(many)[0])
        raise ValueError(
            f"policy.predict failed on a batch of observations of shape {shape} ({type(error).__name__}: {error}): "
            "predict must take a batch and return (actions, state); for a policy that takes one observation pass a "
            "function instead."
        ) from error
    if after is not None and state is None:
        raise ValueError(
            "the policy returned a state of its own, so its answers depend on what it saw before: pass state=..., a "
            "function of (observation, k) that gives the state before this observation, and see "
            "policychord.gym.Recurrent, which keeps it."
        )
    return answer
