"""A plan of a fit: which family, which parameters are free, what was observed; and its page."""

import importlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator, validate_call

from .._types import Watch
from ..inference import figures, findings, to_datatree
from ..inference.decisions import AGENT, Family, Observations, family_of
from ..inference.families import FAMILIES, of_choices
from ..inference.findings import comparison_rows, sentence_of
from ..inference.fits import Fit, fit
from ..inference.optimise import Optimum
from ..inference.parameters import Normal, free_names
from ..inference.recovery import Design, Information, Recovery, information, recover
from ..wording import in_words
from .page import RECORD, Picture, Results, csv_of, write_results
from .progress import parts
from .store import check_text, plain, prepare, read_plan, write_dataset

FEW = 1000  # decisions at which the information is found


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SimulationPlan(_Checked):
    """Decisions of a simulated agent, where there are no data."""

    decisions: int = Field(default=1000, ge=10, le=1_000_000)
    theta: dict[str, float | list[float]] = Field(default={}, description="the truth; the others at their defaults")


class RecoveryPlan(_Checked):
    """Simulate and refit, many times."""

    repeats: int = Field(default=20, ge=2, le=10_000)
    profiles: tuple[str, ...] = Field(default=(), description="free numbers whose profile is found, such as 'ln eps'")


class _PriorPlan(_Checked):
    """A normal prior on the unconstrained scale: of ln eps, of log ratios of a simplex, of the logit of a share."""

    mean: float = Field(allow_inf_nan=False)
    sd: float = Field(gt=0, allow_inf_nan=False)


class FitPlan(_Checked):
    """A fit: a family, what is free, and either data or a simulation."""

    family: Literal["flock", "bandit", "quadrotor", "python"]
    options: dict[str, bool | int | float | str | list[float]] = Field(default={}, description="of the family")
    free: tuple[str, ...] = Field(default=(), description="parameters; those that the family recommends unless named")
    fixed: dict[str, float | list[float]] = Field(default={}, description="values of others")
    data: str | None = Field(default=None, description="a Zarr folder, or a CSV file of choices")
    simulate: SimulationPlan | None = None
    recover: RecoveryPlan | None = None
    hold_out: Literal["auto", "subject", "block", "time"] = Field(
        default="auto", description="what cross-validation keeps together"
    )
    method: Literal["ml", "map", "group"] = Field(
        default="ml", description="maximum likelihood, with the priors below, or empirical Bayes over a group"
    )
    prior: dict[str, _PriorPlan] = Field(default={}, description="of free parameters, for method = 'map'")
    starts: int = Field(default=8, ge=1, le=1000)
    draws: int = Field(default=100, ge=4, le=10_000, description="of the Laplace approximation, for ArviZ")
    seed: int = Field(default=0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _one_source(self) -> "FitPlan":
        if self.family != "python" and (self.data is None) == (self.simulate is None):
            raise ValueError("a plan of a fit has either data = '...' or a [simulate] table.")
        if self.prior and self.method != "map":
            raise ValueError("[prior] is used by method = 'map' only: add that, or leave the priors out.")
        return self


class FitResult(NamedTuple):
    """What a plan gave."""

    fit: Fit
    results: Results
    files: list[Path]


def read_fit_plan(path: Path) -> FitPlan:
    """A plan from a TOML file; what is wrong with it is named."""
    return read_plan(path, FitPlan)


def _design_of(plan: FitPlan, entry: str | None) -> Design:
    """The family of a plan. A function of the user's own is imported only if the command line names it."""
    if (plan.family == "python") != (entry is not None):
        raise ValueError(
            "family = 'python' and --python MODULE:FUNCTION belong together: a plan is data, so whoever types the "
            "command names the code."
        )
    if entry is None:
        made: Any = FAMILIES[plan.family]
    else:
        module, _, name = entry.partition(":")
        try:
            made = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"--python {entry}: it could not be imported ({error}).") from None
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in plan.options.items()}
    try:
        design = made(**options) if entry else validate_call(made)(**options)
    except ValidationError as error:
        raise ValueError(f"options: {in_words(error, part_of='an option')} {_options(made)}") from None
    except TypeError as error:
        raise ValueError(f"options = {plan.options}: {error}. {_options(made)}") from None
    if not isinstance(design, Design) or not isinstance(design.family, Family):
        raise ValueError(f"{entry or plan.family} gave a {type(design).__name__}: return an inference.Design.")
    return design


def _options(made: Callable[..., Any]) -> str:
    return f"Its options: {', '.join(inspect.signature(made).parameters) or 'none'}."


def _observed(plan: FitPlan, design: Design, beside: Path) -> Observations:
    """The decisions of a plan: read from data, or simulated."""
    if plan.data is None:
        how = plan.simulate or SimulationPlan()
        return design.simulate(how.theta, how.decisions, plan.seed)
    if design.read is None:
        raise ValueError(f"data = {plan.data!r}: the design has no function `read`: give it one, or use [simulate].")
    path = Path(plan.data) if Path(plan.data).is_absolute() else beside / plan.data
    if not path.exists():
        raise ValueError(f"data = {plan.data!r}: there is no {path}.")
    if path.suffix == ".csv":
        from ..choices.data import Task, read_choices
        from ..choices.learners import believe

        variance: Any = plan.options.get("variance", [100.0, 100.0])  # `_design_of` has looked at it
        return of_choices(believe(read_choices(path, Task("own data", tuple(variance), 10.0))))
    import xarray as xr

    try:  # the third format is what we write, and its codecs are data: the second one knows some that unpickle
        with xr.open_zarr(path, zarr_format=3, consolidated=False) as opened:
            dataset = opened.load()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"data = {plan.data!r}: {path} is no readable Zarr folder of the third format ({type(error).__name__}): "
            "pass data that policychord wrote, or a table (.csv)."
        ) from None
    return design.read(dataset)


def pose_fit(plan: FitPlan, entry: str | None = None) -> tuple[Design, tuple[str, ...]]:
    """(the family of a plan with its priors, the names of its free numbers), or a sentence about what is wrong."""
    design = _design_of(plan, entry)
    known = {parameter.name: parameter for parameter in design.family.parameters}
    if unknown := sorted(set(plan.prior) - set(known)):
        raise ValueError(f"prior.{unknown[0]}: the family {design.family.name} declares {', '.join(known)}.")
    priors = {name: known[name]._replace(prior=Normal(prior.mean, prior.sd)) for name, prior in plan.prior.items()}
    design = design._replace(family=design.family._replace(parameters=tuple((known | priors).values())))
    numbers = free_names(family_of(design.family, plan.free or None, plan.fixed)[1])
    if plan.recover and (unknown := sorted(set(plan.recover.profiles) - set(numbers))):
        raise ValueError(f"recover.profiles has {unknown[0]!r}: the free numbers are {', '.join(numbers)}.")
    return design, numbers


def run_fit(
    plan: FitPlan, out: Path, watch: Watch, *, entry: str | None = None, beside: Path = Path(), resume: bool = False,
    command: str = "",
) -> FitResult:  # fmt: skip
    """Fit, judge, draw and write: a summary, the labelled tree, figures and a page.

    Ctrl-C during the fit ends it with the best so far, which is written; `resume` goes on from what is in `out`.
    """
    design, numbers = pose_fit(plan, entry)
    free = plan.free or None
    seen = _observed(plan, design, beside)
    before = _earlier(plan, out / RECORD, len(numbers)) if resume else None
    out = prepare(out)
    first, *stages, recovering, drawing = parts(watch, 2.0, 2.0, 4.0, 6.0 * (plan.recover is not None), 1.0)
    named = dict(zip(("profiles", "comparing"), stages, strict=True))

    def progress(words: str, done: int, total: int) -> None:
        named.get(words.partition(" ")[0].rstrip(":"), first)(words, done, total)

    fitted = fit(
        design.family, seen, free, plan.fixed, method=plan.method, starts=plan.starts, hold_out=plan.hold_out,
        seed=plan.seed, progress=progress, resume=before,
    )  # fmt: skip
    recovering("what the experiment can tell", 0, 1)
    theta = {name: value.tolist() for name, value in fitted.theta.items()} | plan.fixed
    known = information(design.family, theta, jax.tree_util.tree_map(lambda leaf: leaf[:FEW], seen), free=free)
    again = None
    if plan.recover is not None and fitted.complete:
        defaults = {parameter.name: parameter.start for parameter in design.family.parameters}
        truth = theta if plan.simulate is None else {**defaults, **plan.fixed, **plan.simulate.theta}
        again = recover(
            design.family, truth, design.simulate, plan.recover.repeats, decisions=min(fitted.decisions, 2000),
            free=free, profiles=plan.recover.profiles, seed=plan.seed + 1, progress=recovering,
        )  # fmt: skip
    drawing("writing and drawing", 0, 1)
    results = page_of(plan, design, fitted, known, again)
    files = write_results(out, results, command)
    tree = write_dataset(out / "fit.zarr", to_datatree(fitted, plan.draws, plan.seed))
    return FitResult(fitted, results, [*files, tree])


def _earlier(plan: FitPlan, path: Path, numbers: int) -> Optimum:
    """Where an earlier fit of the same plan was when it ended, from what it wrote."""
    check_text(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        same = FitPlan.model_validate(record["plan"]) == plan
        so_far = {name: np.array(record["optimum"][name], dtype=float) for name in ("z", "starts", "tried", "heights")}
        value, evaluations = float(record["optimum"]["log_posterior"]), int(record["optimum"]["evaluations"])
    except FileNotFoundError:
        raise ValueError(f"--resume: there is no {path}: leave --resume out, or name the folder by --out.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"--resume: {path} is not what a fit wrote: leave --resume out.") from None
    if not same:
        raise ValueError(f"--resume: {path} is of another plan: leave --resume out, or give the plan it was made with.")
    starts = so_far["heights"].size
    shapes = {"z": (numbers,), "starts": (starts, numbers), "tried": (starts, numbers), "heights": (starts,)}
    if any(so_far[name].shape != shape for name, shape in shapes.items()):
        raise ValueError(f"--resume: {path} has optimisation runs of another shape: leave --resume out.")
    return Optimum(z=so_far["z"], log_posterior=value, log_likelihood=value, starts=so_far["starts"],
                   tried=so_far["tried"], heights=so_far["heights"], evaluations=evaluations, converged=False,
                   complete=False)  # fmt: skip


def page_of(plan: FitPlan, design: Design, fitted: Fit, known: Information, again: Recovery | None) -> Results:
    """What stands on the page of a fit, and in its files."""
    rows, comparison = findings.estimate_rows(fitted), fitted.comparison
    if comparison is None:
        columns = ["parameter", "estimate", "95% interval", "verdict"]
        compared = [[row["parameter"], f"{row['estimate']:.4g}", findings.interval_text(row), row["verdict"]]
                    for row in rows]  # fmt: skip
    else:
        columns, compared = findings.comparison_table(comparison)
    record = {
        "plan": plan.model_dump(), "decisions": fitted.decisions, "log_likelihood": fitted.log_likelihood,
        "bic": fitted.bic, "held_out": fitted.held_out, "estimates": rows,
        "models": [] if comparison is None else comparison_rows(comparison), "sentence": sentence_of(fitted),
        "verdicts": [verdict._asdict() for verdict in fitted.verdicts], "people": findings.person_rows(fitted),
        "notes": fitted.notes, "complete": fitted.complete, "optimum": plain(fitted.optimum, finite=True),
    }  # fmt: skip
    simulated = "simulated decisions of known agents" if plan.data is None else plan.data
    card = f"{fitted.decisions:,} decisions: {simulated}. Family {design.family.name}: {design.description}."
    sentences = [sentence_of(fitted), *([] if comparison is None else findings.describe_comparison(comparison))]
    return Results(
        kind="fit", source=plan.data or f"{design.family.name}, simulated", verdict=findings.headline(fitted),
        columns=columns, rows=compared, sentences=[*dict.fromkeys(sentences)], warnings=[*fitted.notes],
        estimates=("the composed agent", findings.describe_estimates(fitted)), card=card,
        details=_details(design, fitted, known, again), pictures=_pictures(fitted, known, again),
        tables={"estimates.csv": csv_of(rows)}, record=record,
    )  # fmt: skip


def _pictures(fitted: Fit, known: Information, again: Recovery | None) -> dict[str, Picture]:
    """Figures, those of the verdict first."""
    shared = "" if fitted.group is None else " that all people share"
    pictures: dict[str, Picture] = {}
    if fitted.comparison is not None and AGENT in fitted.comparison.names:
        pictures["models"] = (figures.draw_differences, (fitted.comparison, AGENT), "How other models predict held-out "
                              "decisions, against the composed agent, with bars of two standard errors. Grey: the "
                              "difference is not established.")  # fmt: skip
    pictures |= {
        "estimates": (figures.draw_estimates, (fitted,), f"Estimates{shared} with their 95% intervals. An arrow is an "
                      "open end: the data do not say where it stops."),
        "weights": (figures.draw_weights, (fitted,), "Weights of the primitives over all decisions, each certified."),
        "identifiability": (
            figures.draw_correlations, (known.names, known.correlation, known.needed),
            "What the experiment can tell at the estimates, from the Fisher information of its situations alone. "
            "Bold: pairs that the data hardly distinguish.",
        ),
    }  # fmt: skip
    if fitted.group is not None:
        pictures["people"] = (figures.draw_people, (fitted,), "Everybody's estimates, shrunk towards the group's mean.")
    if again is not None:
        pictures["recovery"] = (figures.draw_recovery, (again,), "Estimates of simulated experiments around the truth.")
    return pictures


def _details(design: Design, fitted: Fit, known: Information, again: Recovery | None) -> list[tuple[str, str]]:
    pairs = "".join(
        f"\n\n**The data hardly distinguish {a} and {b}** (correlation {r:+.2f})." for a, b, r in known.pairs
    )
    rows = findings.table(findings.INFORMATION_COLUMNS, findings.information_rows(known))
    words = [("What this experiment can tell", "Decisions for an error of .1 on the unconstrained scale, from the "
              f"situations alone ({design.description}).\n\n{rows}{pairs}")]  # fmt: skip
    if again is not None:
        rows = findings.table(findings.RECOVERY_COLUMNS, findings.recovery_rows(again))
        words.append(
            ("Recovery", f"{len(again.estimates)} simulated experiments of {again.decisions} decisions.\n\n{rows}")
        )
    return words
