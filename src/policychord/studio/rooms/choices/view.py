"""What can be set in the room, and its controls."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ....studies.bandit.primitives import KNOWN
from ....studies.bandit.settings import TASKS, Task
from ...controls import Control
from .fitting import Link
from .reading import MOST_PEOPLE

EXPERIMENTS = {"experiment 1": "1", "experiment 2": "2"}


class ChoicesView(BaseModel):
    """Whose choices are explained, by what, and who is looked at; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    experiment: Literal["experiment 1", "experiment 2", "custom"] = Field(
        default="experiment 2",
        description="1: the second arm always pays zero. 2: two uncertain arms. custom: other arms, all alike.",
    )
    arms: int = Field(default=2, ge=2, description="How many arms there are to choose from.")
    variance: float = Field(default=100.0, gt=0, description="How much an arm's value varies from block to block.")
    noise: float = Field(default=10.0, gt=0, description="Variance of a reward around its arm's value.")
    link: Link = Field(default="probit", description="From utilities to probabilities; more than two arms need logit.")
    exploit: bool = Field(default=True, description="Take the arm that seems best.")
    uncertainty: bool = Field(default=True, description="Take the arm of which least is known.")
    risk: bool = Field(default=True, description="Avoid the arm of which least is known.")
    repeat: bool = Field(default=False, description="Take the same arm again.")
    random: bool = Field(default=False, description="Take any arm.")
    participant: int = Field(default=1, ge=1, description="Whose weights are shown, by place in the list.")
    moment: int = Field(default=1, ge=1, description="The trial that is looked at, all blocks counted through.")
    only_block: bool = Field(default=False, description="Show the block of that trial alone.")

    @model_validator(mode="after")
    def _fits(self):
        if not self.primitives:
            raise ValueError("no primitive is left: switch on at least one of " + ", ".join(KNOWN) + ".")
        if self.link == "probit" and self.arms > 2:
            raise ValueError(f"link = probit with {self.arms} arms: it is there for two. Choose logit first.")
        return self

    @property
    def primitives(self) -> tuple[str, ...]:
        return tuple(name for name in KNOWN if getattr(self, name))

    @property
    def task(self) -> Task:
        if self.experiment == "custom":
            return Task("own data", (self.variance,) * self.arms, self.noise)
        return TASKS[EXPERIMENTS[self.experiment]]


TASK, OWN, MODEL, PEOPLE, WATCH = "Task", "Own task", "Composed model", "Simulated people", "Looking at"
CONTROLS = (
    Control("experiment", "Experiment", TASK),
    Control("arms", "Arms", OWN, 2, 10, 1),
    Control("variance", "Spread of values", OWN, 1.0, 1000.0, 1.0, "points²", "log"),
    Control("noise", "Noise of rewards", OWN, 0.1, 1000.0, 0.1, "points²", "log"),
    Control("eps", "Temperature", MODEL, 0.001, 1.0, 0.001, "nats", "log", "paper"),
    Control("exploit", "Exploit", MODEL, source="paper"),
    Control("uncertainty", "Seek uncertainty", MODEL, source="paper"),
    Control("risk", "Avoid risk", MODEL, source="paper"),
    Control("repeat", "Repeat", MODEL, source="paper"),
    Control("random", "Random", MODEL, source="paper"),
    Control("link", "Link", MODEL, source="paper"),
    Control("subjects", "People", PEOPLE, 3, 100, 1),
    Control("blocks", "Blocks", PEOPLE, 1, 40, 1, source="paper"),
    Control("trials", "Trials of a block", PEOPLE, 1, 40, 1, source="paper"),
    Control("seed", "Seed", PEOPLE, 0, 999, 1),
    Control("participant", "Participant", WATCH, 1, MOST_PEOPLE, 1),
    Control("moment", "Trial", WATCH, 1, 100_000, 1),
    Control("only_block", "Only its block", WATCH),
)
OF_VIEW = set(ChoicesView.model_fields)
OF_COHORT = tuple(control.name for control in CONTROLS if control.group == PEOPLE)
OF_CUSTOM = tuple(control.name for control in CONTROLS if control.group == OWN)
