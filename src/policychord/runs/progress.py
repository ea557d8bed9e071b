"""One bar for a command: its parts move it in turn, each by its share of the time."""

from itertools import accumulate

from .._types import Watch

WHOLE = 100  # per cent


def parts(watch: Watch, *shares: float) -> list[Watch]:
    """A function to call for each part of the work; a part that is not done has no share."""
    ends = [WHOLE * end / sum(shares) for end in accumulate(shares)]
    return [_part(watch, begin, end) for begin, end in zip([0.0, *ends], ends, strict=False)]


def _part(watch: Watch, begin: float, end: float) -> Watch:
    def within(words: str, done: int, total: int) -> None:
        watch(words, round(begin + (end - begin) * min(done / max(total, 1), 1)), WHOLE)

    return within
