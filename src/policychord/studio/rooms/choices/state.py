"""What the room knows: choices, how far their analysis is, and what is still to be drawn."""

from typing import NamedTuple

from ....studies.bandit.analysis import Analysis
from ....studies.bandit.cohort import draw_people, simulate, synthetic
from ....studies.bandit.data import Choices
from ....studies.bandit.models import Classic
from ....studies.bandit.settings import GROUPS, BanditSettings
from ...uploads import Upload
from .fitting import Fitting
from .view import EXPERIMENTS, ChoicesView

COHORT = 20  # people who are simulated: enough to tell models apart, and an answer within seconds
EVERYTHING = ("data", "fit", "group", "person")


class State(NamedTuple):
    """Choices, how far their analysis is, and the parts that are still to be drawn."""

    view: ChoicesView
    study: BanditSettings
    fitting: Fitting
    upload: Upload | None = None  # what the choices were read from; None is the cohort
    broken: Upload | None = None  # what could not be read, in case another task makes sense of it
    fault: str = ""  # and why
    missing: str = ""  # the file that a link was made with
    found: Analysis | None = None
    left: tuple[str, ...] = EVERYTHING


def cohort(view: ChoicesView, study: BanditSettings) -> Choices:
    """The study's synthetic cohort; for a task of one's own, people with the coefficients of Experiment 2."""
    if view.experiment != "custom":
        return synthetic(EXPERIMENTS[view.experiment], study)
    people = draw_people(GROUPS["2"]["Hybrid"], study.subjects or COHORT, (study.seed, 2, 0))
    model, seed = Classic("Hybrid", view.link), (study.seed, 2, 1)
    return simulate(view.task, model, people, blocks=study.blocks, trials=study.trials, seed=seed)
