"""Settings of tracks, which load nothing heavy: the command makes its options of them."""

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .._names import SEED

USUAL = ("persist", "separation", "alignment", "cohesion")
NEEDS = {"wall": "arena", "goal": "goal", "predator": "predator", "leader": "leader"}
SURROGATES = 19  # of each kind: to be larger than all of them has a chance of 1 in 20


class Smoothing(BaseModel):
    """How velocities are found."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    window: float = Field(
        default=0.2, gt=0, le=1e6, description="seconds under the smoothing polynomial; at least 3 frames"
    )
    order: int = Field(default=2, ge=1, le=5, description="of the polynomial")
    causal: bool = Field(default=False, description="smooth without looking ahead in time")
    longest_gap: float = Field(
        default=0.2, ge=0, le=1e6, description="seconds: gaps up to this are filled by straight lines"
    )
    jump: float = Field(
        default=8.0, ge=0, le=1e6, description="cut tracks where a position deviates from straight motion by so many "
        "times what nine of ten positions do; 0 cuts none",
    )  # fmt: skip


class ForceSettings(BaseModel):
    """Which forces an individual may follow, and what it sees."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    forces: tuple[str, ...] = Field(
        default=USUAL,
        description="which forces, two or more: persist, separation, "
        "alignment, cohesion, wall, goal, predator, leader, drag",
    )
    radii: tuple[float, float, float] | None = Field(default=None, description="of separation, alignment and cohesion")
    nearest: int | None = Field(default=None, ge=1, description="only so many nearest neighbours count")
    vision_angle: float = Field(default=320.0, gt=0, le=360, description="degrees")
    arena: tuple[float, ...] = Field(
        default=(), description="the wall: a circle (x, y, radius), or the corners of a box (x, y, x, y)"
    )
    goal: tuple[float, float] | None = Field(default=None, description="a place that all may head for")
    predator: str | None = Field(default=None, description="the individual from which the others flee")
    leader: str | None = Field(default=None, description="the individual that the others follow")
    leave_out: tuple[str, ...] = Field(default=(), description="individuals that belong to no group")
    reach: float | None = Field(default=None, gt=0, description="how far a predator is seen")
    every: float = Field(default=0.25, gt=0, le=1e6, description="seconds from one decision to the next")

    @model_validator(mode="after")
    def _fit_together(self) -> "ForceSettings":
        if len(set(self.forces)) != len(self.forces) or len(self.forces) < 2:
            raise ValueError(f"forces = {', '.join(self.forces)}: name two or more, each once.")
        if self.radii is not None and not 0 < self.radii[0] < self.radii[1] < self.radii[2]:
            raise ValueError(f"radii = {self.radii}: three positive lengths that grow.")
        if len(self.arena) not in (0, 3, 4) or (len(self.arena) == 3 and self.arena[2] <= 0):
            raise ValueError(f"arena = {self.arena}: a circle (x, y, radius) or the corners of a box (x, y, x, y).")
        if len(self.arena) == 4 and not (self.arena[0] < self.arena[2] and self.arena[1] < self.arena[3]):
            raise ValueError(f"arena = {self.arena}: the lower left corner of the box comes first.")
        for force, needs in NEEDS.items():
            if force in self.forces and not getattr(self, needs):
                raise ValueError(f"forces have {force!r}, which needs to know the {needs}: set {needs}.")
            if force not in self.forces and getattr(self, needs):
                raise ValueError(f"{needs} is set, but {force!r} is not among the forces: add it to them.")
        return self


class TrackPlan(BaseModel):
    """How a file of tracks is read, smoothed and explained."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rate: float | None = Field(default=None, gt=0, description="frames a second, where the file does not say")
    scale: float = Field(default=1.0, gt=0, description="length of one unit of the file")
    unit: str = Field(default="", max_length=12, description="name of that length, such as m or cm")
    columns: dict[str, str] = Field(
        default={},
        description="what a long table calls our columns: trial, frame or time, id, x, y; such as id=fish,x=pos_x",
    )
    smoothing: Smoothing = Smoothing()
    forces: ForceSettings = ForceSettings()
    free: tuple[str, ...] = Field(default=(), description="parameters that are fitted; the usual ones unless named")
    most: int = Field(default=20_000, ge=100, description="use so many decisions at most, evenly spread in time")
    surrogates: int = Field(
        default=SURROGATES, ge=0, le=999, description="surrogates of each kind at most; 0 makes none"
    )
    starts: int = Field(default=3, ge=1, le=100, description="optimisation runs for each model")
    groups: int = Field(default=10, ge=1, le=1000, description="simulated groups that are compared with the data")
    seconds: float = Field(default=5.0, gt=0, le=1e6, description="how long each of them is followed")
    seed: int = Field(default=0, ge=0, lt=2**31, description=SEED)
