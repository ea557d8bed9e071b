"""What hypothesis draws: problems and weights that it can shrink, one problem per batch.

They are made without `problem`, because the type checker that guards it under test uses `random`.
"""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from policychord import Problem


def floats(low, high):
    return st.floats(low, high, allow_nan=False, width=64)


def simplex(log_values, axis=-1):
    values = np.exp(log_values - log_values.max(axis, keepdims=True))
    return values / values.sum(axis, keepdims=True)


@st.composite
def problems(draw, d=None, n=None, largest_cost=10.0, log_eps=(-2.0, 1.0), faintest=-30.0, holes=True):
    """A batch of one problem: entries of Pi down to exp(faintest), or zero if there may be holes."""
    d = draw(st.integers(1, 8)) if d is None else d
    n = draw(st.integers(1, 6)) if n is None else n
    pi = simplex(draw(arrays(float, (1, d, n), elements=floats(faintest, 0.0))), axis=-2)
    if holes:
        pi = np.where(draw(arrays(bool, (1, d, n))), 0.0, pi)
        pi[:, draw(st.integers(0, d - 1)), :] += 1e-3
        pi = pi / pi.sum(-2, keepdims=True)
    return Problem(
        pi=pi,
        action_cost=draw(arrays(float, (1, d), elements=floats(-largest_cost, largest_cost))),
        eps=10.0 ** draw(arrays(float, (1,), elements=floats(*log_eps))),
        log_prior=np.log(simplex(draw(arrays(float, (1, n), elements=floats(-10.0, 0.0))))),
    )


def weights_for(given):
    """Weights inside the simplex, some of them as small as exp(-40)."""
    return arrays(float, (1, given.log_prior.shape[-1]), elements=floats(-40.0, 0.0)).map(simplex)


@st.composite
def problems_and_weights(draw, **options):
    given = draw(problems(**options))
    return given, draw(weights_for(given))
