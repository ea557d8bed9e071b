"""Populations: many agents as one, each as if it were alone."""

import dataclasses
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer, Population, rollout
from policychord.actions import Finite, Grid
from policychord.models import Cost
from policychord.population import Groups
from policychord.primitives import Gaussian, Table
from policychord.worlds import Flock

LINE = Grid(-2.0, 2.0, 21)
VIEWS = jnp.array([[0.3], [-0.5], [1.2]])


def follow(x, k):
    return x


def price(x, u, k):
    return (x[0] + u[0]) ** 2


def agent(sd=0.3, eps=0.1, prior=(0.5, 0.5), constant=1.0, **options):
    primitives = {"follow": Gaussian(follow, sd), "constant": Gaussian([constant], 0.4)}
    return Composer(primitives, Cost(price), LINE, eps, prior, **options)


DIFFERENT = [agent(), agent(sd=0.6, eps=0.5), agent(prior=(0.2, 0.8), constant=-1.0)]
decide = eqx.filter_jit(lambda who, key, x, k, memory: who.decide(key, x, k, memory))


@pytest.mark.parametrize("options", [{}, {"selection": "dither", "gate": "one-step"}], ids=["sample", "dither"])
def test_each_decides_as_if_it_were_alone(options):
    alone = [one.replace(**options) for one in DIFFERENT]
    together = Population(alone)
    key, memory = jax.random.key(3), together.start()
    assert memory.weights.shape == (3, 2)
    for k in (jnp.asarray(0), jnp.asarray(1)):
        before, decision = memory, decide(together, key, VIEWS, k, memory)
        memory = decision.memory
        for i, one in enumerate(alone):
            own = jax.tree.map(lambda a, i=i: a[i], before)
            expected = decide(one, jax.random.fold_in(key, i), VIEWS[i], k, own)
            np.testing.assert_allclose(decision.weights[i], expected.weights, atol=1e-7)
            np.testing.assert_allclose(decision.action[i], expected.action, atol=1e-9)
            np.testing.assert_allclose(memory.debt[i], expected.memory.debt, atol=1e-7)
            assert decision.certified[i]


def test_what_is_shared_is_kept_once():
    together = Population(DIFFERENT)
    assert together.members.tree.actions.points.shape == (21, 1)
    assert together.members.tree.eps.shape == (3,)
    assert together.members.tree.log_prior.shape == (3, 2)
    assert together.members.tree.primitives[0].sd.shape == (3,)
    assert together.members.tree.primitives[1].sd.shape == ()
    assert together.count == 3
    assert together.names == ("follow", "constant")
    first, second, _ = DIFFERENT  # of few kinds, in any order
    np.testing.assert_array_equal(
        Population([first, second, second, first]).members.tree.eps,
        [float(one.eps) for one in (first, second, second, first)],
    )


def test_one_composer_many_times():
    together = Population(agent(), 4)
    assert not any(together.members.differs)
    decision = decide(together, jax.random.key(0), jnp.zeros((4, 1)), jnp.asarray(0), together.start())
    np.testing.assert_allclose(decision.weights, np.tile(decision.weights[0], (4, 1)), rtol=1e-12)
    assert len(np.unique(decision.action)) > 1  # each has a random stream of its own
    unused = decide(together, jax.random.key(0), jnp.zeros((4, 1)), jnp.asarray(0), None)
    np.testing.assert_array_equal(unused.action, decision.action)  # without a memory they begin


def other_table(actions):
    return Composer([Table(np.full(actions, 1 / actions))], Cost(np.zeros(actions)), Finite(actions), 0.1)


COMPLAINTS = {
    "no count": (lambda: Population(agent()), "count = None: say how many agents"),
    "zero": (lambda: Population(agent(), 0), "count = 0"),
    "count and list": (lambda: Population(DIFFERENT, 3), "count belongs to a single composer"),
    "empty": (lambda: Population([]), "composers is empty"),
    "options": (lambda: Population([agent(), agent(selection="mean")]), r"composers\[1\] differs from composers\[0\]"),
    "functions": (
        lambda: Population([agent(), agent().replace(model=Cost(lambda x, u, k: 0.0))]), "Functions must be the same"
    ),
    "shapes": (lambda: Population([other_table(3), other_table(4)]), "array 0 of the composers has different shapes"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()


def test_views_without_an_agent_axis_are_refused():
    with pytest.raises(ValueError, match=r"3 agents, but what they see has shape .*leading agent axis of 3"):
        Population(agent(), 3).decide(jax.random.key(0), jnp.array([0.3]))


# -- groups


def hold(x, k):
    return jnp.zeros(1)


def other_kind():
    """Another model, other primitives, and one name that the first kind has too."""
    primitives = {"hold": Gaussian(hold, 0.2), "follow": Gaussian(follow, 0.5), "away": Gaussian(lambda x, k: -x, 0.3)}
    return Composer(primitives, Cost(lambda x, u, k: u[0] ** 2), Grid(-1.0, 1.0, 11), 0.2, selection="mean")


def test_groups_decide_as_each_would_alone():
    pairs, single = Population(DIFFERENT[:2]), other_kind()
    mixed = Groups(pairs=pairs, single=single)
    assert mixed.names == ("follow", "constant", "hold", "away")
    assert mixed.count == 3
    assert mixed.places == {"pairs": slice(0, 2), "single": slice(2, 3)}
    key, k = jax.random.key(3), jnp.asarray(0)
    found = decide(mixed, key, VIEWS, k, None)
    first = decide(pairs, jax.random.fold_in(key, 0), VIEWS[:2], k, None)
    last = decide(Population(single, 1), jax.random.fold_in(key, 1), VIEWS[2:], k, None)
    np.testing.assert_allclose(found.weights[:2, :2], first.weights, atol=1e-12)
    assert np.isnan(found.weights[:2, 2:]).all()
    np.testing.assert_allclose(found.weights[2, [2, 0, 3]], last.weights[0], atol=1e-12)
    np.testing.assert_allclose(found.action, np.concatenate([first.action, last.action]), atol=1e-12)
    assert found.certified.all()
    again = decide(mixed, key, VIEWS, jnp.asarray(1), found.memory)
    np.testing.assert_allclose(again.weights[2], found.weights[2], atol=1e-6)


def test_groups_in_a_loop_say_nothing_wrong():
    """A weight of a primitive that an agent does not have is not taken for one that failed."""
    turn = Composer([Gaussian([0.0, 1.0], 0.5)], Cost(lambda x, u, k: u[0] ** 2), Grid([-3, -3], [3, 3], 7), 0.1)
    go = turn.replace(primitives={"go": Gaussian([1.0, 0.0], 0.5), "stop": Gaussian([0.0, 0.0], 0.5)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = rollout(Groups(front=Population(go, 2), back=Population(turn, 3)), Flock(5), steps=3, episodes=2)
    assert trace.weights.shape == (2, 3, 5, 3)
    assert trace.converged.all()


def test_groups_keep_their_order_in_compiled_functions():
    """Those sort dicts by their keys, and agents of one group would be those of another."""
    up, down = (Composer({name: Gaussian([mean], 0.2)}, Cost(np.zeros(21)), Grid(-2.0, 2.0, 21), 0.3, selection="mean")
                for name, mean in (("up", 1.0), ("down", -1.0)))  # fmt: skip
    mixed = Groups(leaders=up, followers=down)
    made = eqx.filter_jit(lambda agents: agents.decide(jax.random.key(0), jnp.zeros((2, 1)), 0))(mixed)
    np.testing.assert_allclose(made.action[:, 0], [1.0, -1.0], atol=1e-6)
    np.testing.assert_array_equal(made.weights, [[1.0, np.nan], [np.nan, 1.0]])
    assert mixed.names == ("up", "down")


def test_no_part_has_a_dict():
    """Its order would not survive compilation, nor would what depends on it."""
    import policychord.inference.families  # noqa: F401  # with all that it imports

    def kinds(base):
        return [base, *(one for below in base.__subclasses__() for one in kinds(below))]

    ours = {one for one in kinds(eqx.Module) if one.__module__.startswith("policychord")}
    assert len(ours) > 40
    for one in ours:
        for field in dataclasses.fields(one):
            if (one.__name__, field.name) == ("Sum", "models"):
                continue  # its terms carry their names, and a sum has no order
            told = str(field.type)
            assert field.metadata.get("static") or not told.lower().startswith(("dict", "mapping", "typing.mapping")), (
                f"{one.__qualname__}.{field.name}: {told}"
            )


GROUP_COMPLAINTS = {
    "none": (lambda: Groups(), "at least one group"),
    "actions": (lambda: Groups(a=agent(), b=other_table(3)), "act in different ways"),
}


@pytest.mark.parametrize("name", GROUP_COMPLAINTS)
def test_complaints_of_groups(name):
    make, message = GROUP_COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(ValueError, match="the groups have 2 agents"):
        Groups(a=agent(), b=other_kind()).decide(jax.random.key(0), VIEWS)
