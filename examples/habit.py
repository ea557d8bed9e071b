"""When does a habit override the costs?

A habit is a prior over two controllers of a pendulum. A habit of pumping meets a model that knows better, at three
temperatures; a habit that follows the situation helps a model that sees one step ahead. Starts are the same for all.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, PINK, figure, save

import policychord as pc
from policychord.worlds import Pendulum, upright

pc.enable_x64()
WORLD = Pendulum()
ODDS = [1, 100, 10_000, 1_000_000]  # in favour of pumping
TEMPERATURES = [0.05, 0.2, 1.0, 5.0]


def missing(x):  # the energy of standing upright at rest, minus the present one
    return 5.0 - 5.0 * jnp.cos(x.angle) - x.velocity**2 / 6.0


def task(x, k):  # what the task charges for a state: a model of one step with this cost is short-sighted
    return upright(x.angle) ** 2 + 0.1 * x.velocity**2


def composer(state_cost) -> pc.Composer:
    controllers = {
        "pump": lambda x, k: jnp.array([8.0 * missing(x) * jnp.sign(x.velocity)]),
        "balance": lambda x, k: jnp.array([-20.0 * upright(x.angle) - 4.0 * x.velocity]),
    }
    primitives = {name: pc.Gaussian(control, sd=0.3, outside="tail") for name, control in controllers.items()}
    effort, move = (lambda x, u, k: 0.001 * u[0] ** 2), (lambda x, u, k: WORLD.move(x, u[0]))
    model = pc.Cost(effort, predict=move, state_cost=state_cost)
    return pc.Composer(primitives, model, pc.Grid(-2.0, 2.0, 41, saturates=True), eps=0.05, selection="mean")


def situation(x, k):  # the habit that helps: pump while low, balance near upright
    near = 0.01 + 0.98 * jax.nn.sigmoid((jnp.cos(x.angle) - 0.9) / 0.02)
    return jnp.stack([1.0 - near, near])


def measure(agent) -> tuple[float, float, float]:
    """Mean return, its standard error and the mean weight of pumping."""
    trace = pc.rollout(agent, WORLD, steps=200, episodes=100)
    returns = np.asarray(trace.total_reward)
    return returns.mean(), returns.std(ddof=1) / 10, float(np.asarray(trace.weights)[..., 0].mean())


if __name__ == "__main__":
    fig = figure(6.8, 2.7)
    left, right = fig.subplots(1, 2)
    good, short = composer(lambda x, k: task(x, k) + missing(x) ** 2), composer(task)
    print("A habit of pumping: odds, temperature, mean return ± se, mean weight of pumping")
    for eps, colour, marker in ((0.05, BLUE, "o"), (1.0, PINK, "^"), (10.0, ORANGE, "s")):
        found = [measure(good.replace(eps=eps, prior=[odds / (odds + 1), 1 / (odds + 1)])) for odds in ODDS]
        for odds, (mean, error, pump) in zip(ODDS, found, strict=True):
            print(f"{odds:>9,} {eps:>6g} {mean:>8.1f} ± {error:4.1f}  {pump:.2f}")
        mean, error, _ = zip(*found, strict=True)
        left.errorbar(ODDS, mean, error, color=colour, marker=marker, markersize=4, label=f"temperature {eps:g}")
    left.set(xscale="log", xlabel="odds in favour of pumping", ylabel="mean return ± s.e.")
    left.set_title("a  A habit of pumping")
    left.legend()
    print("A model of one step: prior, temperature, mean return ± se")
    for name, prior, colour in (("even", None, GREY), ("situation", situation, GREEN)):
        found = [measure(short.replace(eps=eps, prior=prior)) for eps in TEMPERATURES]
        for eps, (mean, error, _) in zip(TEMPERATURES, found, strict=True):
            print(f"{name:<9} {eps:>6g} {mean:>8.1f} ± {error:4.1f}")
        mean, error, _ = zip(*found, strict=True)
        right.errorbar(TEMPERATURES, mean, error, color=colour, marker="o", markersize=4, label=f"{name} prior")
    alone, error, _ = measure(short.replace(gate="prior", prior=situation))
    print(f"the prior of the situation alone, without a model: {alone:.1f} ± {error:.1f}")
    right.axhline(alone, color=GREEN, linestyle=":", label="that prior alone")
    right.set(xscale="log", xlabel="temperature", ylabel="mean return ± s.e.")
    right.set_title("b  A habit that follows the situation")
    right.legend()
    save(fig, "habit")
