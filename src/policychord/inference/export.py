"""A likelihood for other programs: `to_arviz` (draws of the Laplace approximation), `to_numpyro` (a model to sample).

Both take what `likelihood` made, so the model and its parameters are those that were estimated and compared.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .likelihoods import Likelihood, pointwise
from .optimise import Estimate, of_groups, with_declared_prior
from .parameters import natural, size
from .uncertainty import curvature, inverse_of

WIDE = 2.5  # sd on the unconstrained scale of a number without a declared prior


def to_arviz(given: Likelihood, found: Estimate, *, draws: int = 400, method: str = "map", seed: int = 0) -> Any:
    """Draws of z_g ~ N(estimate, inverse curvature) on natural scales, and ln p of every decision under each.

    Answers with what the installed ArviZ reads: an `InferenceData` before 1.0, an `xarray.DataTree` from then on. A
    parameter has the dims (chain, draw, group); `log_likelihood` is by decision, so `arviz.loo` takes it as it is.
    """
    import xarray as xr

    objective = with_declared_prior(of_groups(given, products=True), given, method)
    covariance, _ = inverse_of(curvature(objective, found.z))
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(found.z.shape[1]))
    normal = np.random.default_rng(seed).normal(size=(draws, *found.z.shape))
    z = found.z + np.einsum("gij,dgj->dgi", root, normal)
    log_p = np.stack([pointwise(given, row) for row in z])
    axes = log_p.ndim - 1 - given.weight.ndim  # weights are of units, or of decisions
    counted = np.broadcast_to(given.weight.reshape(*given.weight.shape, *[1] * axes) > 0, log_p.shape[1:])
    theta = jax.vmap(jax.vmap(lambda row: natural(given.parameters, row)))(jnp.asarray(z))
    posterior, entries = {}, {}
    for parameter in given.parameters:
        dims = ("chain", "draw", "group", *((f"{parameter.name}_entry",) if parameter.labels else ()))
        posterior[parameter.name] = (dims, np.asarray(theta[parameter.name])[None])
        if parameter.labels:
            entries[f"{parameter.name}_entry"] = list(parameter.labels)
    tree = xr.DataTree.from_dict({
        "posterior": xr.Dataset(posterior, {"group": np.arange(given.groups), **entries}),
        "log_likelihood": xr.Dataset({given.model.name: (("chain", "draw", "decision"), log_p[:, counted][None])}),
    })  # fmt: skip
    return _for_installed_arviz(tree)


def _for_installed_arviz(tree: Any) -> Any:
    try:
        import arviz
    except ImportError:
        return tree
    read: Any = getattr(getattr(arviz, "InferenceData", None), "from_datatree", None)
    return tree if read is None else read(tree)


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
