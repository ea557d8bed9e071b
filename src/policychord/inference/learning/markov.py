"""`compare_mixings`: the gate and its rivals, with the same kind of primitives learned from the same decisions.

constant   one mixture for all decisions
softmax    a plain mixture of experts: weights by a softmax of given features, learned too
markov     a hidden-Markov mixture, as a GLM-HMM: each subject is in one primitive at a time and goes from one to the
           next by a transition matrix. It knows what the subject did before, which none of the others do.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Float, Int

from ...agent import Composer
from ..comparison import FOLDS, Comparison, Estimator, compare, folds_of
from ..decisions import Family, Observations
from ..likelihoods import Data, Likelihood, Model, likelihood, pointwise, restrict
from ..optimise import Progress, improve, spread_starts
from ..parameters import Theta, natural, size
from .count import estimator_of
from .objectives import Features, Mixing, indices_of, pose, size_of_chunk
from .parts import ALL, family_of_agent, of_primitives, rebuild

STAYS = 0.9  # how likely the first guess stays in a primitive
ROUNDS = 200  # of EM at most
NEAR = 0.01  # nats that a round must gain, or it is the last
LEAST = 1e-8  # of an expected count: no transition is impossible
WORDS = {
    "gate": "weights that the gate chooses at every decision",
    "constant": "one mixture for all decisions",
    "softmax": "a mixture of experts: weights by a softmax of features",
    "markov": "a hidden-Markov mixture, which knows what was done before",
}


class Markov(NamedTuple):
    """A hidden-Markov mixture of learned primitives."""

    agent: Composer  # whose primitives were learned; its gate is not used
    start: Float[np.ndarray, " n"]
    transition: Float[np.ndarray, "n n"]  # from row to column
    z: Float[np.ndarray, " K"]  # the primitives' numbers
    log_likelihood: float
    path: Float[np.ndarray, " rounds"]  # of the log-likelihood
    each: Float[np.ndarray, " N"]  # ln p of each decision, given those before it
    belief: Float[np.ndarray, "N n"]  # in which primitive, given all decisions


class Hidden(NamedTuple):
    """Decisions in sequences, with their programs."""

    agent: Composer
    family: Family  # of its primitives
    emission: Likelihood  # ln pi_a of each observed action, (N, n)
    shared: Likelihood  # the same, summed with the shares of each decision
    sequence: Int[np.ndarray, " N"]


class _Expected(NamedTuple):
    """What the E-step gives."""

    each: Any  # (Q, T) ln p of a decision, given those before
    belief: Any  # (Q, T, n)
    start: Any  # (n) expected counts
    transition: Any  # (n, n)


def hide(agent: Composer, data: Observations, free: Sequence[str] = (ALL,)) -> Hidden:
    """A hidden-Markov mixture to be learned: every block of a subject is a sequence, in the order of its rows."""
    family = family_of_agent(agent, of_primitives(agent, free))
    share = np.zeros((data.size, len(agent.names)))
    units = {"observation": data.observation, "k": data.k, "action": indices_of(agent, data), "share": share}
    at_once = size_of_chunk(agent, data.size)

    def at(theta: Theta, unit: Any) -> Any:
        pi = family.build(theta).problem(unit["observation"], unit["k"]).pi[unit["action"]]
        return jnp.log(jnp.maximum(pi, 1e-300))

    emission = likelihood(Model("markov", family.parameters, at), units, at_once=at_once)
    expected = Model("markov", family.parameters, lambda theta, unit: unit["share"] @ at(theta, unit))
    shared = likelihood(expected, units, at_once=at_once)
    whose = [np.unique(labels, return_inverse=True)[1].reshape(-1) for labels in (data.subject, data.block)]
    sequence = np.unique(np.stack(whose), axis=1, return_inverse=True)[1].reshape(-1)
    return Hidden(agent, family, emission, shared, sequence)


def learn_markov(hidden: Hidden, *, starts: int = 3, seed: int = 0, rounds: int = ROUNDS) -> Markov:
    """The most likely hidden-Markov mixture, by EM from several starts.

    The E-step is exact (forwards and backwards), transitions have their closed form, and the primitives take one step
    that raises the expected log-likelihood: so the likelihood never falls.
    """
    n = len(hidden.agent.names)
    leaves = (1 - STAYS) / max(n - 1, 1)
    first = np.full(n, 1.0 / n), _share(np.full((n, n), leaves) + (STAYS - leaves) * np.eye(n))
    ends = [_run(hidden, z, *first, rounds) for z in spread_starts(hidden.emission, starts, seed)]
    return max(ends, key=lambda markov: markov.log_likelihood)


def _run(hidden: Hidden, z: np.ndarray, start: np.ndarray, move: np.ndarray, rounds: int) -> Markov:
    place = _places(hidden.sequence)
    path: list[float] = []
    while True:
        here = expect(pointwise(hidden.emission, z), place, start, move)
        path.append(float(np.where(place >= 0, here.each, 0.0).sum()))
        if len(path) > rounds or (len(path) > 1 and path[-1] - path[-2] < NEAR):
            break
        belief = _rows(here.belief, place)
        shared = hidden.shared._replace(data={**hidden.shared.data, "share": belief})
        z = improve(shared, z)
        start, move = _share(here.start), _share(here.transition)
    theta = {name: np.asarray(value) for name, value in natural(hidden.family.parameters, z).items()}
    return Markov(rebuild(hidden.agent, hidden.family, theta), start, move, z, path[-1], np.array(path),
                  _rows(here.each, place), _rows(here.belief, place))  # fmt: skip


def predict_markov(hidden: Hidden, markov: Markov) -> Float[np.ndarray, " N"]:
    """ln p of each decision given those before it, with numbers that are known."""
    return _predict(hidden, markov.z, markov.start, markov.transition)


def _predict(hidden: Hidden, z: np.ndarray, start: np.ndarray, transition: np.ndarray) -> Float[np.ndarray, " N"]:
    place = _places(hidden.sequence)
    return _rows(expect(pointwise(hidden.emission, z), place, start, transition).each, place)


def _among_hidden(hidden: Hidden, rows: np.ndarray) -> Hidden:
    """Some of the decisions (a mask), in whole sequences."""
    return hidden._replace(
        emission=restrict(hidden.emission, rows), shared=restrict(hidden.shared, rows), sequence=hidden.sequence[rows]
    )


def expect(
    log_b: Float[np.ndarray, "N n"], place: Int[np.ndarray, "Q T"], start: np.ndarray, transition: np.ndarray
) -> _Expected:
    """The E-step. `place` has the row of each moment, -1 where there is none.

    Expected counts are the slopes of ln p in the logarithms of emissions, starts and transitions (Fisher's identity).
    """
    padded = np.where((place >= 0)[..., None], log_b[np.maximum(place, 0)], 0.0)
    return jax.tree_util.tree_map(np.asarray, _expect(padded, place >= 0, np.log(start), np.log(transition)))


@jax.jit
def _expect(log_b: Any, there: Any, log_start: Any, log_move: Any) -> _Expected:
    def log_p(log_b: Any, log_start: Any, log_move: Any) -> tuple[Any, Any]:
        def forwards(before: Any, now: Any) -> Any:
            joint, known = before + now[0], now[1]
            total = logsumexp(joint)
            following = logsumexp((joint - total)[:, None] + log_move, axis=0)
            return jnp.where(known, following, before), jnp.where(known, total, 0.0)

        each = jax.vmap(lambda *sequence: jax.lax.scan(forwards, log_start, sequence)[1])(log_b, there)
        return jnp.sum(each), each

    (_, each), counts = jax.value_and_grad(log_p, argnums=(0, 1, 2), has_aux=True)(log_b, log_start, log_move)
    return _Expected(each, *counts)


def _places(sequence: np.ndarray) -> Int[np.ndarray, "Q T"]:
    names = np.unique(sequence)
    rows = [np.flatnonzero(sequence == name) for name in names]
    place = np.full((len(rows), max(map(len, rows))), -1)
    for q, row in enumerate(rows):
        place[q, : len(row)] = row
    return place


def _rows(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    """From sequences back to decisions."""
    there = place >= 0
    flat = np.empty((int(there.sum()), *values.shape[2:]))
    flat[place[there]] = values[there]
    return flat


def _share(counts: np.ndarray) -> np.ndarray:
    counts = np.maximum(counts, LEAST)
    shares: np.ndarray = counts / counts.sum(axis=-1, keepdims=True)
    return shares


# ----------------------------------------------------------------------------------------------- side by side


def compare_mixings(
    agent: Composer,
    data: Observations,
    features: Features,
    *,
    free: Sequence[str] = (ALL,),
    starts: int = 4,
    folds: int = FOLDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """The gate, its rivals with as many primitives of the same kind, and chance, on held-out subjects."""
    inner = of_primitives(agent, free)
    ways: dict[Mixing, Any] = {"gate": (free, None), "constant": (inner, None), "softmax": (inner, features)}
    chance = Model("chance", (), lambda theta, unit: -jnp.log(1.0 * agent.actions.size), "all actions alike")
    learners = [
        *(estimator_of(pose(agent, "likelihood", data, what, mixing, looks), mixing, WORDS[mixing], starts, seed)
          for mixing, (what, looks) in ways.items()),
        markov_estimator(hide(agent, data, free), starts, seed),
    ]  # fmt: skip
    fold = folds_of(data.subject, folds, seed)
    whole = Data({"k": data.k}, data.subject, data.block)
    return compare([*learners, chance], whole, fold=fold, clusters=data.subject, progress=progress)


def markov_estimator(hidden: Hidden, starts: int = 3, seed: int = 0, rounds: int = ROUNDS) -> Estimator:
    """The hidden-Markov mixture for `inference.compare`: z holds the primitives' numbers, first shares, transitions."""
    n, count = len(hidden.agent.names), size(hidden.emission.parameters)

    def fit() -> np.ndarray:
        return packed(learn_markov(hidden, starts=starts, seed=seed, rounds=rounds))

    def without(fold: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.stack([packed(_run(_among_hidden(hidden, fold != k), *parts(z), rounds)) for k in np.unique(fold)])

    def packed(markov: Markov) -> np.ndarray:
        return np.concatenate([markov.z, markov.start, markov.transition.ravel()])

    def parts(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return z[:count], z[count : count + n], z[count + n :].reshape(n, n)

    def predict(z: np.ndarray) -> np.ndarray:
        return _predict(hidden, *parts(z))

    return Estimator("markov", count + n * n - 1, fit, without, predict, WORDS["markov"])
