"""From positions to motion: gaps, Savitzky-Golay smoothing, velocities and accelerations; the card of the data; and
leadership.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.signal import savgol_coeffs, savgol_filter
from scipy.spatial import cKDTree

from ..worlds.flock.measures import milling, polarization
from .quality import Suspicions, suspect
from .reading import TrackError, Tracks
from .settings import Smoothing

EXACTLY = 1e-6  # of the usual step: a step that differs less from the one before goes on as that did
INTERPOLATED = 0.05  # share of such steps from which positions are doubted
MOST_SERIES = 2000  # moments at which order is measured for the card
LONGEST_DELAY = 2.0  # s that one may follow another
TOGETHER = 5.0  # s that two must be followed together, at least
MOST_RANKED = 60  # individuals of a trial, those followed for longest
ALIKE = 0.5  # the least correlation at the best delay for which a delay means anything


class Moved(NamedTuple):
    """The motion of one trial; NaN where an individual is not there."""

    name: str
    ids: tuple[str, ...]
    position: Float[np.ndarray, "frame id 2"]
    velocity: Float[np.ndarray, "frame id 2"]
    acceleration: Float[np.ndarray, "frame id 2"]


class Motion(NamedTuple):
    """All trials, smoothed, with what was done to them."""

    trials: tuple[Moved, ...]
    rate: float
    unit: str
    window: int  # frames
    smoothing: Smoothing
    gaps: int  # stretches without positions inside tracks
    filled: int  # positions that were put into short gaps
    dropped: int  # positions in stretches too short to be smoothed
    suspicions: Suspicions = Suspicions()


def move(tracks: Tracks, smoothing: Smoothing | None = None) -> Motion:
    """Positions, velocities and accelerations by a polynomial that moves along each unbroken stretch of a track.

    A causal polynomial ends at its moment, so the first frames of a stretch have no velocity yet.
    """
    how = Smoothing() if smoothing is None else smoothing
    window = _window_of(how, tracks.rate)
    longest = int(np.floor(how.longest_gap * tracks.rate + 1e-9))
    counts = np.zeros(3, int)  # gaps, filled, dropped
    moved = []
    jumps, suspicions = suspect([trial.position for trial in tracks.trials], how.jump)
    for trial, cut in zip(tracks.trials, jumps, strict=True):
        motion = np.full((3, *trial.position.shape), np.nan)
        for i in range(len(trial.ids)):
            track, gaps, filled = _bridged(trial.position[:, i], longest)
            counts[:2] += gaps, filled
            track[cut[:, i]] = np.nan
            for begin, end in _stretches(np.isfinite(track[:, 0])):
                if end - begin < window:
                    counts[2] += end - begin
                else:
                    motion[:, begin:end, i] = _smoothed(track[begin:end], window, how, tracks.rate)
        moved.append(Moved(trial.name, trial.ids, *motion))
    if not any(np.isfinite(trial.velocity).any() for trial in moved):
        raise TrackError(f"{tracks.source}: no track has {window} frames without a gap: smooth over less "
                         "(--smooth SECONDS) or fill longer gaps.")  # fmt: skip
    gaps, filled, dropped = counts.tolist()
    return Motion(tuple(moved), tracks.rate, tracks.unit, window, how, gaps, filled, dropped, suspicions)


def _window_of(how: Smoothing, rate: float) -> int:
    """Frames under the polynomial: odd, and more than its order."""
    least = how.order + 1 if how.causal else how.order + 1 + how.order % 2
    frames = max(3, round(how.window * rate), least)
    return int(frames + 1 - frames % 2)


def _stretches(there: np.ndarray) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of frames in which an individual is there."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], there.astype(int), [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _bridged(track: np.ndarray, longest: int) -> tuple[np.ndarray, int, int]:
    """A track with its short gaps filled, its number of gaps, and of positions filled in."""
    runs = list(_stretches(np.isfinite(track[:, 0])))
    track, filled = track.copy(), 0
    for (_, end), (begin, _) in itertools.pairwise(runs):
        if begin - end <= longest:
            share = (np.arange(end, begin) - (end - 1)) / (begin - end + 1)
            track[end:begin] = track[end - 1] + share[:, None] * (track[begin] - track[end - 1])
            filled += begin - end
    return track, max(len(runs) - 1, 0), filled


def _smoothed(track: np.ndarray, window: int, how: Smoothing, rate: float) -> list[np.ndarray]:
    """Position and its first two derivatives along one stretch."""
    if not how.causal:
        return [savgol_filter(track, window, how.order, n, 1 / rate, axis=0, mode="interp") for n in range(3)]
    views = np.lib.stride_tricks.sliding_window_view(track, window, axis=0)
    derivatives = np.full((3, *track.shape), np.nan)
    for n in range(3):
        derivatives[n, window - 1 :] = views @ savgol_coeffs(window, how.order, n, 1 / rate, pos=window - 1, use="dot")
    return list(derivatives)


def nearest_neighbours(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of two or more individuals: the distance to everybody's nearest neighbour, and who that is."""
    distance, index = cKDTree(places).query(places, k=2)
    return distance[:, 1], index[:, 1]


# ------------------------------------------------------------------------------------------------- card


class Card(NamedTuple):
    """What a file of tracks holds, in numbers."""

    source: str
    unit: str
    rate: float
    trials: int
    individuals: tuple[int, int]  # fewest and most in a trial
    present: tuple[float, int]  # at once: mean and most
    frames: int
    duration: float  # s, all trials
    positions: int
    missing: float  # share of the places inside tracks that have no position
    gaps: int
    filled: int
    dropped: int
    window: int
    smoothing: Smoothing
    speed: tuple[float, float, float]  # 5%, median, 95%
    acceleration: tuple[float, float, float]
    nearest: tuple[float, float, float]  # distance to the nearest neighbour
    polarization: tuple[float, float, float]
    milling: tuple[float, float, float]
    series: dict[str, np.ndarray]  # trial, time, polarization, milling
    notes: tuple[str, ...]


def card_of(tracks: Tracks, motion: Motion) -> Card:
    """The card of a file. Order is measured where at least two individuals are there, as in the study of flocks."""
    there = [np.isfinite(trial.position[..., 0]) for trial in tracks.trials]
    present = np.concatenate([trial.sum(axis=1) for trial in there])
    positions, frames, inside = int(present.sum()), len(present), sum(map(_inside, there))
    series, near = _order(motion)
    counts = [len(trial.ids) for trial in tracks.trials]
    return Card(
        source=tracks.source, unit=tracks.unit, rate=tracks.rate, trials=len(tracks.trials),
        individuals=(min(counts), max(counts)), present=(float(present[present > 0].mean()), int(present.max())),
        frames=frames, duration=frames / tracks.rate, positions=positions, missing=1 - positions / max(inside, 1),
        gaps=motion.gaps, filled=motion.filled, dropped=motion.dropped, window=motion.window,
        smoothing=motion.smoothing, speed=_three([lengths(trial.velocity) for trial in motion.trials]),
        acceleration=_three([lengths(trial.acceleration) for trial in motion.trials]), nearest=_three(near),
        polarization=_three([series["polarization"]]), milling=_three([series["milling"]]), series=series,
        notes=(*tracks.notes, *_doubts(tracks, motion)),
    )  # fmt: skip


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Of all vectors in a row."""
    return np.linalg.norm(vectors, axis=-1).ravel()


def _doubts(tracks: Tracks, motion: Motion) -> list[str]:
    """What may be wrong with the velocities of a file."""
    notes = list(motion.suspicions.notes)
    if tracks.unit in ("px", "pixel", "pixels"):
        notes.append("In images y counts downwards: left and right are exchanged in figures, not in the verdict.")
    if motion.window <= motion.smoothing.order + 1:
        notes.append(f"The polynomial goes through all of its {motion.window} frames, so nothing is smoothed: --smooth "
                     f"{(motion.window + 2) / motion.rate:.2g} would.")  # fmt: skip
    step, bend = (np.concatenate([lengths(np.diff(trial.position, n, axis=0)) for trial in tracks.trials])
                  for n in (1, 2))  # fmt: skip
    bend = bend[np.isfinite(bend)]
    usual = np.median(step[step > 0]) if (step > 0).any() else 0.0
    straight = float((bend < EXACTLY * usual).mean()) if len(bend) else 0.0
    if straight > INTERPOLATED:
        notes.append(f"{100 * straight:.0f}% of the steps go on exactly as the step before: positions seem to be "
                     "interpolated. Smooth (--smooth) and decide (--every) no finer than was measured.")  # fmt: skip
    return notes


def _inside(there: np.ndarray) -> int:
    """Places from the first to the last position of everybody."""
    begun, goes_on = np.cumsum(there, axis=0) > 0, np.cumsum(there[::-1], axis=0)[::-1] > 0
    return int((begun & goes_on).sum())


def _three(parts: list[np.ndarray]) -> tuple[float, float, float]:
    """5%, median, 95%."""
    values = np.concatenate([np.zeros(0), *parts])
    values = values[np.isfinite(values)]
    low, middle, high = map(float, np.quantile(values, [0.05, 0.5, 0.95])) if len(values) else (float("nan"),) * 3
    return low, middle, high


def _order(motion: Motion) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """(polarization and milling at some moments of every trial, distances to nearest neighbours at them)."""
    rows, near = list[tuple[float, ...]](), []
    every = max(1, sum(len(trial.position) for trial in motion.trials) // MOST_SERIES)
    for number, trial in enumerate(motion.trials):
        for frame in range(0, len(trial.position), every):
            there = np.isfinite(trial.velocity[frame]).all(axis=-1)
            if there.sum() > 1:
                p, v = trial.position[frame, there], trial.velocity[frame, there]
                near.append(nearest_neighbours(p)[0])
                order = polarization(v[None, None])[0, 0], milling(p[None, None], v[None, None])[0, 0]
                rows.append((number, frame / motion.rate, *order))
    columns = np.array(rows).reshape(-1, 4).T
    return dict(zip(("trial", "time", "polarization", "milling"), columns, strict=True)), near


def describe(card: Card) -> list[tuple[str, str]]:
    """The card as rows of (what, how much)."""
    unit, how = card.unit, card.smoothing
    few, many = card.individuals
    causal = "causal, " if how.causal else ""

    def three(values: tuple[float, float, float], of: str = "") -> str:
        low, middle, high = values
        return f"{middle:.3g}{of} (5% {low:.3g}, 95% {high:.3g})"

    return [
        ("trials", f"{card.trials}"),
        ("individuals in a trial", f"{few}" if few == many else f"{few} to {many}"),
        ("there at once", f"{card.present[0]:.1f} on average, {card.present[1]} at most"),
        ("frames", f"{card.frames:,} at {card.rate:g} Hz: {card.duration:,.1f} s"),
        ("positions", f"{card.positions:,}; {100 * card.missing:.2f}% missing inside tracks"),
        ("gaps", f"{card.gaps:,}; {card.filled:,} positions filled (gaps up to {how.longest_gap:g} s), "
                 f"{card.dropped:,} in stretches shorter than the window"),
        ("smoothing", f"Savitzky-Golay, {causal}order {how.order}, {card.window} frames "
                      f"({card.window / card.rate:.3g} s)"),
        ("speed", three(card.speed, f" {unit}/s")),
        ("acceleration", three(card.acceleration, f" {unit}/s²")),
        ("nearest neighbour", three(card.nearest, f" {unit}")),
        ("polarization", three(card.polarization)),
        ("milling", three(card.milling)),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------- leadership


class Leadership(NamedTuple):
    """Delays in seconds: positive where the row's heading comes before the column's. NaN where it means nothing."""

    trial: str
    ids: tuple[str, ...]
    delay: Float[np.ndarray, "id id"]
    lead: Float[np.ndarray, " id"]  # mean of an individual's delays: positive for leaders


def leadership(motion: Motion, number: int = 0, *, shifted: int = 19, seed: int = 0) -> Leadership:
    """Whose heading comes first in one trial.

    C(tau) is the mean cosine between the heading of one now and of the other tau later. The tau at which it is largest
    says who follows whom, and the mean of an individual's delays to all others ranks it. A delay counts if C is larger
    than in all of `shifted` copies of the trial in which everybody's heading is moved in time by an amount of its own:
    those who walk straight on in the same direction are alike at any delay.
    """
    trial = motion.trials[number]
    there = np.isfinite(trial.velocity).all(axis=-1)
    chosen = np.sort(np.argsort(-there.sum(axis=0), kind="stable")[:MOST_RANKED])
    speed = np.linalg.norm(trial.velocity[:, chosen], axis=-1)
    followed = there[:, chosen] & (speed > 0)
    heading = np.divide(trial.velocity[:, chosen], speed[..., None], where=followed[..., None],
                        out=np.zeros((*speed.shape, 2)))  # fmt: skip
    most = min(round(LONGEST_DELAY * motion.rate), max(len(heading) // 3, 1))
    shifts = np.array(sorted(range(-most, most + 1), key=abs))  # of equally good delays the shortest counts
    best, top = _best_delay(heading, followed, shifts, motion.rate)
    rng, others = np.random.default_rng([seed, number]), np.full_like(top, -np.inf)
    for _ in range(shifted):
        by = rng.integers(most, max(len(heading) - most, most + 1), heading.shape[1])
        row = (np.arange(len(heading))[:, None] - by) % len(heading)
        moved = np.take_along_axis(heading, row[..., None], axis=0), np.take_along_axis(followed, row, axis=0)
        others = np.maximum(others, _best_delay(*moved, shifts, motion.rate)[1])
    means = (top >= ALIKE) & (top > others) & (np.abs(best) < most)
    delay = np.where(means, best / motion.rate, np.nan)
    np.fill_diagonal(delay, np.nan)
    count = np.isfinite(delay).sum(axis=1)
    lead = np.where(count > 0, np.nansum(delay, axis=1) / np.maximum(count, 1), np.nan)
    return Leadership(trial.name, tuple(trial.ids[i] for i in chosen), delay, lead)


def _best_delay(
    heading: np.ndarray, followed: np.ndarray, shifts: np.ndarray, rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """The shift at which C of each pair is largest, and C there."""
    height = np.stack([_correlation(heading, followed.astype(float), shift, TOGETHER * rate)
                       for shift in shifts.tolist()])  # fmt: skip
    return shifts[height.argmax(axis=0)], height.max(axis=0)


def _correlation(heading: np.ndarray, followed: np.ndarray, shift: int, least: float) -> np.ndarray:
    """C of all pairs at one shift: the column's heading is taken `shift` frames later than the row's."""
    now = slice(max(-shift, 0), len(heading) - max(shift, 0))
    later = slice(max(shift, 0), len(heading) - max(-shift, 0))
    count = followed[now].T @ followed[later]
    total = sum(heading[now, :, axis].T @ heading[later, :, axis] for axis in range(2))
    return np.where(count >= least, total / np.maximum(count, 1), -np.inf)
