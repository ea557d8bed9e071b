"""How many primitives, which is which, and is the answer degenerate?"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from ...agent import Composer
from ..comparison import FOLDS, Difference, Estimator, folds_of, held_out_by, paired
from ..decisions import Observations
from ..optimise import Progress, finished, improve, report, spread_starts
from ..parameters import FARTHEST, Theta, at_bound, size, unconstrained
from ..search import MOST_STEPS
from ..uncertainty import LEAST_MOVEMENT
from .objectives import Features, Learned, Mixing, Posed, among, learn_posed, log_prob, pose

SITUATIONS = 400  # at most, at which columns are compared
EQUAL = 0.02  # total variation below which two primitives are called equal
UNUSED = 0.01  # mean weight below which a primitive is called unused
NEAR = 0.01  # standard errors from the mode at which the run of a fold ends
LEAST = 1e-9  # probability at which a run begins
SHARE = 0.01  # of the weight that a new primitive begins with
ALONE = 0.99  # mean weight above which one explains everything


# ------------------------------------------------------------------------------------------- which is which


class Matching(NamedTuple):
    """Which primitive of one agent is which of another: the assignment with the least total variation."""

    order: Int[np.ndarray, " n"]  # order[a] is the learned primitive that stands for the other agent's a
    distance: Float[np.ndarray, " n"]  # mean total variation over situations, of each pair


def columns(agent: Composer, data: Observations, most: int = SITUATIONS) -> Float[np.ndarray, "S d n"]:
    """The primitives in some of the situations of the data, evenly spread over it."""
    rows = np.unique(np.linspace(0, data.size - 1, min(most, data.size)).round().astype(int))
    seen = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf)[rows], data.observation)
    program = jax.jit(lambda situations: jax.lax.map(lambda each: agent.problem(*each).pi, situations, batch_size=32))
    return np.asarray(program((seen, data.k[rows])))


def match(learned: Composer, other: Composer, data: Observations) -> Matching:
    """Resolve the order of learned primitives, which means nothing, against another agent with as many or fewer.

    Distances are total variations, half the sum over actions of |pi_a - pi_b|, averaged over situations.
    """
    if len(other.names) > len(learned.names):
        raise ValueError(
            f"the other agent has {len(other.names)} primitives, the learned one {len(learned.names)}: pass them the "
            "other way round."
        )
    return _match_columns(columns(learned, data), columns(other, data))


def _match_columns(learned: Float[np.ndarray, "S d n"], other: Float[np.ndarray, "S d m"]) -> Matching:
    """`match` for columns that are known."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    apart = np.stack([0.5 * np.abs(learned - other[..., b : b + 1]).sum(axis=1).mean(axis=0)
                      for b in range(other.shape[-1])])  # fmt: skip
    row, order = linear_sum_assignment(apart)
    return Matching(order, apart[row, order])


# ------------------------------------------------------------------------------------------ degenerate answers


def degenerate(learned: Learned, data: Observations) -> tuple[str, ...]:
    """What is wrong with an answer, in sentences; none if nothing is.

    Equal primitives, unused ones, one that explains everything, weights that do not move, numbers at a bound.
    """
    names, mean = learned.agent.names, learned.weights.mean(axis=0)
    pi, problems = columns(learned.agent, data), []
    for a, b in combinations(range(len(names)), 2):
        apart = float(0.5 * np.abs(pi[..., a] - pi[..., b]).sum(axis=1).mean())
        if apart < EQUAL:
            problems.append(f"{names[a]} and {names[b]} are equal (total variation {apart:.3f}): fewer primitives do.")
    for primitive in np.flatnonzero(mean < UNUSED) if len(names) > 1 else ():
        problems.append(f"{names[primitive]} is unused (mean weight {mean[primitive]:.4f}): its numbers mean nothing.")
    if len(names) > 1 and mean.max() > ALONE:
        problems.append(f"{names[int(mean.argmax())]} explains everything (mean weight {mean.max():.4f}).")
    moved = float(learned.weights.std(axis=0).max())
    if len(names) > 1 and moved < LEAST_MOVEMENT and learned.mixing != "constant":
        why = "their mixture alone lowers the energy, and one primitive can be that mixture."
        if learned.objective == "likelihood":
            why = "the data tell the mixture, not the primitives it is made of."
        problems.append(f"the weights do not move (sd {moved:.4f}): {why}")
    if at_bound(learned.z).any():
        problems.append("some numbers are at a bound: no finite ones are best, or none matter.")
    return tuple(problems)


# --------------------------------------------------------------------------------------------------- how many


class Number(NamedTuple):
    """A number of primitives, and how well so many explain decisions that were held out."""

    n: int
    parameters: int
    learned: Learned  # from all decisions
    held_out: float  # nats per decision
    each: Float[np.ndarray, " N"]
    behind: Difference  # of the best number over this one, nats per decision, with its error over subjects
    degenerate: tuple[str, ...]


class Numbers(NamedTuple):
    """Numbers of primitives on the same folds."""

    tried: tuple[Number, ...]
    best: int  # the n with the highest held-out likelihood
    chosen: int  # the smallest n that is not behind it by more than one standard error
    sentence: str


def how_many(
    make: Callable[[int], Composer],
    data: Observations,
    numbers: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    free: Sequence[str] = ("primitives",),
    mixing: Mixing = "gate",
    features: Features | None = None,
    starts: int = 6,
    folds: int = FOLDS,
    seed: int = 0,
    folder: Path | str | None = None,
    progress: Progress | None = None,
) -> Numbers:
    """How many primitives explain the data: held-out likelihood of `make(n)` for each n, with errors over subjects.

    Folds keep subjects together. More primitives always fit better inside the data, never mind whether they are there.
    One more run of each number begins at the primitives of the number before, with new ones that have small weights.
    `folder` holds the runs of each number, as `file` of `learn` does: after Ctrl-C the same call goes on from it.
    """
    fold = folds_of(data.subject, folds, seed)
    rows: list[tuple[int, Learned, np.ndarray, tuple[str, ...]]] = []
    for i, n in enumerate(numbers):
        report(progress, _counted(n), i, len(numbers))
        posed = pose(make(n), "likelihood", data, free, mixing, features)
        points = spread_starts(posed.likelihood, starts, seed)
        if rows and rows[-1][0] < n:
            points = np.concatenate([points, _grown(rows[-1][1].theta, posed)[None]])
        learned = learn_posed(
            posed, starts=points, seed=seed, file=None if folder is None else Path(folder) / f"{n}.npz"
        )
        finished(learned.optimum)  # Ctrl-C ends the search for the number, not only this run
        rows.append((n, learned, held_out_by(estimator_of(posed), fold, learned.z), degenerate(learned, data)))
    return _choose(rows, data.subject)


def _grown(fewer: Theta, posed: Posed) -> Float[np.ndarray, " K"]:
    """z where a run can begin that should not end lower than fewer primitives do, from what these have learned.

    Primitives that were there keep their numbers, new ones have those of the agent and 1% of prior or learned weights.
    """
    theta: dict[str, np.ndarray] = {}
    for parameter in posed.parameters:
        if parameter.name not in fewer:
            continue
        old = np.asarray(fewer[parameter.name], dtype=float)
        if parameter.transform == "simplex":
            new = np.concatenate([old, np.full(len(parameter.labels) - len(old), SHARE)])
            theta[parameter.name] = np.maximum(new, LEAST) / np.maximum(new, LEAST).sum()
        elif parameter.name == "softmax":  # logits over the last primitive, which is a new one now
            count = len(parameter.labels) // (len(posed.agent.names) - 1)
            logits = np.zeros((len(posed.agent.names) - 1, count))
            known = old.reshape(-1, count)
            logits[: len(known)] = known
            logits[: len(known) + 1, 0] += np.log(1.0 / SHARE)
            theta[parameter.name] = logits.reshape(-1)
        else:
            theta[parameter.name] = old
    return np.clip(unconstrained(posed.parameters, theta), -FARTHEST, FARTHEST)


def estimator_of(
    posed: Posed, name: str = "", description: str = "", starts: int | np.ndarray = 4, seed: int = 0
) -> Estimator:
    """What is learned as a model for `inference.compare`; runs without a fold begin where the whole ended."""

    def fit() -> np.ndarray:
        return finished(learn_posed(posed, starts=starts, seed=seed).optimum).z

    def without(fold: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.stack([improve(among(posed, fold != k).likelihood, z, MOST_STEPS, NEAR) for k in np.unique(fold)])

    return Estimator(name or posed.mixing, size(posed.parameters), fit, without, partial(log_prob, posed), description)


def _choose(rows: Sequence[tuple[int, Learned, np.ndarray, tuple[str, ...]]], subject: np.ndarray) -> Numbers:
    """The numbers compared, and which one is chosen."""
    top = max(rows, key=lambda row: row[2].mean())
    tried = []
    for n, learned, each, problems in rows:
        behind = paired(top[2], each, subject)
        tried.append(Number(n, len(learned.z), learned, float(each.mean()), each, behind, problems))
    good = [number.n for number in tried if number.n == top[0] or number.behind.mean <= number.behind.error]
    chosen = min(good)
    words = f"{_counted(chosen)} explain held-out decisions"
    if chosen == top[0]:
        words += f" best ({top[2].mean():.4f} nats per decision)."
    else:
        gap = next(number.behind for number in tried if number.n == chosen)
        words += f" as well as {top[0]} do ({top[0]} are ahead by {gap.mean:.4f} ± {gap.error:.4f} nats per decision)."
    return Numbers(tuple(tried), top[0], chosen, words)


def _counted(n: int) -> str:
    return f"{n} primitive{'s' if n > 1 else ''}"
