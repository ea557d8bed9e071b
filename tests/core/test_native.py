"""The solver inside jit, on XLA's own buffers: the same answers as on NumPy arrays, however batches are shared."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Outcome, Problem, problem, solve
from policychord.core import _implicit, _native, _traced


def batch(rng, count, d=20, n=3):
    pi = rng.dirichlet(np.ones(d), size=(count, n)).swapaxes(1, 2)
    return problem(pi=pi, action_cost=rng.normal(size=(count, d)), eps=rng.uniform(0.1, 2.0, count))


@pytest.mark.parametrize("n", [3, 50])
def test_equals_the_numpy_route(rng, n):
    given = batch(rng, 7, n=n)
    outside = solve(given)
    inside = jax.jit(lambda p: solve(p))(jax.tree.map(jnp.asarray, given))
    np.testing.assert_allclose(inside.weights, outside.weights, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(inside.passes, solve(given, start=np.exp(given.log_prior)).passes)
    assert inside.converged.all()


def test_it_is_native_here():
    assert _native.target_for(3) == "policychord_solve_dense"
    assert _native.target_for(41) == "policychord_solve_wide"


def test_batches_may_share_any_operand_along_any_axis(rng):
    given = batch(rng, 5)
    pi, cost, eps, log_prior = (jnp.asarray(field) for field in given)

    def one(pi, cost, eps):
        return solve(Problem(pi, cost, eps, log_prior[0])).weights

    inner = jax.vmap(one, in_axes=(None, 0, None))
    found = jax.jit(jax.vmap(inner, in_axes=(0, None, None)))(pi, cost, eps[0])  # primitives outside, costs inside
    for i in range(5):
        for j in range(5):
            alone = solve(Problem(*(np.asarray(x) for x in (pi[i], cost[j], eps[0], log_prior[0])))).weights
            np.testing.assert_allclose(found[i, j], alone, rtol=1e-12, atol=1e-14)
    shared = jax.jit(jax.vmap(one, in_axes=(None, 0, 0)))(pi[0], cost, eps)  # one matrix for all
    for j in range(5):
        alone = solve(Problem(*(np.asarray(x) for x in (pi[0], cost[j], eps[j], log_prior[0])))).weights
        np.testing.assert_allclose(shared[j], alone, rtol=1e-12, atol=1e-14)


def test_what_is_no_number_is_not_certified(rng):
    given = jax.tree.map(jnp.asarray, batch(rng, 3))
    spoilt = given._replace(action_cost=given.action_cost.at[1, 4].set(jnp.nan))
    found = jax.jit(lambda p: solve(p))(spoilt)
    np.testing.assert_array_equal(found.outcome, [Outcome.CONVERGED, Outcome.BAD_INPUT, Outcome.CONVERGED])
    assert not found.certificate.gap[1] < np.inf


@pytest.fixture
def fresh():
    """Whether the native call works is judged anew, before and after."""
    judged = (_native.target_for, _native._verified)
    yield [made.cache_clear() for made in judged]
    for made in judged:
        made.cache_clear()


def assert_a_callback_answers(given):
    """Of a shape that was not traced yet: JAX keeps what it traced."""
    called, outside = jax.jit(lambda p: solve(p))(jax.tree.map(jnp.asarray, given)), solve(given)
    assert _native.target_for(3) is None
    np.testing.assert_allclose(called.weights, outside.weights, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(called.outcome, outside.outcome)
    assert called.outcome.dtype == np.int8


@pytest.mark.usefixtures("fresh")
def test_a_jax_with_other_frames_gets_a_callback(rng, monkeypatch):
    monkeypatch.setattr(_native, "_MAJOR_VERSION", 999)
    assert_a_callback_answers(batch(rng, 17))


@pytest.mark.usefixtures("fresh")
def test_a_native_call_that_answers_wrongly_is_not_used(rng, monkeypatch):
    right = _native.solve_batch
    monkeypatch.setattr(_native, "solve_batch", lambda *args: (right(*args)[0] + 1e-9, *right(*args)[1:]))
    with pytest.warns(RuntimeWarning, match=r"natively.*known problem is wrong.*callback.*constraints\.txt"):
        assert_a_callback_answers(batch(rng, 19))


@pytest.mark.parametrize(("d", "n"), [(20, 2), (20, 3), (50, 7), (3000, 64)])
@pytest.mark.parametrize("moved", [(True, True, True, True), (False, True, False, True)])
def test_the_kernel_is_the_transpose_of_the_one_rule(d, n, moved):
    """`_implicit.push`, transposed by JAX, against what is written out in `_kernels.py`.

    The last is 6 MB of cotangents: large pages, conjugate gradients, and Pi of their steps in place of a last product.
    """
    draw = np.random.default_rng(3)
    pi = draw.dirichlet(np.ones(d), (4, n)).swapaxes(-1, -2)
    task = problem(pi=pi, action_cost=draw.normal(size=(4, d)), eps=0.3, prior=draw.dirichlet(np.ones(n)))
    with jax.enable_x64(True):
        kept = _implicit.keep(*map(jnp.asarray, task), jnp.asarray(solve(task, 1e-18).log_weights))
        cotangent = jnp.asarray(draw.normal(size=(4, n)))
        natively, by_rule = (
            jax.jit(partial(pull, moved=moved))(*kept, cotangent) for pull in (_traced._pull_natively, _implicit.pull)
        )
    assert len(natively) == sum(moved)
    for ours, theirs in zip(natively, by_rule, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


def test_a_cotangent_is_pulled_back_as_by_grad(rng):
    """What `policychord.torch` does, which may not be installed."""
    task, cotangent = batch(rng, 5), rng.normal(size=(5, 3))
    with jax.enable_x64(True):
        inputs = [jnp.asarray(field) for field in task]
        log_weights, back = jax.vjp(lambda *inputs: solve(Problem(*inputs)).log_weights, *inputs)
        pulled = _traced.pull(_implicit.keep(*inputs, log_weights), jnp.asarray(cotangent))
    for ours, theirs in zip(pulled, back(cotangent), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 50])  # a lone primitive once left memory that nobody had written
def test_the_solver_leaves_what_the_rule_needs(rng, n):
    task = batch(rng, 5, n=n)
    with jax.enable_x64(True):
        inputs = [jnp.asarray(field) for field in task]
        left = _traced._solve_p.bind(*inputs, inputs[3], jnp.full(1, 1e-10), route="auto", keep=True)
        for ours, theirs in zip(left[4:], _implicit.keep(*inputs, left[0])[4:], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_program_for_a_cpu_is_never_traced_in_jax(rng, monkeypatch):
    """Nor one for another platform with the compiled solver: an implementation is chosen when it is lowered."""
    task, traced = jax.tree.map(jnp.asarray, batch(rng, 23)), []
    right = _traced._descent.descend
    monkeypatch.setattr(_traced._descent, "descend", lambda *args, **kw: (traced.append(1), right(*args, **kw))[1])
    jax.jit(jax.grad(lambda p: solve(p).weights[0, 0]))(task)
    assert not traced
    jax.export.export(jax.jit(lambda p: solve(p)), platforms=("cuda",))(task)
    assert traced
