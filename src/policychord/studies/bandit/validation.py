"""What modellers ask of a fit: does it predict other people, what does the temperature do, is a floor behind it?"""

from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np

from ...stats.glm import Link, fit_choices, log_choice_prob
from ...stats.model_selection import select_models
from .analysis import OURS
from .beliefs import Trials, believe
from .compose import compose
from .controls import Rule
from .data import Choices
from .features import CLASSIC, features
from .models import ChoiceModel, Classic, Composed, Control
from .primitives import PAPER, columns, exploit

# rivals of the composed model, by the names that tables and figures show
FLOORED, HULL = "Hybrid clipped to [.01, .99]", "Hybrid clipped to what mixtures can reach"
TIED, OWN = "Hybrid, ties within rounding taken as ties", "Hybrid, ours fitted by its own likelihood"
ROUNDING = 1e-9  # values closer than this are the same but for the order in which they were added up


class CrossValidation(NamedTuple):
    """Predictive log-likelihood per trial of people left out, for each random split and model."""

    models: tuple[str, ...]
    score: np.ndarray  # (splits, models), mean over folds

    def best_in(self, model: str) -> int:
        """In how many splits the model predicts best."""
        return int((self.score.argmax(1) == self.models.index(model)).sum())

    def mean(self, model: str) -> float:
        return float(self.score[:, self.models.index(model)].mean())


def cross_validate(
    trials: Trials, link: Link, *, eps: float, folds: int, splits: int, seed: int, only_first: bool = False
) -> CrossValidation:
    """Leave out a share of the people, fit the others' choices together, and predict those left out.

    `only_first` fits the first of the others and predicts the first left out, as the released script does.
    """
    people = np.unique(trials.subject)
    if len(people) < folds:
        raise ValueError(f"folds = {folds} with {len(people)} people: use at most one fold a person.")
    x = {name: features(name, trials) for name in CLASSIC}
    pi = columns(PAPER, trials)
    # what fits everybody is close to what fits two thirds of them
    start = {name: fit_choices(x[name], trials.choice, link, engine="scoring").coef for name in CLASSIC}
    score = np.zeros((splits, len(CLASSIC) + 1))
    for split in range(splits):
        shuffled = np.random.default_rng((seed, split)).permutation(people)
        for left_out in np.array_split(shuffled, folds):
            others = np.setdiff1d(people, left_out)
            chosen = (others[:1], np.sort(left_out)[:1]) if only_first else (others, left_out)
            train, test = (np.isin(trials.subject, some) for some in chosen)
            log_q = {}
            for name in CLASSIC:
                coef = fit_choices(x[name][train], trials.choice[train], link, engine="scoring", start=start[name]).coef
                log_q[name] = log_choice_prob(x[name][test], coef, link)
            log_q[OURS] = compose(pi[test], log_q["Hybrid"], eps).log_prob
            made = np.arange(test.sum()), trials.choice[test]
            score[split] += [log_prob[made].mean() / folds for log_prob in log_q.values()]
    return CrossValidation((*CLASSIC, OURS), score)


class Sweep(NamedTuple):
    """The composed model against the Hybrid at several temperatures."""

    eps: tuple[float, ...]
    pxp: np.ndarray
    bor: np.ndarray
    log_likelihood: np.ndarray


def sweep(trials: Trials, link: Link, temperatures: tuple[float, ...]) -> Sweep:
    """Refit nothing but the temperature."""
    hybrid = _hybrid(trials, link)
    rows = []
    for eps in temperatures:
        ours = _with_coefficients_of(hybrid, Composed(link=link, eps=eps), trials)
        against = select_models(np.stack([hybrid.log_evidence_, ours.log_evidence_], axis=1))
        rows.append((against.pxp[1], against.bor, ours.log_likelihood_.sum()))
    pxp, bor, total = (np.array(column) for column in zip(*rows, strict=True))
    return Sweep(temperatures, pxp, bor, total)


def lapsed(arms: int) -> str:
    """The name of the Hybrid that now and then draws an arm blindly."""
    return f"{1 - 0.01 * arms:g} Hybrid + .01"


def counted(parameters: int) -> str:
    """The name of the comparison in which the composed model is charged for so many parameters."""
    return f"Hybrid, ours counted with {parameters} parameters"


class Controlled(NamedTuple):
    """A rival to the composed model, and how the two compare."""

    log_likelihood: float
    pxp: float  # of the composed model against it
    bor: float


def controls(trials: Trials, link: Link, eps: float, *, own: bool, primitives=tuple(PAPER)) -> dict[str, Controlled]:
    """Floors under the Hybrid with no more parameters, another count of ours, ties taken exactly, own coefficients."""
    hybrid = _hybrid(trials, link)
    more: dict[str, Any] = {"link": link, "eps": eps}
    ours = _with_coefficients_of(hybrid, Composed(primitives, **more), trials)
    count = ours.parameters + 1
    by_paper = tuple(primitives) == tuple(PAPER) and trials.arms == 2  # some controls are about its primitives
    rules = get_args(Rule) if by_paper else ("clip", "lapse")
    floor = {rule: _with_coefficients_of(hybrid, Control(rule, link=link), trials) for rule in rules}
    rivals: dict[str, tuple[ChoiceModel, ChoiceModel]] = {  # (ours, theirs)
        FLOORED: (ours, floor["clip"]),
        lapsed(trials.arms): (ours, floor["lapse"]),
        counted(count): (
            _with_coefficients_of(hybrid, Composed(primitives, **more, parameters=count), trials), hybrid),
    }  # fmt: skip
    if by_paper:
        tied = Composed(dict(PAPER) | {"exploit": partial(exploit, ties=ROUNDING)}, **more)
        rivals[HULL] = (ours, floor["hull"])
        rivals[TIED] = (_with_coefficients_of(hybrid, tied, trials), hybrid)
    if own:
        fitted = Composed(primitives, **more, coefficients="own").fit(trials)
        rivals[OWN] = (fitted, hybrid)
    found = {}
    for name, (mine, theirs) in rivals.items():
        against = select_models(np.stack([theirs.log_evidence_, mine.log_evidence_], axis=1))
        shown = theirs if mine is ours else mine  # whichever of the two is new
        found[name] = Controlled(float(shown.log_likelihood_.sum()), float(against.pxp[1]), against.bor)
    return found


def rare_choices(trials: Trials, link: Link, eps: float, threshold: float = 0.01) -> tuple[float, float]:
    """The gain of the composed model over the Hybrid in ln p, and the part from choices the Hybrid held unlikely."""
    hybrid = _hybrid(trials, link)
    ours = _with_coefficients_of(hybrid, Composed(link=link, eps=eps), trials)
    chosen = np.arange(len(trials.choice)), trials.choice
    log_q, log_p = hybrid.log_proba(trials)[chosen], ours.log_proba(trials)[chosen]
    gain = log_p - log_q
    return float(gain.sum()), float(gain[log_q < np.log(threshold)].sum())


class Rounding(NamedTuple):
    """What the last digit of a belief decides: ties between arms, as exploitation sees them, and the likelihood."""

    exact: int  # trials, after the first of a block, at which both arms have the very same value
    near: int  # trials at which they differ by rounding only
    log_likelihood: float  # of the composed model, beliefs by v - g v
    factored: float  # beliefs by (1 - g) v
    tied: float  # differences within rounding taken as ties


def rounding(choices: Choices, link: Link, eps: float) -> Rounding:
    """The composed model with beliefs rounded one way and another."""
    totals = []
    for trials, ties in ((believe(choices), 0.0), (believe(choices, factored=True), 0.0), (believe(choices), ROUNDING)):
        schemas = dict(PAPER) | {"exploit": partial(exploit, ties=ties)}
        ours = _with_coefficients_of(_hybrid(trials, link), Composed(schemas, link=link, eps=eps), trials)
        totals.append(float(ours.log_likelihood_.sum()))
    apart = np.abs(trials.mean[:, 0] - trials.mean[:, 1])
    later = trials.trial > 1
    exact, near = int((later & (apart == 0)).sum()), int((later & (apart > 0) & (apart <= ROUNDING)).sum())
    return Rounding(exact, near, *totals)


def _hybrid(trials: Trials, link: Link) -> ChoiceModel:
    """The reference, fitted once more: the same as by statsmodels to eight digits of the likelihood, and faster."""
    model = Classic("Hybrid", link)
    model.engine = "scoring"
    return model.fit(trials)


def _with_coefficients_of(hybrid: ChoiceModel, model: ChoiceModel, trials: Trials) -> ChoiceModel:
    """A model that shares the Hybrid's coefficients, without fitting those again."""
    model.subjects_, model.coef_, model.separated_ = hybrid.subjects_, hybrid.coef_, hybrid.separated_
    model.score_subjects(trials)
    return model
