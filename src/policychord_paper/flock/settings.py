"""The sizes of the flock study."""

from pydantic import BaseModel, ConfigDict, Field

TEMPERATURES = (0.1, 1.0, 10.0)  # Fig. S3c


class FlockStudySettings(BaseModel):
    """Sizes of the reproduction: how many seeds each claim gets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    seeds: int = Field(default=8, ge=1, description="of the leaderless flock; its rule asks for 8")
    goal_seeds: int = Field(default=8, ge=1, description="of milling, leaders and followers of the literature")
    temperature_seeds: int = Field(default=30, ge=2, description="compared in pairs; the paper's Fig. S3c has 30")
    keep_every: int = Field(default=5, ge=1, description="steps between those that are kept as data")
    shorten: float = Field(default=1.0, gt=0, le=1, description="share of the steps, for tests of the machinery")


def study_settings(*, quick: bool = True, seed: int = 0) -> FlockStudySettings:
    """What `--quick`, `--full` and `--seed` mean here."""
    if not quick:
        return FlockStudySettings(seed=seed)
    return FlockStudySettings(seed=seed, goal_seeds=3, temperature_seeds=2, keep_every=20)
