"""How long the rest of a sweep will take, from what was done once every worker had compiled."""

import time
from collections.abc import Callable


class Pace:
    """Counts episodes as they are done. A worker's first batch compiles, so the first of all workers tell nothing."""

    def __init__(self, total: int, workers: int, clock: Callable[[], float] = time.monotonic):
        self.total, self.done, self.batches = total, 0, 0
        self._workers, self._clock = workers, clock
        self._from = (clock(), 0)  # when, and after how many episodes, everybody had compiled
        self._last = self._from

    def add(self, episodes: int) -> None:
        """A batch is done."""
        self.done, self.batches = self.done + episodes, self.batches + 1
        self._last = (self._clock(), self.done)
        if self.batches <= self._workers:
            self._from = self._last

    def left(self) -> float | None:
        """Seconds, counted down between batches; None as long as nobody can tell."""
        seconds, episodes = self._last[0] - self._from[0], self._last[1] - self._from[1]
        if episodes == 0 or seconds <= 0:
            return None
        return max(0.0, (self.total - self.done) * seconds / episodes - (self._clock() - self._last[0]))
