"""`policychord bandit`: models of choice for public data and for your own."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from .app import app, screen

if TYPE_CHECKING:
    from ..studies.bandit.analysis import Analysis
    from ..studies.bandit.settings import Task

bandit = typer.Typer(
    help="Explain choices between arms, trial by trial: your data, the public data, or simulated ones."
)
data = typer.Typer(help="The public data of Gershman (2018).")
app.add_typer(bandit, name="bandit", no_args_is_help=True)
bandit.add_typer(data, name="data", no_args_is_help=True)


class Experiment(StrEnum):
    """Tasks that are known, and any other."""

    one = "1"
    two = "2"
    custom = "custom"


class Links(StrEnum):
    """From a difference of utilities to a probability."""

    probit = "probit"
    logit = "logit"


_EXPERIMENT = typer.Option(help="1: one arm pays zero; 2: two uncertain arms; custom: state --variance.")
_VARIANCE = typer.Option(help="Custom: variance of each arm's value before anything is known, such as 100,100,100.")
_NOISE = typer.Option(help="Custom: variance of a reward around its arm's value.")


@bandit.command(
    epilog="Example:  policychord bandit fit choices.csv --experiment custom --variance 100,100,100 --link logit\n\n"
    "The CSV has columns subject, block, trial, choice (1, 2, ...), reward, and RT (ms) if slow trials are to go."
)
def fit(
    table: Annotated[Path, typer.Argument(help="The choices, as CSV.", metavar="DATA.csv")],
    experiment: Annotated[Experiment, _EXPERIMENT] = Experiment.two,
    link: Annotated[Links, typer.Option(help="Probit is for two arms; logit (softmax) for any number.")] = Links.probit,
    out: Annotated[Path, typer.Option(help="Folder for the results.", file_okay=False)] = Path("out/bandit-fit"),
    eps: Annotated[float, typer.Option(help="Temperature of the composed model.")] = 0.01,
    primitives: Annotated[
        str, typer.Option(help="Which to compose: exploit, uncertainty, risk, repeat, random.")
    ] = "exploit,uncertainty,risk",
    variance: Annotated[str, _VARIANCE] = "",
    noise: Annotated[float, _NOISE] = 10.0,
) -> None:
    """Fit the classic models and the composed one, compare them over the group, and write down what was found."""
    from ..runs.store import prepare, save_figure, write_text
    from ..studies.bandit.analysis import analyse
    from ..studies.bandit.data import read_choices
    from ..studies.bandit.figures import own_comparison, own_weights
    from ..studies.bandit.summary import describe, model_table, subject_table, weight_table
    from ..studies.bandit.validation import controls
    from ..studies.drawing import styled

    task = _task(experiment, variance, noise)
    if task.arms > 2 and link == Links.probit:
        raise typer.BadParameter(f"probit is for two arms, these are {task.arms}: use logit.", param_hint="--link")
    choices = read_choices(table, task)  # all that is wrong with the table is said before anything is written
    names = tuple(name.strip() for name in primitives.split(","))
    result = analyse(choices, link.value, eps, names)
    rivals = controls(result.trials, link.value, eps, own=False, primitives=names)
    prepare(out)
    files = [
        write_text(out / "summary.md", describe(result, rivals)),
        write_text(out / "weights.csv", weight_table(result).to_csv(index=False)),
        write_text(out / "subjects.csv", subject_table(result).to_csv(index=False)),
        write_text(out / "models.csv", model_table(result).to_csv(index=False)),
        *save_figure(out / "figures" / "model_comparison", styled(own_comparison, result)),
        *save_figure(out / "figures" / "weights", styled(own_weights, result)),
    ]
    screen.print(_models(result))
    screen.print(f"Wrote {len(files)} files to {out}.", soft_wrap=True, markup=False)
    screen.print(f"Next: read {files[0]}; weights trial by trial are in {files[1]}.", soft_wrap=True, markup=False)


@data.command()
def fetch(
    out: Annotated[Path | None, typer.Option(help="Folder for the files; the user's cache unless given.")] = None,
) -> None:
    """Download the public data, with checksums."""
    from ..studies.bandit.fetch import fetch as get

    files = get(out)
    screen.print("\n".join(map(str, files)), soft_wrap=True, markup=False)
    hint = "" if out is None else f" --data {out}"
    screen.print(f"Next:  policychord reproduce bandit{hint}", soft_wrap=True, markup=False)


@bandit.command()
def simulate(
    out: Annotated[Path, typer.Argument(help="The CSV file to write.", metavar="DATA.csv", dir_okay=False)],
    experiment: Annotated[Experiment, _EXPERIMENT] = Experiment.two,
    subjects: Annotated[int, typer.Option(help="How many people.", min=1)] = 44,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 0,
) -> None:
    """Write the choices of simulated people who use the Hybrid model, to try things on. They are not human data."""
    from ..runs.store import write_text
    from ..studies.bandit.cohort import synthetic
    from ..studies.bandit.data import as_table
    from ..studies.bandit.settings import BanditSettings

    if experiment == Experiment.custom:
        raise typer.BadParameter("only experiments 1 and 2 have plausible people.", param_hint="--experiment")
    choices = synthetic(experiment.value, BanditSettings(seed=seed), subjects)
    write_text(out, as_table(choices).assign(source=choices.source).to_csv(index=False))
    screen.print(f"Wrote {len(choices.choice)} simulated choices to {out}.", soft_wrap=True, markup=False)
    screen.print(f"Next:  policychord bandit fit {out} --experiment {experiment}", soft_wrap=True, markup=False)


def _task(experiment: Experiment, variance: str, noise: float) -> "Task":
    from ..studies.bandit.settings import TASKS, Task

    if experiment != Experiment.custom:
        if variance or noise != 10.0:
            raise typer.BadParameter(
                f"experiment {experiment} has its own: use --experiment custom.", param_hint="--variance, --noise"
            )
        return TASKS[experiment.value]
    try:
        values = tuple(float(part) for part in variance.split(","))
    except ValueError:
        values = ()
    if len(values) < 2 or not all(0 <= v < float("inf") for v in values) or not any(values):
        raise typer.BadParameter(
            f"{variance!r}: one number of at least 0 for each of two or more arms, such as 100,100.",
            param_hint="--variance",
        )
    if not 0 < noise < float("inf"):
        raise typer.BadParameter(f"{noise!r}: a positive number.", param_hint="--noise")
    return Task("own data", values, noise)


def _models(result: "Analysis") -> Table:
    from ..studies.bandit.summary import model_table

    bor = result.everything.selection.bor
    people = len(next(iter(result.models.values())).subjects_)
    title = f"{result.trials.source}: {people} people, {len(result.trials.choice)} trials, {result.link}; BOR {bor:.3g}"
    table = Table(title=escape(title), title_justify="left", min_width=90)
    for column in ("model", "k", "log-likelihood", "BIC", "PXP"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for row in model_table(result).itertuples():
        table.add_row(row.model, str(row.parameters), f"{row.log_likelihood:.2f}", f"{row.BIC:.2f}", f"{row.PXP:.4f}")
    return table
