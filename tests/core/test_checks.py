"""Complaints say which argument, where, what value, and what to do."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import (
    Entropy,
    TimeScales,
    Tsallis,
    best_response,
    certify,
    circuit,
    circuit_stability,
    flow,
    problem,
    solve,
)
from policychord.core.flow import one_step

PI = np.array([[0.5, 0.2, 0.1], [0.25, 0.3, 0.1], [0.125, 0.4, 0.3], [0.125, 0.1, 0.5]])
GOOD = {"pi": PI, "action_cost": np.array([0.0, 1.0, 2.0, 3.0]), "eps": 0.1, "prior": np.array([0.5, 0.3, 0.2])}
COST = GOOD["action_cost"]


def changed(array, where, value):
    array = np.array(array, dtype=float)
    array[where] = value
    return array


# what is changed, and what the message must hold: argument and index, value, remedy
MESSAGES = {
    "nan in pi": ({"pi": changed(PI, (2, 1), np.nan)}, r"pi\[2, 1\] = nan", "check how the primitive was computed"),
    "negative pi": ({"pi": changed(PI, (1, 0), -0.25)}, r"pi\[1, 0\] = -0\.25", r"probabilities lie in \[0, 1\]"),
    "column sum": (
        {"pi": changed(PI, (0, 2), 0.2)},
        r"pi\[:, 2\] sums to 1\.1, off by \+0\.1",
        "divide every column by its sum",
    ),
    "column sum in a batch": (
        {"pi": np.stack([PI, changed(PI, (0, 1), 0.1)])},
        r"pi\[1, :, 1\] sums to 0\.9, off by -0\.1 \(1 of 6 columns",
        "divide every column by its sum",
    ),
    "transposed": (
        {"pi": np.array([[0.9, 0.1], [0.6, 0.4]]), "action_cost": np.zeros(2), "prior": None},
        r"pi\[:, 0\] sums to 1\.5",
        "transpose it: actions go down, primitives across",
    ),
    "transposed shape": (
        {"pi": PI.T},
        r"action_cost has shape \(4,\) but pi has 3 actions in shape \(3, 4\)",
        "if pi has primitives down and actions across, transpose it",
    ),
    "log_pi sum": (
        {"pi": None, "log_pi": np.log(changed(PI, (0, 2), 0.2))},
        r"exp of log_pi\[:, 2\] sums to 1\.1",
        "subtract the logsumexp of every column",
    ),
    "positive log_pi": (
        {"pi": None, "log_pi": changed(np.log(PI), (3, 0), 0.5)},
        r"log_pi\[3, 0\] = 0\.5",
        r"lies in \[-inf, 0\]",
    ),
    "infinite cost": (
        {"action_cost": np.array([0.0, np.inf, 2.0, np.inf])},
        r"action_cost\[1\] = inf \(2 such entries\)",
        "to forbid an action give it a large cost such as 1e4",
    ),
    "wide cost": (
        {"action_cost": np.array([0.0, 1.0, 2.0, 1e13])},
        r"action_cost spans 1e\+13 between actions",
        "cap the largest costs, or divide cost and eps alike",
    ),
    "wide cost in a batch": (
        {"action_cost": np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 1e13]])},
        r"action_cost\[1\] spans 1e\+13",
        "cap the largest costs",
    ),
    "eps zero": ({"eps": 0.0}, "eps = 0", "must lie between"),
    "eps in a batch": ({"eps": [0.1, 0.2, -3.0]}, r"eps\[2\] = -3", "must lie between"),
    "eps tiny": ({"eps": 1e-300}, "eps = 1e-300", r"between 1e-09 and 1e\+09"),
    "prior zero": (
        {"prior": [0.5, 0.5, 0.0]},
        r"prior\[2\] = 0",
        "give an unwanted primitive a small weight such as 1e-6",
    ),
    "prior sum": ({"prior": [0.5, 0.3, 0.3]}, r"prior sums to 1\.1, off by \+0\.1", "divide it by its sum"),
    "prior length": (
        {"prior": [0.5, 0.5]},
        r"prior has shape \(2,\) but pi has 3 primitives",
        r"one entry for each primitive \(3\)",
    ),
    "log_prior sum": (
        {"prior": None, "log_prior": np.log([0.5, 0.3, 0.3])},
        r"exp of log_prior sums to 1\.1, off by \+0\.1",
        "subtract its logsumexp",
    ),
    "log_prior infinite": (
        {"prior": None, "log_prior": [np.log(0.5), np.log(0.5), -np.inf]},
        r"log_prior\[2\] = -inf",
        "must be finite",
    ),
    "masked": (
        {"action_cost": np.ma.masked_array([0.0, 1.0, 2.0, 3.0], mask=[0, 0, 1, 0])},
        r"action_cost\[2\] is masked",
        "fill or drop missing entries",
    ),
    "batch axes": (
        {"action_cost": np.zeros((2, 4)), "eps": np.ones(3)},
        r"pi \(\), action_cost \(2,\), eps \(3,\)",
        "make them equal or of length one",
    ),
    "both": ({"log_pi": np.log(PI)}, "exactly one of pi", "log_pi"),
    "both priors": ({"log_prior": np.log([0.5, 0.3, 0.2])}, "at most one of prior", "log_prior"),
    "missing cost": ({"action_cost": None}, "action_cost is missing", r"pass action_cost=\.\.\., a number or an array"),
    "complex": ({"eps": 0.1 + 0j}, "eps has dtype complex128", "pass real numbers"),
    "flat pi": ({"pi": np.ones(4) / 4}, r"pi has shape \(4,\)", "a column per primitive"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_message_holds_argument_index_value_and_remedy(case):
    changes, what, remedy = MESSAGES[case]
    with pytest.raises(ValueError, match=what) as raised:
        problem(**(GOOD | changes))
    assert raised.match(remedy)


def test_rounding_of_the_columns_is_forgiven_and_repaired():
    for off, dtype in ((5e-7, np.float64), (5e-5, np.float32)):
        p = problem(
            **(GOOD | {"pi": ((1 + off) * PI).astype(dtype), "prior": ((1 + off) * GOOD["prior"]).astype(dtype)})
        )
        np.testing.assert_allclose(p.pi.sum(0), 1.0, rtol=0, atol=1e-15)
        np.testing.assert_allclose(p.pi, PI, rtol=0, atol=1e-6)
        np.testing.assert_allclose(np.exp(p.log_prior).sum(), 1.0, rtol=0, atol=1e-15)


def test_beyond_rounding_is_not():
    for off, dtype in ((2e-6, np.float64), (2e-4, np.float32)):
        for argument in ("pi", "prior"):
            given = GOOD | {argument: ((1 + off) * GOOD[argument]).astype(dtype)}
            with pytest.raises(ValueError, match=rf"\b{argument}\b.*sums to 1\.000.*divide"):
                problem(**given)


def test_an_action_that_nobody_takes_may_cost_anything_finite():
    pi = np.vstack([PI, np.zeros(3)])
    p = problem(pi=pi, action_cost=[0.0, 1.0, 2.0, 3.0, 1e300], eps=0.1)
    assert p.action_cost[-1] == 1e300


def test_a_prior_left_out_is_uniform():
    p = problem(pi=PI, action_cost=GOOD["action_cost"], eps=0.1)
    np.testing.assert_allclose(np.exp(p.log_prior), 1 / 3, rtol=1e-15)


def test_arguments_are_given_by_name():
    with pytest.raises(TypeError):
        problem(PI, GOOD["action_cost"], 0.1)


def test_no_filter_of_the_whole_process_is_touched(monkeypatch):
    """Filters belong to the process: two threads that set and reset them leave the wrong ones behind."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("warnings.catch_warnings is process-wide")

    monkeypatch.setattr(warnings, "catch_warnings", refuse)
    before = list(warnings.filters)
    problem(pi=[[0.5, 1], [0.5, 0]], action_cost=[0, 10**30 // 10**30], eps=1)
    with pytest.raises(ValueError, match="not a rectangular array"):
        problem(pi=[[0.5, 1], [0.5]], action_cost=[0, 1], eps=1)
    assert warnings.filters == before


class Strange:
    """What no number can be made of."""

    def __float__(self):
        raise RuntimeError("no")

    def __repr__(self):
        return "strange\n" * 1000


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), 10**5000, "1e-10", None, [], Strange(), 1j, np.ones(2), np.nan],
    ids=lambda value: type(value).__name__,
)
def test_a_tolerance_that_is_no_number_has_a_short_sentence(value):
    with pytest.raises(ValueError, match=r"^tol = .*: pass a positive, finite number\.$") as told:
        solve(problem(pi=PI, action_cost=COST, eps=0.5), value)
    assert len(str(told.value)) < 200


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("value", [[], {}, None, np.array(["mixture", "product"]), 1, "mixtures"])
def test_a_way_to_combine_that_is_none(value):
    with pytest.raises(ValueError, match=r"combine = .*: use one of 'mixture', 'product', 'local product'"):
        problem(pi=PI, action_cost=COST, eps=0.5, combine=value)
    with pytest.raises(ValueError, match=r'route = .*: choose "auto", "compiled" or "jax"'):
        solve(problem(pi=PI, action_cost=COST, eps=0.5), route=value)


@pytest.mark.parametrize("axes", [29, 40, 62])
def test_more_axes_than_can_be_broadcast(axes):
    pi = PI.reshape((1,) * (axes - 2) + PI.shape)
    with pytest.raises(ValueError, match=f"pi has {axes} axes: at most 28 are possible; join batch axes by reshape"):
        problem(pi=pi, action_cost=COST, eps=0.5)
    with pytest.raises(ValueError, match=f"eps has {axes} axes"):
        problem(pi=PI, action_cost=COST, eps=np.full((1,) * axes, 0.5))
    with pytest.raises(ValueError, match=f"weights has {axes} axes"):
        certify(problem(pi=PI, action_cost=COST, eps=0.5), np.full((1,) * (axes - 1) + (3,), 1 / 3))


def test_as_many_axes_as_are_possible():
    many = problem(pi=PI.reshape((1,) * 26 + PI.shape), action_cost=COST, eps=0.5)
    found = solve(many)
    assert found.weights.shape == (1,) * 26 + (3,)
    for route in ("jax", "compiled"):
        np.testing.assert_allclose(solve(many, route=route).weights, found.weights, atol=1e-9)
    assert certify(many, found.weights).gap.shape == (1,) * 26


def with_own_vjp():
    @jax.custom_vjp
    def squares(w):
        return jnp.sum(w**2)

    squares.defvjp(lambda w: (squares(w), w), lambda w, g: (2 * w * g,))
    return squares


def by_callback(w):
    return jax.pure_callback(lambda w: np.sum(w**2), jax.ShapeDtypeStruct((), w.dtype), w)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (with_own_vjp(), r"complexity cannot be differentiated twice \(TypeError: .*needs custom_jvp instead"),
        (by_callback, r"complexity cannot be differentiated.*a callback has no derivative"),
        (lambda w: jnp.sum(w**2) + 1j * w[0], r"complexity gives complex numbers \(complex128\): return a real one"),
        (lambda w: jnp.sum(w.astype(np.float32) ** 2), r"complexity gives float32, in which no certificate is honest"),
        (lambda w: (w, w), r"complexity gives a tuple: it must give one number"),
        (lambda w: None, r"complexity gives a NoneType: it must give one number"),
        (lambda w: "F", r"complexity cannot be evaluated on 3 weights"),
        (lambda w: w, r"complexity gives an array of shape \(3,\): it must give one number"),
        (lambda w, more: 0.0, r"complexity cannot be evaluated on 3 weights \(TypeError"),
    ],
)
def test_complexities_that_jax_cannot_use(function, said):
    with pytest.raises(ValueError, match=said) as told:
        solve(problem(complexity=function, n=3, eps=0.5))
    assert "\n" not in str(told.value)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    ("extra", "obstacle"),
    [
        ({"regulariser": Tsallis(2.0)}, "a regulariser"),
        ({"combine": "product"}, 'combine="product"'),
        ({"combine": "product", "regulariser": Entropy(caps=0.5)}, 'combine="product" and a regulariser'),
    ],
)
def test_what_is_made_for_the_paper_names_the_obstacle(extra, obstacle):
    given = problem(pi=PI, action_cost=COST, eps=0.5, **extra)
    said = f"one_step is made for a mixture with the entropy, but this problem has {obstacle}: leave that out, or use"
    with pytest.raises(ValueError, match=re.escape(said)):
        one_step(given, PI[0])
    local = problem(pi=PI, action_cost=COST, eps=0.5, combine="local product")
    for name, verb in {"flow": flow, "circuit": circuit, "circuit_stability": circuit_stability}.items():
        with pytest.raises(
            ValueError, match=f'{name} leads to the optimum of a convex .*"local product" is not convex'
        ):
            verb(local)
    with pytest.raises(ValueError, match=r"expected a Problem but got dict: build one with problem"):
        circuit({})


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: best_response(1.0), r"cost has shape \(\): the last axis needs one cost for each option"),
        (lambda p: best_response(np.zeros(3), prior=[0.5, 0.5]), r"prior has shape \(2,\).*for each option \(3\)"),
        (lambda p: best_response(np.zeros((2, 3)), eps=[0.5] * 3), r"batch axes do not fit.*cost \(2,\), eps \(3,\)"),
        (lambda p: jax.jit(lambda tol: solve(p, tol))(jnp.ones(2)), r"tol = .*: pass a positive, finite number"),
        (
            lambda p: circuit(p, 1.0, TimeScales(np.ones(2), np.ones(3), 1.0, 1.0)),
            r"hidden \(2,\), time_scales\.gradient",
        ),
        (lambda p: circuit(p, 1.0, TimeScales("a", 1.0, 1.0, 1.0)), r"time_scales\.hidden has dtype <U1"),
        (lambda p: problem(complexity=lambda w: 0.0, n=True, eps=0.5), "n = True"),
        (lambda p: problem(complexity=lambda w: 0.0, n=10**400, eps=0.5), r"n = 1000.*\.\.\..*as a positive integer"),
    ],
)
def test_other_arguments_of_verbs(call, said):
    with pytest.raises(ValueError, match=said):
        call(problem(pi=PI, action_cost=COST, eps=0.5))


def test_regularisers_whose_batch_axes_do_not_fit():
    with pytest.raises(ValueError, match=r"batch axes do not fit together: the problem \(2,\), alpha \(3,\)"):
        problem(pi=PI, action_cost=np.zeros((2, 4)), eps=0.5, regulariser=Tsallis([1.5, 1.5, 1.5]))
