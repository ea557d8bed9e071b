"""What a fit found, for others: a labelled tree in ArviZ's groups, tables in Markdown, figures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .fits import Fit, likelihood_of, sentence_of
from .likelihoods import pointwise
from .parameters import natural
from .recovery import Information, Recovery, coverage
from .uncertainty import MOST_CORRELATED

if TYPE_CHECKING:
    import xarray as xr

GRAIN = 2.0**-40  # nats, 9e-13: ln p under two draws that is closer than this differs by rounding only
CHAINS = 4  # draws are independent; ArviZ compares halves of several chains
# Okabe-Ito: told apart by colour-blind readers and in print
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
GREY, DARK = "0.55", "0.25"
GRADES = ("identified", "weakly identified", "not identified")


# ------------------------------------------------------------------------------------------------- tree


def to_datatree(found: Fit, draws: int = 200, seed: int = 0) -> "xr.DataTree":
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
    z, covariance = found.z, found.uncertainty.covariance
    covariance = covariance if found.group is None else np.diag(found.group.error**2)
    shared = _draws(rng, z, covariance, CHAINS * each)
    posterior = _natural_draws(found, shared, "", ())
    entries: dict[str, Any] = {f"{one.name}_entry": list(one.labels) for one in found.parameters if one.labels}
    own = shared
    if found.group is not None:
        people = zip(found.group.z, found.group.covariances, strict=True)
        own = np.stack([_draws(rng, *person, CHAINS * each) for person in people], axis=1)
        posterior |= _natural_draws(found, own, "_person", ("person",))
        entries["person"] = np.unique(found.observations.subject)
    posed = likelihood_of(found)
    log_p = without_rounding(np.stack([pointwise(posed, row) for row in own])).reshape(CHAINS, each, -1)
    chains = {"chain": np.arange(CHAINS), "draw": np.arange(each)}
    seen = found.observations
    constant: dict[str, Any] = {
        "k": ("decision", seen.k),
        "subject": ("decision", seen.subject),
        "block": ("decision", seen.block),
    }
    for path, leaf in jax.tree_util.tree_leaves_with_path(seen.observation):
        name = jax.tree_util.keystr(path).strip(".[]'") or "observation"
        constant[name] = (("decision", *(f"{name}_axis_{i}" for i in range(leaf.ndim - 1))), leaf)
    action_axes = tuple(f"action_axis_{i}" for i in range(np.ndim(seen.action) - 1))
    described = {"family": found.family.name, "method": found.method, "sentence": sentence_of(found)}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(posterior, chains | entries, described | {"approximation": "Laplace"}),
            "log_likelihood": xr.Dataset({"action": (("chain", "draw", "decision"), log_p)}, chains),
            "observed_data": xr.Dataset({"action": (("decision", *action_axes), seen.action)}),
            "constant_data": xr.Dataset(constant),
            "estimates": _estimates(found),
            "gating": xr.Dataset(
                {
                    "weights": (("decision", "primitive"), found.weights),
                    "gap": ("decision", found.gap, {"long_name": "certificate: V(w) - V* is at most this"}),
                    "distance": ("decision", found.distance, {"long_name": "certificate: |w - w*|_1 is at most this"}),
                    "log_prob": ("decision", found.pointwise, {"units": "nat"}),
                },
                {"primitive": list(found.primitives)},
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


def _natural_draws(found: Fit, z: np.ndarray, suffix: str, dims: tuple[str, ...]) -> dict[str, Any]:
    """Draws (draws, ..., K) on natural scales, by name."""
    flat = z.reshape(-1, z.shape[-1])
    with jax.enable_x64(True):
        values = jax.vmap(lambda row: natural(found.parameters, row))(flat)
    answer = {}
    for one in found.parameters:
        shape = (CHAINS, -1, *z.shape[1:-1], *((len(one.labels),) if one.labels else ()))
        named = ("chain", "draw", *dims, *((f"{one.name}_entry",) if one.labels else ()))
        answer[one.name + suffix] = (named, np.asarray(values[one.name]).reshape(shape))
    return answer


def _estimates(found: Fit) -> "xr.Dataset":
    import xarray as xr

    sure = found.uncertainty
    names = [verdict.name for verdict in found.verdicts]
    ends = np.array(sure.intervals).reshape(-1, 2)
    variables = {
        "z": ("free", found.optimum.z),
        "error": ("free", sure.errors),
        "robust_error": ("free", sure.robust_errors),
        "low": ("free", ends[:, 0]),
        "high": ("free", ends[:, 1]),
        "correlation": (("free", "free_too"), sure.correlation),
        "verdict": ("free", [verdict.grade for verdict in found.verdicts]),
        "reason": ("free", ["; ".join(verdict.reasons) for verdict in found.verdicts]),
        "log_likelihood": ((), found.log_likelihood),
        "bic": ((), found.bic),
        "held_out": ((), found.held_out, {"units": "nat a decision", "folds": found.held_out_by}),
    }
    if found.group is not None:
        variables |= {
            "group_mean": ("free", found.group.mean),
            "group_covariance": (("free", "free_too"), found.group.covariance),
            "z_person": (("person", "free"), found.group.z),
            "error_person": (("person", "free"), np.sqrt(np.einsum("gii->gi", found.group.covariances))),
        }
    people = {} if found.group is None else {"person": np.unique(found.observations.subject)}
    dataset = xr.Dataset(variables, {"free": names, "free_too": names} | people)
    for one in found.parameters:
        dims = (f"{one.name}_entry",) if one.labels else ()
        dataset[f"natural_{one.name}"] = (dims, found.theta[one.name])
        dataset[f"error_{one.name}"] = (dims, found.errors[one.name])
    return dataset


# ------------------------------------------------------------------------------------------------- words


def estimate_rows(found: Fit) -> list[dict[str, Any]]:
    """One row for each natural number: estimate, errors, 95% interval, verdict.

    An entry of a simplex has the interval of its odds over the last entry. Its verdict is the worst of all log ratios,
    whose reasons stand once, in the first row.
    """
    rows, at = [], 0
    for one in found.parameters:
        grades = found.verdicts[at : at + one.free]
        values = np.atleast_1d(found.theta[one.name])
        for i, value in enumerate(values):
            shared = one.transform == "simplex"
            own = grades if shared else grades[i : i + 1]
            worst = max(own, key=lambda verdict: GRADES.index(verdict.grade))
            interval = None if shared else np.atleast_2d(found.intervals[one.name])[i]
            odds = np.exp(found.intervals[one.name][i]) if shared and i < one.free else None
            told = [
                f"{verdict.name.removeprefix(f'{one.name}: ')}: {reason}" if shared else reason
                for verdict in own if i == 0 or not shared for reason in verdict.reasons
            ]  # fmt: skip
            rows.append({
                "parameter": f"{one.name}: {one.labels[i]}" if one.labels else one.name,
                "estimate": float(value),
                "error": float(np.atleast_1d(found.errors[one.name])[i]),
                "robust_error": float(np.atleast_1d(found.robust_errors[one.name])[i]),
                "interval": None if interval is None else (float(interval[0]), float(interval[1])),
                "odds": None if odds is None else (float(odds[0]), float(odds[1])),
                "verdict": worst.grade,
                "reason": "; ".join(told),
            })  # fmt: skip
        at += one.free
    return rows


def interval_text(row: dict[str, Any], digits: int = 4) -> str:
    """The interval of a row of `estimate_rows`, in words."""
    ends = row["interval"] or row["odds"]
    if ends is None:
        return "-"
    low, high = (_number(end, digits) for end in ends)
    return f"{low} to {high}" + (" (odds)" if row["interval"] is None else "")


def person_rows(found: Fit) -> list[dict[str, Any]]:
    """With groups, one row for each person: estimates on natural scales, shrunk towards the group."""
    if found.group is None:
        return []
    rows = []
    for label, z in zip(np.unique(found.observations.subject), found.group.z, strict=True):
        theta = {name: np.asarray(value).tolist() for name, value in natural(found.parameters, z).items()}
        rows.append({"person": label.item(), **theta})
    return rows


def rival_rows(found: Fit) -> list[dict[str, Any]]:
    """One row for the agent and each rival, best held-out score first."""
    rows = [{"account": "composed", "parameters": sum(one.free for one in found.parameters),
             "log_likelihood": found.log_likelihood, "BIC": found.bic, "held_out": found.held_out, "gain": None,
             "gain_error": None}]  # fmt: skip
    rows += [
        {"account": one.name, "parameters": one.parameters, "log_likelihood": one.log_likelihood, "BIC": one.bic,
         "held_out": one.held_out, "gain": one.gain.mean, "gain_error": one.gain.error}
        for one in found.rivals
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -float(row["held_out"] or 0.0))


def describe(found: Fit) -> str:
    """The fit in plain words, as Markdown."""
    own = [
        [row["parameter"], _number(row["estimate"]), _number(row["error"]), _number(row["robust_error"]),
         interval_text(row),
         row["verdict"] + (f": {row['reason']}" if row["reason"] else "")]
        for row in estimate_rows(found)
    ]  # fmt: skip
    lines = [
        f"{found.decisions} decisions; log-likelihood {found.log_likelihood:.2f}, BIC {found.bic:.1f}, "
        f"{_method(found)}.",
        *found.notes, "",
        *table(["parameter", "estimate", "error", "error, clustered", "95% interval", "verdict"], own), "",
        _how_sure(found),
    ]  # fmt: skip
    if found.rivals:
        others = [
            [row["account"], str(row["parameters"]), f"{row['log_likelihood']:.2f}", f"{row['BIC']:.1f}",
             f"{row['held_out']:.4f}", "" if row["gain"] is None else f"{row['gain']:+.4f} ± {row['gain_error']:.4f}"]
            for row in rival_rows(found)
        ]  # fmt: skip
        lines += ["", "## Is gating needed?", "", sentence_of(found), "", *table(
            ["account", "parameters", "log-likelihood", "BIC", "held out", "the composed agent gains"], others
        ), "", "Held out: nats a decision, under estimates without the decision's fold. Gains are paired over the same "
        f"decisions, with errors over {found.held_out_by}s."]  # fmt: skip
    return "\n".join(lines) + "\n"


def _method(found: Fit) -> str:
    if found.group is not None:
        return "empirical Bayes"
    return "maximum likelihood" if found.method == "ml" else "maximum a posteriori"


def _how_sure(found: Fit) -> str:
    """Where errors and intervals come from."""
    if found.group is not None:
        return (
            f"Estimates are the mean of {len(found.group.z)} people, by empirical Bayes, with the error of that mean. "
            "Verdicts are about the estimate that all share: it has more data than anybody."
        )
    words = "Errors are from the curvature of the likelihood, and from its sandwich over clusters; intervals are "
    if len(found.uncertainty.profiled) == len(found.verdicts):
        return words + "profiles of the likelihood. An open interval ends at 0 or infinity."
    if not found.uncertainty.profiled:
        return words + "from the curvature, too: no profile was climbed."
    names = ", ".join(found.verdicts[j].name for j in found.uncertainty.profiled)
    return words + f"profiles of the likelihood for {names}, and from the curvature for the others."


def recovery_rows(found: Recovery) -> list[list[str]]:
    """One row for each free number of a recovery."""
    rows = []
    for j, name in enumerate(found.names):
        wald, profiled = coverage(found, name)
        shown = "-" if profiled is None else f"{profiled.share:.3f} ({profiled.low:.2f} to {profiled.high:.2f})"
        rows.append([name, _number(found.truth[j]), f"{found.bias[j]:+.3f}", _number(found.sd[j]),
                     f"{wald.share:.3f}", shown, f"{found.needed[j]:,.0f}"])  # fmt: skip
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


# ----------------------------------------------------------------------------------------------- figures


def draw_estimates(found: Fit) -> Any:
    """Estimates on the unconstrained scale with their profile intervals; grey where a parameter is not identified."""
    figure, ax = _blank(5.4, 0.9 + 0.36 * len(found.verdicts))
    ends = np.array(found.uncertainty.intervals).reshape(-1, 2)
    colours = {"identified": COLOURS[0], "weakly identified": COLOURS[4], "not identified": GREY}
    finite = ends[np.isfinite(ends)]
    low, high = (finite.min() - 0.5, finite.max() + 0.5) if finite.size else (-5.0, 5.0)
    for row, (verdict, z) in enumerate(zip(found.verdicts, found.optimum.z, strict=True)):
        begin, end = np.clip(ends[row], low, high)
        ax.plot([begin, end], [row, row], color=colours[verdict.grade], linewidth=3, solid_capstyle="butt")
        for place, wanted in ((begin, ends[row, 0]), (end, ends[row, 1])):
            if np.isinf(wanted):
                ax.plot(place, row, marker="<" if wanted < 0 else ">", color=colours[verdict.grade], markersize=7)
        ax.plot(
            np.clip(z, low, high), row, "o", markeredgecolor=DARK, markerfacecolor=colours[verdict.grade], markersize=6
        )
    ax.set_yticks(range(len(found.verdicts)), [verdict.name for verdict in found.verdicts])
    ax.set(ylim=(len(found.verdicts) - 0.5, -0.5), xlim=(low - 0.2, high + 0.2), xlabel="unconstrained scale")
    for grade, colour in colours.items():
        ax.plot([], [], color=colour, linewidth=3, label=grade)
    ax.legend(fontsize=7.5, ncols=3, loc="lower center", bbox_to_anchor=(0.4, 1.0), frameon=False)
    return figure


def draw_rivals(found: Fit) -> Any:
    """What the composed agent gains over each rival, nats a decision, held out; a log-like scale keeps all in sight."""
    rows = sorted(found.rivals, key=lambda one: one.gain.mean)
    figure, ax = _blank(5.4, 0.8 + 0.34 * len(rows))
    for row, one in enumerate(rows):
        colour = GREY if not one.gain.clear else COLOURS[0] if one.gain.mean > 0 else COLOURS[1]
        ax.errorbar(one.gain.mean, row, xerr=1.96 * one.gain.error, fmt="o", color=colour, markersize=5, capsize=0)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.set_xscale("symlog", linthresh=0.01)
    ax.set_xticks([-1, -0.1, -0.01, 0, 0.01, 0.1, 1, 10], ["-1", "-.1", "-.01", "0", ".01", ".1", "1", "10"])
    ax.minorticks_off()
    ends = [one.gain.mean + sign * 2.2 * one.gain.error for one in rows for sign in (-1, 1)]
    ax.set_xlim(min(-0.012, *ends) * 1.3, max(0.012, *ends) * 1.3)
    ax.set_yticks(range(len(rows)), [one.name for one in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel="composed agent gains, nats a decision")
    return figure


def draw_correlations(names: Sequence[str], correlation: np.ndarray, needed: np.ndarray | None = None) -> Any:
    """Which numbers can be told apart: correlations of estimates (bold beyond .9), and decisions for an error of .1."""
    figure, ax = _blank(6.4 if needed is None else 8.2, 1.4 + 0.42 * len(names), 1 if needed is None else 2)
    first = ax if needed is None else ax[0]
    others = np.where(np.eye(len(names), dtype=bool), np.nan, correlation)  # that with itself says nothing
    image = first.imshow(others, cmap="RdBu_r", vmin=-1, vmax=1)
    for i in range(len(names)):
        for j in range(len(names)):
            if i == j:
                continue
            dark, twins = abs(correlation[i, j]) > 0.6, abs(correlation[i, j]) > MOST_CORRELATED
            first.text(j, i, f"{correlation[i, j]:.2f}", ha="center", va="center", fontsize=7.5,
                       color="white" if dark else "black", weight="bold" if twins else "normal")  # fmt: skip
    first.set_xticks(range(len(names)), names, rotation=30, ha="right")
    first.set_yticks(range(len(names)), names)
    figure.colorbar(image, ax=first, shrink=0.8, label="correlation")
    if needed is not None:
        # dots: a logarithmic axis has no zero where bars could begin
        ax[1].plot(needed, range(len(names)), "o", color=COLOURS[0], markersize=6)
        ax[1].set(xscale="log", xlabel="decisions for an error of .1", ylim=(len(names) - 0.5, -0.5), yticks=[])
        ax[1].grid(axis="x", color="0.9")
        for j, value in enumerate(needed):
            ax[1].annotate(f"{value:,.0f}", (value, j), (6, 0), textcoords="offset points", va="center", fontsize=7.5)
        ax[1].set_xlim(float(np.min(needed)) / 3, float(np.max(needed)) * 12)
    return figure


def draw_weights(found: Fit) -> Any:
    """How the weights are spread over the decisions: a constant mixture would be one bar."""
    count = len(found.primitives)
    figure, axes = _blank(2.3 * count, 2.2, count)
    for a, name in enumerate(found.primitives):
        ax = axes[a] if count > 1 else axes
        ax.hist(found.weights[:, a], np.linspace(0, 1, 31), color=COLOURS[a % len(COLOURS)])
        ax.set(title=name, xlabel="weight", xlim=(0, 1), yticks=[])
        ax.spines["left"].set_visible(False)
    return figure


def draw_people(found: Fit) -> Any:
    """With groups: everybody's estimate around the group's mean, which has a band of two of the group's sd."""
    assert found.group is not None
    names = [verdict.name for verdict in found.verdicts]
    figure, ax = _blank(5.4, 0.8 + 0.42 * len(names))
    rng, sd = np.random.default_rng(0), np.sqrt(np.diag(found.group.covariance))
    for j in range(len(names)):
        own = found.group.z[:, j]
        mean = found.group.mean[j]
        ax.plot([mean - 2 * sd[j], mean + 2 * sd[j]], [j, j], color=COLOURS[5], linewidth=12, alpha=0.5,
                solid_capstyle="butt")  # fmt: skip
        ax.plot(own, j + rng.uniform(-0.22, 0.22, len(own)), ".", color=COLOURS[0], alpha=0.7, markersize=5)
        ax.plot([mean] * 2, [j - 0.3, j + 0.3], color=DARK, linewidth=1.6)
    ax.set_yticks(range(len(names)), names)
    ax.set(
        ylim=(len(names) - 0.5, -0.5), xlabel="unconstrained scale (dots: people, bar: mean, band: 2 sd of the group)"
    )
    return figure


def draw_recovery(found: Recovery) -> Any:
    """Estimates of all simulated experiments around the truth, in units of the unconstrained scale."""
    figure, ax = _blank(5.4, 0.8 + 0.42 * len(found.names))
    rng = np.random.default_rng(0)
    for j in range(len(found.names)):
        offset = found.estimates[:, j] - found.truth[j]
        ax.plot(offset, j + rng.uniform(-0.22, 0.22, len(offset)), ".", color=COLOURS[0], alpha=0.45, markersize=4)
        ax.plot([found.bias[j]] * 2, [j - 0.3, j + 0.3], color=DARK, linewidth=1.6)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.set_yticks(range(len(found.names)), found.names)
    spread = float(np.quantile(np.abs(found.estimates - found.truth), 0.99)) * 1.15
    ax.set(ylim=(len(found.names) - 0.5, -0.5), xlim=(-spread, spread), xlabel="estimate less truth (bar: bias)")
    return figure


def _blank(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    ax: Any = figure.subplots(1, columns)
    for one in np.atleast_1d(ax):
        one.spines[["top", "right"]].set_visible(False)
    return figure, ax
