"""Simulated participants: people whose model is known, to stand in for data and to try the analysis on."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from ..worlds.bandit import Belief
from .data import Choices
from .learners import Kalman, Trials, arms_under, begin, prior_belief, prior_of, take_arms, with_parameters
from .models import (
    OURS,
    USUAL_PRIMITIVES,
    ChoiceModel,
    Link,
    classic,
    composed,
    log_proba,
    model_by_name,
    schemas_by_name,
)
from .places import places_of
from .tasks import TASKS, Arms, Task

SYNTHETIC = "synthetic cohort"
SUBJECTS = {"1": 45, "2": 44}  # of the public data
NEAREST = 3  # recorded rewards of an arm, in time, among which that of another trial is drawn
Seed = int | tuple[int, ...]


class Group(NamedTuple):
    """Normal distributions of a model's coefficients over people."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]


# Means over participants of the probit fits to the public data, rounded. The sds are somewhat smaller than those of the
# fits, which hold estimation noise too; how much smaller is a choice. A composed cohort has the Hybrid's.
GROUPS = {
    "1": {
        "UCB": Group((1.3, 0.6), (0.8, 0.5)),
        "Thompson": Group((1.5,), (0.9,)),
        "Hybrid": Group((2.1, 0.5), (1.2, 0.45)),
        "Value": Group((0.9,), (0.5,)),
    },
    "2": {
        "UCB": Group((0.25, 0.25), (0.1, 0.2)),
        "Thompson": Group((0.86,), (0.35,)),
        "Hybrid": Group((1.0, 0.16), (0.45, 0.2)),
        "Value": Group((0.17,), (0.06,)),
    },
}


def draw_people(group: Group, count: int, seed: Seed = 0) -> np.ndarray:
    """Coefficients of `count` people, (people, coefficients)."""
    rng = np.random.default_rng(seed)
    return np.asarray(group.mean) + np.asarray(group.sd) * rng.normal(size=(count, len(group.mean)))


class Design(NamedTuple):
    """What a simulated cohort meets, one row a block: what every arm pays at every trial, taken or not."""

    subject: np.ndarray  # (blocks)
    block: np.ndarray
    length: np.ndarray  # trials of the block
    payoff: np.ndarray  # (blocks, longest, arms)
    start: Arms  # (blocks, arms)
    offered: np.ndarray | None = None  # (blocks, longest, arms)
    condition: np.ndarray | None = None  # (blocks)
    loss: np.ndarray | None = None  # of what every arm pays; what is below zero where None


def simulate_choices(
    task: Task, model: ChoiceModel, coef: np.ndarray, *, blocks: int = 20, trials: int = 10, seed: Seed = 0
) -> Choices:
    """Let people with these coefficients (subjects, coefficients) play: they believe, choose by the model, and learn.

    Values come from N(mean, variance) in every block, drift and decay from trial to trial, and rewards come from
    N(value, noise); an arm without variance pays its mean. A person's blocks have the task's conditions in turn. All
    arms pay at every trial, though one is seen, so that cohorts that choose differently meet the same noise.
    """
    subjects = len(coef)
    rng = np.random.default_rng(seed)
    rows = subjects * blocks
    subject, block = np.repeat(np.arange(1, subjects + 1), blocks), np.tile(np.arange(1, blocks + 1), subjects)
    start, condition = prior_belief(task, rows), None
    if task.conditions:
        condition = np.array([part.name for part in task.conditions])[(block - 1) % len(task.conditions)]
        start = arms_under(task, condition)
    mean, variance, noise, drift, decay = (np.asarray(part)[:, None] for part in start)
    value = mean + np.sqrt(variance) * rng.normal(size=(rows, 1, task.arms))
    around = np.sqrt(noise) * (variance > 0) * rng.normal(size=(rows, trials, task.arms))
    if (drift > 0).any() or (decay < 1).any():
        steps = np.sqrt(drift) * (variance > 0) * rng.normal(size=(rows, trials - 1, task.arms))
        walk = [value[:, 0]]
        for k in range(trials - 1):
            walk.append(mean[:, 0] + decay[:, 0] * (walk[-1] - mean[:, 0]) + steps[:, k])
        value = np.stack(walk, axis=1)
    design = Design(subject, block, np.full(rows, trials), value + around, start, condition=condition)
    return play(design, task, model, np.repeat(np.asarray(coef, dtype=float), blocks, axis=0), rng)


def play(design: Design, task: Task, model: ChoiceModel, coef: np.ndarray, rng: np.random.Generator) -> Choices:
    """Choices of people with coefficients (blocks, coefficients) in a design; the random draws come from `rng`."""
    rows, longest, arms = design.payoff.shape
    uniform = rng.random((rows, longest))
    own = coef[:, : len(model.learned)]
    learner = with_parameters(
        model.learner or Kalman(), {name: own[:, k, None] for k, name in enumerate(model.learned)}
    )
    start = begin(learner, design.start)
    belief = Belief(*map(np.asarray, start[:2]))
    lost = np.minimum(design.payoff, 0.0) if design.loss is None else design.loss
    decide, weighed = model._replace(learner=None), coef[:, own.shape[1] :]
    choice, reward = np.zeros((rows, longest), dtype=int), np.zeros((rows, longest))
    loss, everybody = np.zeros((rows, longest)), np.arange(rows)
    previous = np.full(rows, -1)
    for k in range(longest):
        mean, variance = map(np.asarray, belief)
        offered = None if design.offered is None else design.offered[:, k]
        now = Trials(design.subject, design.block, np.full(rows, k + 1), choice[:, k], previous, mean, variance,
                     SYNTHETIC, offered=offered)  # fmt: skip
        prob = np.exp(log_proba(decide, now, weighed))
        below = np.cumsum(prob, axis=1) <= uniform[:, k, None] * prob.sum(1, keepdims=True)
        choice[:, k] = previous = np.minimum(below.sum(1), arms - 1)
        reward[:, k], loss[:, k] = (paid[everybody, k, previous] for paid in (design.payoff, lost))
        seen = np.stack([reward[:, k] - loss[:, k], loss[:, k]], axis=-1) if learner.apart else reward[:, k]
        belief = learner.update(belief, previous, seen, start)
    row, place = np.nonzero(np.arange(longest) < design.length[:, None])
    return Choices(
        design.subject[row], design.block[row], place + 1, choice[row, place], reward[row, place], task, SYNTHETIC,
        offered=None if design.offered is None else design.offered[row, place],
        condition=None if design.condition is None else design.condition[row],
        loss=None if design.loss is None else loss[row, place],
    )  # fmt: skip


def design_of(choices: Choices, seed: Seed = 0) -> Design:
    """The user's own task: as many people, blocks and trials, and the rewards that were recorded.

    What an arm pays at a trial is one of the few rewards that it paid to this person nearest in time, so that drifts
    and reversals stay; an arm that was never taken in a block pays what it paid elsewhere.
    """
    rng, at = np.random.default_rng(seed), places_of(choices)
    length, arms = np.bincount(at.block), choices.task.arms
    longest = int(length.max())
    payoff = np.zeros((2, len(length), longest, arms))  # and what is lost of it
    paid = np.stack([choices.reward, np.minimum(choices.reward, 0.0) if choices.loss is None else choices.loss])
    for row, (first, size) in enumerate(zip(at.first, length, strict=True)):
        choice, reward = choices.choice[first : first + size], paid[:, first : first + size]
        for arm in range(arms):
            taken = np.flatnonzero(choice == arm)
            if len(taken) == 0:
                elsewhere = np.flatnonzero(choices.choice == arm)
                payoff[:, row, :, arm] = paid[:, rng.choice(elsewhere if len(elsewhere) else len(paid[0]), longest)]
                continue
            near = np.argsort(np.abs(np.arange(longest)[:, None] - taken), axis=1, kind="stable")[:, :NEAREST]
            payoff[:, row, :, arm] = reward[:, taken[near[np.arange(longest), rng.integers(0, near.shape[1], longest)]]]
    prior = prior_of(choices)
    return Design(
        choices.subject[at.first], choices.block[at.first], length, payoff[0],
        take_arms(prior, at.first),
        None if choices.offered is None else at.spread(choices.offered, True),
        None if choices.condition is None else choices.condition[at.first],
        None if choices.loss is None else payoff[1],
    )  # fmt: skip


def synthetic(
    experiment: str, subjects: int | None = None, *, blocks: int = 20, trials: int = 10, seed: int = 0
) -> Choices:
    """A cohort that plays by the Hybrid model, with coefficients like those of the people in the public data.

    `subjects` are as many as in the data unless given.
    """
    count, number = SUBJECTS[experiment] if subjects is None else subjects, int(experiment)
    people = draw_people(GROUPS[experiment]["Hybrid"], count, (seed, number, 0))
    return simulate_choices(
        TASKS[experiment], classic("Hybrid"), people, blocks=blocks, trials=trials, seed=(seed, number, 1)
    )


def cohort(
    task: Task,
    model: str = "Hybrid",
    means: tuple[float, ...] = (),
    subjects: int = 44,
    *,
    blocks: int = 20,
    trials: int = 10,
    seed: int = 0,
) -> tuple[Choices, ChoiceModel, tuple[float, ...]]:
    """People who choose by a model, named as in `model_by_name` or Composed; and that model and the means they vary by.

    Coefficients vary over people by a third of their mean; numbers between 0 and 1 do so on the logit scale.
    """
    link: Link = "probit" if task.arms == 2 else "logit"
    spec = (
        composed(schemas_by_name(USUAL_PRIMITIVES, task), classic("Hybrid", link))
        if model == OURS
        else model_by_name(model, task, link)
    )
    names = spec.coefficients
    means = means or tuple(_usual(name, task) for name in names)
    if len(means) != len(names):
        raise ValueError(
            f"{model} has {len(names)} coefficients ({', '.join(names)}): pass as many means, not {len(means)}."
        )
    scales = {} if spec.learner is None else spec.learner.scales
    bounded = np.array([name == "lapse" or scales.get(name) == "unit" for name in names])
    centre = np.asarray(means)
    if (bounded & ~((centre > 0) & (centre < 1))).any():
        raise ValueError(f"coefficients = {tuple(means)}: rates and lapses lie between 0 and 1.")
    normal = np.random.default_rng((seed, task.arms, 0)).normal(size=(subjects, len(names)))
    coef = np.where(bounded, expit(logit(np.where(bounded, centre, 0.5)) + normal / 2), centre * (1.0 + normal / 3))
    positive = np.array([scales.get(name) in ("positive", "weight") for name in names])
    coef = np.where(positive, np.abs(centre) * np.exp(normal / 3), coef)
    return simulate_choices(task, spec, coef, blocks=blocks, trials=trials, seed=(seed, task.arms, 1)), spec, means


def _usual(name: str, task: Task) -> float:
    """A mean over people that makes choices neither random nor certain."""
    spread, noise = float(np.sqrt(max(task.variance))), float(np.max(task.noise))
    known = {"V": 1.5 / spread, "V/TU": 1.0, "RU": 1.0 / spread, "stickiness": 0.5, "lapse": 0.05, "noise": noise,
             "drift": 0.1 * noise, "variance": max(task.variance), "decay": 0.9, "memory": 0.9}  # fmt: skip
    return known.get(name, 0.3 if name.startswith("rate") else 1.0)
