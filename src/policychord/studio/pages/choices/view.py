"""What can be set in the page, its controls, and what is shown as a program."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ....choices.compare import OURS, Plan, plan_models
from ....choices.data import TASKS, Task
from ....choices.learners import learner_of
from ....choices.models import KNOWN, Link
from ....choices.tables import parse_columns
from ...inputs import Input

MOST_PEOPLE = 300  # that a page is ready to wait for
EXPERIMENTS = {"experiment 1": "1", "experiment 2": "2"}
MEASURED = "measured"
# Names of models by the setting that asks for them; the first three need an uncertainty, which not every learner has.
MODELS = {
    "ucb": "UCB", "thompson": "Thompson", "hybrid": "Hybrid", "value": "Value", "sticky": "Value+stickiness",
    "lapsing": "Value+lapse", "delta": "delta", "two_rates": "two-rates",
}  # fmt: skip
UNCERTAIN = ("UCB", "Thompson", "Hybrid")
LEARNS_UNCERTAINTY = ("kalman", "bernoulli")
Learner = Literal["kalman", "delta", "two-rates", "bernoulli", "none"]


class ChoicesView(BaseModel):
    """Whose choices are explained, by what, and who is looked at; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    experiment: Literal["experiment 1", "experiment 2", "measured", "custom"] = Field(
        default="experiment 2",
        description="1: the second arm always pays zero. 2: two uncertain arms. measured: from the rewards of your "
        "table, with as many arms as it has. custom: other arms, all alike.",
    )
    columns: str = Field(default="", max_length=400, description="What an uploaded table calls our columns.")
    learner: Learner = Field(
        default="kalman",
        description="How people learn. kalman: means with uncertainty. delta: a learning rate for each person. "
        "two-rates: one for gains and one for losses. bernoulli: wins and losses counted. none: not at all.",
    )
    ucb: bool = Field(default=True, description="Value, and a bonus for uncertain arms. Needs an uncertainty.")
    thompson: bool = Field(default=True, description="More random where uncertainty is high. Needs an uncertainty.")
    hybrid: bool = Field(default=True, description="Both. Needs an uncertainty.")
    value: bool = Field(default=True, description="The arm with the higher expected value.")
    sticky: bool = Field(default=False, description="Value, and an inclination to take the same arm again.")
    lapsing: bool = Field(default=False, description="Value, and any arm in a share of the trials.")
    delta: bool = Field(default=False, description="A delta rule with a learning rate of its own for each person.")
    two_rates: bool = Field(default=False, description="The same with one rate for gains and one for losses.")
    arms: int = Field(default=2, ge=2, description="How many arms there are to choose from.")
    variance: float = Field(default=100.0, gt=0, description="How much an arm's value varies from block to block.")
    noise: float = Field(default=10.0, gt=0, description="Variance of a reward around its arm's value.")
    link: Link = Field(default="probit", description="From utilities to probabilities; more than two arms need logit.")
    eps: float = Field(default=0.01, gt=0, description="Temperature (Table S2).")
    exploit: bool = Field(default=True, description="Take the arm that seems best.")
    uncertainty: bool = Field(default=True, description="Take the arm of which least is known.")
    risk: bool = Field(default=True, description="Avoid the arm of which least is known.")
    repeat: bool = Field(default=False, description="Take the same arm again.")
    random: bool = Field(default=False, description="Take any arm.")
    subjects: int = Field(default=20, ge=3, description="People who are simulated.")
    blocks: int = Field(default=20, ge=1, description="Of a simulated participant (Table S2).")
    trials: int = Field(default=10, ge=1, description="Of a block (Table S2).")
    seed: int = Field(default=0, ge=0, description="Of all random draws.")
    participant: int = Field(default=1, ge=1, description="Whose weights are shown, by place in the list.")
    moment: int = Field(default=1, ge=1, description="The trial that is looked at, all blocks counted through.")
    only_block: bool = Field(default=False, description="Show the block of that trial alone.")

    @model_validator(mode="after")
    def _fits(self) -> "ChoicesView":
        if not self.primitives:
            raise ValueError("no primitive is left: switch on at least one of " + ", ".join(KNOWN) + ".")
        if not self.models:
            raise ValueError("no model is left that this learner can serve: switch on Value, or a delta rule.")
        parse_columns(self.columns)
        if self.link == "probit" and self.arms > 2:
            raise ValueError(f"link = probit with {self.arms} arms: it is there for two. Choose logit first.")
        return self

    @property
    def primitives(self) -> tuple[str, ...]:
        return tuple(name for name in KNOWN if getattr(self, name))

    @property
    def models(self) -> tuple[str, ...]:
        """What is compared: of the models that are on, those that the learner can serve, and the composed one."""
        on = [name for setting, name in MODELS.items() if getattr(self, setting)]
        served = [name for name in on if self.learner in LEARNS_UNCERTAINTY or name not in UNCERTAIN]
        return (*served, OURS) if served else ()

    @property
    def reference(self) -> str:
        """What the composed model comes close to: the Hybrid, or else the first model."""
        return "Hybrid" if "Hybrid" in self.models else self.models[0]

    def plan(self, task: Task) -> Plan:
        """The models of this view for a task."""
        own = None if self.learner == "kalman" else learner_of(self.learner)
        return plan_models(
            task, self.link, self.eps, self.primitives, models=self.models, reference=self.reference, learner=own
        )

    @property
    def task(self) -> Task | None:
        """What people know of the arms; None if it is to be measured."""
        if self.experiment == MEASURED:
            return None
        if self.experiment == "custom":
            return Task("own data", (self.variance,) * self.arms, self.noise)
        return TASKS[EXPERIMENTS[self.experiment]]


TASK, OWN, LEARNED, MODEL = "Task", "Own task", "Learner and models", "Composed model"
PEOPLE, WATCH = "Simulated people", "Looking at"
INPUTS = (
    Input("experiment", "Experiment", TASK),
    Input("arms", "Arms", OWN, 2, 10, 1),
    Input("variance", "Spread of values", OWN, 1.0, 1000.0, 1.0, "points²", "log"),
    Input("noise", "Noise of rewards", OWN, 0.1, 1000.0, 0.1, "points²", "log"),
    Input("columns", "Columns", TASK),
    Input("learner", "Learner", LEARNED),
    Input("ucb", "UCB", LEARNED, source="paper"),
    Input("thompson", "Thompson", LEARNED, source="paper"),
    Input("hybrid", "Hybrid", LEARNED, source="paper"),
    Input("value", "Value", LEARNED, source="paper"),
    Input("sticky", "Value with stickiness", LEARNED),
    Input("lapsing", "Value with a lapse", LEARNED),
    Input("delta", "Delta rule", LEARNED),
    Input("two_rates", "Delta rule with two rates", LEARNED),
    Input("eps", "Temperature", MODEL, 0.001, 1.0, 0.001, "nats", "log", "paper"),
    Input("exploit", "Exploit", MODEL, source="paper"),
    Input("uncertainty", "Seek uncertainty", MODEL, source="paper"),
    Input("risk", "Avoid risk", MODEL, source="paper"),
    Input("repeat", "Repeat", MODEL, source="paper"),
    Input("random", "Random", MODEL, source="paper"),
    Input("link", "Link", MODEL, source="paper"),
    Input("subjects", "People", PEOPLE, 3, 100, 1),
    Input("blocks", "Blocks", PEOPLE, 1, 40, 1, source="paper"),
    Input("trials", "Trials of a block", PEOPLE, 1, 40, 1, source="paper"),
    Input("seed", "Seed", PEOPLE, 0, 999, 1),
    Input("participant", "Participant", WATCH, 1, MOST_PEOPLE, 1),
    Input("moment", "Trial", WATCH, 1, 100_000, 1),
    Input("only_block", "Only its block", WATCH),
)
OF_COHORT = tuple(control.name for control in INPUTS if control.group == PEOPLE)
OF_CUSTOM = tuple(control.name for control in INPUTS if control.group == OWN)
OWN_DEFAULTS = {name: ChoicesView.model_fields[name].default for name in OF_CUSTOM}


def choices_snippet(view: ChoicesView, file: str, person: int | str) -> str:
    """What is shown, in Python; `file` is the name of an uploaded table, or empty."""
    known = EXPERIMENTS.get(view.experiment)
    task = f"pc.choices.TASKS[{known!r}]" if known else "None" if view.task is None else f"pc.choices.{view.task!r}"
    size = f"blocks={view.blocks}, trials={view.trials}"
    if file:
        how = f", how=pc.choices.Reading({parse_columns(view.columns)!r})" if view.columns else ""
        line = f"choices = pc.choices.read_choices({file!r}, {task}{how})"
    elif known:
        line = f"choices = pc.choices.synthetic({known!r}, {view.subjects}, {size}, seed={view.seed})"
    else:
        line = (
            f'group = pc.choices.GROUPS["2"]["Hybrid"]\n'
            f"people = pc.choices.draw_people(group, {view.subjects}, ({view.seed}, 2, 0))\n"
            f'model = pc.choices.classic("Hybrid", {view.link!r})\n'
            f"choices = pc.choices.simulate_choices({task}, model, people, {size}, seed=({view.seed}, 2, 1))"
        )
    own = "" if view.learner == "kalman" else f", learner=pc.choices.learner_of({view.learner!r})"
    how = f"{view.link!r}, {view.eps!r}, {view.primitives!r}, models={view.models!r}, reference={view.reference!r}{own}"
    return f"""\
import policychord as pc

{line}{"" if file else "  # simulated people, not human data"}
plan = pc.choices.plan_models(choices.task, {how})
analysis = pc.choices.analyse(choices, plan=plan)
print(pc.choices.model_table(analysis).to_string(index=False))
print(pc.choices.verdict(analysis))

person = analysis.trials.subject == {person!r}
print(analysis.ours.primitives)
print(analysis.ours.composition.weights[person].round(3))
"""
