"""What a slow gate does: the softmax flow with little time between decisions, and a circuit that never settles.

python -m benchmarks.lag --out docs/figures/lag.png --record docs/how-to/which_gate.json

A flock and a drone decide with weights that went on from the last decision for `duration`. After 20 tau they are the
optimum; with less time they lag behind. Then both decide by the circuit, at a low temperature: with the ladder
`time_scales(eps)`, which is stable at any, and with every layer ten times as fast as the next, as the paper orders
them. `circuit_stability` counts the decisions at which that circuit does not settle, and outcomes count those that
could not be integrated.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

from policychord import Population, Problem, TimeScales, circuit_stability, rollout
from policychord.agent import Circuit, Flow, failed
from policychord.worlds.flock.agents import boid, flock_world
from policychord.worlds.flock.measures import polarization
from policychord.worlds.flock.settings import FlockSettings
from policychord.worlds.quadrotor.agents import composer
from policychord.worlds.quadrotor.agents import quadrotor_world as air
from policychord.worlds.quadrotor.settings import CompositionSettings, QuadrotorSettings

from .tables import keep

jax.config.update("jax_enable_x64", True)

DURATIONS = (0.02, 0.05, 0.2, 0.5, 1.0, 3.0, 20.0)  # in units of tau
ORDERED = TimeScales(1e-3, 1e-2, 1e-1, 1.0)  # every layer ten times as fast as the next
COLD = 0.01  # the temperature at which circuits are compared; the studies' own are .5 (flock) and .05 (drone)
EPISODES, BOIDS, STEPS = 4, 10, 60
# titles of the page's tables, and how their numbers are written
OVER = {"duration / tau": "s"} | dict.fromkeys((f"{d:g}" for d in DURATIONS), ".3g") | {"equilibrium": ".3g"}
CIRCUITS = {
    "": "s", "eps": "g", "time scales": "s", "does not settle on": ".0%", "could not be integrated": "d", "cost": ".3g",
    "at the equilibrium": ".3g", "a weight moves in a step by": ".3f", "ms a decision": ".2f",
}  # fmt: skip
LONG = 10.0  # seconds: what takes longer is not played again to be timed, because compiling is a small part of it
BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#D55E00"


def flock():
    """(an agent of the paper's flock, how to play it, what its cost is, what the agents of a trace saw)."""
    settings = FlockSettings(boids=BOIDS, grid=10)
    sky = flock_world(settings)

    def play(agent):
        return rollout(Population(agent, BOIDS), sky, steps=STEPS, episodes=1)

    def disorder(trace):
        return 1.0 - float(np.mean(polarization(np.asarray(trace.state.velocity))[:, -STEPS // 3 :]))

    def seen(trace):
        return sky.observe(jax.tree_util.tree_map(lambda a: a[0, STEPS // 2], trace.state))

    return boid(settings, sky, informed=False).replace(selection="mean"), play, disorder, seen


def drone():
    """The same of the drone with its PD pair and the Riccati cost-to-go."""
    settings = QuadrotorSettings(disturbance="centre")
    how = CompositionSettings(
        horizon="cost-to-go", selection="mean", points=12, margin=settings.wide_margin, spread=0.03
    )
    sky = air(settings, "pd")

    def play(agent):
        return rollout(agent, sky, steps=settings.steps, episodes=EPISODES)

    def seen(trace):
        return jax.vmap(sky.observe)(jax.tree_util.tree_map(lambda a: a[0, ::10], trace.state))

    return composer(settings, "pd", how), play, lambda trace: float(np.median(-np.asarray(trace.total_reward))), seen


def timed(play, agent):
    """A trace, and the microseconds that a decision took, where that is quick once the program was there."""
    for _ in range(2):
        begun = time.perf_counter()
        trace = play(agent)
        spent = time.perf_counter() - begun
        if spent > LONG:
            break
    return trace, spent / np.asarray(trace.gap).size * 1e6


def unsettled(agent, observations, scales):
    """The share of these decisions at which the circuit does not settle."""
    given = jax.jit(jax.vmap(lambda seen: agent.problem(seen, 0)))(observations)
    return float(np.mean(~circuit_stability(Problem(*map(np.asarray, given)), scales).stable))


def study(name, agent, play, cost, seen):
    """(traces, costs, lines of the table of circuits) by gate, printed as a table."""
    cold = agent.replace(eps=COLD)
    agents = {"equilibrium": agent} | {f"flow, {d:g} tau": agent.replace(gate=Flow(d)) for d in DURATIONS}
    agents |= {
        "circuit, 1 tau": agent.replace(gate=Circuit(1.0)),
        "cold, equilibrium": cold,
        "cold, ladder": cold.replace(gate=Circuit(1.0)),
        "cold, ordered by ten": cold.replace(gate=Circuit(1.0, scales=ORDERED)),
    }
    traces, costs, looks = {}, {}, {}
    for gate, one in agents.items():
        traces[gate], per = timed(play, one)
        costs[gate], weights = cost(traces[gate]), np.asarray(traces[gate].weights)
        jumps = float(np.abs(np.diff(weights, axis=1)).max(axis=-1).mean())
        lost = int(np.sum(failed(np.asarray(traces[gate].outcome))))
        looks[gate] = lost, costs[gate], jumps, per / 1000
        print(
            f"{name:<6} {gate:<22} cost {costs[gate]:8.3f}  certified gap {np.mean(traces[gate].gap):8.1e}  "
            f"weights move {jumps:.3f} a step  {per:6.0f} us a decision  {lost} not integrated",
            flush=True,
        )
    lines = []
    for one, best, gates in (
        (agent, "equilibrium", {"ladder": "circuit, 1 tau", "ordered by ten": "ordered by ten"}),
        (cold, "cold, equilibrium", {"ladder": "cold, ladder", "ordered by ten": "cold, ordered by ten"}),
    ):
        for scales, gate in gates.items():
            share = unsettled(one, seen(traces[best]), ORDERED if scales == "ordered by ten" else None)
            lost, paid, jumps, per = looks.get(gate, [None] * 4)  # only its stability is asked for there
            lines.append([name, float(one.eps), scales, share, lost, paid, costs[best], jumps, per])
            print(f"{name:<6} at eps {float(one.eps):g}, {scales}: does not settle on {share:.0%} of the decisions")
    return traces, costs, lines


def draw(found):
    """Weights in time and cost over duration, a row for each."""
    fig = Figure(figsize=(9.6, 5.2), layout="constrained")
    first = {"flock": "separation", "drone": "stabilising"}
    for row, (axes, (name, (traces, costs, _))) in enumerate(zip(fig.subplots(2, 3), found.items(), strict=True)):
        slow, over, circuits = axes
        for gate, colour in (("equilibrium", "black"), ("flow, 0.2 tau", BLUE), ("flow, 0.02 tau", ORANGE)):
            slow.plot(first_weight(traces[gate]), color=colour, label=gate)
        label = "disorder" if name == "flock" else "cost"
        for gate, colour in (("ladder", GREEN), ("ordered by ten", ORANGE), ("equilibrium", "black")):
            price = costs[f"cold, {gate}"]
            circuits.plot(
                first_weight(traces[f"cold, {gate}"]), color=colour, linewidth=1, label=f"{gate}: {label} {price:.3g}"
            )
        for ax in (slow, circuits):
            ax.set(
                xlabel="decision",
                ylabel=f"weight of {first[name]}",
                ylim=(-0.05, 1.45),
                yticks=(0, 0.5, 1),
            )
            ax.legend(loc="upper right", fontsize=7, frameon=False)
        over.semilogx(DURATIONS, [costs[f"flow, {d:g} tau"] for d in DURATIONS], "o-", color=BLUE, label="flow")
        over.plot(1.0, costs["circuit, 1 tau"], "s", color=GREEN, label="circuit")
        over.axhline(costs["equilibrium"], color="black", linestyle=":", label="equilibrium")
        over.set(xlabel="time for a decision (time constants of the weights)")
        over.set_ylabel("disorder, 1 - polarization" if name == "flock" else "median cost of a flight")
        over.legend(fontsize=7, frameon=False)
        titles = f"{name}, the flow with little time", "what the lag costs", f"circuits at temperature {COLD:g}"
        for ax, letter, title in zip(axes, "abcdef"[3 * row :][:3], titles, strict=True):
            ax.set_title(f"{letter}  {title}", loc="left", fontsize=9, fontweight="bold")
    return fig


def first_weight(trace):
    """Of the first primitive, in the first episode, for the first agent."""
    weights = np.asarray(trace.weights)[0]
    return weights.reshape(len(weights), -1)[:, 0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/lag.png"))
    parser.add_argument("--record", type=Path, help="a file of tables")
    given = parser.parse_args()
    found = {"flock": study("flock", *flock()), "drone": study("drone", *drone())}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    draw(found).savefig(given.out, dpi=150)
    if given.record:
        short = {"flock": "flock, disorder at the end", "drone": "drone, median cost"}
        over = [
            [short[name], *(costs[f"flow, {d:g} tau"] for d in DURATIONS), costs["equilibrium"]]
            for name, (_, costs, _) in found.items()
        ]
        keep(given.record, "lag", "python -m benchmarks.lag", OVER, over)
        keep(given.record, "circuits", "python -m benchmarks.lag", CIRCUITS, [one for *_, lines in found.values()
                                                                            for one in lines])  # fmt: skip
