"""The figures of the bandit study, with what is seen on them."""

from ..study import Plate
from .figures import FIGURES

_COMPARISON = """Protected exceedance probability (PXP) of each model: how probable it is that this model is the most
frequent one among people, allowing for chance. Top, the composed model beside the Hybrid, its own generative model;
bottom, beside the three other classic models. Each group of bars adds up to one. BOR is the probability that all models
of a panel are equally common: where it is large, bars near one half mean little."""
_COURSE = """Weights of the three primitives along the experiment, blocks one after the other; lines are means over
people, bands their standard deviation, lines break where a block begins and beliefs are reset. On the right the first
block, larger. Look for the order of the lines within a block: it is what the claims are about, and it repeats from
block to block because beliefs start anew."""
_BLOCK = """The same weights by trial of a block, averaged over people and blocks: solid lines with the probit link,
dotted with the logit. Where solid and dotted lines lie on each other, the link does not matter. At the first trial of
Experiment 2 all primitives are alike and all weights are one third."""
_OTHERS = """How well models predict people whose choices they were not fitted to: mean log-probability of a choice,
higher is better. Every dot is one random division of the people into folds, the line is the mean; the words say in
how many divisions a model is the best one. Where the dots of two models overlap, a single division, as in the paper,
cannot rank them."""
_HEAT = """Probability that the composed model (solid) or the Hybrid (dashed) is the more common one, over the
temperature. The grey line marks the paper's temperature. At high temperatures the weights become uniform whatever the
beliefs, and the composed model no longer follows anybody."""
_CONTROLS = """PXP of the composed model against the Hybrid, as in the paper (first row), and against rivals: the
Hybrid with floors under its probabilities but without any primitive (one of them keeps to what mixtures of the
primitives can reach), and the Hybrid when the composed model is counted or computed otherwise. A bar that falls below
the dashed line is a control that the claim does not survive."""
_RECOVERY = """Simulated people whose model is known. Top: the model they were simulated with (row) and the one that
fits them best (column), as shares of people; a perfect analysis would be dark on the diagonal alone. Look at the last
row, that of the composed model. Bottom: how well the coefficients are found again."""

PLATES = {
    "model_comparison": Plate(FIGURES["model_comparison"], _COMPARISON, ("B1", "B2")),
    "controls": Plate(FIGURES["controls"], _CONTROLS, ("B1",)),
    "weights": Plate(FIGURES["weights"], _COURSE, ("B3", "B4")),
    "weights_within_block": Plate(FIGURES["weights_within_block"], _BLOCK, ("B3", "B4", "B8")),
    "cross_validation": Plate(FIGURES["cross_validation"], _OTHERS, ("B5", "B9")),
    "temperature": Plate(FIGURES["temperature"], _HEAT, ("B6", "B10")),
    "recovery": Plate(FIGURES["recovery"], _RECOVERY, ("B1", "B7")),
    "model_comparison_logit": Plate(FIGURES["model_comparison_logit"], _COMPARISON + " Logit link.", ("B7",)),
    "weights_logit": Plate(FIGURES["weights_logit"], _COURSE + " Logit link.", ("B8",)),
}
