"""`policychord reproduce`: the paper's claims, measured."""

import time
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from policychord.cli import Json, accumulating, aside, emit, options, resumable, watching

from .. import STUDIES
from .app import app

if TYPE_CHECKING:
    from ..claim import JudgedClaim
    from ..reproduce import Chosen
    from ..study import Choices, Report, Study

    StudyName = str
else:
    StudyName = Literal[("all", *STUDIES)]

SHOWN = 2  # measured values of a claim; the page has them all
SIMULATED = (
    "The {} study used simulated people, because the public data were not found; its verdicts say nothing about people "
    "and are not counted.  policychord choices data fetch  gets them, --data DIR points to them."
)
STYLE = {"reproduced": "green", "partly": "yellow", "not reproduced": "red"}


@app.command(
    "reproduce",
    rich_help_panel="The paper",
    epilog=options.examples(
        "policychord reproduce                    all studies, 4 minutes on two cores",
        "policychord reproduce all --full         the paper's counts, 11 minutes",
        "policychord reproduce bandit --data DIR  with the public choices in DIR",
    ),
)
def _reproduce_command(
    study: Annotated[
        StudyName, typer.Argument(help=f"all, {', '.join(STUDIES[:-1])} or {STUDIES[-1]}.", metavar="STUDY")
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="All claims with fewer seeds, or with the paper's counts.")
    ] = True,
    seed: Annotated[
        int, typer.Option(help="Seed of all random draws: the same seed, the same result.", metavar="N", min=0)
    ] = 0,
    jobs: Annotated[
        int | None, options.option("Processes that work side by side.", "N", "one for each core", "--jobs", min=1)
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do everything again, also what an earlier run in the same folder did.")
    ] = False,
    data: Annotated[
        Path | None,
        options.option(
            "Folder with the public choices; without them people are simulated.",
            "DIR",
            "",
            "--data",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    out: Annotated[Path | None, options.out("out/paper, or out/STUDY for one study")] = None,
    json: Json = False,
) -> None:
    """Check the paper's claims by measurement: each gets numbers, a rule and a verdict.

    It writes report.html, one self-contained page, and its five printed pages as report.pdf where Chromium or Chrome
    is installed. A run that was stopped continues when the same
    command is given again.
    """
    from policychord.runs import available_cores, print_page, write_json

    from ..report import write_report
    from ..reproduce import environment, tasks_of
    from ..reproduce import reproduce as run
    from ..study import Report, claim_records, simulated

    began = time.perf_counter()
    out = Path("out") / ("paper" if study == "all" else study) if out is None else out
    workers = available_cores() if jobs is None else jobs
    chosen = _chosen(study, quick, seed, data)
    ordered, lenders = sorted(chosen, key=lambda c: -c.study.priority), _lenders(chosen, quick, seed, data)
    if data is not None and not any(_reads_data(c.study) for c in [*chosen, *lenders]):
        raise typer.BadParameter(f"the {study} study reads no data: leave it out.", param_hint="--data")
    for line in _without_data(chosen):
        aside.print(line, markup=False, highlight=False)
    resumable()
    with watching() as watch:
        add = accumulating(watch, sum(len(task.files) for task in tasks_of(ordered, lenders, out)))
        finished = run(
            ordered, out, lenders=lenders, workers=workers, fresh=fresh, watch=lambda item: add(1, _step(item))
        )
    by_study = {chapter.study: chapter for chapter in finished.chapters}
    around = environment(
        chosen, finished, workers=workers, quick=quick, seed=seed, seconds=time.perf_counter() - began,
        choices=_choices([*chosen, *lenders]),
    )  # fmt: skip
    report = Report([by_study[c.study.name] for c in chosen], around)
    claims = claim_records(report)
    page = write_report(report, out)
    pdf = print_page(page)
    files = [
        write_json(out / "claims.json", claims),
        write_json(out / "environment.json", around._asdict()),
        page,
        *([pdf] if pdf else []),
    ]
    notes = [SIMULATED.format(chapter.study) for chapter in report.chapters if simulated(chapter)]
    judged = [claim for chapter in report.chapters if not simulated(chapter) for claim in chapter.claims]
    results = {"study": study, "results": claims, "out": out, "files": files}
    record = results | {"notes": notes, "seconds": around.seconds}
    emit(json, record, _claims_table(report), _counts(judged), *notes, *_closing(out, report, pdf))


def _chosen(name: str, quick: bool, seed: int, data: Path | None) -> "list[Chosen]":
    from .. import load_study
    from ..reproduce import Chosen

    chosen = []
    for study in map(load_study, STUDIES if name == "all" else [name]):
        more = {"data": data} if data is not None and _reads_data(study) else {}
        chosen.append(Chosen(study, study.settings(quick=quick, seed=seed, **more)))
    return chosen


def _reads_data(study: "Study[Any, Any]") -> bool:
    return "data" in signature(study.settings).parameters


def _choices(read: "list[Chosen]") -> "Choices":
    """Where the people's choices were found."""
    from policychord.choices import data_folder

    folders = {getattr(reader.settings, "data", None) for reader in read} - {None}
    return "" if not folders else "fetched" if folders == {data_folder()} else "folder"


def _without_data(chosen: "list[Chosen]") -> list[str]:
    """What a run without the public choices says before it begins."""
    if not any(getattr(choice.settings, "synthetic", False) for choice in chosen):
        return []
    return [
        "The public choices were not found: people are simulated, and claims about people are not counted.",
        "One word makes all claims count:  make reproduce DATA=fetch  (or first:  policychord choices data fetch).",
    ]


def _lenders(chosen: "list[Chosen]", quick: bool, seed: int, data: Path | None) -> "list[Chosen]":
    """The studies whose own gating problems one of the chosen ones asks for: theory takes trials of people too."""
    if not any(choice.study.on_recorded(choice.settings) for choice in chosen):
        return []
    known = {choice.study.name: choice for choice in chosen}
    return [known.get(name) or _chosen(name, quick, seed, data)[0] for name in STUDIES]


def _step(item: Any) -> str:
    """A step of a study that is done."""
    return f"{item.study}: {item.step} ({'from an earlier run' if item.reused else f'{item.seconds:.1f} s'})"


def _claims_table(report: "Report") -> Table:
    from ..claim import number
    from ..study import simulated

    table = Table(title="Claims of the paper", title_justify="left", expand=True)
    table.add_column("", no_wrap=True)
    table.add_column("claim", ratio=3)
    table.add_column("measured here", ratio=3)
    table.add_column("verdict", no_wrap=True)
    for chapter in report.chapters:
        for claim in chapter.claims:
            first = [f"{name}: {number(value)}" for name, value in list(claim.measured.items())[:SHOWN]]
            more = [f"and {len(claim.measured) - SHOWN} more"] if len(claim.measured) > SHOWN else []
            telling = "\n".join([*first, *more])
            table.add_row(claim.id, claim.statement, telling, _verdict(claim, simulated(chapter)))
        table.add_section()
    return table


def _verdict(claim: "JudgedClaim", on_simulated: bool) -> Text:
    """A verdict with how firm it is, where draws differ; one on simulated people is marked, and in no colour."""
    from ..claim import firmness

    if on_simulated:
        return Text(f"{claim.verdict}\n(simulated people,\nnot counted)", style="dim")
    firm = firmness(claim.robustness)
    return Text(f"{claim.verdict}\n({firm})" if firm else claim.verdict, style=STYLE[claim.verdict])


def _counts(claims: "list[JudgedClaim]") -> Text:
    """How many claims have each verdict."""
    if not claims:
        return Text("No claims were judged.")
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in STYLE}
    parts = [Text(f"{count} {verdict}", style=STYLE[verdict]) for verdict, count in counts.items() if count]
    return Text.assemble(f"Of {len(claims)} claims: ", Text(", ").join(parts))


def _closing(out: Path, report: "Report", pdf: Path | None) -> list[str]:
    around = report.environment
    kept = f", {around.reused} of {len(around.steps)} steps from an earlier run" if around.reused else ""
    pages = f"{out / 'report.html'}, {'report.pdf, ' if pdf else ''}"
    wrote = f"Wrote {pages}claims.json, environment.json, figures/ and data/"
    more = "; for the paper's counts add --full" if around.quick else ""
    return [f"{wrote} ({around.seconds:.0f} s{kept}).", f"Next: open {out / 'report.html'} in a browser{more}."]
