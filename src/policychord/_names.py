"""Names that settings share with the parts they choose, before anything heavy is loaded."""

from typing import Literal

Gate = Literal["equilibrium", "flow", "circuit", "one-step", "prior", "cheapest", "posterior"]
Selection = Literal["sample", "mean", "mode", "dither", "posterior", "posterior mean"]
DURATION = 20.0  # of the flow and of the circuit between two decisions, in units of tau
SEED = "seed of all random draws: the same seed, the same result"
SEEDS = "episodes, each with random draws of its own"
EPS = "the temperature: low follows the model, high the prior (even weights)"


def check_used(name: Gate, duration: float, tau: float, prior: tuple[float, ...] = ()) -> None:
    """Settings that the gate does not use are an error."""
    if name == "cheapest" and len(set(prior)) > 1:
        raise ValueError(f"gate = {name!r} takes no notice of prior = {prior}: leave one of them out.")
    if name not in ("flow", "circuit") and (duration, tau) != (DURATION, 1.0):
        raise ValueError(f"gate = {name!r} has no duration or tau: they belong to the gates 'flow' and 'circuit'.")
