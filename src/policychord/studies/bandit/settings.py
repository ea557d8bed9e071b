"""What the bandit study may be told: the tasks, the temperature, the sizes of its validations."""

from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ...stats.glm import Link

LONGEST_RT = 20_000.0  # ms; slower trials are left out, as in the original analysis


class Task(NamedTuple):
    """What participants were told of the arms: the variance of each arm's value, and that of a reward (Table S2)."""

    name: str
    variance: tuple[float, ...]
    noise: float = 10.0

    @property
    def arms(self) -> int:
        return len(self.variance)


TASKS = {
    "1": Task("Experiment 1", (10.0, 0.0)),  # the second arm always pays zero
    "2": Task("Experiment 2", (100.0, 100.0)),
}


class Group(NamedTuple):
    """Normal distributions of a model's coefficients over people."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]


# Means over participants of the probit fits to the public data, rounded. The sds are somewhat smaller than those of the
# fits, which hold estimation noise too; how much smaller is a choice. A composed cohort has the Hybrid's.
GROUPS = {
    "1": {
        "UCB": Group((1.3, 0.6), (0.8, 0.5)),
        "Thompson": Group((1.5,), (0.9,)),
        "Hybrid": Group((2.1, 0.5), (1.2, 0.45)),
        "Value": Group((0.9,), (0.5,)),
    },
    "2": {
        "UCB": Group((0.25, 0.25), (0.1, 0.2)),
        "Thompson": Group((0.86,), (0.35,)),
        "Hybrid": Group((1.0, 0.16), (0.45, 0.2)),
        "Value": Group((0.17,), (0.06,)),
    },
}
SUBJECTS = {"1": 45, "2": 44}


class BanditSettings(BaseModel):
    """Sizes, seed and data of the bandit study; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    data: Path | None = Field(default=None, description="folder with data1.csv and data2.csv; None is synthetic")
    eps: float = Field(default=0.01, gt=0, description="temperature (Table S2)")
    temperatures: tuple[float, ...] = Field(
        default=(0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0), description="that are tried (Fig. S5b)"
    )
    links: tuple[Link, ...] = Field(default=("probit", "logit"), description="from utilities to probabilities")
    experiments: tuple[Literal["1", "2"], ...] = Field(default=("1", "2"), description="of the public data")
    folds: int = Field(default=3, ge=2, description="of the cross-validation over participants")
    splits: int = Field(default=20, ge=1, description="random splits into folds")
    recovery_cohorts: int = Field(default=6, ge=1, description="simulated cohorts for each generating model")
    own_likelihood: bool = Field(default=True, description="also fit the composed model by its own likelihood")
    subjects: int | None = Field(default=None, ge=3, description="of a simulated cohort; as many as in the data")
    blocks: int = Field(default=20, ge=1, description="of a simulated participant (Table S2)")
    trials: int = Field(default=10, ge=1, description="of a block (Table S2)")

    def cohort_size(self, experiment: str) -> int:
        """How many people are simulated."""
        return SUBJECTS[experiment] if self.subjects is None else self.subjects

    @property
    def synthetic(self) -> bool:
        return self.data is None

    @property
    def source(self) -> str:
        """What every output says about where the choices came from."""
        return "synthetic cohort" if self.synthetic else "human data (Gershman 2018)"
