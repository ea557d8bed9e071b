"""The theory study: every claim is measured, judged by its rule, and can fail."""

import matplotlib.figure
import numpy as np
import pydantic
import pytest

from policychord import circuit_stability, solve
from policychord.studies.claim import Claim, judge
from policychord.studies.drawing import styled
from policychord.studies.theory import claims, problems
from policychord.studies.theory.claims import LEDGER
from policychord.studies.theory.figures import FIGURES
from policychord.studies.theory.settings import TheorySettings

SMALL = TheorySettings(problems=24, judged=6, circuits=2, stability_draws=200)
EXPECTED = {entry.id: "reproduced" for entry in LEDGER} | {"T12": "not reproduced"}


def test_ledger_is_complete():
    assert [entry.id for entry in LEDGER] == [f"T{k}" for k in range(1, 13)]
    assert TheorySettings().problems >= 200  # the rule of T1


@pytest.mark.parametrize("entry", LEDGER, ids=lambda e: e.id)
def test_claim(entry):
    claim = judge(entry, SMALL)
    assert isinstance(claim, Claim)
    assert claim.verdict == EXPECTED[entry.id]
    assert claim.measured
    assert all(np.isfinite(v) for v in claim.measured.values() if isinstance(v, float))


def test_a_wrong_solver_would_be_caught(monkeypatch):
    """The verdicts depend on what is measured: with weights that are a little off, claims fail."""

    def slightly_wrong(problem, tol=1e-10, start=None):
        right = solve(problem, tol)
        return right._replace(weights=0.99 * right.weights + 0.01 / right.weights.shape[-1])

    monkeypatch.setattr(claims, "solve", slightly_wrong)
    assert claims.prior_weighted_gate(SMALL).verdict == "not reproduced"
    assert claims.weights_converge(SMALL).verdict == "not reproduced"
    assert claims.gap_is_certified(SMALL).verdict == "not reproduced"


def test_stated_ordering_fails_and_corrected_ordering_holds():
    batch = problems.bandit_problems(0, 50)
    assert not circuit_stability(batch, claims.geometric_ladder(10.0)).stable.all()
    assert circuit_stability(batch).stable.all()


@pytest.mark.parametrize("draw_batch", problems.STUDIES.values(), ids=problems.STUDIES)
def test_study_problems_are_as_in_the_paper(draw_batch):
    batch = draw_batch(1, 5)
    shape = {"flock_problems": (648, 3), "bandit_problems": (2, 3), "quadrotor_problems": (900, 2)}
    assert batch.pi.shape[1:] == shape[draw_batch.__name__]
    assert solve(batch).converged.all()


def test_same_seed_same_problems():
    for a, b in zip(problems.random_problems(3, 9), problems.random_problems(3, 9), strict=True):
        np.testing.assert_array_equal(a.pi, b.pi)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, tmp_path):
    figure = styled(FIGURES[name], SMALL)
    assert isinstance(figure, matplotlib.figure.Figure)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_misspelt_setting_is_an_error():
    with pytest.raises(pydantic.ValidationError, match="problms"):
        TheorySettings(problms=10)
