"""The comparison that the control examples print: every agent in the same episodes, its controls beside it.

`contestants` makes the usual ones of a composer: each primitive alone, the fixed mixture, the cheapest primitive, the
composition with one step of cost and with a horizon, and MPPI (random shooting for labels) with the same number of
simulated steps for a decision. `compare` plays them all, `show` prints the table, losses too, `draw` shows the returns.
"""

import json
import sys
from datetime import date
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, RECORD, SEEDS, figure

import policychord as pc

OURS = "composed, rollouts"
# titles of the table that a page shows, and how its numbers are written
COLUMNS = {"agent": "s", "return": ".1f", "±": ".1f", "ours gains": ".1f", "± ": ".1f", "won": "d", "lost": "d"}


def contestants(composer, *, one_step, predict, stage, steps, follow=None, hand=None, **planner):
    """The composer with a horizon of its primitives' rollouts, and everything that it should be compared with.

    `follow`: primitives that do the same as the composer's and are faster to ask, thousands of times for a decision.
    `planner`: what the planner is told besides, such as its noise.
    """
    parts = dict(zip(composer.names, composer.primitives, strict=True))
    later = pc.Rollouts(follow or parts, composer.actions, predict, stage, steps=steps)
    far = composer.replace(model=pc.Cost(stage, predict=predict, cost_to_go=later))
    agents = {f"{name} alone": composer.replace(primitives={name: part}) for name, part in parts.items()}
    agents["fixed mixture"] = composer.replace(gate="prior")
    if hand is not None:
        agents["hand switch"] = composer.replace(primitives={"hand": hand})
    agents["cheapest, rollouts"] = far.replace(gate="cheapest")
    agents["composed, one step"] = composer.replace(model=one_step)
    agents[OURS] = far
    labels = composer.actions.labels
    plan, name = (pc.rivals.random_shooting, "random shooting") if labels else (pc.rivals.mppi, "MPPI")
    budget = {"steps": steps + 1, "samples": max(composer.actions.size * len(parts), 4)}
    agents[f"{name}, same budget"] = plan(composer.actions, predict, stage, **budget, **planner)
    return agents


def certain(label, sure=0.9):
    """A primitive for two labels: it takes `label(state, k)` with this probability."""
    rows = jnp.log(jnp.array([[sure, 1 - sure], [1 - sure, sure]]))
    return pc.Categorical(lambda state, k: rows[label(state, k)])


def compare(agents, env, seeds, observe=None, steps=None):
    """(traces, returns) of each agent in the same episodes; `--seeds` on the command line takes fewer of them.

    With `--record FILE` the returns are kept there, and agents that the file has are not played again.
    """
    chosen = list(seeds[:SEEDS] if SEEDS else seeds)
    kept = _kept(chosen)
    traces, returns = {}, {}
    for name, agent in agents.items():
        if name not in kept:
            traces[name] = pc.gym.play(agent, env, seeds=chosen, observe=observe, steps=steps)
            kept[name] = np.asarray(traces[name].total_reward).tolist()
            _keep({"seeds": chosen, "returns": kept})
        returns[name] = np.asarray(kept[name])
    return traces, returns


def _kept(seeds):
    """The returns of agents in these episodes that the file has."""
    found = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD and RECORD.is_file() else {}
    return found["returns"] if found.get("seeds") == seeds else {}


def _keep(parts):
    """Add parts to the file, if there is to be one."""
    if RECORD:
        found = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
        RECORD.write_text(json.dumps(found | parts) + "\n", encoding="utf-8")


def show(title, returns, ours=OURS):
    """A line for each agent: its mean return, and what ours gains on it in the same episodes, with 95% intervals."""
    found = pc.loops.Contest(returns, ours)
    print(f"{title}\n{found}")
    versions = f"policychord {pc.__version__}, gymnasium {gymnasium.__version__}"
    command = f"python examples/{Path(sys.argv[0]).name}"
    _keep({"table": {"command": command, "date": date.today().isoformat(), "versions": versions,
                     "columns": COLUMNS, "rows": [list(row) for row in found.rows]}})  # fmt: skip


def draw(title, returns, ours=OURS):
    """The return of every episode, a row for each agent."""
    fig = figure(6.4, 0.36 * len(returns) + 1.1)
    ax = fig.subplots()
    rng = np.random.default_rng(0)
    for place, (name, values) in enumerate(returns.items()):
        colour = GREEN if name == ours else ORANGE if name.endswith("budget") else GREY if "alone" in name else BLUE
        ax.plot(values, place + rng.uniform(-0.2, 0.2, len(values)), ".", color=colour, markersize=4, alpha=0.6)
        ax.plot(values.mean(), place, "|", color="black", markersize=16, markeredgewidth=1.6)
    ax.set(xlabel="return of an episode", yticks=range(len(returns)), yticklabels=list(returns))
    ax.invert_yaxis()
    ax.set_title(f"{title}: {len(returns[ours])} episodes each; bar: mean")
    return fig
