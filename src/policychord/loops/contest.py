"""`contest`: does composing help on this problem? An agent beside what it has to beat, in the same episodes."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import ArrayLike
from ..agent import Composer

OURS = "composed"


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
        """Mean returns, and what ours gains on each, with 95% intervals."""
        width = max(len("agent"), *map(len, self.returns))
        lines = [f"{'agent':<{width}} {'return':>18} {'gain of ' + self.ours:>22} {'won':>5} {'lost':>5}"]
        for row in self.rows:
            line = f"{row.agent:<{width}} {_short(row.mean):>9} ± {_short(row.error):>6}"
            if row.gain is not None and row.gain_error is not None:
                line += f" {_short(row.gain):>13} ± {_short(row.gain_error):>6} {row.won:>5} {row.lost:>5}"
            lines.append(line)
        return "\n".join([*lines, f"{len(self.returns[self.ours])} episodes, the same for all; ±: 95% interval"])


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


def controls(composer: Composer) -> dict[str, Composer]:
    """What a composition has to beat, then itself: each primitive alone, a fixed mixture, the cheapest primitive."""
    plain: dict[str, Any] = {"regulariser": None, "combine": "mixture"}
    agents = {
        f"{name} alone": composer.replace(primitives={name: primitive}, gate="prior", **plain)
        for name, primitive in zip(composer.names, composer.primitives, strict=True)
    }
    agents["fixed mixture"] = composer.replace(gate="prior")
    agents["cheapest"] = composer.replace(gate="cheapest", **plain)
    return {**agents, OURS: composer}


def contest(agents: Composer | Mapping[str, Any], play: Callable[[Any], ArrayLike], ours: str = OURS) -> Contest:
    """Play all agents and compare one of them with the others, episode by episode.

    `play(agent)` gives the return of every episode, of the same episodes for every agent, such as
    `lambda agent: rollout(agent, env, steps=200, episodes=50).total_reward`. `agents` is a composer, which is compared
    with its `controls`, or a dict of names to agents, one of which is `ours`.
    """
    agents = controls(agents) if isinstance(agents, Composer) else dict(agents)
    if ours not in agents:
        raise ValueError(f"ours = {ours!r} is none of the agents: {', '.join(agents)}.")
    returns = {}
    for name, agent in agents.items():
        values = np.asarray(play(agent), dtype=float)
        if values.ndim != 1 or not np.all(np.isfinite(values)):
            raise ValueError(
                f"play({name!r}) gives shape {values.shape}, or numbers that are not finite: one return for each "
                "episode is expected."
            )
        returns[name] = values
    if len({len(values) for values in returns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in returns.items())
        raise ValueError(f"the agents played different numbers of episodes ({lengths}): give all the same ones.")
    return Contest(returns, ours)
