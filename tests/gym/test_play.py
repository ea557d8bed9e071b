"""A Composer in other people's environments: quantities and labels, early ends, errors, and closed doors."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from policychord.actions import Finite, Grid
from policychord.agent import Composer
from policychord.gym import play
from policychord.loops import rollout, to_dataset
from policychord.models import Cost
from policychord.primitives import Gaussian, Table
from policychord.worlds import Bandit, Belief, Pendulum, PendulumState, upright

# -- a pendulum: quantities


def pendulum_state(observation):
    return PendulumState(jnp.arctan2(observation[1], observation[0]), observation[2])


def energy_pump(state, k):
    missing = 5.0 - (state.velocity**2 / 6 + 5.0 * jnp.cos(state.angle))
    return jnp.atleast_1d(8.0 * missing * jnp.sign(state.velocity))


def swinger(**changes):
    primitives = {
        "pump": Gaussian(energy_pump, sd=0.3),
        "balance": Gaussian(lambda state, k: jnp.atleast_1d(-20.0 * state.angle - 4.0 * state.velocity), sd=0.3),
    }
    model = Cost(
        predict=lambda state, action, k: Pendulum().move(state, action[0]),
        state_cost=lambda state, k: upright(state.angle) ** 2 + 0.1 * state.velocity**2,
    )
    return Composer(primitives, model, Grid(-2.0, 2.0, 41), eps=0.05, selection="mean").replace(**changes)


def test_pendulum():
    trace = play(swinger(), "Pendulum-v1", seeds=4, observe=pendulum_state)
    assert trace.reward.shape == (4, 200)  # the environment's own limit
    assert trace.weights.shape == (4, 200, 2)
    assert trace.action.shape == (4, 200, 1)
    assert trace.alive.all()
    assert trace.converged.all()
    assert np.max(trace.gap) <= 1e-10
    # what the model predicted is what came
    angle, velocity = pendulum_state(np.moveaxis(trace.state.observation, -1, 0))
    predicted = Pendulum().move(PendulumState(angle, velocity), trace.action[..., 0])
    expected = np.stack([np.cos(predicted.angle), np.sin(predicted.angle), predicted.velocity], axis=-1)
    np.testing.assert_allclose(trace.state.observation[:, 1:], expected[:, :-1], atol=1e-5)
    np.testing.assert_allclose(trace.final_state.observation, expected[:, -1], atol=1e-5)
    cost = angle**2 + 0.1 * velocity**2 + 0.001 * trace.action[..., 0] ** 2
    np.testing.assert_allclose(trace.reward, -cost, atol=1e-4)
    dataset = to_dataset(trace, environment="Pendulum-v1")
    assert dict(dataset.sizes) == {
        "episode": 4, "time": 200, "agent": 1, "primitive": 2, "action_axis": 1, "signal_0": 3,
    }  # fmt: skip


def test_the_same_seeds_pair_agents():
    agent = swinger(selection="sample")
    first, again = (play(agent, "Pendulum-v1", seeds=[3, 8], steps=12, observe=pendulum_state) for _ in range(2))
    for one, other in zip(first[:-2], again[:-2], strict=True):
        np.testing.assert_array_equal(one, other)
    fixed = play(agent.replace(gate="prior"), "Pendulum-v1", seeds=[3, 8], steps=12, observe=pendulum_state)
    np.testing.assert_array_equal(fixed.state.observation[:, 0], first.state.observation[:, 0])
    assert not np.array_equal(fixed.action, first.action)
    # and an episode does not depend on its company
    other = play(agent, "Pendulum-v1", seeds=[5, 3], steps=12, observe=pendulum_state)
    np.testing.assert_array_equal(other.action[1], first.action[0])
    assert not np.array_equal(other.action[0], first.action[1])
    assert other.labels.episodes == (5, 3)


def test_our_own_environment_is_that_of_rollout():
    """Same starts, weather and luck: `play` with seeds 0, 1, 2 is `rollout` with episodes 0, 1, 2."""
    habits = {"first": Table([0.8, 0.2]), "second": Table([0.2, 0.8])}
    agent = Composer(habits, Cost(lambda belief, arm, k: -0.1 * belief.mean[arm]), Finite(2), eps=0.1)
    outside = play(agent, "policychord/Bandit-v0", seeds=3, observe=lambda seen: Belief(seen[:2], seen[2:]))
    inside = rollout(agent, Bandit(), steps=10, episodes=3)
    np.testing.assert_array_equal(outside.action, inside.action)
    np.testing.assert_allclose(outside.reward, inside.reward, rtol=1e-12)
    np.testing.assert_allclose(outside.weights, inside.weights, atol=1e-5)  # observations are float32


# -- a pole on a cart: labels and early ends


def cart_pole(state, action, k):
    """Where the cart and its pole will be after a push to the left (0) or to the right (1)."""
    _, velocity, angle, spin = state
    force = 20.0 * action - 10.0
    pull = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
    turn = (9.8 * jnp.sin(angle) - jnp.cos(angle) * pull) / (0.5 * (4.0 / 3.0 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
    push = pull - 0.05 * turn * jnp.cos(angle) / 1.1
    return state + 0.02 * jnp.stack([velocity, push, spin, turn])


def leaning(x, k):
    """A cost that falls as the pole comes upright and the cart to the middle: (x, v, angle, spin) in one direction."""
    return 10.0 * (x[2] + 0.5 * x[3] + 0.05 * x[0] + 0.1 * x[1]) ** 2


PUSHES = {"left": Table([0.95, 0.05]), "right": Table([0.05, 0.95])}


@pytest.fixture(scope="module")
def cart_traces():
    model = Cost(predict=cart_pole, cost_to_go=leaning)
    agents = {
        "composed": Composer(PUSHES, model, Finite(2), eps=0.01, selection="mode"),
        "left": Composer({"left": PUSHES["left"]}, model, Finite(2), eps=0.01, selection="mode"),
    }
    return {name: play(agent, "CartPole-v1", seeds=5, steps=150) for name, agent in agents.items()}


def test_cart_pole_is_predicted(cart_traces):
    trace = cart_traces["composed"]
    before, after = trace.state.observation[:, :-1], trace.state.observation[:, 1:]
    pushed, alive = trace.action[:, :-1], trace.alive[:, 1:]
    predicted = np.array([cart_pole(x, u, 0) for x, u in zip(before[alive].astype(float), pushed[alive], strict=True)])
    np.testing.assert_allclose(predicted, after[alive], atol=1e-5)


def test_cart_pole_is_balanced_by_composing_two_constants(cart_traces):
    assert cart_traces["composed"].action.shape == (5, 150)
    assert cart_traces["composed"].total_reward.tolist() == [150.0] * 5
    assert np.all(cart_traces["left"].total_reward < 15)


def test_episodes_that_end_early(cart_traces):
    trace = cart_traces["left"]
    lengths = trace.alive.sum(axis=1)
    assert len(set(lengths.tolist())) > 1
    assert trace.reward.shape[1] == lengths.max() < 150  # the trace ends with the longest
    np.testing.assert_array_equal(trace.total_reward, lengths)  # the pole pays 1 a step, and nothing once it is over
    for seen, final, length in zip(trace.state.observation, trace.final_state.observation, lengths, strict=True):
        assert np.all(seen[length:] == final)  # what is over stands still


# -- small worlds of our own: types, errors, closing


class World(gymnasium.Env):
    """Pays the action; counts who is open; does something foul at its third step if asked."""

    def __init__(self, action_space, observation_space=None, fault=None, log=None, limit=None, first=(0, 1)):
        self.action_space = action_space
        self.observation_space = observation_space or spaces.Box(-9.0, 9.0, (2,))
        self.fault, self.log, self.taken, self.limit = fault, [] if log is None else log, [], limit
        self.first = first
        self.log.append("open")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.first, {}  # whole numbers, though the space has float32

    def step(self, action):
        assert action in self.action_space
        self.taken.append(action)
        if self.fault is not None and len(self.taken) == 3:
            raise self.fault
        return np.array([0.5, 0.5]), float(np.sum(action)), False, len(self.taken) == self.limit, {}

    def close(self):
        self.log.append("closed")
        if isinstance(self.fault, OSError):
            raise self.fault


def agent_with(actions, **changes):
    uniform = Table(np.full(actions.size, 1.0 / actions.size))
    return Composer([uniform], Cost(np.arange(actions.size)), actions, eps=1.0, **changes)


THREE = spaces.Discrete(3)


def test_function_that_makes_an_environment():
    trace = play(agent_with(Finite(3)), lambda: World(THREE), seeds=2, steps=4)
    np.testing.assert_array_equal(trace.reward, trace.action)
    np.testing.assert_array_equal(trace.state.observation[:, 0], [[0, 1]] * 2)
    np.testing.assert_array_equal(trace.state.observation[:, 1:], 0.5)  # not cut to whole numbers


@pytest.mark.parametrize(
    ("actions", "space"),
    [
        (Finite([5, 6, 7]), spaces.Discrete(3, start=5)),
        (Finite([[0, 1], [1, 0]]), spaces.MultiBinary(2)),
        (Finite([[0, 1], [2, 0]]), spaces.MultiDiscrete([3, 2])),
        (Finite([[0, 1], [2, 0]]), spaces.Box(0, 2, (2,), dtype=np.int32)),
        (Finite([0.25, 0.75]), spaces.Box(0.0, 1.0, (1,))),
        (Finite([[0.25, 1.0, 0.0, 0.5]]), spaces.Box(0.0, 1.0, (2, 2))),
        (Grid([-1.0, -1.0], [1.0, 1.0], 3), spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)),
    ],
    ids=str,
)
def test_actions_of_all_kinds(actions, space):
    trace = play(agent_with(actions), lambda: World(space), steps=2)
    np.testing.assert_array_equal(trace.reward[0], np.reshape(trace.action[0], (2, -1)).sum(axis=1))


def test_an_episode_whose_time_is_up_is_over():
    limits, worlds = iter([2, 4]), []

    def make():
        worlds.append(World(THREE, limit=next(limits)))
        return worlds[-1]

    trace = play(agent_with(Finite(3)), make, seeds=2, steps=9)
    assert trace.alive.tolist() == [[True, True, False, False], [True] * 4]
    assert [len(world.taken) for world in worlds] == [2, 4]


def test_quantities_are_cut_to_the_limits():
    trace = play(agent_with(Finite([[3.0]])), lambda: World(spaces.Box(-2.0, 2.0, (1,))), steps=2)
    np.testing.assert_array_equal(trace.action, 3.0)
    np.testing.assert_array_equal(trace.reward, 2.0)


def test_numbered_observations():
    """A lake whose states are numbers: a table with a row for each."""
    down_then_right = np.eye(4)[[1, 2, 1, 0, 1, 0, 1, 0, 2, 1, 1, 0, 0, 2, 2, 0]]
    agent = Composer({"path": Table(down_then_right)}, Cost(np.zeros(4)), Finite(4), eps=0.1)
    trace = play(agent, lambda: gymnasium.make("FrozenLake-v1", is_slippery=False))
    assert trace.state.observation[0].tolist() == [0, 4, 8, 9, 13, 14]
    assert trace.final_state.observation.tolist() == [15]
    assert trace.total_reward.tolist() == [1.0]


BOX = spaces.Box(-1.0, 1.0, (2,))
LABELS = agent_with(Finite(3))


@pytest.mark.parametrize(
    ("agent", "space", "message"),
    [
        (agent_with(Grid(-1.0, 1.0, 3)), THREE, r"takes Discrete\(3\), so each .* must be one of those: Finite\(3\)"),
        (agent_with(Finite(4)), THREE, r"takes Discrete\(3\), so each"),
        (agent_with(Finite([0.0, 1.0])), THREE, r"takes Discrete\(3\), so each"),
        (LABELS, spaces.Discrete(3, start=5), r"start=5\), so each .*: Finite\(\[\.\.\.\]\)"),
        (LABELS, spaces.MultiBinary(3), r"takes MultiBinary\(3\), so each"),
        (agent_with(Finite([[0.5], [1.0]])), spaces.MultiBinary(1), r"takes MultiBinary\(1\), so each"),
        (LABELS, BOX, r"actions are labels, but the environment takes Box"),
        (agent_with(Grid(-1.0, 1.0, 3)), BOX, r"actions have shape \(1,\), but the environment takes Box"),
        (LABELS, spaces.Tuple([THREE, THREE]), r"takes Tuple.*, which no action set of ours describes"),
    ],
)
def test_wrong_action_spaces(agent, space, message):
    log = []
    with pytest.raises(ValueError, match=message):
        play(agent, lambda: World(space, log=log), steps=4)
    assert log == ["open", "closed"]


@pytest.mark.parametrize("space", [spaces.Dict({"here": spaces.Text(3)}), spaces.Text(3)], ids=["inside", "alone"])
def test_observations_that_are_no_numbers(space):
    log = []
    with pytest.raises(ValueError, match=r"observations hold a Text.*TransformObservation"):
        play(LABELS, lambda: World(THREE, space, log=log, first={"here": "abc"}), steps=4)
    assert log == ["open", "closed"]


def test_no_step_limit():
    with pytest.raises(ValueError, match="pass steps="):
        play(LABELS, lambda: World(THREE))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps = 0: pass a whole number of at least 1"),
        ({"steps": 2.5}, "steps = 2.5: pass a whole number of at least 1"),
        ({"seeds": 0}, "seeds = 0: pass at least 1"),
        ({"seeds": [-1]}, r"seeds = \[-1\]: pass"),
        ({"env": World(THREE)}, "env is a World: pass a registered name, a function"),
    ],
)
def test_wrong_arguments(arguments, message, without_type_checks):
    with pytest.raises(ValueError, match=message):
        play(LABELS, **{"env": lambda: World(THREE), **arguments})


def test_each_episode_needs_an_environment_of_its_own():
    only = World(THREE)
    with pytest.raises(ValueError, match="same environment twice"):
        play(LABELS, lambda: only, seeds=2, steps=4)
    assert only.log == ["open", "closed"]


@pytest.mark.parametrize("fault", [RuntimeError("broken"), KeyboardInterrupt(), OSError("stuck")], ids=repr)
def test_everything_is_closed_whatever_happens(fault):
    """Even if closing fails too, as it does with the last of these."""
    log, makers = [], iter([None, fault, None])
    with pytest.raises(type(fault)):
        play(LABELS, lambda: World(THREE, fault=next(makers), log=log), seeds=3, steps=4)
    assert log == ["open"] * 3 + ["closed"] * 3


def test_those_already_made_are_closed_if_the_next_cannot_be():
    log, makers = [], iter([World, World])
    with pytest.raises(StopIteration):
        play(LABELS, lambda: next(makers)(THREE, log=log), seeds=3, steps=4)
    assert log == ["open"] * 2 + ["closed"] * 2


def test_everything_is_closed_in_the_end():
    log = []
    play(LABELS, lambda: World(THREE, log=log), seeds=3, steps=4)
    assert log == ["open"] * 3 + ["closed"] * 3


def test_what_is_not_a_number_is_said():
    cost = Cost(lambda seen, action, k: jnp.where(seen[0] > 0.25, jnp.nan, 1.0) * action)
    agent = Composer([Table(np.full(3, 1 / 3))], cost, Finite(3), eps=1.0)
    with pytest.warns(UserWarning, match=r"1 of 2 decisions failed.*first in episode 4 at time 1"):
        play(agent, lambda: World(THREE), seeds=[4], steps=2)
