"""The sizes of the quadrotor study."""

from policychord.worlds.quadrotor import QuadrotorSettings

QUICK_SEEDS = 60


def study_settings(*, quick: bool = True, seed: int = 0) -> QuadrotorSettings:
    """What `--quick`, `--full` and `--seed` mean here."""
    return QuadrotorSettings(seed=seed, seeds=QUICK_SEEDS) if quick else QuadrotorSettings(seed=seed)
