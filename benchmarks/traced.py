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
    """Value and gradient with respect to everything, against the value alone; both in jit.

    Once through `solve`, and once through `problem` as well, whose normalisation has a derivative of its own.
    """
    rng = np.random.default_rng(seed)
    plain = problem(**SIZES[size].draw(rng, min(BATCH, SIZES[size].batch))._asdict())
    pi, cost, eps, log_prior = (jnp.asarray(a) for a in plain)
    aim = jnp.asarray(rng.normal(size=log_prior.shape))

    def solve_loss(given: Problem):
        return jnp.sum(aim * solve(given).weights)

    def problem_loss(given: dict):
        return solve_loss(problem(**given))

    cases = {
        f"size {size}": (solve_loss, Problem(pi, cost, eps, log_prior)),
        f"size {size}, with problem()": (
            problem_loss, {"pi": pi, "action_cost": cost, "eps": eps, "prior": jnp.exp(log_prior)},
        ),
    }  # fmt: skip
    lines = []
    for name, (loss, given) in cases.items():
        calls = {"forward": jax.jit(loss), "both": jax.jit(jax.value_and_grad(loss))}
        times = take_turns({key: timed(call, given) for key, call in calls.items()})
        ratio = times["both"] / times["forward"]
        lines.append(Record(f"value and gradient, {name}", times["both"], "value alone", times["forward"], ratio))
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
