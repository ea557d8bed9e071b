"""Judging a study's claims and drawing its figures, one after another."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..studies.claim import Claim, judge
from ..studies.theory.claims import LEDGER
from ..studies.theory.figures import FIGURES, draw
from ..studies.theory.settings import TheorySettings
from .store import prepare, save_figure, write_json


class Reproduction(NamedTuple):
    """Everything a study's run left behind."""

    claims: list[Claim]
    files: list[Path]


# told before each step: what it is, how many are done, how many there are
Watcher = Callable[[str, int, int], None]


def reproduce_theory(
    settings: TheorySettings, out: Path, watch: Watcher = lambda words, done, total: None
) -> Reproduction:
    """Judge T1 to T12 and draw the figures into `out`."""
    prepare(out)
    judging = [(f"{entry.id} {entry.statement}", partial(judge, entry, settings)) for entry in LEDGER]
    drawing = [(f"figure {name}", partial(_draw_into, out / "figures", name, settings)) for name in FIGURES]
    results = _run([*judging, *drawing], watch)
    claims = results[: len(judging)]
    figures = [path for made in results[len(judging) :] for path in made]
    ledger = write_json(out / "claims.json", [claim._asdict() for claim in claims])
    return Reproduction(claims, [ledger, *figures])


def _run(steps: Sequence[tuple[str, Callable]], watch: Watcher) -> list:
    results = []
    for done, (words, step) in enumerate(steps):
        watch(words, done, len(steps))
        results.append(step())
    return results


def _draw_into(folder: Path, name: str, settings: TheorySettings) -> list[Path]:
    return save_figure(folder / name, draw(name, settings))
