"""A state of the whole group that nobody sees: the weights of the social forces change when all change it together.

A hidden Markov model with two states for each trial. Given the state, decisions are independent; ln p of a moment is
found by the forward algorithm from all moments before it. States may differ in the own motion alone (`REST`), or in the
weights of the social forces as well (`STATES`): what the second adds over the first is the change of the weights.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..inference import Estimator
from ..inference.likelihoods import scores
from ..inference.parameters import natural, real, size, unconstrained
from ..inference.search import maximise_groups
from .nested import Found, estimator
from .rivals import SUM, Names, log_prob_of

REST, STATES = "hidden state of own motion", "hidden state of the weights"
CHUNK = 512  # decisions are padded to multiples of it, moments to multiples of 64: programs are shared
MOMENTS = 64
STAY = 2.0  # ln odds of staying, at which searches begin
NEAR, STEPS = 0.03, 60
WINDOW = 6  # moments over which scores are summed to find where a search begins


class _Grid(NamedTuple):
    """Decisions by moment."""

    row: np.ndarray  # (T, M): which decision
    there: np.ndarray  # (T, M)
    begins: np.ndarray  # (T): a new trial
    of_row: np.ndarray  # (N): the moment of each decision


def _grid(trial: np.ndarray, frame: np.ndarray) -> _Grid:
    moments, of_row, counts = np.unique(np.stack([trial, frame], axis=1), axis=0, return_inverse=True,
                                        return_counts=True)  # fmt: skip
    of_row = of_row.reshape(-1)
    length = -(-len(moments) // MOMENTS) * MOMENTS
    row, there = np.zeros((length, int(counts.max())), int), np.zeros((length, int(counts.max())), bool)
    order = np.argsort(of_row, kind="stable")
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    row[of_row[order], place], there[of_row[order], place] = order, True
    begins = np.ones(length, bool)
    begins[1 : len(moments)] = moments[1:, 0] != moments[:-1, 0]
    return _Grid(row, there, begins, of_row)


def _parameters(names: Names, constant: str, states: bool) -> tuple[Any, ...]:
    weak = partial(real, prior=None)
    own = (
        weak("louder", 0.2),
        weak("faster", labels=("drag", "persist")),
        weak("stay", [STAY, STAY], labels=("a", "b")),
    )
    count = len(names.social)
    return (
        (weak("shift", labels=names.social), weak("change", np.zeros(count), labels=names.social), *own)
        if states
        else own
    )


def _theta_of(constant: str, base: Mapping[str, Any], state: Mapping[str, Any], side: float) -> dict[str, Any]:
    """The numbers of the constant model in one state; side is -1 or 1."""
    theta = dict(base)
    theta["sd"] = base["sd"] * jnp.exp(side * state["louder"])
    theta["own"] = base["own"].at[:2].add(side * state["faster"])
    if "change" in state:
        by = state["shift"] + side * state["change"]
        if constant == SUM:
            theta["slope"] = base["slope"] + by
        else:
            theta["odds"] = jax.nn.softmax(jnp.log(base["odds"]) + jnp.concatenate([by, jnp.zeros(1)]))
    return theta


@lru_cache(maxsize=16)
def _programs(names: Names, constant: str, parameters: tuple[Any, ...], states: bool) -> dict[str, Any]:
    own = _parameters(names, constant, states)
    scale = 0.5  # of a weak normal prior of all numbers of the states

    def emissions(z_base: Any, z: Any, units: Any) -> tuple[Any, Any]:
        state, base = natural(own, z), natural(parameters, z_base)
        base = {name: jnp.asarray(value) for name, value in base.items()}
        sides = [_theta_of(constant, base, state, side) for side in (-1.0, 1.0)]
        log_p = [
            jax.vmap(lambda unit, theta=theta: log_prob_of(constant, names, theta, unit))(units) for theta in sides
        ]
        return jnp.stack(log_p, axis=-1), state["stay"]

    def forward(log_p: Any, stay: Any, grid: Any, weight: Any) -> Any:
        """ln p of each moment given all before it, (T)."""
        each = jnp.where(grid[1][..., None], (weight[:, None] * log_p)[grid[0]], 0.0).sum(axis=1)
        logit = jnp.stack([stay[0], stay[1]])
        same, other = jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)
        move = jnp.stack([jnp.stack([same[0], other[0]]), jnp.stack([other[1], same[1]])])
        usual = jax.nn.log_softmax(jnp.stack([other[1], other[0]]))

        def step(before: Any, now: Any) -> Any:
            emission, begins = now
            ahead = jnp.where(begins, usual, logsumexp(before[:, None] + move, axis=0))
            joint = ahead + emission
            total = logsumexp(joint)
            return joint - total, total

        return jax.lax.scan(step, usual, (each, grid[2]))[1]

    def value(z: Any, z_base: Any, weight: Any, units: Any, grid: Any) -> Any:
        log_p, stay = emissions(z_base, z, units)
        return forward(log_p, stay, grid, weight).sum() - 0.5 * jnp.sum((z - jnp.asarray(start)) ** 2) * scale

    start = unconstrained(own, {})

    def predicted(z: Any, z_base: Any, units: Any, grid: Any) -> Any:
        log_p, stay = emissions(z_base, z, units)
        return forward(log_p, stay, grid, jnp.ones(len(log_p)))

    both = jax.vmap(jax.value_and_grad(value), in_axes=(0, 0, 0, None, None))
    return {"both": jax.jit(both), "predicted": jax.jit(predicted)}


class Hidden(NamedTuple):
    """Estimates of a group's hidden state, with those of constant weights, at which the rest is held."""

    name: str
    constant: Found
    z: np.ndarray
    gain: float  # in-sample, over constant weights, nats
    extra: int  # numbers more than these
    theta: dict[str, np.ndarray]
    estimator: Estimator


def find_hidden(constant: Found, names: Names, trial: np.ndarray, frame: np.ndarray, states: bool,
                start: np.ndarray | None = None) -> Hidden:  # fmt: skip
    """The states' numbers by maximum posterior, with the rest as `constant` has it."""
    own, grid = _parameters(names, constant.model.name, states), _grid(trial, frame)
    declared = tuple(each._replace(start=0.0, prior=None) for each in constant.model.parameters)
    programs = _programs(names, constant.model.name, declared, states)
    count = len(trial)
    pad = np.minimum(np.arange(-(-count // CHUNK) * CHUNK), count - 1)
    units = jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf[pad]), constant.given.data)
    place = tuple(map(jnp.asarray, grid[:3]))

    def search(begin: np.ndarray, z_base: np.ndarray, weight: np.ndarray, inverse: Any = None) -> Any:
        padded = np.concatenate([weight, np.zeros((len(weight), len(pad) - count))], axis=1)

        def objective(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
            value, slope = programs["both"](*map(jnp.asarray, (z, z_base[which], padded[which])), units, place)
            return np.asarray(value), np.asarray(slope)

        return maximise_groups(objective, begin, inverse, near=NEAR, steps=STEPS)

    everyone = np.ones((1, count))
    begin = unconstrained(own, {}) if start is None else start
    if states and start is None:
        begin = unconstrained(own, {"change": _direction(constant, grid, len(names.social))})
    ended = search(begin[None], constant.z[None], everyone)

    def predict(z: np.ndarray) -> np.ndarray:
        z_base, z_state = z[: len(constant.z)], z[len(constant.z) :]
        moment = np.asarray(programs["predicted"](jnp.asarray(z_state), jnp.asarray(z_base), units, place))
        return (moment / np.maximum(grid.there.sum(axis=1), 1))[grid.of_row]

    def without(fold: np.ndarray, z: np.ndarray) -> np.ndarray:
        base = estimator(constant).without(fold, constant.z)
        weight = np.stack([(fold != k).astype(float) for k in range(len(base))])
        tile = np.tile(ended.z[0], (len(base), 1))
        found = [search(tile[k : k + 1], base[k : k + 1], weight[k : k + 1], ended.inverse) for k in range(len(base))]
        return np.concatenate([base, np.concatenate([each.z for each in found])], axis=1)

    whole = np.concatenate([constant.z, ended.z[0]])
    gain = float(predict(whole).sum() - constant.log_likelihood)
    words = "two states that all change together, with their own weights" if states else "two states of own motion"
    name = STATES if states else REST
    theta = {key: np.asarray(value) for key, value in natural(own, ended.z[0]).items()}
    return Hidden(name, constant, ended.z[0], gain, len(ended.z[0]), theta,
                  Estimator(name, len(whole), lambda: whole, without, predict, words))  # fmt: skip


def _direction(constant: Found, grid: _Grid, count: int) -> np.ndarray:
    """Where the weights vary most from window to window, by the scores of the constant model; its scale is that too."""
    names = [parameter.name for parameter in constant.model.parameters]
    by = names.index("slope" if constant.model.name == SUM else "odds")
    begin = size(constant.model.parameters[:by])
    slope = scores(constant.given, constant.z).gradient[:, begin : begin + count]
    window = grid.of_row // WINDOW
    sums = np.stack([np.bincount(window, column) for column in slope.T], axis=1)
    inside = slope.T @ slope + 1e-6 * np.eye(count)
    each = sums @ np.linalg.inv(inside) * (window.max() + 1)
    values, vectors = np.linalg.eigh(each.T @ each / len(each))
    return vectors[:, -1] * min(np.sqrt(max(values[-1], 1e-4)), 1.0)
