"""Parameters with names: natural values for people, unconstrained numbers z for optimisers, bounds and priors on z.

With y = centre + scale z:
real       x = y                       positive   x = exp(y)
bounded    x = low + (high - low) sigmoid(y)      simplex    x = softmax(y_1, ..., y_{n-1}, 0)

A parameter is declared once, and every estimate has its scale, its bounds |z| <= 20 and its prior. `centre` and `scale`
make z free of units: z of a few is a usual value, z of 20 is beyond any.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Float

from .._types import Array, ArrayLike, namespace

Transform = Literal["real", "positive", "bounded", "simplex"]
Theta = Mapping[str, Any]  # natural values by name: numbers, or vectors with an entry for each label
FARTHEST = 20.0  # |z| beyond this is at a bound: exp(20) is 5e8, and a problem takes temperatures from 1e-9 to 1e9


class Normal(NamedTuple):
    """A normal prior of every free number of a parameter, on the unconstrained scale."""

    mean: float
    sd: float


class Parameter(NamedTuple):
    """One declared parameter. Made by `real`, `positive`, `bounded` or `simplex`, which check it."""

    name: str
    transform: Transform
    start: Any  # natural: where the first optimisation run begins
    labels: tuple[str, ...] = ()  # of the entries of a vector; none for a number
    low: float = 0.0
    high: float = 1.0
    prior: Normal | None = None  # counted in a MAP estimate only
    centre: float = 0.0
    scale: float = 1.0

    @property
    def free(self) -> int:
        """How many unconstrained numbers it has."""
        return len(self.labels) - 1 if self.transform == "simplex" else max(1, len(self.labels))


def real(
    name: str,
    start: ArrayLike = 0.0,
    *,
    labels: Sequence[str] = (),
    prior: Normal | None = None,
    centre: float = 0.0,
    scale: float = 1.0,
) -> Parameter:
    """Any number, or a vector of them; between centre - 20 scale and centre + 20 scale."""
    return _checked(Parameter(name, "real", start, tuple(labels), prior=prior, centre=centre, scale=scale))


def positive(
    name: str,
    start: ArrayLike = 1.0,
    *,
    labels: Sequence[str] = (),
    prior: Normal | None = None,
    usual: float = 1.0,
) -> Parameter:
    """A positive number, such as a temperature or a scale: x = usual exp(z)."""
    if not (np.isfinite(usual) and usual > 0):
        raise ValueError(f"{name}: usual = {usual!r}: pass a positive number.")
    return _checked(Parameter(name, "positive", start, tuple(labels), prior=prior, centre=float(np.log(usual))))


def bounded(
    name: str,
    low: float,
    high: float,
    start: ArrayLike | None = None,
    *,
    labels: Sequence[str] = (),
    prior: Normal | None = None,
) -> Parameter:
    """A number between two others, such as a lapse rate or a learning rate."""
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"{name}: low = {low!r}, high = {high!r}: pass two numbers, the lower one first.")
    start = (low + high) / 2 if start is None else start
    return _checked(Parameter(name, "bounded", start, tuple(labels), float(low), float(high), prior))


def simplex(
    name: str, labels: Sequence[str], start: ArrayLike | None = None, *, prior: Normal | None = None
) -> Parameter:
    """Positive numbers that sum to one, such as prior weights: one for each label, of which there are two or more."""
    labels = tuple(labels)
    if len(labels) < 2:
        raise ValueError(f"{name} has labels {labels}: a simplex needs two or more.")
    start = np.full(len(labels), 1.0 / len(labels)) if start is None else start
    return _checked(Parameter(name, "simplex", start, labels, prior=prior))


def size(parameters: Sequence[Parameter]) -> int:
    """K, the number of unconstrained numbers of all of them."""
    return sum(parameter.free for parameter in parameters)


def free_names(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """A name for each unconstrained number: `ln eps`, `prior: separation over cohesion`, `coef: V`."""
    names = []
    for parameter in parameters:
        scaled = {"real": "{}", "positive": "ln {}", "bounded": "logit {}", "simplex": "{}"}[parameter.transform]
        own = scaled.format(parameter.name)
        if parameter.transform == "simplex":
            *others, last = parameter.labels
            names += [f"{own}: {label} over {last}" for label in others]
        else:
            names += [f"{own}: {label}" for label in parameter.labels] or [own]
    return tuple(names)


def affine_of(parameters: Sequence[Parameter]) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale of every unconstrained number, (K) each."""
    rows = [(parameter.centre, parameter.scale) for parameter in parameters for _ in range(parameter.free)]
    centre, scale = np.array(rows, dtype=float).reshape(-1, 2).T
    return centre, scale


def natural(parameters: Sequence[Parameter], z: Any) -> dict[str, Any]:
    """From z (..., K) to natural values by name: in JAX, so that derivatives pass, or in NumPy."""
    values, at = {}, 0
    for parameter in parameters:
        part = z[..., at : at + parameter.free] if parameter.labels else z[..., at]
        values[parameter.name] = _natural(parameter, parameter.centre + parameter.scale * part)
        at += parameter.free
    return values


def unconstrained(parameters: Sequence[Parameter], theta: Theta) -> np.ndarray:
    """From natural values to z (K); one that is missing is at its start."""
    unknown = set(theta) - {parameter.name for parameter in parameters}
    if unknown:
        known = ", ".join(parameter.name for parameter in parameters)
        raise ValueError(f"theta has {', '.join(sorted(unknown))}: the parameters are {known}.")
    parts = [(_unconstrained(p, theta.get(p.name, p.start)) - p.centre) / p.scale for p in parameters]
    return np.concatenate(parts) if parts else np.zeros(0)


def errors_of(parameters: Sequence[Parameter], z: np.ndarray, covariance: np.ndarray) -> dict[str, Any]:
    """Standard errors on natural scales, by name: sqrt(J C J^T) with J = d(natural)/dz (the delta method)."""
    with jax.enable_x64(True):
        jacobian = jax.jacfwd(lambda z: natural(parameters, z))(jnp.asarray(z, dtype=float))
    errors = {}
    for parameter in parameters:
        rows = np.asarray(jacobian[parameter.name]).reshape(-1, len(z))
        sd = np.sqrt(np.einsum("ei,ij,ej->e", rows, covariance, rows))
        errors[parameter.name] = sd if parameter.labels else sd[0]
    return errors


def intervals_of(parameters: Sequence[Parameter], ends: Float[np.ndarray, "K 2"]) -> dict[str, np.ndarray]:
    """Intervals on natural scales, (2) or (entries, 2), by name; of a simplex those of its log ratios."""
    intervals, at = {}, 0
    for parameter in parameters:
        part = ends[at : at + parameter.free]
        intervals[parameter.name] = part if parameter.transform == "simplex" else natural([parameter], part.T)[
            parameter.name].T  # fmt: skip
        at += parameter.free
    return intervals


def prior_of(parameters: Sequence[Parameter]) -> tuple[np.ndarray, np.ndarray]:
    """Mean (K) and precision 1/sd^2 (K) of the declared normal priors of z; the precision is zero without one."""
    each = [parameter.prior or Normal(0.0, np.inf) for parameter in parameters for _ in range(parameter.free)]
    return np.array([prior.mean for prior in each], dtype=float), np.array([prior.sd**-2.0 for prior in each])


def at_bound(z: ArrayLike) -> np.ndarray:
    """Which unconstrained numbers are at the border of their scale."""
    return np.asarray(np.abs(z) >= FARTHEST)


def _natural(parameter: Parameter, y: Any) -> Any:
    if parameter.transform == "real":
        return y
    in_jax = namespace(y) is jnp
    xp, sigmoid, softmax = (jnp, jax.nn.sigmoid, jax.nn.softmax) if in_jax else (
        np, scipy.special.expit, scipy.special.softmax)  # fmt: skip
    if parameter.transform == "positive":
        return xp.exp(y)
    if parameter.transform == "bounded":
        return parameter.low + (parameter.high - parameter.low) * sigmoid(y)
    return softmax(xp.concatenate([y, xp.zeros((*y.shape[:-1], 1))], axis=-1), axis=-1)


def _unconstrained(parameter: Parameter, value: Any) -> np.ndarray:
    value = np.atleast_1d(np.asarray(value, dtype=float))
    wanted = max(1, len(parameter.labels))
    wrong = None
    if value.shape != (wanted,) or not np.all(np.isfinite(value)):
        wrong = f"pass {wanted} finite number{'s' if wanted > 1 else ''}"
    elif parameter.transform == "positive" and np.any(value <= 0):
        wrong = "it is declared positive"
    elif parameter.transform == "bounded" and np.any((value <= parameter.low) | (value >= parameter.high)):
        wrong = f"it lies between {parameter.low:g} and {parameter.high:g}"
    elif parameter.transform == "simplex" and (np.any(value <= 0) or abs(value.sum() - 1) > 1e-6):
        wrong = "its entries are positive and sum to one"
    if wrong:
        raise ValueError(f"{parameter.name} = {value.tolist()}: {wrong}.")
    if parameter.transform == "positive":
        return np.log(value)
    if parameter.transform == "bounded":
        share = (value - parameter.low) / (parameter.high - parameter.low)
        return np.log(share) - np.log1p(-share)
    if parameter.transform == "simplex":
        return np.log(value[:-1]) - np.log(value[-1])
    return value


def _checked(parameter: Parameter) -> Parameter:
    if not (np.isfinite(parameter.centre) and np.isfinite(parameter.scale) and parameter.scale > 0):
        raise ValueError(
            f"{parameter.name}: centre = {parameter.centre}, scale = {parameter.scale}: pass finite numbers, with a "
            "positive scale."
        )
    if parameter.prior is not None and not (np.isfinite(parameter.prior.mean) and parameter.prior.sd > 0):
        raise ValueError(f"{parameter.name}: prior = {parameter.prior}: pass Normal(mean, sd) with a positive sd.")
    start: Array | float = np.asarray(parameter.start, dtype=float)
    if parameter.labels and np.ndim(start) == 0:
        start = np.full(len(parameter.labels), float(start))
    _unconstrained(parameter, start)
    return parameter._replace(start=start if parameter.labels else float(start))
