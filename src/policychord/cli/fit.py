"""`policychord fit`: from decisions back to the parameters of a composed agent."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .app import app
from .interrupt import INTERRUPTED, ends_by_itself
from .output import Json, command_line, tell
from .progress import watching


@app.command(
    "fit",
    short_help="From behaviour back to temperature, prior and costs.",
    epilog=options.examples(
        "policychord fit plans/fit_bandit.toml",
        "policychord fit plans/fit_flock.toml --out out/flock-fit --json",
        "policychord fit mine.toml --python my_study:design",
    ),
)
def _fit_command(
    plan: Annotated[Path, typer.Argument(help="What to fit, as a TOML file.", metavar="PLAN.toml", dir_okay=False)],
    python: Annotated[
        str | None,
        options.option(
            "A function of your own, for plans with family = 'python', in this folder or installed. It is imported and "
            "called: name only code that you trust.", "MODULE:FUNCTION",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from an interrupted fit of the same plan, in the same folder.")
    ] = False,
    out: Annotated[Path | None, options.out("out/fit")] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Fit a family of composed agents to decisions: estimates with errors, profile intervals and a verdict for each
    parameter; other models on the same decisions; and whether gating is needed at all. Writes a page, a summary,
    figures and a labelled tree that ArviZ reads.

    A plan names a family (flock, bandit, quadrotor or python), what is
    free and fixed, and data or a simulation; two are in plans/. Ctrl-C ends the fit and writes the best so far;
    Ctrl-C again ends at once.
    """
    from ..runs.fit import read_fit_plan, run_fit

    fit_plan = read_fit_plan(plan)
    if python is not None and (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)  # behind everything installed, so that no file of the folder hides a package
    target = Path("out") / "fit" if out is None else out
    ends_by_itself("interrupted; the best so far is written, if there is one. Ctrl-C again ends at once.")
    with watching() as watch:
        result = run_fit(fit_plan, target, watch, entry=python, beside=plan.parent, resume=resume,
                         command=command_line())  # fmt: skip
    hint = () if result.fit.complete else ("The same command with --resume goes on.",)
    tell(json, result.results, {"settings": fit_plan, "out": target, "files": result.files}, *hint)
    if not result.fit.complete:
        raise typer.Exit(INTERRUPTED)
