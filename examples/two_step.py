"""A toolbox of your own in sixty lines: planning and habit in the two-step task of Daw et al. (2011).

A first choice leads to one of two places, usually (.7) to its own; there a second choice wins or not, with chances that
drift. Habit repeats first choices that ended well; planning asks which place is worth more and how to get there.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import figure, save

import policychord as pc
from policychord import inference as inf

COMMON = 0.7
RATE = inf.bounded("rate", 0.0, 1.0, 0.4, prior=inf.Normal(0.0, 1.5))
PLAN, HABIT, SECOND = (
    inf.positive(name, 2.0, prior=inf.Normal(np.log(2.0), 1.0)) for name in ("plan", "habit", "second")
)
STAY = inf.real("stay", 0.2, prior=inf.Normal(0.0, 1.0))


# ------------------------------------------------------------------------------------------------- the toolbox
def values(theta, q, place, last):
    """Utilities of the first choice (2) and of the second one in a place (2), from what was learned."""
    first, second = q
    best = second.max(axis=1)
    planned = jnp.array([COMMON * best[0] + (1 - COMMON) * best[1], (1 - COMMON) * best[0] + COMMON * best[1]])
    utility = theta.get("plan", 0.0) * planned + theta.get("habit", 0.0) * first
    return utility + theta["stay"] * (jnp.arange(2) == last), theta["second"] * second[place]


def learn(theta, q, trial):
    first, second = q
    a, s, b, won = trial["a"], trial["place"], trial["b"], trial["won"]
    first = first.at[a].add(theta["rate"] * (won - first[a]))
    return first, second.at[s, b].add(theta["rate"] * (won - second[s, b]))


def log_prob(theta, unit):
    """ln p of both choices of every trial of a person, (trials)."""

    def trial(carry, now):
        q, last = carry
        one, two = values(theta, q, now["place"], last)
        log_p = jax.nn.log_softmax(one)[now["a"]] + jax.nn.log_softmax(two)[now["b"]]
        return (learn(theta, q, now), now["a"]), log_p

    begin = (jnp.full(2, 0.5), jnp.full((2, 2), 0.5)), -1
    return jax.lax.scan(trial, begin, unit)[1]


def chance(theta, unit):
    return jnp.full(unit["a"].shape, 2 * jnp.log(0.5))


MODELS = [
    inf.Model("planning", (RATE, PLAN, SECOND, STAY), log_prob, "values of places, and how to get there"),
    inf.Model("habit", (RATE, HABIT, SECOND, STAY), log_prob, "what ended well is done again"),
    inf.Model("both", (RATE, PLAN, HABIT, SECOND, STAY), log_prob, "a sum of both"),
    inf.Model("chance", (), chance),
]


@jax.jit
def play(theta, drift, key):
    """The trials of one person whose chances to win are `drift` (trials, places, options)."""

    def trial(carry, now):
        q, last, key = carry
        key = jax.random.split(key, 5)
        a = jax.random.categorical(key[0], values(theta, q, 0, last)[0])
        place = jnp.where(jax.random.uniform(key[1]) < COMMON, a, 1 - a)
        b = jax.random.categorical(key[2], values(theta, q, place, last)[1])
        won = (jax.random.uniform(key[3]) < now[place, b]).astype(float)
        done = {"a": a, "place": place, "b": b, "won": won}
        return (learn(theta, q, done), a, key[4]), done

    return jax.lax.scan(trial, ((jnp.full(2, 0.5), jnp.full((2, 2), 0.5)), jnp.asarray(-1), key), drift)[1]


# -------------------------------------------------------------------------------------------------- one study
def simulate(model, theta, seed, trials=150):
    people = len(theta["rate"])
    rng = np.random.default_rng(seed)
    steps = rng.normal(0.0, 0.05, size=(people, trials, 2, 2)).cumsum(axis=1) + rng.uniform(0.2, 0.8, (people, 1, 2, 2))
    drift = 0.25 + 0.5 * np.abs(((steps - 0.25) / 0.5 + 1.0) % 2.0 - 1.0)  # reflected at .25 and .75
    units = jax.vmap(play)(theta, jnp.asarray(drift), jax.random.split(jax.random.key(seed), people))
    return inf.Data(jax.tree.map(np.asarray, units), np.arange(people), np.zeros(people, int))


def main():
    pc.enable_x64()
    people, rng = 24, np.random.default_rng(1)
    theta = {"rate": rng.uniform(0.3, 0.7, people), "plan": rng.lognormal(1.3, 0.3, people),
             "second": rng.lognormal(1.2, 0.3, people), "stay": rng.normal(0.3, 0.2, people)}  # fmt: skip
    data = simulate(MODELS[0], theta, seed=2)
    fold = np.tile(np.arange(150) * 5 // 150, (people, 1))  # stretches of every person's trials
    comparison = inf.compare(MODELS, data, own=True, fold=fold)
    for score in comparison.scores:
        gain = comparison.difference(score.name, "chance")
        print(f"{score.name:9} {score.held_out:8.4f} nats per trial, {gain.mean:+.4f} ± {gain.error:.4f} over chance")
    ahead = comparison.difference("planning", "both")
    print(f"planning over both: {ahead.mean:+.4f} ± {ahead.error:.4f}: {ahead.call}")
    print(
        "PXP:",
        {name: round(float(pxp), 3) for name, pxp in zip(comparison.selected, comparison.selection.pxp, strict=True)},
    )
    recovery = inf.recover_models(MODELS[:3], comparison, simulate, fold=fold)
    print("simulated (rows) and fitted (columns), share of people by BIC:", ", ".join(recovery.models))
    print(recovery.people.round(2))
    for found in recovery.parameters:
        print(f"{found.model:9} {found.name:11} r {found.correlation:.2f}  coverage {found.coverage:.2f}")
    save(draw(recovery), "two_step")


def draw(recovery):
    fig = figure(4.2, 3.6)
    axes = fig.subplots()
    shown = axes.imshow(recovery.people, vmin=0, vmax=1, cmap="Blues")
    axes.set(xticks=range(3), yticks=range(3), xticklabels=recovery.models, yticklabels=recovery.models,
             xlabel="least BIC", ylabel="simulated")  # fmt: skip
    for (i, j), share in np.ndenumerate(recovery.people):
        axes.text(j, i, f"{share:.2f}", ha="center", va="center", color="white" if share > 0.5 else "black")
    fig.colorbar(shown, label="share of people")
    return fig


if __name__ == "__main__":
    main()
