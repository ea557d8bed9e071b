"""What was found about choices, in plain words; every sentence is chosen by the numbers of the run."""

import numpy as np

from ..study import Evidence, Passage
from .analysis import OURS, Analysis, weights_by_trial
from .settings import BanditSettings
from .validation import FLOORED, OWN, TIED, Controlled, counted

TITLE = "Human choices between two arms: the bandit study"
LEAD = """The paper explains how people choose between two arms (Gershman's public data, two experiments) by composing
three simple policies: exploit the better arm, seek the uncertain one, avoid it. Its generative model is the Hybrid, a
regression on value and uncertainty that was fitted to each person first, so that the composed model has no parameter
of its own. Here all models are fitted again, person by person, and compared over the group by protected exceedance
probability (PXP) with the Bayes omnibus risk (BOR, the probability that all models are equally common) beside it;
every weight is an equilibrium with a certificate. **Where the public data are not found, the choices are simulated:
every figure and table then says "synthetic cohort", and no verdict says anything about people.**"""
SMALL_RISK = 0.25  # a Bayes omnibus risk above it leaves a comparison open
RARE = 0.01


def found(settings: BanditSettings, evidence: Evidence) -> list[Passage]:
    """The passages of the report; with simulated choices each says so."""
    told = [floor, count, chance, recovery, others, course, ties, heat]
    if all(OWN in evidence[f"controls {e} probit"] for e in settings.experiments):
        told.append(own_likelihood)
    passages = [passage(settings, evidence) for passage in told]
    if not settings.synthetic:
        return passages
    people = " and ".join(str(len(_fit(evidence, e).models[OURS].subjects_)) for e in settings.experiments)
    warning = (
        f"No human data were found, so the choices of {people} people were **simulated**: they play by the Hybrid "
        "model, with coefficients like those of real people. The verdicts of this chapter tell how the analysis treats "
        "people who do use the Hybrid. **They say nothing about people.** `policychord bandit data fetch` gets the "
        "public data."
    )
    marked = [p._replace(text=f"*Simulated choices.* {p.text}") for p in passages]
    return [Passage("These choices are simulated", warning), *marked]


def floor(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines, gained, floored, as_good = [], [], [], []
    for e in settings.experiments:
        gain, rare = evidence[f"rare choices {e} probit"]
        clipped: Controlled = evidence[f"controls {e} probit"][FLOORED]
        ours = _fit(evidence, e).models[OURS].log_likelihood_.sum()
        where = f"choices to which the Hybrid gave less than {RARE:g} contribute {rare:+.1f}"
        lines.append(
            f"In Experiment {e} the summed log-likelihood of the composed model is {gain:+.1f} from the Hybrid's; "
            f"{where}. "
            f"The Hybrid clipped to [.01, .99], which has no primitives and no further parameter, reaches "
            f"{clipped.log_likelihood:.1f}, the composed model {ours:.1f}; against it the composed model has a PXP of "
            f"{clipped.pxp:.2f} (BOR {clipped.bor:.2f})."
        )
        gained.append(gain > 0)
        floored.append(gain > 0 and rare > gain / 2)
        as_good.append(clipped.pxp < 0.5 or clipped.bor > SMALL_RISK)
    if not any(gained):
        so = "There is no gain over the Hybrid to be explained."
    elif all(floored):
        so = "Rare choices, not the others, carry the gain in both experiments."
    elif any(floored):
        so = "Rare choices carry most of the gain in one experiment, not in the other."
    else:
        so = "Here rare choices do not carry the gain."
    if all(as_good):
        title, end = "A floor under rare choices", "That the composed model is better than a mere floor is not shown."
    elif any(as_good):
        title, end = "A floor under rare choices", "In one experiment it is not shown to be better than a mere floor."
    else:
        title, end = "More than a floor under rare choices", "It is better than a mere floor in both experiments."
    return Passage(
        title,
        "Exploitation never gives an arm less than .01, and a mixture of the primitives can hardly go below what they "
        f"allow: the composed model is bounded away from certainty and pays little for a slip. {' '.join(lines)} {so} "
        f"{end}",
    )


def count(settings: BanditSettings, evidence: Evidence) -> Passage:
    plain, more = {}, {}
    for e in settings.experiments:
        fit = _fit(evidence, e)
        plain[e] = fit.against_hybrid.pxp(OURS)
        more[e] = evidence[f"controls {e} probit"][counted(fit.models[OURS].parameters + 1)].pxp
    turned = [e for e in more if plain[e] > 0.5 > more[e]]
    if len(turned) == len(more):
        so = "The count alone turns the comparison around, in both experiments."
    elif turned:
        so = f"The count alone turns the comparison around in Experiment {turned[0]}."
    elif all(value < 0.5 for value in plain.values()):
        so = "The Hybrid is ahead however it is counted."
    else:
        so = "The count does not turn the comparison around."
    figures = "; ".join(
        f"Experiment {e}: {share(plain[e])} as counted by the paper, {share(more[e])} with one more" for e in more
    )
    return Passage(
        "One parameter more" if not turned else "One parameter more decides",
        "The composed model is charged for the Hybrid's two coefficients only; its primitives, their sureness of .99 "
        f"and the temperature were chosen by hand and are free. PXP against the Hybrid, {figures}. {so}",
    )


def chance(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines, open_ones = [], []
    for e in settings.experiments:
        against = _fit(evidence, e).against_hybrid
        pxp, bor = against.pxp(OURS), against.selection.bor
        lines.append(f"Experiment {e}: PXP {share(pxp)}, BOR {share(bor)}")
        if bor > SMALL_RISK:
            open_ones.append(e)
    if open_ones:
        which = " and ".join(open_ones)
        so = f"In Experiment {which} the data leave open whether there is any difference: the PXP is then largely the "
        so += "even chance that goes into it."
    else:
        so = "In both experiments chance is an unlikely explanation of the difference."
    return Passage(
        "How sure the comparison is",
        "A protected exceedance probability mixes two cases: that one model is the more common (XP), and that both are "
        f"equally common (BOR), when each gets one half. Against the Hybrid, {'; '.join(lines)}. {so}",
    )


def recovery(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines, own, cohorts = [], [], settings.recovery_cohorts
    for e in settings.experiments:
        found = evidence[f"recovery {e}"]
        row, hybrid = found.models.index(OURS), found.models.index("Hybrid")
        own.append(found.best[row, row])
        lines.append(
            f"In Experiment {e}, of simulated people who do use the composed model {100 * own[-1]:.0f}% are given "
            f"back to "
            f"it and {100 * found.best[row, hybrid]:.0f}% to the Hybrid; of those who use the Hybrid "
            f"{100 * found.best[hybrid, hybrid]:.0f}% are given back to theirs. As groups, "
            f"of {cohorts} composed cohorts {round(cohorts * found.won[row, row])} are won by the composed model and "
            f"{round(cohorts * found.won[row, hybrid])} by the Hybrid"
        )
    poor = all(value < 0.5 for value in own)
    if poor:
        so = f"From {settings.blocks} blocks of {settings.trials} trials the two are hardly told apart by person; "
        so += "a lead of either is weak evidence for how somebody chooses."
    else:
        so = "So the analysis can find people who compose, where there are some."
    return Passage(
        "The composed model is hard to recover" if poor else "The composed model can be recovered",
        f"{'. '.join(lines)}. These people are always simulated. {so}",
    )


def others(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines = []
    for e in settings.experiments:
        found, script = evidence[f"cross-validation {e} probit"], evidence[f"cross-validation as released {e}"]
        top, wins = max(found.models, key=found.mean), max(found.models, key=found.best_in)
        lead = "has the highest mean" if top == OURS else f"the highest mean is that of {top}, {found.mean(top):.4f}"
        often = f" ({wins} in {found.best_in(wins)})" if wins != OURS else ""
        wider = float(script.score[:, -1].std() / found.score[:, -1].std())
        lines.append(
            f"In Experiment {e} the composed model predicts people left out with {found.mean(OURS):.4f} a trial and "
            f"{lead}; "
            f"over {len(found.score)} random splits it is best in {found.best_in(OURS)}{often}. Read as the script "
            f"runs, it "
            f"would be best in {script.best_in(OURS)}, and its score would vary {wider:.0f} times as much from split "
            f"to split"
        )
    holds = evidence[f"cross-validation {settings.experiments[0]} probit"].best_in(OURS) > settings.splits / 2
    return Passage(
        "Predicting other people" if holds else "Predicting other people depends on the split",
        "The paper reports one three-fold cross-validation over participants. Its script loops over a column vector, "
        "which "
        "runs the loop once for the whole vector: read that way (it was not run) it fits the first training "
        "participant and "
        f"scores the first test participant of each fold. {'. '.join(lines)}.",
    )


def course(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines = []
    for e in settings.experiments:
        fit = _fit(evidence, e)
        numbers, mean = weights_by_trial(fit)
        even = np.ptp(mean[0]) < 1e-6
        first = "all primitives are alike at the first trial and weigh the same" if even else (
            f"{fit.primitives[int(mean[0].argmax())]} weighs most at the first trial ({mean[0].max():.2f})"
        )  # fmt: skip
        last = f"{fit.primitives[int(mean[-1].argmax())]} at the last ({mean[-1].max():.2f})"
        peak = int(np.argmax(mean.max(1)))
        lines.append(
            f"In Experiment {e} {first}, {last}; the largest mean weight is that of "
            f"{fit.primitives[int(mean[peak].argmax())]} at trial {numbers[peak]} ({mean[peak].max():.2f})"
        )
    worst = max(float(_fit(evidence, e).composition.distance.max()) for e in settings.experiments)
    return Passage(
        "What the weights follow",
        f"Weights are functions of beliefs and of the fitted Hybrid: they say how the primitives would have to be "
        f"mixed to "
        f"come close to it, not what people had in mind. {'. '.join(lines)}. Every weight vector is certified to lie "
        f"within "
        f"{worst:.0e} of the optimum.",
    )


def ties(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines, same = [], []
    for e in settings.experiments:
        found = evidence[f"rounding {e}"]
        order, taken = found.factored - found.log_likelihood, found.tied - found.log_likelihood
        same.append(
            (evidence[f"controls {e} probit"][TIED].pxp > 0.5) == (_fit(evidence, e).against_hybrid.pxp(OURS) > 0.5)
        )
        lines.append(
            f"In Experiment {e} both arms have the very same value at {found.exact} trials after the first of a "
            f"block, and "
            f"differ by rounding only at {found.near}; with the variance written (1 - g) v instead of v - g v the "
            f"summed "
            f"log-likelihood moves by {order:+.3f}, with all of these taken as ties by {taken:+.3f}"
        )
    so = "does not change which model is ahead" if all(same) else "changes which model is ahead"
    return Passage(
        "Ties, and the order of a subtraction",
        "Exploitation gives .99 to the better arm and one half to each at a tie, so that it sees the last digit of a "
        "belief. "
        f"{'. '.join(lines)}. Taking ties as ties {so}; but a log-likelihood can be compared to the second decimal "
        f"only "
        "where the order of operations is the same.",
    )


def heat(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines = []
    for e in settings.experiments:
        swept = evidence[f"temperature {e} probit"]
        best, hot = int(np.argmax(swept.pxp)), int(np.argmax(swept.eps))
        lines.append(
            f"in Experiment {e} the PXP against the Hybrid is highest at eps = {swept.eps[best]:g} "
            f"({share(swept.pxp[best])}) and "
            f"{share(swept.pxp[hot])} at eps = {swept.eps[hot]:g}"
        )
    return Passage(
        "The temperature",
        f"Of the temperatures tried, {'; '.join(lines)}. The paper's {settings.eps:g} was not fitted, and is not "
        f"counted as a "
        "parameter.",
    )


def own_likelihood(settings: BanditSettings, evidence: Evidence) -> Passage:
    lines = []
    for e in settings.experiments:
        own: Controlled = evidence[f"controls {e} probit"][OWN]
        borrowed = _fit(evidence, e).models[OURS].log_likelihood_.sum()
        lines.append(
            f"in Experiment {e} the summed log-likelihood becomes {own.log_likelihood:.1f} instead of {borrowed:.1f}, "
            f"and the "
            f"PXP against the Hybrid {share(own.pxp)} (BOR {share(own.bor)})"
        )
    return Passage(
        "With coefficients of its own",
        "The paper fits the Hybrid first and composes with its coefficients, which are not those that suit the "
        "composed model "
        f"best. Fitted by its own likelihood, {'; '.join(lines)}.",
    )


def share(value: float) -> str:
    """A probability for a sentence."""
    return "below 0.001" if value < 0.0005 else "above 0.999" if value > 0.9995 else f"{value:.3f}"


def _fit(evidence: Evidence, experiment: str, link: str = "probit") -> Analysis:
    return evidence[f"fit {experiment} {link}"]
