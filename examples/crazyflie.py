"""A Crazyflie along a figure of eight in gusts: four controllers composed, as a prior for plans, and all their rivals.

Actions have four dimensions (roll, pitch, turn, thrust). The composition beats every controller that it is made of, and
loses to those that are given the path's acceleration and to a planner with as many simulated steps. A plan around the
same controllers, with as many simulated steps, leaves their hull.
"""

import jax.numpy as jnp
import numpy as np
from flight import BASELINES, HORIZON, PILOTS, STEPS, WORLD, Alone, Model, composed
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from style import BLUE, FOLDER, GREEN, GREY, ORANGE, PINK, SEEDS, figure, save

import policychord as pc
from policychord.effect_size import effect_size
from policychord.worlds.crazyflie import DT

# the best of those that `benchmarks/composition.py` tried in episodes 0 to 49
EPS, NATS = 0.05, 100.0
FOLLOW = {"stabilise": 0.15, "track": 0.04, "fast": 0.75, "lean": 0.05}  # what rollouts follow
EQUAL = dict.fromkeys(PILOTS, 0.25)  # what those of the cheapest primitive follow
EPISODES = range(1000, 1000 + (SEEDS or 200))
OURS, PLANNED = "composed, rollouts", "planned around them"
COLOURS = dict(zip(PILOTS, (BLUE, ORANGE, GREEN, PINK), strict=True))


def agents():
    """Everybody who flies."""
    ours = composed(NATS, EPS, follow=FOLLOW)
    model = Model(WORLD)
    near = pc.Cost(predict=model.predict, state_cost=lambda view, k: NATS * WORLD.cost_of(view, k))
    samples = ours.actions.size  # as many simulated steps as the rollouts take
    budget = {"steps": HORIZON + 1, "samples": samples}
    around = ours.replace(prior=list(FOLLOW.values()), gate="prior")  # what the rollouts follow
    pilots = {name: Alone((one,), jnp.ones(1)) for name, one in (PILOTS | BASELINES).items()}
    equal = Alone(tuple(PILOTS.values()), jnp.full(len(PILOTS), 1 / len(PILOTS)))
    return {
        **{f"{name} alone": pilots[name] for name in PILOTS},
        "fixed mixture": equal,
        "composed, one step": ours.replace(model=near),
        "cheapest, rollouts": composed(NATS, EPS, follow=EQUAL, gate="cheapest"),
        "cheapest, each": composed(NATS, EPS, follow="each", gate="cheapest"),
        OURS: ours,
        PLANNED: pc.Planner(around, model.predict, model.stage, **budget),
        "MPPI, same budget": pc.rivals.mppi(ours.actions, model.predict, model.stage, **budget),
        **{name: pilots[name] for name in BASELINES},
    }


def fly(agent):
    """Its flights, fifty at once."""
    some = [EPISODES[i : i + 50] for i in range(0, len(EPISODES), 50)]
    return [pc.rollout(agent, WORLD, steps=STEPS, episodes=one) for one in some]


def show(costs, crashes):
    """A line for each: what a flight costs, and ours against it in the same gusts."""
    print(f"{len(EPISODES)} flights, the same gusts for all; delta below zero: the composition costs less")
    print(f"{'agent':<20} {'median':>8} {'crashes':>8} {'delta (95% interval)':>26} {'composed wins':>14}")
    for name, values in costs.items():
        line = f"{name:<20} {np.median(values):>8.1f} {crashes[name]:>8}"
        if name != OURS:
            delta, low, high, _ = effect_size(costs[OURS], values, paired=True)
            line += f" {delta:>+8.2f} ({low:+.2f} to {high:+.2f}) {np.mean(costs[OURS] < values):>14.0%}"
        print(line)


def draw(trace, costs):
    """One flight with its weights, and what the flights of everybody cost."""
    fig = figure(7.6, 4.4)
    left, right = fig.subfigures(1, 2, width_ratios=[1, 1.1])
    path, weights = left.subplots(2, 1, height_ratios=[1.5, 1])
    place = trace.state.position[0]
    path.plot(*np.asarray(WORLD.path)[:, :2].T, color=GREY, linewidth=0.9, linestyle=":", label="path")
    path.plot(*place[:, :2].T, color="black", linewidth=1.2, label="flown")
    for when, gust in zip(trace.state.gust_times[0, 0], trace.state.gusts[0, 0], strict=True):
        path.annotate(
            "gust", place[when, :2], place[when, :2] - 0.45 * gust[:2], fontsize=7, ha="center", va="center",
            arrowprops={"arrowstyle": "->", "linewidth": 0.8},
        )  # fmt: skip
    path.margins(0.12)
    path.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    path.legend(loc="upper left", handlelength=1.2, borderaxespad=0.0, bbox_to_anchor=(0.0, 1.12), ncols=2)
    path.set_title(f"Flight {EPISODES[0]} from above", pad=16)
    seconds = DT * np.arange(STEPS)
    weights.stackplot(
        seconds, trace.weights[0].T, colors=list(COLOURS.values()), labels=list(COLOURS), alpha=0.8, linewidth=0
    )
    for when in trace.state.gust_times[0, 0]:
        weights.axvline(DT * when, color="black", linewidth=0.8, linestyle=":")
    weights.set(
        xlabel="time (s); dotted: gusts", ylabel="weight", ylim=(0, 1), xlim=(0, seconds[-1]), yticks=[0, 0.5, 1]
    )
    weights.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, handlelength=0.8, columnspacing=1.0)
    ax = right.subplots()
    rng = np.random.default_rng(0)
    for row, (name, values) in enumerate(costs.items()):
        colour = (
            GREEN
            if name in (OURS, PLANNED)
            else ORANGE
            if name.startswith("MPPI")
            else GREY
            if "alone" in name
            else BLUE
        )
        aside = row + rng.uniform(-0.2, 0.2, len(values))
        ax.plot(values, aside, ".", color=colour, markersize=3, alpha=0.5, markeredgewidth=0)
        ax.plot(np.median(values), row, "|", color="black", markersize=15, markeredgewidth=1.6)
    ax.set(xscale="log", xlabel="cost of a flight", yticks=range(len(costs)), yticklabels=list(costs))
    ax.invert_yaxis()
    ax.set_title(f"{len(EPISODES)} flights each; bar: median")
    return fig


def film(trace, every=4):
    """The flight in space, and its weights as they change."""
    fig = figure(4.4, 3.6)
    FigureCanvasAgg(fig)
    fig.set_layout_engine("none")  # places are given
    space, bars = fig.add_axes((0.2, 0.0, 0.72, 0.95), projection="3d"), fig.add_axes((0.04, 0.66, 0.24, 0.22))
    place, weights = np.asarray(trace.state.position[0]), np.asarray(trace.weights[0])
    space.plot(*np.asarray(WORLD.path)[:, :3].T, color=GREY, linewidth=0.8, linestyle=":")
    (tail,) = space.plot([], [], [], color="black", linewidth=1.2)
    (drone,) = space.plot([], [], [], "o", color=GREEN, markersize=6)
    space.set(xlim=(-1, 1), ylim=(-0.6, 0.6), zlim=(0.5, 1.5), xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
    space.set_box_aspect((2, 1.2, 1))
    space.tick_params(labelsize=6)
    columns = bars.bar(list(COLOURS), weights[0], color=list(COLOURS.values()))
    bars.set(ylim=(0, 1), yticks=[])
    bars.tick_params(labelsize=6, length=0)
    bars.tick_params(axis="x", rotation=40)
    bars.patch.set_alpha(0.0)

    def frame(now):
        tail.set_data_3d(*place[max(now - 40, 0) : now + 1].T)
        drone.set_data_3d(*place[now : now + 1].T)
        for column, height in zip(columns, weights[now], strict=True):
            column.set_height(height)
        gust = np.any((now >= trace.state.gust_times[0, 0]) & (now < trace.state.gust_times[0, 0] + 12))
        space.set_title(f"{DT * now:.1f} s{'   gust' if gust else ''}")
        return [tail, drone, *columns]

    return FuncAnimation(fig, frame, frames=range(0, len(place), every))


if __name__ == "__main__":
    flights = {name: fly(agent) for name, agent in agents().items()}
    costs = {name: np.concatenate([-np.asarray(one.total_reward) for one in some]) for name, some in flights.items()}
    crashes = {name: sum(int(np.sum(~np.asarray(one.alive[:, -1]))) for one in some) for name, some in flights.items()}
    show(costs, crashes)
    print(f"every weight proved within {max(float(np.max(one.gap)) for one in flights[OURS]):.1e} of its optimum")
    save(draw(flights[OURS][0], costs), "crazyflie")
    film(flights[OURS][0]).save(FOLDER / "crazyflie.gif", PillowWriter(fps=12), dpi=90)
    print(f"film: {FOLDER / 'crazyflie.gif'}")
