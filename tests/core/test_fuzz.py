"""Bad and odd arrays, made systematically: refused by name, or solved with a proof. Nothing else may happen."""

import decimal
import fractions
import itertools
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from policychord import ConvergenceError, certify, problem, solve

PI = np.array([[0.5, 0.2, 0.1], [0.25, 0.3, 0.1], [0.125, 0.4, 0.3], [0.125, 0.1, 0.5]])
BASE = {
    "pi": PI,
    "action_cost": np.array([0.0, 1.0, -2.0, 3.0]),
    "eps": np.array(0.1),
    "prior": np.array([0.5, 0.3, 0.2]),
}
LOGS = {"log_pi": np.log(PI), "log_prior": np.log(BASE["prior"])}
VALID = BASE | LOGS

REFUSED, SOLVED, EITHER = "refused", "solved", "either"


def given_with(argument, value):
    """The arguments of `problem`, valid but for one."""
    given = dict(BASE)
    if argument in LOGS:
        del given[argument.removeprefix("log_")]
    return given | {argument: value}


class Case(NamedTuple):
    argument: str
    kind: str
    value: object
    verdict: str
    names: tuple[str, ...] = ()  # what the message may name, if not the argument itself


# ------------------------------------------------------------- one bad entry: value x position x number type

ENTRIES = {
    # value: arguments that may hold it
    np.nan: (),
    np.inf: (),
    -np.inf: ("log_pi",),  # a zero probability, though it spoils the sum here
    -0.5: ("action_cost", "log_pi", "log_prior"),
    2.0: ("action_cost", "eps"),
    1e308: (),
    -1e308: ("log_pi",),
    1e13: (),
    5e-324: ("action_cost", "log_pi", "log_prior"),
}
NUMBERS = {
    "float64": lambda a: a,
    "float32": lambda a: a.astype(np.float32),
    "jax": lambda a: jnp.asarray(a),
    "list": lambda a: a.tolist(),
    "object": lambda a: a.astype(object),
}


def one_bad_entry():
    for argument, (value, allowed), (name, convert) in itertools.product(VALID, ENTRIES.items(), NUMBERS.items()):
        good = VALID[argument]
        for where in dict.fromkeys([(0,) * good.ndim, tuple(k - 1 for k in good.shape)]):
            if name == "float32" and abs(value) > 1e38 and np.isfinite(value):
                continue  # it would be infinity
            bad = good.astype(float)
            bad[where] = value
            # an entry that is allowed by itself still spoils the sum of a distribution
            verdict = EITHER if argument in allowed else REFUSED
            yield Case(argument, f"{value:g} at {where} as {name}", convert(bad), verdict)


# ---------------------------------------------------------------------------------- sums, shapes, wholes


def spoiled_sums():
    for argument, factor in itertools.product(("pi", "prior"), (1 + 1e-3, 1 - 1e-3, 1 + 1e-5, 2.0, 0.5, 0.0, -1.0)):
        yield Case(argument, f"scaled by {factor}", factor * VALID[argument], REFUSED)
        yield Case(f"log_{argument}", f"scaled by {factor}", safe_log(factor * VALID[argument]), REFUSED)
    for argument in ("pi", "prior"):
        yield Case(argument, "scaled within rounding", (1 + 1e-7) * VALID[argument], SOLVED)
        yield Case(f"log_{argument}", "scaled within rounding", safe_log((1 + 1e-7) * VALID[argument]), SOLVED)
    empty_column = PI.copy()
    empty_column[:, 1] = 0.0
    yield Case("pi", "empty column", empty_column, REFUSED)
    yield Case("log_pi", "empty column", safe_log(empty_column), REFUSED)
    empty_row = np.vstack([PI, np.zeros(3)])[[0, 1, 2, 4]]
    empty_row[0] += 1 - empty_row.sum(0)
    yield Case("pi", "empty row", empty_row, SOLVED)
    yield Case("log_pi", "empty row", safe_log(empty_row), SOLVED)
    for value in (1e308, np.inf, -np.inf, np.nan, 5e-324, 1e-300, -1.0):
        for argument in ("pi", "prior"):
            yield Case(argument, f"all {value:g}", np.full_like(VALID[argument], value), REFUSED)
            yield Case(f"log_{argument}", f"all {value:g}", np.full_like(VALID[argument], value), REFUSED)
    both_infinities = PI.copy()
    both_infinities[:2, 0] = np.inf, -np.inf
    yield Case("pi", "both infinities in a column", both_infinities, REFUSED)
    yield Case("log_pi", "both infinities in a column", both_infinities, REFUSED)


def wrong_shapes():
    for argument, good in VALID.items():
        shapes = {
            "no axes": np.array(0.5) if good.ndim else None,
            "empty": np.zeros((0,) * max(good.ndim, 1)),
            "empty last axis": np.zeros((*good.shape[:-1], 0)) if good.ndim else None,
            "one too many": np.concatenate([good, good[..., :1]], axis=-1) if good.ndim else None,
            "one too few": good[..., :-1] if good.ndim else None,
            "column vector": good[:, None] if good.ndim == 1 else None,
            "batch of one": good[None],
            "batch of two": np.stack([good, good]),
            "batch of none": np.stack([good])[:0],
            "five batch axes": good[None, None, None, None, None],
        }
        spread = ("batch of one", "batch of two", "batch of none", "five batch axes")
        for kind, value in shapes.items():
            # a cost or a prior of another length contradicts pi, and either may be named
            names = (argument, "action_cost", "prior") if "pi" in argument else (argument,)
            fits = kind in spread or (argument == "eps" and kind == "empty")
            if value is not None:
                yield Case(argument, kind, value, SOLVED if fits else REFUSED, names)
    yield Case("pi", "transposed", PI.T, REFUSED, ("pi",))
    yield Case("log_pi", "transposed", np.log(PI).T, REFUSED, ("log_pi",))
    yield Case("pi", "batch axes last", np.moveaxis(np.stack([PI, PI]), 0, -1), REFUSED, ("pi", "action_cost"))


def mismatched_batches():
    for one, other in itertools.combinations(("pi", "action_cost", "eps", "prior"), 2):
        given = {name: np.stack([BASE[name]] * k) for name, k in ((one, 2), (other, 3))}
        yield Case(f"{one} and {other}", "batches of two and three", BASE | given, REFUSED, (one, other))


# ------------------------------------------------------------------------------ things that are not arrays


class Framed:
    """As data frames do: not an array, but it can become one."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class Attached:
    """As tensors do that still belong to somebody's gradient tape."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("cannot convert a tensor that requires grad; call detach() first")


def other_things():
    for argument, good in VALID.items():
        ragged = [[0.5], [0.25, 0.25]] if good.ndim else [[0.1], [0.1, 0.2]]
        dtype = [("a", float), ("b", float)]
        refused = {
            "ragged": ragged,
            "string": "0.5",
            "strings": good.astype(str),
            "bytes": b"abc",
            "word": np.full(good.shape, "word", dtype=object),
            "complex": good.astype(complex),
            "complex object": good.astype(complex).astype(object),
            "dates": np.zeros(good.shape, "datetime64[s]"),
            "durations": np.zeros(good.shape, "timedelta64[s]"),
            "records": np.zeros(good.shape, dtype=dtype),
            "nothing": np.full(good.shape, None, dtype=object),
            "dictionary": {"a": 1.0},
            "set": {0.5, 0.2},
            "generator": (x for x in (0.5, 0.5)),
            "function": abs,
            "class": float,
            "object": object(),
            "sparse": scipy.sparse.csr_array(np.atleast_2d(good)),
            "sparse matrix": scipy.sparse.coo_matrix(np.atleast_2d(good)),
            "masked": np.ma.masked_array(np.atleast_1d(good), mask=np.ones(np.atleast_1d(good).shape)),
            "framed nan": Framed(np.full(good.shape, np.nan)),
            "attached": Attached(),
            "random key": jax.random.key(0),
            "jax complex": jnp.asarray(good, complex),
            "deeply nested": nested(good.tolist(), 70),
        }
        fine = {
            "framed": Framed(good),
            "nothing masked": np.ma.masked_array(good),
            "decimals": np.vectorize(decimal.Decimal, otypes=[object])(good),
            "fractions": np.vectorize(fractions.Fraction, otypes=[object])(good),
            "longdouble": good.astype(np.longdouble),
            "big endian": good.astype(">f8"),
            "memory": memoryview(np.ascontiguousarray(good)),
            "tuple": tuple(map(tuple, good)) if good.ndim == 2 else tuple(np.atleast_1d(good)),
        }
        odd = {
            "half precision": good.astype(np.float16),
            "bfloat16": jnp.asarray(good, jnp.bfloat16),
            "booleans": good.astype(bool),
            "integers": good.astype(int),
            "unsigned": np.abs(good).astype(np.uint8),
            "huge integers": np.full(good.shape, 10**30, dtype=object),
            "endless integers": np.full(good.shape, 10**400, dtype=object),
        }
        for kind, value in refused.items():
            yield Case(argument, kind, value, REFUSED)
        for kind, value in fine.items():
            yield Case(argument, kind, value, SOLVED)
        for kind, value in odd.items():
            yield Case(argument, kind, value, EITHER)
        yield Case(argument, "None", None, SOLVED if argument in ("prior", "log_prior") else REFUSED)


def nested(value, depth):
    for _ in range(depth):
        value = [value]
    return value


# ---------------------------------------------------------------------------- temperatures, costs, priors


def extremes():
    for eps in (0, 0.0, -0.0, -1, -1e-300, np.nan, np.inf, -np.inf, 1e-300, 5e-324, 1e300, 1e308, 1e-10, 1e10):
        yield Case("eps", f"{eps}", eps, REFUSED)
    for eps in (1e-9, 1e-6, 1e-3, 1, True, 10, 1e6, 1e9, np.float32(0.1), np.int8(1), [0.1], [[0.1], [1.0]]):
        yield Case("eps", f"fine {eps!r}", eps, SOLVED)
    for scale in (1e-300, 5e-324, 1e-20, 1.0, 1e4, 1e8, 1e11):
        yield Case(
            "action_cost", f"of the order {scale}", scale * BASE["action_cost"], EITHER if scale > 1e8 else SOLVED
        )
    for offset in (1e4, -1e4, 1e9, 1e15, 1e100, 1e300, 1.7e308):
        verdict = SOLVED if abs(offset) < 1e10 else EITHER
        yield Case("action_cost", f"raised by {offset}", offset + BASE["action_cost"], verdict)
    yield Case("action_cost", "spanning 1e13", 1e13 * BASE["action_cost"], REFUSED)
    yield Case("action_cost", "spanning everything", np.array([-1.7e308, 0.0, 0.0, 1.7e308]), REFUSED)
    for small in (1e-6, 1e-12, 1e-100, 1e-300, 5e-324):
        yield Case("prior", f"as small as {small}", np.array([0.5, 0.5, small]), SOLVED)
    for low in (-20.0, -100.0, -700.0, -1e3, -1e5):
        yield Case("log_prior", f"as low as {low}", np.array([np.log(0.5), np.log(0.5), low]), SOLVED)
    for low in (-1e9, -1e15, -1e100, -1e308):
        yield Case("log_prior", f"as low as {low}", np.array([np.log(0.5), np.log(0.5), low]), EITHER)
    for small in (1e-12, 1e-100, 1e-300, 5e-324):
        pi = PI.copy()
        pi[0], pi[1] = small, 1 - pi[2:].sum(0)
        yield Case("pi", f"entries of {small}", pi, SOLVED)
        yield Case("log_pi", f"entries of {small}", safe_log(pi), SOLVED)


def safe_log(values):
    with np.errstate(all="ignore"):
        return np.log(values)


CASES = [
    *one_bad_entry(), *spoiled_sums(), *wrong_shapes(), *mismatched_batches(), *other_things(), *extremes()
]  # fmt: skip


def test_the_fuzz_is_large():
    assert len({(case.argument, case.kind) for case in CASES}) == len(CASES) >= 200


def attempt(given):
    try:
        p = problem(**given)
        return None, p, solve(p, 1e-10)
    except ValueError as refusal:
        return refusal, None, None


def is_named(case, refusal):
    """Whether the message names the argument, or one of those that contradict each other."""
    names = case.names or (case.argument,)
    if isinstance(refusal, ConvergenceError):  # it describes the problem by its cost and its eps
        names = [name.removeprefix("action_") for name in names]
    return any(re.search(rf"\b{name}\b", str(refusal)) for name in names)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.argument}: {case.kind}")
def test_refused_by_name_or_solved_with_a_proof(case):
    given = case.value if " and " in case.argument else given_with(case.argument, case.value)
    refusal, p, found = attempt(given)
    if refusal is not None:
        assert case.verdict != SOLVED, str(refusal)
        assert is_named(case, refusal), str(refusal)
        return
    assert case.verdict != REFUSED
    assert all(np.all(np.isfinite(field)) for field in p)
    weights = np.asarray(found.weights)
    assert np.all(np.isfinite(weights))
    assert np.all(np.isfinite(found.log_weights))
    assert np.all(found.converged)
    assert np.all(np.asarray(found.certificate.gap) <= 1e-10)
    assert np.all(np.asarray(certify(p, weights).gap) <= 1.001e-10)
