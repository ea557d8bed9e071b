"""Recovery: simulate people whose model is known, and see whether the analysis finds it again."""

from typing import NamedTuple

import numpy as np

from .analysis import OURS, compare
from .beliefs import believe
from .cohort import draw_people, simulate
from .features import CLASSIC, FEATURES
from .models import ChoiceModel, Classic, Composed
from .settings import GROUPS, TASKS, BanditSettings


class Recovered(NamedTuple):
    """True and estimated values of one coefficient over simulated people."""

    model: str
    coefficient: str
    true: np.ndarray
    estimate: np.ndarray

    @property
    def correlation(self) -> float:
        return float(np.corrcoef(self.true, self.estimate)[0, 1])

    @property
    def bias(self) -> float:
        return float(np.mean(self.estimate - self.true))

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.estimate - self.true) ** 2)))


class Recovery(NamedTuple):
    """What became of cohorts of every model."""

    models: tuple[str, ...]
    parameters: list[Recovered]
    best: np.ndarray  # (simulated, fitted) share of people whose least BIC is the fitted model's
    frequency: np.ndarray  # (simulated, fitted) expected frequencies by group selection, mean over cohorts
    won: np.ndarray  # (simulated, fitted) share of cohorts in which the fitted model has the highest PXP


def recover(experiment: str, settings: BanditSettings) -> Recovery:
    """Cohorts of each model, all models fitted to each cohort (probit)."""
    names = (*CLASSIC, OURS)
    size = len(names), len(names)
    best, frequency, won = np.zeros(size), np.zeros(size), np.zeros(size)
    parameters: list[Recovered] = []
    size_of_cohort = settings.cohort_size(experiment)
    for row, name in enumerate(names):
        true, estimate = [], []
        for cohort in range(settings.recovery_cohorts):
            seed = (settings.seed, int(experiment), 7, cohort)
            people = draw_people(GROUPS[experiment]["Hybrid" if name == OURS else name], size_of_cohort, seed)
            choices = simulate(TASKS[experiment], _model(name, settings), people, blocks=settings.blocks,
                               trials=settings.trials, seed=(*seed, row))  # fmt: skip
            trials = believe(choices)
            fitted = {other: _model(other, settings).fit(trials) for other in names}
            evidence = np.stack([model.log_evidence_ for model in fitted.values()], axis=1)
            best[row] += np.bincount(evidence.argmax(1), minlength=len(names)) / len(people)
            selection = compare(fitted, names).selection
            frequency[row] += selection.expected
            won[row, selection.pxp.argmax()] += 1
            true.append(people)
            estimate.append(fitted[name].coef_)
        parameters += _columns(name, np.concatenate(true), np.concatenate(estimate))
    cohorts = settings.recovery_cohorts
    return Recovery(names, parameters, best / cohorts, frequency / cohorts, won / cohorts)


def _model(name: str, settings: BanditSettings) -> ChoiceModel:
    model: ChoiceModel = Composed(link="probit", eps=settings.eps) if name == OURS else Classic(name, "probit")
    model.engine = "scoring"
    return model


def _columns(name: str, true: np.ndarray, estimate: np.ndarray) -> list[Recovered]:
    labels = [label for label, _ in FEATURES["Hybrid" if name == OURS else name]]
    return [Recovered(name, label, true[:, k], estimate[:, k]) for k, label in enumerate(labels)]
