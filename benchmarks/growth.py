"""How time and memory of a solve grow with primitives, actions and batch: measured, and predicted by a formula."""

import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from policychord import Problem, problem, solve

from .families import SIZES, dirichlet
from .timing import Contender, Record, take_turns

ENTRIES = 100_000  # of the primitives in a timed batch, so that small problems are not all overhead
PASSES = 3  # that random primitives take at eps = 0.5, give or take one
CALL = 20_000  # ns from Python to the kernel and back, for a whole batch
L2, L3 = 2**19, 2**24  # bytes of primitives of one problem, from which on they come from slower memory

# What `growth.records` judges: sizes of which none was used to find the numbers of `predict`.
SHAPES = (
    (2, 100, 1), (2, 1500, 30), (3, 5, 100_000), (3, 2, 1_000_000), (3, 400, 1000), (3, 100_000, 1), (6, 300, 40),
    (9, 150, 60), (18, 300, 15), (28, 500, 7), (38, 2500, 1), (45, 700, 3), (100, 1500, 1), (250, 600, 1),
    (500, 300, 1), (1000, 1500, 1), (70, 50_000, 1),
)  # fmt: skip


def predict(n: int, d: int, batch: int = 1, passes: float = PASSES) -> float:
    """Microseconds for each problem of a batch, on a machine that takes 8 for size A.

    A pass over few primitives makes n(n+1)/2 sums over the actions, beyond three primitives not in the last pass; over
    many it makes one mixture and a few products with the curvature. The rest is copying columns, factorising, and the
    call itself.
    """
    cells, bytes_read = n * d, 8 * n * d
    if n <= 3:
        ns = passes * (320 + 4.5 * n**2 + (0.23 + 0.056 * n) * cells) + 0.41 * cells + 2.26 * d
    elif n <= 40:
        slower = 0.015 if bytes_read > L2 else 0.0
        ns = passes * (450 + 0.87 * cells) + (passes - 1) * (1.3 * n**2 + (0.029 + slower) * n * cells)
    else:
        ns = passes * (900 + 19 * n + 10.9 * d + (0.61 + (0.23 if bytes_read > L3 else 0.0)) * cells)
    return (ns + CALL / batch) / 1000


def predict_bytes(n: int, d: int, batch: int) -> int:
    """Peak bytes that `solve(problem(...))` adds to arrays that it is given: a copy of Pi, answers, scratch space."""
    side = n if n <= 40 else 0
    return 8 * batch * d * n + batch * (24 * n + 17) + 8 * (d * (side + 4) + 15 * n + 2 * side**2)


def growth(seed: int) -> list[Record]:
    """Predicted against measured, in the units of this machine: its time for size A sets the scale."""
    rng = np.random.default_rng(seed)
    size_a = problem(**SIZES["A"].draw(rng, 200)._asdict())
    found_a = solve(size_a)
    measured, scales = {}, []
    for n, d, batch in SHAPES:
        problems = problem(**dirichlet(rng, batch, n, d)._asdict())
        found = solve(problems)
        contenders = {
            "size A": Contender(lambda: solve(size_a), 200),
            "this": Contender(lambda problems=problems: solve(problems), batch),
        }
        times = take_turns(contenders, rounds=5)
        scales.append(times["size A"] / predict(3, 900, 200, float(found_a.passes.mean())))
        gap, passes = float(found.certificate.gap.max()), float(found.passes.mean())
        measured[n, d, batch] = times["this"], passes, gap
    lines, scale = [], min(scales)  # next to large arrays, which empty the cache, size A takes longer
    for (n, d, batch), (us, passes, gap) in measured.items():
        expected, name = scale * predict(n, d, batch, passes), f"growth, n = {n}, d = {d:,}, batch of {batch:,}"
        lines.append(Record(name, us, "predicted", expected, expected / us, gap, f"{passes:.1f} passes"))
    return lines


def memory(seed: int) -> list[Record]:
    """Peak bytes beyond what was given, predicted against measured."""
    lines = []
    for n, d, batch in ((3, 900, 2000), (3, 2, 1_000_000), (16, 256, 500), (128, 4096, 4), (1000, 1000, 1)):
        given = dirichlet(np.random.default_rng(seed), batch, n, d)._asdict()
        solve(problem(**{name: value[:1] for name, value in given.items() if value is not None}))  # compiled before
        tracemalloc.start()
        solve(problem(**given))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        expected, name = predict_bytes(n, d, batch), f"memory, n = {n}, d = {d:,}, batch of {batch:,}"
        lines.append(Record(name, None, "predicted", None, expected / peak, None, f"{peak / 2**20:,.1f} MiB"))
    return lines


def threads(seed: int) -> list[Record]:
    """One batch by one thread and its halves by two: the kernels let go of Python. In time on the wall."""
    whole = problem(**SIZES["A"].draw(np.random.default_rng(seed), 2000)._asdict())
    halves = [Problem(*(field[part] for field in whole)) for part in (slice(0, 1000), slice(1000, 2000))]
    spent: dict[str, list[float]] = {"one": [], "two": []}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(15):
            for name, run in (("one", lambda: solve(whole)), ("two", lambda: list(pool.map(solve, halves)))):
                begun = time.perf_counter()
                run()
                spent[name].append(time.perf_counter() - begun)
    one, two = (1e6 * float(np.min(times)) / 2000 for times in spent.values())
    return [Record("two threads, size A, batch of 2000", two, "one thread", one, one / two, None, "on the wall")]


def records(seed: int) -> list[Record]:
    """All of them."""
    return [*growth(seed), *memory(seed), *threads(seed)]
