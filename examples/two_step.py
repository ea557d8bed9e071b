"""Does habit or planning explain behaviour in the two-step task of Daw et al. (2011), and could such data show both?

A first choice leads to one of two places, usually (.7) to its own; there a second choice wins or not, with chances that
drift. Habit repeats first choices that won; planning asks which place is worth more and how to get there.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import save

import policychord as pc
from policychord import inference as inf

pc.enable_x64()
COMMON = 0.7
RATE = inf.bounded("rate", 0.0, 1.0, 0.4, prior=inf.Normal(0.0, 1.5))
STRENGTH = inf.Normal(np.log(2.0), 1.0)
PLAN, HABIT, SECOND = (inf.positive(name, 2.0, prior=STRENGTH) for name in ("plan", "habit", "second"))
STAY = inf.real("stay", 0.2, prior=inf.Normal(0.0, 1.0))
START = (jnp.full(2, 0.5), jnp.full((2, 2), 0.5)), jnp.asarray(-1)  # values of both stages, and the last first choice


def log_choices(theta, q, place, last):
    """ln p of the first choice (2), and of the second one in a place (2), from learned values."""
    first, second = q
    best = second.max(axis=1)
    planned = COMMON * best + (1 - COMMON) * best[::-1]
    utility = theta.get("plan", 0.0) * planned + theta.get("habit", 0.0) * first
    utility += theta["stay"] * (jnp.arange(2) == last)
    return jax.nn.log_softmax(utility), jax.nn.log_softmax(theta["second"] * second[place])


def learn(theta, q, now):
    first, second = (value.at[at].add(theta["rate"] * (now["won"] - value[at]))
                     for value, at in zip(q, (now["a"], (now["place"], now["b"])), strict=True))  # fmt: skip
    return first, second


def log_prob(theta, unit):
    """ln p of both choices of every trial of a person, (trials)."""

    def trial(carry, now):
        one, two = log_choices(theta, carry[0], now["place"], carry[1])
        return (learn(theta, carry[0], now), now["a"]), one[now["a"]] + two[now["b"]]

    return jax.lax.scan(trial, START, unit)[1]


STRENGTHS = {"planning": (PLAN,), "habit": (HABIT,), "both": (PLAN, HABIT)}
MODELS = [inf.Model(name, (RATE, *own, SECOND, STAY), log_prob) for name, own in STRENGTHS.items()]
CHANCE = inf.Model("chance", (), lambda theta, unit: jnp.full(unit["a"].shape, 2 * jnp.log(0.5)))


@jax.jit
def play(theta, key, steps):
    """The trials of one person. The chances to win drift by `steps` (trials, places, options)."""

    def trial(carry, now):
        (q, last), chances, keys = carry, now[0], jax.random.split(now[1], 4)
        a = jax.random.categorical(keys[0], log_choices(theta, q, 0, last)[0])
        place = jnp.where(jax.random.uniform(keys[1]) < COMMON, a, 1 - a)
        b = jax.random.categorical(keys[2], log_choices(theta, q, place, last)[1])
        done = {"a": a, "place": place, "b": b, "won": jax.random.bernoulli(keys[3], chances[place, b]).astype(float)}
        return (learn(theta, q, done), a), done

    chances = 0.5 + 0.25 * jnp.sin(steps.cumsum(axis=0))  # between .25 and .75
    return jax.lax.scan(trial, START, (chances, jax.random.split(key, len(steps))))[1]


def simulate(model, theta, seed, trials=150):
    people, rng = len(theta["rate"]), np.random.default_rng(seed)
    steps = rng.normal(0.0, 0.2, (people, trials, 2, 2))
    steps[:, 0] *= 10  # every option starts elsewhere
    units = jax.vmap(play)(theta, jax.random.split(jax.random.key(seed), people), steps)
    return inf.Data(jax.tree.map(np.asarray, units), np.arange(people), np.zeros(people, int))


if __name__ == "__main__":
    people, rng = 24, np.random.default_rng(1)
    truth = {"rate": rng.uniform(0.3, 0.7, people), "plan": rng.lognormal(1.3, 0.3, people),
             "second": rng.lognormal(1.2, 0.3, people), "stay": rng.normal(0.3, 0.2, people)}  # fmt: skip
    fold = np.tile(np.arange(150) * 5 // 150, (people, 1))  # stretches of every person's trials
    comparison = inf.compare([*MODELS, CHANCE], simulate(MODELS[0], truth, seed=2), own=True, fold=fold)
    for row in inf.comparison_rows(comparison):
        print("{model:9} {held_out:8.4f} nats per trial, {difference:+.4f} ± {error:.4f} over chance".format(**row))
    ahead = comparison.difference("planning", "both")
    print(f"planning over both: {ahead.mean:+.4f} ± {ahead.error:.4f}: {ahead.call}")
    recovery = inf.recover_models(MODELS, comparison, simulate, fold=fold)
    print("simulated (rows) and fitted (columns), share of people by BIC:", ", ".join(recovery.models))
    print(recovery.people.round(2))
    save(inf.draw_differences(comparison, "chance", "trial"), "two_step")
