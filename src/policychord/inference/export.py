"""What was found, for other programs: trees in ArviZ's groups, and a likelihood as a NumPyro model to sample.

`to_arviz` and `to_numpyro` take what `likelihood` made, so the model and its parameters are those that were estimated
and compared; `to_datatree` takes a whole `Fit`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .findings import sentence_of
from .fits import Fit, likelihood_of
from .likelihoods import Likelihood, pointwise
from .parameters import Parameter, natural, size
from .search import Estimate
from .uncertainty import covariance_of, draw_laplace

if TYPE_CHECKING:
    import xarray as xr

WIDE = 2.5  # sd on the unconstrained scale of a number without a declared prior
GRAIN = 2.0**-40  # nats, 9e-13: ln p under two draws that is closer than this differs by rounding only
CHAINS = 4  # draws are independent; ArviZ compares halves of several chains


def to_arviz(given: Likelihood, fitted: Estimate, *, draws: int = 400, method: str = "map", seed: int = 0) -> Any:
    """Draws of z_g ~ N(estimate, inverse curvature) on natural scales, and ln p of every decision under each.

    Answers with what the installed ArviZ reads: an `InferenceData` before 1.0, an `xarray.DataTree` from then on. A
    parameter has the dims (chain, draw, group); `log_likelihood` is by decision, so `arviz.loo` takes it as it is.
    """
    import xarray as xr

    z = draw_laplace(fitted.z, covariance_of(given, fitted.z, method), draws, np.random.default_rng(seed))
    log_p = np.stack([pointwise(given, row) for row in z])
    axes = log_p.ndim - 1 - given.weight.ndim  # weights are of units, or of decisions
    counted = np.broadcast_to(given.weight.reshape(*given.weight.shape, *[1] * axes) > 0, log_p.shape[1:])
    posterior = _natural_draws(given.parameters, z[None], ("group",))
    entries = _entries(given.parameters)
    tree = xr.DataTree.from_dict({
        "posterior": xr.Dataset(posterior, {"group": np.arange(given.groups), **entries}),
        "log_likelihood": xr.Dataset({given.model.name: (("chain", "draw", "decision"), log_p[:, counted][None])}),
    })  # fmt: skip
    return for_installed_arviz(tree)


def for_installed_arviz(tree: Any) -> Any:
    """A tree as the installed ArviZ takes it: an `InferenceData` before 1.0."""
    try:
        import arviz
    except ImportError:
        return tree
    read: Any = getattr(getattr(arviz, "InferenceData", None), "from_datatree", None)
    return tree if read is None else read(tree)


def _natural_draws(parameters: Sequence[Parameter], z: np.ndarray, dims: tuple[str, ...] = (), suffix: str = "") -> Any:
    """Variables of draws (chains, draws, ..., K) on natural scales, by name."""
    with jax.enable_x64(True):
        theta = jax.vmap(lambda row: natural(parameters, row))(jnp.asarray(z.reshape(-1, z.shape[-1])))
    variables = {}
    for parameter in parameters:
        own, entries = ((-1,), (f"{parameter.name}_entry",)) if parameter.labels else ((), ())
        values = np.asarray(theta[parameter.name]).reshape(*z.shape[:-1], *own)
        variables[parameter.name + suffix] = (("chain", "draw", *dims, *entries), values)
    return variables


def _entries(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Coordinates of vectors."""
    return {f"{parameter.name}_entry": list(parameter.labels) for parameter in parameters if parameter.labels}


def to_numpyro(given: Likelihood) -> Callable[[], None]:
    """The same model for NumPyro's samplers: `MCMC(NUTS(to_numpyro(given)), ...)`.

    Numbers have their declared priors, or N(0, 2.5^2) on the unconstrained scale. With several groups these are the
    priors of the groups' mean, and z_g = mean + sd offset_g with sd ~ HalfNormal(1), offset ~ N(0, 1). Natural values
    are recorded under the parameters' names.
    """
    import numpyro
    from numpyro import distributions as dist

    declared = [parameter.prior for parameter in given.parameters for _ in range(parameter.free)]
    centre = np.array([0.0 if prior is None else prior.mean for prior in declared])
    width = np.array([WIDE if prior is None else prior.sd for prior in declared])
    count, groups = size(given.parameters), given.groups
    units = jax.tree_util.tree_map(jnp.asarray, given.data)
    weight, group = jnp.asarray(given.weight), jnp.asarray(given.group)

    def log_prob(z: Any, unit: Any, weight: Any) -> Any:
        each = given.model.log_prob(natural(given.parameters, z), unit)
        return jnp.sum(jnp.where(weight > 0, weight * each, 0.0))

    def model() -> None:
        mean = numpyro.sample("mean", dist.Normal(centre, width).to_event(1))
        z = mean[None]
        if groups > 1:
            spread = numpyro.sample("sd", dist.HalfNormal(1.0).expand([count]).to_event(1))
            offset = numpyro.sample("offset", dist.Normal(0.0, 1.0).expand([groups, count]).to_event(2))
            z = mean + spread * offset
        for name, value in jax.vmap(lambda row: natural(given.parameters, row))(z).items():
            numpyro.deterministic(name, value if groups > 1 else value[0])
        numpyro.factor("decisions", jax.vmap(log_prob)(z[group], units, weight).sum())

    return model


# --------------------------------------------------------------------------------------------- a whole fit


def to_datatree(fit: Fit, draws: int = 200, seed: int = 0) -> "xr.DataTree":
    """The fit as an `xarray.DataTree` in ArviZ's groups.

    `posterior` holds draws of the Laplace approximation around the estimates (a normal distribution of z, carried to
    natural scales), `log_likelihood` ln p of every decision under each draw, `observed_data` the actions,
    `constant_data` what was seen. With groups, `eps` is the group's and `eps_person` everybody's own, under which
    decisions are scored. `estimates` holds the estimates with errors and profile intervals, `gating` the path
    of weights with certificates. ArviZ from 1.0 on reads it as it is, earlier ones by `InferenceData.from_datatree`.
    """
    import xarray as xr

    each, rng, seen = max(1, draws // CHAINS), np.random.default_rng(seed), fit.observations

    def draw(z: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        return draw_laplace(z, covariance, CHAINS * each, rng).reshape(CHAINS, each, *z.shape)

    own = shared = draw(fit.z[None], fit.covariance[None])[:, :, 0]
    posterior, entries = _natural_draws(fit.parameters, shared), _entries(fit.parameters)
    if fit.group is not None:
        own = draw(fit.group.z, fit.group.covariances)
        posterior |= _natural_draws(fit.parameters, own, ("person",), "_person")
        entries["person"] = np.unique(seen.subject)
    given = likelihood_of(fit)
    log_p = without_rounding(np.stack([[pointwise(given, row) for row in chain] for chain in own]))
    chains = {"chain": np.arange(CHAINS), "draw": np.arange(each)}
    constant: dict[str, Any] = {name: ("decision", getattr(seen, name)) for name in ("k", "subject", "block")}
    for path, leaf in jax.tree_util.tree_leaves_with_path(seen.observation):
        name = jax.tree_util.keystr(path).strip(".[]'") or "observation"
        constant[name] = (("decision", *(f"{name}_axis_{i}" for i in range(leaf.ndim - 1))), leaf)
    action_axes = tuple(f"action_axis_{i}" for i in range(np.ndim(seen.action) - 1))
    described = {"family": fit.family.name, "method": fit.method, "sentence": sentence_of(fit)}
    gating = {
        "weights": (("decision", "primitive"), fit.weights),
        "gap": ("decision", fit.gap, {"long_name": "certificate: V(w) - V* is at most this"}),
        "distance": ("decision", fit.distance, {"long_name": "certificate: |w - w*|_1 is at most this"}),
        "log_prob": ("decision", fit.pointwise, {"units": "nat"}),
    }
    return xr.DataTree.from_dict({
        "posterior": xr.Dataset(posterior, chains | entries, described | {"approximation": "Laplace"}),
        "log_likelihood": xr.Dataset({"action": (("chain", "draw", "decision"), log_p)}, chains),
        "observed_data": xr.Dataset({"action": (("decision", *action_axes), seen.action)}),
        "constant_data": xr.Dataset(constant),
        "estimates": _estimates(fit),
        "gating": xr.Dataset(gating, {"primitive": list(fit.primitives)}),
    })  # fmt: skip


def without_rounding(log_p: np.ndarray) -> np.ndarray:
    """Log-likelihoods as multiples of GRAIN, so that what differs by rounding only is the same.

    A decision that no parameter moves has one probability under all draws. With rounding errors between them,
    importance sampling by ArviZ (`az.loo`) fits a tail of width 1e-16 and gives NaN. Where they are the same it fits no
    tail: the decision counts with its exact probability, and its Pareto k is inf, which means that there is no tail.
    """
    return np.round(log_p / GRAIN) * GRAIN


def _estimates(fit: Fit) -> "xr.Dataset":
    import xarray as xr

    sure = fit.uncertainty
    names = [verdict.name for verdict in fit.verdicts]
    variables: dict[str, Any] = {
        "z": ("free", fit.optimum.z),
        "error": ("free", sure.errors),
        "robust_error": ("free", sure.robust_errors),
        "low": ("free", sure.intervals[:, 0]),
        "high": ("free", sure.intervals[:, 1]),
        "correlation": (("free", "free_too"), sure.correlation),
        "verdict": ("free", [verdict.grade for verdict in fit.verdicts]),
        "reason": ("free", ["; ".join(verdict.reasons) for verdict in fit.verdicts]),
        "log_likelihood": ((), fit.log_likelihood),
        "bic": ((), fit.bic),
        "held_out": ((), fit.held_out, {"units": "nat per decision", "folds": fit.held_out_by}),
    }
    if fit.group is not None:
        variables |= {
            "group_mean": ("free", fit.group.mean),
            "group_covariance": (("free", "free_too"), fit.group.covariance),
            "z_person": (("person", "free"), fit.group.z),
            "error_person": (("person", "free"), np.sqrt(np.einsum("gii->gi", fit.group.covariances))),
        }
    theta, errors = fit.theta, fit.errors
    for parameter in fit.parameters:
        dims = (f"{parameter.name}_entry",) if parameter.labels else ()
        variables[f"natural_{parameter.name}"] = (dims, theta[parameter.name])
        variables[f"error_{parameter.name}"] = (dims, errors[parameter.name])
    people = {} if fit.group is None else {"person": np.unique(fit.observations.subject)}
    return xr.Dataset(variables, {"free": names, "free_too": names} | people)
