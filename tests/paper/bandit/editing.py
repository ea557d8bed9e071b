"""The same evidence with other outcomes, to see what follows from them."""

import numpy as np

from policychord.choices.models import OURS


def with_links(evidence, change):
    """`change(LinkEvidence)` applied to both experiments and both links."""
    return evidence._replace(**{
        name: found._replace(probit=change(found.probit), logit=change(found.logit))
        for name, found in evidence._asdict().items()
    })  # fmt: skip


def with_rival(evidence, kind, pxp, bor=0.01, log_likelihood=-100.0):
    """Another outcome of one control, everywhere."""

    def change(found):
        rival = getattr(found.rivals, kind) or found.rivals.clipped
        changed = rival._replace(pxp=pxp, bor=bor, log_likelihood=log_likelihood)
        return found._replace(rivals=found.rivals._replace(**{kind: changed}))

    return with_links(evidence, change)


def with_pxp(found, against, ours, bor=0.01):
    """A `LinkEvidence` in which the composed model has this PXP, and the others share the rest."""
    compared = getattr(found.fit.ours, against)
    others = (1 - ours) / (len(compared.models) - 1)
    pxp = compared.selection.pxp.copy()
    pxp[:] = [ours if model == OURS else others for model in compared.models]
    changed = compared._replace(selection=compared.selection._replace(pxp=pxp, bor=bor))
    return found._replace(fit=found.fit._replace(composed=found.fit.ours._replace(**{against: changed})))


def with_weights(found, mean, beyond=0.05):
    """A `LinkEvidence` whose weights at trial k of every block are row k - 1 of `mean`.

    Without an attitude to uncertainty the course that B4 claims is less marked, by `beyond`.
    """
    weights = mean[found.fit.trials.trial - 1]
    early = found.fit.trials.trial <= found.fit.trials.trial.max() // 2
    neutral = weights - beyond * np.where(early[:, None], [1.0, 0.0, -1.0], [0.0, -1.0, 1.0])
    ours = found.fit.ours
    changed = ours._replace(composition=ours.composition._replace(weights=weights))
    return found._replace(fit=found.fit._replace(composed=changed), neutral=neutral)


def with_scores(found, ours, others):
    """A `LinkEvidence` in which the composed model and the others predict people left out like this, in every split."""
    one = found.cross_validation
    score = one.score.copy()
    score[:] = [ours if model == OURS else others for model in one.models]
    return found._replace(cross_validation=one._replace(score=score))
