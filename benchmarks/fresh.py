"""What a new process pays: importing, compiling into an empty cache, and the first call with a full one."""

import os
import statistics
import subprocess
import sys
import tempfile

from .timing import Record

IMPORT = """
import time
begun = time.process_time()
import policychord
print(time.process_time() - begun)
"""

FIRST_CALLS = """
import time
import jax, numpy as np
from policychord import problem, solve
jax.config.update("jax_enable_x64", True)
def uniform(n):
    return problem(pi=np.full((2, n), 0.5), action_cost=np.zeros(2), eps=1.0)
def loss(cost):
    return solve(problem(pi=np.full((2, 3), 0.5), action_cost=cost, eps=1.0)).log_weights[0]
for call in (lambda: solve(uniform(3)), lambda: solve(uniform(64)), lambda: jax.grad(loss)(np.zeros(2))):
    begun = time.process_time()
    call()
    print(time.process_time() - begun)
"""

CALLS = ("solve", "solve, n > 40", "gradient")


def run(program: str, cache: str) -> list[float]:
    """The numbers that `program` prints, run in a process of its own with `cache` as the user's cache folder."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def records() -> list[Record]:
    """Seconds that users wait for, as microseconds like everything else."""
    with tempfile.TemporaryDirectory() as cache:
        imports = [run(IMPORT, cache)[0] for _ in range(3)]
        empty = run(FIRST_CALLS, cache)
        full = run(FIRST_CALLS, cache)
    lines = [Record("import policychord", 1e6 * statistics.median(imports))]
    for call, compiling, loading in zip(CALLS, empty, full, strict=True):
        lines.append(
            Record(f"first {call}, compiled before", 1e6 * loading, "empty cache", 1e6 * compiling, compiling / loading)
        )
    return lines
