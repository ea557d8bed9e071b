"""Nothing compiles twice: one trace per shape, one signature per kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import problem, solve
from policychord.core import _kernels, equilibrium

from .families import member

SHAPE = ((3,), 12, 3)


def test_one_trace_serves_all_problems_of_a_shape():
    traces = []

    @jax.jit
    def weights(p):
        traces.append(None)
        return solve(p).weights

    for name in ("generic", "sparse", "cold", "hot", "biased"):
        weights(member(name, *SHAPE))
    assert len(traces) == 1
    assert weights._cache_size() == 1


def test_temperatures_do_not_retrace():
    p, traces = member("generic", *SHAPE), []

    @jax.jit
    def weights(pi, cost, eps):
        traces.append(None)
        return solve(problem(pi=pi, action_cost=cost, eps=eps)).weights

    for eps in (0.01, 0.1, 1.0, 10.0, np.float64(0.5), jnp.asarray(0.7)):
        weights(p.pi, p.action_cost, eps)
    # a Python float is weakly typed to JAX, an array is not
    assert len(traces) <= 2


def test_calling_the_jax_route_directly_compiles_once():
    before = equilibrium._jitted._cache_size()
    for name in ("generic", "sparse", "cold", "hot"):
        solve(member(name, *SHAPE), 3e-11, route="jax")
    assert equilibrium._jitted._cache_size() == before + 1
    solve(member("generic", *SHAPE), 3e-11, start=np.full((3, 3), 1 / 3), route="jax")
    solve(member("sparse", *SHAPE), 3e-11, start=np.full((3, 3), 1 / 3), route="jax")
    assert equilibrium._jitted._cache_size() == before + 2


@pytest.mark.thorough
def test_kernels_have_one_signature_each():
    dense, wide = member("generic", (), 12, 3), member("generic", (), 60, 44)
    for p in (dense, wide):
        batch = jax.tree.map(lambda a: np.stack([a, a]), p)
        for given in (p, batch, jax.tree.map(jnp.asarray, p)):
            solve(given, route="compiled")
        solve(p, 1e-8, start=np.exp(p.log_prior), route="compiled")
        jax.grad(lambda cost, p=p: solve(p._replace(action_cost=cost)).weights[0])(jnp.asarray(p.action_cost))
    for wide in (False, True):
        assert len(_kernels._kernel_for(wide).signatures) == 1
