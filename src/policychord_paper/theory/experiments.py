"""What is computed: paths of the flow, circuits, identities and limits. `experiments` names the steps."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from policychord import (
    Outcome,
    Problem,
    certify,
    circuit,
    circuit_stability,
    complexity,
    energy,
    flow,
    gate,
    primitive_cost,
    problem,
    solve,
    time_scales,
)
from policychord.core.stability import curvatures

from ..study import Recorded
from . import agents
from .agents import SHAPES, STATED, geometric_ladder, pick, random_problems, random_weights
from .measures import (  # fmt: skip
    Certificates,
    Evidence,
    Followed,
    HeldUnits,
    Identities,
    Ladders,
    Oscillation,
    OtherComplexity,
    Paths,
    Settling,
    Starts,
    Variants,
    decay_rate,
)
from .settings import TheorySettings

EXACT = 1e-20  # a gap at which the optimum is known to all digits that matter here
# Steps that share a compiled program: flows and circuits by the number of primitives.
FLOWS = {"flow, three primitives": 3, "flow, six primitives": 6}
CIRCUITS = {"circuit, three primitives": 3, "circuit, two primitives": 2}
EXACT_ENOUGH = 1e-14  # what must be certified where rounding hides smaller gaps: recorded costs reach 2e4
PER_TAU = 10  # moments of the circuit that are stored
EVERYWHERE = 4  # problems of each shape whose flow starts everywhere
LONG = 40.0  # tau, after which it is looked at
SPANS = 40.0  # time constants for which one unit of a circuit is followed
AT_REST = 1e-4  # a distance of which a millionth cannot be told from the integrator's error


def experiments(settings: TheorySettings) -> Mapping[str, Callable[[], Any]]:
    """Every step by name, the longest first."""
    steps: dict[str, Callable[[], Any]] = {
        name: partial(_follow, settings, primitives) for name, primitives in FLOWS.items()
    }
    alone = {
        "other complexities": _check_others,
        "variants": _try_variants,
        "identities": _check_identities,
        "judged optima": _judge_optima,
        "certificates": _certify_weights,
    }
    return steps | {name: partial(step, settings) for name, step in alone.items()}


def on_recorded(settings: TheorySettings) -> Mapping[str, Callable[[Recorded], Any]]:
    """The steps on problems that were recorded in the studies' runs, the longest first."""
    steps: dict[str, Callable[[Recorded], Any]] = {
        name: partial(_settle, settings, primitives) for name, primitives in CIRCUITS.items()
    }
    alone = {
        "ladders": _compare_ladders,
        "oscillation": _oscillate,
        "units": _hold_units,
        "support": _look_at_support,
    }
    return steps | {name: partial(step, settings) for name, step in alone.items()}


def gather(settings: TheorySettings, results: Mapping[str, Any]) -> Evidence:
    """The evidence, from the results of the steps by name."""
    followed = [results[step] for step in FLOWS]
    *three, ring = followed[0].paths
    return Evidence(
        paths=[*three, *followed[1].paths],
        ring=ring,
        judged_optima=results["judged optima"],
        starts=[paths.starts for paths in followed],
        others=results["other complexities"],
        certificates=results["certificates"],
        identities=results["identities"],
        circuits={name: settling for step in CIRCUITS for name, settling in results[step].items()},
        units=results["units"],
        ladders=results["ladders"],
        oscillation=results["oscillation"],
        support=results["support"],
        variants=results["variants"],
    )


def _follow(settings: TheorySettings, primitives: int) -> Followed:
    """The paths of all random problems with so many primitives, then of the illustration if it has as many.

    They are followed for three horizons, after which an end point is as good as an equilibrium. Some problems start
    everywhere in the same batch, so that one program serves all.
    """
    drawn = [
        (k, batch) for k, batch in enumerate(random_problems(settings.seed, settings.problems))
        if SHAPES[k][1] == primitives
    ]  # fmt: skip
    parts = [(batch, random_weights(settings.seed + k, batch)) for k, batch in drawn]
    shown, ring = agents.illustration(), agents.ring_of_starts()
    if shown.log_prior.size == primitives:
        parts.append((Problem(*(np.broadcast_to(field, (len(ring), *field.shape)) for field in shown)), ring))
    some = [agents.everywhere(settings.seed, pick(batch, np.s_[:EVERYWHERE]), settings.starts) for _, batch in drawn]
    batches, starts = zip(*parts, *some, strict=True)
    path = flow(agents.join(batches), t1=3 * settings.horizon, start=np.concatenate(starts), save=3 * 200 + 1)
    times, ends = np.asarray(path.times), np.cumsum([len(start) for start in starts])[:-1]
    weights, heights = np.split(np.asarray(path.weights), ends), np.split(np.asarray(path.energy), ends)
    paths = [_with_optimum(batch, times, w, v) for batch, w, v in zip(batches, weights, heights, strict=True)]
    late = int(np.argmin(np.abs(times - LONG)))
    away = [np.abs(p.weights[:, late] - p.optimum).max(-1) for p in paths[len(parts) :]]
    vertices = sum(min(EVERYWHERE, batch.eps.size) * primitives for _, batch in drawn)
    return Followed(paths[: len(parts)], Starts(np.concatenate(away), vertices))


def _exact(batch: Problem, tol: float = EXACT) -> np.ndarray:
    """The optimum, to `tol` or, where rounding hides whether better weights exist, to the last gap that shows."""
    with jax.enable_x64(True):
        optima = jax.jit(solve)(batch, tol)  # traced, nothing is raised: the outcome says how it ended
    reached = (optima.outcome == Outcome.CONVERGED) | (optima.outcome == Outcome.ROUNDING_LIMIT)
    if not np.all(reached & (optima.certificate.gap <= EXACT_ENOUGH)):
        raise ValueError(
            f"an optimum is certified to {optima.certificate.gap.max():.1e} only: {EXACT_ENOUGH:g} is needed."
        )
    return np.asarray(optima.weights)


def _with_optimum(batch: Problem, times: np.ndarray, weights: np.ndarray, heights: np.ndarray) -> Paths:
    best = _exact(batch)
    slowest = 1.0 + curvatures(batch)[:, -1] / batch.eps
    return Paths(batch, times, weights, heights, best, np.asarray(energy(batch, best)), slowest)


def _settle(settings: TheorySettings, primitives: int, recorded: Recorded) -> dict[str, Settling]:
    """Run the circuits of recorded problems with so many primitives, in one batch."""
    batches = {
        name: _some(batch, settings.circuits)
        for name, batch in recorded.items()
        if batch.log_prior.shape[-1] == primitives
    }
    if not batches:
        return {}
    save = round(settings.horizon * PER_TAU) + 1
    path = circuit(agents.join(list(batches.values())), t1=settings.horizon, save=save)
    ends = np.cumsum([batch.eps.size for batch in batches.values()])[:-1]
    times, each = np.asarray(path.times), np.split(np.asarray(path.layers.w), ends)
    return {name: _settled(batch, times, w) for (name, batch), w in zip(batches.items(), each, strict=True)}


def _some(batch: Problem, count: int) -> Problem:
    """At most so many of a batch, evenly over it."""
    size = batch.eps.size
    return pick(batch, np.linspace(0, size - 1, min(count, size)).astype(int))


def _hold_units(settings: TheorySettings, recorded: Recorded) -> dict[str, HeldUnits]:
    """Each unit of recorded circuits with the other held: where it goes, and how fast."""
    return {name: _units(_some(batch, settings.circuits), settings.seed) for name, batch in recorded.items()}


def _units(batch: Problem, seed: int) -> HeldUnits:
    held, rows = random_weights(seed, batch), []
    for i, weights in enumerate(held):
        posed = pick(batch, i)
        scales = time_scales(posed.eps)
        leak = float(scales.gradient / posed.eps)
        y = np.asarray(posed.log_prior - primitive_cost(posed, weights) / posed.eps)
        fast = agents.integrate_fast_unit(posed, scales, weights, SPANS * leak)
        slow = agents.integrate_slow_unit(posed, scales, y, SPANS * float(scales.weights))
        rates = (_fall(unit, constant) for unit, constant in ((fast, leak), (slow, float(scales.weights))))
        rows.append((fast.distance[-1], slow.distance[-1], *rates))
    fast_end, slow_end, fast_rate, slow_rate = (np.array(column) for column in zip(*rows, strict=True))
    ends = float(fast_end.max()), float(slow_end.max())
    return HeldUnits(*ends, float(fast_rate.min()), float(slow_rate.min()), len(rows))


def _fall(unit: agents.Unit, constant: float) -> float:
    """The fitted rate in units of 1/constant; infinite for a unit that begins at its target and has nothing to fall."""
    if unit.distance[0] < AT_REST:
        return np.inf
    return float(decay_rate(unit.times, unit.distance[None], 1e-2, 1e-6)[0]) * constant


def _look_at_support(settings: TheorySettings, recorded: Recorded) -> dict[str, float]:
    """The least probability that a primitive gives an action, in the recorded problems of each study."""
    return {name: float(batch.pi.min()) for name, batch in recorded.items()}


def _settled(batch: Problem, times: np.ndarray, weights: np.ndarray) -> Settling:
    best = _exact(batch)
    # the problem to show: its optimum is away from the start, but no primitive has it all
    shown = int(np.argmax(np.sort(best, axis=-1)[:, -2] * np.abs(best - 1.0 / best.shape[-1]).max(-1)))
    early = times <= 6.0 * (1 + 1e-12)  # by then the weights of the figure have settled
    posed, now = pick(batch, shown), times[early]
    start = np.full(best.shape[-1], 1.0 / best.shape[-1])
    beside = agents.integrate_flow(posed, start, now, method="LSODA", rtol=1e-8, atol=1e-10)
    furthest = float(np.abs(weights[:, -1] - best).max())
    return Settling(furthest, len(best), float(posed.eps), now, weights[shown][early], beside)


def _oscillate(settings: TheorySettings, recorded: Recorded) -> Oscillation:
    """The recorded problem that grows fastest as stated, integrated neuron by neuron: it shares nothing with `circuit`.

    100 tau are long enough to tell a slow start from an oscillation that stays.
    """
    growth = {name: circuit_stability(batch, geometric_ladder(STATED)).growth for name, batch in recorded.items()}
    worst = max(growth, key=lambda name: growth[name].max())
    posed = pick(recorded[worst], int(np.argmax(growth[worst])))
    times = np.linspace(0.0, 100.0, 100 * PER_TAU + 1)
    stated, corrected = (
        agents.integrate_circuit(posed, scales, times) for scales in (geometric_ladder(STATED), time_scales(posed.eps))
    )
    return Oscillation(worst, _exact(posed), times, stated, corrected)


def _compare_ladders(settings: TheorySettings, recorded: Recorded) -> Ladders:
    """Count the circuits that settle, without integrating anything."""
    stated = {name: circuit_stability(batch, geometric_ladder(STATED)) for name, batch in recorded.items()}
    circuits = agents.random_circuits(settings.seed, settings.stability_draws)
    eps, ratio = np.logspace(-3, 1, 81), np.logspace(0.3, 3, 73)
    coldest = min(recorded, key=lambda name: recorded[name].eps.min())
    few = _some(recorded[coldest], 8)
    return Ladders(
        eps={name: float(np.median(batch.eps)) for name, batch in recorded.items()},
        tried={name: batch.eps.size for name, batch in recorded.items()},
        unstable={name: int((~stability.stable).sum()) for name, stability in stated.items()},
        ratio={name: _ratio_that_settles(batch) for name, batch in recorded.items()},
        growth=max(float(stability.growth.max()) for stability in stated.values()),
        corrected={name: int((~circuit_stability(batch).stable).sum()) for name, batch in recorded.items()},
        failures=int((~circuit_stability(circuits, time_scales(circuits.eps)).stable).sum()),
        map_eps=eps,
        map_ratio=ratio,
        map_stated=np.stack([_worst_growth(few, e, ratio, corrected=False) for e in eps], axis=-1),
        map_corrected=np.stack([_worst_growth(few, e, ratio, corrected=True) for e in eps], axis=-1),
    )


def _ratio_that_settles(batch: Problem) -> float:
    """The ratio of time scales beyond which the stated ordering is stable for every problem of a batch."""
    ratios = np.logspace(0.05, 4, 159)
    stable = circuit_stability(pick(batch, np.s_[:, None]), geometric_ladder(ratios)).stable
    fails = np.flatnonzero(~stable.all(axis=0))
    return float(ratios[fails.max(initial=-1) + 1])


def _worst_growth(base: Problem, eps: float, ratio: np.ndarray, *, corrected: bool) -> np.ndarray:
    """For each ratio, the largest growth rate over a few problems at one temperature."""
    batch = pick(base._replace(eps=np.full_like(base.eps, eps)), np.s_[:, None])
    scales = time_scales(np.full_like(ratio, eps), 1.0, ratio) if corrected else geometric_ladder(ratio)
    return np.asarray(circuit_stability(batch, scales).growth).max(axis=0)


def _judge_optima(settings: TheorySettings) -> list[np.ndarray]:
    """For each shape, the optima of its first problems by an independent optimiser."""
    share = agents.per_shape(settings.judged)
    return [
        np.stack([agents.minimise_energy(batch, i).weights for i in range(min(share, batch.eps.size))])
        for batch in random_problems(settings.seed, settings.problems)
    ]


def _certify_weights(settings: TheorySettings) -> Certificates:
    """Random weights, and weights near the optimum, with the bounds on their suboptimality."""
    rows = []
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        best = _exact(batch)
        for w in (random_weights(settings.seed + k, batch), 0.999 * best + 0.001 * random_weights(k, batch)):
            off = energy(batch, w) - energy(batch, best)
            rows.append((off, certify(batch, w).gap, batch.eps * (w * np.log(w / best)).sum(-1)))
    return Certificates(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def _check_identities(settings: TheorySettings) -> Identities:
    """Statements that need no path, against automatic differentiation and generic optimisers."""
    batches = random_problems(settings.seed, settings.problems)
    points = [random_weights(settings.seed + k, batch) for k, batch in enumerate(batches)]
    gradient, lowest, largest, bounds = zip(*map(_differentiate, batches, points), strict=True)
    hot, cold, least, anywhere = zip(*map(_limits, batches), strict=True)
    residual, identical = np.max([_gates(b) for b in batches], axis=0).tolist()
    corner, blunt = np.max(list(map(_cool, batches, points)), axis=0).tolist()
    return Identities(
        prox=_map_proximally(settings),
        dissipation=max(map(_dissipate, batches, points)),
        gradient=max(gradient),
        smallest_eigenvalue=min(lowest),
        largest_eigenvalue=max(largest),
        median_bound=float(np.median(np.concatenate(bounds))),
        hot=max(hot),
        cold=max(cold),
        least=min(least),
        anywhere=max(anywhere),
        residual=residual,
        identical=identical,
        corner=corner,
        blunt=blunt,
        joint=_sum_over_pairs(settings),
    )


def _map_proximally(settings: TheorySettings) -> float:
    """argmin_z sum z ln z - |z|^2/2 + |x - z|^2/2 over the simplex against softmax(x)."""
    rng = np.random.default_rng(settings.seed)
    furthest = 0.0
    for _ in range(settings.judged):
        x = rng.normal(scale=1.5, size=rng.integers(2, 7))

        def value(z: np.ndarray, x: np.ndarray = x) -> float:
            return float(np.sum(z * np.log(z)) - z @ z / 2 + (x - z) @ (x - z) / 2)

        def slope(z: np.ndarray, x: np.ndarray = x) -> np.ndarray:
            return np.log(z) + 1.0 - z - (x - z)

        weights = agents.minimise_on_simplex(value, slope, np.full(x.size, 1.0 / x.size))
        furthest = max(furthest, float(np.abs(weights - np.exp(x - logsumexp(x))).max()))
    return furthest


def _dissipate(batch: Problem, w: np.ndarray) -> float:
    """The largest relative error of the dissipation identity."""
    return float(_dissipation_errors(batch, w).max())


def _dissipation_errors(batch: Any, w: np.ndarray) -> np.ndarray:
    """The relative error of the identity against the derivative of V along the velocity, by autodiff."""
    along = jax.jit(lambda batch, w, velocity: jax.jvp(lambda w: energy(batch, w), (w,), (velocity,))[1])
    response = np.asarray(gate(batch, w))
    with jax.enable_x64(True):
        rate = np.asarray(along(batch, w, response - w))
    stated = -batch.eps * np.sum((w - response) * np.log(w / response), axis=-1)
    return np.abs(rate - stated) / (np.abs(rate) + 1e-4)


def _differentiate(batch: Problem, w: np.ndarray) -> tuple[float, float, float, np.ndarray]:
    """(error of the gradient of F, least eigenvalue of its Hessian, largest in units of L_F, L_F)."""
    both = jax.vmap(
        lambda posed, w: (jax.grad(complexity, argnums=1)(posed, w), jax.hessian(complexity, argnums=1)(posed, w))
    )
    with jax.enable_x64(True):
        slope, bend = (np.asarray(a) for a in jax.jit(both)(batch, w))
    eigenvalues = np.linalg.eigvalsh(bend)
    bound = np.asarray(batch.pi.shape[-1] * batch.pi.max((1, 2)) / batch.pi.min((1, 2)))
    error = float(np.abs(slope - primitive_cost(batch, w) - 1.0).max())
    return error, float(eigenvalues.min()), float((eigenvalues[:, -1] / bound).max()), bound


def _limits(batch: Problem) -> tuple[float, float, float, float]:
    """Hot: uniform. Cold: the minimiser of F, since 0 <= F(w_eps) - min F <= eps ln n; in weights it is only shown."""
    n, cold_eps = batch.log_prior.shape[-1], 1e-4
    uniform = np.full_like(batch.log_prior, -np.log(n))
    hot, cold = (
        solve(batch._replace(eps=np.full_like(batch.eps, eps), log_prior=uniform)).weights for eps in (1e4, cold_eps)
    )
    judged = np.stack([agents.minimise_complexity(batch, i) for i in range(batch.eps.size)])
    above = np.asarray(complexity(batch, cold) - complexity(batch, judged))
    return (
        float(np.abs(hot - np.exp(uniform)).max()), float(above.max() / (cold_eps * np.log(n))), float(above.min()),
        float(np.abs(cold - judged).max()),
    )  # fmt: skip


def _cool(batch: Problem, w: np.ndarray) -> tuple[float, float]:
    """How far the gate is from the vertex of steepest descent, at 1e-3 and at 1 of the gap between the two lowest."""
    slope = np.asarray(primitive_cost(batch, w))
    lowest, second = np.sort(slope, axis=-1)[:, :2].T
    vertex = np.eye(slope.shape[-1])[np.argmin(slope, axis=-1)]
    cooled = (gate(batch._replace(eps=share * (second - lowest)), w) for share in (1e-3, 1.0))
    near, far = (float(np.linalg.norm(response - vertex, axis=-1).max()) for response in cooled)
    return near, far


def _sum_over_pairs(settings: TheorySettings) -> float:
    """The divergence of joint distributions, summed over all pairs of state and action, against F + ln Z."""
    rng, worst = np.random.default_rng(settings.seed), 0.0
    for k in range(settings.judged):
        d, n = SHAPES[k % len(SHAPES)]
        model = agents.generative_model(rng, d, 5)
        p, q, prior, cost = model
        posed = problem(
            pi=rng.dirichlet(np.ones(d), n).T, eps=1.0,
            action_cost=np.sum(p * (np.log(p / q) + cost), axis=-1) - np.log(prior),
        )  # fmt: skip
        for w in rng.dirichlet(np.ones(n), 3):
            joint, log_z = agents.joint_divergence(posed.pi @ w, model)
            worst = max(worst, abs(joint - float(complexity(posed, w)) - log_z))
    return worst


def _check_others(settings: TheorySettings) -> dict[str, OtherComplexity]:
    """Lemmas and theorem on problems with other complexities, by complexity."""
    count = settings.others
    batch = agents.other_problems(settings.seed, count)
    judged = [agents.minimise_other(batch, i) for i in range(batch.eps.size)]
    best = np.stack([judgement.weights for judgement in judged])
    start = random_weights(settings.seed, batch)
    path = flow(batch, t1=3 * settings.horizon, start=start, save=3 * 200 + 1)
    least = np.asarray(energy(batch, best))
    times, early = np.asarray(path.times), np.asarray(path.times) <= settings.horizon * (1 + 1e-12)
    gap = np.asarray(path.energy) - least[:, None]
    distance = np.linalg.norm(path.weights - best[:, None], axis=-1)
    faded = np.sqrt(2.0 / batch.eps * gap[:, 0])[:, None] * np.exp(-times / 2)
    off, certified, below = _certify_others(batch, best, start)
    each = {
        "sum_off": np.abs(path.weights.sum(-1) - 1.0)[:, early].max(-1),
        "smallest": path.weights[:, early].min((-2, -1)),
        "end": np.abs(path.weights[:, -1] - best).max(-1),
        "judge": np.array([judgement.residual for judgement in judged]),
        "dissipation": _dissipation_errors(batch, start),
        "energy": (gap - np.exp(-times) * gap[:, :1])[:, early][:, 1:].max(-1),
        "distance": (distance - faded)[:, early].max(-1),
        "above": (off - certified).max(0),
        "below": (below - off).max(0),
    }
    return {
        name: OtherComplexity(count, **{
            key: float((np.min if key == "smallest" else np.max)(values[k * count : (k + 1) * count]))
            for key, values in each.items()
        })
        for k, name in enumerate(agents.COMPLEXITIES)
    }  # fmt: skip


def _certify_others(batch: Any, best: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, ...]:
    """V - V*, eps KL(w, S) and eps KL(w, w*), each for weights far from the optimum and near it."""
    rows = []
    for w in (start, 0.999 * best + 0.001 * start):
        off = energy(batch, w) - energy(batch, best)
        rows.append((off, certify(batch, w).gap, batch.eps * (w * np.log(w / best)).sum(-1)))
    off, certified, below = (np.stack(column) for column in zip(*rows, strict=True))
    return off, certified, below


def _gates(batch: Problem) -> tuple[float, float]:
    """How far optima are from fixed points of the prior-weighted softmax, and from the prior of equal primitives."""
    w = _exact(batch, 1e-24)
    same = batch._replace(pi=np.broadcast_to(batch.pi[..., :1], batch.pi.shape))
    return float(np.abs(w - gate(batch, w)).max()), float(np.abs(solve(same).weights - np.exp(same.log_prior)).max())


def _try_variants(settings: TheorySettings) -> Variants:
    """A prior as an input, a gate that is iterated, an integrator with its default tolerances."""
    batches = random_problems(settings.seed, settings.problems)
    stuck, predicted = (np.concatenate(c) for c in zip(*(_iterate_gate(batch) for batch in batches), strict=True))
    few = [pick(batch, np.s_[: agents.per_shape(settings.judged)]) for batch in batches]
    starts = [random_weights(settings.seed + k, batch) for k, batch in enumerate(batches)]
    return Variants(
        prior_as_input={
            f"{d} actions, {n} primitives": _move_prior(b) for (d, n), b in zip(SHAPES, batches, strict=True)
        },
        stuck=int(stuck.sum()),
        predicted=int(predicted.sum()),
        tried=len(stuck),
        excess_default=np.concatenate(list(map(_exceed_bound, few, starts))),
        excess_strict=np.concatenate(list(map(partial(_exceed_bound, rtol=1e-10, atol=1e-13), few, starts))),
    )


def _move_prior(batch: Problem) -> float:
    """The prior moved into s by the best change there is, Pi^T x = -eps ln prior, and what that does to the weights."""
    n = batch.log_prior.shape[-1]
    uniform = np.full_like(batch.log_prior, -np.log(n))
    wanted = -batch.eps[:, None] * batch.log_prior
    change = (np.linalg.pinv(np.swapaxes(batch.pi, -1, -2)) @ wanted[..., None])[..., 0]
    as_input = batch._replace(action_cost=batch.action_cost + change, log_prior=uniform)
    return float(np.abs(_exact(as_input) - _exact(batch)).max())


def _iterate_gate(batch: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(which problems are not settled after many undamped steps, for which the linearisation says so)."""
    w = np.exp(batch.log_prior)
    for _ in range(2000):
        w = np.asarray(gate(batch, w))
    off = np.abs(w - _exact(batch)).max(-1)
    return off > 1e-6, curvatures(batch)[:, 0] > batch.eps


def _exceed_bound(batch: Problem, starts: np.ndarray, **tolerances: float) -> np.ndarray:
    """For each problem, the largest excess of the energy over its bound along a path of SciPy's RK45."""
    times = np.linspace(0.0, 20.0, 101)
    best = energy(batch, _exact(batch))
    excess = []
    for i in range(batch.eps.size):
        posed = pick(batch, i)
        path = agents.integrate_flow(posed, starts[i], times, **tolerances)
        gap = energy(pick(posed, None), np.maximum(path, 1e-300)) - best[i]
        excess.append((gap - np.exp(-times) * gap[0]).max())
    return np.array(excess)
