"""Reproducing a study: do its work, judge its claims, draw its figures, keep everything."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..studies.claim import Claim, judge
from ..studies.drawing import styled
from ..studies.study import Study
from .store import prepare, save_figure, write_dataset, write_json, write_text


class Reproduction(NamedTuple):
    """Everything a study's run left behind."""

    claims: list[Claim]
    files: list[Path]


# told before each step: what it is, how many are done, how many there are
Watcher = Callable[[str, int, int], None]


def reproduce(study: Study, settings: Any, out: Path, watch: Watcher = lambda words, done, total: None) -> Reproduction:
    """Judge the study's claims and write claims.json, figures and datasets into `out`."""
    prepare(out)
    work = study.work(settings)
    total = len(work) + len(study.ledger) + len(study.plates)
    done = 0

    def step(words: str, call: Callable[[], Any]) -> Any:
        nonlocal done
        watch(words, done, total)
        done += 1
        return call()

    evidence = {name: step(name, call) for name, call in work.items()}
    claims = [step(f"{e.id} {e.statement}", partial(judge, e, settings, evidence)) for e in study.ledger]
    files = [write_json(out / "claims.json", [claim._asdict() for claim in claims])]
    for name, plate in study.plates.items():
        figure = step(f"figure {name}", partial(styled, plate.draw, settings, evidence))
        files += save_figure(out / "figures" / name, figure)
    files += [write_dataset(out / "data" / f"{n}.zarr", data) for n, data in study.datasets(settings, evidence).items()]
    for passage in study.found(settings, evidence):
        files.append(write_text(out / f"{passage.title}.md", passage.text))
    return Reproduction(claims, files)
