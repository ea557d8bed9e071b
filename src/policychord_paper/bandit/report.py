"""The bandit study as data, and what it found in plain words; every sentence is chosen by the numbers of the run."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from policychord.choices import OURS, Analysis, weights_by_trial
from policychord.inference import ModelRecovery

from ..study import Finding, Objection, Recording, Study
from .claims import CLAIMS, ESTABLISHED, NOT_SHOWN, controls, is_established
from .experiments import EXPERIMENTS, LINKS, RARE, BanditSettings, experiments, study_settings
from .figures import FIGURES
from .measures import FITTED, Evidence, by_experiment, gather, lead_over_hybrid, recorded, redraw
from .worlds import WORLDS

INTRODUCTION = """The paper explains how people choose between two arms (Gershman's public data, two experiments) by
composing three simple policies: exploit the better arm, seek the uncertain one, avoid it. Its generative model is the
Hybrid, a regression on value and uncertainty that was fitted to each person first, so that the composed model has no
parameter of its own. Here all models are fitted again, person by person, and compared over the group by protected
exceedance probability (PXP) with the Bayes omnibus risk (BOR, the probability that all models are equally common);
every weight is an equilibrium with a certificate. **Where the public data are not found, the choices are
simulated: every figure and table then says "synthetic cohort", and no verdict says anything about people.**"""


def _summary(settings: BanditSettings, evidence: Evidence) -> str:
    """The comparison with the Hybrid, and what it has to survive."""
    probit = by_experiment(evidence)
    against = {e: linked.fit.ours.against_reference for e, linked in probit.items()}
    rows = {
        "PXP against the Hybrid (BOR)": [
            f"{_share(compared.pxp(OURS))} ({_share(compared.selection.bor)})" for compared in against.values()
        ],
        "PXP against the Hybrid clipped to [.01, .99] (BOR)": [
            f"{_share(linked.rivals.clipped.pxp)} ({_share(linked.rivals.clipped.bor)})" for linked in probit.values()
        ],
        "PXP if one more parameter is counted": [_share(linked.rivals.counted.pxp) for linked in probit.values()],
        "simulated users of the composed model that are recovered": [
            f"{experiment.recovery.people[(at := experiment.recovery.models.index(OURS)), at]:.0%}"
            for experiment in evidence
        ],
        "random splits in which it predicts people left out best": [
            f"{linked.cross_validation.best_in(OURS)} of {len(linked.cross_validation.score)}"
            for linked in probit.values()
        ],
    }
    table = "\n".join(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())
    sure = [e for e, compared in against.items() if is_established(compared.pxp(OURS), compared.selection.bor)]
    floor = [e for e, one in probit.items() if is_established(one.rivals.clipped.pxp, one.rivals.clipped.bor)]
    people = [str(len(linked.fit.models[OURS].subjects)) for linked in probit.values()]
    counted = [e for e, linked in probit.items() if linked.rivals.counted.pxp < 0.5]
    text = [
        "*Simulated choices.*" if settings.synthetic else "",
        f"The choices of {' and '.join(people)} people. PXP is the protected exceedance probability of the composed "
        "model, BOR the probability that the compared models are equally common.",
        f"A lead counts as established with a PXP above {ESTABLISHED:g} and a BOR of at most {NOT_SHOWN:g}.",
        f"Over the Hybrid it is established in {_which(sure)}; over the clipped Hybrid, which has a floor under rare "
        f"choices and no primitives, in {_which(floor)}.",
        "With one more counted parameter, which BIC charges to every person, the Hybrid is ahead in "
        f"{_which(counted)}.",
    ]
    return f"{' '.join(filter(None, text))}\n\n| | Experiment 1 | Experiment 2 |\n|---|---|---|\n{table}"


def _which(experiments: list[str]) -> str:
    return {0: "neither experiment", 1: f"Experiment {''.join(experiments)} only"}.get(
        len(experiments), "both experiments"
    )


def _findings(settings: BanditSettings, evidence: Evidence) -> list[Finding]:
    """The paragraphs of the report; with simulated choices each says so."""
    findings = [
        _floor(evidence), _recovery(settings, evidence),
        _others(settings, evidence), _course(evidence), _ties(evidence), _heat(settings, evidence),
    ]  # fmt: skip
    findings += _own_likelihood(evidence)
    if not settings.synthetic:
        return findings
    people = " and ".join(str(len(linked.fit.models[OURS].subjects)) for linked in by_experiment(evidence).values())
    warning = (
        f"No human data were found, so the choices of {people} people were **simulated**: they play by the Hybrid "
        "model, with coefficients like those of real people. The verdicts of this chapter tell how the analysis treats "
        "people who do use the Hybrid. **They say nothing about people.** `policychord choices data fetch` gets the "
        "public data."
    )
    marked = [finding._replace(text=f"*Simulated choices.* {finding.text}") for finding in findings]
    return [Finding("These choices are simulated", warning), *marked]


def _floor(evidence: Evidence) -> Finding:
    lines, gained, floored, as_good = [], [], [], []
    for e, experiment in by_experiment(evidence).items():
        gain, clipped = experiment.gain, experiment.rivals.clipped
        ours = experiment.fit.models[OURS].log_likelihood.sum()
        lines.append(
            f"In Experiment {e} the summed log-likelihood of the composed model is {gain.total:+.1f} from the "
            f"Hybrid's; choices to which the Hybrid gave less than {RARE:g} contribute {gain.rare:+.1f}. "
            f"The Hybrid clipped to [.01, .99], which has no primitives and no further parameter, reaches "
            f"{clipped.log_likelihood:.1f}, the composed model {ours:.1f}; against it the composed model has a PXP of "
            f"{clipped.pxp:.2f} (BOR {clipped.bor:.2f})."
        )
        gained.append(gain.total > 0)
        floored.append(gain.total > 0 and gain.rare > gain.total / 2)
        as_good.append(clipped.pxp < 0.5 or clipped.bor > NOT_SHOWN)
    so = (
        "Here rare choices do not carry the gain.",
        "Rare choices carry most of the gain in one experiment, not in the other.",
        "Rare choices, not the others, carry the gain in both experiments.",
    )[sum(floored)]
    end = (
        "It is better than a mere floor in both experiments.",
        "In one experiment it is not shown to be better than a mere floor.",
        "That the composed model is better than a mere floor is not shown.",
    )[sum(as_good)]
    so = so if any(gained) else "There is no gain over the Hybrid to be explained."
    return Finding(
        "A floor under rare choices" if any(as_good) else "More than a floor under rare choices",
        "Exploitation never gives an arm less than .01, and a mixture of the primitives can hardly go below what they "
        f"allow: the composed model is bounded away from certainty and pays little for a slip. {' '.join(lines)} {so} "
        f"{end}",
    )


def _recovery(settings: BanditSettings, evidence: Evidence) -> Finding:
    lines, own = [], []
    for e, experiment in zip(EXPERIMENTS, evidence, strict=True):
        recovery = experiment.recovery
        row, hybrid = recovery.models.index(OURS), recovery.models.index("Hybrid")
        own.append(recovery.people[row, row])
        lines.append(
            f"In Experiment {e}, of simulated people who do use the composed model {100 * own[-1]:.0f}% are given back "
            f"to it and {100 * recovery.people[row, hybrid]:.0f}% to the Hybrid; of those who use the Hybrid "
            f"{100 * recovery.people[hybrid, hybrid]:.0f}% are given back to theirs. {_groups(recovery, settings)}"
        )
    poor = all(value < 0.5 for value in own)
    so = "So the analysis can find people who compose, where there are some."
    if poor:
        so = (
            f"From {settings.blocks} blocks of {settings.trials} trials the two can hardly be distinguished by person; "
            "a lead of either is weak evidence for how somebody chooses."
        )
    return Finding(
        "The composed model is hard to recover" if poor else "The composed model can be recovered",
        f"{'. '.join(lines)}. These people are always simulated. {so}",
    )


def _groups(recovery: ModelRecovery, settings: BanditSettings) -> str:
    """Which model wins cohorts of people who use the composed one."""
    cohorts, row = settings.recovery_cohorts, recovery.models.index(OURS)
    if cohorts == 1:
        winner = recovery.models[int(recovery.won[row].argmax())]
        whom = {OURS: "the composed model", "Hybrid": "the Hybrid"}.get(winner, winner)
        return f"The one cohort of such people is won by {whom}; one cohort is too few to say how often that happens"
    wins = {name: round(cohorts * recovery.won[row, recovery.models.index(name)]) for name in (OURS, "Hybrid")}
    return f"Of {cohorts} cohorts of such people, the composed model wins {wins[OURS]} and the Hybrid {wins['Hybrid']}"


def _others(settings: BanditSettings, evidence: Evidence) -> Finding:
    lines = []
    for e, experiment in zip(EXPERIMENTS, evidence, strict=True):
        validation, script = experiment.probit.cross_validation, experiment.as_released
        top, wins = max(validation.models, key=validation.mean), max(validation.models, key=validation.best_in)
        lead = (
            "has the highest mean" if top == OURS else f"the highest mean is that of {top}, {validation.mean(top):.4f}"
        )
        often = f" ({wins} in {validation.best_in(wins)})" if wins != OURS else ""
        spread = float(validation.score[:, -1].std())
        wider = f" {script.score[:, -1].std() / spread:.0f} times" if spread > 0 else ""
        lines.append(
            f"In Experiment {e} the composed model predicts people left out with {validation.mean(OURS):.4f} a trial "
            f"and {lead}; over {len(validation.score)} random splits it is best in {validation.best_in(OURS)}{often}. "
            f"Read as the script runs, it would be best in {script.best_in(OURS)}"
            + (f", and its score would vary{wider} as much from split to split" if wider else "")
        )
    holds = evidence.first.probit.cross_validation.best_in(OURS) > settings.splits / 2
    return Finding(
        "Predicting other people" if holds else "Predicting other people depends on the split",
        "The paper reports one three-fold cross-validation over participants. Its script loops over a column vector, "
        "which runs the loop once for the whole vector: read that way (it was not run) it fits the first training "
        f"participant and scores the first test participant of each fold. {'. '.join(lines)}.",
    )


def _course(evidence: Evidence) -> Finding:
    lines = []
    for e, experiment in by_experiment(evidence).items():
        (numbers, mean), names = weights_by_trial(experiment.fit), experiment.fit.ours.primitives
        first = f"{names[int(mean[0].argmax())]} weighs most at the first trial ({mean[0].max():.2f})"
        if np.ptp(mean[0]) < 1e-6:
            first = "all primitives are alike at the first trial and weigh the same"
        last = f"{names[int(mean[-1].argmax())]} at the last ({mean[-1].max():.2f})"
        peak = int(np.argmax(mean.max(1)))
        lines.append(
            f"In Experiment {e} {first}, {last}; the largest mean weight is that of "
            f"{names[int(mean[peak].argmax())]} at trial {numbers[peak]} ({mean[peak].max():.2f})"
        )
    worst = max(
        float(experiment.fit.ours.composition.distance.max()) for experiment in by_experiment(evidence).values()
    )
    return Finding(
        "What the weights follow",
        "Weights are functions of beliefs and of the fitted Hybrid: they say how the primitives would have to be mixed "
        f"to come close to it, not what people had in mind. {'. '.join(lines)}. Every weight vector is certified to "
        f"lie within {worst:.0e} of the optimum.",
    )


def _ties(evidence: Evidence) -> Finding:
    lines, same = [], []
    for e, experiment in zip(EXPERIMENTS, evidence, strict=True):
        rounding, tied = experiment.rounding, experiment.probit.rivals.tied
        order, taken = rounding.factored - rounding.log_likelihood, rounding.tied - rounding.log_likelihood
        same.append(tied is None or (tied.pxp > 0.5) == (lead_over_hybrid(experiment.probit) > 0.5))
        lines.append(
            f"In Experiment {e} both arms have the very same value at {rounding.exact} trials after the first of a "
            f"block, and differ by rounding only at {rounding.near}; with the variance written (1 - g) v instead of "
            f"v - g v the summed log-likelihood moves by {order:+.3f}, with all of these taken as ties by {taken:+.3f}"
        )
    so = "does not change which model is ahead" if all(same) else "changes which model is ahead"
    return Finding(
        "Ties, and the order of a subtraction",
        "Exploitation gives .99 to the better arm and one half to each at a tie, so that it sees the last digit of a "
        f"belief. {'. '.join(lines)}. Taking ties as ties {so}; but a log-likelihood can be compared to the second "
        "decimal only where the order of operations is the same.",
    )


def _heat(settings: BanditSettings, evidence: Evidence) -> Finding:
    lines = []
    for e, experiment in by_experiment(evidence).items():
        swept = experiment.temperature
        best, hot = int(np.argmax(swept.pxp)), int(np.argmax(swept.eps))
        lines.append(
            f"in Experiment {e} the PXP against the Hybrid is highest at eps = {swept.eps[best]:g} "
            f"({_share(swept.pxp[best])}) and {_share(swept.pxp[hot])} at eps = {swept.eps[hot]:g}"
        )
    return Finding(
        "The temperature",
        f"Of the temperatures tried, {'; '.join(lines)}. The paper's {settings.eps:g} was not fitted, and is not "
        "counted as a parameter.",
    )


def _own_likelihood(evidence: Evidence) -> list[Finding]:
    lines = [
        f"in Experiment {e} the summed log-likelihood becomes {own.log_likelihood:.1f} instead of "
        f"{experiment.fit.models[OURS].log_likelihood.sum():.1f}, and the PXP against the Hybrid {_share(own.pxp)} "
        f"(BOR {_share(own.bor)})"
        for e, experiment in by_experiment(evidence).items()
        if (own := experiment.rivals.own) is not None
    ]
    text = (
        "The paper fits the Hybrid first and composes with its coefficients, which are not those that suit the "
        f"composed model best. Fitted by its own likelihood, {'; '.join(lines)}."
    )
    return [Finding("With coefficients of its own", text)] if lines else []


def _share(value: float) -> str:
    """A probability for a sentence."""
    return "below 0.001" if value < 0.0005 else "above 0.999" if value > 0.9995 else f"{value:.3f}"


# ------------------------------------------------------------------------------- labelled data


def _datasets(settings: BanditSettings, evidence: Evidence) -> Mapping[str, xr.Dataset]:
    """Weights trial by trial and what every subject's fits were worth; and the tables of the recovery."""
    fits = {
        f"experiment_{e}_{link}": _fit_dataset(by_experiment(evidence, link)[e].fit, settings)
        for e in EXPERIMENTS
        for link in LINKS
    }
    return fits | {
        f"recovery_{e}": _recovery_dataset(experiment.recovery)
        for e, experiment in zip(EXPERIMENTS, evidence, strict=True)
    }


def _fit_dataset(fit: Analysis, settings: BanditSettings) -> xr.Dataset:
    scores = {name: (("participant", "model"), np.stack([getattr(m, name) for m in fit.models.values()], -1))
              for name in ("log_likelihood", "bic", "log_evidence")}  # fmt: skip
    variables = {
        "weights": (("row", "primitive"), fit.ours.composition.weights, {"long_name": "mixture weights", "units": "1"}),
        "distance": (("row",), fit.ours.composition.distance, {"long_name": "certificate: |w - w*|_1 is at most this"}),
        "log_prob": (("row", "arm"), fit.ours.composition.log_prob, {"long_name": "ln p of the composed model"}),
        "choice": (("row",), fit.trials.choice + 1),
        "mean": (("row", "arm"), fit.trials.mean, {"long_name": "belief before the choice"}),
        "variance": (("row", "arm"), fit.trials.variance),
        "pxp": (("model",), fit.everything.selection.pxp),
    } | scores
    coordinates = {
        "primitive": list(fit.ours.primitives), "model": list(fit.models), "participant": fit.models[OURS].subjects,
        "arm": np.arange(1, fit.trials.arms + 1),
        "subject": ("row", fit.trials.subject), "block": ("row", fit.trials.block), "trial": ("row", fit.trials.trial),
    }  # fmt: skip
    attributes = {"data": settings.source, "task": fit.task_name, "link": fit.link, "eps": fit.eps}
    return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def _recovery_dataset(recovery: ModelRecovery) -> xr.Dataset:
    tables = {name: (("simulated", "fitted"), getattr(recovery, name)) for name in ("people", "frequency", "won")}
    quality = {name: (("coefficient",), [getattr(p, name) for p in recovery.parameters])
               for name in ("correlation", "bias", "rmse")}  # fmt: skip
    labels = [f"{p.model} {p.name}" for p in recovery.parameters]
    models = list(recovery.models)
    coordinates = {"simulated": models, "fitted": models, "coefficient": labels}
    return xr.Dataset(tables | quality, coords=coordinates, attrs={"data": "simulated cohorts"})


def _objections(settings: BanditSettings, evidence: Evidence) -> list[Objection]:
    """What readers would dispute; the number of splits is that of the run."""
    splits = Objection(
        ("B5", "B9"),
        "author",
        "Our cross-validation gives another order in Experiment 1.",
        f"One split is one draw. Here are {settings.splits} random splits, each fitted on all training people; the "
        "released script, as we read it, fits one of them.",
    )
    return [splits, *OBJECTIONS]


OBJECTIONS = (
    Objection(("B1", "B2", "B7"), "author", "We claim a higher PXP, not an established one.",
              "That is a part of its own for each experiment, and counts. The other part asks whether the lead is "
              "established (PXP above 0.95 with a BOR of at most 0.25): where the BOR is high, most of a PXP is the "
              "even chance in its definition."),
    Objection(("B1",), "reviewer", "The gain is a floor under rare choices, not composition.",
              "It may be: see the control with a clipped Hybrid, which has the floor and no primitive. The claim "
              "compares with the Hybrid of the literature, and is judged so."),
    Objection(("B1", "B2"), "reviewer", "The composed model has parameters that BIC does not count.",
              "The control with one more counted parameter shows what it would change. The paper counts two, and "
              "the rule judges its claim."),
    Objection(("B3", "B4", "B11"), "reviewer",
              "Weights follow from the fitted Hybrid, so a difference between experiments is a difference between "
              "tasks.",
              "Yes: the weights are a function of beliefs and of two fitted coefficients. B11 tests whether they "
              "differ, not why; people were not assigned to both tasks."),
)  # fmt: skip


STUDY = Study(
    summary=_summary, shown="weights_within_block",
    name="bandit", title="Human choices between two arms: the bandit study", introduction=INTRODUCTION,
    settings=study_settings, experiments=experiments, evidence=gather, claims=CLAIMS, figures=FIGURES,
    datasets=_datasets, controls=controls, worlds=WORLDS, findings=_findings, objections=_objections,
    recording=Recording(lambda settings: FITTED, recorded), redraw=redraw,
)  # fmt: skip
