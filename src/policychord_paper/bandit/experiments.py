"""What is computed about the choices: fits, rivals, predictions of other people, temperatures, recovery."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from policychord import flow, problem
from policychord.choices import (
    CLASSIC,
    GROUPS,
    LEAST,
    OURS,
    PAPER,
    ROUNDING,
    SUBJECTS,
    SYNTHETIC,
    TASKS,
    Analysis,
    Choices,
    CrossValidation,
    Link,
    Reading,
    Rivals,
    Trials,
    analyse,
    believe,
    borrow,
    classic,
    coefficients_of,
    columns,
    compare_models,
    composed,
    draw_people,
    exploit,
    find_data,
    fit,
    fit_rivals,
    folds_of_people,
    log_proba,
    plan_models,
    predict_others,
    read_choices,
    recover_choices,
    simulate_choices,
    synthetic,
    take,
    weigh,
)
from policychord.inference import ModelRecovery
from policychord.worlds import Belief, update_belief

from .attitudes import OnSameTrials, plant_attitudes, weigh_on_same_trials
from .known import KNOWN, SPLITS, known_choices

# The claims compare both experiments of the public data and both links, so neither is a setting.
EXPERIMENTS = ("1", "2")
LINKS: tuple[Link, ...] = ("probit", "logit")
MODELS = (*CLASSIC, OURS)
RARE = 0.01  # choices to which the Hybrid gave less are rare


class BanditSettings(BaseModel):
    """Sizes, seed and data of the bandit study; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    data: Path | None = Field(default=None, description="folder with data1.csv and data2.csv; None is synthetic")
    eps: float = Field(default=0.01, gt=0, description="temperature (Table S2)")
    temperatures: tuple[float, ...] = Field(
        default=(0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0), description="that are tried besides eps (Fig. S5b)"
    )
    tau: float = Field(default=1.0, gt=0, description="time constant of the weights (Table S2)")
    durations: tuple[PositiveFloat, ...] = Field(
        default=(1.0, 2.0, 5.0, 10.0),
        description="times at which the flow is stopped at each trial, a control; the claims take its end",
    )
    folds: int = Field(default=3, ge=2, description="of the cross-validation over participants")
    splits: int = Field(default=20, ge=1, description="random splits into folds")
    permutations: int = Field(default=2000, ge=100, description="of people between the experiments (B11)")
    recovery_cohorts: int = Field(default=6, ge=1, description="simulated cohorts for each generating model")
    own_likelihood: bool = Field(default=True, description="also fit the composed model by its own likelihood")
    subjects: int | None = Field(default=None, ge=3, description="of a simulated cohort; as many as in the data")
    blocks: int = Field(default=20, ge=1, description="of a simulated participant (Table S2)")
    trials: int = Field(default=10, ge=1, description="of a block (Table S2)")

    def cohort_size(self, experiment: str) -> int:
        """How many people are simulated."""
        return SUBJECTS[experiment] if self.subjects is None else self.subjects

    @property
    def synthetic(self) -> bool:
        return self.data is None

    @property
    def source(self) -> str:
        """What every output says about where the choices came from."""
        return SYNTHETIC if self.synthetic else "human data (Gershman 2018)"


def study_settings(*, quick: bool = True, seed: int = 0, data: Path | None = None) -> BanditSettings:
    """Quick and full differ in what takes time and judges nothing; the rules need all 20 splits."""
    fewer = {"recovery_cohorts": 1, "own_likelihood": False, "durations": ()} if quick else {}
    return BanditSettings(seed=seed, data=find_data(data), **fewer)


@cache
def _choices_of(settings: BanditSettings, experiment: str) -> Choices:
    """The choices of one experiment: people's if there are data, else simulated."""
    if settings.data is None:
        size = {"blocks": settings.blocks, "trials": settings.trials, "seed": settings.seed}
        return synthetic(experiment, settings.cohort_size(experiment), **size)
    return read_choices(
        settings.data / f"data{experiment}.csv", TASKS[experiment], settings.source, Reading(doubtful="drop")
    )


@cache
def _trials_of(settings: BanditSettings, experiment: str) -> Trials:
    """The same with the beliefs before each choice."""
    return believe(_choices_of(settings, experiment))


def experiments(settings: BanditSettings) -> Mapping[str, Callable[[], Any]]:
    """Every step by name. The longest come first: two workers then end at about the same time."""
    eps, tried = settings.eps, tuple(sorted({*settings.temperatures, settings.eps}))
    sizes = {"eps": eps, "folds": settings.folds, "splits": settings.splits, "seed": settings.seed}
    steps: dict[str, Callable[[], Any]] = {f"recovery {e}": partial(_recover, settings, e) for e in EXPERIMENTS}
    for e in EXPERIMENTS:
        on_trials, on_choices = partial(_apply, _trials_of, settings, e), partial(_apply, _choices_of, settings, e)
        for link in LINKS:
            own = settings.own_likelihood and link == "probit"
            steps[f"rivals {e} {link}"] = partial(on_trials, fit_rivals, link, eps, own=own)
            steps[f"fit {e} {link}"] = partial(on_choices, analyse, link, eps)
            steps[f"cross-validation {e} {link}"] = partial(on_trials, _predict_others, e, link, **sizes)
            steps[f"temperature {e} {link}"] = partial(on_trials, _sweep, link, tried)
            steps[f"rare choices {e} {link}"] = partial(on_trials, _rare_choices, link, eps)
        if settings.durations:
            steps[f"stopped {e}"] = partial(on_trials, _stop_early, eps, settings.tau, settings.durations)
        steps[f"planted attitudes {e}"] = partial(plant_attitudes, e, eps, settings.seed)
        released = partial(on_trials, _predict_as_released, **sizes)
        steps |= {f"cross-validation as released {e}": released, f"rounding {e}": partial(on_choices, _rounding, eps)}
    for name in ("", *KNOWN):
        for link in LINKS:
            steps[f"{name} same trials {link}".strip()] = partial(_on_same_trials, settings, link, name)
    known = {f"{name} {e} {link}": (e, link, name) for name in KNOWN for e in EXPERIMENTS for link in LINKS}
    return steps | {step: partial(_know, settings, *which) for step, which in known.items()}


def _on_same_trials(settings: BanditSettings, link: Link, name: str) -> OnSameTrials:
    """People's weights on the same trials, or those of known people."""
    read = partial(_known_trials, settings, name) if name else partial(_trials_of, settings)
    first, second = map(read, EXPERIMENTS)
    return weigh_on_same_trials((first, second), link, settings.eps)


def _known_trials(settings: BanditSettings, name: str, e: str) -> Trials:
    return believe(known_choices(name, e, settings.blocks, settings.trials, settings.seed))


class KnownFit(NamedTuple):
    """What is found about known people; only weights where models are not compared on their choices."""

    fit: Analysis
    rivals: Rivals | None
    cross_validation: CrossValidation | None
    temperature: "Sweep | None"
    gain: "Gain | None"
    alike: "Sweep | None"  # temperatures of a model whose primitives are the same


def _know(settings: BanditSettings, e: str, link: Link, name: str) -> KnownFit:
    """The same steps as for people, with fewer splits and temperatures."""
    choices, eps = known_choices(name, e, settings.blocks, settings.trials, settings.seed), settings.eps
    trials, fitted = believe(choices), analyse(choices, link, eps)
    if not KNOWN[name].compared:
        return KnownFit(fitted, None, None, None, None, None)
    both = (eps, max(settings.temperatures))
    return KnownFit(
        fitted,
        fit_rivals(trials, link, eps),
        _predict_others(trials, e, link, eps=eps, folds=settings.folds, splits=SPLITS, seed=settings.seed),
        _sweep(trials, link, both),
        _rare_choices(trials, link, eps),
        _sweep(trials, link, both, dict.fromkeys(("first", "second", "third"), exploit)),
    )


def _apply(
    read: Callable[..., Any], settings: BanditSettings, e: str, act: Callable[..., Any], *a: Any, **k: Any
) -> Any:
    """Choices are read inside the step, so that naming the steps costs nothing."""
    return act(read(settings, e), *a, **k)


# ------------------------------------------------------------------------------- other people


def _predict_others(
    trials: Trials, experiment: str, link: Link, *, eps: float, folds: int, splits: int, seed: int
) -> CrossValidation:
    """Leave out a share of the people, fit the others' choices together, and predict those left out."""
    plan = plan_models(TASKS[experiment], link, eps)
    return predict_others(plan, trials, folds=folds, splits=splits, seed=seed)


def _predict_as_released(trials: Trials, *, eps: float, folds: int, splits: int, seed: int) -> CrossValidation:
    """As the released script does: fit the first of the others, and predict the first of those left out (probit)."""
    people = np.unique(trials.subject)
    score = np.zeros((splits, len(MODELS)))
    for split, fold in enumerate(folds_of_people(len(people), folds, splits, seed)):
        for k in range(folds):
            first, left_out = (people[inside][0] for inside in (fold != k, fold == k))
            train, test = (take(trials, trials.subject == person) for person in (first, left_out))
            made = np.arange(len(test.choice)), test.choice
            coef = {}
            for name in CLASSIC:
                fitted = fit(classic(name, pooled=True), train)
                coef[name] = coefficients_of(fitted, test)
            log_p = [log_proba(classic(name), test, coef[name])[made].mean() for name in CLASSIC]
            log_p.append(log_proba(composed(PAPER, eps=eps), test, coef["Hybrid"])[made].mean())
            score[split] += np.array(log_p) / folds
    return CrossValidation(MODELS, score)


# ------------------------------------------------------------- temperature, rare choices, rounding


class Sweep(NamedTuple):
    """The composed model against the Hybrid at several temperatures."""

    eps: tuple[float, ...]
    pxp: np.ndarray
    log_evidence: np.ndarray  # (temperatures, people, models): the Hybrid's and ours


def _sweep(trials: Trials, link: Link, temperatures: tuple[float, ...], primitives: Mapping[str, Any] = PAPER) -> Sweep:
    """Refit nothing but the temperature."""
    hybrid = fit(classic("Hybrid", link), trials)
    pxp, evidence = [], []
    for eps in temperatures:
        ours = borrow(composed(primitives, link=link, eps=eps), trials, hybrid)
        evidence.append(np.stack([hybrid.log_evidence, ours.log_evidence], axis=1))
        pxp.append(compare_models({"Hybrid": hybrid, OURS: ours}, ("Hybrid", OURS)).pxp(OURS))
    return Sweep(temperatures, np.array(pxp), np.stack(evidence))


class Stopped(NamedTuple):
    """The composed model (probit) with weights from a flow that is stopped at these times."""

    durations: tuple[float, ...]
    pxp: np.ndarray  # against the Hybrid
    log_likelihood: np.ndarray
    distance: np.ndarray  # of the weights from the optimum, the largest over trials


def _stop_early(trials: Trials, eps: float, tau: float, durations: tuple[float, ...]) -> Stopped:
    """tau dw/dt = -w + S(w) from uniform weights at each trial, as the paper integrates it, for this long."""
    hybrid, model = fit(classic("Hybrid"), trials), composed(PAPER, eps=eps)
    coef, pi = coefficients_of(hybrid, trials), columns(PAPER, trials)
    best = weigh(model, trials, coef).weights
    log_q = log_proba(classic("Hybrid"), trials, coef)
    problems = problem(pi=pi, action_cost=-np.maximum(log_q, np.log(LEAST)), eps=eps)
    made = np.arange(len(trials.choice)), trials.choice
    rows = []
    weights, before = np.full(pi.shape[::2], 1 / pi.shape[-1]), 0.0
    for time in sorted(durations):
        weights = np.asarray(flow(problems, t1=time - before, start=weights, tau=tau, save=2).weights)[:, -1]
        before = time
        log_p = np.log(np.maximum(np.einsum("tan,tn->ta", pi, weights)[made], LEAST))
        total = np.array([log_p[trials.subject == person].sum() for person in hybrid.subjects])
        gain = total - hybrid.log_likelihood  # as many parameters, so evidence gains what the likelihood does
        ours = hybrid._replace(log_likelihood=total, log_evidence=hybrid.log_evidence + gain)
        against = compare_models({"Hybrid": hybrid, OURS: ours}, ("Hybrid", OURS)).selection
        rows.append((against.pxp[1], total.sum(), np.abs(weights - best).sum(axis=1).max()))
    return Stopped(tuple(sorted(durations)), *(np.array(column) for column in zip(*rows, strict=True)))


class Gain(NamedTuple):
    """The gain of the composed model over the Hybrid in ln p, and the part from choices the Hybrid held unlikely."""

    total: float
    rare: float


def _rare_choices(trials: Trials, link: Link, eps: float) -> Gain:
    """Where the composed model gains over the Hybrid."""
    hybrid = classic("Hybrid", link)
    coef = coefficients_of(fit(hybrid, trials), trials)
    chosen = np.arange(len(trials.choice)), trials.choice
    log_q = log_proba(hybrid, trials, coef)[chosen]
    gain = log_proba(composed(PAPER, link=link, eps=eps), trials, coef)[chosen] - log_q
    return Gain(float(gain.sum()), float(gain[log_q < np.log(RARE)].sum()))


class Rounding(NamedTuple):
    """What the last digit of a belief decides: ties between arms, as exploitation sees them, and the likelihood."""

    exact: int  # trials, after the first of a block, at which both arms have the very same value
    near: int  # trials at which they differ by rounding only
    log_likelihood: float  # of the composed model, beliefs by v - g v
    factored: float  # beliefs by (1 - g) v
    tied: float  # differences within rounding taken as ties


def _learn_factored(belief: Belief, choice: np.ndarray, reward: np.ndarray, noise: float) -> Belief:
    """`update_belief` with the variance written (1 - g) v, which is the same but for the last digit."""
    after, old = update_belief(belief, choice, reward, noise), belief.variance
    chosen = np.arange(old.shape[-1]) == choice[:, None]
    return after._replace(variance=np.where(chosen, (1.0 - old / (old + noise)) * old, old))


def _rounding(choices: Choices, eps: float) -> Rounding:
    """The composed model (probit) with beliefs rounded one way and another."""
    plain, factored = believe(choices), believe(choices, _learn_factored)
    totals = []
    for trials, ties in ((plain, 0.0), (factored, 0.0), (plain, ROUNDING)):
        schemas = dict(PAPER) | {"exploit": partial(exploit, ties=ties)}
        ours = borrow(composed(schemas, eps=eps), trials, fit(classic("Hybrid"), trials))
        totals.append(float(ours.log_likelihood.sum()))
    apart = np.abs(plain.mean[:, 0] - plain.mean[:, 1])
    later = plain.trial > 1
    exact, near = int((later & (apart == 0)).sum()), int((later & (apart > 0) & (apart <= ROUNDING)).sum())
    return Rounding(exact, near, *totals)


# ----------------------------------------------------------------------------------- recovery


def _recover(settings: BanditSettings, experiment: str) -> ModelRecovery:
    """Cohorts of each model, all models fitted to each cohort (probit)."""
    plan = plan_models(TASKS[experiment], "probit", settings.eps)

    def cohort(name: str, number: int) -> tuple[Choices, np.ndarray]:
        seed = (settings.seed, int(experiment), 7, number)
        coefficients = GROUPS[experiment]["Hybrid" if name == OURS else name]  # the composed model has the Hybrid's
        people = draw_people(coefficients, settings.cohort_size(experiment), seed)
        choices = simulate_choices(
            TASKS[experiment], plan.everything[name], people, blocks=settings.blocks, trials=settings.trials,
            seed=(*seed, MODELS.index(name)),
        )  # fmt: skip
        return choices, people

    return recover_choices(plan, cohort, cohorts=settings.recovery_cohorts)
