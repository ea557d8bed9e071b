"""The swing-up with a habit: a prior over the controllers, at three temperatures.

A habit has the strength eps ln(odds) in the energy, to be weighed against differences in cost. When cold, evidence
overrides it; when hot and strong, the habit rules, for better or worse. The pendulum is the library's own, which runs
all episodes in one compiled call; its starts are not those of `swing_up.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, PINK, figure, save
from swing_up import PENDULUM, compose, far_sighted, short_sighted

import policychord as pc

COLD, WARM, HOT = 0.05, 1.0, 5.0
ODDS = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]  # in favour of pumping
TEMPERATURES = [0.05, 0.2, 1.0, 5.0]


def experience(state, k):
    """A habit that follows the situation: pump while low, balance near upright; 99 to 1 either way."""
    near = 0.01 + 0.98 * jax.nn.sigmoid((jnp.cos(state.angle) - 0.9) / 0.02)
    return jnp.stack([1.0 - near, near])


def measure(agent) -> dict[str, float]:
    """Mean return and weight of pumping over 100 episodes, which are the same for every agent."""
    trace = pc.rollout(agent, PENDULUM, steps=200, episodes=100)
    returns = np.asarray(trace.total_reward)
    return {
        "return": returns.mean(),
        "error": returns.std(ddof=1) / np.sqrt(len(returns)),
        "pump": float(np.mean(np.asarray(trace.weights)[..., 0])),
    }


def a_blind_habit() -> dict[float, list[dict[str, float]]]:
    """Ever stronger habits of pumping against a model that knows better, at each temperature."""
    agent = compose(far_sighted())
    return {
        eps: [measure(agent.replace(eps=eps, prior=[odds / (odds + 1), 1 / (odds + 1)])) for odds in ODDS]
        for eps in (COLD, WARM, HOT)
    }


def a_wise_habit() -> dict[str, list[dict[str, float]]]:
    """The same habit of experience, or none, for a model that sees one step ahead."""
    agent = compose(short_sighted())
    return {
        "no habit": [measure(agent.replace(eps=eps)) for eps in TEMPERATURES],
        "habit": [measure(agent.replace(eps=eps, prior=experience)) for eps in TEMPERATURES],
        # no model at all: this habit is a good switch by itself, and what a hot agent gains it owes to the habit alone
        "habit alone": [measure(agent.replace(gate="prior", prior=experience))],
    }


def show(blind, wise) -> None:
    """Both experiments as tables."""
    print("A habit of pumping, cost-to-go: mean return ± se, and mean weight of pumping")
    print(f"{'odds':>10}", *(f"{f'eps = {eps:g}':>23}" for eps in blind))
    for i, odds in enumerate(ODDS):
        cells = (blind[eps][i] for eps in blind)
        print(f"{odds:>10,}", *(f"{c['return']:>10.1f} ± {c['error']:>4.1f}  {c['pump']:.2f}" for c in cells))
    print("\nA habit that follows the situation, one-step cost: mean return ± se")
    print(f"{'eps':>10} {'no habit':>18} {'habit':>18}")
    for i, eps in enumerate(TEMPERATURES):
        cells = (wise[kind][i] for kind in ("no habit", "habit"))
        print(f"{eps:>10g}", *(f"{c['return']:>11.1f} ± {c['error']:>4.1f}" for c in cells))
    alone = wise["habit alone"][0]
    print(f"the habit alone, without a model: {alone['return']:.1f} ± {alone['error']:.1f}")


def draw(blind, wise):
    """Returns and weights against the strength of the habit, and the habit that stands in for foresight."""
    fig = figure(7.4, 2.7)
    returns, weights, rescue = fig.subplots(1, 3)
    for eps, colour, marker in ((COLD, BLUE, "o"), (WARM, PINK, "^"), (HOT, ORANGE, "s")):
        cells, label = blind[eps], rf"$\epsilon$ = {eps:g}"
        error = [c["error"] for c in cells]
        returns.errorbar(
            ODDS, [c["return"] for c in cells], error, color=colour, marker=marker, label=label, markersize=4
        )
        weights.plot(ODDS, [c["pump"] for c in cells], color=colour, marker=marker, label=label, markersize=4)
    for ax in (returns, weights):
        ax.set(xscale="log", xlabel="odds in favour of pumping", xticks=ODDS[::2])
    returns.set(ylabel="mean return ± s.e.", ylim=(-620, 0))
    returns.legend(loc="center right")
    returns.set_title("A blind habit")
    weights.set(ylabel="mean weight of pumping", ylim=(0.4, 1.03))
    weights.set_title("How far it is followed")
    for kind, colour, marker in (("no habit", GREY, "o"), ("habit", GREEN, "s")):
        cells = wise[kind]
        error = [c["error"] for c in cells]
        rescue.errorbar(TEMPERATURES, [c["return"] for c in cells], error, color=colour, marker=marker, markersize=4)
    rescue.axhline(wise["habit alone"][0]["return"], color=GREEN, linestyle=":")
    rescue.text(0.045, -148, "habit alone, no model", color=GREEN, fontsize=8)
    rescue.text(0.06, -196, "one-step,\nhabit", color=GREEN, fontsize=8)
    rescue.text(0.7, -266, "one-step,\nno habit", color=GREY, fontsize=8)
    rescue.set(xscale="log", xlabel=r"temperature $\epsilon$", ylabel="mean return ± s.e.", ylim=(-285, -130))
    rescue.set_title("A wise habit")
    return fig


if __name__ == "__main__":
    blind, wise = a_blind_habit(), a_wise_habit()
    show(blind, wise)
    save(draw(blind, wise), "habit")
