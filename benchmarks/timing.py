"""CPU time of contenders that take turns, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

LEAST_SECONDS = 0.03  # shorter measurements are repeated until they add up to this


class Contender(NamedTuple):
    """Something to be timed: one call solves `solves` problems."""

    call: Callable[[], object]
    solves: int = 1


# Against these the ratio is ours_us / reference_us, because a part is compared with what it is made around.
PARTS = ("value alone", "one of a batch", "its solve")


class Record(NamedTuple):
    """One line of the table.

    `ratio` is reference_us / ours_us, with exceptions for which less is better: the references of `PARTS`, and next to
    "fitted exponent" it is the exponent.
    """

    name: str
    ours_us: float | None
    reference: str | None = None
    reference_us: float | None = None
    ratio: float | None = None
    certificate: float | None = None
    note: str = ""

    @property
    def less_is_better(self) -> bool:
        """Whether a smaller ratio is good news."""
        return self.reference in (*PARTS, "fitted exponent")


def seconds(call: Callable[[], object]) -> float:
    """CPU seconds of one call, averaged over as many as are needed to be seen by the clock."""
    calls = 0
    begun = time.process_time()
    while (spent := time.process_time() - begun) < LEAST_SECONDS or calls == 0:
        call()
        calls += 1
    return spent / calls


def take_turns(contenders: dict[str, Contender], rounds: int = 9) -> dict[str, float]:
    """Median CPU microseconds per solve of each contender over the rounds, after one round that does not count."""
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender.call()
    for _ in range(rounds):
        for name, contender in contenders.items():
            spent[name].append(1e6 * seconds(contender.call) / contender.solves)
    return {name: statistics.median(times) for name, times in spent.items()}
