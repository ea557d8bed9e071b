"""What the page knows: choices, how far their analysis is, and what is still to be drawn."""

from typing import NamedTuple

import numpy as np

from ...._types import Watch
from ....choices.compare import Analysis, Plan, believe_by, compare_all
from ....choices.data import Choices, DataError
from ....choices.estimate import Fitted, fit
from ....choices.learners import Trials
from ....choices.measure import measure_task
from ....choices.models import classic
from ....choices.simulate import GROUPS, draw_people, simulate_choices, synthetic
from ....choices.tables import parse_columns
from ...inputs import in_page_words
from ...jobs import Job
from ...parser import parse
from ...uploads import Upload
from .view import EXPERIMENTS, MEASURED, MOST_PEOPLE, OWN_DEFAULTS, ChoicesView

# Options of the command that are controls here.
PAGE_WORDS = (
    (r"[Nn]ame (them|it) with --columns \S+", r"Choose \1 under Columns of the table"),
    (r" ?\(--columns [^)]*\)", " (Columns of the table)"), (r"--columns\b", "Columns of the table"),
    (r"--experiment\b", "Experiment"), (r"--variance\b", "Spread of values"), (r"--noise\b", "Noise of rewards"),
    (r"\b[Cc]orrect the file,? or run again\b", "Correct the file"),
)  # fmt: skip
EVERYTHING = ("data", "fit", "group", "person")
# Parts that somebody asks for by a button, and the message meanwhile.
ASKED = {"report": "Writing the report", "recovery": "Simulating and fitting again", "ppc": "Comparing predictions"}


class Fitting(NamedTuple):
    """Choices with beliefs, and the models that are fitted so far, by name."""

    choices: Choices
    trials: Trials
    people: np.ndarray
    plan: Plan
    fits: tuple[tuple[str, Fitted], ...] = ()

    @property
    def waiting(self) -> list[str]:
        """Models that are not fitted yet."""
        return [name for name in self.plan.models if name not in dict(self.fits)]


class State(NamedTuple):
    """Choices, how far their analysis is, and the parts that are still to be drawn."""

    view: ChoicesView
    fitting: Fitting
    upload: Upload | None = None  # what the choices were read from; None is the cohort
    broken: Upload | None = None  # what could not be read, in case another task makes sense of it
    fault: str = ""  # and why
    missing: str = ""  # the file that a link was made with
    analysis: Analysis | None = None
    left: tuple[str, ...] = EVERYTHING
    job: Job | None = None  # the fit, or the part that is computed
    stopped: bool = False  # whether somebody cancelled it


def simulate_cohort(view: ChoicesView) -> Choices:
    """A synthetic cohort; for a task of one's own, people with the coefficients of Experiment 2."""
    if view.experiment != "custom":
        experiment = EXPERIMENTS.get(view.experiment, "2")  # nothing is there to be measured
        return synthetic(experiment, view.subjects, blocks=view.blocks, trials=view.trials, seed=view.seed)
    people = draw_people(GROUPS["2"]["Hybrid"], view.subjects, (view.seed, 2, 0))
    model, seed = classic("Hybrid", view.link), (view.seed, 2, 1)
    assert view.task is not None
    return simulate_choices(view.task, model, people, blocks=view.blocks, trials=view.trials, seed=seed)


def read_upload(upload: Upload, view: ChoicesView) -> Choices:
    """The choices in a file, by the reader of `policychord choices fit`; a `DataError` says what is wrong with it."""
    try:
        choices: Choices = parse("choices", upload, {"task": view.task, "columns": parse_columns(view.columns)})
        if view.task is None:
            choices = choices._replace(task=measure_task(choices))
    except ValueError as error:
        raise DataError(in_page_words(str(error), PAGE_WORDS)) from None
    people = len(np.unique(choices.subject))
    if people > MOST_PEOPLE:
        raise DataError(f"{upload.name} has {people} people: the studio takes up to {MOST_PEOPLE}; more can be done "
                        "with  policychord choices fit")  # fmt: skip
    return choices


# --------------------- the analysis one model at a time, so that a page can say how far it is


def start_fitting(choices: Choices, view: ChoicesView) -> Fitting:
    """Beliefs, and nothing fitted yet."""
    plan = view.plan(choices.task)
    trials = believe_by(plan, choices)
    return Fitting(choices, trials, np.unique(trials.subject), plan)


def fit_next(watch: Watch, fitting: Fitting) -> Fitting:
    """One more model, for all people at once."""
    name = fitting.waiting[0]
    return fitting._replace(fits=(*fitting.fits, (name, fit(fitting.plan.models[name], fitting.trials))))


def finish_fitting(watch: Watch, fitting: Fitting) -> Analysis:
    """What `analyse` finds, bit by bit; a new temperature or other primitives need no new fits."""
    return compare_all(fitting.choices, fitting.trials, dict(fitting.fits), fitting.plan)


def suited(view: ChoicesView, upload: Upload) -> tuple[ChoicesView, Choices]:
    """A file measured as `policychord choices fit` measures it, unless the view has a task of one's own."""
    if view.experiment != "custom":
        view = view.model_copy(update={"experiment": MEASURED, **OWN_DEFAULTS})
    choices = read_upload(upload, view)
    return _linked(view, choices), choices


def _linked(view: ChoicesView, choices: Choices) -> ChoicesView:
    """The logit where the probit cannot be: more than two arms, or arms that are not always on offer."""
    several = choices.task.arms > 2 or choices.offered is not None
    return view.model_copy(update={"link": "logit"}) if several else view
