"""What is computed about the choices: fits, rivals, predictions of other people, temperatures, recovery."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from policychord import flow, problem
from policychord.choices import (
    CLASSIC,
    FEATURES,
    GROUPS,
    LEAST,
    OURS,
    PAPER,
    ROUNDING,
    TASKS,
    Choices,
    CrossValidation,
    Link,
    Recovered,
    Recovery,
    Trials,
    analyse,
    believe,
    coefficients_of,
    columns,
    compare_models,
    compose,
    composed,
    draw_people,
    evaluate,
    exploit,
    features,
    fit,
    fit_choices,
    fit_hybrid,
    fit_rivals,
    log_choice_prob,
    log_proba,
    simulate_choices,
    weigh,
)
from policychord.worlds import Belief, update_belief

from .agents import MODELS, choices_of, model_of, reference_of, trials_of
from .settings import EXPERIMENTS, LINKS, BanditSettings

RARE = 0.01  # choices to which the Hybrid gave less are rare


def experiments(settings: BanditSettings) -> Mapping[str, Callable[[], Any]]:
    """Every step by name. The longest come first: two workers then end at about the same time."""
    eps, tried = settings.eps, tuple(sorted({*settings.temperatures, settings.eps}))
    sizes = {"eps": eps, "folds": settings.folds, "splits": settings.splits, "seed": settings.seed}
    steps: dict[str, Callable[[], Any]] = {f"recovery {e}": partial(recover_cohorts, settings, e) for e in EXPERIMENTS}
    for e in EXPERIMENTS:
        on_trials, on_choices = partial(_apply, trials_of, settings, e), partial(_apply, choices_of, settings, e)
        for link in LINKS:
            own = settings.own_likelihood and link == "probit"
            steps[f"rivals {e} {link}"] = partial(on_trials, fit_rivals, link, eps, own=own)
            steps[f"fit {e} {link}"] = partial(on_choices, analyse, link, eps)
            steps[f"cross-validation {e} {link}"] = partial(on_trials, predict_left_out, link, **sizes)
            steps[f"temperature {e} {link}"] = partial(on_trials, sweep, link, tried)
            steps[f"rare choices {e} {link}"] = partial(on_trials, _rare_choices, link, eps)
        if settings.durations:
            steps[f"stopped {e}"] = partial(on_trials, _stop_early, eps, settings.tau, settings.durations)
        released = partial(on_trials, predict_left_out, "probit", **sizes, only_first=True)
        steps |= {f"cross-validation as released {e}": released, f"rounding {e}": partial(on_choices, _rounding, eps)}
    return steps


def _apply(
    read: Callable[..., Any], settings: BanditSettings, e: str, act: Callable[..., Any], *a: Any, **k: Any
) -> Any:
    """Choices are read inside the step, so that naming the steps costs nothing."""
    return act(read(settings, e), *a, **k)


# ------------------------------------------------------------------------------- other people


def predict_left_out(
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
    score = np.zeros((splits, len(MODELS)))
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
    return CrossValidation(MODELS, score)


# ------------------------------------------------------------- temperature, rare choices, rounding


class Sweep(NamedTuple):
    """The composed model against the Hybrid at several temperatures."""

    eps: tuple[float, ...]
    pxp: np.ndarray
    bor: np.ndarray
    log_likelihood: np.ndarray
    log_evidence: np.ndarray  # (temperatures, people, models): the Hybrid's and ours


def sweep(trials: Trials, link: Link, temperatures: tuple[float, ...]) -> Sweep:
    """Refit nothing but the temperature."""
    hybrid = fit_hybrid(trials, link)
    rows, evidence = [], []
    for eps in temperatures:
        ours = evaluate(composed(link=link, eps=eps), trials, hybrid.coef, hybrid.separated)
        evidence.append(np.stack([hybrid.log_evidence, ours.log_evidence], axis=1))
        against = compare_models({"Hybrid": hybrid, OURS: ours}, ("Hybrid", OURS)).selection
        rows.append((against.pxp[1], against.bor, ours.log_likelihood.sum()))
    pxp, bor, total = (np.array(column) for column in zip(*rows, strict=True))
    return Sweep(temperatures, pxp, bor, total, np.stack(evidence))


class Stopped(NamedTuple):
    """The composed model (probit) with weights from a flow that is stopped at these times."""

    durations: tuple[float, ...]
    pxp: np.ndarray  # against the Hybrid
    log_likelihood: np.ndarray
    distance: np.ndarray  # of the weights from the optimum, the largest over trials


def _stop_early(trials: Trials, eps: float, tau: float, durations: tuple[float, ...]) -> Stopped:
    """tau dw/dt = -w + S(w) from uniform weights at each trial, as the paper integrates it, for this long."""
    hybrid, model = fit_hybrid(trials, "probit"), composed(eps=eps)
    coef, pi = coefficients_of(hybrid, trials), columns(PAPER, trials)
    best = weigh(model, trials, coef).weights
    log_q = log_choice_prob(features("Hybrid", trials), coef, "probit")
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
    coef = coefficients_of(fit_hybrid(trials, link), trials)
    chosen = np.arange(len(trials.choice)), trials.choice
    log_q = log_choice_prob(features("Hybrid", trials), coef, link)[chosen]
    gain = log_proba(composed(link=link, eps=eps), trials, coef)[chosen] - log_q
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
        hybrid = fit_hybrid(trials, "probit")
        ours = evaluate(composed(schemas, eps=eps), trials, hybrid.coef, hybrid.separated)
        totals.append(float(ours.log_likelihood.sum()))
    apart = np.abs(plain.mean[:, 0] - plain.mean[:, 1])
    later = plain.trial > 1
    exact, near = int((later & (apart == 0)).sum()), int((later & (apart > 0) & (apart <= ROUNDING)).sum())
    return Rounding(exact, near, *totals)


# ----------------------------------------------------------------------------------- recovery


def recover_cohorts(settings: BanditSettings, experiment: str) -> Recovery:
    """Cohorts of each model, all models fitted to each cohort (probit)."""
    size, cohorts = (len(MODELS), len(MODELS)), settings.recovery_cohorts
    best, frequency, won = np.zeros(size), np.zeros(size), np.zeros(size)
    parameters: list[Recovered] = []
    models = {name: model_of(name, settings) for name in MODELS}
    for row, (name, model) in enumerate(models.items()):
        true, estimate = [], []
        for cohort in range(cohorts):
            seed = (settings.seed, int(experiment), 7, cohort)
            people = draw_people(GROUPS[experiment][reference_of(name)], settings.cohort_size(experiment), seed)
            choices = simulate_choices(TASKS[experiment], model, people, blocks=settings.blocks, trials=settings.trials,
                               seed=(*seed, row))  # fmt: skip
            trials = believe(choices)
            fitted = {other: fit(models[other], trials, engine="scoring") for other in MODELS}
            evidence = np.stack([fit.log_evidence for fit in fitted.values()], axis=1)
            best[row] += np.bincount(evidence.argmax(1), minlength=len(MODELS)) / len(people)
            selection = compare_models(fitted, MODELS).selection
            frequency[row] += selection.expected
            won[row, selection.pxp.argmax()] += 1
            true.append(people)
            estimate.append(fitted[name].coef)
        wanted, estimated = np.concatenate(true), np.concatenate(estimate)
        error = estimated - wanted
        for k, label in enumerate(FEATURES[reference_of(name)]):
            correlation = float(np.corrcoef(wanted[:, k], estimated[:, k])[0, 1])
            rmse = float(np.sqrt(np.mean(error[:, k] ** 2)))
            parameters.append(Recovered(name, label, correlation, float(np.mean(error[:, k])), rmse))
    return Recovery(MODELS, parameters, best / cohorts, frequency / cohorts, won / cohorts)
