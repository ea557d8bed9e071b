"""`contest`: an agent against its controls, in the same episodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from policychord import (
    Commitment,
    Composer,
    Cost,
    Entropy,
    Finite,
    Gaussian,
    Grid,
    Planner,
    Policy,
    Rollouts,
    Sampled,
    Table,
    contest,
    rollout,
)
from policychord.gym import play
from policychord.loops import Alone, Contest, Greedy, controls
from policychord.models import BlackBox, Value
from policychord.worlds import Pendulum

LINE = Grid(-2.0, 2.0, 21, saturates=True)
AGENT = Composer(
    {"left": Gaussian([-1.0], 0.3), "right": Gaussian([1.0], 0.3)}, Cost(lambda x, u, k: u[0] ** 2), LINE, 0.3,
    prior=[0.2, 0.8],
)  # fmt: skip
KEY = jax.random.key(0)
silent = lambda words, done, total: None  # noqa: E731


def test_the_controls_are_what_they_are_called():
    agents = controls(AGENT)
    assert list(agents) == ["left alone", "right alone", "fixed mixture", "cheapest", "composed"]
    assert float(agents["left alone"].decide(KEY, None).action[0]) == -1.0
    mixture = agents["fixed mixture"].decide(KEY, None)
    np.testing.assert_allclose(mixture.weights, [0.2, 0.8], atol=1e-12)
    assert not mixture.certified  # without a cost nobody knows what is optimal
    np.testing.assert_allclose(sorted(agents["cheapest"].weigh(None).weights), [0.0, 1.0], atol=1e-12)
    assert agents["composed"] is AGENT
    tables = {"one": Table([0.9, 0.1]), "other": Table([0.0, 1.0])}
    labels = Composer(tables, Cost([0.0, 1.0]), Finite(2), 0.3, regulariser=Entropy(caps=0.6))
    alone = controls(labels)["other alone"].decide(KEY, None)  # a single primitive must take all
    np.testing.assert_allclose(alone.weights, [1.0])
    assert int(alone.action) == 1


LOW, HIGH = np.array([0.0, -1.5]), np.array([1.0, 1.5])
PLANE = Grid(LOW, HIGH, [5, 7], saturates=True)


def clipping(x, k):
    """A controller that keeps to the limits itself: half of a Gaussian around its command would lie outside."""
    return jnp.clip(jnp.stack([3.0 + x[0], 0.37 * x[1] + 0.01 * k]), LOW, HIGH)


def in_numpy(x):
    return np.clip(np.array([0.123 * x[0], 9.0 * x[1]]), LOW, HIGH)


class Trained:
    """Something with Stable-Baselines3's signature, in its single precision."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert deterministic
        return np.stack([in_numpy(x) for x in observation]).astype(np.float32), None


SEEN = np.array([[0.5, 1.0], [-0.2, 0.04], [3.0, -3.0]])
command_of_jax = jax.jit(lambda x: clipping(x, 3))  # compiled, as it will be: otherwise the last digit may differ
CONTROLLERS = {
    "clipping": (Gaussian(clipping, 0.3), command_of_jax),
    "clipping, tail": (Gaussian(clipping, 0.3, outside="tail"), command_of_jax),
    "trained": (Policy(Trained(), 0.3), lambda x: in_numpy(x).astype(np.float32)),
    "numpy": (Policy(in_numpy, 0.3), in_numpy),
    "a function": (clipping, command_of_jax),
    "a function in numpy": (in_numpy, in_numpy),
    "a model": (Trained(), lambda x: in_numpy(x).astype(np.float32)),
}


@pytest.mark.parametrize("actions", [PLANE, Sampled(LOW, HIGH, count=16)], ids=["grid", "sampled"])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_alone_acts_exactly_as_the_controller(name, actions):
    controller, command = CONTROLLERS[name]
    agent = Alone(name, controller, actions)
    decide = jax.jit(lambda x: agent.decide(KEY, x, 3, ()))
    for x in SEEN:
        found = decide(x)
        np.testing.assert_array_equal(found.action, np.asarray(command(x), float))
    together = jax.jit(jax.vmap(lambda x: agent.decide(KEY, x, 3, ()).action))(SEEN)
    np.testing.assert_allclose(together, [command(x) for x in SEEN], rtol=1e-15)
    assert agent.names == (name,)
    assert found.weights == jnp.ones(1)


def test_what_cannot_be_done_is_cut_and_a_disc_keeps_all_digits():
    wants = Alone("wants", lambda x: jnp.array([7.0, -0.3]), PLANE)
    np.testing.assert_array_equal(wants.decide(KEY, SEEN[0]).action, [1.0, -0.3])
    disc = Grid([-0.3, 0.1], [1.7, 2.1], 9, radius=1.0)
    inside = np.array([0.7123456789012345, 1.3000000000000007])
    for controller in (lambda x: jnp.asarray(inside), Gaussian(inside, 0.3), Policy(lambda x: inside, 0.3)):
        np.testing.assert_array_equal(Alone("a", controller, disc).decide(KEY, SEEN[0]).action, inside)

    def mutates(x):  # which no tracer can
        own = np.zeros(2)
        own[0] += x[0]
        return own

    np.testing.assert_array_equal(Alone("a", mutates, PLANE).decide(KEY, SEEN[0]).action, [0.5, 0.0])
    labels = Alone("pick", lambda x: 2 if x[0] > 0 else 0, Finite(3))
    assert [int(labels.decide(KEY, x).action) for x in SEEN] == [2, 0, 2]


def test_agents_simulate_what_their_gate_needs_and_the_table_says_how_much():
    rows = []

    def predict(x, u, k):
        rows.append(len(x))
        return x + 0.1 * u

    parts = {"left": Policy(lambda x: [-1.0], 0.3), "right": Policy(lambda x: [1.0], 0.3)}
    later = Rollouts(parts, LINE, BlackBox(predict), BlackBox(lambda x, u, k: x[:, 0] ** 2), steps=3)
    agent = Composer(parts, Cost(predict=BlackBox(predict), cost_to_go=later), LINE, 0.3, selection="mean")
    simulated = {}

    def once(one):
        rows.clear()
        for x in ([0.3], [-0.4]):
            jax.block_until_ready(one.decide(KEY, jnp.asarray(x)))
        simulated[len(simulated)] = sum(rows) / 2
        return [0.0, 1.0]

    found = contest(agent, once, rivals={"mine": lambda x: -x}, progress=silent)
    assert list(found.simulated.values()) == list(simulated.values()) == [0, 0, 0, 147, 0, 147]  # 21 (1 + 2 * 3)
    assert list(found.returns) == ["left alone", "right alone", "fixed mixture", "cheapest", "mine", "composed"]
    table = str(found).splitlines()
    assert table[0].split()[:3] == ["agent", "simulated", "return"]
    assert table[4].split()[:2] == ["cheapest", "147"]
    others = {"greedy": Greedy(agent.model, LINE)}
    for gate in ("prior", "equilibrium"):
        others[gate] = Planner(agent.replace(gate=gate), BlackBox(predict), later.stage_cost, steps=3, samples=8)
    others["held"] = Commitment(agent, BlackBox(predict), later.stage_cost, steps=3, samples=6)
    simulated.clear()
    found = contest({"composed": agent} | others, once, progress=silent).simulated
    assert list(found.values()) == list(simulated.values()) == [147, 24, 147 + 24, 18, 147]


def test_rivals_of_all_kinds_play_and_each_is_reported_when_it_is_finished(capsys):
    lines = []
    rivals = {"jax": lambda x, k: -x[2:], "numpy": lambda x: np.sign(x[2:]), "gaussian": Gaussian([0.5], 0.3),
              "agent": AGENT.replace(gate="prior")}  # fmt: skip

    def gym_return(agent):
        return play(agent, "Pendulum-v1", seeds=2, steps=3).total_reward

    found = contest(AGENT, gym_return, rivals=rivals, progress=lambda *told: lines.append(told))
    assert list(found.returns)[-5:] == [*rivals, "composed"]
    assert [line[1:] for line in lines] == [(i, 9) for i in range(9)]
    assert lines[0][0].startswith("left alone: -")
    assert found.simulated["agent"] == 0
    contest({"composed": AGENT}, gym_return)
    assert capsys.readouterr().err.startswith("[1/1] composed: -")
    with pytest.raises(ValueError, match="rivals has cheapest, which the agents have too"):
        contest(AGENT, gym_return, rivals={"cheapest": AGENT})
    with pytest.raises(ValueError, match="other is a Table, which has no command"):
        contest({"composed": AGENT, "other": Table(np.full(21, 1 / 21))}, gym_return)


def test_generalised_policy_improvement_takes_the_best_action_of_the_best_critic():
    """Two critics, each of a policy that goes to its own side: together they know both."""
    values = np.array([[[0.0, 1.0], [3.0, 0.0]], [[2.0, 0.5], [1.0, 0.0]]])  # critic, state, action
    critics = [lambda x, u, q=q: q[x.astype(int), u.astype(int)] for q in values]
    agent = Greedy(Cost(Value(critics)), Finite(2))
    found = [int(agent.decide(KEY, jnp.asarray(float(x))).action) for x in (0, 1)]
    assert found == np.argmax(values.max(axis=0), axis=1).tolist() == [0, 0]
    assert [int(np.argmax(values[0, x])) for x in (0, 1)] == [1, 0]  # the first alone would choose another one
    apart = [Gaussian([-1.0], 0.3), Gaussian([1.2], 0.3)]
    near = Greedy(Cost(lambda x, u, k: (u[0] - 0.9) ** 2), Sampled(-2.0, 2.0), apart)
    assert float(near.decide(KEY, None).action[0]) == 1.2  # of what the controllers ask for
    with pytest.raises(ValueError, match="Sampled actions have no points"):
        Greedy(Cost(lambda x, u, k: 0.0), Sampled(dim=2))


def test_gains_are_paired_with_students_interval():
    rng = np.random.default_rng(0)
    own, other = rng.normal(1.0, 1.0, 30), rng.normal(0.0, 1.0, 30)
    ours, theirs = Contest({"ours": own, "other": other}, "ours").rows
    low, high = ttest_1samp(own - other, 0.0).confidence_interval()
    assert theirs.gain == pytest.approx((low + high) / 2)
    assert theirs.gain_error == pytest.approx((high - low) / 2)
    assert (theirs.won, theirs.lost) == (int(np.sum(own > other)), int(np.sum(own < other)))
    assert ours.error == pytest.approx(student.ppf(0.975, 29) * own.std(ddof=1) / np.sqrt(30))
    assert ours.gain is ours.won is None


def test_a_contest_of_a_composer_in_an_environment():
    found = contest(AGENT, lambda agent: rollout(agent, Pendulum(), steps=5, episodes=4).total_reward, progress=silent)
    alone = rollout(controls(AGENT)["left alone"], Pendulum(), steps=5, episodes=4).total_reward
    np.testing.assert_array_equal(found.returns["left alone"], alone)
    table = str(found).splitlines()
    assert len(table) == 7
    assert "4 episodes, the same for all" in table[-1]


@pytest.mark.parametrize(
    ("play", "ours", "message"),
    [
        (lambda agent: np.zeros(3), "mine", "ours = 'mine' is none of the agents: composed, other"),
        (lambda agent: 1.0, "composed", r"play\('other'\) gives shape \(\)"),
        (lambda agent: [1.0, np.nan], "composed", "not finite"),
        (lambda agent: np.zeros(agent), "composed", r"different numbers of episodes \(other 3, composed 2\)"),
    ],
)
def test_what_is_wrong_is_said(play, ours, message):
    with pytest.raises(ValueError, match=message):
        contest({"composed": 2, "other": 3}, play, ours=ours, progress=silent)
