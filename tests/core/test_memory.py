"""Compiled code reads and writes nothing beyond the arrays that it is given, whatever they are."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import (
    ConvexProblem,
    Problem,
    Tsallis,
    certify,
    circuit,
    circuit_stability,
    complexity,
    dissipation,
    energy,
    flow,
    gate,
    primitive_cost,
    problem,
    solve,
)
from policychord.core import _native
from policychord.core._kernels import solve_batch
from policychord.core.flow import one_step
from policychord.worlds.flock.cells import look_by_cells
from policychord.worlds.flock.neighbours import Zones

pytestmark = pytest.mark.usefixtures("without_type_checks")

PI = np.array([[0.5, 0.2, 0.1], [0.25, 0.3, 0.1], [0.125, 0.4, 0.3], [0.125, 0.1, 0.5]])
GOOD = problem(pi=PI, action_cost=[0.0, 1.0, 2.0, 3.0], eps=0.5)
SPARSE = problem(pi=PI, action_cost=[0.0, 1.0, 2.0, 3.0], eps=0.5, regulariser=Tsallis(1.5))
W = np.array([0.5, 0.25, 0.25])

ON_ALL = {
    "solve": solve,
    "solve in jax": partial(solve, route="jax"),
    "flow": partial(flow, t1=1.0, save=2),
    **{verb.__name__: partial(verb, weights=W)
       for verb in (certify, energy, gate, primitive_cost, complexity, dissipation)},
}  # fmt: skip
ON_PAPER = {
    **ON_ALL,
    "circuit": partial(circuit, t1=1.0, save=2),
    "circuit_stability": circuit_stability,
    "one_step": partial(one_step, weights=W),
}
WRONG = {
    "too few costs": ({"action_cost": np.array([0.0, 1.0])}, r"action_cost has shape \(2,\).*one cost for each action"),
    "one cost": ({"action_cost": np.zeros(1)}, r"action_cost has shape \(1,\)"),
    "a number for a cost": ({"action_cost": 1.0}, r"action_cost has shape \(\)"),
    "too few priors": ({"log_prior": np.log([0.5, 0.5])}, r"log_prior has shape \(2,\).*one entry for each primitive"),
    "no matrix": ({"pi": np.full(4, 0.25)}, r"pi has shape \(4,\): it needs"),
    "no primitive": ({"pi": np.ones((4, 0)), "log_prior": np.zeros(0)}, r"pi has shape \(4, 0\): at least one"),
    "no action": ({"pi": np.ones((0, 3)), "action_cost": np.zeros(0)}, r"pi has shape \(0, 3\): at least one"),
    "batches": ({"eps": np.ones(2), "pi": np.stack([PI] * 3)}, r"batch axes do not fit together"),
    "words": ({"action_cost": np.array(["a", "b", "c", "d"])}, r"action_cost has dtype <U1: pass real numbers"),
    "nothing": ({"eps": None}, r"eps is missing"),
    "complex": ({"action_cost": np.zeros(4, complex)}, r"action_cost has dtype complex128"),
    "axes": ({"pi": PI.reshape((1,) * 60 + (4, 3))}, r"pi has 62 axes: at most"),
}  # fmt: skip


def with_parameters(given, changes):
    """A general problem with other fields: pi and cost are its parameters."""
    pi, cost = changes.get("pi", given.pi), changes.get("action_cost", given.action_cost)
    return given._replace(
        parameters=(pi, cost), **{k: v for k, v in changes.items() if k in ("eps", "log_prior", "alpha", "caps")}
    )


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("verb", ON_PAPER)
def test_a_problem_that_does_not_fit_together_is_refused_by_every_verb(verb, name):
    changes, said = WRONG[name]
    with pytest.raises(ValueError, match=said):
        ON_PAPER[verb](GOOD._replace(**changes))
    if verb in ON_ALL:
        with pytest.raises(ValueError, match=said):
            ON_ALL[verb](with_parameters(SPARSE, changes))


@pytest.mark.parametrize("verb", ["solve", "certify", "energy", "one_step", "flow"])
def test_the_same_inside_jit(verb):
    for shape, said in (((2,), r"action_cost has shape \(2,\)"), ((3, 2), r"action_cost has shape \(3, 2\)")):
        with pytest.raises(ValueError, match=said):
            jax.jit(lambda cost: ON_PAPER[verb](GOOD._replace(action_cost=cost)))(jnp.zeros(shape))


def test_of_a_general_problem_all_fields_are_checked():
    for changes, said in (
        ({"caps": np.ones(2)}, r"caps has shape \(2,\): the last axis needs one entry for each of the 3 weights"),
        ({"caps": np.ones(())}, r"caps has shape \(\)"),
        ({"alpha": np.full(2, 1.5), "eps": np.ones(3)}, r"batch axes do not fit together.*alpha \(2,\)"),
        ({"parameters": None}, r"parameters is a NoneType"),
        (
            {"complexity": lambda w: 0.0},
            r"complexity is a function: build the problem with problem\(complexity=\.\.\.\)",
        ),
        ({"alpha": "x"}, r"alpha"),
    ):
        with pytest.raises(ValueError, match=said):
            solve(SPARSE._replace(**changes))
    own = problem(complexity=lambda w, p: jnp.sum((w - p) ** 2), n=3, eps=[0.5, 1.0], parameters=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"parameters has an array of shape \(3,\).*batch axes \(2,\)"):
        solve(own._replace(parameters=np.zeros(3)))
    with pytest.raises(ValueError, match=r"prior has shape \(\)"):
        solve(own._replace(log_prior=0.0))


AS = {
    "lists": lambda a: np.asarray(a).tolist(),
    "big-endian": lambda a: np.asarray(a).astype(">f8"),
    "little-endian": lambda a: np.asarray(a).astype("<f8"),
    "longdouble": lambda a: np.asarray(a).astype(np.longdouble),
    "strided": lambda a: np.repeat(np.atleast_1d(a), 2, axis=-1)[..., ::2].reshape(np.shape(a)),
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "fortran": lambda a: np.array(a, order="F"),
    "read-only": lambda a: np.broadcast_to(a, np.shape(a)),
    "masked": np.ma.masked_array,
    "matrix": lambda a: np.asmatrix(a) if np.ndim(a) == 2 else a,
    "jax": jnp.asarray,
    "objects": lambda a: np.asarray(a).astype(object),
}


@pytest.mark.parametrize("verb", ON_PAPER)
@pytest.mark.parametrize("kind", AS)
def test_other_kinds_of_numbers_are_converted(kind, verb):
    wanted = jax.tree.map(np.asarray, ON_PAPER[verb](GOOD))
    found = ON_PAPER[verb](Problem(*map(AS[kind], GOOD)))
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", AS)
def test_of_general_problems_too(kind):
    wanted = solve(SPARSE).weights
    one, (pi, cost) = AS[kind], SPARSE.parameters
    given = ConvexProblem(SPARSE.complexity, (one(pi), one(cost)), *map(one, SPARSE[2:]))
    np.testing.assert_allclose(solve(given).weights, wanted, atol=1e-12)
    np.testing.assert_allclose(gate(given, one(W)), gate(SPARSE, W), atol=1e-12)


def test_narrow_numbers_and_integers_are_converted():
    """Into float64, of the values that they have."""
    vertex = Problem(np.eye(3, dtype=int), np.array([0, 1, 2]), 1, np.zeros(3, np.int8) - 1)
    wanted = solve(Problem(*(np.asarray(a, float) for a in vertex)))
    np.testing.assert_array_equal(solve(vertex).weights, wanted.weights)
    single = Problem(*(np.asarray(a, np.float32) for a in GOOD))
    np.testing.assert_array_equal(
        solve(single).weights, solve(Problem(*(np.asarray(a, float) for a in single))).weights
    )
    traced = jax.jit(lambda p: solve(p).weights)(jax.tree.map(jnp.asarray, single))
    np.testing.assert_allclose(traced, solve(single).weights, atol=1e-9)


def test_fields_of_fewer_batch_axes_are_spread():
    costs = np.random.default_rng(1).normal(size=(5, 4))
    found = solve(GOOD._replace(action_cost=costs))
    assert found.weights.shape == (5, 3)
    for k in range(5):
        np.testing.assert_allclose(found.weights[k], solve(GOOD._replace(action_cost=costs[k])).weights, atol=1e-12)
    inside = jax.jit(lambda p: solve(p).weights)(GOOD._replace(action_cost=costs))
    np.testing.assert_allclose(inside, found.weights, atol=1e-9)


class Tensor:
    """What NumPy sees of a PyTorch tensor."""

    class Type:
        itemsize = 4
        is_floating_point = True

    __module__ = "torch"

    def __init__(self, values, needs_gradient=False):
        self.values, self.needs_gradient = np.asarray(values, np.float32), needs_gradient
        self.shape, self.dtype, self.ndim = self.values.shape, self.Type(), self.values.ndim

    def __array__(self, dtype=None, copy=None):
        if self.needs_gradient:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.\nUse tensor.detach().numpy() instead.")
        return self.values


def test_tensors_are_numbers():
    third = np.full((4, 3), 0.25) + 1e-6  # misses one by more than float64 would
    tensors = problem(pi=Tensor(third), action_cost=Tensor(np.arange(4.0)), eps=0.5, prior=Tensor(np.full(3, 1 / 3)))
    np.testing.assert_allclose(solve(tensors).weights, np.full(3, 1 / 3), atol=1e-6)
    by_hand = Problem(Tensor(PI), Tensor(GOOD.action_cost), Tensor(0.5), Tensor(GOOD.log_prior))
    np.testing.assert_allclose(solve(by_hand).weights, solve(GOOD).weights, atol=1e-6)
    with pytest.raises(ValueError, match=r"pi is a tensor .*policychord\.torch\.solve takes tensors") as told:
        problem(pi=Tensor(PI, needs_gradient=True), action_cost=np.arange(4.0), eps=0.5)
    assert "\n" not in str(told.value)


def test_the_batch_solver_itself_refuses_what_does_not_fit():
    pi, cost, eps, log_prior = GOOD
    for given in (
        (pi, cost[:2], eps, log_prior, None),
        (pi, cost, eps, log_prior[:2], None),
        (pi, cost, eps, log_prior, log_prior[:2]),
        (pi[:, :0], cost, eps, log_prior[:0], None),
        (pi[:0], cost[:0], eps, log_prior, None),
    ):
        with pytest.raises(ValueError, match="each action needs a cost"):
            solve_batch(*given, 1e-10, 100)


# ------------------------------------------------------------------------------ frames of XLA

FLOAT = np.float64


def call_natively(name, given, answers):
    shapes = [jax.ShapeDtypeStruct(*answer) for answer in answers]
    return jax.jit(jax.ffi.ffi_call(name, shapes))(*given)


@pytest.mark.parametrize("n", [3, 41])
def test_frames_that_do_not_fit_are_refused(n):
    rows = [((2, n), FLOAT), ((2,), FLOAT), ((2,), np.int64), ((2,), np.int8)]
    side = n if n <= 40 else 0
    kept = [((2, 4), FLOAT), ((2, 4), FLOAT), ((2, side, side), FLOAT)]
    pi, cost, eps, prior, tol = (
        np.full((2, 4, n), 0.25),
        np.zeros((2, 4)),
        np.ones(2),
        np.full((2, n), -1.0),
        np.ones(1),
    )
    name = _native.target_for(n)
    good = [pi, cost, eps, prior, prior, tol]
    assert np.all(call_natively(name, good, rows)[3] == 0)
    assert np.all(call_natively(name, good, rows + kept)[3] == 0)
    bad = [(k, a) for k, a in (
        (0, pi[0]), (0, pi.astype(np.float32)), (0, pi[:, :, :0]), (0, np.full((3, 4, n), 0.25)), (1, cost[:, :2]),
        (1, cost[0]), (1, cost.astype(np.float32)), (2, np.ones(3)), (2, np.ones(())), (3, prior[:, :2]),
        (4, prior[:, :2]), (4, prior.astype(np.int64)), (5, tol.astype(np.float32)),
    )]  # fmt: skip
    for k, array in bad:
        with pytest.raises(jax.errors.JaxRuntimeError, match="policychord: the shapes or types"):
            call_natively(name, [*good[:k], array, *good[k + 1 :]], rows)
    for k, answer in (
        (0, ((2, n - 1), FLOAT)), (1, ((3,), FLOAT)), (1, ((0,), FLOAT)), (2, ((2,), np.int32)), (3, ((1,), np.int8)),
        (4, ((2, 3), FLOAT)), (5, ((1, 4), FLOAT)), (6, ((2, 2, 2), FLOAT)), (6, ((1, side + 1, side + 1), FLOAT)),
    ):  # fmt: skip
        answers = rows + kept
        with pytest.raises(jax.errors.JaxRuntimeError, match="policychord: the shapes or types"):
            call_natively(name, good, [*answers[:k], answer, *answers[k + 1 :]])
    with pytest.raises(jax.errors.JaxRuntimeError, match="policychord: the shapes or types"):
        call_natively(name, good[:5], rows)


@pytest.mark.parametrize("n", [3, 41])
def test_frames_of_the_derivative_too(n):
    side = n if n <= 40 else 0
    given = [np.full((2, 4, n), 0.25), np.ones(2), np.full((2, n), -1.0), np.full((2, n), -1.0), np.zeros((2, 4)),
             np.ones((2, 4)), np.ones((2, side, side)), np.ones((2, n))]  # fmt: skip
    answers = [((2, 4, n), FLOAT), ((2, 4), FLOAT), ((2,), FLOAT), ((2, n), FLOAT)]
    name = _native.pull_target_for(n)
    call_natively(name, given, answers)
    call_natively(name, given, [((0, 4, n), FLOAT), *answers[1:]])
    for k, array in enumerate(given):
        short = array[:, :-1] if array.ndim > 1 and array.size else np.ones((3, 1, 1))
        for wrong in (array.astype(np.float32), short):
            with pytest.raises(jax.errors.JaxRuntimeError, match="policychord: the shapes or types"):
                call_natively(name, [*given[:k], wrong, *given[k + 1 :]], answers)
    for k, answer in ((0, ((1, 4, n), FLOAT)), (1, ((2, 3), FLOAT)), (2, ((3,), FLOAT)), (3, ((2, n - 1), FLOAT))):
        with pytest.raises(jax.errors.JaxRuntimeError, match="policychord: the shapes or types"):
            call_natively(name, given, [*answers[:k], answer, *answers[k + 1 :]])


def test_what_boids_see_is_checked_alike(rng):
    zones = Zones(*map(jnp.asarray, (1.0, 2.0, 3.0, 270.0)))
    position, velocity = jnp.asarray(rng.normal(size=(6, 2))), jnp.asarray(rng.normal(size=(6, 2)))
    single = look_by_cells(zones, position.astype(np.float32), velocity.astype(np.float32), 3)[0]
    np.testing.assert_allclose(single.cohesion, look_by_cells(zones, position, velocity, 3)[0].cohesion, atol=1e-5)
    for x, v in ((position, velocity[:2]), (position[:, :1], velocity[:, :1]), (position[:0], velocity[:0])):
        with pytest.raises(ValueError, match=r"both need the shape \(boids, 2\)"):
            look_by_cells(zones, x, v, 3)


# -------------------------------------------------------------------------------- guard pages

GUARDED = """
import ctypes, itertools, mmap, sys
import numpy as np
from policychord.core import _kernels, _native, _compile
from policychord.core._method import DENSE_UP_TO

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE, areas = mmap.PAGESIZE, []

def guarded(array, at_end):
    '''A copy that touches a page which nobody may read or write: behind it, or before it.'''
    array = np.ascontiguousarray(array)
    pages = max(-(-array.nbytes // PAGE), 1)
    area = mmap.mmap(-1, (pages + 2) * PAGE)
    areas.append(area)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(area))
    place = PAGE + (pages * PAGE - array.nbytes if at_end else 0)
    copy = np.frombuffer(area, array.dtype, array.size, place).reshape(array.shape)
    copy[...] = array
    for page in (0, pages + 1):
        assert libc.mprotect(begin + page * PAGE, PAGE, mmap.PROT_READ * 0) == 0
    return copy

if sys.argv[1] == "touch":
    victim = guarded(np.zeros(3), True)
    ctypes.c_double.from_address(victim.ctypes.data + victim.nbytes).value
    sys.exit(0)

def pull(n):
    import numba
    kernel = _kernels.pull_dense if n <= DENSE_UP_TO else _kernels.pull_wide
    @numba.njit
    def call(*given):
        kernel(*given)
    return call

draw = np.random.default_rng(7)
pulls = {False: pull(1), True: pull(DENSE_UP_TO + 1)}
for n, d, count, shared, keep in itertools.product((1, 2, 3, 4, 5, 40, 41), (1, 2, 3, 7, 33), (1, 3), (0, 1), (0, 1)):
    wide = n > DENSE_UP_TO
    side = 0 if wide else n
    rows = count if keep else 1
    pi = draw.dirichlet(np.ones(d), (1 if shared else count, n)).swapaxes(1, 2)
    cost, eps = draw.normal(size=(count, d)), np.full(count, 0.3)
    prior = np.full((count, n), -np.log(n))
    for at_end in (True, False):
        def g(a):
            return guarded(a, at_end)
        out = [g(np.empty(s, t)) for s, t in (
            ((count, n), float), (count, float), (count, np.int64), (count, np.int8),
            ((rows, d), float), ((rows, d), float), ((count if keep else 0, side, side), float))]
        _kernels._kernel_for(wide)(g(pi), 0 if shared else 1, g(cost), g(eps), g(prior), g(prior), 1e-10, 10000, *out)
        assert (out[3] == 0).all(), (n, d, out[3])
        if keep:
            for some in (0, count):
                back = [g(np.empty(s)) for s in ((some, d, n), (count, d), (count,), (count, n))]
                pulls[wide](g(pi), 0 if shared else 1, g(eps), g(prior), out[0], out[4], out[5], out[6],
                            g(draw.normal(size=(count, n))), *back)
                assert all(np.isfinite(b).all() for b in back)

# the same behind frames of XLA, whose batches may share any operand along any axis
kept_alive = []
TYPES = {np.dtype(np.float64): 12, np.dtype(np.int64): 5, np.dtype(np.int8): 2}

def words(*values):
    kept_alive.append(np.array(values, np.int64))
    return kept_alive[-1].ctypes.data

def buffer(array):
    kept_alive.append(array)
    return words(48, 0, TYPES[array.dtype], array.ctypes.data, array.ndim, words(*array.shape, 0))

def ask(callback, given, answers):
    arguments, results = words(*map(buffer, given)), words(*map(buffer, answers))
    at = words(120, 0, 0, 0, 0, 40, 0, len(given), 0, arguments, 40, 0, len(answers), 0, results)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(callback.address)(at) == 0

def callback(answer):
    return _compile.compile_callback(_native.types.intp(_native.types.intp), answer)

_native._registered(False), _native._registered(True)
solvers = {False: callback(_native._answer_dense), True: callback(_native._answer_wide)}
pullers = {False: callback(_native._answer_pull_dense), True: callback(_native._answer_pull_wide)}
ways = list(itertools.product((1, 2), (1, 3)))  # of an operand to lead with the batch axes (2, 3)
for n, d, at_end in itertools.product((1, 3, 5, 41), (1, 2, 7), (True, False)):
    wide = n > DENSE_UP_TO
    side = 0 if wide else n
    def g(a):
        return guarded(np.asarray(a), at_end)
    for k in range(8):
        lead = [ways[draw.integers(4)] for _ in range(5)]
        pi = draw.dirichlet(np.ones(d), (*lead[0], n)).swapaxes(-1, -2)
        eps, prior = np.full(lead[2], 0.3), np.full((*lead[3], n), -np.log(n))
        given = [pi, draw.normal(size=(*lead[1], d)), eps, prior, np.full((*lead[4], n), -np.log(n)),
                 np.full((1,) * (k % 2), 1e-10)]
        shapes = [((2, 3, n), float), ((2, 3), float), ((2, 3), np.int64), ((2, 3), np.int8)]
        shapes += [((2, 3, d), float), ((2, 3, d), float), ((2, 3, side, side), float)] if k % 2 else []
        out = [g(np.empty(*one)) for one in shapes]
        ask(solvers[wide], [g(a) for a in given], out)
        assert (out[3] == 0).all(), out[3]
        if k % 2:
            for whole in ((0,), (2, 3)):
                back = [g(np.empty(s)) for s in ((*whole, d, n), (2, 3, d), (2, 3), (2, 3, n))]
                cotangent = g(draw.normal(size=(*lead[4], n)))
                ask(pullers[wide], [g(pi), g(eps), g(prior), out[0], *out[4:], cotangent], back)
                assert all(np.isfinite(b).all() for b in back)
print("nothing beyond")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by mprotect")
def test_kernels_touch_nothing_beyond_their_arrays(tmp_path):
    """Every array ends, and then begins, at a page that ends the process when it is touched."""
    script = tmp_path / "guarded.py"
    script.write_text(GUARDED)
    touched = subprocess.run([sys.executable, script, "touch"], capture_output=True, text=True)
    assert touched.returncode == -11  # the guard itself works
    done = subprocess.run([sys.executable, script, "all"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "nothing beyond\n"), done.stderr[-2000:]


def test_the_two_problems_that_once_ended_or_fooled_the_solver():
    six = problem(pi=np.full((6, 2), 1 / 6), action_cost=np.arange(6.0), eps=0.5)
    with pytest.raises(ValueError, match=r"action_cost has shape \(2,\) but pi has 6 actions"):
        solve(six._replace(action_cost=np.array([0.0, 1.0])))
    with pytest.raises(ValueError, match=r"action_cost has shape \(1,\) but pi has 3000000 actions"):
        solve(Problem(np.full((3_000_000, 2), 1 / 3e6), np.zeros(1), np.array(0.5), np.log([0.5, 0.5])))
