"""What the theory study may be told."""

from pydantic import BaseModel, ConfigDict, Field


class TheorySettings(BaseModel):
    """Sizes and seed of the theory study; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    problems: int = Field(default=240, ge=3, description="random problems for the statements about the flow")
    judged: int = Field(default=60, ge=1, description="of these, problems given to an independent optimiser")
    circuits: int = Field(default=24, ge=1, description="recorded problems of each study for the circuit")
    stability_draws: int = Field(default=5000, ge=1, description="random circuits for the stable rule")
    others: int = Field(default=40, ge=1, description="random problems of each other complexity")
    starts: int = Field(default=50, ge=1, description="random points that the flow of a problem starts from")
    horizon: float = Field(default=20.0, gt=0, description="length of the paths, in units of tau")


def study_settings(*, quick: bool = True, seed: int = 0) -> TheorySettings:
    """The rules ask for a fixed number of problems, so quick and full are the same."""
    return TheorySettings(seed=seed)
