"""Which model explains these choices, and does a behaviour of your own explain them better?"""

import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, figure, save

import policychord as pc

# for your own file: pc.choices.read_choices("choices.csv")
choices = pc.choices.synthetic("2", 20)
found = pc.choices.analyse(choices)
print(f"{choices.source}: {len(np.unique(choices.subject))} people, {len(choices.choice)} choices")
for name, pxp in zip(found.everything.models, found.everything.selection.pxp, strict=True):
    print(f"{name:<10} PXP {pxp:.3f}   BIC {found.models[name].bic.sum():.0f}")


def switch(trials):
    """A behaviour of your own: another arm than last time, nine times in ten."""
    again = np.arange(trials.arms) == trials.previous[:, None]
    prob = np.where(again, 0.1, 0.9 / (trials.arms - 1))
    return np.where(trials.previous[:, None] < 0, 1 / trials.arms, prob)


kept = {name: pc.choices.KNOWN[name] for name in ("exploit", "uncertainty")}
own = pc.choices.composed({**kept, "switch": switch})
duel = pc.choices.compare_models({**found.models, "Mine": pc.choices.fit(own, found.trials)}, ("Composed", "Mine"))
print(f"with switch in place of risk, against the composed model: PXP {duel.pxp('Mine'):.3f}")


def draw():
    """Who wins, and what the composed model does in a block."""
    fig = figure(6.4, 2.6)
    left, right = fig.subplots(1, 2)
    winners = [ORANGE if pxp > 0.5 else GREY for pxp in found.everything.selection.pxp]
    left.barh(found.everything.models, found.everything.selection.pxp, color=winners)
    left.set(xlabel="PXP", xlim=(0, 1))
    left.invert_yaxis()
    left.set_title(f"Most used ({choices.source})")
    trial, mean = pc.choices.weights_by_trial(found)
    for name, weights, colour in zip(found.ours.primitives, mean.T, (BLUE, ORANGE, GREEN), strict=True):
        right.plot(trial, weights, "o-", markersize=3.5, color=colour, label=name)
    right.set(xlabel="trial of a block", ylabel="mean weight", ylim=(0, 0.8))
    right.set_title("Weights of the composed model")
    right.legend()
    return fig


if __name__ == "__main__":
    save(draw(), "fit_choices")
