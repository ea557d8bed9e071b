"""The study's analysis one person at a time, so that a page can say how far it is and turn to something else."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ....studies.bandit.analysis import Analysis, compared
from ....studies.bandit.beliefs import Trials, believe, take
from ....studies.bandit.data import Choices
from ....studies.bandit.features import CLASSIC
from ....studies.bandit.models import ChoiceModel, Classic, Composed

Link = Literal["probit", "logit"]


class Fitting(NamedTuple):
    """Choices with beliefs, and the classic models' fits of those people who have been fitted."""

    choices: Choices
    trials: Trials
    people: np.ndarray
    link: Link
    fits: tuple[dict[str, ChoiceModel], ...] = ()  # in the order of `people`

    @property
    def done(self) -> bool:
        return len(self.fits) == len(self.people)


def started(choices: Choices, link: Link) -> Fitting:
    trials = believe(choices)
    return Fitting(choices, trials, np.unique(trials.subject), link)


def fit_next(fitting: Fitting) -> Fitting:
    """The four classic models for one more person."""
    own = take(fitting.trials, fitting.trials.subject == fitting.people[len(fitting.fits)])
    fits = {name: Classic(name, fitting.link).fit(own) for name in CLASSIC}
    return fitting._replace(fits=(*fitting.fits, fits))


def analysed(fitting: Fitting, eps: float, primitives: tuple[str, ...]) -> Analysis:
    """What `analyse` finds, bit by bit; a new temperature or other primitives need no new fits."""
    trials, link = fitting.trials, fitting.link
    classic: dict[str, ChoiceModel] = {
        name: _scored(Classic(name, link), fitting.people, [fits[name] for fits in fitting.fits], trials)
        for name in CLASSIC
    }
    ours = Composed(primitives, "Hybrid", link, eps=eps)
    _scored(ours, fitting.people, [fits["Hybrid"] for fits in fitting.fits], trials)
    return compared(fitting.choices, trials, classic, ours)


def _scored(model: ChoiceModel, people: np.ndarray, fits: Sequence[ChoiceModel], trials: Trials) -> ChoiceModel:
    """A model of everybody, from those of one person each."""
    model.subjects_ = people
    model.coef_, model.separated_ = (np.concatenate([getattr(fit, n) for fit in fits]) for n in ("coef_", "separated_"))
    model.score_subjects(trials)
    return model
