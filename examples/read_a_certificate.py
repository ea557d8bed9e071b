"""What the two numbers of a certificate promise, beside the truth: guesses, a rule of thumb, the flow, the solver."""

import numpy as np
from style import BLUE, GREY, ORANGE, figure, save

import policychord as pc

rng = np.random.default_rng(0)
pi = rng.dirichlet(np.full(50, 0.3), size=4).T  # four policies over fifty actions
task = pc.problem(pi=pi, action_cost=rng.normal(size=50), eps=0.1)
optimum = pc.solve(task, tol=1e-24).weights  # to more digits than anybody needs: the truth that bounds are held against
lowest = pc.energy(task, optimum)

even = np.full(4, 0.25)
expected = np.exp(-pi.T @ task.action_cost / task.eps)
judged = {
    "even weights": even,
    "one turn of the gate": pc.gate(task, even),
    "softmax of mean costs": expected / expected.sum(),
    "rounded to 2 digits": optimum.round(2) / optimum.round(2).sum(),
    "solve": pc.solve(task).weights,
}
print(f"{'weights':<22} {'above minimum':>13} {'<= gap':>9} {'away':>9} {'<= distance':>12}")
for name, weights in judged.items():
    bound = pc.certify(task, weights)
    above, away = pc.energy(task, weights) - lowest, np.abs(weights - optimum).sum()
    print(f"{name:<22} {above:>13.1e} {bound.gap:>9.1e} {away:>9.1e} {bound.distance:>12.1e}")

path = pc.flow(task, t1=4.5)
truth = {"energy above the minimum": path.energy - lowest, "distance": np.abs(path.weights - optimum).sum(axis=-1)}
bounds = {"energy above the minimum": path.certificate.gap, "distance": path.certificate.distance}
for name, true in truth.items():
    ratio = bounds[name] / true
    print(f"along the flow, {name}: certified / true between {ratio.min():.1f} and {ratio.max():.1f}")


def draw():
    """The truth and its bound along the flow."""
    fig = figure(6.4, 2.6)
    for ax, (name, true) in zip(fig.subplots(1, 2), truth.items(), strict=True):
        ax.semilogy(path.times, true, color=BLUE, label="true")
        ax.semilogy(path.times, bounds[name], color=ORANGE, linestyle="--", label="certified")
        ax.fill_between(path.times, true, bounds[name], color=GREY, alpha=0.15, linewidth=0)
        ax.set(xlabel="time of the flow")
        ax.set_title(name.capitalize())
        ax.legend()
    return fig


if __name__ == "__main__":
    save(draw(), "read_a_certificate")
