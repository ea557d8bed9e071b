"""What a fit found, for others: a labelled tree in ArviZ's groups, and tables in Markdown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .findings import comparison_table, describe_comparison
from .fits import Fit, likelihood_of, sentence_of
from .likelihoods import pointwise
from .parameters import natural
from .recovery import Information, Recovery, coverage

if TYPE_CHECKING:
    import xarray as xr

GRAIN = 2.0**-40  # nats, 9e-13: ln p under two draws that is closer than this differs by rounding only
CHAINS = 4  # draws are independent; ArviZ compares halves of several chains
GRADES = ("identified", "weakly identified", "not identified")


# ------------------------------------------------------------------------------------------------- tree


def to_datatree(fit: Fit, draws: int = 200, seed: int = 0) -> "xr.DataTree":
    """The fit as an `xarray.DataTree` in ArviZ's groups.

    `posterior` holds draws of the Laplace approximation around the estimates (a normal distribution of z, carried to
    natural scales), `log_likelihood` ln p of every decision under each draw, `observed_data` the actions,
    `constant_data` what was seen. With groups, `eps` is the group's and `eps_person` everybody's own, under which
    decisions are scored. `estimates` holds the estimates with errors and profile intervals, `gating` the path
    of weights with certificates. ArviZ from 1.0 on reads it as it is, earlier ones by `InferenceData.from_datatree`.
    """
    import xarray as xr

    each = max(1, draws // CHAINS)
    rng = np.random.default_rng(seed)
    z, covariance = fit.z, fit.uncertainty.covariance
    covariance = covariance if fit.group is None else np.diag(fit.group.error**2)
    shared = _draws(rng, z, covariance, CHAINS * each)
    posterior = _natural_draws(fit, shared, "", ())
    entries: dict[str, Any] = {
        f"{parameter.name}_entry": list(parameter.labels) for parameter in fit.parameters if parameter.labels
    }
    own = shared
    if fit.group is not None:
        people = zip(fit.group.z, fit.group.covariances, strict=True)
        own = np.stack([_draws(rng, *person, CHAINS * each) for person in people], axis=1)
        posterior |= _natural_draws(fit, own, "_person", ("person",))
        entries["person"] = np.unique(fit.observations.subject)
    posed = likelihood_of(fit)
    log_p = without_rounding(np.stack([pointwise(posed, row) for row in own])).reshape(CHAINS, each, -1)
    chains = {"chain": np.arange(CHAINS), "draw": np.arange(each)}
    seen = fit.observations
    constant: dict[str, Any] = {
        "k": ("decision", seen.k),
        "subject": ("decision", seen.subject),
        "block": ("decision", seen.block),
    }
    for path, leaf in jax.tree_util.tree_leaves_with_path(seen.observation):
        name = jax.tree_util.keystr(path).strip(".[]'") or "observation"
        constant[name] = (("decision", *(f"{name}_axis_{i}" for i in range(leaf.ndim - 1))), leaf)
    action_axes = tuple(f"action_axis_{i}" for i in range(np.ndim(seen.action) - 1))
    described = {"family": fit.family.name, "method": fit.method, "sentence": sentence_of(fit)}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(posterior, chains | entries, described | {"approximation": "Laplace"}),
            "log_likelihood": xr.Dataset({"action": (("chain", "draw", "decision"), log_p)}, chains),
            "observed_data": xr.Dataset({"action": (("decision", *action_axes), seen.action)}),
            "constant_data": xr.Dataset(constant),
            "estimates": _estimates(fit),
            "gating": xr.Dataset(
                {
                    "weights": (("decision", "primitive"), fit.weights),
                    "gap": ("decision", fit.gap, {"long_name": "certificate: V(w) - V* is at most this"}),
                    "distance": ("decision", fit.distance, {"long_name": "certificate: |w - w*|_1 is at most this"}),
                    "log_prob": ("decision", fit.pointwise, {"units": "nat"}),
                },
                {"primitive": list(fit.primitives)},
            ),
        }
    )


def without_rounding(log_p: np.ndarray) -> np.ndarray:
    """Log-likelihoods as multiples of GRAIN, so that what differs by rounding only is the same.

    A decision that no parameter moves has one probability under all draws. With rounding errors between them,
    importance sampling by ArviZ (`az.loo`) fits a tail of width 1e-16 and gives NaN. Where they are the same it fits no
    tail: the decision counts with its exact probability, and its Pareto k is inf, which means that there is no tail.
    """
    return np.round(log_p / GRAIN) * GRAIN


def _draws(rng: np.random.Generator, z: np.ndarray, covariance: np.ndarray, count: int) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    noise = rng.normal(size=(count, len(values)))
    # a direction that the data leave open is drawn no wider than ten units: beyond, nothing changes
    return z + (noise * np.sqrt(np.clip(values, 0.0, 100.0))) @ vectors.T


def _natural_draws(fit: Fit, z: np.ndarray, suffix: str, dims: tuple[str, ...]) -> dict[str, Any]:
    """Draws (draws, ..., K) on natural scales, by name."""
    flat = z.reshape(-1, z.shape[-1])
    with jax.enable_x64(True):
        values = jax.vmap(lambda row: natural(fit.parameters, row))(flat)
    answer = {}
    for parameter in fit.parameters:
        shape = (CHAINS, -1, *z.shape[1:-1], *((len(parameter.labels),) if parameter.labels else ()))
        named = ("chain", "draw", *dims, *((f"{parameter.name}_entry",) if parameter.labels else ()))
        answer[parameter.name + suffix] = (named, np.asarray(values[parameter.name]).reshape(shape))
    return answer


def _estimates(fit: Fit) -> "xr.Dataset":
    import xarray as xr

    sure = fit.uncertainty
    names = [verdict.name for verdict in fit.verdicts]
    ends = np.array(sure.intervals).reshape(-1, 2)
    variables = {
        "z": ("free", fit.optimum.z),
        "error": ("free", sure.errors),
        "robust_error": ("free", sure.robust_errors),
        "low": ("free", ends[:, 0]),
        "high": ("free", ends[:, 1]),
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
    people = {} if fit.group is None else {"person": np.unique(fit.observations.subject)}
    dataset = xr.Dataset(variables, {"free": names, "free_too": names} | people)
    for parameter in fit.parameters:
        dims = (f"{parameter.name}_entry",) if parameter.labels else ()
        dataset[f"natural_{parameter.name}"] = (dims, fit.theta[parameter.name])
        dataset[f"error_{parameter.name}"] = (dims, fit.errors[parameter.name])
    return dataset


# ------------------------------------------------------------------------------------------------- words


def estimate_rows(fit: Fit) -> list[dict[str, Any]]:
    """One row for each natural number: estimate, errors, 95% interval, verdict.

    An entry of a simplex has the interval of its odds over the last entry. Its verdict is the worst of all log ratios,
    whose reasons stand once, in the first row.
    """
    rows, at = [], 0
    for parameter in fit.parameters:
        grades = fit.verdicts[at : at + parameter.free]
        values = np.atleast_1d(fit.theta[parameter.name])
        for i, value in enumerate(values):
            shared = parameter.transform == "simplex"
            own = grades if shared else grades[i : i + 1]
            worst = max(own, key=lambda verdict: GRADES.index(verdict.grade))
            interval = None if shared else np.atleast_2d(fit.intervals[parameter.name])[i]
            odds = np.exp(fit.intervals[parameter.name][i]) if shared and i < parameter.free else None
            reasons = [
                f"{verdict.name.removeprefix(f'{parameter.name}: ')}: {reason}" if shared else reason
                for verdict in own if i == 0 or not shared for reason in verdict.reasons
            ]  # fmt: skip
            rows.append({
                "parameter": f"{parameter.name}: {parameter.labels[i]}" if parameter.labels else parameter.name,
                "estimate": float(value),
                "error": float(np.atleast_1d(fit.errors[parameter.name])[i]),
                "robust_error": float(np.atleast_1d(fit.robust_errors[parameter.name])[i]),
                "interval": None if interval is None else (float(interval[0]), float(interval[1])),
                "odds": None if odds is None else (float(odds[0]), float(odds[1])),
                "verdict": worst.grade,
                "reason": "; ".join(reasons),
            })  # fmt: skip
        at += parameter.free
    return rows


def interval_text(row: dict[str, Any], digits: int = 4) -> str:
    """The interval of a row of `estimate_rows`, in words."""
    ends = row["interval"] or row["odds"]
    if ends is None:
        return "-"
    low, high = (_number(end, digits) for end in ends)
    return f"{low} to {high}" + (" (odds)" if row["interval"] is None else "")


def person_rows(fit: Fit) -> list[dict[str, Any]]:
    """With groups, one row for each person: estimates on natural scales, shrunk towards the group."""
    if fit.group is None:
        return []
    rows = []
    for label, z in zip(np.unique(fit.observations.subject), fit.group.z, strict=True):
        theta = {name: np.asarray(value).tolist() for name, value in natural(fit.parameters, z).items()}
        rows.append({"person": label.item(), **theta})
    return rows


def describe(fit: Fit) -> str:
    """The fit in plain words, as Markdown."""
    gating = [] if fit.comparison is None else ["", "## Is gating needed?", "", describe_gating(fit)]
    return "\n".join([describe_estimates(fit), *gating]) + "\n"


def describe_estimates(fit: Fit) -> str:
    """The estimates and how sure they are, as Markdown."""
    rows = [
        [row["parameter"], _number(row["estimate"]), _number(row["error"]), _number(row["robust_error"]),
         interval_text(row), row["verdict"] + (f": {row['reason']}" if row["reason"] else "")]
        for row in estimate_rows(fit)
    ]  # fmt: skip
    columns = ["parameter", "estimate", "error", "error, clustered", "95% interval", "verdict"]
    return "\n".join([
        f"{fit.decisions} decisions; log-likelihood {fit.log_likelihood:.2f}, BIC {fit.bic:.1f}, "
        f"{_method(fit)}.",
        *fit.notes, "", *table(columns, rows), "", _how_sure(fit),
    ])  # fmt: skip


def describe_gating(fit: Fit) -> str:
    """Whether gating is needed, what else the comparison says, and its table, as Markdown."""
    assert fit.comparison is not None
    sentences = [sentence_of(fit), *describe_comparison(fit.comparison)]
    explained = (
        "Held out: nats per decision, under estimates without the decision's fold. Differences are paired over the "
        f"same decisions, with standard errors over {'subject' if fit.group is not None else fit.held_out_by}s."
    )
    return "\n\n".join([*dict.fromkeys(sentences), "\n".join(table(*comparison_table(fit.comparison))), explained])


def _method(fit: Fit) -> str:
    if fit.group is not None:
        return "empirical Bayes"
    return "maximum likelihood" if fit.method == "ml" else "maximum a posteriori"


def _how_sure(fit: Fit) -> str:
    """Where errors and intervals come from."""
    if fit.group is not None:
        return (
            f"Estimates are the mean of {len(fit.group.z)} people, by empirical Bayes, with the error of that mean. "
            "Verdicts are about the estimate that all share: it has more data than anybody."
        )
    words = "Errors are from the curvature of the likelihood, and from its sandwich over clusters; intervals are "
    if len(fit.uncertainty.profiled) == len(fit.verdicts):
        return words + "profiles of the likelihood. An open interval ends at 0 or infinity."
    if not fit.uncertainty.profiled:
        return words + "from the curvature, too: no profile was computed."
    names = ", ".join(fit.verdicts[j].name for j in fit.uncertainty.profiled)
    return words + f"profiles of the likelihood for {names}, and from the curvature for the others."


def recovery_rows(recovery: Recovery) -> list[list[str]]:
    """One row for each free number of a recovery."""
    rows = []
    for j, name in enumerate(recovery.names):
        wald, profiled = coverage(recovery, name)
        shown = "-" if profiled is None else f"{profiled.share:.3f} ({profiled.low:.2f} to {profiled.high:.2f})"
        rows.append([name, _number(recovery.truth[j]), f"{recovery.bias[j]:+.3f}", _number(recovery.sd[j]),
                     f"{wald.share:.3f}", shown, f"{recovery.needed[j]:,.0f}"])  # fmt: skip
    return rows


RECOVERY_COLUMNS = ["free number", "truth", "bias", "sd", "coverage, curvature", "coverage, profile",
                    "decisions for an error of .1"]  # fmt: skip


def information_rows(known: Information) -> list[list[str]]:
    """One row for each free number: decisions for an error of .1, with all free and alone, and its worst partner."""
    rows, correlation = [], known.correlation - np.eye(len(known.names))
    for j, name in enumerate(known.names):
        partner = int(np.argmax(np.abs(correlation[j])))
        worst = "-" if len(known.names) < 2 else f"{known.names[partner]} ({correlation[j, partner]:+.2f})"
        rows.append([name, f"{known.needed[j]:,.0f}", f"{known.needed_alone[j]:,.0f}", worst])
    return rows


INFORMATION_COLUMNS = ["free number", "decisions, all free", "decisions, alone", "most correlated with"]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows)]


def _number(value: float, digits: int = 4) -> str:
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{value:.{digits}g}"
