"""Nulls and alternatives of the bandit study: people who are simulated, or weights that are permuted."""

from collections.abc import Callable
from functools import partial

import numpy as np

from policychord.choices import Link

from ..claim import Expected
from ..study import World
from .experiments import EXPERIMENTS, BanditSettings
from .known import KNOWN
from .measures import Evidence, LinkEvidence

Told = tuple[BanditSettings, Evidence]
SHIFT = 0.05  # of a mean weight, where a course is planted


def _with(evidence: Evidence, change: Callable[[str, Link, LinkEvidence], LinkEvidence]) -> Evidence:
    """`change(experiment, link, what was found)` everywhere."""
    return Evidence(*(
        experiment._replace(probit=change(e, "probit", experiment.probit), logit=change(e, "logit", experiment.logit))
        for e, experiment in zip(EXPERIMENTS, evidence, strict=True)
    ))  # fmt: skip


def _known(name: str, settings: BanditSettings, evidence: Evidence) -> Told:
    """Known people in the place of people."""
    experiments = dict(zip(EXPERIMENTS, evidence, strict=True))
    both = (settings.eps, max(settings.temperatures))
    fewer = settings.model_copy(update={"temperatures": both})
    return fewer, _with(evidence, lambda e, link, own: experiments[e].known[name][link])


def _same_primitives(settings: BanditSettings, evidence: Evidence) -> Told:
    experiments = dict(zip(EXPERIMENTS, evidence, strict=True))
    fewer, coins = _known("coin flippers", settings, evidence)
    return fewer, _with(coins, lambda e, link, own: own._replace(temperature=experiments[e].alike[link]))


def _turned_around(settings: BanditSettings, evidence: Evidence) -> Told:
    """People's weights at trial k of a block in the place of those at the last but k."""

    def turn(e: str, link: Link, own: LinkEvidence) -> LinkEvidence:
        trials, ours = own.fit.trials, own.fit.ours
        backwards = np.lexsort((-trials.trial, trials.block, trials.subject))
        order = np.empty_like(backwards)
        order[np.lexsort((trials.trial, trials.block, trials.subject))] = backwards
        composed = ours._replace(composition=ours.composition._replace(weights=ours.composition.weights[order]))
        return own._replace(fit=own.fit._replace(composed=composed), neutral=own.neutral[order])

    return settings, _with(evidence, turn)


def _planted_course(settings: BanditSettings, evidence: Evidence) -> Told:
    """Uncertainty seekers, whose weights in Experiment 2 are moved from the task's own as the claim says."""
    fewer, seekers = _known("uncertainty seekers", settings, evidence)

    def plant(e: str, link: Link, own: LinkEvidence) -> LinkEvidence:
        if e == "1":
            return own
        trials = own.fit.trials
        people = np.random.default_rng((settings.seed, 51)).normal(1.0, 0.3, trials.subject.max() + 1)[trials.subject]
        early = trials.trial <= trials.trial.max() // 2
        # (exploitation, uncertainty-seeking, risk-aversion)
        towards = np.where(early[:, None], [2.0, -1.0, -1.0], [0.0, -1.0, 1.0])
        weights = own.neutral + SHIFT * people[:, None] * towards
        ours = own.fit.ours
        composed = ours._replace(composition=ours.composition._replace(weights=weights))
        return own._replace(fit=own.fit._replace(composed=composed))

    return fewer, _with(seekers, plant)


def _planted(settings: BanditSettings, evidence: Evidence, own: bool) -> Told:
    """Weights that are ranks of the planted attitudes and some noise; or those of other people."""
    rng, drawn = np.random.default_rng((settings.seed, 52)), []
    for experiment in evidence:
        value, uncertainty = experiment.planted.coefficients.T
        weights = experiment.planted.weights[rng.permutation(len(value))]
        if own:
            ranks = np.stack([np.argsort(np.argsort(x)) / len(x) for x in (value, uncertainty, -uncertainty)], axis=1)
            weights = ranks + rng.normal(scale=0.2, size=ranks.shape)
        drawn.append(experiment._replace(planted=experiment.planted._replace(weights=weights)))
    return settings, Evidence(*drawn)


def _people(name: str, expected: Expected, *claims: str) -> World[BanditSettings, Evidence]:
    return World(name, f"simulated: {KNOWN[name].what}", expected, claims, partial(_known, name))


WORLDS: tuple[World[BanditSettings, Evidence], ...] = (
    _people("coin flippers", "rejected", "B1", "B2", "B3", "B4", "B5", "B7", "B8", "B9", "B11"),
    _people("people alike", "rejected", "B3", "B4", "B8", "B11"),
    _people("contrarians", "rejected", "B1", "B2", "B5", "B7", "B9"),
    World("time turned around", "weights at trial k of a block in the place of those at the last but k", "rejected",
          ("B4", "B8"), _turned_around),
    World("primitives that are the same", "three times exploitation, on coin flippers", "rejected", ("B6", "B10"),
          _same_primitives),
    World("attitudes dealt at random", "the planted people's weights dealt to other people", "rejected", ("B12",),
          partial(_planted, own=False)),
    _people("people who lapse", "accepted", "B1", "B2", "B5", "B6", "B7", "B9", "B10"),
    _people("uncertainty seekers", "accepted", "B3", "B11"),
    World("a planted course", "uncertainty seekers; in Experiment 2 weights moved from those of a neutral attitude",
          "accepted", ("B4", "B8"), _planted_course),
    World("weights that are attitudes", "ranks of the planted attitudes with noise", "accepted", ("B12",),
          partial(_planted, own=True)),
)  # fmt: skip
