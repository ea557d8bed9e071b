"""What the bandit study may be told: the temperature, the data, the sizes of its validations."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from policychord.choices import SUBJECTS, SYNTHETIC, Link, find_data

# The claims compare both experiments of the public data and both links, so neither is a setting.
EXPERIMENTS = ("1", "2")
LINKS: tuple[Link, ...] = ("probit", "logit")


class BanditSettings(BaseModel):
    """Sizes, seed and data of the bandit study; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    data: Path | None = Field(default=None, description="folder with data1.csv and data2.csv; None is synthetic")
    eps: float = Field(default=0.01, gt=0, description="temperature (Table S2)")
    temperatures: tuple[float, ...] = Field(
        default=(0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0), description="that are tried besides eps (Fig. S5b)"
    )
    tau: float = Field(default=1.0, gt=0, description="time constant of the weights (Table S2)")
    durations: tuple[PositiveFloat, ...] = Field(
        default=(1.0, 2.0, 5.0, 10.0),
        description="times at which the flow is stopped at each trial, a control; the claims take its end",
    )
    folds: int = Field(default=3, ge=2, description="of the cross-validation over participants")
    splits: int = Field(default=20, ge=1, description="random splits into folds")
    permutations: int = Field(default=2000, ge=100, description="of people between the experiments (B11)")
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
        return SYNTHETIC if self.synthetic else "human data (Gershman 2018)"


def study_settings(*, quick: bool = True, seed: int = 0, data: Path | None = None) -> BanditSettings:
    """Quick and full differ in what takes time and judges nothing; the rules need all 20 splits."""
    fewer = {"recovery_cohorts": 1, "own_likelihood": False, "durations": ()} if quick else {}
    return BanditSettings(seed=seed, data=find_data(data), **fewer)
