"""The planner that the control examples compare with: it knows the same model, and none of the primitives."""

import equinox as eqx
import jax
import jax.numpy as jnp

import policychord as pc
from policychord.agent import Decision


class MPPI(eqx.Module):
    """A sampling planner: keep a plan, try noisy copies of it in the model, average them by exp(-cost/temperature).

    The plan's numbers lie in [-1, 1]; `to_action` makes an action of those of one step. `lasting` is the share of the
    noise's variance that is the same in all steps of a copy.
    """

    actions: object
    predict: callable
    stage: callable
    to_action: callable = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    dim: int = eqx.field(static=True, default=1)
    noise: float = 0.6
    temperature: float = 1.0
    lasting: float = 0.0
    names: tuple = eqx.field(static=True, default=("plan",))

    def start(self):
        """An empty plan."""
        return jnp.zeros((self.steps, self.dim))

    def decide(self, key, state, k, plan):
        """The first action of the improved plan; the rest is the memory for the next decision."""
        own = jax.random.normal(key, (self.samples, self.steps, self.dim))
        same = jax.random.normal(jax.random.fold_in(key, 1), (self.samples, 1, self.dim))
        noise = self.noise * (jnp.sqrt(1.0 - self.lasting) * own + jnp.sqrt(self.lasting) * same)
        tried = jnp.clip(plan + noise.at[0].set(0.0), -1.0, 1.0)

        def cost(numbers):
            def step(state, given):
                j, own = given
                action = self.to_action(own)
                return self.predict(state, action, k + j), self.stage(state, action, k + j)

            return jnp.sum(jax.lax.scan(step, state, (jnp.arange(self.steps), numbers))[1])

        weights = jax.nn.softmax(-jax.vmap(cost)(tried) / self.temperature)
        plan = jnp.tensordot(weights, tried, axes=1)
        rest = jnp.concatenate([plan[1:], plan[-1:]])
        proved = pc.Certificate(jnp.zeros(()), jnp.zeros(()))  # of its only weight, which is one
        return Decision(
            self.to_action(plan[0]), jnp.ones(1), proved, jnp.asarray(int(pc.Outcome.NOT_OPTIMISED), "int8"), rest
        )
