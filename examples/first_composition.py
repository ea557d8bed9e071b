"""Which mixture of three policies costs least, and how is that proved?"""

import jax
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, figure, save

import policychord as pc

pc.enable_x64()

ACTIONS = ["left", "ahead", "wait", "right"]
ways = {
    "keep left": pc.Table([0.7, 0.1, 0.1, 0.1]),
    "press on": pc.Table([0.1, 0.7, 0.1, 0.1]),
    "keep right": pc.Table([0.1, 0.1, 0.1, 0.7]),
}
cost = [1.0, 0.2, 0.5, 0.8]
agent = pc.Composer(ways, pc.Cost(cost), pc.Finite(4), eps=0.1)
best = agent.weigh(None)  # tables of one row and a fixed cost depend on no state
decision = agent.decide(jax.random.key(0), None)

for name, weight in zip(agent.names, best.weights, strict=True):
    print(f"{name:<10} {weight:.4f}")
print(f"certificate: energy within {best.certificate.gap:.0e}, weights within {best.certificate.distance:.0e}")
print(f"one action drawn from the mixture: {ACTIONS[decision.action]}")


def draw():
    """Left, primitives, mixture and model; right, the weights."""
    fig = figure(6.4, 2.6)
    left, right = fig.subplots(1, 2, width_ratios=[2.4, 1])
    colours = BLUE, ORANGE, GREEN
    pi, weights = np.asarray(best.problem.pi), np.asarray(best.weights)
    here = np.arange(len(ACTIONS))
    for a, colour in enumerate(colours):
        left.bar(here + 0.2 * (a - 1.5), pi[:, a], 0.2, color=colour, alpha=0.45)
    left.bar(here + 0.3, pi @ weights, 0.2, color="black", label="the mixture")
    wanted = np.exp(-np.asarray(cost))
    left.plot(
        here + 0.3, wanted / wanted.sum(), "D", color="white", markeredgecolor=GREY, label="the model, exp(-cost)"
    )
    left.set(ylabel="probability", xticks=here, ylim=(0, 0.8))
    left.set_xticklabels([f"{action}\ncost {c:g}" for action, c in zip(ACTIONS, cost, strict=True)])
    left.set_title("a  Actions: each policy, and their mixture")
    left.legend(loc="upper center", bbox_to_anchor=(0.64, 1.0), handlelength=1.2)
    right.barh(agent.names, weights, color=colours)
    for a, weight in enumerate(weights):
        right.text(weight + 0.02, a, f"{weight:.2f}", va="center")
    right.set(xlabel="weight", xlim=(0, 0.7))
    right.invert_yaxis()
    right.set_title("b  Weights")
    return fig


if __name__ == "__main__":
    save(draw(), "first_composition")
