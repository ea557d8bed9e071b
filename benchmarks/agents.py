"""Speed of agents: building columns, deciding, and whole episodes: CPU time, one thread, contenders in turn.

python -m benchmarks.agents --out build/bench-agents.json
"""

import runpy
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from policychord import Composer, rollout, solve
from policychord.actions import Grid
from policychord.agent.decision import _draw
from policychord.gym import play
from policychord.models import Cost, action_cost
from policychord.primitives import Gaussian, columns

from .composition import USUAL
from .plan import Arena
from .report import Parts, Target, report
from .timing import Contender, Record, take_turns

jax.config.update("jax_enable_x64", True)

SD = float(np.sqrt(0.1))
SETS = {"box of 900": Grid([-3, -3], [3, 3], 30), "disc of 648": Grid([-3, -3], [3, 3], 30, radius=3.0)}
BATCHES = (40, 1000)
STEPS = 200
EPISODES = 1000  # in one call of rollout
ALONE = 3  # of them, in a call each: enough to know what the others would take
BESIDE = 100  # in Gymnasium, side by side

TARGETS = [
    *(Target(f"columns, {name}, batch of {batch}", "full exp", 4.0) for name in SETS for batch in BATCHES),
    Target("decide, box of 900, batch of 1000", "its solve", 2.2, most=True),  # 20 us where the kernel takes 9
]


def three_gaussians(actions: Grid) -> Composer:
    """A flock member's size: three commands (the rows of the state) with a spread, and a quadratic cost."""
    primitives = [Gaussian(lambda state, k, a=a: state[a], sd=SD) for a in range(3)]
    cost = Cost(lambda state, action, k: 50.0 * jnp.sum((state[0] + 0.05 * action) ** 2))
    return Composer(primitives, cost, actions, eps=0.5)


def full_exp(points, means):
    """The columns as one writes them: normalised log-probabilities of all points for each mean, then exp."""

    def log_prob(mean):
        z = -0.5 * jnp.sum(((points - mean) / SD) ** 2, axis=-1)
        return z - logsumexp(z)

    return jnp.stack([jnp.exp(log_prob(mean)) for mean in means], axis=-1)


def full_exp_by_hand(points, means):
    """The strongest rival without the axes' help: one exp for each point, arranged so that the loops vectorise."""
    z = sum((points[:, axis] - means[:, axis, None]) ** 2 for axis in range(2)) * (-0.5 / SD**2)
    pi = jnp.exp(z - jnp.max(z, axis=-1, keepdims=True))
    return (pi / jnp.sum(pi, axis=-1, keepdims=True)).T


REFERENCES = {"full exp": full_exp, "full exp by hand": full_exp_by_hand}


def building(seed: int) -> list[Record]:
    """Columns of three Gaussians as products over the axes, against the full exponential."""
    lines = []
    for name, actions in SETS.items():
        agent = three_gaussians(actions)
        separable = jax.jit(jax.vmap(lambda state, a=agent: columns(a.primitives, a.actions, state, 0, a.by_axes)))
        references = {
            label: jax.jit(jax.vmap(lambda state, points=actions.points, build=build: build(points, state)))
            for label, build in REFERENCES.items()
        }
        for batch in BATCHES:
            # means inside the disc, where all compute the same
            states = jnp.asarray(np.random.default_rng(seed).uniform(-2.0, 2.0, (batch, 3, 2)))
            calls = {"ours": separable} | references
            times = take_turns({label: waited(call, states) for label, call in calls.items()}, rounds=15)
            for label, call in references.items():
                apart = float(jnp.max(jnp.abs(separable(states) - call(states))))
                ratio = times[label] / times["ours"]
                line = f"columns, {name}, batch of {batch}", times["ours"], label, times[label], ratio
                lines.append(Record(*line, note=f"apart by {apart:.0e}"))
    return lines


def waited(call, states, *more) -> Contender:
    """A compiled function on a batch, waited for, because JAX returns before it has computed."""
    return Contender(lambda: jax.block_until_ready(call(states, *more)), len(states))


def deciding(seed: int) -> list[Record]:
    """One decision of a batch and its parts, each compiled alone."""
    agent, batch = three_gaussians(SETS["box of 900"]), 1000
    states = jnp.asarray(np.random.default_rng(seed).uniform(-2.0, 2.0, (batch, 3, 2)))
    keys = jax.random.split(jax.random.key(seed), batch)
    problems = jax.jit(jax.vmap(agent.problem))(states)
    optimum = jax.jit(solve)
    found = optimum(problems)

    def select(key, pi, weights):
        return agent.actions.at(_draw(key, pi @ weights))

    decide = jax.jit(jax.vmap(lambda state, key: agent.decide(key, state)))
    build = jax.jit(jax.vmap(lambda state: columns(agent.primitives, agent.actions, state, 0, agent.by_axes)))
    price = jax.jit(jax.vmap(lambda state: action_cost(agent.model, agent.actions, state, 0)))
    contenders = {
        "decide": waited(decide, states, keys),
        "build": waited(build, states),
        "cost": waited(price, states),
        "solve": Contender(lambda: jax.block_until_ready(optimum(problems)), batch),
        "select": waited(jax.jit(jax.vmap(select)), keys, problems.pi, found.weights),
    }
    times = take_turns(contenders)
    whole = times.pop("decide")
    gap = float(jnp.max(decide(states, keys).certificate.gap))
    of_it = times["solve"], whole / times["solve"]
    lines = [Record("decide, box of 900, batch of 1000", whole, "its solve", *of_it, certificate=gap)]
    for name, us in times.items():
        lines.append(Record(f"  {name}", us, "decide", whole, note=f"{us / whole:.0%} of it"))
    return lines


def episodes(seed: int) -> list[Record]:
    """A thousand episodes of the pendulum in one call, against one call for each, and against Gymnasium's loop."""
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "swing_up.py"))
    agent, env = example["compose"](example["far_sighted"]()), example["PENDULUM"]

    def signals(observation):
        cos, sin, velocity = observation
        return example["PendulumState"](jnp.arctan2(sin, cos), velocity)

    def together():
        return jax.block_until_ready(rollout(agent, env, steps=STEPS, episodes=EPISODES, seed=seed).reward)

    def one_by_one():
        single = [rollout(agent, env, steps=STEPS, episodes=[i], seed=seed).reward for i in range(ALONE)]
        return jnp.concatenate(jax.block_until_ready(single))

    def gymnasium():
        return play(agent, "Pendulum-v1", seeds=BESIDE, observe=signals)

    same = bool(jnp.allclose(together()[:ALONE], one_by_one(), rtol=0, atol=1e-9))
    times = take_turns(
        {
            "ours": Contender(together, EPISODES * STEPS),
            "one call each": Contender(one_by_one, ALONE * STEPS),
            "Gymnasium loop": Contender(gymnasium, BESIDE * STEPS),
        },
        rounds=5,
    )
    ours = times.pop("ours")
    notes = {
        "one call each": "the same rewards" if same else "OTHER REWARDS",
        "Gymnasium loop": f"play, {BESIDE} side by side",
    }
    label = f"rollout, pendulum, {EPISODES} episodes"
    return [Record(label, ours, name, us, us / ours, note=notes[name]) for name, us in times.items()]


def planning(seed: int) -> list[Record]:
    """A plan of 64 rollouts of 25 steps on the 3-D drone, one decision after another as from a control loop."""
    arena, budget = Arena("3-D drone", Path("build/plan")), {"steps": 25, "samples": 64}
    agents = {
        "plan": arena.plan(USUAL, **budget),
        "MPPI": arena.mppi(USUAL, **budget),
        "composed, 32 points of 26 steps": arena.composer(USUAL),
    }
    calls, notes, view = {}, {}, arena.view()
    for who, agent in agents.items():
        decide = eqx.filter_jit(lambda x, k, memory, agent=agent: agent.decide(jax.random.key(seed), x, k, memory))
        memory, wall = jax.block_until_ready(decide(view, jnp.asarray(0), agent.start())).memory, []
        for k in range(200):
            began = time.perf_counter()
            memory = jax.block_until_ready(decide(view, jnp.asarray(k), memory)).memory
            wall.append(1e3 * (time.perf_counter() - began))
        notes[who] = "p50 {:.2f} ms, p95 {:.2f} ms".format(*np.quantile(wall, [0.5, 0.95]))
        calls[who] = Contender(
            lambda decide=decide, kept=memory: jax.block_until_ready(decide(view, jnp.asarray(1), kept))
        )
    times = take_turns(calls)
    label = "a plan on the 3-D drone, 64 x 25 steps"
    print("; ".join(f"{who}: {note}" for who, note in notes.items()))
    return [
        Record(label, times["plan"], who, us, us / times["plan"], note=f"ours {notes['plan']}; {notes[who]}")
        for who, us in times.items() if who != "plan"
    ]  # fmt: skip


def parts(seed: int) -> Parts:
    """Everything that is measured, by name."""
    return {
        "building columns": lambda: building(seed),
        "a decision and its parts": lambda: deciding(seed),
        "episodes": lambda: episodes(seed),
        "plans": lambda: planning(seed),
    }


if __name__ == "__main__":
    title = "CPU microseconds per state or decision, one thread, medians of interleaved rounds"
    report(__doc__, parts, title, TARGETS, "build/bench-agents.json")
