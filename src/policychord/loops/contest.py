"""`contest`: does composing help on this problem? An agent against its controls, in the same episodes."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import ArrayLike, Watch
from ..actions import Sampled
from ..agent import Agent, Commitment, Composer, Planner
from ..agent.gates import Prior
from ..models import Cost, Random, simulated_steps
from .single import Alone, Unpriced, can_act_alone

OURS = "composed"
BLIND = ("sample", "mean", "mode", "dither")  # selections that do not look at the cost


class _Row(NamedTuple):
    """One agent of a contest. `error` and `gain_error` are halves of 95% intervals."""

    agent: str
    mean: float
    error: float
    gain: float | None  # what ours gains on it, in the same episodes; None for ours
    gain_error: float | None
    won: int | None  # episodes in which ours is better
    lost: int | None


class Contest(NamedTuple):
    """The returns of every agent in the same episodes. `print` it for a table."""

    returns: dict[str, Float[np.ndarray, " episode"]]
    ours: str
    simulated: dict[str, int | None] | None = None  # steps of a model for each decision; None where it is not known

    @property
    def rows(self) -> list[_Row]:
        """A row for each agent."""
        own, rows = self.returns[self.ours], []
        for name, values in self.returns.items():
            gain = own - values
            beside = (float(gain.mean()), _half_interval(gain), int(np.sum(gain > 0)), int(np.sum(gain < 0)))
            cells = (None,) * 4 if name == self.ours else beside
            rows.append(_Row(name, float(values.mean()), _half_interval(values), *cells))
        return rows

    def __str__(self) -> str:
        """Mean returns, and what ours gains on each, with 95% intervals; simulated steps for each decision."""
        width = max(len("agent"), *map(len, self.returns))
        lines = [f"{'agent':<{width}} {'return':>18} {'gain of ' + self.ours:>22} {'won':>5} {'lost':>5}"]
        lines[0] = lines[0] if self.simulated is None else f"{lines[0][:width]} {'simulated':>9}{lines[0][width:]}"
        for row in self.rows:
            line = f"{row.agent:<{width}}"
            if self.simulated is not None:
                steps = self.simulated.get(row.agent)
                line += f" {'?' if steps is None else steps:>9}"
            line += f" {_short(row.mean):>9} ± {_short(row.error):>6}"
            if row.gain is not None and row.gain_error is not None:
                line += f" {_short(row.gain):>13} ± {_short(row.gain_error):>6} {row.won:>5} {row.lost:>5}"
            lines.append(line)
        last = f"{len(self.returns[self.ours])} episodes, the same for all; ±: 95% interval"
        last += "" if self.simulated is None else "; simulated: steps of a model for each decision"
        return "\n".join([*lines, last])


def _short(number: float) -> str:
    """In tenths; small numbers in hundredths, or with two digits."""
    size = abs(number)
    return f"{number:.1f}" if size >= 10 else f"{number:.2f}" if size >= 0.1 or size == 0 else f"{number:.2g}"


def _half_interval(values: ArrayLike, level: float = 0.95) -> float:
    """Half the width of Student's confidence interval of a mean; infinite for a single number."""
    from scipy.special import stdtrit  # slow to import, and only this needs it

    values = np.asarray(values)
    if len(values) < 2:
        return np.inf
    return float(stdtrit(len(values) - 1, (1 + level) / 2) * values.std(ddof=1) / len(values) ** 0.5)


def controls(composer: Composer) -> dict[str, Any]:
    """What a composition has to beat, then itself: each primitive alone, a fixed mixture, the cheapest primitive.

    A `Gaussian` or a `Policy` alone acts by its own command, without grid and spread; a primitive that only states
    probabilities is selected from as the composer does. These and the mixture, whose weights are the prior's, do not
    ask the model, so their weights have no certificate. The cheapest one is the primitive with the lowest expected
    cost of one action drawn from it, with all that the model counts after that action.
    """
    plain: dict[str, Any] = {"regulariser": None, "combine": "mixture"}
    blind = composer.selection if composer.selection in BLIND else "sample"
    agents: dict[str, Any] = {}
    for name, primitive in zip(composer.names, composer.primitives, strict=True):
        if can_act_alone(primitive, composer.actions):
            agents[f"{name} alone"] = Alone(name, primitive, composer.actions)
        else:
            single = composer.replace(primitives={name: primitive}, gate="prior", selection=blind, **plain)
            agents[f"{name} alone"] = _unpriced(single)
    agents["fixed mixture"] = _unpriced(composer.replace(gate="prior"))
    agents["cheapest"] = composer.replace(gate="cheapest", **plain)
    return {**agents, OURS: composer}


def _unpriced(composer: Composer) -> Any:
    """The agent without its model, unless it selects by the cost: its weights do not depend on it."""
    if composer.selection not in BLIND:
        return composer
    return Unpriced(composer.replace(model=Cost(lambda x, u, k: 0.0)))


def contest(
    agents: Composer | Mapping[str, Any],
    play: Callable[[Any], ArrayLike],
    ours: str = OURS,
    *,
    rivals: Mapping[str, Any] | None = None,
    progress: Watch | None = None,
) -> Contest:
    """Play all agents and compare one of them with the others, episode by episode.

    `play(agent)` gives the return of every episode, of the same episodes for every agent, such as
    `lambda agent: rollout(agent, env, steps=200, episodes=50).total_reward`. `agents` is a composer, which is compared
    with its `controls`, or a dict of names to agents, one of which is `ours`. `rivals` come on top. An agent is
    anything with `names`, `start()` and `decide(...)`; a primitive, a trained policy with `predict`, and a function of
    (observation) or (observation, k) act `Alone`.

    A line on standard error tells the return of each agent that is finished; `progress` gets these lines instead, with
    how many agents were finished before it, and of how many.
    """
    agents = controls(agents) if isinstance(agents, Composer) else dict(agents)
    if ours not in agents:
        raise ValueError(f"ours = {ours!r} is none of the agents: {', '.join(agents)}.")
    if both := set(agents) & set(rivals or {}):
        raise ValueError(f"rivals has {', '.join(sorted(both))}, which the agents have too: give them other names.")
    mine = agents.pop(ours)
    agents = {name: as_agent(name, agent, mine) for name, agent in {**agents, **(rivals or {})}.items()} | {ours: mine}
    returns: dict[str, np.ndarray] = {}
    for name, agent in agents.items():
        values = np.asarray(play(agent), dtype=float)
        if values.ndim != 1 or not np.all(np.isfinite(values)):
            raise ValueError(
                f"play({name!r}) gives shape {values.shape}, or numbers that are not finite: one return for each "
                "episode is expected."
            )
        line = f"{name}: {_short(float(values.mean()))} ± {_short(_half_interval(values))}"
        (progress or _print_line)(line, len(returns), len(agents))
        returns[name] = values
    if len({len(values) for values in returns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in returns.items())
        raise ValueError(f"the agents played different numbers of episodes ({lengths}): give all the same ones.")
    return Contest(returns, ours, {name: simulated(agent) for name, agent in agents.items()})


def as_agent(name: str, rival: Any, ours: Any) -> Any:
    """A rival as an agent with the actions of ours: controllers act alone, agents are as they are."""
    if isinstance(rival, Agent) or not (callable(rival) or hasattr(rival, "predict") or hasattr(rival, "log_prob")):
        return rival
    actions = getattr(ours, "actions", None)
    if actions is None:
        raise ValueError(f"{name} is a controller, and ours has no actions to act with: pass Alone(name, it, actions).")
    if hasattr(rival, "log_prob") and not can_act_alone(rival, actions):
        raise ValueError(f"{name} is a {type(rival).__name__}, which has no command: pass a composer with it alone.")
    return Alone(name, rival, actions)


def simulated(agent: Any) -> int | None:
    """How many steps of a model an agent simulates for a decision: what it says as `simulated`; None if unknown."""
    if isinstance(agent, Composer):
        points = agent.actions.size
        if isinstance(agent.actions, Sampled):  # each primitive draws as many of each scramble
            scrambles, share, _ = agent.actions.uniforms.shape
            points = scrambles * len(agent.names) * (share // len(agent.names))
        return simulated_steps(agent.model, points)
    if isinstance(agent, Planner | Commitment):
        rollouts, gate = agent.rollouts, agent.composer.gate
        futures = rollouts.predict.samples if isinstance(rollouts.predict, Random) else 1
        weighing = 0 if isinstance(agent, Commitment) or isinstance(gate, Prior) else simulated(agent.composer)
        return None if weighing is None else agent.samples * rollouts.steps * futures + weighing
    steps = getattr(agent, "simulated", None)
    return None if steps is None else int(steps)


def _print_line(words: str, done: int, total: int) -> None:
    print(f"[{done + 1}/{total}] {words}", file=sys.stderr, flush=True)
