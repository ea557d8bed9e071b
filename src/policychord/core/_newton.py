"""The solver for any convex complexity and any separable regulariser, in JAX, with implicit derivatives.

With u = l(w) the link of the regulariser (ln w for the entropy, w itself for sparsemax), D = dw/du = w^(2-alpha) inside
the bounds and 0 on them, g = grad F and H its curvature, the optimum is where rho = g + eps (u - l(w_hat)) is the same
for all weights inside.

1. Newton: solve (sqrt D H sqrt D + eps I) y = sqrt D (mu - rho) with sqrt D . y = 0, which moves w by sqrt D y. Weights
   that F bends more than the regulariser does move in ln w, because F has a logarithm where a primitive is alone;
   there the curvature is damped in proportion to rho's excess. The others move in u, by y / sqrt D inside the bounds
   and (mu - rho - H D v)/eps on them, so that zeros are exact. What the sum then misses is a common factor.
2. A step that does not lower the energy is rejected. The first time start again hot, at a temperature as large as the
   curvature, and cool by 0.3 whenever the gap is below a tenth of it. Later shorten the step, every other time with all
   weights in ln w.
3. At last move from w towards its response S(w), by a fifth as much each time: there the energy of every smooth
   convex F falls.
4. Where rounding hides whether the energy fell, the gap must fall by a tenth or g.(w - w_before) <= 0, as in
   `equilibrium.py`. Stop on the certificate.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _method as method
from . import regularisers as reg
from ._implicit import newton_step
from ._method import Outcome
from .complexities import Mixture, Own
from .convex import ConvexProblem, certificate_from, judge, over_batch

_FORMED_UP_TO = 128  # weights; beyond, the curvature is applied and never formed
_DERIVATIVE_REDUCTION = 1e-13  # of the residual, there
_MOST_PASSES = 2000
_PATIENCE = 3  # rejections before the first hot start, where steps in ln w are cut off and may still be too long
_SHORTENED = 9  # rejections before the step towards the response
_SHRINK = 0.2  # of that step: optimal weights may be as small as the tangent of p ln p allows, 1e-20
_SHRINKINGS = 30  # before the search is stuck
_RESTART_AFTER = 500  # passes; then, or when it is stuck, start once more, hot, and cool gently
_EXTRA_PASSES = 1  # beyond the tolerance, for weights that are right to all digits
_STIRRED = 1e-9  # share of the prior in the start
_SILENT = 1e-25  # a weight that falls below this is zero, if the regulariser allows it
_OFF_SIMPLEX = 1e-12  # by which the weights of a trial point may miss a sum of one
_PROBES = 4  # points at which a user's function is tested for convexity
_BENT = 1e-9  # a violation of convexity, relative to the terms that it is made of
_NEXT_TO = 1e-5  # a bound
_ALONE = 1e-2  # share of a primitive's actions that it is alone on: from there on F is a logarithm of its weight
_LOG_STEP = 100.0  # of a weight in one pass
_ENTRY = 1e-6  # the most that a weight of zero becomes in one pass
_LOG_CEILING = 1.0  # of a weight before it is fitted to the simplex
_ENERGY_ROUNDING = 64.0 * method.UNIT_ROUNDOFF  # of a sum, as it usually is
_SUDDEN, _SHORT = 1e-3, 1e-7  # at a kink the gradient changes by this share along so short a step


class _Point(NamedTuple):
    """What is known at an accepted point."""

    w: jax.Array
    g: jax.Array  # grad F
    complexity: jax.Array
    energy: jax.Array
    gap: jax.Array
    floor: jax.Array
    response: jax.Array
    newton: jax.Array  # the step in u
    slope: jax.Array  # of the energy along it
    free: jax.Array  # which weights are inside their bounds
    bent: jax.Array  # which of them F bends more than the regulariser


class _State(NamedTuple):
    w: jax.Array  # the trial point
    kept: _Point
    temperature: Any
    rejections: jax.Array
    passes: jax.Array
    finishing: jax.Array
    attempt: jax.Array  # 0: from the start; 1: hot from the prior; 2: the same, cooling gently
    unconditional: jax.Array
    kinked: jax.Array  # whether the gradient was seen to change along a step of next to no length
    done: Any
    outcome: Any


def _descend(problem: ConvexProblem, start: Any, tol: Any) -> tuple[jax.Array, ...]:
    """Solve one problem from the weights `start`: (weights, gap, passes, outcome)."""
    problem = problem._replace(parameters=problem.complexity.centre(problem.parameters))
    eps, lean = problem.eps, reg.link(problem.log_prior, problem.alpha)
    hot_w = _fit(problem, jnp.exp(problem.log_prior))
    hottest = _hottest(problem, hot_w)
    bent = _is_bent(problem)

    def turn(state: _State) -> _State:
        kept, temperature = state.kept, state.temperature
        complexity, g, rounding, curvature = problem.complexity.see(
            problem.parameters, state.w, start.size <= _FORMED_UP_TO
        )
        gap, floor, response, noise = judge(problem, state.w, temperature, g, rounding)
        energy = complexity + temperature * reg.value(state.w, problem.log_prior, problem.alpha)
        blur = noise + _ENERGY_ROUNDING * (jnp.abs(complexity) + jnp.abs(energy))
        whole = jnp.abs(jnp.sum(state.w) - 1.0) <= _OFF_SIMPLEX
        broken = ~(whole & jnp.isfinite(energy) & jnp.all(jnp.isfinite(g)))
        length, towards = _length(state.rejections)
        slope = jnp.where(towards, -kept.gap, kept.slope)
        enough = kept.energy + method.ARMIJO * length * slope
        downhill = jnp.sum(rho(g, state.w, temperature) * (state.w - kept.w)) <= 0.0
        # (at the end there is nothing left to fall: what is still certified is as good)
        better = (gap <= method.GAP_FALL * kept.gap) | downhill | ((state.finishing > 0) & (gap <= tol))
        fell = (energy < enough - blur) | ((energy <= enough + blur) & better)
        accepted = (state.unconditional | fell) & ~broken & ((state.finishing == 0) | (gap <= tol))

        # first-order test of convexity at every point that is tried
        moved = state.w - kept.w
        predicted = kept.complexity + kept.g @ moved
        scale = jnp.abs(kept.complexity) + jnp.abs(complexity) + jnp.abs(kept.g) @ jnp.abs(moved)
        concave = ~state.unconditional & ~broken & (predicted - complexity > _BENT * scale + blur)

        # accepted: cool, and aim again
        cooling = jnp.where(state.attempt == 2, method.GENTLE_COOLING, method.COOLING)
        cooled, cool_gap, cool_floor, cool_response, cool_energy = _cool(
            problem, state.w, g, rounding, complexity, cooling, temperature, gap, floor, response, energy
        )
        step, slope_now, free, stiff, curved = _aim(
            problem, state.w, cool_response, curvature, rho(g, state.w, cooled), cooled, cool_gap
        )
        point = _Point(
            state.w, g, complexity, cool_energy, cool_gap, cool_floor, cool_response, step, slope_now, free, stiff
        )
        good = accepted & (cooled <= eps) & (cool_gap <= tol)
        finishing = state.finishing + good
        before, kept = kept.g, jax.tree.map(partial(jnp.where, accepted), point, kept)
        temperature = jnp.where(accepted, cooled, temperature)
        rejections = jnp.where(accepted, 0, state.rejections + 1)
        settled = good & ((cool_gap <= 4.0 * cool_floor) | (finishing > _EXTRA_PASSES))
        settled = settled | ((state.finishing > 0) & ~accepted)

        # rejected, although there is somewhere hotter to begin
        stuck = ~accepted & (rejections >= _SHORTENED + _SHRINKINGS)
        again = (
            (state.attempt < 2)
            & (stuck | (state.passes == _RESTART_AFTER))
            & (kept.floor < method.ROUNDING_SHARE * kept.gap)
        )
        patience = 1 if problem.alpha is None else _PATIENCE
        first = ~accepted & (state.attempt == 0) & (hottest > eps) & (rejections >= patience)
        restart = (first | again) & (state.finishing == 0)
        stuck = stuck & ~restart
        hopeless = state.unconditional & broken
        w = jnp.where(restart, hot_w, _trial(problem, kept, rejections))
        bad_curve = (concave | (accepted & curved)) & isinstance(problem.complexity, Own)
        jump = (jnp.max(jnp.abs(moved)) < _SHORT) & (jnp.max(jnp.abs(g - before)) > _SUDDEN * jnp.max(jnp.abs(g)))
        kinked = state.kinked | (jump & ~state.unconditional & isinstance(problem.complexity, Own))
        stuck = stuck | (kinked & (state.passes >= _RESTART_AFTER))
        outcome = jnp.select(
            [hopeless, bad_curve, settled, kinked, stuck & (kept.floor >= method.ROUNDING_SHARE * kept.gap)],
            [jnp.int8(Outcome.BAD_INPUT), jnp.int8(Outcome.NOT_CONVEX), jnp.int8(Outcome.CONVERGED),
             jnp.int8(Outcome.NOT_SMOOTH), jnp.int8(Outcome.ROUNDING_LIMIT)],
            jnp.int8(Outcome.NOT_CONVERGED),
        )  # fmt: skip
        return _State(
            w, kept, jnp.where(restart, hottest, temperature), jnp.where(restart, 0, rejections),
            state.passes + 1, finishing, jnp.where(restart, 1 + again, state.attempt), restart, kinked,
            hopeless | bad_curve | settled | stuck, outcome,
        )  # fmt: skip

    def rho(g: Any, w: Any, temperature: Any) -> jax.Array:
        return g + temperature * (reg.link(reg.floored_log(w), problem.alpha) - lean)

    fine = (eps > 0.0) & jnp.all(jnp.isfinite(start))
    begin = jnp.where(fine, start, 1.0 / start.size)
    # a little of everything: a primitive that is alone somewhere never has no weight
    w = _fit(problem, begin + _STIRRED * (hot_w - begin))
    zero, none = jnp.zeros_like(eps), jnp.zeros_like(w)
    nowhere = _Point(w, none, zero, zero + jnp.inf, zero + jnp.inf, zero, w, none, zero, none > 0.0, none > 0.0)
    no, counter = jnp.zeros_like(fine), jnp.zeros_like(fine, dtype=int)
    first = _State(
        w, nowhere, eps, counter, counter, counter, counter, ~no, no, ~fine | bent,
        jnp.where(bent, jnp.int8(Outcome.NOT_CONVEX), jnp.int8(Outcome.BAD_INPUT)),
    )  # fmt: skip
    last = lax.while_loop(lambda s: ~s.done & (s.passes < _MOST_PASSES), turn, first)
    judged = (last.outcome != Outcome.BAD_INPUT) & (last.outcome != Outcome.NOT_CONVEX)
    known = judged & (last.temperature <= eps) & (last.passes > 0)
    known = known & problem.complexity.convex
    outcome = jnp.where(
        (last.outcome == Outcome.CONVERGED) & (not problem.complexity.convex), jnp.int8(Outcome.LOCAL), last.outcome
    )
    weights = jnp.where(outcome == Outcome.BAD_INPUT, jnp.nan, last.kept.w)
    return weights, jnp.where(known, last.kept.gap, jnp.inf), last.passes, outcome


def _fit(problem: ConvexProblem, w: Any) -> jax.Array:
    """Weights on the simplex and below the caps: a common factor for all that are not capped."""
    factor, caps = 1.0 / jnp.sum(w), problem.caps
    if caps is None:
        return w * factor

    def larger(carry: Any) -> Any:
        factor, _ = carry
        full = factor * w >= caps
        rest = jnp.sum(jnp.where(full, 0.0, w))
        after = (1.0 - jnp.sum(jnp.where(full, caps, 0.0))) / jnp.where(rest > 0.0, rest, 1.0)
        grows = (rest > 0.0) & (after > factor)
        return jnp.where(grows, after, factor), grows

    factor = lax.while_loop(lambda carry: carry[1], larger, (factor, jnp.ones((), bool)))[0]
    filled = jnp.minimum(factor * w, caps)
    # if all that have any weight are full, the others take what is left
    left, room = 1.0 - jnp.sum(filled), caps - filled
    return jnp.where(left > _OFF_SIMPLEX, filled + left * room / jnp.maximum(jnp.sum(room), _OFF_SIMPLEX), filled)


def _length(rejections: Any) -> tuple[jax.Array, jax.Array]:
    """The length of the present trial step, and whether it is one towards the response."""
    towards = rejections >= _SHORTENED
    return jnp.where(towards, _SHRINK ** (rejections - _SHORTENED), method.BACKTRACK**rejections), towards


def _trial(problem: ConvexProblem, kept: _Point, rejections: Any) -> jax.Array:
    length, towards = _length(rejections)
    log_w = reg.floored_log(kept.w)
    step = length * kept.newton
    rate = step if problem.alpha is None else step * jnp.exp((1.0 - problem.alpha) * log_w)
    positive = jnp.exp(jnp.clip(log_w + rate, method.LOG_FLOOR, _LOG_CEILING))
    between = kept.w + length * (kept.response - kept.w)
    if problem.alpha is None:
        return _fit(problem, jnp.where(towards, between, positive))
    positive = jnp.where((problem.alpha > 1.0) & (positive < _SILENT), 0.0, positive)
    straight = reg.unlink(reg.link(log_w, problem.alpha) + step, problem.alpha)[0]
    straight = jnp.minimum(straight, jnp.where(kept.free | (kept.w > _NEXT_TO), 2.0, kept.w + _ENTRY))
    in_logs = kept.free & (kept.bent | (rejections % 2 == 1))
    return _fit(problem, jnp.where(towards, between, jnp.where(in_logs, positive, straight)))


def _scaling(problem: ConvexProblem, w: Any) -> jax.Array:
    """D = dw/du: zero on the bounds."""
    return jnp.where(reg.below_caps(w, problem.caps), reg.curvature_inverse(w, problem.alpha), 0.0)


def _held(problem: ConvexProblem, w: Any, target: Any, bent: Any) -> Any:
    """Which weights are next to a bound that their target is on: a long step of theirs would cut the others' short."""
    at_zero = (w <= _NEXT_TO) & (target <= 0.0) & ~bent
    at_cap = ~reg.below_caps(w / (1.0 - _NEXT_TO), problem.caps) & ~reg.below_caps(target, problem.caps)
    return at_zero | at_cap


def _aim(problem: ConvexProblem, w, response, curvature, rho, temperature, gap) -> tuple[jax.Array, ...]:
    """The Newton step in u, the energy's slope along it, what it moves, where F bends, whether wrongly."""
    d, own = _scaling(problem, w), 0.0 if curvature is None else jnp.diagonal(curvature)
    stiff = own * d > temperature
    bent = stiff & (own * w > _ALONE)
    forcing = jnp.minimum(method.CG_FORCING, jnp.sqrt(gap / temperature))

    def step(d):
        product = partial(problem.complexity.along, problem.parameters, w) if curvature is None else curvature
        return _newton(problem, w, product, d, rho, temperature, forcing, bent)

    if problem.alpha is not None:  # what F does not bend goes where the response is, the rest where Newton's step leads
        d = jnp.where(_held(problem, w, response, bent) & ~stiff, 0.0, d)
        if curvature is not None:
            d = jnp.where(_held(problem, w, w + step(d)[1], bent), 0.0, d)
    v, moved, bend = step(d)
    concave = jnp.zeros((), bool)
    if isinstance(problem.complexity, Own):
        size = jnp.abs(moved) @ jnp.abs(problem.complexity.along(problem.parameters, w, jnp.abs(moved)))
        concave = (moved @ bend < -_BENT * size) & jnp.all(jnp.isfinite(v))
    return jnp.where(jnp.isfinite(v), v, 0.0), rho @ moved, d > 0.0, bent, concave


def _damping(problem: ConvexProblem, w, bent, rho) -> Any:
    """What is added to the curvature so that no step in ln w is longer than `_LOG_STEP`; it vanishes at the optimum.

    Without the entropy nothing but F bounds such a step, and F may bend little here and much nearer zero.
    """
    if problem.alpha is None:
        return jnp.zeros_like(w)
    free = reg.below_caps(w, problem.caps) * w  # what a cap holds back says nothing about the others
    excess = jnp.abs(rho - free @ rho / jnp.maximum(jnp.sum(free), _SILENT))
    return jnp.where(bent & (w > 0.0) & (problem.alpha > 1.0), excess / (_LOG_STEP * jnp.where(w > 0.0, w, 1.0)), 0.0)


def _newton(problem: ConvexProblem, w, curvature, d, rho, temperature, reduction, bent):
    """v with rho + H D v + T v = mu and D . v = 0, on the bounds (mu - rho - H D v)/T; also D v and H D v."""
    damping = _damping(problem, w, bent, rho)
    moved, bend, share = newton_step(d, rho, temperature, curvature, reduction, damping)
    inside, after = d > 0.0, rho + bend
    v = moved / jnp.where(inside, d, 1.0)
    balanced = jnp.sum(share * (after + temperature * v + damping * moved))
    mu = jnp.where(jnp.any(inside), balanced, jnp.max(jnp.where(w > 0.0, after, -jnp.inf)))
    return jnp.where(inside, v, (mu - after) / temperature), moved, bend


def _cool(problem: ConvexProblem, w, g, rounding, complexity, cooling, *now):
    """Lower the temperature of the homotopy while the point is good enough for it."""

    def warm(carry):
        temperature, gap, floor, *_ = carry
        return (temperature > problem.eps) & ((gap <= 0.1 * temperature) | (floor >= method.ROUNDING_SHARE * gap))

    def cooler(carry):
        temperature = jnp.maximum(problem.eps, cooling * carry[0])
        gap, floor, response, _ = judge(problem, w, temperature, g, rounding)
        return temperature, gap, floor, response, complexity + temperature * divergence

    divergence = reg.value(w, problem.log_prior, problem.alpha)
    return lax.while_loop(warm, cooler, now)


def _hottest(problem: ConvexProblem, w: Any) -> jax.Array:
    """A temperature as large as the curvature at the prior, by a few turns of power iteration."""
    if isinstance(problem.complexity, Mixture):
        return jnp.maximum(1.0, problem.eps)
    q = jnp.sqrt(_scaling(problem, w))
    x = q * jnp.cos(jnp.arange(w.size) * 1.7)
    norm = jnp.zeros_like(problem.eps)
    for _ in range(4):
        x = x / jnp.maximum(jnp.linalg.norm(x), 1e-300)
        x = q * problem.complexity.along(problem.parameters, w, q * x)
        norm = jnp.linalg.norm(x)
    return jnp.maximum(jnp.where(jnp.isfinite(norm), norm, 1.0), problem.eps)


def _is_bent(problem: ConvexProblem) -> jax.Array:
    """Whether a user's function is seen not to be convex at some points, by its curvature or between two of them."""
    n = problem.log_prior.size
    if not isinstance(problem.complexity, Own):
        return jnp.zeros((), bool)
    points = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(n), _PROBES))
    drawn = np.random.default_rng(1).normal(size=(_PROBES, n))
    directions = jnp.asarray(drawn - drawn.mean(axis=1, keepdims=True))

    def bends(w, direction):
        if n > _FORMED_UP_TO:
            bend = problem.complexity.along(problem.parameters, w, direction)
            return direction @ bend < -_BENT * (jnp.abs(direction) @ jnp.abs(bend))
        curvature = problem.complexity.curvature(problem.parameters, w)
        along = curvature - jnp.mean(curvature, axis=0)
        along = along - jnp.mean(along, axis=1, keepdims=True)
        along = jnp.where(jnp.all(jnp.isfinite(along)), 0.5 * (along + along.T), 0.0)
        return jnp.linalg.eigvalsh(along)[0] < -_BENT * jnp.max(jnp.abs(curvature))

    values = jax.vmap(lambda w: problem.complexity.value(problem.parameters, w))
    next_points = jnp.roll(points, 1, axis=0)
    ends, others, middle = (values(w) for w in (points, next_points, 0.5 * (points + next_points)))
    size = jnp.abs(ends) + jnp.abs(others) + jnp.abs(middle)
    above = 2.0 * middle - ends - others > _BENT * size
    return jnp.any(jax.vmap(bends)(points, directions)) | jnp.any(above)


# ------------------------------------------------------------------------------- derivatives


@jax.custom_jvp
def _solve_problem(problem: ConvexProblem, start: Any, tol: Any) -> tuple[jax.Array, ...]:
    """`_descend`, with the implicit derivative of the weights."""
    return _descend(problem, start, tol)


@_solve_problem.defjvp
def _solve_problem_jvp(primals: Any, tangents: Any) -> Any:
    problem, start, tol = primals
    solution = _solve_problem(problem, start, tol)
    change = _tangent(problem, solution[0], tangents[0])
    still = [np.zeros(a.shape, jax.dtypes.float0) for a in solution[2:]]
    return solution, (change, jnp.zeros_like(solution[1]), *still)


def _tangent(problem: ConvexProblem, w: Any, change: ConvexProblem) -> jax.Array:
    """dw: rho + d rho + H dw + eps v = mu with dw = D v inside the bounds and d caps on the caps."""
    if not problem.complexity.convex:
        raise ValueError("derivatives through solve need a convex complexity: a local answer may jump.")
    d = _scaling(problem, w)
    capped = (w > 0.0) & (d == 0.0)
    pushed = jnp.zeros_like(w) if change.caps is None else jnp.where(capped, change.caps, 0.0)

    def gradient(parameters):
        return jax.grad(problem.complexity.value, argnums=1)(parameters, w)

    dg = jnp.zeros_like(w)
    if problem.parameters is not None:
        dg = jax.jvp(gradient, (problem.parameters,), (change.parameters,))[1]
    u, lean = reg.link(reg.floored_log(w), problem.alpha), reg.link(problem.log_prior, problem.alpha)
    d_rho: Any = dg + change.eps * (u - lean)
    if problem.alpha is None or change.alpha is None:
        d_rho = d_rho - problem.eps * change.log_prior
    else:
        prior = jnp.exp((problem.alpha - 1.0) * problem.log_prior) * change.log_prior
        by_alpha = reg.link_by_alpha(w, problem.alpha) - reg.link_by_alpha(jnp.exp(problem.log_prior), problem.alpha)
        d_rho = d_rho + problem.eps * (change.alpha * by_alpha - prior)
    bend = partial(problem.complexity.along, problem.parameters, w)
    d_rho = d_rho + bend(pushed)
    # what the caps give or take is made up by the others, first evenly in D, then by the system
    total = jnp.sum(d)
    fill = -d * jnp.sum(pushed) / jnp.where(total > 0.0, total, 1.0)
    d_rho = d_rho + bend(fill) + problem.eps * jnp.where(d > 0.0, fill / jnp.where(d > 0.0, d, 1.0), 0.0)
    formed = w.size <= _FORMED_UP_TO
    curvature = problem.complexity.curvature(problem.parameters, w) if formed else bend
    return newton_step(d, d_rho, problem.eps, curvature, _DERIVATIVE_REDUCTION).moved + fill + pushed


@jax.jit
def solve_convex(problems: ConvexProblem, start: Any, tol: Any) -> tuple[jax.Array, ...]:
    """A batch: weights, certificate, passes, outcome."""

    def solve_each(problem: ConvexProblem, begin: Any) -> Any:
        w, gap, passes, outcome = _solve_problem(problem, begin, jnp.asarray(tol))
        return w, certificate_from(problem, lax.stop_gradient(gap)), passes, outcome

    return over_batch(solve_each, problems, lax.stop_gradient(start))
