"""How the cost of a solve grows with the primitives, the actions and the batch."""

import numpy as np

from policychord import problem, solve

from .families import dirichlet
from .timing import Contender, Record, take_turns

ENTRIES = 100_000  # of the primitives in a timed batch, so that small problems are not all overhead


def fitted_exponent(sizes: list[int], microseconds: list[float]) -> float:
    """b of time = a size^b, by least squares over the upper two thirds of the sizes, where overheads have faded."""
    third = len(sizes) // 3
    return float(np.polyfit(np.log(sizes[third:]), np.log(microseconds[third:]), 1)[0])


def shapes() -> dict[str, list[tuple[int, int, int, int]]]:
    """(size, batch, n, d) along each axis; the method changes at 40 primitives, so they make two axes."""
    return {
        "n <= 40, d = 256": [(n, max(1, ENTRIES // (n * 256)), n, 256) for n in (2, 4, 8, 16, 32)],
        "n > 40, d = 256": [(n, max(1, ENTRIES // (n * 256)), n, 256) for n in (48, 64, 96, 128)],
        "d, n = 3": [(d, max(1, ENTRIES // (3 * d)), 3, d) for d in (2, 16, 128, 512, 1024, 2048, 4096)],
        "batch, n = 3, d = 100": [(size, size, 3, 100) for size in (1, 10, 100, 300, 1000, 3000, 10_000)],
    }


def records(seed: int) -> list[Record]:
    """A line per size, and the fitted exponent of each axis; along the batch it is that of the whole call."""
    rng = np.random.default_rng(seed)
    lines = []
    for axis, cases in shapes().items():
        contenders, certificates, passes = {}, {}, {}
        for size, batch, n, d in cases:
            problems = problem(**dirichlet(rng, batch, n, d)._asdict())
            found = solve(problems)
            certificates[size], passes[size] = float(found.certificate.gap.max()), found.passes.mean()
            contenders[size] = Contender(lambda problems=problems: solve(problems), batch)
        times = take_turns(contenders, rounds=5)
        for size in times:
            note = f"{passes[size]:.1f} passes"
            lines.append(Record(f"growth in {axis}: {size}", times[size], certificate=certificates[size], note=note))
        sizes = list(times)
        whole = [times[size] * (size if axis.startswith("batch") else 1) for size in sizes]
        lines.append(Record(f"growth in {axis}", None, "fitted exponent", None, fitted_exponent(sizes, whole)))
    return lines
