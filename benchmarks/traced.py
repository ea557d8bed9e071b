"""The solver inside `jax.jit`: through the compiled kernels, in pure JAX, and its implicit gradient."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from policychord import Problem, problem, solve

from .families import SIZES
from .timing import Contender, Record, take_turns

BATCH = 100


def gradients(size: str, seed: int) -> list[Record]:
    """Value and gradient, against the value alone; both in jit.

    With respect to everything; of the cost alone, which leaves out an array as large as the primitives; and of
    everything through `problem` as well, whose normalisation has a derivative of its own.
    """
    rng = np.random.default_rng(seed)
    drawn = problem(**SIZES[size].draw(rng, min(BATCH, SIZES[size].batch))._asdict())
    plain = Problem(*(jnp.asarray(field) for field in drawn))
    raw = {"pi": plain.pi, "action_cost": plain.action_cost, "eps": plain.eps, "prior": jnp.exp(plain.log_prior)}
    aim = jnp.asarray(rng.normal(size=plain.log_prior.shape))

    def solve_loss(given: Problem):
        return jnp.sum(aim * solve(given).weights)

    def by_cost(given: Problem):
        return jax.value_and_grad(lambda cost: solve_loss(given._replace(action_cost=cost)))(given.action_cost)

    def problem_loss(given: dict):
        return solve_loss(problem(**given))

    cases = {
        f"size {size}": (solve_loss, jax.value_and_grad(solve_loss), plain),
        f"size {size}, of the cost alone": (solve_loss, by_cost, plain),
        f"size {size}, with problem()": (problem_loss, jax.value_and_grad(problem_loss), raw),
    }
    lines = []
    for name, (loss, both, given) in cases.items():
        times = take_turns({"value": timed(jax.jit(loss), given), "both": timed(jax.jit(both), given)})
        ratio = times["both"] / times["value"]
        lines.append(Record(f"value and gradient, {name}", times["both"], "value alone", times["value"], ratio))
    return lines


def timed(call: Callable, given) -> Contender:
    """A compiled function on a batch, waited for, because JAX returns before it has computed."""
    solves = jax.tree.leaves(given)[0].shape[0]
    return Contender(lambda: jax.block_until_ready(call(given)), solves)


def routes(size: str, seed: int) -> list[Record]:
    """Both ways through jit, against `solve` on NumPy arrays."""
    arrays = SIZES[size].draw(np.random.default_rng(seed), BATCH)
    plain = problem(**arrays._asdict())
    traced = jax.tree.map(jnp.asarray, plain)
    inside = {route: jax.jit(lambda p, route=route: solve(p, route=route)) for route in ("auto", "jax")}
    contenders = {"NumPy": Contender(lambda: solve(plain), BATCH)} | {
        route: timed(call, traced) for route, call in inside.items()
    }
    times = take_turns(contenders)
    lines = []
    for route, name in (("auto", "compiled route in jit"), ("jax", "pure JAX route in jit")):
        gap = float(inside[route](traced).certificate.gap.max())
        ratio = times["NumPy"] / times[route]
        lines.append(Record(f"{name}, size {size}", times[route], "NumPy arrays", times["NumPy"], ratio, gap))
    return lines


def records(seed: int) -> list[Record]:
    """Everything that happens inside jit, in float64."""
    jax.config.update("jax_enable_x64", True)
    return [*(line for size in "ABDE" for line in gradients(size, seed)), *routes("A", seed), *routes("D", seed)]
