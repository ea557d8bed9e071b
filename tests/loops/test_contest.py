"""`contest`: an agent beside what it has to beat, in the same episodes."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from policychord import Composer, Cost, Entropy, Gaussian, Grid, contest, rollout
from policychord.loops import Contest, controls
from policychord.worlds import Pendulum

LINE = Grid(-2.0, 2.0, 21, saturates=True)
AGENT = Composer(
    {"left": Gaussian([-1.0], 0.3), "right": Gaussian([1.0], 0.3)}, Cost(lambda x, u, k: u[0] ** 2), LINE, 0.3,
    prior=[0.2, 0.8],
)  # fmt: skip


def test_the_controls_are_what_they_are_called():
    agents = controls(AGENT)
    assert list(agents) == ["left alone", "right alone", "fixed mixture", "cheapest", "composed"]
    for name, weights in {"left alone": [1.0], "fixed mixture": [0.2, 0.8]}.items():
        np.testing.assert_allclose(agents[name].weigh(None).weights, weights, atol=1e-12)
    np.testing.assert_allclose(sorted(agents["cheapest"].weigh(None).weights), [0.0, 1.0], atol=1e-12)
    assert agents["composed"] is AGENT
    capped = controls(AGENT.replace(regulariser=Entropy(caps=0.6)))  # a single primitive must take all
    np.testing.assert_allclose(capped["right alone"].weigh(None).weights, [1.0])


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
    found = contest(AGENT, lambda agent: rollout(agent, Pendulum(), steps=5, episodes=4).total_reward)
    alone = rollout(controls(AGENT)["left alone"], Pendulum(), steps=5, episodes=4).total_reward
    np.testing.assert_array_equal(found.returns["left alone"], alone)
    table = str(found).splitlines()
    assert len(table) == 7
    assert table[0].split()[:2] == ["agent", "return"]
    assert "4 episodes, the same for all" in table[-1]


@pytest.mark.parametrize(
    ("play", "ours", "message"),
    [
        (lambda agent: np.zeros(3), "mine", "ours = 'mine' is none of the agents: composed, other"),
        (lambda agent: 1.0, "composed", r"play\('composed'\) gives shape \(\)"),
        (lambda agent: [1.0, np.nan], "composed", "not finite"),
        (lambda agent: np.zeros(agent), "composed", r"different numbers of episodes \(composed 2, other 3\)"),
    ],
)
def test_what_is_wrong_is_said(play, ours, message):
    with pytest.raises(ValueError, match=message):
        contest({"composed": 2, "other": 3}, play, ours=ours)
