"""When does composition pay: the benchmark plays, keeps and compares; the page's record supports every rule on it."""

import json
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from .docs.pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
from benchmarks import composition as benchmark
from benchmarks.composition import USUAL, Bench, Cell, duel, factor_for, mixture_of, play, weights_of
from benchmarks.composition_tasks import TASKS

import composition as page
from policychord.effect_size import cliffs_delta


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The cheapest task, with episodes of twelve steps and rollouts of four."""
    before, benchmark.BEFORE[:] = list(benchmark.BEFORE), [np.inf]
    yield Bench(TASKS["pendulum"]()._replace(steps=12, horizon=4), tmp_path_factory.mktemp("played"))
    benchmark.BEFORE[:] = before


def test_every_agent_plays_the_same_episodes_and_is_kept(bench):
    some = range(1000, 1003)
    ours = bench.gate(USUAL, some, "each", 0.5, 10.0)
    rivals = [*bench.alone(USUAL, some).values(), *bench.hand(USUAL, some).values()]
    rivals += [bench.cheapest(USUAL, some, "0.50 0.50"), bench.plan(USUAL, some, "each", 0.3, 1.0)]
    assert all(one.shape == (2, 3) and np.all(np.isfinite(one)) for one in (ours, *rivals))
    assert all(not np.array_equal(one, ours) for one in rivals)
    files = {path: path.stat().st_mtime_ns for path in bench.folder.iterdir()}
    np.testing.assert_array_equal(bench.gate(USUAL, some, "each", 0.5, 10.0), ours)
    assert {path: path.stat().st_mtime_ns for path in bench.folder.iterdir()} == files


def test_what_is_changed_changes_the_costs(bench):
    some = range(1000, 1003)
    usual = bench.gate(USUAL, some, "each", 0.5, 10.0)
    for cell in (Cell(mass=1.4), Cell(drag=1.0), Cell(delay=2), Cell(gains=0.5), Cell(temperature=100.0)):
        assert not np.array_equal(bench.gate(cell, some, "each", 0.5, 10.0), usual), cell


def test_a_late_command_arrives_as_it_was_made(bench):
    """A constant command that is two decisions late acts as two decisions at rest before it."""
    push = bench.task.controllers["left"]
    late = benchmark.Late(benchmark.only(push), jnp.asarray(2), jnp.zeros(1))

    class Waits(type(benchmark.only(push))):
        def decide(self, key, view, k, memory):
            made = super().decide(key, view, k, memory)
            return made._replace(action=jnp.where(k < 2, 0.0, made.action))

    numbers = jnp.arange(3)
    expected = play(Waits((push,), jnp.ones(1)), bench.task.env, 12, numbers)
    np.testing.assert_allclose(play(late, bench.task.env, 12, numbers)[0], expected[0], rtol=1e-12)


def test_time_that_is_over_stops_it_before_the_next_program(bench):
    benchmark.BEFORE[:] = [0.0]
    with pytest.raises(TimeoutError):
        bench.gate(USUAL, range(5), "each", 0.05, 1.0)
    benchmark.BEFORE[:] = [np.inf]


def test_mixtures_are_named_by_their_weights():
    assert mixture_of(np.array([0.2, 0.8])) == "0.20 0.80"
    np.testing.assert_allclose(weights_of("0.20 0.80", 3), [0.2, 0.8, 0.0])
    np.testing.assert_allclose(weights_of("0.00 0.20 0.80", 2), [0.0, 1.0])
    np.testing.assert_allclose(weights_of("0.00 0.00 1.00", 2), [0.5, 0.5])


def test_a_duel_by_hand():
    found = duel(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 3.0, 4.0, 4.0]))
    assert found["wins"][0] == pytest.approx(3.5 / 4)
    assert found["wins"][1] < found["wins"][0] < found["wins"][2]
    assert found["delta"][0] == pytest.approx((3 - 9) / 16)  # of 16 pairs 3 are above and 9 below


def test_the_factor_that_gives_a_delta(rng):
    costs = rng.uniform(80, 120, 200)
    factor = factor_for(-0.8, costs)
    assert cliffs_delta(factor * costs, costs) == pytest.approx(-0.8, abs=0.02)


# ------------------------------------------------------------- the page


@pytest.mark.parametrize("rule", page.RULES, ids=lambda rule: rule.name)
def test_the_record_supports_the_rule(rule):
    assert rule.holds(page.record())
    assert "{" not in page.said(rule)


@pytest.mark.parametrize("rule", page.RULES, ids=lambda rule: rule.name)
def test_a_record_that_says_the_opposite_is_noticed(rule, monkeypatch):
    """Everything turned round: who won loses, what made the composition dearer makes it cheaper, and the reverse."""
    turned = json.loads(json.dumps(page.record()))
    for found in turned["tasks"].values():
        usual, tried = found["usual"]["median"], found["chosen"]["tried"]
        found["chosen"]["tried"] = {name: 1e6 / value for name, value in tried.items()}
        for cell in (found["usual"], *found["cells"]):
            old, cell["median"] = cell["median"], usual**2 / cell["median"]
            for one in cell["rivals"].values():
                one["wins"] = [1 - one["wins"][i] for i in (0, 2, 1)]
                one["delta"] = [-one["delta"][i] for i in (0, 2, 1)]
                one["median"] = cell["median"] * old / one["median"]
    assert not rule.holds(turned)
    monkeypatch.setattr(page, "record", lambda: turned)
    with pytest.raises(ValueError, match="contradicts"):
        page.rules()


def test_every_task_is_in_the_record():
    told = page.record()
    assert set(told["tasks"]) == set(TASKS)
    for name, found in told["tasks"].items():
        assert found["usual"]["episodes"] >= 100
        if name not in benchmark.ONCE:
            assert {"temperature", "mass"} <= {cell["factor"] for cell in found["cells"]} <= set(page.FACTORS)
    assert (page.FOLDER / "composition.json").stat().st_size < 200_000
