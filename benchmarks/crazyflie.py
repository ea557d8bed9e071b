"""How fast the Crazyflie is: its physics, and an agent with sampled actions and rollouts in 1,024 worlds.

python -m benchmarks.crazyflie --worlds 1 64 1024 --out docs/explanation/crazyflie.json

One thread. A step of physics are 2 ms; a decision holds for ten of them. Memory is what the compiled program of a
decision in all worlds needs, and the most that its process held, compiler included; each size has its own process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import jax.numpy as jnp

from benchmarks import flight
from policychord.runs.compiled import keep_programs

# chosen in `benchmarks/composition.py`
EPS, NATS, FOLLOW = 0.05, 100.0, {"stabilise": 0.15, "track": 0.04, "fast": 0.75, "lean": 0.05}


def timed(run: Callable[[], Any], least: float) -> float:
    """CPU seconds of a run, the mean of as many as fit into `least` seconds, three at the fewest."""
    jax.block_until_ready(run())
    runs, began = 0, time.process_time()
    while runs < 3 or time.process_time() - began < least:
        jax.block_until_ready(run())
        runs += 1
    return (time.process_time() - began) / runs


def held() -> float:
    """The largest memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(worlds: int, least: float, follow: Any) -> dict[str, float]:
    """What is measured with this many worlds."""
    env = flight.WORLD
    states = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), worlds))
    actions = jnp.tile(jnp.array([0.0, 0.05, 0.0, flight.HIGH[3] / 2]), (worlds, 1))

    @jax.jit
    def physics(states: Any) -> Any:
        moves = jax.vmap(env.move)
        return jax.lax.scan(lambda now, _: (moves(now, actions), None), states, length=50)[0]

    steps = worlds * 50 * env.substeps / timed(lambda: physics(states), least)
    # one agent alone is faster without the way to the compiled solver, which pays for batches
    agent = flight.composed(NATS, EPS, follow=follow, route="jax" if worlds == 1 else "auto")
    views, memory = jax.vmap(env.observe)(states), agent.start()
    keys = jax.random.split(jax.random.key(1), worlds)
    memories = jax.tree.map(lambda a: jnp.broadcast_to(a, (worlds, *a.shape)), memory)

    @jax.jit
    def decide(views: Any, memories: Any) -> Any:
        made = jax.vmap(lambda key, view, own: agent.decide(key, view, 0, own))(keys, views, memories)
        return made.action, made.memory

    program = decide.lower(views, memories).compile()
    needs = program.memory_analysis()
    megabytes = (needs.temp_size_in_bytes + needs.argument_size_in_bytes + needs.output_size_in_bytes) / 2**20
    seconds = timed(lambda: program(views, memories), least)
    simulated = agent.actions.size * (1 + len(agent.model.cost_to_go.primitives) * flight.HORIZON)
    return {
        "worlds": worlds, "physics steps/s": steps, "ms a decision": 1000 * seconds / worlds,
        "decisions/s": worlds / seconds, "model steps/s": worlds * simulated / seconds, "MB, program": megabytes,
        "MB, process": held(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, nargs="*", default=[1, 64, 1024])
    parser.add_argument("--each", action="store_true", help="rollouts follow each controller, not their mixture")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds for each number, at least")
    parser.add_argument("--out", type=Path, default=None, help="the record for the page")
    told = parser.parse_args()
    if len(told.worlds) == 1:
        keep_programs()
        jax.config.update("jax_enable_x64", True)
        print(json.dumps(measure(told.worlds[0], told.seconds, "each" if told.each else FOLLOW)))
        return
    rows = []
    for worlds in told.worlds:
        own = ["--worlds", str(worlds), "--seconds", str(told.seconds), *["--each"] * told.each]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.crazyflie", *own], check=True, stdout=subprocess.PIPE, text=True
        )
        found = json.loads(done.stdout)
        rows.append({name: value if value == worlds else float(f"{value:.3g}") for name, value in found.items()})
        if len(rows) == 1:
            print(*(f"{name:>15}" for name in rows[0]))
        print(*(f"{value:>15,g}" for value in rows[-1].values()), flush=True)
    if told.out is not None:
        told.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
