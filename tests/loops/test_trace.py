"""Traces as labelled datasets. The traces are made by hand, so that every number is known."""

import json
import pickle
import warnings

import numpy as np
import pytest

from policychord import Composer, rollout
from policychord.actions import Grid
from policychord.loops import Labels, Record, Trace, to_dataset
from policychord.loops.trace import trace_of
from policychord.models import Cost
from policychord.primitives import Gaussian
from policychord.worlds import Pendulum, PendulumState, Variable

EPISODES, TIMES, AGENTS = (3, 7), 4, 3
RNG = np.random.default_rng(2)


def trace(*agents, action_shape=(1,), state=None, variables=Pendulum.variables, log_prob=None):
    lead = (len(EPISODES), TIMES)
    state = state or (PendulumState(RNG.random(lead), RNG.random(lead)), PendulumState(RNG.random(2), RNG.random(2)))
    return Trace(
        state=state[0], final_state=state[1], action=RNG.random((*lead, *agents, *action_shape)),
        weights=RNG.dirichlet(np.ones(2), size=(*lead, *agents)), gap=RNG.random((*lead, *agents)),
        distance=RNG.random((*lead, *agents)), outcome=np.zeros((*lead, *agents), np.int8), reward=RNG.random(lead),
        alive=np.ones(lead, bool), log_prob=log_prob,
        labels=Labels(("push", "pull"), EPISODES, variables, action_unit="N m"),
    )  # fmt: skip


def test_what_is_cut_after_an_episode_is_over_is_not_said():
    one = trace()
    alive, cut = np.zeros_like(one.alive), np.ones((*one.alive.shape, 2), bool)
    alive[:, :2] = True
    cut[:, :2] = False
    told = {name: getattr(one, name) for name in Record._fields}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace_of(Record(**told | {"alive": alive, "cut": cut}), one.final_state, one.labels)
    with pytest.warns(UserWarning, match=r"cuts primitives\['push'\] off in many decisions"):
        trace_of(Record(**told | {"alive": ~alive, "cut": cut}), one.final_state, one.labels)


def test_a_single_agent_has_an_agent_axis_of_length_one():
    one = trace()
    data = to_dataset(one)
    assert dict(data.sizes) == {"episode": 2, "time": 4, "agent": 1, "primitive": 2, "action_axis": 1}
    assert data.weights.dims == ("episode", "time", "agent", "primitive")
    np.testing.assert_array_equal(data.weights[:, :, 0], one.weights)
    np.testing.assert_array_equal(data.action[:, :, 0], one.action)
    for name in ("gap", "distance", "outcome"):
        assert data[name].dims == ("episode", "time", "agent")
        np.testing.assert_array_equal(data[name][:, :, 0], getattr(one, name))
    for name in ("reward", "alive"):
        assert data[name].dims == ("episode", "time")


def test_a_population_keeps_its_axis():
    many = trace(AGENTS)
    data = to_dataset(many)
    assert data.sizes["agent"] == AGENTS
    np.testing.assert_array_equal(data.weights, many.weights)
    np.testing.assert_array_equal(data.action.sel(agent=2), many.action[:, :, 2])
    assert data.gap.dims == ("episode", "time", "agent")


def test_things_are_found_by_their_names():
    one = trace()
    data = to_dataset(one)
    assert data.episode.values.tolist() == [3, 7]
    assert data.time.values.tolist() == [0, 1, 2, 3]
    pull = data.weights.sel(episode=7, primitive="pull", agent=0)
    np.testing.assert_array_equal(pull, one.weights[1, :, 1])


def test_states_are_variables_with_units():
    one = trace()
    data = to_dataset(one)
    np.testing.assert_array_equal(data.angle, one.state.angle)
    np.testing.assert_array_equal(data.final_velocity, one.final_state.velocity)
    assert data.velocity.attrs["units"] == "rad/s"
    assert data.final_angle.attrs["units"] == "rad"
    assert data.final_angle.dims == ("episode",)
    assert data.action.attrs["units"] == "N m"
    assert data.gap.attrs["units"] == "nat"


def test_likelihoods_are_there_after_a_replay_only():
    assert "log_prob" not in to_dataset(trace())
    data = to_dataset(trace(log_prob=np.full((2, 4), -0.5)))
    assert data.log_prob.dims == ("episode", "time")
    assert data.log_prob.sum() == -4.0


@pytest.mark.parametrize(
    ("shape", "dims"), [((), ()), ((2,), ("action_axis",)), ((2, 2), ("action_axis_0", "action_axis_1"))]
)
def test_actions_of_any_shape(shape, dims):
    data = to_dataset(trace(action_shape=shape))
    assert data.action.dims == ("episode", "time", "agent", *dims)


def test_settings_become_attributes():
    data = to_dataset(
        trace(), eps=0.1, name="swing", count=np.int64(3), temperature=np.float64(0.5), grid=np.array([1, 2]),
        nested={"a": [1, None], "b": np.float64(2.5)}, nothing=None,
    )  # fmt: skip
    assert data.attrs["eps"] == 0.1
    assert data.attrs["name"] == "swing"
    assert data.attrs["count"] == 3
    assert data.attrs["temperature"] == 0.5
    assert json.loads(data.attrs["grid"]) == [1, 2]
    assert json.loads(data.attrs["nested"]) == {"a": [1, None], "b": 2.5}
    assert data.attrs["nothing"] == "null"
    for value in data.attrs.values():
        assert isinstance(value, str | int | float)


def test_a_state_hides_nothing_of_the_trace():
    class Clash:
        reward = time = np.full((2, 4), 7.0)

    names = {"reward": Variable(unit="points"), "time": Variable()}
    data = to_dataset(trace(state=(Clash(), FinalClash()), variables=names))
    assert (data.state_reward == 7.0).all()
    assert (data.state_time == 7.0).all()
    assert data.time.values.tolist() == [0, 1, 2, 3]
    assert (data.reward != 7.0).all()


class FinalClash:
    reward = time = np.full(2, 7.0)


def test_a_trace_can_be_pickled():
    agent = Composer(
        {"rest": Gaussian(lambda x, k: 0.0, sd=0.3)},
        model=Cost(predict=lambda x, a, k: x, state_cost=lambda x, k: x.angle),
        actions=Grid(-1.0, 1.0, 5),
        eps=1.0,
    )
    whole = rollout(agent, Pendulum(), steps=2)
    assert pickle.loads(pickle.dumps(whole)).labels == whole.labels
