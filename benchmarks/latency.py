"""How long one decision from Python takes, of the pendulum's agent with 41 actions: median and 99th percentile.

python benchmarks/latency.py --record docs/how-to/which_gate.json

What is measured is the package that Python finds, so another edition beside it gives the figures of before:
git archive COMMIT | tar -x -C build/before && PYTHONPATH=build/before/src python benchmarks/latency.py
"""

import argparse
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import policychord
from policychord.gym import Predictor

jax.config.update("jax_enable_x64", True)
CALLS = {"decide": 100}  # of a way that takes long; 2000 of the others
SEED = 0
# titles of the page's table; the first edition was measured once, on a busy machine
COLUMNS = {"": "s", "p50": ".3g", "p99": ".3g", "first edition: p50": ".3g", "first edition: p99": ".3g"}
BEFORE = {
    "decide": (53, 231), "Predictor.predict": (4.4, 35), "problem and solve": (0.16, 11), "compiled": (0.049, 4.2)
}  # fmt: skip
WORDS = {
    "decide": "`agent.decide`, not compiled", "Predictor.predict": "`Predictor.predict`",
    "problem and solve": "`problem` and `solve`", "compiled": "`agent.compiled()` (first edition: `jax.jit` by hand)",
}  # fmt: skip


def ways(example: dict[str, Any]) -> dict[str, Callable[[int], Any]]:
    """Each asks for decision i: an observation, a key and a step that were not asked about before."""
    agent = example["compose"](example["far_sighted"]())
    rng = np.random.default_rng(SEED)
    angles, speeds = rng.uniform(-np.pi, np.pi, 4096), rng.uniform(-6, 6, 4096)
    states = [example["PendulumState"](*map(jnp.asarray, pair)) for pair in zip(angles, speeds, strict=True)]
    shown = np.stack([np.cos(angles), np.sin(angles), speeds], axis=1).astype(np.float32)
    keys = list(jax.random.split(jax.random.key(SEED), 4096))
    steps = [np.asarray(i) for i in range(4096)]
    memory = agent.start()

    def observe(signals: Any) -> Any:
        return example["PendulumState"](jnp.arctan2(signals[1], signals[0]), signals[2])

    predictor = Predictor(agent, observe)
    given = [agent.problem(states[i]) for i in range(64)]
    arrays = [tuple(np.asarray(part) for part in one) for one in given]

    def pose(i: int) -> Any:
        pi, cost, eps, log_prior = arrays[i % 64]
        return policychord.solve(policychord.problem(pi=pi, action_cost=cost, eps=float(eps), log_prior=log_prior))

    found = {
        "decide": lambda i: agent.decide(keys[i], states[i], steps[i], memory),
        "Predictor.predict": lambda i: predictor.predict(shown[i]),
        "problem and solve": pose,
    }
    if hasattr(agent, "compiled"):
        quick = agent.compiled()
        found["compiled"] = lambda i: quick(keys[i], states[i], steps[i], memory)
    else:
        wrapped = jax.jit(lambda key, state, k, memory: agent.decide(key, state, k, memory))
        found["jax.jit by hand"] = lambda i: wrapped(keys[i], states[i], steps[i], memory)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, help="a file of tables")
    told, rows = parser.parse_args(), []
    root = Path(policychord.__file__).parents[2]
    print(f"milliseconds of one decision, policychord {policychord.__version__}, jax {jax.__version__}")
    for name, ask in ways(runpy.run_path(str(root / "examples" / "swing_up.py"))).items():
        spent = []
        for i in range(20 + CALLS.get(name, 2000)):
            begun = time.perf_counter()
            jax.block_until_ready(ask(i))
            spent.append(1e3 * (time.perf_counter() - begun))
        middle, high = np.quantile(spent[20:], [0.5, 0.99])  # the first ones compile
        print(f"{name:<20} p50 {middle:8.3f}  p99 {high:8.3f}", flush=True)
        rows.append(
            [WORDS.get(name, name), float(f"{middle:.3g}"), float(f"{high:.3g}"), *BEFORE.get(name, (None, None))]
        )
    if told.record:
        from benchmarks.tables import keep  # the first edition, which this script measures too, has none

        keep(told.record, "latency", "python -m benchmarks.latency", COLUMNS, rows)


if __name__ == "__main__":
    main()
