"""`policychord choices`: models of choice for public data and for your own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..choices.settings import ChoiceSettings, SimulatedChoices
from . import options
from .app import Pages, app
from .options import Shown
from .output import Json, aside, command_line, counted, emit, tell
from .progress import watching

if TYPE_CHECKING:
    from ..choices import Choices, Plan, Reading
    from ..choices.effects import By
    from ..choices.tasks import Numbers

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
Data = Annotated[Path, typer.Argument(help="The choices: a table with a header, one row a trial.", metavar="DATA.csv")]
_TABLE = options.offer(ChoiceSettings, {
    "columns": "OURS=THEIRS", "arm_names": Shown("NAMES", "as they occur"), "missed": "WORDS",
    "sides": Shown("WORDS", "guessed"), "longest_rt": "MS",
    "doubtful": Shown("WHAT", "learn; drop in experiments 1 and 2, as published"),
}, "The table")  # fmt: skip
_TASK = options.offer(ChoiceSettings, {
    "experiment": "TASK", "variance": Shown("NUMBERS", "measured"), "noise": Shown("NUMBERS", "measured; 10 if custom"),
    "prior_mean": Shown("NUMBERS", "measured; 0 if custom"), "drift": Shown("NUMBERS", "measured; 0 if custom"),
    "decay": Shown("NUMBERS", "measured; 1 if custom"),
}, "The task")  # fmt: skip
_MODELS = options.offer(ChoiceSettings, {
    "learner": "NAME", "free": Shown("NAMES", "rates of delta and two-rates"),
    "models": Shown("NAMES", "UCB,Thompson,Hybrid,Value,Composed; Value,Value+stickiness,Composed for delta, "
                    "two-rates and gain-loss"),
    "also": "NAMES", "reference": Shown("NAME", "Hybrid; Value where it is not there"),
    "primitives": Shown("NAMES", "exploit,uncertainty,risk; exploit,repeat,random where no uncertainty is learned"),
    "link": Shown("LINK", "probit for two arms, else logit"), "eps": "NUMBER",
}, "Models")  # fmt: skip
_CHECKS = options.offer(ChoiceSettings, {
    "empirical_bayes": "", "recover": "", "cross_validate": "", "ppc": "", "effects": "group,condition",
    "arviz": "MODEL", "draw_people": Shown(panel=options.RESULTS),
}, CHECKS)  # fmt: skip


def _reading(given: ChoiceSettings) -> "Reading":
    """How the table is read."""
    from ..choices import Reading
    from ..choices.tables import parse_columns

    kind = given.doubtful or ("drop" if given.experiment in ("1", "2") else "learn")
    known = _task_numbers(given) if given.experiment == "auto" else {}
    return Reading(parse_columns(given.columns), _words(given.arm_names), _words(given.missed), given.longest_rt, kind,
                   _words(given.sides), known)  # fmt: skip


def _task_numbers(given: Any) -> "dict[str, Numbers]":
    """What the options say of the task."""
    from ..choices.tasks import NUMBERS, parse_numbers

    texts = {name: getattr(given, "prior_mean" if name == "mean" else name) for name in NUMBERS}
    flags = {name: "--prior-mean" if name == "mean" else f"--{name}" for name in NUMBERS}
    if given.experiment in ("1", "2"):
        own = f"belongs to --experiment auto or custom; experiment {given.experiment} has its own"
        for name, text in texts.items():
            options.require(not text, flags[name], text, own)
    numbers = {name: parse_numbers(flags[name], text) for name, text in texts.items()}
    return {name: value for name, value in numbers.items() if value is not None}


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
@options.with_settings(file="an analysis", given=[*_TABLE, *_TASK, *_MODELS, *_CHECKS])
def _fit_command(
    table: Data,
    given: options.Given,
    out: Annotated[Path | None, options.out("out/choices")] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Fit models of choice to every person, and find out which is the most frequent one and which predicts best.
    Prints the comparison with its warnings; writes a summary in words, weights trial by trial, coefficients of every
    person with errors (CSV) and figures.

    The table needs a person, a choice and a reward in every row. Columns, separators and arms are guessed, and the
    guess is printed; block, trial, RT, condition, offered (arms that could be taken) and group are used where they are
    there, and so is a JSON or TOML file next to the table (BIDS, Psych-DS), which may hold the task's numbers.
    """
    from ..choices.models import KNOWN, OF_PAPER
    from ..choices.report import describe_learner
    from ..choices.tasks import describe_task
    from ..runs.choices import ChoiceChecks, results_of, run_choices, write_choices
    from ..runs.compiled import keep_programs
    from ..runs.progress import parts
    from ..runs.store import prepare

    settings: ChoiceSettings = options.settle(given)
    named = _words(settings.primitives)
    for name in named:
        remedy = f"there are {', '.join(KNOWN)}"
        options.require(name in KNOWN or named == (OF_PAPER,), "--primitives", repr(name), remedy)
    # all that is wrong with the table is printed before anything is written
    choices = _read(table, settings)
    plan, arviz = _plan(choices, settings), settings.arviz
    options.require(not arviz or arviz in plan.everything, "--arviz", arviz, f"there are {', '.join(plan.everything)}")
    by = _effects(choices, settings.effects)
    folder = prepare(Path("out") / "choices" if out is None else out)
    read = (describe_task(choices.task), describe_learner(plan), *choices.said)
    if not json:  # before the fit: a wrong guess is noticed while there is time
        emit(json, {}, *read)
    keep_programs()
    checks = ChoiceChecks(settings.recover, settings.cross_validate, settings.ppc, by)
    with watching() as watch:
        fitting, writing = parts(watch, 3.0, 1.0)
        result = run_choices(choices, plan, checks, fitting)
        writing("writing and drawing", 0, 1)
        results = results_of(result, settings.empirical_bayes, settings.draw_people)
        files = write_choices(result, results, folder, arviz, command_line())
    made = {"task": choices.task, "link": plan.link, "eps": plan.eps, "primitives": tuple(plan.primitives),
            "models": tuple(plan.everything), "reference": plan.reference}  # fmt: skip
    notes = [*result.remarks[0 if json else len(read) :], *result.analysis.notes]
    record = {"settings": made, "out": folder, "files": files, "notes": notes}
    tell(json, results, record, f"Coefficients with their errors are in {folder / 'subjects.csv'}. Other models: "
         "--also stickiness,lapse,chance adds these to the comparison, --models names others.")  # fmt: skip


@choices.command(
    "check",
    short_help="What a table holds, and how it is read.",
    epilog=options.examples(
        "policychord choices check choices.csv", "policychord choices check data.tsv --columns subject=ppt --json"
    ),
)
@options.with_settings(file="an analysis", given=[*_TABLE, *_TASK])
def _check_command(table: Data, given: options.Given, json: Json = False) -> None:
    """Read a table of choices and print what it holds: people, trials, arms, columns that were guessed, and the task as
    it was measured. Nothing is fitted.
    """
    from ..choices.tasks import describe_task

    read = _read(table, options.settle(given))
    people = len(set(read.subject.tolist()))
    notes = [describe_task(read.task), *read.said, *read.notes]
    numbers = {"people": people, "trials": len(read.choice), "arms": read.task.arms, "left_out": read.left_out}
    head = f"{read.source}: {counted(people, 'person', 'people')}, {counted(len(read.choice), 'trial')}."
    emit(json, {"results": numbers, "notes": notes}, head, *notes,
         f"Next:\n  {options.repeat('policychord choices fit', [table], given)}")  # fmt: skip


def _read(table: Path, given: ChoiceSettings) -> "Choices":
    """The choices with their task, which is measured where it is not given."""
    from ..choices import TASKS, make_task, read_choices

    numbers, how = _task_numbers(given), _reading(given)  # a setting that nobody reads is an error
    task = make_task("own data", numbers) if given.experiment == "custom" else TASKS.get(given.experiment)
    return read_choices(table, task, how=how)


def _plan(choices: "Choices", given: ChoiceSettings) -> "Plan":
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


# ------------------------------------------------------------------------------------- simulate, fetch


_SIMULATED = options.offer(SimulatedChoices, {
    "experiment": Shown("TASK", "2, or custom where arms, variance, noise or mean are given"), "arms": "N",
    "variance": Shown("NUMBERS", "100 for each arm"), "noise": Shown("NUMBERS", "10"),
    "prior_mean": Shown("NUMBERS", "0"), "drift": Shown("NUMBERS", "0"), "decay": Shown("NUMBERS", "1"),
}, "The task")  # fmt: skip
_SIMULATED += options.offer(SimulatedChoices, {
    "model": "NAME", "coefficients": Shown("NUMBERS", "as in the public data, or 0.3 for rates"), "subjects": "N",
    "blocks": "N", "trials": "N",
}, "Who chooses")  # fmt: skip
_SIMULATED += options.offer(SimulatedChoices, {"seed": "N"})


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
@options.with_settings(given=_SIMULATED)
def _simulate_command(
    out: options.ToWrite,
    given: options.Given,
    json: Json = False,
) -> None:
    """Write the choices of simulated people, to try things on. They are not human data, and every analysis of them says
    so.
    """
    from ..choices import TASKS, cohort, make_task, synthetic
    from ..choices.data import as_csv, as_table
    from ..runs.store import write_text

    settings: SimulatedChoices = options.settle(given)
    experiment = "custom" if settings.own else settings.experiment
    means: dict[str, float] = {}
    size: dict[str, Any] = {name: getattr(settings, name) for name in ("blocks", "trials", "seed")}
    if not settings.own and settings.model == "Hybrid" and not settings.coefficients:
        choices = synthetic(experiment, settings.subjects, **size)
    else:
        own = {"experiment": "custom", "variance": settings.variance or ",".join(["100"] * settings.arms)}
        numbers = _task_numbers(settings.model_copy(update=own)) if settings.own else {}
        task = make_task("own data", numbers) if settings.own else TASKS[experiment]
        centre = _numbers("--coefficients", settings.coefficients)
        choices, spec, centre = cohort(task, settings.model, centre, settings.subjects, **size)
        means = dict(zip(spec.coefficients, centre, strict=True))
    write_text(out, as_csv(as_table(choices).assign(source=choices.source)))
    record = {
        "command": "choices simulate",
        "settings": {"experiment": experiment, "subjects": settings.subjects, "model": settings.model,
                     "coefficients": means, **size},
        "results": {"data": choices.source, "people": settings.subjects, "trials": len(choices.choice)},
        "out": out.parent, "files": [out], "notes": ["simulated people, not human data"],
    }  # fmt: skip
    who = counted(settings.subjects, "simulated person", "simulated people")
    emit(
        json,
        record,
        f"Wrote {counted(len(choices.choice), 'choice')} of {who} to {out}.",
        f"Next:\n  policychord choices fit {out}" + ("" if settings.own else f" --experiment {experiment}"),
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
