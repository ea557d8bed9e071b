"""Complaints say which argument, where, what value, and what to do."""

import warnings

import numpy as np
import pytest

from policychord import problem

PI = np.array([[0.5, 0.2, 0.1], [0.25, 0.3, 0.1], [0.125, 0.4, 0.3], [0.125, 0.1, 0.5]])
GOOD = {"pi": PI, "action_cost": np.array([0.0, 1.0, 2.0, 3.0]), "eps": 0.1, "prior": np.array([0.5, 0.3, 0.2])}


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
