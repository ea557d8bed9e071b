"""Certificates against the truth in many digits, which `benchmarks/truth.py` defines for tests and benchmarks alike."""

import numpy as np
from benchmarks.truth import judge, objective_of


def assert_honest(problems, weights, gap, distance):
    """For every problem of a batch: V(w) - V* <= gap and ||w - w*||_1 <= distance, without any tolerance."""
    for k in range(np.size(problems.eps)) if np.ndim(problems.eps) else (None,):
        at = () if k is None else (k,)
        verdict = judge(
            objective_of(problems, k), np.asarray(weights)[at], np.asarray(gap)[at], np.asarray(distance)[at]
        )
        assert verdict.honest, (
            f"problem {k}: gap {verdict.gap:.17g}, truth at least {verdict.excess:.17g}; "
            f"distance {verdict.distance:.17g}, truth at least {verdict.way:.17g}"
        )
