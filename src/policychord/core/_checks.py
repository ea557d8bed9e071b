"""What counts as a gating problem: every complaint names the argument, the index, the value and the remedy.

NumPy arrays that pass a few cheap tests, which suffice, are not looked at again: one small problem should not wait
longer for its checks than for its answer. Whatever fails them is examined entry by entry, and perhaps refused.
"""

import reprlib

import jax
import jax.numpy as jnp
import numpy as np

from .._types import is_traced, jax_has_float64, namespace, require_float64

# A column may miss one by its rounding: this much in float64, and this much when it came in single precision.
SUM_TOLERANCE = 1e-6
SUM_TOLERANCE_SINGLE = 1e-4

# Beyond these, differences of costs and temperatures leave the digits that float64 has.
_LARGEST_COST_SPREAD = 1e12
_LARGEST_UNTAKEN = 1e300
_SMALLEST_EPS, _LARGEST_EPS = 1e-9, 1e9
_SMALLEST_LOG_PRIOR = -1e6

# Arrays have at most 64 axes, and NumPy broadcasts 32: some are needed for actions, primitives and times.
MOST_AXES = 28

# Sums of values that are about to be refused may overflow; the complaint is enough.
_quietly = np.errstate(over="ignore", under="ignore", invalid="ignore")


def as_floats(name: str, value):
    """`value` as a float64 array, NumPy or JAX, whatever it came as."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.ndim <= MOST_AXES:
        return value
    if type(value) is float or type(value) is np.float64:
        return np.asarray(value)
    if value is None:
        raise ValueError(f"{name} is missing: pass {name}=..., a number or an array of numbers.")
    if isinstance(value, jax.Array) and (is_traced(value) or jax_has_float64()):
        require_float64()
        _require_real(name, value.dtype)
        _require_few_axes(name, value)
        return value.astype(np.float64)
    if isinstance(value, jax.Array):
        _require_real(name, value.dtype)  # single precision in, double precision from here on
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name}{_first(np.ma.getmaskarray(value))[1]} is masked: fill or drop missing entries first.")
    array = value if type(value) is np.ndarray and value.dtype.kind in "fiub" else _as_numpy(name, value)
    _require_real(name, array.dtype)
    _require_few_axes(name, array)
    with np.errstate(over="ignore"):
        return array.astype(np.float64, copy=False)


def _as_numpy(name: str, value) -> np.ndarray:
    try:
        array = np.asarray(value)
        # Python integers too large for int64, fractions, None, ...
        return array.astype(np.float64) if array.dtype.kind == "O" else array
    except Exception as problem:  # other people's __array__ may raise anything
        reason = " ".join(str(problem).split())
        if type(value).__module__.partition(".")[0] == "torch":
            raise ValueError(
                f"{name} is a tensor that NumPy cannot read ({reason}): policychord.torch.solve takes tensors, with "
                "their gradients; here pass tensor.detach().double().cpu()."
            ) from None
        raise ValueError(f"{name} is not a rectangular array of numbers ({reason}).") from None


def _require_real(name: str, dtype) -> None:
    # bfloat16 and its kin are floats of a kind that only JAX knows; random keys have no kind at all
    if not (getattr(dtype, "kind", None) in tuple("fiub") or jnp.issubdtype(dtype, np.floating)):
        raise ValueError(f"{name} has dtype {dtype}: pass real numbers.")


def require_float64_result(name: str, dtype) -> None:
    """Refuse a function whose results are complex, or rounded more coarsely than the weights that it is given."""
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(f"{name} gives complex numbers ({dtype}): return a real one, such as its real part.")
    if _is_narrow(dtype):
        raise ValueError(f"{name} gives {dtype}, in which no certificate is honest: compute it in float64 throughout.")


def _require_few_axes(name: str, array) -> None:
    if array.ndim > MOST_AXES:
        raise ValueError(f"{name} has {array.ndim} axes: at most {MOST_AXES} are possible; join batch axes by reshape.")


def sum_tolerance(value) -> float:
    return SUM_TOLERANCE_SINGLE if _is_narrow(getattr(value, "dtype", None)) else SUM_TOLERANCE


def _is_narrow(dtype) -> bool:
    """Whether it is a floating type of less than eight bytes, NumPy's, JAX's or that of another library's tensors."""
    try:
        floating = dtype is not None and jnp.issubdtype(dtype, np.floating)
    except TypeError:
        floating = getattr(dtype, "is_floating_point", False)
    return bool(floating) and getattr(dtype, "itemsize", 8) < 8


def check_shapes(pi_name: str, pi, cost, eps, prior_name: str, prior) -> tuple[int, ...]:
    """The batch shape that all arguments share, or a complaint that shows all of theirs."""
    if pi.ndim < 2:
        raise ValueError(
            f"{pi_name} has shape {pi.shape}: it needs (..., actions, primitives), a column per primitive."
        )
    d, n = pi.shape[-2:]
    if d == 0 or n == 0:
        raise ValueError(f"{pi_name} has shape {pi.shape}: at least one action and one primitive are needed.")
    if cost.ndim < 1 or cost.shape[-1] != d:
        hint = (
            f"; or, if {pi_name} has primitives down and actions across, transpose it"
            if cost.ndim and cost.shape[-1] == n
            else ""
        )
        raise ValueError(
            f"action_cost has shape {cost.shape} but {pi_name} has {d} actions in shape {pi.shape}: "
            f"the last axis of action_cost needs one cost for each action ({d}){hint}."
        )
    if prior is not None and (prior.ndim < 1 or prior.shape[-1] != n):
        raise ValueError(
            f"{prior_name} has shape {prior.shape} but {pi_name} has {n} primitives in shape {pi.shape}: "
            f"the last axis of {prior_name} needs one entry for each primitive ({n})."
        )
    axes = {pi_name: pi.shape[:-2], "action_cost": cost.shape[:-1], "eps": eps.shape}
    return joint_axes(axes if prior is None else axes | {prior_name: prior.shape[:-1]})


def joint_axes(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape to which all of these broadcast, or a complaint that shows them by their names."""
    first, *others = shapes.values()
    if others.count(first) == len(others):  # often, and quicker than to broadcast
        return first
    try:
        return np.broadcast_shapes(first, *others)
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"the batch axes do not fit together: {listed}; make them equal or of length one.") from None


@_quietly
def checked_cost(cost, pi):
    """The cost, with that of actions which nobody takes small enough that differences do not overflow."""
    if is_traced(cost, pi):
        return cost
    original, cost = cost, np.asarray(cost)
    if _largest(cost, -np.inf) - _least(cost, np.inf) <= _LARGEST_COST_SPREAD:
        return original  # true of all actions of all problems, hence of those that are taken; not of NaN and infinity
    row_mass = np.asarray(pi).sum(-1)
    _refuse(
        "action_cost",
        cost,
        ~np.isfinite(cost),
        "costs must be finite numbers; to forbid an action give it a large cost such as 1e4",
    )
    supported = np.broadcast_to(row_mass > 0, np.broadcast_shapes(row_mass.shape, cost.shape))
    spread = np.max(np.where(supported, cost, -np.inf), -1) - np.min(np.where(supported, cost, np.inf), -1)
    if np.any(spread > _LARGEST_COST_SPREAD):
        where, at = _first(spread > _LARGEST_COST_SPREAD)
        raise ValueError(
            f"action_cost{at} spans {spread[where]:.3g} between actions, more than "
            f"float64 can weigh (limit {_LARGEST_COST_SPREAD:.0e}): cap the largest costs, or divide cost and eps "
            "alike."
        )
    return namespace(original).asarray(np.where(supported, cost, np.clip(cost, -_LARGEST_UNTAKEN, _LARGEST_UNTAKEN)))


def check_eps(eps) -> None:
    if is_traced(eps):
        return
    eps = np.asarray(eps)
    if eps.ndim == 0 and _SMALLEST_EPS <= eps.item() <= _LARGEST_EPS:
        return
    bad = ~((eps >= _SMALLEST_EPS) & (eps <= _LARGEST_EPS))
    _refuse("eps", eps, bad, f"the temperature must lie between {_SMALLEST_EPS:.0e} and {_LARGEST_EPS:.0e}")


@_quietly
def normalised_columns(name: str, values, tolerance: float, logs: bool = False):
    """Columns that are probability vectors, given as they are or by `logs`, rescaled to sum to one exactly."""
    xp, highest = namespace(values), np.log1p(tolerance)
    if xp is np and (_largest(values, -np.inf) <= highest if logs else _least(values, 0.0) >= 0):
        pi = np.exp(values) if logs else values
        total = (np.ones(pi.shape[-2]) @ pi)[..., None, :]  # NumPy's own sum takes short rows one by one
        if _least(total, 1.0) >= 1.0 - tolerance and _largest(total, 1.0) <= 1.0 + tolerance:
            return pi / total
    if not is_traced(values):
        known = np.asarray(values)
        _refuse(name, known, np.isnan(known), "check how the primitive was computed")
        if logs:
            _refuse(name, known, known > highest, "ln of a probability lies in [-inf, 0]")
        else:
            _refuse(name, known, (known < 0) | np.isinf(known), "probabilities lie in [0, 1]")
        _check_sums(name, known, tolerance, logs, columns=True)
    # of logarithms, the largest is at least -ln d once the column sums to one, so exp needs no shift
    pi = xp.exp(values) if logs else values
    total = xp.sum(pi, axis=-2, keepdims=True)
    if is_traced(values):
        total = _nan_unless(xp.all(pi >= 0, axis=-2, keepdims=True) & (xp.abs(total - 1.0) <= tolerance), total)
    return pi / total


@_quietly
def normalised_prior(name: str, prior, tolerance: float, logs: bool = False):
    """ln of a prior in the interior of the simplex, given as it is or by `logs`."""
    xp = namespace(prior)
    if not is_traced(prior):
        known = np.asarray(prior)
        if logs:
            finite = "must be finite: the prior has to be positive for every primitive"
            _refuse(name, known, ~np.isfinite(known), finite)
            least = f"is too small to count: give every primitive at least {_SMALLEST_LOG_PRIOR:g}"
            _refuse(name, known, known < _SMALLEST_LOG_PRIOR, least)
        else:
            positive = "a prior must be positive; give an unwanted primitive a small weight such as 1e-6"
            _refuse(name, known, ~(known > 0), positive)
            _refuse(name, known, np.isinf(known), "probabilities lie in (0, 1)")
        _check_sums(name, known, tolerance, logs)
    total = xp.sum(xp.exp(prior) if logs else prior, axis=-1, keepdims=True)
    if is_traced(prior):
        total = _nan_unless(xp.abs(total - 1.0) <= tolerance, total)
    return (prior if logs else xp.log(prior)) - xp.log(total)


def log_prior_of(n: int, prior, log_prior=None):
    """ln of a prior that is given by its probabilities, by their logarithms, or not at all: then it is uniform."""
    if log_prior is not None:
        return normalised_prior("log_prior", as_floats("log_prior", log_prior), sum_tolerance(log_prior), logs=True)
    if prior is not None:
        return normalised_prior("prior", as_floats("prior", prior), sum_tolerance(prior))
    return np.full(n, -np.log(n))


def _least(array: np.ndarray, of_none: float):
    return np.minimum.reduce(array, axis=None, initial=of_none)


def _largest(array: np.ndarray, of_none: float):
    return np.maximum.reduce(array, axis=None, initial=of_none)


def _nan_unless(good, value):
    """Inside a trace nothing can be refused: what would be becomes NaN, and no answer made of it converges."""
    return jnp.where(good, value, jnp.nan)


def check_number(name: str, value) -> float:
    """A single positive, finite number, such as a tolerance or a time."""
    try:
        number = np.nan if isinstance(value, str) or is_traced(value) else float(value)
    except Exception:  # other people's __float__ may raise anything
        number = np.nan
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} = {shown(value)}: pass a positive, finite number.")
    return number


def shown(value) -> str:
    """A value in a message: short, and on one line."""
    try:
        return " ".join(reprlib.repr(value).split())
    except Exception:  # integers of more than 4,300 digits have no repr
        return f"a very long {type(value).__name__}"


def check_weights(name: str, weights, log_prior):
    """Weights that fit a problem with this prior: one for each primitive, batch axes that broadcast."""
    weights = as_floats(name, weights)
    n = log_prior.shape[-1]
    if weights.ndim < 1 or weights.shape[-1] != n:
        raise ValueError(f"{name} has shape {weights.shape}: the last axis needs one weight for each primitive ({n}).")
    joint_batch(name, weights, log_prior)
    return weights


def joint_batch(name: str, weights, log_prior) -> tuple[int, ...]:
    """The batch shape of a problem met with weights: one problem with many weights gives many answers."""
    try:
        return np.broadcast_shapes(log_prior.shape[:-1], weights.shape[:-1])
    except ValueError:
        raise ValueError(
            f"{name} has batch axes {weights.shape[:-1]}, which do not broadcast with the problem's "
            f"{log_prior.shape[:-1]}: make them equal or of length one."
        ) from None


@_quietly
def check_simplex(name: str, weights, log_prior):
    """Weights a user hands in: non-negative, summing to one, one for each primitive."""
    weights = check_weights(name, weights, log_prior)
    if not is_traced(weights):
        known = np.asarray(weights)
        _refuse(name, known, ~np.isfinite(known), "must be a finite number")
        _refuse(name, known, known < 0, "weights lie on the simplex, so none is negative")
        _check_sums(name, known, SUM_TOLERANCE)
    return weights


def _check_sums(name: str, values, tolerance: float, logs: bool = False, columns: bool = False) -> None:
    """Refuse vectors, or columns of matrices, of probabilities (or their `logs`) that do not sum to one."""
    total = (np.exp(values) if logs else values).sum(-2 if columns else -1)
    bad = ~(np.abs(total - 1.0) <= tolerance)
    if not np.any(bad):
        return
    where, at = _first(bad)
    remedy, count = "subtract its logsumexp" if logs else "divide it by its sum", ""
    if columns:
        at = f"[{', '.join(map(str, (*where[:-1], ':', where[-1])))}]"
        count = f" ({int(bad.sum())} of {bad.size} columns are off by more than {tolerance:.0e})"
        remedy = "subtract the logsumexp of every column" if logs else "divide every column by its sum"
        if not logs and np.all(np.abs(values.sum(-1) - 1.0) <= tolerance):
            remedy = "its rows do, so transpose it: actions go down, primitives across"
    raise ValueError(
        f"{'exp of ' if logs else ''}{name}{at} sums to {total[where]:.9g}, off by {total[where] - 1.0:+.3g}{count}: "
        f"{remedy}."
    )


def _refuse(name: str, values, bad, remedy: str) -> None:
    """Raise for the first bad entry, saying how many there are."""
    if np.any(bad):
        where, at = _first(bad)
        more = f" ({int(bad.sum())} such entries)" if bad.sum() > 1 else ""
        raise ValueError(f"{name}{at} = {values[where]:.9g}{more}: {remedy}.")


def _first(bad) -> tuple[tuple[int, ...], str]:
    """Where the first bad entry is, and that in brackets unless it is alone."""
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    return where, f"[{', '.join(map(str, where))}]" if where else ""
