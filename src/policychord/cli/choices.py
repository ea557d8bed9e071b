"""`policychord choices`: models of choice for public data and for your own."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from . import options
from .app import Pages, app
from .output import Json, aside, counted, emit
from .progress import watching

if TYPE_CHECKING:
    from ..choices import Choices, Plan, Reading
    from ..choices.effects import By
    from ..choices.tasks import Numbers
    from ..runs.choices import ChoiceResult

choices = typer.Typer(
    cls=Pages,
    help="Explain choices between uncertain arms, trial by trial. Classic models of exploration and one that composes "
    "simple behaviours are fitted to each person and compared over the group: on your own data, on the public data of "
    "Gershman (2018), or on simulated people.",
    short_help="Explain choices: your own data, the public data, or simulated ones.",
    epilog=options.examples(
        "policychord choices simulate choices.csv --subjects 20",
        "policychord choices fit choices.csv --experiment 2",
        "policychord choices data fetch",
    ),
)
data = typer.Typer(
    cls=Pages,
    help="The public data of Gershman (2018): 45 and 44 people in two experiments.",
    epilog=options.examples("policychord choices data fetch", "policychord choices data fetch --out data"),
)
app.add_typer(choices, name="choices", no_args_is_help=True)
choices.add_typer(data, name="data", no_args_is_help=True)
CHECKS = "Checks on your own task"
_of_table, _of_task, _of_models, _of_checks = (
    partial(options.option, rich_help_panel=panel) for panel in ("The table", "The task", "Models", CHECKS)
)


def _flag(name: str, words: str, panel: str = CHECKS) -> Any:
    return typer.Option(name, rich_help_panel=panel, help=words)


# --------------------------------------------------------------------------------- options, by their panels


class _Table(NamedTuple):
    """How the table is read."""

    columns: Annotated[str, _of_table(
        "What the table calls our columns, where the guess is wrong: subject, block, trial, choice, reward (a sum "
        "will do: gain+loss), rt, condition, offered, left, right, pair, group; none for a column that is not to be "
        "used. Such as subject=ppt,reward=outcome,block=none.", "OURS=THEIRS"
    )] = ""  # fmt: skip
    arms: Annotated[str, _of_table("What the table calls the arms, in order.", "NAMES", "as they occur")] = ""
    missed: Annotated[str, _of_table(
        "What stands in the column choice if a trial was missed, besides NA and nothing.", "WORDS"
    )] = ""  # fmt: skip
    sides: Annotated[str, _of_table(
        "With columns left and right, or pair: what the column choice calls the first and the second arm, such as "
        "0,1; arms if it names the arm itself.", "WORDS", "guessed"
    )] = ""  # fmt: skip
    longest_rt: Annotated[float, _of_table("Trials of this many ms or more are doubtful.", "MS", "20000")] = 20_000.0
    doubtful: Annotated[Literal["learn", "drop", "keep"] | None, _of_table(
        "Slow trials and those without RT: learn from them but do not score them; drop them before learning; or keep "
        "them.", "WHAT", "learn; drop in experiments 1 and 2, as published"
    )] = None  # fmt: skip

    def reading(self, task: "_Task") -> "Reading":
        """The same for the reader."""
        from ..choices import Reading
        from ..choices.tables import parse_columns

        options.require(self.longest_rt > 0, "--longest-rt", self.longest_rt, "must be more than 0")
        kind = self.doubtful or ("drop" if task.experiment in ("1", "2") else "learn")
        known = task.numbers() if task.experiment == "auto" else {}
        return Reading(parse_columns(self.columns), _words(self.arms), _words(self.missed), self.longest_rt, kind,
                       _words(self.sides), known)  # fmt: skip


_EACH = "One for all arms or one for each; by condition risky:36,0;safe:0."


class _Task(NamedTuple):
    """What people know of the arms."""

    experiment: Annotated[Literal["auto", "1", "2", "custom"], _of_task(
        "What people know of the arms. auto: measured from the rewards, where not given below or in a file beside the "
        "table; 1 and 2: the tasks of Gershman (2018) with their variances (in 1 the second arm always pays zero); "
        "custom: as given below.", "TASK", "auto"
    )] = "auto"  # fmt: skip
    variance: Annotated[str, _of_task(
        f"How much an arm's value varies from block to block. {_EACH}", "NUMBERS", "measured"
    )] = ""  # fmt: skip
    noise: Annotated[str, _of_task(
        f"Variance of a reward around its arm's value. {_EACH}", "NUMBERS", "measured; 10 if custom"
    )] = ""  # fmt: skip
    prior_mean: Annotated[str, _of_task(
        f"What people expect of an arm at first. {_EACH}", "NUMBERS", "measured; 0 if custom"
    )] = ""  # fmt: skip
    drift: Annotated[str, _of_task(
        f"Variance that a value gains from trial to trial. {_EACH}", "NUMBERS", "measured; 0 if custom"
    )] = ""  # fmt: skip
    decay: Annotated[str, _of_task(
        f"What is left of a value's distance from its mean after a trial, from 0 to 1. {_EACH}", "NUMBERS",
        "measured; 1 if custom"
    )] = ""  # fmt: skip

    def numbers(self) -> "dict[str, Numbers]":
        """What the options say of the task."""
        from ..choices.tasks import NUMBERS, parse_numbers

        texts = {name: getattr(self, "prior_mean" if name == "mean" else name) for name in NUMBERS}
        found = {name: parse_numbers(_option(name), text) for name, text in texts.items()}
        if self.experiment in ("1", "2"):
            own = f"belongs to --experiment auto or custom; experiment {self.experiment} has its own"
            for name, text in texts.items():
                options.require(not text, _option(name), text, own)
        return {name: value for name, value in found.items() if value is not None}


def _option(name: str) -> str:
    return "--prior-mean" if name == "mean" else f"--{name}"


class _Models(NamedTuple):
    """What is compared."""

    learner: Annotated[Literal["kalman", "delta", "two-rates", "gain-loss", "bernoulli", "none"], _of_models(
        "How people learn: kalman, delta (a rate), two-rates (for gains and losses), gain-loss (a rate, and how much "
        "a loss counts against a gain), bernoulli (wins and losses counted), none.", "NAME", "kalman"
    )] = "kalman"  # fmt: skip
    free: Annotated[str, _of_models(
        "Parameters of the learner that are fitted to each person, such as noise,drift.", "NAMES",
        "rates of delta and two-rates"
    )] = ""  # fmt: skip
    models: Annotated[str | None, _of_models(
        "What is compared, and nothing else but chance: UCB, Thompson, Hybrid, Value, also with +stickiness and "
        "+lapse, or with a learner of its own (delta, two-rates:Value, kalman/noise:UCB); none (chance, in the group "
        "selection as well); Composed.", "NAMES",
        "UCB,Thompson,Hybrid,Value,Composed; Value,Value+stickiness,Composed for delta, two-rates and gain-loss"
    )] = None  # fmt: skip
    also: Annotated[str, _of_models(
        "Compare every classic model also with stickiness, with lapse, or with both (stickiness+lapse); chance is one "
        "more model.", "NAMES"
    )] = ""  # fmt: skip
    reference: Annotated[str, _of_models(
        "The model that the composed one comes close to.", "NAME", "Hybrid; Value where it is not there"
    )] = ""  # fmt: skip
    primitives: Annotated[str, _of_models(
        "What is composed, of exploit, uncertainty, risk, repeat, random; or paper: the paper's definitions, of which "
        "risk depends on the unit of the rewards (as in experiments 1 and 2).", "NAMES",
        "exploit,uncertainty,risk; exploit,repeat,random where no uncertainty is learned"
    )] = ""  # fmt: skip
    link: Annotated[Literal["probit", "logit"] | None, _of_models(
        "From utilities to probabilities: probit (two arms) or logit (any number).", "LINK",
        "probit for two arms, else logit"
    )] = None  # fmt: skip
    eps: Annotated[float, options.eps("0.01")] = 0.01

    def check(self) -> None:
        """What is wrong whatever the table is."""
        from ..choices.models import KNOWN, OF_PAPER

        options.require_eps(self.eps)
        for name in _words(self.primitives):
            options.require(
                name in KNOWN or _words(self.primitives) == (OF_PAPER,),
                "--primitives",
                repr(name),
                f"there are {', '.join(KNOWN)}",
            )


class _Checks(NamedTuple):
    """What is computed and drawn besides."""

    empirical_bayes: Annotated[bool, _flag(
        "--empirical-bayes", "Also draw everybody's estimates towards the group's (shrunk.csv)."
    )] = False  # fmt: skip
    recover: Annotated[bool, _flag(
        "--recover", "Simulate each fitted model on this task and fit all: what can be found again?"
    )] = False  # fmt: skip
    cross_validate: Annotated[bool, _flag("--cross-validate", "Predict people who were left out.")] = False
    ppc: Annotated[bool, _flag(
        "--ppc", "Do the models repeat, stay and shift as people do? One step ahead, and in whole experiments with "
        "drawn parameters (a posterior predictive check)."
    )] = False  # fmt: skip
    effects: Annotated[str, _of_checks(
        "What coefficients may differ with, of the columns group (between people) and condition (within people): "
        "differences by empirical Bayes, and what could have been found (effects.csv).", "group,condition"
    )] = ""  # fmt: skip
    arviz: Annotated[str, _of_checks(
        "Write this model's draws and pointwise log-likelihood for ArviZ (posterior.nc, for arviz.from_netcdf).",
        "MODEL"
    )] = ""  # fmt: skip
    individuals: Annotated[bool, _flag(
        "--individuals", "A line for each person in the figure of the weights.", options.RESULTS
    )] = False  # fmt: skip


# ------------------------------------------------------------------------------------------------ fit


@choices.command(
    "fit",
    short_help="Fit and compare models of the choices in a table.",
    epilog=options.examples(
        "policychord choices fit choices.csv",
        "policychord choices fit data.tsv --columns subject=ppt,reward=gain+loss --ppc",
        "policychord choices fit data.tsv --models delta,delta+stickiness,two-rates,Value",
    ),
)
@options.expand_records
def _fit_command(
    table: Annotated[Path, typer.Argument(help="The choices: a table with a header, one row a trial.",
                                          metavar="DATA.csv")],
    how: _Table,
    task: _Task,
    compared: _Models,
    checks: _Checks,
    out: Annotated[Path | None, options.out("out/choices")] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Fit models of choice to every person, and find out which is the most frequent one and which predicts best.
    Prints the comparison with its warnings; writes a summary in words, weights trial by trial, coefficients of every
    person with errors (CSV) and figures.

    The table needs a person, a choice and a reward in every row. Columns, separators and arms are guessed, and the
    guess is printed; block, trial, RT, condition, offered (arms that could be taken) and group are used where they are
    there, and so is a JSON or TOML file beside the table (BIDS, Psych-DS), which may hold the task's numbers.
    """
    from ..choices.report import describe_learner
    from ..choices.tasks import describe_task
    from ..runs.choices import ChoiceChecks, run_choices, write_choices
    from ..runs.compiled import keep_programs
    from ..runs.store import prepare

    compared.check()
    # all that is wrong with the table is said before anything is written
    choices = _read(table, how.reading(task), task)
    plan = _plan(choices, compared)
    arviz = checks.arviz
    options.require(not arviz or arviz in plan.everything, "--arviz", arviz, f"there are {', '.join(plan.everything)}")
    by = _effects(choices, checks.effects)
    folder = prepare(Path("out") / "choices" if out is None else out)
    read = (describe_task(choices.task), describe_learner(plan), *choices.said)
    if not json:  # before the fit: a wrong guess is noticed while there is time
        emit(json, {}, *read)
    keep_programs()
    with watching() as watch:
        result = run_choices(choices, plan, ChoiceChecks(checks.recover, checks.cross_validate, checks.ppc, by), watch)
        watch("writing and drawing", 3, 4)
        files = write_choices(result, folder, checks.empirical_bayes, arviz, checks.individuals)
    _tell(result, folder, files, json, already=len(read))


def _read(table: Path, how: "Reading", given: _Task) -> "Choices":
    """The choices with their task, which is measured where it is not given."""
    from ..choices import TASKS, make_task, read_choices

    if given.experiment == "custom":
        return read_choices(table, make_task("own data", given.numbers()), how=how)
    given.numbers()  # a setting that nobody reads is an error
    return read_choices(table, TASKS.get(given.experiment), how=how)


def _plan(choices: "Choices", given: _Models) -> "Plan":
    """What is fitted, from what was given and from what is usual for this task and learner."""
    from ..choices import OURS, learner_of, plan_models
    from ..choices.compare import USUAL

    task, learner, reference = choices.task, given.learner, given.reference
    two = task.arms == 2 and choices.offered is None
    link = given.link or ("probit" if two else "logit")
    options.require(link != "probit" or two, "--link", link, "is for two arms that are always on offer; use logit")
    own = learner_of(learner, _words(given.free) or None)
    uncertain = learner in ("kalman", "bernoulli")
    usual = ("exploit", "uncertainty", "risk") if uncertain else ("exploit", "repeat", "random")
    wanted: tuple[str, ...] = USUAL if uncertain else ("none+stickiness", OURS) if learner == "none" else (
        "Value", "Value+stickiness", OURS)  # fmt: skip
    if given.models is not None:
        wanted = _words(given.models)
    wanted = _with_habits(wanted, given.also)
    for option, text in (("--reference", reference), ("--primitives", given.primitives)):
        options.require(not text or OURS in wanted, option, text, f"belongs to {OURS}: name it among --models")
    if OURS in wanted and not reference and "Hybrid" not in wanted and "Value" in wanted:
        reference = "Value"
    plain = learner == "kalman" and not own.free
    return plan_models(task, link, given.eps, _words(given.primitives) or usual, models=wanted, reference=reference,
                       learner=None if plain else own)  # fmt: skip


def _with_habits(models: tuple[str, ...], also: str) -> tuple[str, ...]:
    """The same models, each also with what is named, and chance; the composed one once and last."""
    from ..choices import OURS

    more = []
    for habit in _words(also):
        known = habit == "chance" or not set(habit.split("+")) - {"stickiness", "lapse"}
        options.require(known, "--also", habit, "there are stickiness, lapse, stickiness+lapse, chance")
        new = [name for name in models if name != OURS and not set(habit.split("+")) & set(name.split("+")[1:])]
        more += ["none"] if habit == "chance" else [f"{name}+{habit}" for name in new]
    every = dict.fromkeys([*(name for name in models if name != OURS), *more])
    return (*every, *(name for name in models if name == OURS))


def _effects(choices: "Choices", text: str) -> "tuple[By, ...]":
    """By what coefficients may differ; wrong words, and a table that lacks it, are errors before anything is fitted."""
    from ..choices.effects import CHECKS

    by = []
    for name in _words(text):
        options.require(name in CHECKS, "--effects", name, f"there are {', '.join(CHECKS)}")
        by += [kind for kind in CHECKS if kind == name]
        CHECKS[by[-1]](choices)
    return tuple(by)


def _tell(fitted: "ChoiceResult", out: Path, files: list[Path], json: bool, already: int) -> None:
    """Print the comparison with its warnings, or the record for programs; the first lines were said `already`."""
    from ..choices import model_table, verdict
    from ..runs.choices import numbers_of

    choices, plan, result, examined = fitted[:4]
    rows = model_table(result, examined).to_dict("records")
    numbers = numbers_of(fitted, rows)
    record = {
        "command": "choices fit",
        "settings": {"task": choices.task, "link": plan.link, "eps": plan.eps, "primitives": tuple(plan.primitives),
                     "models": tuple(plan.everything), "reference": plan.reference},
        "results": numbers, "out": out, "files": files,
        "notes": [verdict(result, examined), *examined.warnings, *fitted.remarks, *result.notes],
    }  # fmt: skip
    emit(
        json,
        record,
        *fitted.remarks[already:],
        *result.notes,
        _models(fitted, rows),
        *(f"Warning: {line}" for line in examined.warnings),
        verdict(result, examined),
        *(line for line in numbers["held_out"] if line not in examined.warnings),
        *numbers.get("effects", {"notes": []})["notes"],
        "PXP: the probability that more people use this model than any other, allowing for chance. Held-out: mean ln p "
        "of trials that the coefficients were not fitted to.",
        f"Wrote {counted(len(files), 'file')} to {out}.",
        f"Next: open {files[0]}; coefficients with their errors are in {out / 'subjects.csv'}. Other models: "
        "--also stickiness,lapse,chance adds these to the comparison, --models names others.",
    )


def _models(fitted: "ChoiceResult", rows: list[dict[Any, Any]]) -> Table:
    result, examined = fitted.analysis, fitted.examined
    people = counted(len(examined.people), "person", "people")
    trials = counted(int(result.trials.counts.sum()), "trial")
    title = f"{result.trials.source}: {people}, {trials}, {result.link}"
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("model", "params", "log-lik.", "BIC", "accuracy", "held-out", "over chance", "PXP"):
        table.add_column(column, justify="left" if column == "model" else "right", overflow="fold")
    for row in rows:
        sums = f"{row['log_likelihood']:.2f}", f"{row['BIC']:.2f}"
        fit = f"{row['accuracy']:.3f}", f"{row['held_out']:.4f}"
        gain = f"{row['over_chance']:+.3f} ± {row['error']:.3f}"
        table.add_row(row["model"], str(row["parameters"]), *sums, *fit, gain, f"{row['PXP']:.4f}")
    chance, each = float(examined.chance.sum()), f"{examined.chance_per_trial:.4f}"
    table.add_row("(chance)", "0", f"{chance:.2f}", f"{-2 * chance:.2f}", "", each, "", "")
    return table


# ------------------------------------------------------------------------------------- simulate, fetch


class _SimulatedTask(NamedTuple):
    """What simulated people know of the arms."""

    experiment: Annotated[Literal["1", "2", "custom"], _of_task(
        "1: the second arm always pays zero; 2: two uncertain arms; custom: as given below.", "TASK",
        "2, or custom where arms, variance, noise or mean are given"
    )] = "2"  # fmt: skip
    arms: Annotated[int, _of_task("How many arms.", "N", "2")] = 2
    variance: Annotated[str, _of_task(
        "How much each arm's value varies from block to block.", "NUMBERS", "100 for each arm"
    )] = ""  # fmt: skip
    noise: Annotated[str, _of_task(f"Variance of a reward around its arm's value. {_EACH}", "NUMBERS", "10")] = ""
    prior_mean: Annotated[str, _of_task(f"Mean of the arms' values. {_EACH}", "NUMBERS", "0")] = ""
    drift: Annotated[str, _of_task(f"Variance that a value gains from trial to trial. {_EACH}", "NUMBERS", "0")] = ""
    decay: Annotated[str, _of_task(
        f"What is left of a value's distance from its mean after a trial. {_EACH}", "NUMBERS", "1"
    )] = ""  # fmt: skip

    @property
    def own(self) -> bool:
        """Whether it is none of the known experiments."""
        return self.experiment == "custom" or self[1:] != (2, "", "", "", "", "")


class _People(NamedTuple):
    """Who is simulated."""

    model: Annotated[str, _of_models(
        "How people choose: as --models of fit, or Composed.", "NAME", "Hybrid"
    )] = "Hybrid"  # fmt: skip
    coefficients: Annotated[str, _of_models(
        "Mean of each coefficient over people, in the order of the model's; they vary by a third of it (rates and "
        "lapses on the logit scale).", "NUMBERS", "as in the public data, or 0.3 for rates"
    )] = ""  # fmt: skip
    subjects: Annotated[int, options.option("How many people.", "N", "44")] = 44
    blocks: Annotated[int, options.option("Blocks of each person.", "N", "20")] = 20
    trials: Annotated[int, options.option("Trials of a block.", "N", "10")] = 10
    seed: Annotated[int, options.seed()] = 0


@choices.command(
    "simulate",
    short_help="Write the choices of simulated people, to try things on.",
    epilog=options.examples(
        "policychord choices simulate choices.csv",
        "policychord choices simulate choices.csv --experiment 1 --subjects 20",
        "policychord choices simulate four.csv --arms 4 --model delta --coefficients 0.4,0.3 \\\n    --blocks 1 "
        "--trials 200",
    ),
)
@options.expand_records
def _simulate_command(
    out: options.ToWrite,
    given: _SimulatedTask,
    people: _People,
    json: Json = False,
) -> None:
    """Write the choices of simulated people, to try things on. They are not human data, and every analysis of them says
    so.
    """
    from ..choices import TASKS, cohort, make_task, synthetic
    from ..choices.data import as_csv, as_table
    from ..runs.store import write_text

    for name in ("subjects", "blocks", "trials"):
        options.require(getattr(people, name) >= 1, f"--{name}", getattr(people, name), "must be at least 1")
    options.require(given.arms >= 2, "--arms", given.arms, "must be at least 2")
    options.require(people.seed >= 0, "--seed", people.seed, "must be at least 0")
    experiment = "custom" if given.own else given.experiment
    means: dict[str, float] = {}
    size: dict[str, Any] = {name: getattr(people, name) for name in ("blocks", "trials", "seed")}
    if not given.own and people.model == "Hybrid" and not people.coefficients:
        choices = synthetic(experiment, people.subjects, **size)
    else:
        variance = given.variance or ",".join(["100"] * given.arms)
        numbers = _Task(experiment, variance, *given[3:]).numbers() if given.own else {}
        task = make_task("own data", numbers) if given.own else TASKS[experiment]
        centre = _numbers("--coefficients", people.coefficients)
        choices, spec, centre = cohort(task, people.model, centre, people.subjects, **size)
        means = dict(zip(spec.coefficients, centre, strict=True))
    write_text(out, as_csv(as_table(choices).assign(source=choices.source)))
    record = {
        "command": "choices simulate",
        "settings": {"experiment": experiment, "subjects": people.subjects, "model": people.model,
                     "coefficients": means, **size},
        "results": {"data": choices.source, "people": people.subjects, "trials": len(choices.choice)},
        "out": out.parent, "files": [out], "notes": ["simulated people, not human data"],
    }  # fmt: skip
    who = counted(people.subjects, "simulated person", "simulated people")
    emit(
        json,
        record,
        f"Wrote {counted(len(choices.choice), 'choice')} of {who} to {out}.",
        f"Next:\n  policychord choices fit {out}" + ("" if given.own else f" --experiment {experiment}"),
    )


@data.command(
    "fetch",
    short_help="Download the public data.",
    epilog=options.examples("policychord choices data fetch", "policychord choices data fetch --out data"),
)
def _fetch_command(
    out: Annotated[
        Path | None,
        options.option("Folder for the files.", "DIR", "the user's cache", "--out", rich_help_panel=options.RESULTS),
    ] = None,
    json: Json = False,
) -> None:
    """Download the public data of Gershman (2018) and check that they are the files of the article. Nothing else
    uses the network. In the cache they are found by themselves, elsewhere with --data or POLICYCHORD_DATA.
    """
    from ..choices import fetch as public

    aside.print(f"Getting {' and '.join(public.FILES)} from {public.address()}", markup=False, highlight=False)
    files = public.fetch(out)
    folder = files[0].parent
    hint = "" if out is None else f" --data {out}"
    record = {"command": "choices data fetch", "results": {}, "out": folder, "files": files, "notes": []}
    emit(json, record, f"{counted(len(files), 'file')} in {folder}.", f"Next:\n  policychord reproduce bandit{hint}")


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in _words(text))
    except ValueError:
        raise ValueError(f"{name} {text!r}: pass numbers with commas between them.") from None
