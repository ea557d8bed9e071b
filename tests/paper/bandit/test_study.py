"""The study as a whole, on a small synthetic cohort: claims, labels, figures, data, and the commands."""

import os
import sys

import matplotlib.figure
import numpy as np
import pandas as pd
import pydantic
import pytest

from policychord import cli
from policychord.choices import fetch, figures
from policychord.choices.compare import OURS, analyse, weights_in_course
from policychord.choices.data import TASKS
from policychord.choices.fetch import VARIABLE
from policychord.choices.report import about_data, verdict, weight_table
from policychord.drawing import styled
from policychord_paper.bandit.claims import CLAIMS
from policychord_paper.bandit.experiments import BanditSettings, _choices_of, _stop_early, _trials_of, study_settings
from policychord_paper.bandit.figures import FIGURES
from policychord_paper.bandit.measures import lead_over_hybrid
from policychord_paper.bandit.report import STUDY
from policychord_paper.claim import judge_claim
from policychord_paper.reproduce import _chapter_of


def test_figures_and_claims_name_each_other():
    shown = {claim for figure in FIGURES.values() for claim in figure.claims}
    assert shown == {claim.id for claim in CLAIMS}
    assert all(len(figure.caption) > 100 for figure in FIGURES.values())
    assert study_settings(quick=True).splits == study_settings(quick=False).splits == 20  # the rule of B5


@pytest.mark.parametrize("setting", ["experiments", "links"])
def test_half_a_study_is_refused_before_the_work(setting):
    """The claims compare both experiments and both links: a run of one of them would fail after all of its work."""
    with pytest.raises(pydantic.ValidationError, match=setting):
        BanditSettings(**{setting: ("1",) if setting == "experiments" else ("logit",)})


def test_short_blocks_and_other_temperatures_are_judged(small):
    """Settings that used to fail after the work: a temperature that is not in the list, blocks of two trials."""
    told = small.model_copy(update={"eps": 0.02, "trials": 2, "blocks": 20, "splits": 1})
    found = STUDY.evidence(told, {name: step() for name, step in STUDY.experiments(told).items()})
    judged = {claim.id: judge_claim(claim, told, found) for claim in CLAIMS}
    assert found.first.probit.temperature.eps == (0.01, 0.02, 1.0)
    assert all(np.isfinite(it.value) for it in judged["B4"].measured.values())
    assert len(STUDY.findings(told, found)) > 5
    for figure in FIGURES.values():
        styled(figure.draw, told, found)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw_and_are_labelled(name, small, evidence):
    figure = styled(FIGURES[name].draw, small, evidence)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert any(word in figure.get_suptitle() for word in ("synthetic cohort", "simulated cohorts"))


def test_datasets_are_labelled(small, evidence):
    kept = STUDY.datasets(small, evidence)
    assert set(kept) == {f"experiment_{e}_{link}" for e in "12" for link in ("probit", "logit")} | {
        "recovery_1",
        "recovery_2",
    }
    assert kept["experiment_1_probit"].attrs["data"] == "synthetic cohort"
    assert kept["experiment_1_probit"].weights.dims == ("row", "primitive")


def test_course_is_mean_and_sd_over_people(small, evidence):
    fit = evidence.second.probit.fit
    course = weights_in_course(fit)
    at = (fit.trials.block == 2) & (fit.trials.trial == 3)
    row = np.flatnonzero(course.block == 2)[2]
    np.testing.assert_allclose(course.mean[row], fit.ours.composition.weights[at].mean(0))
    np.testing.assert_allclose(course.sd[row], fit.ours.composition.weights[at].std(0), atol=1e-9)


def test_real_data_are_used_and_labelled(data_folder):
    settings = BanditSettings(data=data_folder)
    assert _choices_of(settings, "1").source == "human data (Gershman 2018)"
    assert len(_choices_of(settings, "1").choice) == 8990


def test_a_chapter_has_everything(small, evidence, tmp_path):
    study = STUDY._replace(figures={"temperature": FIGURES["temperature"]})
    chapter = _chapter_of(study, small, evidence, tmp_path)
    assert len(chapter.claims) == 12
    assert (tmp_path / chapter.figures[0].png).is_file()
    assert (tmp_path / "data" / "bandit" / "experiment_2_logit.zarr").is_dir()
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]


def test_misspelt_setting_is_an_error():
    with pytest.raises(pydantic.ValidationError, match="splitz"):
        BanditSettings(splitz=3)


def test_summary_in_words(cohort, small):
    fit = analyse(_choices_of(small, "2"))
    text = f"{about_data(fit, ())} {verdict(fit)}"
    assert "synthetic" in text
    assert "PXP" in text
    table = weight_table(fit)
    assert (table["data"] == "synthetic cohort").all()
    np.testing.assert_allclose(table.filter(like="weight_").sum(axis=1), 1.0, atol=1e-9)
    for draw in (figures.comparison, figures.weights):
        assert "synthetic cohort" in styled(draw, fit).get_suptitle()


def command(monkeypatch, *words) -> int:
    monkeypatch.setattr(sys, "argv", ["policychord", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


def test_simulate_then_fit(tmp_path, monkeypatch, capsys):
    made = tmp_path / "made.csv"
    assert not command(monkeypatch, "choices", "simulate", made, "--subjects", 5, "--experiment", 1)
    assert not command(monkeypatch, "choices", "fit", made, "--experiment", 1, "--out", tmp_path / "out",
                       "--primitives", "exploit,uncertainty,risk,repeat")  # fmt: skip
    said = capsys.readouterr().out
    for word in ("Hybrid", "Composed", "BOR", "PXP", "Next:", "synthetic"):
        assert word in said
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "report.html", "results.json", "summary.md", "weights.csv", "subjects.csv", "models.csv", "attitudes.csv",
        "figures"}  # fmt: skip
    weights = pd.read_csv(tmp_path / "out" / "weights.csv")
    assert len(weights) == 5 * 200
    assert "weight_repeat" in weights
    for file in ("summary.md", "report.html"):
        assert "synthetic" in (tmp_path / "out" / file).read_text(encoding="utf-8")


def test_own_data_with_three_arms(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    rows = [(s, b, t, rng.integers(1, 4), rng.integers(-9, 9))
            for s in (1, 2) for b in (1, 2) for t in range(1, 9)]  # fmt: skip
    pd.DataFrame(rows, columns=["subject", "block", "trial", "choice", "reward"]).to_csv(
        tmp_path / "c.csv", index=False
    )
    words = ("choices", "fit", tmp_path / "c.csv", "--experiment", "custom", "--variance", "5,5,5")
    assert command(monkeypatch, *words, "--link", "probit", "--out", tmp_path / "no") == 2
    assert "logit" in capsys.readouterr().err
    assert not command(monkeypatch, *words, "--out", tmp_path / "out")
    assert "3 arms" in (tmp_path / "out" / "summary.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--experiment", "custom"], "two or more arms"),
        (["--experiment", "custom", "--variance", "1"], "two or more arms"),
        (["--experiment", "custom", "--variance", "1,x"], "write a number, one for each arm"),
        (["--experiment", "2", "--variance", "1,1"], "custom"),
        (["--experiment", "3"], "3"),
        (["--link", "cauchit"], "cauchit"),
        (["--primitives", "exploit,sing"], "'sing'"),
        (["--eps", "-1"], "eps"),
    ],
)
def test_bad_options_get_a_sentence(words, said, tmp_path, monkeypatch, capsys, table):
    (tmp_path / "c.csv").write_text("\n".join(",".join(map(str, row)) for row in table))
    assert command(monkeypatch, "choices", "fit", tmp_path / "c.csv", "--out", tmp_path / "out", *words) == 2
    words = capsys.readouterr().err.replace("\u2502", " ").split()  # the box breaks lines anywhere
    assert said in " ".join(words)
    assert not (tmp_path / "out").exists()


def test_tasks_are_those_of_the_paper():
    assert (TASKS["1"].variance, TASKS["2"].variance) == ((10.0, 0.0), (100.0, 100.0))
    assert TASKS["1"].noise == TASKS["2"].noise == 10.0
    assert (BanditSettings().eps, BanditSettings().blocks, BanditSettings().trials) == (0.01, 20, 10)


def test_a_flow_that_runs_long_ends_at_the_optimum_of_the_claims(small, evidence):
    """Stopped early its weights are elsewhere; at the end likelihood and PXP are those that the claims take."""
    found = _stop_early(_trials_of(small, "1"), small.eps, small.tau, (30.0, 0.5))
    assert found.durations == (0.5, 30.0)
    assert found.distance[0] > 0.1 > 1e-6 > found.distance[1]
    fit = evidence.first.probit.fit
    assert found.log_likelihood[1] == pytest.approx(fit.models[OURS].log_likelihood.sum(), abs=1e-5)
    assert found.pxp[1] == pytest.approx(lead_over_hybrid(evidence.first.probit), abs=1e-5)
    both = evidence._replace(**{e: getattr(evidence, e)._replace(stopped=found) for e in ("first", "second")})
    assert [c.name for c in STUDY.controls(small, both)][-1] == "Integration time"
    assert len(STUDY.controls(small, evidence)) == len(STUDY.controls(small, both)) - 1


def test_without_data_it_is_synthetic(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "data_folder", lambda: tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert STUDY.settings().source == "synthetic cohort"
    monkeypatch.setenv(VARIABLE, os.fspath(tmp_path))
    with pytest.raises(ValueError, match=VARIABLE):
        STUDY.settings()
