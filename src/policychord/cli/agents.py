"""`policychord agents`: policies of one's own, composed: try, check, weigh."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, Field

from .._names import EPS, SEED
from . import options
from .app import Pages, app
from .options import Shown
from .output import Json, command_line, counted, emit, table, tell
from .progress import watching

agents = typer.Typer(
    cls=Pages,
    help="Compose policies of your own. A table has a row for each state and action: (state,) action, cost, and a "
    "column of probabilities for each of two to five policies. Which weights are best in every state, how surely, and "
    "does composing pay?",
    short_help="Weigh policies of your own, in a table with a cost.",
    epilog=options.examples(
        "policychord agents simulate policies.csv", "policychord agents check policies.csv",
        "policychord agents fit policies.csv --eps 0.1",
    ),
)  # fmt: skip
app.add_typer(agents, name="agents", no_args_is_help=True)
Table = Annotated[Path, typer.Argument(help="The policies: a CSV with a header.", metavar="POLICIES.csv")]


class SimulatedPolicies(BaseModel):
    """Policies that each know a stretch of the states."""

    policies: Annotated[int, Shown("N")] = Field(default=3, ge=2, le=5, description="how many policies")
    states: Annotated[int, Shown("N")] = Field(default=12, ge=1, le=200, description="how many states")
    actions: Annotated[int, Shown("N")] = Field(default=5, ge=2, le=200, description="how many actions")
    seed: Annotated[int, Shown("N")] = Field(default=0, ge=0, description=SEED)


class Composition(BaseModel):
    """How policies are composed."""

    eps: Annotated[float, Shown("NUMBER")] = Field(default=0.1, ge=1e-9, le=1e9, description=EPS)
    cost_unit: Annotated[float, Shown("NUMBER")] = Field(
        default=1.0, gt=0, le=1e9, description="times which costs count: they are weighed against entropies, in nats"
    )
    prior: Annotated[tuple[float, ...], Shown("SHARES", "even")] = Field(
        default=(), description="shares of the policies where the cost does not decide"
    )


@agents.command(
    "simulate",
    short_help="Write policies and a cost, to try things on.",
    epilog=options.examples(
        "policychord agents simulate policies.csv", "policychord agents simulate five.csv --policies 5 --states 40"
    ),
)
@options.with_settings(given=options.offer(SimulatedPolicies))
def _simulate_command(out: options.ToWrite, given: options.Given, json: Json = False) -> None:
    """Write a table of policies that each know a stretch of the states, and a cost."""
    from ..runs.policies import simulate_policies, write_policies

    settings: SimulatedPolicies = options.settle(given)
    file = write_policies(out, simulate_policies(**settings.model_dump()))
    emit(json, {"settings": settings, "files": [file]},
         f"Wrote {counted(settings.policies, 'policy', 'policies')} in {counted(settings.states, 'state')} to {out}.",
         f"Next: policychord agents fit {out}")  # fmt: skip


@agents.command(
    "check",
    short_help="What a table of policies holds: states, actions, costs.",
    epilog=options.examples(
        "policychord agents check policies.csv", "policychord agents check policies.csv --json"
    ),
)  # fmt: skip
def _check_command(policies: Table, json: Json = False) -> None:
    """Read a table of policies and print what it holds: what is wrong with it is named line by line."""
    from ..core.objective import problem
    from ..runs.policies import describe_table, open_policies, warnings_of

    read = open_policies(policies)
    notes = warnings_of(read, problem(pi=read.pi, action_cost=read.cost, eps=1.0))
    emit(json, {"results": dict(describe_table(read)), "notes": notes},
         table(policies.name, ("", ""), describe_table(read)), *(f"Warning: {note}" for note in notes),
         f"Next: policychord agents fit {policies}")  # fmt: skip


@agents.command(
    "fit",
    short_help="The best weights in every state, and does composing pay?",
    epilog=options.examples(
        "policychord agents fit policies.csv", "policychord agents fit policies.csv --eps 0.01 --cost-unit 5"
    ),
)
@options.with_settings(given=options.offer(Composition))
def _fit_command(
    policies: Table,
    given: options.Given,
    out: Annotated[Path | None, options.out("out/agents")] = None,
    json: Json = False,
) -> None:
    """Find the weights that minimise the objective in every state, with a proof of how close they are, and compare the
    expected cost with each policy alone, a fixed mixture and the cheapest policy. Writes a page, weights and figures.
    """
    from ..runs.page import write_results
    from ..runs.policies import compose_table, open_policies, results_of
    from ..runs.store import prepare

    settings: Composition = options.settle(given)
    read = open_policies(policies)
    target = prepare(Path("out") / "agents" if out is None else out)
    with watching() as watch:
        watch("weighing the policies in every state", 0, 2)
        results = results_of(compose_table(read, settings.eps, settings.cost_unit, settings.prior), policies.name)
        watch("writing and drawing", 1, 2)
        files = write_results(target, results, command_line())
    tell(json, results, {"settings": settings, "out": target, "files": files})
