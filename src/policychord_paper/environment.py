"""Where and how a run took place: whoever reads its figures can tell what they depend on."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from policychord import __version__
from policychord.runs import devices, hardware, packages

from .records import Choices, Environment
from .reproduce import Chosen, Run, shown_settings


def environment(
    chosen: Sequence[Chosen],
    run: Run,
    *,
    workers: int,
    quick: bool,
    seed: int,
    seconds: float,
    choices: Choices = "",
) -> Environment:
    """The surroundings of a run that has just ended."""
    processor, cores, memory = hardware()
    began = datetime.fromtimestamp(datetime.now(UTC).timestamp() - seconds, UTC)
    return Environment(
        policychord=__version__,
        python=platform.python_version(),
        packages=packages(),
        platform=platform.platform(),
        processor=processor,
        cores=cores,
        memory_gib=memory,
        devices=devices(),
        workers=workers,
        quick=quick,
        seed=seed,
        data=next((chapter.source for chapter in run.chapters if chapter.source), ""),
        settings={study.name: shown_settings(settings) for study, settings in chosen},
        started=began.isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        steps={f"{done.study}: {done.step}": done.seconds for done in run.steps},
        reused=sum(done.reused for done in run.steps),
        choices=choices,
    )
