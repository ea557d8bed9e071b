"""Agents that plan: `Planner` searches around a composer's mixture, `Commitment` for which primitives to hold how long.

Both simulate candidates in closed loop with a model, the same random ones at every decision, average them by
exp(-cost/temperature), and keep what they found for the next decision.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Key

from .._types import Action, Array, ArrayLike, Observation, Time, in_native_order, is_traced
from ..actions import AbstractActions, Sampled
from ..core._checks import as_floats, check_number, shown
from ..core._method import Outcome
from ..core.objective import Certificate
from ..models import BlackBox, Random, Rollouts
from .composer import Composer
from .decision import Decision, failed, remember
from .gates import Prior

By = Literal["samples", "gradient"]
LEARNED = 0.1  # share of what the model missed in a step that counts in later ones
FREE = 8  # steps with a residual, unless given; chosen like the other defaults, by `benchmarks/plan.py`
Predict = Callable[[Observation, Action, Time], Observation] | Random
Stage = Callable[[Observation, Action, Time], ArrayLike]


class Planned(NamedTuple):
    """What a planner remembers of a decision, and says about it."""

    plan: Array  # residuals (free, dim), or which primitive acts (steps,), from the next step on
    effective: Float[Array, ""]  # effective number of candidates, 1 / sum of squared shares; NaN without an average
    error: Action  # standard error of the action, statistical: what other random candidates would change
    cost: Float[Array, " candidates"]  # what the model says of each candidate; the first follows the mixture
    inner: Any = ()  # the composer's own memory
    missed: Any = ()  # what the model misses in a step, as far as it is learned
    expected: Any = ()  # the next observation


class _Candidate(NamedTuple):
    """What is tried: shares of the primitives (free, n) and residuals (free, dim), before the mixture takes over."""

    shares: Array
    residual: Array


class Planner(eqx.Module):
    """An agent that acts by the composer's mixture plus a planned residual: u_t = sum_a w_a u_a(x_t) + delta_t.

    Half of the candidates follow the mixture with the kept residuals and noise for `free` steps, the other half one of
    the primitives with noise. Then all follow the mixture in closed loop to the end of `steps`. The plan is their mean,
    weighed by exp(-cost/T), T = `temperature` times the spread of the best eighth of the costs. Weights that the
    composer's gate finds keep their certificate; of a composer with `gate="prior"` they are fixed and have none. The
    plan has no certificate in any case. It trusts the model.

    - `predict(observation, action, k)`, `stage_cost(observation, action, k)`: as in `Rollouts`, `Random` and `BlackBox`
      included.
    - `steps`: simulated steps of a candidate; `samples`: candidates; `free`: steps with a residual, at most 8 unless
      given.
    - `noise`: standard deviation of the residuals, in units of `scale`, which is half the range of every action axis
      unless given; it is linear between `knots` in time. The same mirrored noise serves all decisions (`seed`).
    - `like`: an observation. With it the plan adds to every prediction what the model missed in past steps, on average,
      so that a constant error, such as a wrong mass, is learned while it acts. Observations must be numbers that do not
      wrap around, as an angle does.
    - `by="gradient"` descends the cost of the residuals instead, where the model is differentiable: a quarter as many
      steps as there would be candidates.
    """

    composer: Composer
    rollouts: Rollouts
    noise: Float[Array, ""]
    temperature: Float[Array, ""]
    scale: Float[Array, " dim"]
    like: Observation | None
    samples: int = eqx.field(static=True)
    free: int = eqx.field(static=True)
    knots: int = eqx.field(static=True)
    by: By = eqx.field(static=True)
    seed: int = eqx.field(static=True)

    def __init__(
        self,
        composer: Composer,
        predict: Predict,
        stage_cost: Stage,
        *,
        steps: int = 30,
        samples: int = 64,
        free: int | None = None,
        knots: int = 1,
        noise: ArrayLike = 0.3,
        temperature: ArrayLike = 0.15,
        scale: ArrayLike | None = None,
        like: Observation | None = None,
        by: By = "samples",
        seed: int = 0,
    ):
        if composer.actions.labels:
            raise ValueError("the actions are labels, which have no residuals: use Commitment, or vectors as actions.")
        if by not in ("samples", "gradient"):
            raise ValueError(f"by = {shown(by)}: use 'samples' or 'gradient'.")
        if by == "gradient" and any(isinstance(part, BlackBox) for part in (predict, stage_cost)):
            raise ValueError('by = "gradient" needs a model in JAX, but this one has a BlackBox: use by="samples".')
        self.composer, self.rollouts = composer, _rollouts(composer, predict, stage_cost, steps)
        self.samples, self.temperature = _whole("samples", samples, 4), _number("temperature", temperature)
        self.free = _whole("free", min(FREE, steps) if free is None else free, 1, steps, "steps")
        self.knots, self.noise = _whole("knots", knots, 1, self.free, "free"), _number("noise", noise)
        self.scale, self.by, self.seed = _scale_of(composer.actions, scale), by, int(seed)
        self.like = None if like is None else _floats(in_native_order(like))

    @property
    def names(self) -> tuple[str, ...]:
        """The primitives' names."""
        return self.composer.names

    def start(self) -> Planned:
        """The memory of an agent that has not decided yet: no residuals."""
        plan = jnp.zeros((self.free, len(self.scale)))
        cost = jnp.full(self.samples if self.by == "samples" else self.samples // 4, jnp.nan)
        none = () if self.like is None else jax.tree_util.tree_map(jnp.zeros_like, self.like)
        expected = jax.tree_util.tree_map(lambda a: jnp.full_like(a, jnp.nan), none)
        return Planned(plan, cost[0], plan[0] * jnp.nan, cost, self.composer.start(), none, expected)

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Planned | None = None
    ) -> Decision:
        """The first action of the improved plan. Pass the memory of the previous decision to the next one."""
        memory = self.start() if memory is None else in_native_order(memory)
        weights, (certificate, outcome), inner = _weigh(self.composer, observation, k, memory.inner)
        missed = memory.missed if self.like is None else _learn(memory, observation)
        simulate = partial(_simulate, self.rollouts, self.scale, weights, observation, k, missed=missed)
        improve = self._average if self.by == "samples" else self._descend
        plan, effective, error, cost = improve(simulate, weights, memory.plan)
        actions, commands = self.composer.actions, _commands(self.rollouts, observation, k)
        action = actions.inside(_mix(actions, *commands, weights) + self.scale * plan[0])
        rest = jnp.concatenate([plan[1:], jnp.zeros_like(plan[:1])])
        expected = () if self.like is None else _predict(self.rollouts, _floats(observation), action, k, 0, missed)
        kept: Any = Planned(rest, effective, error * self.scale, cost, inner, missed, expected)
        return Decision(action, weights, certificate, outcome, kept)

    def _average(self, simulate: Any, weights: Array, plan: Array) -> tuple[Array, Array, Array, Array]:
        """The residuals that the candidates leave on average, the better the more."""
        tried = self._candidates(weights, plan)
        cost, residual = jax.vmap(simulate)(tried)
        share = _shares(cost, self.temperature)
        mean = jnp.tensordot(share, residual, axes=1)
        error = jnp.sqrt(share**2 @ (residual[:, 0] - mean[0]) ** 2)
        return mean, 1.0 / jnp.sum(share**2), error, cost

    def _candidates(self, weights: Array, plan: Array) -> _Candidate:
        """The mixture alone, the kept plan, and mirrored pairs of noise around the kept plan or a primitive in turn."""
        n, (free, dim) = len(weights), plan.shape
        pairs = -(-self.samples // 2)
        basis = _basis(free, self.knots)
        drawn = jax.random.normal(jax.random.key(self.seed), (pairs, self.knots, dim), dtype=float)
        noise = self.noise * jnp.einsum("fk,pkd->pfd", basis, drawn)
        noise = jnp.stack([noise, -noise], axis=1).reshape(-1, free, dim)[: self.samples]
        pair = np.arange(self.samples) // 2
        single = (pair % 2 == 1) & (n > 1)
        # constant residuals last for all free steps, half of them, a quarter ...: what suits differs between tasks
        turn = np.where(single, pair // 2 // n, pair // 2)
        lasting = free // 2 ** (turn % free.bit_length()) if self.knots == 1 else np.full(self.samples, free)
        within = np.arange(free) < lasting[:, None]
        shares = jnp.where((single[:, None] & within)[..., None], np.eye(n)[pair // 2 % n][:, None], weights)
        residual = jnp.where(within[..., None], noise, 0.0) + jnp.where(single[:, None, None], 0.0, plan)
        return _Candidate(shares.at[:2].set(weights), residual.at[0].set(0.0).at[1].set(plan))

    def _descend(self, simulate: Any, weights: Array, plan: Array) -> tuple[Array, Array, Array, Array]:
        """The cheapest residuals that steps of Adam along the cost's gradient meet, from the kept plan or from none."""
        basis, shares = _basis(self.free, self.knots), jnp.broadcast_to(weights, (self.free, len(weights)))

        def cost_of(knots: Array, begin: Array) -> Array:
            return simulate(_Candidate(shares, begin + basis @ knots))[0]

        zero, turns = jnp.zeros((self.knots, plan.shape[1])), self.samples // 4
        begin = jnp.where(cost_of(zero, plan) <= cost_of(zero, jnp.zeros_like(plan)), plan, 0.0)

        def advance(carry: Any, i: Array) -> tuple[Any, Array]:
            knots, mean, square, best, least = carry
            cost, slope = jax.value_and_grad(cost_of)(knots, begin)
            better = cost < least
            best, least = jnp.where(better, knots, best), jnp.where(better, cost, least)
            slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
            mean, square = 0.7 * mean + 0.3 * slope, 0.9 * square + 0.1 * slope**2
            move = (mean / (1 - 0.7 ** (i + 1))) / (jnp.sqrt(square / (1 - 0.9 ** (i + 1))) + 1e-12)
            return (knots - self.noise * 0.9**i * move, mean, square, best, least), cost

        carry = (zero, zero, zero, zero, jnp.asarray(jnp.inf))
        (*_, best, _), cost = jax.lax.scan(advance, carry, jnp.arange(turns))
        unknown = jnp.asarray(jnp.nan)
        return begin + basis @ best, unknown, jnp.full(plan.shape[1], jnp.nan), cost


class Commitment(eqx.Module):
    """An agent that plans which primitive acts when: each is held for `hold` steps, then another one may follow.

    Candidates are each primitive to the end, the kept sequence, it with another primitive from some step on, and random
    sequences, the same at every decision. It acts by the mean of their first commands, weighed by exp(-cost/T) as in
    `Planner`; on labels by the label with the largest share. Weights are the shares of the primitives that begin, and
    nothing is proved about them.
    """

    composer: Composer
    rollouts: Rollouts
    temperature: Float[Array, ""]
    samples: int = eqx.field(static=True)
    hold: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)

    def __init__(
        self,
        composer: Composer,
        predict: Predict,
        stage_cost: Stage,
        *,
        steps: int = 30,
        samples: int = 64,
        hold: int = 5,
        temperature: ArrayLike = 0.15,
        seed: int = 0,
    ):
        self.composer, self.rollouts = composer, _rollouts(composer, predict, stage_cost, steps)
        self.samples = _whole("samples", samples, len(composer.names) + 2)
        self.hold, self.temperature = _whole("hold", hold, 1), _number("temperature", temperature)
        self.seed = int(seed)

    @property
    def names(self) -> tuple[str, ...]:
        """The primitives' names."""
        return self.composer.names

    def start(self) -> Planned:
        """The memory of an agent that has not decided yet: the first primitive all along."""
        error = jnp.full(self.composer.actions.points.shape[1:], jnp.nan)
        kept = jnp.zeros(self.rollouts.steps, int)
        return Planned(kept, jnp.asarray(jnp.nan), error, jnp.full(self.samples, jnp.nan))

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Planned | None = None
    ) -> Decision:
        """The command that the best sequences begin with. Pass the memory of the previous decision to the next one."""
        memory = self.start() if memory is None else in_native_order(memory)
        actions, each = self.composer.actions, jnp.eye(len(self.names))
        sequences, one = self._sequences(memory.plan), jnp.ones(actions.points.shape[1:])
        tried = _Candidate(each[sequences], jnp.zeros((*sequences.shape, *one.shape)))
        cost, _ = jax.vmap(partial(_simulate, self.rollouts, one, each[0], observation, k))(tried)
        share = _shares(cost, self.temperature)
        weights = share @ each[sequences[:, 0]]
        commands, valid = _commands(self.rollouts, observation, k)
        best = sequences[jnp.argmin(jnp.where(jnp.isnan(cost), jnp.inf, cost))]
        error = jnp.full(one.shape, jnp.nan)
        if not actions.labels:
            error = jnp.sqrt(jnp.tensordot(share**2, (commands[sequences[:, 0]] - weights @ commands) ** 2, axes=1))
        kept: Any = Planned(jnp.concatenate([best[1:], best[-1:]]), 1.0 / jnp.sum(share**2), error, cost)
        return Decision(_mix(actions, commands, valid, weights), weights, *_unproved(), kept)

    def _sequences(self, kept: Int[Array, " steps"]) -> Int[Array, "samples steps"]:
        """Which primitive acts at every step of every candidate."""
        n, steps = len(self.names), self.rollouts.steps
        count, parts = self.samples - n - 1, -(-steps // self.hold)
        rng = np.random.default_rng(self.seed)
        drawn = np.repeat(rng.integers(n, size=(count, parts)), self.hold, axis=1)[:, :steps]
        # every other one keeps the sequence up to a step
        until = np.where(np.arange(count) % 2 == 0, rng.integers(parts, size=count) * self.hold, 0)
        changed = jnp.where(np.arange(steps) < until[:, None], kept, drawn)
        return jnp.concatenate([jnp.tile(jnp.arange(n)[:, None], steps), kept[None], changed])


def _rollouts(composer: Composer, predict: Predict, stage_cost: Stage, steps: int) -> Rollouts:
    if not isinstance(composer, Composer):
        raise ValueError(f"composer is a {type(composer).__name__}: pass a Composer, whose primitives are simulated.")
    return Rollouts(composer.primitives, composer.actions, predict, stage_cost, steps=steps)


def _number(name: str, value: ArrayLike) -> jax.Array:
    return jnp.asarray(value if is_traced(value) else check_number(name, value), dtype=float)


def _whole(name: str, value: Any, least: int, most: int | None = None, limit: str = "") -> int:
    if not isinstance(value, int | np.integer) or value < least or (most is not None and value > most):
        end = "" if most is None else f", at most {most} ({limit})"
        raise ValueError(f"{name} = {shown(value)}: pass a whole number of at least {least}{end}.")
    return int(value)


def _scale_of(actions: AbstractActions, scale: ArrayLike | None) -> jax.Array:
    """What a residual of one is along every axis: half the range, unless given."""
    if scale is None:
        points = actions.points
        low, high = (actions.low, actions.high) if isinstance(actions, Sampled) else (points.min(0), points.max(0))
        if not bool(jnp.all(jnp.isfinite(high - low))):
            raise ValueError("the actions have no range: pass scale, the size of a residual of one on every axis.")
        scale = (high - low) / 2
    scale = as_floats("scale", scale)
    if not is_traced(scale) and not np.all(np.asarray(scale) > 0):
        raise ValueError(f"scale = {shown(scale)}: pass positive numbers, one or one for each action axis.")
    return jnp.broadcast_to(jnp.asarray(scale), actions.points.shape[1:])


def _basis(free: int, knots: int) -> Float[np.ndarray, "free knots"]:
    """Linear interpolation between knots that are spread evenly over the free steps."""
    place = np.linspace(0.0, knots - 1.0, free)
    return np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(knots)))


def _unproved() -> tuple[Certificate, Array]:
    nothing = jnp.asarray(jnp.inf)
    return Certificate(nothing, nothing), jnp.asarray(int(Outcome.NOT_OPTIMISED), "int8")


def _weigh(
    composer: Composer, observation: Observation, k: Time, memory: Any
) -> tuple[Array, tuple[Certificate, Array], Any]:
    """The weights of the mixture, their certificate and outcome, and the composer's memory.

    Fixed weights need no cost, so none is simulated for them.
    """
    if isinstance(composer.gate, Prior):
        log_prior = composer.log_prior(observation, k) if callable(composer.log_prior) else composer.log_prior
        return jnp.exp(log_prior), _unproved(), memory
    weighed = composer.weigh(observation, k, memory)
    weights = jnp.where(failed(weighed.outcome), memory.weights, weighed.weights)
    return weights, (weighed.certificate, weighed.outcome), remember(memory, weighed)


def _commands(rollouts: Rollouts, x: Observation, k: Time) -> tuple[Array, Array]:
    """The command of every primitive, and which of them are numbers."""
    commands = jnp.stack([rollouts._act(p, x, k) for p in rollouts.primitives])
    valid = jnp.all(jnp.isfinite(commands).reshape(len(commands), -1), axis=1)
    return jnp.where(valid.reshape(-1, *[1] * (commands.ndim - 1)), commands, rollouts.actions.points[0]), valid


def _mix(actions: AbstractActions, commands: Array, valid: Array, shares: Array) -> Action:
    """These shares of the commands, of labels the one with the largest share; what is no number is left out."""
    shares = jnp.where(valid, shares, 0.0)
    if actions.labels:
        return commands[jnp.argmax(shares)]
    shares = jnp.where(jnp.sum(shares) > 0.0, shares, jnp.where(jnp.any(valid), valid, 1.0))
    return shares / jnp.sum(shares) @ commands


def _floats(observation: Observation) -> Observation:
    return jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), observation)


def _learn(memory: Planned, observation: Observation) -> Any:
    """What the model misses in a step, with the last one; nothing is expected of the first observation."""

    def learn(missed: Array, expected: Array, seen: Array) -> Array:
        return missed + LEARNED * jnp.where(jnp.isnan(expected), 0.0, seen - expected)

    return jax.tree_util.tree_map(learn, memory.missed, memory.expected, _floats(observation))


def _predict(rollouts: Rollouts, x: Observation, action: Action, k: Time, number: Any, missed: Any) -> Observation:
    """The next observation, with what the model is known to miss."""
    following = rollouts._follow(x, action, k, number)
    return following if isinstance(missed, tuple) and not missed else jax.tree_util.tree_map(jnp.add, following, missed)


def _simulate(
    rollouts: Rollouts, scale: Array, weights: Array, observation: Observation, k: Time, tried: _Candidate,
    missed: Any = (),
) -> tuple[Array, Array]:  # fmt: skip
    """The cost of a candidate, and by how much it leaves the mixture in its free steps, in units of the scale."""
    free, actions = len(tried.residual), rollouts.actions
    observation = _floats(observation)

    def advance(number: Any, x: Observation, i: Array) -> tuple[Observation, tuple[Array, Array]]:
        here, within = jnp.minimum(i, free - 1), i < free
        shares = jnp.where(within, tried.shares[here], weights)
        residual = jnp.where(within, tried.residual[here], 0.0)
        commands, valid = _commands(rollouts, x, k + i)
        action = _mix(actions, commands, valid, shares)
        if not actions.labels:
            action = actions.inside(action + scale * residual)
            residual = (action - _mix(actions, commands, valid, weights)) / scale
        cost = jnp.asarray(rollouts.stage_cost(x, action, k + i), dtype=float)
        return _predict(rollouts, x, action, k + i, number, missed), (cost, residual)

    def future(number: Any) -> tuple[Array, Array]:
        _, (costs, residual) = jax.lax.scan(partial(advance, number), observation, jnp.arange(rollouts.steps))
        return jnp.sum(costs), residual[:free]

    return rollouts._mean(future)


def _shares(cost: Float[Array, " samples"], temperature: Array) -> Float[Array, " samples"]:
    """exp(-cost/T) as shares, T relative to how far the best eighth lies apart; all to the first without any number."""
    cost = jnp.where(jnp.isfinite(cost), cost, jnp.inf)
    above = cost - jnp.min(cost)
    spread = jnp.sort(above)[-(-len(cost) // 8)]
    spread = jnp.where(jnp.isfinite(spread) & (spread > 0.0), spread, 1.0)
    share = jax.nn.softmax(-above / (temperature * spread))
    return jnp.where(jnp.isfinite(jnp.min(cost)), share, jnp.zeros(len(cost)).at[0].set(1.0))
