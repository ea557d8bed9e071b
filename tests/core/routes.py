"""The three ways through `solve`: compiled, JAX called directly, and whatever a trace chooses."""

import jax

from policychord import solve

_traced = jax.jit(solve, static_argnums=(1,))

ROUTES = {
    "compiled": lambda p, tol=1e-10: solve(p, tol, route="compiled"),
    "jax": lambda p, tol=1e-10: solve(p, tol, route="jax"),
    "traced": lambda p, tol=1e-10: _traced(p, tol),
}
