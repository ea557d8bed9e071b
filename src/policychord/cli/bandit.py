"""`policychord bandit`: models of choice for public data and for your own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from . import options
from .app import Pages, app
from .output import Json, counted, emit
from .progress import watching

if TYPE_CHECKING:
    from ..choices.compare import Analysis
    from ..choices.data import Task

bandit = typer.Typer(
    cls=Pages,
    help="Explain choices between uncertain arms, trial by trial. Classic models of exploration and one that composes "
    "simple behaviours are fitted to each person and compared over the group: on your own data, on the public data of "
    "Gershman (2018), or on simulated people.",
    short_help="Explain choices: your own data, the public data, or simulated ones.",
    epilog=options.examples(
        "policychord bandit simulate choices.csv --subjects 20",
        "policychord bandit fit choices.csv --experiment 2",
        "policychord bandit data fetch",
    ),
)
data = typer.Typer(
    cls=Pages,
    help="The public data of Gershman (2018): 45 and 44 people in two experiments.",
    epilog=options.examples("policychord bandit data fetch", "policychord bandit data fetch --out data"),
)
app.add_typer(bandit, name="bandit", no_args_is_help=True)
bandit.add_typer(data, name="data", no_args_is_help=True)
TASK = "The task"
Known = Literal["1", "2"]  # tasks of the public data


@bandit.command(
    short_help="Fit and compare models of the choices in a CSV file.",
    epilog=options.examples(
        "policychord bandit fit choices.csv",
        "policychord bandit fit choices.csv --experiment 1 --link logit --json",
        "policychord bandit fit mine.csv --experiment custom --variance 100,100,100 \\\n    --link logit",
    ),
)
def fit(
    table: Annotated[Path, typer.Argument(help="The choices, as a CSV file.", metavar="DATA.csv")],
    experiment: Annotated[
        Literal["1", "2", "custom"],
        options.option(
            "1: the second arm always pays zero; 2: two uncertain arms; custom: any arms, see --variance.", "TASK", "2",
            rich_help_panel=TASK,
        ),
    ] = "2",
    variance: Annotated[
        str,
        options.option(
            "custom: how much each arm's value varies from block to block, one number for each arm, such as "
            "100,100,100.", "NUMBERS", rich_help_panel=TASK,
        ),
    ] = "",
    noise: Annotated[
        float | None,
        options.option(
            "custom: variance of a reward around its arm's value.", "NUMBER", "10", rich_help_panel=TASK
        ),
    ] = None,
    link: Annotated[
        Literal["probit", "logit"],
        options.option("From utilities to probabilities: probit (two arms) or logit (any number).", "LINK", "probit"),
    ] = "probit",
    primitives: Annotated[
        str,
        options.option(
            "What is composed, of exploit, uncertainty, risk, repeat, random.", "NAMES", "exploit,uncertainty,risk"
        ),
    ] = "exploit,uncertainty,risk",
    eps: Annotated[float, options.eps("0.01")] = 0.01,
    out: Annotated[Path | None, options.out("out/bandit-fit")] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Fit four classic models and the composed one to every person, and find out which is the most frequent one.
    Prints the comparison; writes a summary in words, weights trial by trial, coefficients of every person (CSV) and
    figures.

    The file has the columns subject, block, trial (these count from 1),
    choice (the number of an arm) and reward; with a column RT, in ms,
    trials slower than 20 s are left out.
    """
    from ..choices import figures
    from ..choices.compare import OURS, analyse, fit_rivals
    from ..choices.data import as_csv, read_choices
    from ..choices.report import describe, model_table, subject_table, verdict, weight_table
    from ..choices.schemas import KNOWN
    from ..runs.store import prepare, save_figure, write_text
    from ..studies.drawing import styled

    task = _task(experiment, variance, noise)
    options.require(task.arms == 2 or link != "probit", "--link", link, f"is for two arms, not {task.arms}; use logit")
    options.check_eps(eps)
    names = tuple(name.strip() for name in primitives.split(","))
    for name in names:
        options.require(name in KNOWN, "--primitives", repr(name), f"there are {', '.join(KNOWN)}")
    choices = read_choices(table, task)  # all that is wrong with the table is said before anything is written
    out = prepare(Path("out") / "bandit-fit" if out is None else out)
    with watching() as watch:
        watch("fitting five models to every person", 0, 3)
        result = analyse(choices, link, eps, names)
        watch("fitting controls", 1, 3)
        rivals = fit_rivals(result.trials, link, eps, primitives=names)
        watch("writing and drawing", 2, 3)
        files = [
            write_text(out / "summary.md", describe(result, rivals)),
            write_text(out / "weights.csv", as_csv(weight_table(result))),
            write_text(out / "subjects.csv", as_csv(subject_table(result))),
            write_text(out / "models.csv", as_csv(model_table(result))),
            *save_figure(out / "figures" / "model_comparison", styled(figures.comparison, result)),
            *save_figure(out / "figures" / "weights", styled(figures.weights, result)),
        ]
    rows, against = model_table(result).to_dict("records"), result.against_hybrid
    found = {
        "data": result.trials.source, "trials": len(result.trials.choice), "left_out": result.left_out,
        "people": len(result.models[OURS].subjects), "models": rows, "bor": result.everything.selection.bor,
        "against_hybrid": {"pxp": against.pxp(OURS), "bor": against.selection.bor},
        "controls": {one.name: {key: getattr(one, key) for key in ("log_likelihood", "pxp", "bor")}
                     for one in rivals.known()},
    }  # fmt: skip
    record = {
        "command": "bandit fit", "settings": {"task": task, "link": link, "eps": eps, "primitives": names},
        "results": found, "out": out, "files": files, "notes": [verdict(result), *result.notes],
    }  # fmt: skip
    emit(
        json,
        record,
        _models(result, rows),
        verdict(result),
        *result.notes,
        "PXP: the probability that more people use this model than any other, allowing for chance.",
        f"Wrote {counted(len(files), 'file')} to {out}.",
        f"Next: read {files[0]}, which also says whether a mere floor under improbable choices does as well; "
        f"weights trial by trial are in {files[1]}.",
    )


@bandit.command(
    short_help="Write the choices of simulated people, to try things on.",
    epilog=options.examples(
        "policychord bandit simulate choices.csv",
        "policychord bandit simulate choices.csv --experiment 1 --subjects 20",
    ),
)
def simulate(
    out: Annotated[Path, typer.Argument(help="The file to write.", metavar="DATA.csv", dir_okay=False)],
    experiment: Annotated[
        Known, options.option("1: the second arm always pays zero; 2: two uncertain arms.", "TASK", "2")
    ] = "2",
    subjects: Annotated[int, options.option("How many people.", "N", "44")] = 44,
    seed: Annotated[int, options.seed()] = 0,
    json: Json = False,
) -> None:
    """Write the choices of simulated people who use the Hybrid model, to try things on. They are not human data, and
    every analysis of them says so.
    """
    from ..choices.data import as_csv, as_table
    from ..choices.simulate import synthetic
    from ..runs.store import write_text

    options.require(subjects >= 1, "--subjects", subjects, "must be at least 1")
    options.require(seed >= 0, "--seed", seed, "must be at least 0")
    choices = synthetic(experiment, subjects, seed=seed)
    write_text(out, as_csv(as_table(choices).assign(source=choices.source)))
    record = {
        "command": "bandit simulate", "settings": {"experiment": experiment, "subjects": subjects, "seed": seed},
        "results": {"data": choices.source, "people": subjects, "trials": len(choices.choice)},
        "out": out.parent, "files": [out], "notes": ["simulated people, not human data"],
    }  # fmt: skip
    emit(
        json,
        record,
        f"Wrote {counted(len(choices.choice), 'choice')} of {subjects} simulated people to {out}.",
        f"Next:\n  policychord bandit fit {out} --experiment {experiment}",
    )


@data.command(
    short_help="Download the public data.",
    epilog=options.examples("policychord bandit data fetch", "policychord bandit data fetch --out data"),
)
def fetch(
    out: Annotated[
        Path | None,
        options.option("Folder for the files.", "DIR", "the user's cache", "--out", rich_help_panel=options.RESULTS),
    ] = None,
    json: Json = False,
) -> None:
    """Download the public data of Gershman (2018) and check that they are the files of the article. Nothing else
    uses the network. In the cache they are found by themselves, elsewhere with --data or POLICYCHORD_DATA.
    """
    from ..choices.fetch import fetch as get

    files = get(out)
    folder = files[0].parent
    hint = "" if out is None else f" --data {out}"
    record = {"command": "bandit data fetch", "results": {}, "out": folder, "files": files, "notes": []}
    emit(json, record, f"{counted(len(files), 'file')} in {folder}.", f"Next:\n  policychord reproduce bandit{hint}")


def _task(experiment: str, variance: str, noise: float | None) -> "Task":
    from ..choices.data import TASKS, Task

    if experiment != "custom":
        own = f"belongs to --experiment custom; experiment {experiment} has its own"
        options.require(not variance, "--variance", variance, own)
        options.require(noise is None, "--noise", noise, own)
        return TASKS[experiment]
    try:
        values = tuple(float(part) for part in variance.split(","))
    except ValueError:
        values = ()
    right = len(values) >= 2 and all(0 <= v < float("inf") for v in values) and any(values)
    remedy = "name a number of at least 0 for each of two or more arms, such as 100,100"
    options.require(right, "--variance", repr(variance), remedy)
    noise = 10.0 if noise is None else noise
    options.require(0 < noise < float("inf"), "--noise", noise, "must be more than 0")
    return Task("own data", values, noise)


def _models(result: "Analysis", rows: list[dict[Any, Any]]) -> Table:
    people = len(next(iter(result.models.values())).subjects)
    title = f"{result.trials.source}: {people} people, {counted(len(result.trials.choice), 'trial')}, {result.link}"
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("model", "parameters", "log-likelihood", "BIC", "PXP"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for row in rows:
        numbers = f"{row['log_likelihood']:.2f}", f"{row['BIC']:.2f}", f"{row['PXP']:.4f}"
        table.add_row(row["model"], str(row["parameters"]), *numbers)
    return table
