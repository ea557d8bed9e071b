"""Controls of the bandit study: what else explains the composed model's lead over the Hybrid?"""

from typing import Any

from ..study import Control, Evidence
from .analysis import OURS
from .settings import BanditSettings
from .validation import FLOORED, HULL, OWN, TIED, counted, lapsed

NOT_SHOWN = 0.25  # a Bayes omnibus risk above it leaves a comparison open


def rivals(settings: BanditSettings, evidence: Evidence) -> list[Control]:
    """The controls that this run measured, each beside the paper's own comparison."""
    shown = [floors, parameter, tied, links]
    if all(OWN in evidence[f"controls {e} probit"] for e in settings.experiments):
        shown.append(own)
    made = [control(settings, evidence) for control in shown]
    return [c._replace(answer=f"{c.answer} (Simulated choices.)") for c in made] if settings.synthetic else made


def floors(settings: BanditSettings, evidence: Evidence) -> Control:
    names = (FLOORED, lapsed(2), HULL)
    measured = _compared(settings, evidence, names)
    level = {}
    for e in settings.experiments:
        one = evidence[f"controls {e} probit"][FLOORED]
        level[e] = "no" if one.pxp < 0.5 else "not shown" if one.bor > NOT_SHOWN else "yes"
    if set(level.values()) == {"yes"}:
        answer = "Yes: the composed model is ahead of the clipped Hybrid in both experiments."
    elif "yes" in level.values():
        won = " and ".join(e for e, word in level.items() if word == "yes")
        answer = f"In Experiment {won} only: elsewhere a floor does as well, without primitives."
    else:
        words = [f"Experiment {e}: {word}" for e, word in level.items()]
        answer = f"Against the clipped Hybrid, {'; '.join(words)}. A floor without primitives may be all there is."
    question = "Is the composed model better than the Hybrid with a mere floor under its probabilities?"
    return Control("Floors without primitives", question, measured, answer)


def parameter(settings: BanditSettings, evidence: Evidence) -> Control:
    name = counted(evidence[f"fit {settings.experiments[0]} probit"].models[OURS].parameters + 1)
    measured = _compared(settings, evidence, (name,), settings.links)
    values = [evidence[f"controls {e} {link}"][name].pxp for e in settings.experiments for link in settings.links]
    lost = sum(value < 0.5 for value in values)
    answer = (
        f"The Hybrid is ahead in {lost} of {len(values)} comparisons once the composed model is charged for one more."
    )
    question = "What if the composed model is charged for one parameter, such as its temperature?"
    return Control("One more counted parameter", question, measured, answer)


def tied(settings: BanditSettings, evidence: Evidence) -> Control:
    measured = _compared(settings, evidence, (TIED,))
    moved = max(abs(evidence[f"controls {e} probit"][TIED].pxp - _paper(evidence, e)) for e in settings.experiments)
    answer = f"The PXP against the Hybrid moves by at most {moved:.3f}: "
    answer += "no." if moved < 0.05 else "rounding has a part in the comparison."
    question = "Do differences in the last digit of a belief, which exploitation takes for a better arm, matter?"
    return Control("Ties taken as ties", question, measured, answer)


def links(settings: BanditSettings, evidence: Evidence) -> Control:
    found = {(e, link): _paper(evidence, e, link) for e in settings.experiments for link in settings.links}
    measured: dict[str, Any] = {f"Exp {e}: PXP against the Hybrid, {link}": pxp for (e, link), pxp in found.items()}
    same = all(len({found[e, link] > 0.5 for link in settings.links}) == 1 for e in settings.experiments)
    answer = "No: the same model is ahead with either link." if same else "Yes: the link decides which model is ahead."
    return Control("Probit or logit", "Does the comparison depend on the link?", measured, answer)


def own(settings: BanditSettings, evidence: Evidence) -> Control:
    measured = _compared(settings, evidence, (OWN,))
    ahead = [e for e in settings.experiments if evidence[f"controls {e} probit"][OWN].pxp > 0.5]
    answer = f"Fitted so, it is ahead of the Hybrid in {len(ahead)} of {len(settings.experiments)} experiments."
    question = "What if the coefficients are those that suit the composed model, not the Hybrid's?"
    return Control("Own likelihood", question, measured, answer)


def _compared(settings: BanditSettings, evidence: Evidence, names, links=("probit",)) -> dict[str, Any]:
    """PXP of the composed model against each rival, then what goes with it."""
    pairs = {(e, link, name): evidence[f"controls {e} {link}"][name]
             for name in names for e in settings.experiments for link in links}  # fmt: skip
    said = {key: f"Exp {key[0]}, {key[2]}" + (f", {key[1]}" if len(links) > 1 else "") for key in pairs}
    measured: dict[str, Any] = {f"PXP, {said[key]}": one.pxp for key, one in pairs.items()}
    measured |= {f"BOR, {said[key]}": one.bor for key, one in pairs.items()}
    return measured | {f"log-likelihood, {said[key]}": one.log_likelihood for key, one in pairs.items()}


def _paper(evidence: Evidence, experiment: str, link: str = "probit") -> float:
    return evidence[f"fit {experiment} {link}"].against_hybrid.pxp(OURS)
