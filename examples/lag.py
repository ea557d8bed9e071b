"""What a slow gate does: the softmax flow with little time between decisions, and a circuit that never settles.

A flock and a drone decide with weights that went on from the last decision for `duration`. After 20 tau they are the
optimum; with less time they lag behind. The circuit has the paper's order of time scales, each ten times the one
before, which may be unstable, or the ladder `time_scales(eps)`, which is stable at any.
"""

import time

import jax
import numpy as np
from style import BLUE, GREEN, ORANGE, SEEDS, figure, save

from policychord import Population, TimeScales, rollout
from policychord.agent import Circuit, Flow
from policychord.studies.flock.agents import boid, world
from policychord.studies.flock.measures import polarization
from policychord.studies.flock.settings import FlockSettings
from policychord.studies.quadrotor.agents import composer
from policychord.studies.quadrotor.agents import world as air
from policychord.studies.quadrotor.settings import Composition, QuadrotorSettings

jax.config.update("jax_enable_x64", True)

DURATIONS = (0.02, 0.05, 0.2, 0.5, 1.0, 3.0, 20.0)  # in units of tau
WILD = TimeScales(1e-3, 1e-2, 1e-1, 1.0)  # the paper's order: faster layers are faster by ten
QUICK = SEEDS is not None
EPISODES, BOIDS, STEPS = SEEDS or 8, 8 if QUICK else 30, 20 if QUICK else 150


def flock():
    """(an agent of the paper's flock, how to play it, what its cost is)."""
    settings = FlockSettings(boids=BOIDS, grid=10)
    sky = world(settings)

    def play(agent):
        return rollout(Population(agent, BOIDS), sky, steps=STEPS, episodes=1)

    def disorder(trace):
        return 1.0 - float(np.mean(polarization(np.asarray(trace.state.velocity))[:, -STEPS // 3 :]))

    return boid(settings, sky, informed=False).replace(selection="mean"), play, disorder


def drone():
    """The same of the drone with its PD pair and the Riccati cost-to-go."""
    settings = QuadrotorSettings(disturbance="centre")
    how = Composition(horizon="cost-to-go", selection="mean", points=12, margin=settings.wide_margin, spread=0.03)
    sky = air(settings, "pd")

    def play(agent):
        return rollout(agent, sky, steps=20 if QUICK else settings.steps, episodes=EPISODES)

    return composer(settings, "pd", how), play, lambda trace: float(np.median(-np.asarray(trace.total_reward)))


def timed(play, agent):
    """A trace, and the microseconds that a decision took once the program was there."""
    play(agent)
    begun = time.perf_counter()
    trace = play(agent)
    return trace, (time.perf_counter() - begun) / np.asarray(trace.gap).size * 1e6


def study(name, agent, play, cost):
    """The traces and costs by gate, printed as a table."""
    gates = {"equilibrium": "equilibrium"} | {f"flow, {d:g} tau": Flow(d) for d in DURATIONS}
    gates |= {"circuit, 1 tau": Circuit(1.0), "unstable circuit, 1 tau": Circuit(1.0, scales=WILD)}
    traces, costs = {}, {}
    for gate, part in gates.items():
        traces[gate], per = timed(play, agent.replace(gate=part))
        costs[gate], weights = cost(traces[gate]), np.asarray(traces[gate].weights)
        jumps = np.abs(np.diff(weights, axis=1)).max(axis=-1).mean()
        print(f"{name:<6} {gate:<24} cost {costs[gate]:8.3f}  certified gap {np.mean(traces[gate].gap):8.1e}  "
              f"weights move {jumps:.3f} a step  {per:6.0f} us a decision")  # fmt: skip
    return traces, costs


def draw(found):
    """Weights in time and cost over duration, a row for each."""
    fig = figure(7.2, 4.4)
    for row, (axes, (name, (traces, costs))) in enumerate(zip(fig.subplots(2, 3), found.items(), strict=True)):
        paths, wild, over = axes
        for gate, colour in (("equilibrium", "black"), ("flow, 0.2 tau", BLUE), ("flow, 0.02 tau", ORANGE)):
            paths.plot(first_weight(traces[gate]), color=colour, label=gate)
        for gate, colour in (("circuit, 1 tau", GREEN), ("unstable circuit, 1 tau", ORANGE)):
            wild.plot(first_weight(traces[gate]), color=colour, label=gate)
        for ax in (paths, wild):
            ax.set(xlabel="decision", ylabel=f"weight, {name}", ylim=(-0.05, 1.05))
            ax.legend(loc="upper right")
        over.semilogx(DURATIONS, [costs[f"flow, {d:g} tau"] for d in DURATIONS], "o-", color=BLUE, label="flow")
        over.axhline(costs["equilibrium"], color="black", linestyle=":", label="equilibrium")
        over.axhline(costs["unstable circuit, 1 tau"], color=ORANGE, linestyle="--", label="unstable circuit")
        over.set(xlabel="duration / tau", ylabel="disorder" if name == "flock" else "median cost")
        over.legend()
        if row == 0:
            paths.set_title("The flow, with little time")
            wild.set_title("The circuit, stable and not")
            over.set_title("What it costs")
    return fig


def first_weight(trace):
    """Of the first primitive, in the first episode, for the first agent."""
    weights = np.asarray(trace.weights)[0]
    return weights.reshape(len(weights), -1)[:, 0]


if __name__ == "__main__":
    found = {"flock": study("flock", *flock()), "drone": study("drone", *drone())}
    save(draw(found), "lag")
