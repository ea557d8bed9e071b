"""What modellers ask of a fit: does it predict other people, what does the temperature do, is a floor behind it?"""

from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np

from ...stats.glm import Link, fit_choices, log_choice_prob
from ...stats.model_selection import select_models
from .analysis import OURS
from .beliefs import Trials
from .compose import compose
from .controls import Rule
from .features import CLASSIC, features
from .models import ChoiceModel, Classic, Composed, Control
from .primitives import PAPER, columns, exploit


class CrossValidation(NamedTuple):
    """Predictive log-likelihood per trial of people left out, for each random split and model."""

    models: tuple[str, ...]
    score: np.ndarray  # (splits, models), mean over folds

    def best_in(self, model: str) -> int:
        """In how many splits the model predicts best."""
        return int((self.score.argmax(1) == self.models.index(model)).sum())

    def mean(self, model: str) -> float:
        return float(self.score[:, self.models.index(model)].mean())


def cross_validate(trials: Trials, link: Link, *, eps: float, folds: int, splits: int, seed: int) -> CrossValidation:
    """Leave out a share of the people, fit the others' choices together, and predict those left out."""
    people = np.unique(trials.subject)
    if len(people) < folds:
        raise ValueError(f"folds = {folds} with {len(people)} people: use at most one fold a person.")
    x = {name: features(name, trials) for name in CLASSIC}
    pi = columns(PAPER, trials)
    row = np.arange(len(trials.choice))
    # what fits everybody is close to what fits two thirds of them
    start = {name: fit_choices(x[name], trials.choice, link, engine="scoring").coef for name in CLASSIC}
    score = np.zeros((splits, len(CLASSIC) + 1))
    for split in range(splits):
        shuffled = np.random.default_rng((seed, split)).permutation(people)
        for left_out in np.array_split(shuffled, folds):
            test = np.isin(trials.subject, left_out)
            log_q = {}
            for name in CLASSIC:
                coef = fit_choices(x[name][~test], trials.choice[~test], link, engine="scoring", start=start[name]).coef
                log_q[name] = log_choice_prob(x[name][test], coef, link)
            log_q[OURS] = compose(pi[test], log_q["Hybrid"], eps).log_prob
            chosen = row[: test.sum()], trials.choice[test]
            score[split] += [log_prob[chosen].mean() / folds for log_prob in log_q.values()]
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
        "Hybrid clipped to [.01, .99]": (ours, floor["clip"]),
        f"{1 - 0.01 * trials.arms:g} Hybrid + .01": (ours, floor["lapse"]),
        f"Hybrid, ours counted with {count} parameters": (
            _with_coefficients_of(hybrid, Composed(primitives, **more, parameters=count), trials), hybrid),
    }  # fmt: skip
    if by_paper:
        tied = Composed(dict(PAPER) | {"exploit": partial(exploit, ties=1e-9)}, **more)
        rivals["Hybrid clipped to the primitives' hull"] = (ours, floor["hull"])
        rivals["Hybrid, ties within rounding taken as ties"] = (_with_coefficients_of(hybrid, tied, trials), hybrid)
    if own:
        fitted = Composed(primitives, **more, coefficients="own").fit(trials)
        rivals["Hybrid, ours fitted by its own likelihood"] = (fitted, hybrid)
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
