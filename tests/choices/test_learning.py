"""Learners, models with a learner of their own, fit quality, checks, and other people's tables."""

import importlib.util
import json
import os
import sys
import types
import warnings
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from policychord.choices.checks import (
    CHANCE,
    FOLDS,
    _fit_warnings,
    examine,
    folds_of,
    posterior_tree,
    predict_others,
    recover,
)
from policychord.choices.compare import (
    OURS,
    Selection,
    analyse,
    compare_models,
    fit_rivals,
    model_by_name,
    plan_models,
)
from policychord.choices.data import TASKS, Reading, Task, as_table, measure_task, parse_choices, read_choices
from policychord.choices.estimate import choice_likelihood, coefficients_of, draw_coefficients, fit, natural_rows
from policychord.choices.learners import (
    LEARNERS,
    BetaBernoulli,
    DeltaRule,
    GainLoss,
    Kalman,
    TwoRates,
    begin,
    believe,
    learner_of,
    places_of,
    prior_belief,
    relearn,
)
from policychord.choices.measure import mismatches
from policychord.choices.models import classic, composed, log_proba
from policychord.choices.predictive import check_predictions
from policychord.choices.report import _in_pairs, state
from policychord.choices.simulate import GROUPS, cohort, draw_people, simulate_choices, synthetic
from policychord.inference import estimate
from policychord.inference.likelihoods import pointwise
from policychord.inference.parameters import natural
from policychord.inference.selection import ModelSelection
from policychord.worlds.bandit import Belief

EXAMPLES = "HBAYESDM_EXAMPLES"  # a folder with the example data of hBayesDM, where the package is not installed


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def learners_people():
    """People who learn by a delta rule at three arms."""
    with jax.enable_x64(True):
        task = Task("own data", (4.0,) * 3, 1.0)
        return cohort(task, "delta", (0.5, 1.5), 8, blocks=2, trials=40, seed=3)[0]


def test_the_kalman_filter_is_the_task_filter_bit_by_bit(cohort):
    choices = synthetic("2", 3, blocks=2, seed=1)
    plain, part = believe(choices), believe(choices, Kalman(noise=10.0))
    np.testing.assert_array_equal(plain.mean, part.mean)
    np.testing.assert_array_equal(plain.variance, part.variance)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_keeps_its_contract_in_numpy_and_jax(name):
    task = Task("own", (4.0, 4.0, 0.0), 2.0, mean=1.0)
    learner = learner_of(name)
    choice, reward = np.array([0, 1, 2, 0, 1]), np.array([2.0, -1.0, 1.0, 0.5, 3.0])
    if learner.apart:
        reward = np.stack([np.maximum(reward, 0.0), np.minimum(reward, 0.0)], axis=-1)
    known = begin(learner, prior_belief(task, 5))
    start = Belief(*known[:2])
    after = learner.update(start, choice, reward, known)
    compiled = learner.update(Belief(*map(jax.numpy.asarray, start)), choice, reward, known)
    for one, other in zip(after, compiled, strict=True):
        assert one.shape == (5, 3)
        np.testing.assert_allclose(one, other, atol=1e-15)
    untouched = np.arange(3) != choice[:, None]
    np.testing.assert_array_equal(after.mean[untouched], start.mean[untouched])


def test_learners_by_hand():
    start = prior_belief(Task("own", (1.0, 1.0)), 2)
    choice, reward = np.array([0, 0]), np.array([1.0, -1.0])
    np.testing.assert_allclose(DeltaRule(rate=0.25).update(start, choice, reward, start).mean[:, 0], [0.25, -0.25])
    two = TwoRates(rate_gain=0.5, rate_loss=0.1).update(start, choice, reward, start)
    np.testing.assert_allclose(two.mean[:, 0], [0.5, -0.1])
    # from an estimate that is not zero, where the error is not the reward
    hopeful = Belief(np.full((2, 2), 0.5), np.ones((2, 2)))
    np.testing.assert_allclose(DeltaRule(rate=0.25).update(hopeful, choice, reward, start).mean[:, 0], [0.625, 0.125])
    coin = BetaBernoulli()
    belief = coin.start(np.zeros((2, 2)), np.ones((2, 2)))
    after = coin.update(belief, choice, reward, belief)
    np.testing.assert_allclose(after.mean[:, 0], [2 / 3, 1 / 3])
    np.testing.assert_allclose(after.variance[:, 0], 2 / (9 * 4))
    apart = np.array([[1.0, 0.0], [0.5, -1.5]])  # gain and loss
    twice = GainLoss(rate=0.25, loss_weight=2.0).update(start, choice, apart, start)
    np.testing.assert_allclose(twice.mean[:, 0], [0.25, -0.625])
    moved = Kalman(noise=1.0, drift=0.5, decay=0.5).update(Belief(*start[:2]), choice, reward, start)
    np.testing.assert_allclose(moved.mean[:, 0], [0.25, -0.25])
    np.testing.assert_allclose(moved.variance, [[0.625, 0.75]] * 2)


@pytest.mark.parametrize("name", ["delta", "two-rates:Value+stickiness+lapse", "kalman/noise:Hybrid"])
def test_the_compiled_likelihood_is_the_policy(name, learners_people):
    trials = believe(learners_people)
    model = model_by_name(name, learners_people.task)
    found = fit(model, trials)
    log_p = log_proba(model, trials, coefficients_of(found, trials))[np.arange(len(trials.choice)), trials.choice]
    at = places_of(trials)
    compiled = pointwise(choice_likelihood(model, trials), found.z)[at.block, at.place]
    np.testing.assert_allclose(compiled, log_p, atol=1e-9)
    assert found.coef.shape == found.error.shape == (8, len(model.coefficients))
    assert (found.low <= found.coef).all()
    assert (found.coef <= found.high).all()
    np.testing.assert_allclose(predict(model, found, trials).sum(1), 1.0, atol=1e-9)


def predict(model, found, trials):
    return np.exp(log_proba(model, trials, coefficients_of(found, trials)))


def test_the_measured_mean_is_that_of_the_arms_and_not_of_the_arms_that_people_take():
    """People take good arms more often: a mean over trials is 3.6 here, where the arms' values have a mean of 0."""
    choices = synthetic("2", 40, seed=2)
    assert choices.reward.mean() > 3.0
    measured = measure_task(choices)
    assert abs(measured.mean) < 0.7  # three standard errors of 1,600 values with a variance of 100
    assert measured.variance == pytest.approx((100.0, 100.0), rel=0.15)
    assert measured.noise == pytest.approx(10.0, rel=0.1)


def test_a_shift_of_rewards_with_the_prior_mean_changes_nothing(learners_people):
    moved = learners_people._replace(
        reward=learners_people.reward + 10.0, task=learners_people.task._replace(mean=10.0)
    )
    for name in ("Hybrid", "delta"):
        model = model_by_name(name, learners_people.task)
        one, other = (fit(model, believe(choices)) for choices in (learners_people, moved))
        np.testing.assert_allclose(one.log_likelihood, other.log_likelihood, atol=1e-4)


def test_a_lead_that_a_floor_explains_is_no_evidence_for_composition():
    """Hybrid people of whom each now and then takes any arm: the composed model wins, as a floor alone would do."""
    lapsing = model_by_name("Hybrid+lapse", TASKS["2"], "probit")
    coef = np.column_stack([draw_people(GROUPS["2"]["Hybrid"], 16, 4) + np.array([1.5, 0.0]), np.full(16, 0.08)])
    choices = simulate_choices(TASKS["2"], lapsing, coef, seed=9)
    plan = plan_models(choices.task, "probit", models=("Hybrid", OURS))
    found = analyse(choices, plan=plan)
    assert found.ours.against_reference.pxp(OURS) > 0.95
    (line,) = [line for line in examine(choices, found, plan).warnings if "floor" in line]
    assert "Hybrid clipped to [.01, .99]" in line
    assert "no evidence for composition" in line
    steady = simulate_choices(TASKS["2"], classic("Hybrid"), coef[:, :2], seed=9)
    found = analyse(steady, plan=plan)
    assert not any("floor" in line for line in examine(steady, found, plan).warnings)


def test_quality_recovery_and_predictions_on_ones_own_task(learners_people):
    plan = plan_models(learners_people.task, "logit", models=("Value", "Hybrid", "delta", OURS), reference="delta",
                       primitives=("exploit", "repeat", "random"))  # fmt: skip
    found = analyse(learners_people, plan=plan)
    examined = examine(learners_people, found, plan)
    comparison = examined.comparison
    assert set(comparison.names) == {"Value", "Hybrid", "delta", OURS, CHANCE}
    assert CHANCE not in comparison.selected
    assert examined.chance_per_trial == pytest.approx(-np.log(3))
    assert comparison.difference("delta", "Hybrid").mean > 0
    assert examined.total("delta")["R2"] > 0.1
    for name in plan.everything:  # one meaning: mean nats per trial, of a person and of all
        by_hand = (examined.held_out[name] * examined.trials).sum() / examined.trials.sum()
        assert examined.total(name)["held_out"] == pytest.approx(by_hand, abs=1e-12)
    assert any("8 people are few" in line for line in examined.warnings)
    scores = {score.name: score for score in comparison.scores}

    def shifted(by):
        moved = [score if name == CHANCE else score._replace(each=score.each + by) for name, score in scores.items()]
        ranked = sorted(moved, key=lambda score: -score.held_out)
        return examined._replace(comparison=comparison._replace(scores=tuple(ranked)))

    best = comparison.scores[0].held_out + np.log(3)
    assert (
        "No model explains much" in _fit_warnings(shifted(0.049 - best))[0]
        or "not even" in _fit_warnings(shifted(0.049 - best))[0]
    )
    assert "better than chance" in _fit_warnings(shifted(-2.0))[0]
    judged = ("No model explains much", "not even", "better than chance")
    assert not any(words in line for words in judged for line in _fit_warnings(shifted(0.5)))
    again = recover(learners_people, plan, found.models)
    assert again.people.shape == (4, 4)
    np.testing.assert_allclose(again.people.sum(1), 1.0)
    rate = next(one for one in again.parameters if (one.model, one.name) == ("delta", "rate"))
    assert abs(rate.bias) < 0.25
    others = predict_others(plan, found.trials, folds=2, splits=1)
    assert (others.score > 2 * -np.log(3)).all()
    check = check_predictions(plan.everything, found.models, found.trials)
    assert np.abs(np.nanmean(check.expected[2] - check.observed, axis=0)).max() < 0.12
    assert fit_rivals(found.trials, "logit", 0.01, plan=plan).clipped.name.startswith("delta")


def test_models_of_one_family_share_their_programs_and_predict_as_the_policy(cohort):
    trials = cohort["2"]
    kinds = (classic("UCB"), classic("Thompson"), classic("Value", stickiness=True))
    given = [choice_likelihood(model, trials) for model in kinds]
    assert len({id(one.programs["both"]) for one in given}) == 1
    at, made = places_of(trials), (np.arange(len(trials.choice)), trials.choice)
    for model, one in zip(kinds, given, strict=True):
        z = np.linspace(0.1, 0.3, len(model.coefficients))
        coef = np.tile([natural(one.parameters, z)[name] for name in model.coefficients], (len(trials.choice), 1))
        found = pointwise(one, z)[at.block, at.place]
        np.testing.assert_allclose(found, log_proba(model, trials, coef)[made], atol=1e-12)


def test_held_out_beliefs_come_from_the_coefficients_without_the_fold():
    """One block, so that folds are stretches of it: earlier trials of other folds have the same learning rate."""
    task = Task("own data", (4.0,) * 2, 1.0)
    choices = cohort(task, "delta", (0.5, 1.5), 3, blocks=1, trials=40, seed=3)[0]
    plan = plan_models(task, "logit", models=("delta", OURS), primitives=("exploit", "repeat", "random"))
    found = analyse(choices, plan=plan)
    fold, trials = folds_of(found.trials), found.trials
    given, made = choice_likelihood(plan.models["delta"], trials), (np.arange(120), trials.choice)
    by_hand = np.zeros(120)
    for k in range(FOLDS):
        weight = np.where(places_of(trials).spread(fold) == k, 0.0, given.weight)
        z = estimate(given._replace(weight=weight), starts=found.models["delta"].z[None]).z
        coef = natural_rows(given, z)[np.unique(trials.subject, return_inverse=True)[1]]
        by_hand[fold == k] = log_proba(plan.ours, trials, coef)[made][fold == k]
    score = examine(choices, found, plan).comparison.score(OURS)
    np.testing.assert_allclose(score.each, by_hand, atol=1e-6)


def test_any_function_may_be_the_reference_and_arms_may_be_missing(learners_people, rng):
    offered = np.ones((len(learners_people.choice), 3), dtype=bool)
    other = (learners_people.choice + 1) % 3
    offered[np.arange(len(other)), other] = rng.random(len(other)) < 0.5
    trials = believe(learners_people._replace(offered=offered))
    model = composed(("exploit", "repeat"), lambda trials: 0.1 * trials.mean)
    found = fit(model, trials)
    prob = predict(model, found, trials)
    assert found.coef.shape == (8, 0)
    assert (prob[~offered] <= 1e-12).all()
    np.testing.assert_allclose(prob.sum(1), 1.0, atol=1e-9)
    fitted = fit(classic("Value", "logit"), trials)
    assert np.exp(log_proba(classic("Value", "logit"), trials, coefficients_of(fitted, trials)))[~offered].max() < 1e-12


@pytest.mark.parametrize(
    ("pxp", "bor", "said"),
    [
        ((0.97, 0.02, 0.01), 0.01, "Of the models compared, A is the most frequent"),
        ((0.60, 0.39, 0.01), 0.01, "Not excluded are A (0.600) and B (0.390)"),
        ((0.97, 0.02, 0.01), 0.3, "Nothing is established"),
    ],
)
def test_a_sentence_claims_what_holds(pxp, bor, said):
    none = np.zeros(3)
    selection = ModelSelection(none, none, none, np.array(pxp), bor, none)
    assert said in state(Selection(("A", "B", "C"), selection))


def test_models_that_nearly_agree_do_not_hide_that_others_are_far_behind(cohort):
    """Two copies of the best model: all together nothing is established, in pairs the simple model is excluded."""
    trials = cohort["2"]
    hybrid, value = fit(classic("Hybrid"), trials), fit(classic("Value"), trials)
    behind = value._replace(log_evidence=hybrid.log_evidence - 20.0)
    fits = {"Hybrid": hybrid, "Twin": hybrid, "Third": hybrid, OURS: hybrid, "Value": behind}
    assert _in_pairs(analyse_of(fits)).endswith("established against Value, but not against Twin, Third and Composed.")
    alone = analyse_of({"Hybrid": hybrid, OURS: behind})
    assert _in_pairs(alone) == ""


def analyse_of(fits):
    """Only what the sentence looks at."""
    return types.SimpleNamespace(models=fits, everything=compare_models(fits, tuple(fits)))


def test_an_arm_that_is_said_to_pay_nothing_and_pays_is_named():
    """--experiment 1 with the arms in the wrong order."""
    choices = synthetic("1", 12)
    assert not mismatches(choices)
    swapped = choices._replace(choice=1 - choices.choice)
    assert mismatches(swapped)
    found = examine(swapped, analyse(swapped), plan_models(swapped.task))
    assert "arm 2 always pays the same, and it paid" in found.warnings[0]
    assert "--arms" in found.warnings[0]


def test_games_and_rounds_are_blocks_and_trials():
    rows = "".join(
        f"P{s}\t{g}\t{r}\t{'FJ'[(r + g) % 2]}\t{r % 3}\n" for s in (1, 2) for g in (1, 2) for r in range(1, 8)
    )
    choices = parse_choices(("participant_id\tgame\tround\tpressed\tpoints\n" + rows).encode(), "mine.tsv")
    assert set(choices.block) == {1, 2}
    assert set(choices.trial) == set(range(1, 8))
    assert "Read round as trial." in choices.said
    twice = "participant_id\tgame\tround\tpressed\tpoints\n" + rows + rows.splitlines()[0] + "\n"
    with pytest.raises(ValueError, match="occur twice"):
        parse_choices(twice.encode(), "mine.tsv")


TABLES = {
    "tabs, other names, words": (
        "ppt\tresponse\toutcome\n" + "".join(f"p{s}\t{'LR'[t % 2]}\t{t % 3}\n" for s in (1, 2) for t in range(12)), {}),
    "semicolons and decimal commas": (
        "subjID;choice;reward\n" + "".join(f"{s};{t % 2};{t % 3},5\n" for s in (1, 2) for t in range(12)), {}),
    "gain and loss": (
        "subjID,choice,gain,loss\n" + "".join(f"{s},{1 + t % 2},{t % 3},-1\n" for s in (1, 2) for t in range(12)), {}),
    "blocks by trials that start again": (
        "id,trial,choice,reward\n"
        + "".join(f"{s},{1 + t % 6},{1 + t % 2},{t % 3}\n" for s in (1, 2) for t in range(12)), {}),
    "missed trials": (
        "id,choice,reward,rt\n" + "".join(f"{s},{'NA' if t == 5 else 1 + t % 2},{t % 3},{'' if t == 5 else 400}\n"
                                          for s in (1, 2) for t in range(13)), {}),
    "mapped": (
        "who,what,got\n" + "".join(f"{s},{1 + t % 2},{t % 3}\n" for s in (1, 2) for t in range(12)),
        {"columns": {"subject": "who", "choice": "what", "reward": "got"}}),
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_other_labs_are_read(kind):
    text, how = TABLES[kind]
    choices = parse_choices(text.encode(), "theirs.txt", how=Reading(**how))
    assert len(choices.choice) == 24
    assert set(choices.choice) == {0, 1}
    assert len(np.unique(choices.subject)) == 2
    assert choices.task.arms == 2


def test_a_sidecar_names_columns_units_and_arms(tmp_path):
    rows = "".join(f"{s}\t{'ab'[t % 2]}\t{t % 3}\t0.4\n" for s in (1, 2) for t in range(12))
    (tmp_path / "task.tsv").write_text("participant_id\tpick\tresult\tresponse_time\n" + rows)
    (tmp_path / "task.json").write_text(
        '{"pick": {"LongName": "choice", "Levels": {"b": "left", "a": "right"}}, "result": {"LongName": "reward"}, '
        '"response_time": {"Units": "s"}}'
    )
    choices = read_choices(tmp_path / "task.tsv")
    assert choices.arms == ("b", "a")
    assert choices.choice[0] == 1
    assert any("seconds" in line for line in choices.said)


def test_variances_may_follow_a_condition():
    text = "id,condition,choice,reward\n" + "".join(
        f"{s},{'RS' if s == 1 else 'SR'},{1 + t % 2},{t % 3}\n" for s in (1, 2) for t in range(12))  # fmt: skip
    task = Task("own", (4.0, 0.0), conditions=(Task("RS", (4.0, 0.0)), Task("SR", (0.0, 4.0))))
    trials = believe(parse_choices(text.encode(), "c.csv", task))
    np.testing.assert_array_equal(trials.variance[[0, 12]], [[4.0, 0.0], [0.0, 4.0]])
    with pytest.raises(ValueError, match="condition must be one of"):
        parse_choices(text.replace("SR", "XX").encode(), "c.csv", task)


# ------------------------------------------------------------------- hBayesDM's example data, where they are


def examples() -> Path | None:
    named = os.environ.get(EXAMPLES)
    spec = None if named else importlib.util.find_spec("hbayesdm")
    folder = Path(named) if named else Path(spec.origin).parent / "common" / "extdata" if spec and spec.origin else None
    return folder if folder is not None and folder.is_dir() else None


FILES = {"bandit2arm": (20, 2), "bandit4arm": (10, 4), "bandit4arm2": (10, 4), "prl": (20, 2), "prl_multipleB": (3, 2)}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.skipif(examples() is None, reason=f"hBayesDM is not installed, and {EXAMPLES} names no folder")
def test_hbayesdm_files_are_read_by_guessing_alone(name):
    choices = read_choices(examples() / f"{name}_exampleData.txt")
    people, arms = FILES[name]
    assert (len(np.unique(choices.subject)), choices.task.arms) == (people, arms)


@pytest.mark.parametrize(("name", "mean", "known"), [("prl_multipleB", 0.0, -417.9), ("bandit4arm2", 50.0, -3136.1),
                                                     ("bandit2arm", 0.0, -1252.1)])  # fmt: skip
@pytest.mark.skipif(examples() is None, reason=f"hBayesDM is not installed, and {EXAMPLES} names no folder")
def test_the_delta_rule_reaches_the_known_likelihoods(name, mean, known):
    choices = read_choices(examples() / f"{name}_exampleData.txt")
    choices = choices._replace(task=choices.task._replace(mean=mean))
    found = fit(model_by_name("delta", choices.task), believe(choices))
    assert found.log_likelihood.sum() == pytest.approx(known, abs=0.25)


def test_relearning_needs_rewards(cohort):
    with pytest.raises(ValueError, match="no rewards"):
        relearn(cohort["2"]._replace(reward=None), DeltaRule())
    with pytest.raises(ValueError, match="no parameter of the learner"):
        learner_of("delta", ("noise",))


# ------------------------------------------------------------------- groups, shrinkage, ArviZ, by the command


@pytest.fixture(scope="module")
def two_groups(tmp_path_factory):
    """Eight people who explore and eight who look at values only, in one table with a column for their group."""
    folder = tmp_path_factory.mktemp("groups")
    parts = []
    for k, (name, label) in enumerate((("Hybrid", "control"), ("Value", "patient"))):
        coef = draw_people(GROUPS["2"][name], 8, (5, k))
        table = as_table(simulate_choices(TASKS["2"], classic(name), coef, blocks=12, trials=10, seed=(6, k)))
        parts.append(table.assign(subject=[f"{label[0]}{s}" for s in table["subject"]], group=label))
    pd.concat(parts).to_csv(folder / "groups.csv", index=False)
    return folder


def test_groups_and_shrinkage_come_out_of_the_command(two_groups, monkeypatch, capsys):
    from policychord.cli import main

    args = ["choices", "fit", str(two_groups / "groups.csv"), "--experiment", "2", "--models", "Hybrid,Value,Composed"]
    more = ["--empirical-bayes", "--arviz", "Hybrid", "--effects", "group", "--out", str(two_groups / "out"), "--json"]
    monkeypatch.setattr(sys, "argv", ["policychord", *args, *more])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    record = json.loads(capsys.readouterr().out)
    notes = " ".join(record["notes"])
    az = pytest.importorskip("arviz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = az.from_netcdf(two_groups / "out" / "posterior.nc")  # as its users open files
        assert np.isfinite(az.loo(opened).elpd_loo)
        assert set(az.summary(opened, var_names=["RU"])["r_hat"].notna()) == {True}
    assert "Groups: control (8), patient (8)." in notes
    people = pd.read_csv(two_groups / "out" / "subjects.csv")
    assert people.groupby("group")["subject"].nunique().to_dict() == {"control": 8, "patient": 8}
    assert {"separated", "at_bound", "local"} <= set(people)
    effects = pd.read_csv(two_groups / "out" / "effects.csv").query("model == 'Hybrid'").set_index("coefficient")
    bonus = effects.query("contrast == 'patient - control'").loc["RU"]
    assert bonus["low"] < -0.16 < bonus["high"]  # patients have none
    assert bonus["detectable"] == pytest.approx(bonus["se"] * (2.1448 + 0.8681), rel=1e-3)  # t of 14
    summary = (two_groups / "out" / "summary.md").read_text(encoding="utf-8")
    assert "## What groups and conditions differ in" in summary
    assert "| V | patient | 8 |" in summary  # the means of the model that ranks first
    assert [row["people"] for row in record["results"]["attitudes"]["table"]][:2] == ["real", "no attitude"]
    shrunk = pd.read_csv(two_groups / "out" / "shrunk.csv").query("model == 'Hybrid'").set_index("subject")
    alone = pd.read_csv(two_groups / "out" / "subjects.csv").query("model == 'Hybrid'").set_index("subject")
    assert shrunk["converged"].all()
    for name in ("coef_V/TU", "coef_RU"):
        assert shrunk[name].std() < alone[name].std()  # drawn towards the group
        assert np.corrcoef(shrunk[name], alone.loc[shrunk.index, name])[0, 1] > 0.7
    assert (shrunk["log_likelihood"] <= alone.loc[shrunk.index, "log_likelihood"] + 1e-6).all()
    assert (shrunk["log_evidence"] < shrunk["log_likelihood"]).all()


def test_a_list_without_the_composed_model_is_compared_as_it_is(two_groups, monkeypatch, capsys):
    """No weights, no controls, no reference; the order of the names changes nothing."""
    from policychord.cli import main

    answers = []
    for names in ("Value,delta", "delta,Value"):
        out = two_groups / names
        args = ["choices", "fit", str(two_groups / "groups.csv"), "--experiment", "2", "--models", names]
        monkeypatch.setattr(sys, "argv", ["policychord", *args, "--out", str(out), "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (0, None)
        record = json.loads(capsys.readouterr().out)
        assert "controls" not in record["results"]
        assert not (out / "weights.csv").exists()
        answers.append({row["model"]: row for row in record["results"]["models"]})
        assert "Learners: " in " ".join(record["notes"])
    assert answers[0] == answers[1]
    assert set(answers[0]) == {"Value", "delta"}


def test_arviz_reads_the_draws_of_a_choice_model(cohort):
    """First trials, where nothing is known, have the same probability under all draws: `loo` takes it as it is."""
    az = pytest.importorskip("arviz")
    model, trials = classic("Hybrid"), cohort["2"]
    fitted = fit(model, trials)
    tree = posterior_tree(model, fitted, trials, draws=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary, loo = az.summary(tree), az.loo(tree, pointwise=True)
    assert summary.filter(like="V_per_TU", axis=0)["mean"].to_numpy() == pytest.approx(fitted.coef[:, 0], abs=0.5)
    assert loo.elpd_loo == pytest.approx(fitted.log_likelihood.sum(), abs=60)
    log_p = tree["log_likelihood"]["choice"].to_numpy().reshape(60, -1)
    still = np.ptp(log_p, axis=0) == 0
    first = trials.trial[trials.counts] == 1
    assert still[first].all()
    assert not still[~first].all()
    assert np.isinf(loo.pareto_k.to_numpy()[still]).all()  # no tail
    assert loo.loo_i.to_numpy()[still] == pytest.approx(np.log(0.5), abs=1e-12)
    exact = np.stack([log_proba(model, trials, one[np.searchsorted(fitted.subjects, trials.subject)])
                      for one in draw_coefficients(model, fitted, trials, 60)])  # fmt: skip
    chosen = exact[:, np.arange(len(trials.choice)), trials.choice][:, trials.counts]
    np.testing.assert_allclose(log_p, chosen, rtol=0, atol=1e-12)
