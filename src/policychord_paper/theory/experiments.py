"""The study's steps by name, and the evidence that they leave."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..study import Recorded
from .circuits import (
    Frozen,
    HeldUnits,
    Ladders,
    Oscillation,
    Settling,
    compare_ladders,
    freeze_synapses,
    hold_units,
    oscillate,
    settle,
)
from .flows import Certificates, Paths, Starts, Variants, certify_weights, follow, try_variants
from .identities import Identities, OtherComplexity, check_identities, check_others
from .limits import Limits, check_limits
from .problems import TheorySettings, judge_optima
from .worlds import know, know_recorded

# Steps that share a compiled program: flows and circuits by the number of primitives.
FLOWS = {"flow, three primitives": 3, "flow, six primitives": 6}
CIRCUITS = {"circuit, three primitives": 3, "circuit, two primitives": 2}
ALONE: Mapping[str, Callable[[TheorySettings], Any]] = {
    "other complexities": check_others,
    "variants": try_variants,
    "identities": check_identities,
    "judged optima": judge_optima,
    "certificates": certify_weights,
    "limits": check_limits,
    "nulls and alternatives": know,
}
ON_RECORDED: Mapping[str, Callable[[TheorySettings, Recorded], Any]] = {
    "ladders": compare_ladders,
    "oscillation": oscillate,
    "units": hold_units,
    "frozen synapses": freeze_synapses,
    "nulls on recorded problems": know_recorded,
    # the least probability that a primitive gives an action, by study
    "support": lambda settings, recorded: {name: float(batch.pi.min()) for name, batch in recorded.items()},
}


class Evidence(NamedTuple):
    """What the experiments found."""

    paths: list[Paths]  # by shape
    ring: Paths  # the problem of the illustration, from a ring of starts
    judged_optima: list[np.ndarray]  # by shape: optima of the first problems, by an independent optimiser
    starts: list[Starts]  # by number of primitives
    others: dict[str, OtherComplexity]  # by complexity
    certificates: Certificates
    identities: Identities
    limits: Limits
    circuits: dict[str, Settling]  # by study
    units: dict[str, HeldUnits]  # by study
    frozen: dict[str, Frozen]  # by study
    ladders: Ladders
    oscillation: Oscillation
    support: dict[str, float]  # by study: least probability of an action under a primitive
    variants: Variants
    known: dict[str, dict[str, Any]]  # by world, what it has in the place of the fields above


def experiments(settings: TheorySettings) -> Mapping[str, Callable[[], Any]]:
    """Every step by name, the longest first."""
    flows = {name: partial(follow, settings, primitives) for name, primitives in FLOWS.items()}
    return {**flows, **{name: partial(step, settings) for name, step in ALONE.items()}}


def on_recorded(settings: TheorySettings) -> Mapping[str, Callable[[Recorded], Any]]:
    """The steps on problems that were recorded in the studies' runs, the longest first."""
    circuits = {name: partial(settle, settings, primitives) for name, primitives in CIRCUITS.items()}
    return {**circuits, **{name: partial(step, settings) for name, step in ON_RECORDED.items()}}


def gather(settings: TheorySettings, results: Mapping[str, Any]) -> Evidence:
    """The evidence, from the results of the steps by name."""
    followed = [results[step] for step in FLOWS]
    *three, ring = followed[0].paths
    return Evidence(
        paths=[*three, *followed[1].paths],
        ring=ring,
        judged_optima=results["judged optima"],
        starts=[paths.starts for paths in followed],
        others=results["other complexities"],
        certificates=results["certificates"],
        identities=results["identities"],
        limits=results["limits"],
        circuits={name: settling for step in CIRCUITS for name, settling in results[step].items()},
        units=results["units"],
        frozen=results["frozen synapses"],
        ladders=results["ladders"],
        oscillation=results["oscillation"],
        support=results["support"],
        variants=results["variants"],
        known=results["nulls and alternatives"] | results["nulls on recorded problems"],
    )
