"""The task as it is: numbers by arm and condition, measured or given, and what a reading decides about the table."""

from pathlib import Path

import jax
import numpy as np
import pytest

from policychord.choices.checks import _undefined
from policychord.choices.compare import plan_models
from policychord.choices.data import DataError, Reading, as_table, parse_choices, read_choices
from policychord.choices.estimate import choice_likelihood, coefficients_of, fit
from policychord.choices.learners import believe
from policychord.choices.measure import measure_task, mismatches
from policychord.choices.models import classic, log_proba, model_by_name
from policychord.choices.places import places_of
from policychord.choices.simulate import cohort, simulate_choices
from policychord.choices.tasks import Task, describe_task, make_task, parse_numbers, set_numbers
from policychord.cli.choices import _with_habits
from policychord.inference.likelihoods import pointwise

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "choices"
PARTS = (Task("risky", (50.0, 50.0), (36.0, 0.0)), Task("safe", (50.0, 50.0), (0.0, 36.0)))
CONDITIONS = Task("own data", (50.0, 50.0), 18.0, conditions=PARTS)
RESTLESS = Task("own data", (100.0,) * 3, 16.0, 20.0, 9.0, 0.97)
PEOPLE = np.tile([0.25, 0.1], (12, 1))


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def risky():
    """People in a task in which the noise depends on arm and condition."""
    return simulate_choices(CONDITIONS, classic("UCB"), PEOPLE, blocks=12, trials=10, seed=4)


@pytest.fixture(scope="module")
def restless():
    """People whose arms drift, with blocks of 60 trials."""
    return simulate_choices(RESTLESS, classic("UCB", "logit"), PEOPLE, blocks=2, trials=60, seed=4)


# ----------------------------------------------------------------------------------------- numbers of a task


def test_numbers_by_arm_and_condition_are_read_as_written():
    assert parse_numbers("--noise", "") is None
    assert parse_numbers("--noise", "10") == 10.0
    assert parse_numbers("--noise", "36,0") == (36.0, 0.0)
    by_condition = parse_numbers("--noise", "risky:36,0; safe:1")
    assert by_condition == {"risky": (36.0, 0.0), "safe": 1.0}
    task = make_task("own", {"variance": (4.0, 4.0), "noise": by_condition, "decay": 0.9})
    np.testing.assert_array_equal(task.under("risky").numbers.noise, [36.0, 0.0])
    np.testing.assert_array_equal(task.under("safe").numbers.noise, [1.0, 1.0])
    assert task.under("safe").decay == 0.9
    assert "risky: 36, 0; safe: 1" in describe_task(task)
    assert "decay): 0.9" in describe_task(task)


@pytest.mark.parametrize("text", ["a", "1;2", "x:1;x:2", ":1", "1,b", "x:"])
def test_numbers_that_cannot_be_read_say_how_to_write_them(text):
    with pytest.raises(ValueError, match=r"--drift .*: write a number, one for each arm"):
        parse_numbers("--drift", text)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"noise": -1.0}, "at least 0"), ({"noise": 0.0}, "more than 0 for some arm"), ({"decay": 1.5}, "between 0 and 1"),
     ({"noise": (1.0, 2.0, 3.0)}, "one for each of 2 arms"), ({"noise": {"a": 1.0}, "drift": {"b": 1.0}}, "too"),
     ({"mean": np.inf}, "must be a number"), ({"speed": 1.0}, "no number of a task")],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        set_numbers(Task("own", (1.0, 1.0)), given)


# --------------------------------------------------------------------------------------- learning with them


@pytest.mark.parametrize("name", ["UCB", "kalman/noise:UCB", "kalman/decay:Value"])
@pytest.mark.parametrize("which", ["risky", "restless"])
def test_the_compiled_likelihood_has_the_numbers_of_every_block(name, which, request):
    choices = request.getfixturevalue(which)
    trials = believe(choices)
    model = model_by_name(name, choices.task, "logit")
    found = fit(model, trials)
    log_p = log_proba(model, trials, coefficients_of(found, trials))[np.arange(len(trials.choice)), trials.choice]
    at = places_of(trials)
    compiled = pointwise(choice_likelihood(model, trials), found.z)[at.block, at.place]
    np.testing.assert_allclose(compiled, log_p, atol=1e-8)


def test_an_arm_without_noise_is_known_after_one_reward(risky):
    trials = believe(risky)
    assert np.isfinite(trials.mean).all()
    noise = np.asarray(trials.prior.noise)
    for arm in (0, 1):
        later = (trials.trial > 1) & (trials.previous == arm)
        sure = trials.variance[later, arm] == 0
        np.testing.assert_array_equal(sure, noise[later, arm] == 0)
        np.testing.assert_allclose(trials.mean[later, arm][sure], risky.reward[np.flatnonzero(later) - 1][sure])


def test_values_drift_and_decay_by_hand():
    task = Task("own", (4.0, 4.0), (2.0, 1.0), (1.0, 0.0), (0.5, 0.0), (0.5, 1.0))
    text = "subject,choice,reward\n" + "".join(f"1,{1 + k % 2},{k % 3}\n" for k in range(10))
    trials = believe(parse_choices(text.encode(), "c.csv", task))
    # arm 1 pays 0: gain 4/6, then half way to its mean of 1, with a quarter of the variance and the drift
    np.testing.assert_allclose(trials.mean[1], [1.0 + 0.5 * (1.0 - 4 / 6 - 1.0), 0.0])
    np.testing.assert_allclose(trials.variance[1], [0.25 * (4.0 - 16 / 6) + 0.5, 4.0])


# ------------------------------------------------------------------------------------------------ measuring


def test_noise_is_measured_by_arm_and_condition_where_it_differs(risky):
    task = measure_task(risky)
    assert [part.name for part in task.conditions] == ["risky", "safe"]
    for part in task.conditions:
        noise = np.asarray(part.noise)
        assert sorted(noise == 0) == [False, True]
        assert noise.max() == pytest.approx(36.0, rel=0.25)
    assert mismatches(risky._replace(task=task)) == []
    # one number for all of them is named as wrong, with the option that mends it
    (line,) = mismatches(risky._replace(task=Task("own data", (50.0, 50.0), 18.0)))
    assert "--noise" in line
    alike = risky._replace(reward=risky.reward + np.random.default_rng(0).normal(0.0, 20.0, len(risky.reward)))
    assert measure_task(alike).conditions == ()


def test_noise_and_drift_are_told_apart(restless):
    """The variance of rewards within a block has both; taking it for noise switches the drift off."""
    task = measure_task(restless)
    cell = as_table(restless).groupby(["subject", "block", "choice"])["reward"].var().mean()
    assert cell > 2.5 * 16.0
    assert task.noise == pytest.approx(16.0, rel=0.25)
    assert task.drift == pytest.approx(9.0, rel=0.35)
    assert task.decay == pytest.approx(0.97, abs=0.02)
    assert mismatches(restless) == []
    (line,) = mismatches(restless._replace(task=RESTLESS._replace(drift=0.0, decay=1.0)))
    assert "values drift" in line
    assert "--noise" not in line
    advised = measure_task(restless, noise=16.0)
    assert (advised.noise, advised.drift) == (16.0, task.drift)
    # neither does a drift that is given make noise of it, but a drift of 0 does
    given = measure_task(restless, drift=4.0, decay=0.99)
    assert (given.drift, given.noise) == (4.0, task.noise)
    assert mismatches(restless._replace(task=given)) == []
    assert measure_task(restless, drift=0.0).noise > 2.5 * 16.0


def test_values_that_stay_have_no_drift():
    for seed in range(3):
        still = simulate_choices(Task("own data", (9.0,) * 2, 4.0), classic("UCB"), PEOPLE[:6], trials=40, blocks=3,
                                 seed=seed)  # fmt: skip
        task = measure_task(still)
        assert (task.drift, task.decay) == (0.0, 1.0)


def test_a_measured_drift_is_in_the_unit_of_the_rewards(restless):
    base = measure_task(restless)
    for factor, shift in ((0.01, 0.0), (100.0, 0.0), (1.0, 50.0)):
        task = measure_task(restless._replace(reward=factor * restless.reward + shift))
        numbers = (*task.variance, task.noise, task.drift)
        known = factor**2 * np.array([*base.variance, base.noise, base.drift])
        np.testing.assert_allclose(numbers, known, rtol=1e-6)
        assert task.mean == pytest.approx(factor * base.mean + shift, rel=1e-9)
        assert task.decay == pytest.approx(base.decay, rel=1e-6)


@pytest.mark.skipif(not (SHARED / "gershman2019.csv").is_file(), reason="the public table is not there")
def test_safe_arms_of_a_public_table_are_measured_as_safe():
    """Beliefs with the noise of every arm and condition: a BIC of 12,907 for UCB, where one noise gives 13,306."""
    choices = read_choices(SHARED / "gershman2019.csv")
    noise = {part.name: np.asarray(part.numbers.noise) for part in choices.task.conditions}
    assert [tuple((noise[word] == 0).tolist()) for word in "1234"] == [
        (False, True), (True, False), (False, False), (True, True)]  # fmt: skip
    found = fit(classic("UCB"), believe(choices))
    assert found.bic.sum() == pytest.approx(12906.8, abs=1.0)


# --------------------------------------------------------------------------------------------- the reading


def read(rows, header="subject,trial,choice,reward", **how):
    return parse_choices((header + "\n" + "\n".join(rows) + "\n").encode(), "t.csv", how=Reading(**how))


def blocks_of(restart, count=20):
    return [f"{s},{1 + t // 10},{1 + (t % 10 if restart else t)},{1 + t % 2},{(t * 7 + s) % 5}"
            for s in (1, 2) for t in range(count)]  # fmt: skip


def test_a_block_through_which_trials_run_on_is_not_new_arms():
    header = "subject,block,trial,choice,reward"
    run_on, restart = blocks_of(False), blocks_of(True)
    found = read(run_on, header)
    assert set(found.block) == {1}
    assert found.trial.max() == 20
    assert "Trial numbers run on through block: arms are not new" in " ".join(found.said)
    named = read(run_on, header, columns={"block": "block"})
    assert set(named.block) == {1, 2}
    assert set(read(restart, header).block) == {1, 2}
    assert any("--columns block=none" in line for line in read(restart, header).said)
    gone = read(run_on, header, columns={"block": "none"})
    np.testing.assert_array_equal(gone.block, found.block)
    games = read(run_on, header.replace("block", "game"))
    assert set(games.block) == {1, 2}


def test_a_person_with_few_trials_is_left_out_by_name():
    rows = [f"{s},{t},{1 + t % 2},{(t * 7 + s) % 5}" for s in (1, 2) for t in range(1, 13)]
    found = read([*rows, "lazy,1,1,3"])
    assert set(found.subject) == {"1", "2"}
    assert "Left out: subject lazy, with fewer than 10 trials" in found.notes[0]


def coded(*codes, paid=None):
    """Choices in turn, with a reward of 0 for those that are `paid` nothing."""
    return [f"1,{t},{codes[t % len(codes)]},{0 if codes[t % len(codes)] == paid else (7 * t) % 5}" for t in range(40)]


def test_a_missed_code_that_looks_like_an_arm_is_asked_about():
    with pytest.raises(DataError, match=r"0 always pays 0: is it a missed trial \(--missed 0\) or an arm") as caught:
        read(coded(1, 2, 0, 1, paid=0))
    assert "--arm-names 0,1,2" in str(caught.value)
    for code in (9, 99):
        with pytest.raises(DataError, match=rf"choice has {code} and 1, 2: is it a missed trial \(--missed {code}"):
            read(coded(1, 2, code))
    missed = read(coded(1, 2, 0, 1, paid=0), missed=("0",))
    assert (missed.arms, len(missed.choice)) == (("1", "2"), 30)
    assert read(coded(1, 2, 0, 1, paid=0), arms=("0", "1", "2")).arms == ("0", "1", "2")
    # an arm like the others is one
    assert read(coded(1, 2, 0, 1)).arms == ("0", "1", "2")


def sides_of(code):
    """Left and right arms of three, and what was taken of them as side, code or name."""
    rng = np.random.default_rng(1)
    rows, names = [], []
    for t in range(60):
        left, right = rng.permutation([1, 2, 3])[:2]
        side = int(rng.integers(2))
        rows.append((t, left, right, code[side] if code else (left, right)[side], rng.integers(4)))
        names.append((left, right)[side])
    return [f"1,{','.join(map(str, row))}" for row in rows], np.array(names) - 1


HEADER = "subject,trial,arm_left,arm_right,choice,reward"


@pytest.mark.parametrize(
    ("code", "sides"),
    [((0, 1), ()), (("left", "right"), ()), (("j", "k"), ("j", "k")), (None, ()), ((1, 2), ("1", "2"))],
)
def test_left_and_right_arms_are_choice_sets(code, sides):
    rows, names = sides_of(code)
    found = read(rows, HEADER, sides=sides)
    np.testing.assert_array_equal(found.choice, names)
    assert found.arms == ("1", "2", "3")
    assert (found.offered.sum(1) == 2).all()
    assert found.offered[np.arange(60), names].all()


def test_sides_that_may_mean_either_are_asked_about():
    rows, _ = sides_of((5, 6))
    with pytest.raises(DataError, match="first and the second arm by --sides"):
        read(rows, HEADER)
    rows = [f"1,{t},{'12' if t % 2 else '34'},{t // 3 % 2},{(7 * t) % 3}" for t in range(60)]
    with pytest.raises(DataError, match=r"--sides 1,0 if 1 is \(as in hBayesDM\), --sides 0,1"):
        read(rows, "subject,trial,type,choice,reward")
    found = read(rows, "subject,trial,type,choice,reward", sides=("1", "0"))
    assert found.arms == ("1", "2", "3", "4")
    first = np.array([t // 3 % 2 == 1 for t in range(60)])
    np.testing.assert_array_equal(found.choice, np.where(np.arange(60) % 2 == 1, ~first + 0, 2 + (~first + 0)))
    # another column of that name is none of our business
    words = [f"1,{t},{'easy' if t % 2 else 'hard'},{t // 3 % 2},{(7 * t) % 3}" for t in range(60)]
    assert read(words, "subject,trial,type,choice,reward").offered is None


def test_a_condition_has_an_effect_or_is_said_to_have_none():
    rows = [f"{s},{t},{1 + t % 2},{(t * 7 + s) % 5},{'ab'[s - 1]}" for s in (1, 2) for t in range(1, 41)]
    header = "subject,trial,choice,reward,condition"
    assert any("The column condition changes nothing" in line for line in read(rows, header).said)
    given = read(rows, header, task={"noise": {"a": 2.0, "b": (1.0, 3.0)}})
    np.testing.assert_array_equal(np.asarray(believe(given).prior.noise)[[0, 40]], [[2.0, 2.0], [1.0, 3.0]])
    assert not any("changes nothing" in line for line in given.said)
    with pytest.raises(ValueError, match="leave out task"):
        parse_choices(b"subject,choice,reward\n", "t.csv", CONDITIONS, how=Reading(task={"noise": 1.0}))
    with pytest.raises(DataError, match="no trial has the condition c"):
        read(rows, header, task={"noise": {"a": 2.0, "b": 1.0, "c": 1.0}})
    within = [row.replace(",a", ",b" if k % 2 else ",a") for k, row in enumerate(rows)]
    with pytest.raises(DataError, match="condition changes within a block"):
        read(within, header, task={"noise": {"a": 2.0, "b": 1.0}})
    assert any("change within blocks" in line for line in read(within, header).said)


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_the_file_beside_a_table_may_hold_the_task(tmp_path, kind):
    rows = [f"{s},{t},{1 + t % 2},{(t * 7 + s) % 5}" for s in (1, 2) for t in range(1, 41)]
    (tmp_path / "t.csv").write_text("subject,trial,choice,reward\n" + "\n".join(rows))
    text = (
        "[task]\nnoise = [2.0, 1.0]\nmean = 3.0\n" if kind == "toml" else '{"task": {"noise": [2.0, 1.0], "mean": 3}}'
    )
    (tmp_path / f"t.{kind}").write_text(text)
    found = read_choices(tmp_path / "t.csv")
    assert (found.task.noise, found.task.mean) == ((2.0, 1.0), 3.0)
    assert found.task.measured == ("variance",)
    assert any("noise, mean of the task" in line for line in found.said)
    over = read_choices(tmp_path / "t.csv", how=Reading(task={"mean": 1.0}))
    assert (over.task.noise, over.task.mean) == ((2.0, 1.0), 1.0)
    (tmp_path / f"t.{kind}").write_text(text.replace("[2.0, 1.0]", '[2.0, "x"]'))
    with pytest.raises(ValueError, match=r"noise = \[2.0, 'x'\]: pass one number"):
        read_choices(tmp_path / "t.csv")
    (tmp_path / f"t.{kind}").write_text(text.replace("noise", "nose"))
    with pytest.raises(DataError, match="it may have mean, variance, noise, drift, decay"):
        read_choices(tmp_path / "t.csv")


# ------------------------------------------------------------------------------------------ gains and losses


def test_losses_may_weigh_more_than_gains():
    """Simulated people for whom a loss counts three times; with a weight of 1 it is the delta rule."""
    choices, model, _ = cohort(Task("own data", (4.0,) * 2, 4.0), "gain-loss", (0.4, 3.0, 0.8), 12, blocks=3, trials=80)
    assert model.coefficients == ("rate", "loss_weight", "V")
    trials = believe(choices)
    found, plain = (fit(model_by_name(name, choices.task), trials) for name in ("gain-loss", "delta"))
    assert np.median(found.coef[:, 1]) > 1.5
    assert found.log_likelihood.sum() > plain.log_likelihood.sum() + 10
    one = log_proba(model, trials, np.tile([0.4, 1.0, 0.8], (len(trials.choice), 1)))
    delta = log_proba(
        model_by_name("delta", choices.task, "probit"), trials, np.tile([0.4, 0.8], (len(trials.choice), 1))
    )
    np.testing.assert_allclose(one, delta, atol=1e-12)


def test_gains_and_losses_of_one_trial_are_kept_apart():
    rows = [f"1,{t},{1 + t % 2},{t % 4},{-(t % 3)}" for t in range(1, 41)]
    found = read(rows, "subject,trial,choice,gain,loss")
    np.testing.assert_array_equal(found.loss, [-(t % 3) for t in range(1, 41)])
    np.testing.assert_array_equal(found.reward, [t % 4 - t % 3 for t in range(1, 41)])
    np.testing.assert_array_equal(believe(found).loss, found.loss)


def test_an_arm_that_nobody_takes_is_named_and_one_arm_alone_is_refused():
    cells = [(person, k, 1 + (k * person) % 2, k % 3) for person in (1, 2) for k in range(1, 13)]
    rows = [",".join(map(str, row)) for row in cells]
    assert not any("Never taken" in line for line in read(rows).said)
    phantom = read(rows, arms=("1", "2", "3"))
    assert any(line.startswith("Never taken: arm 3.") for line in phantom.said)
    with pytest.raises(DataError, match="choice is always 1"):
        read([f"{person},{k},1,{reward}" for person, k, _, reward in cells])


def test_where_nothing_is_uncertain_a_warning_names_the_models_that_predict_chance():
    known = Task("own data", (50.0, 0.0))
    trials = believe(simulate_choices(known, classic("UCB"), PEOPLE[:2], blocks=2, trials=5, seed=1))
    plan = plan_models(known, models=("UCB", "Thompson", "Hybrid"))
    assert _undefined(plan, trials) == []
    exact = trials._replace(variance=np.where(np.arange(len(trials.choice))[:, None] < 4, 0.0, trials.variance))
    (warning,) = _undefined(plan, exact)
    assert warning.startswith(f"In 4 of {len(trials.choice)} trials")
    assert "Thompson, Hybrid predict chance" in warning
    assert _undefined(plan._replace(models={"UCB": plan.models["UCB"]}), exact) == []


def test_a_habit_that_a_model_has_is_not_added_twice():
    assert _with_habits(("Value", "Value+stickiness", "Composed"), "stickiness,lapse") == (
        "Value", "Value+stickiness", "Value+lapse", "Value+stickiness+lapse", "Composed",
    )  # fmt: skip
