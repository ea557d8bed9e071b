"""What the room knows: choices, how far their analysis is, and what is still to be drawn."""

from typing import NamedTuple

import numpy as np

from ....choices.beliefs import Trials, believe, take
from ....choices.compare import Analysis, compare_all, plan_models
from ....choices.data import Choices, DataError, Task, parse_choices
from ....choices.models import Fitted, Link, classic, evaluate, fit
from ....choices.schemas import CLASSIC
from ....choices.simulate import GROUPS, draw_people, simulate, synthetic
from ...uploads import Upload
from .view import EXPERIMENTS, MOST_PEOPLE, ChoicesView

MOST_TRIALS = 100_000  # that a page is ready to wait for
EVERYTHING = ("data", "fit", "group", "person")


class Fitting(NamedTuple):
    """Choices with beliefs, and the classic models' fits of those people who have been fitted."""

    choices: Choices
    trials: Trials
    people: np.ndarray
    link: Link
    fits: tuple[dict[str, Fitted], ...] = ()  # in the order of `people`

    @property
    def done(self) -> bool:
        return len(self.fits) == len(self.people)


class State(NamedTuple):
    """Choices, how far their analysis is, and the parts that are still to be drawn."""

    view: ChoicesView
    fitting: Fitting
    upload: Upload | None = None  # what the choices were read from; None is the cohort
    broken: Upload | None = None  # what could not be read, in case another task makes sense of it
    fault: str = ""  # and why
    missing: str = ""  # the file that a link was made with
    found: Analysis | None = None
    left: tuple[str, ...] = EVERYTHING


def simulate_cohort(view: ChoicesView) -> Choices:
    """A synthetic cohort; for a task of one's own, people with the coefficients of Experiment 2."""
    if view.experiment != "custom":
        experiment = EXPERIMENTS[view.experiment]
        return synthetic(experiment, view.subjects, blocks=view.blocks, trials=view.trials, seed=view.seed)
    people = draw_people(GROUPS["2"]["Hybrid"], view.subjects, (view.seed, 2, 0))
    model, seed = classic("Hybrid", view.link), (view.seed, 2, 1)
    return simulate(view.task, model, people, blocks=view.blocks, trials=view.trials, seed=seed)


def read_upload(upload: Upload, task: Task) -> Choices:
    """The choices in a file, by the reader of `policychord bandit fit`; a `DataError` says what is wrong with it."""
    try:
        choices = parse_choices(upload.content, upload.name, task)
    except DataError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{upload.name} cannot be used ({error}): check its numbers.") from None
    people, trials = len(np.unique(choices.subject)), len(choices.choice)
    if people > MOST_PEOPLE or trials > MOST_TRIALS:
        raise DataError(
            f"{upload.name} has {people} people and {trials} trials: the studio takes up to {MOST_PEOPLE} and "
            f"{MOST_TRIALS}; more can be done with  policychord bandit fit"
        )
    return choices


# --------------------- the analysis one person at a time, so that a page can say how far it is


def start_fitting(choices: Choices, link: Link) -> Fitting:
    """Beliefs, and no person fitted yet."""
    trials = believe(choices)
    return Fitting(choices, trials, np.unique(trials.subject), link)


def fit_next(fitting: Fitting) -> Fitting:
    """The four classic models for one more person."""
    own = take(fitting.trials, fitting.trials.subject == fitting.people[len(fitting.fits)])
    fits = {name: fit(classic(name, fitting.link), own) for name in CLASSIC}
    return fitting._replace(fits=(*fitting.fits, fits))


def finish_fitting(fitting: Fitting, eps: float, primitives: tuple[str, ...]) -> Analysis:
    """What `analyse` finds, bit by bit; a new temperature or other primitives need no new fits."""
    link, models = fitting.link, {}
    for name in CLASSIC:
        coef = np.concatenate([fits[name].coef for fits in fitting.fits])
        separated = np.concatenate([fits[name].separated for fits in fitting.fits])
        models[name] = evaluate(classic(name, link), fitting.trials, coef, separated)
    plan = plan_models(fitting.choices.task, link, eps, primitives)
    return compare_all(fitting.choices, fitting.trials, models, plan)
