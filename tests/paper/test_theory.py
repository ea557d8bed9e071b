"""The theory study: every claim is measured, judged by its rule, and can fail; sentences follow the numbers."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pydantic
import pytest
from scipy.special import softmax

from policychord import circuit_stability, primitive_cost, problem, solve, time_scales
from policychord.drawing import styled
from policychord.runs import cache
from policychord_paper.claim import RELATIONS, judge_claim
from policychord_paper.reproduce import FINISH, Chosen, tasks_of
from policychord_paper.theory import circuits, flows, identities, limits, problems
from policychord_paper.theory.claims import CLAIMS, controls
from policychord_paper.theory.figures import FIGURES, LABELS, _errors
from policychord_paper.theory.flows import Paths, bounded_distances, bounded_gaps, decay_rate, within_horizon
from policychord_paper.theory.problems import TheorySettings
from policychord_paper.theory.report import STUDY, _findings

from ..cli.command import run
from . import lending
from .lending import STAND_INS, draw, lenders

SETTINGS = TheorySettings()
BY_ID = {claim.id: claim for claim in CLAIMS}
EXPECTED = dict.fromkeys(BY_ID, "reproduced") | dict.fromkeys(("T12", "T15", "T16", "T18", "T21", "T22"), "partly")
IN_PARTS = ("T12", "T15", "T16", "T18", "T20", "T21", "T22")
LEND = "from tests.paper.lending import lend; lend()"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The study as a user runs it, once for all tests: a folder, and what a program is told."""
    out = tmp_path_factory.mktemp("theory")
    told = run("reproduce", "theory", "--out", out, "--json", after=LEND)
    assert told.code == 0, told.err
    return out, json.loads(told.out)


@pytest.fixture(scope="module")
def evidence(done):
    files = tasks_of([Chosen(STUDY, SETTINGS)], lenders(), done[0])[0].files
    return STUDY.evidence(
        SETTINGS, {step: cache.load_result(path).value for step, path in files.items() if step != FINISH}
    )


def test_the_command_says_what_it_wrote(done):
    out, record = done
    claims = json.loads((out / "claims.json").read_text())
    assert record["command"] == "reproduce"
    assert record["results"] == claims
    assert {claim["id"]: claim["verdict"] for claim in claims} == EXPECTED
    assert {"report.html", "claims.json", "environment.json"} <= {Path(file).name for file in record["files"]}
    assert all(Path(file).is_file() for file in record["files"])
    assert not list(out.rglob("*.part"))


def test_the_command_does_nothing_twice(done):
    out, record = done
    again = run("reproduce", "theory", "--out", out, after=LEND)
    assert again.code == 0, again.err
    said = " ".join(again.out.split())
    for word in (*EXPECTED, "16 reproduced", "6 partly", "report.html", "steps from an earlier run"):
        assert word in said
    assert json.loads((out / "claims.json").read_text()) == record["results"]


def test_the_summary_follows_the_numbers(evidence):
    ladders = evidence.ladders
    study = min(ladders.eps, key=ladders.eps.__getitem__)
    row = f"| {study} | {ladders.eps[study]:g} | {ladders.unstable[study]} of {ladders.tried[study]} |"
    assert row in STUDY.summary(SETTINGS, evidence)
    assert "needs more than the stated order" in STUDY.summary(SETTINGS, evidence)
    calm = evidence._replace(ladders=ladders._replace(unstable=dict.fromkeys(ladders.unstable, 0)))
    assert "no recorded problem is unstable" in STUDY.summary(SETTINGS, calm)
    assert "Full support does not hold in" in STUDY.summary(SETTINGS, evidence._replace(support={"a study": 0.0}))
    assert "Full support" not in STUDY.summary(SETTINGS, evidence._replace(support={"a study": 0.1}))


def test_all_claims_are_there():
    assert list(BY_ID) == [f"T{k}" for k in range(1, 23)]
    assert all(claim.reported for claim in CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_claim(claim, evidence):
    judged = judge_claim(claim, SETTINGS, evidence)
    assert judged.verdict == EXPECTED[claim.id]
    assert judged.measured
    assert all(np.isfinite(q.value) for q in judged.measured.values())


# ------------------------------------------------------------------- every condition of every rule can fail


def with_weights(evidence, k, weights):
    """The first problem has other weights at moment k."""
    first, *others = evidence.paths
    changed = first.weights.copy()
    changed[0, k] = weights
    return evidence._replace(paths=[first._replace(weights=changed), *others])


def last_moment(paths):
    return int(np.flatnonzero(within_horizon(SETTINGS, paths))[-1])


def sum_off(evidence, x):
    return with_weights(evidence, 0, evidence.paths[0].weights[0, 0] * (1.0 + x))


def smallest_weight(evidence, x):
    return with_weights(evidence, 0, [x, 0.5, 0.5 - x])


def fewer_problems(evidence, x):
    keep = int(x) - sum(len(paths.weights) for paths in evidence.paths[1:])
    first, *others = evidence.paths
    return evidence._replace(paths=[first._replace(weights=first.weights[:keep]), *others])


def optimum_off(evidence, x):
    first, *others = evidence.judged_optima
    changed = first.copy()
    changed[0] = evidence.paths[0].weights[0, -1] + np.array([x, 0.0, 0.0])
    return evidence._replace(judged_optima=[changed, *others])


def energy_above_bound(evidence, x):
    first, *others = evidence.paths
    k, changed = last_moment(first), first.energy.copy()
    _, _, bound = bounded_gaps(SETTINGS, first)
    changed[0, k] = first.least[0] + bound[0, k] + x
    return evidence._replace(paths=[first._replace(energy=changed), *others])


def distance_above_bound(evidence, x):
    first = evidence.paths[0]
    k, away = last_moment(first), np.array([1.0, -1.0, 0.0]) / np.sqrt(2.0)
    _, _, bound = bounded_distances(SETTINGS, first)
    return with_weights(evidence, k, first.optimum[0] + (bound[0, k] + x) * away)


def certificate(side, sign):
    def alter(evidence, x):
        changed = getattr(evidence.certificates, side).copy()
        changed[0] = evidence.certificates.suboptimality[0] + sign * x
        return evidence._replace(certificates=evidence.certificates._replace(**{side: changed}))

    return alter


def identity(field):
    return lambda evidence, x: evidence._replace(identities=evidence.identities._replace(**{field: x}))


def end_of_circuit(study, field="furthest"):
    def alter(evidence, x):
        return evidence._replace(circuits=evidence.circuits | {study: evidence.circuits[study]._replace(**{field: x})})

    return alter


def other(field, name="congestion game"):
    def alter(evidence, x):
        return evidence._replace(others=evidence.others | {name: evidence.others[name]._replace(**{field: x})})

    return alter


def fewer_complexities(evidence, x):
    return evidence._replace(others=dict(list(evidence.others.items())[: int(x)]))


def start_far(evidence, x):
    first, *others = evidence.starts
    return evidence._replace(starts=[first._replace(distance=np.append(first.distance[1:], x)), *others])


def unit(field, study="bandit"):
    def alter(evidence, x):
        return evidence._replace(units=evidence.units | {study: evidence.units[study]._replace(**{field: x})})

    return alter


def with_ratio(evidence, x):
    return evidence._replace(ladders=evidence.ladders._replace(ratio=dict.fromkeys(evidence.ladders.ratio, x)))


# claim, quantity of the condition, what sets it to x, an x beyond the limit and one within it
CASES = [
    ("T1", "largest |sum - 1|", sum_off, 3e-12, 3e-13),
    ("T1", "smallest weight", smallest_weight, 0.0, 1e-300),
    ("T1", "problems", fewer_problems, 199, 200),
    ("T2", "largest |w - optimum|", optimum_off, 3e-8, 3e-9),
    ("T3", "largest |prox - softmax|", identity("prox"), 3e-6, 3e-7),
    ("T4", "largest relative error", identity("dissipation"), 3e-6, 3e-7),
    ("T5", "largest gap - bound", energy_above_bound, 3e-10, 3e-11),
    ("T6", "largest distance - bound", distance_above_bound, 3e-8, 3e-9),
    ("T7", "largest (V - V*) - eps KL(w,S)", certificate("above", -1), 3e-12, 3e-13),
    ("T7", "largest eps KL(w,w*) - (V - V*)", certificate("below", 1), 3e-12, 3e-13),
    ("T8", "gradient error", identity("gradient"), 3e-10, 3e-11),
    ("T8", "smallest eigenvalue", identity("smallest_eigenvalue"), -3e-10, -3e-11),
    ("T8", "largest eigenvalue / L_F", identity("largest_eigenvalue"), 1.0 + 3e-10, 1.0 + 3e-11),
    ("T9", "|w - uniform| at eps 1e4", identity("hot"), 3e-3, 3e-4),
    ("T9", "largest (F - min F)/(eps ln n) at eps 1e-4", identity("cold"), 1.01, 0.99),
    ("T9", "least F - min F at eps 1e-4", identity("least"), -3e-12, -3e-13),
    ("T10", "largest |w - S(w)|", identity("residual"), 3e-10, 3e-11),
    ("T10", "identical primitives, largest |w - prior|", identity("identical"), 3e-10, 3e-11),
    *(("T11", "largest |w - w*|", end_of_circuit(study), 3e-6, 3e-7) for study in STAND_INS),
    ("T11", "fewest problems of a study", end_of_circuit("flock", "problems"), 23, 24),
    ("T13", "largest |sum - 1|", other("sum_off"), 3e-12, 3e-13),
    ("T13", "smallest weight", other("smallest"), 0.0, 1e-300),
    ("T13", "largest |w - optimum|", other("end"), 3e-8, 3e-9),
    ("T13", "largest relative error of the dissipation", other("dissipation"), 3e-6, 3e-7),
    ("T13", "largest gap - bound", other("energy"), 3e-10, 3e-11),
    ("T13", "largest distance - bound", other("distance"), 3e-8, 3e-9),
    ("T13", "largest (V - V*) - eps KL(w,S)", other("above"), 3e-12, 3e-13),
    ("T13", "largest eps KL(w,w*) - (V - V*)", other("below"), 3e-12, 3e-13),
    ("T13", "complexities", fewer_complexities, 4, 5),
    ("T13", "fewest problems of a complexity", other("problems"), 39, 40),
    ("T14", "largest |w - w*| after 40 tau", start_far, 3e-6, 3e-7),
    ("T17", "largest |joint KL - (F + ln Z)|", identity("joint"), 3e-12, 3e-13),
    ("T19", "fast unit: largest |y - (ln prior - grad F/eps)|", unit("fast_end"), 3e-8, 3e-9),
    ("T19", "slow unit: largest |w - softmax(y)|", unit("slow_end"), 3e-8, 3e-9),
    ("T19", "fast unit: least rate", unit("fast_rate"), np.nan, 0.1),
    ("T19", "slow unit: least rate", unit("slow_rate"), -0.1, 0.1),
]


def test_fifty_random_starts_are_asked_for(evidence):
    few = judge_claim(BY_ID["T14"], TheorySettings(starts=49), evidence)
    assert (few.verdict, judge_claim(BY_ID["T14"], SETTINGS, evidence).verdict) == ("not reproduced", "reproduced")


@pytest.mark.parametrize(
    ("name", "part", "field", "good", "bad"),
    [
        ("T15", "at random weights", "corner", 9e-4, 1e-3),
        ("T15", "at the optimum", "at_vertex", 228, 227),
        ("T16", "ln prior in the range of Pi^T", "in_range", {"any": 9e-7}, {"any": 2e-6}),
        ("T16", "any prior", "any_prior", {"any": 9e-7}, {"any": 2e-6}),
    ],
)
def test_limits_are_judged_part_by_part(name, part, field, good, bad, evidence):
    def part_holds(value):
        limits = evidence.limits
        inside = field in limits.cooled._fields
        changed = {"cooled": limits.cooled._replace(**{field: value})} if inside else {field: value}
        return judge_claim(BY_ID[name], SETTINGS, evidence._replace(limits=limits._replace(**changed))).holds[part]

    assert (part_holds(good), part_holds(bad)) == (True, False)


def test_the_best_change_of_the_input_is_exact_where_it_can_be():
    """With fewer actions than primitives too, if ln prior lies in the range of Pi^T; elsewhere nothing is as near."""
    few = problems.pick(problems.random_problems(5, 30)[0], np.s_[:6])
    assert limits.move_prior(limits.with_prior_in_range(few, 5)) < 1e-9
    wanted = problems.exact(few)
    for pi, w in zip(few.pi, wanted, strict=True):
        x = limits._closest(pi, w)
        near = softmax(pi.T @ x)
        other = softmax(pi.T @ (x + np.random.default_rng(0).normal(scale=0.1, size=(50, 2))).T, axis=0)
        divergence = np.sum(w * np.log(w / near))
        assert divergence <= np.sum(w[:, None] * np.log(w[:, None] / other), axis=0).min() + 1e-12


def test_every_rule_rejects_its_nulls_and_accepts_its_alternatives(done):
    """And every part of a rule is rejected somewhere: a part that nothing fails is no condition."""
    for claim in done[1]["results"]:
        checks = claim["checks"]
        assert {check["expected"] for check in checks} == {"rejected", "accepted"}, claim["id"]
        assert all(check["holds"] for check in checks), claim["id"]
        nulls = [check["parts"] for check in checks if check["expected"] == "rejected"]
        assert all(any(not parts[name] for parts in nulls) for name in claim["holds"]), claim["id"]


def test_the_ordering_is_judged_by_the_ratio_that_it_needs(evidence):
    for ratio, verdict in ((10.0, "reproduced"), (10.1, "partly"), (100.0, "partly"), (101.0, "not reproduced")):
        assert judge_claim(BY_ID["T12"], SETTINGS, with_ratio(evidence, ratio)).verdict == verdict


def test_support_is_judged_study_by_study(evidence):
    assert evidence.support["bandit"] == 0.0
    assert judge_claim(BY_ID["T18"], SETTINGS, evidence).holds == {"flock": True, "bandit": False, "quadrotor": True}
    full, none = (evidence._replace(support=dict.fromkeys(evidence.support, p)) for p in (1e-200, 0.0))
    assert judge_claim(BY_ID["T18"], SETTINGS, full).verdict == "reproduced"
    assert judge_claim(BY_ID["T18"], SETTINGS, none).verdict == "not reproduced"


@pytest.mark.parametrize(("name", "quantity", "alter", "beyond", "within"), CASES)
def test_each_condition_decides_alone(name, quantity, alter, beyond, within, evidence):
    failed = judge_claim(BY_ID[name], SETTINGS, alter(evidence, beyond))
    (conditions,) = (part.conditions for part in BY_ID[name].rule.parts)
    broken = [c.quantity for c in conditions if not RELATIONS[c.relation](failed.measured[c.quantity].value, c.limit)]
    assert (failed.verdict, broken) == ("not reproduced", [quantity])
    assert judge_claim(BY_ID[name], SETTINGS, alter(evidence, within)).verdict == "reproduced"


def test_no_condition_is_left_out():
    stated = {(claim.id, c.quantity) for claim in CLAIMS for part in claim.rule.parts for c in part.conditions}
    others = {(name, c.quantity) for name in IN_PARTS for part in BY_ID[name].rule.parts for c in part.conditions}
    others.add(("T14", "random starts of a problem"))  # by the settings
    assert stated == {case[:2] for case in CASES} | others  # those with parts have tests of their own


def test_no_error_lies_beyond_the_axis(evidence):
    """T16 fails with fewer actions than primitives: its point was drawn, and cut off."""
    rows = _errors(SETTINGS, evidence)
    assert max(row.error for row in rows) > 0.1
    (ax,) = styled(FIGURES["agreement"].draw, SETTINGS, evidence).axes
    assert ax.get_xlim()[1] > max(row.error for row in rows)


# ------------------------------------------------------------------- experiments


def test_a_second_time_finds_the_same(evidence):
    """To the last bit in one process; between processes, whose threads add in another order, to rounding."""
    steps = STUDY.experiments(SETTINGS)
    assert steps["identities"]() == steps["identities"]()
    again = STUDY.on_recorded(SETTINGS)["oscillation"](lending.problems(None, {"draw": draw()}))
    assert again.study == evidence.oscillation.study
    for ours, theirs in zip(again[1:], evidence.oscillation[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_wrong_solver_would_be_caught(monkeypatch, evidence):
    """The verdicts depend on what is measured: with weights that are a little off, claims fail."""

    def slightly_wrong(problem, tol=1e-10, start=None):
        right = solve(problem, tol)
        return right._replace(weights=0.99 * right.weights + 0.01 / right.weights.shape[-1])

    for module in (problems, identities):
        monkeypatch.setattr(module, "solve", slightly_wrong)
    wrong = evidence._replace(
        identities=identities.check_identities(SETTINGS),
        certificates=flows.certify_weights(SETTINGS),
        paths=[p._replace(optimum=0.99 * p.optimum + 0.01 / p.optimum.shape[-1]) for p in evidence.paths],
        judged_optima=[0.99 * optima + 0.01 / optima.shape[-1] for optima in evidence.judged_optima],
    )
    for name in ("T2", "T6", "T7", "T9", "T10"):
        assert judge_claim(BY_ID[name], SETTINGS, wrong).verdict == "not reproduced", name


def test_the_judges_answers_are_optima_by_a_measure_that_needs_no_judge(evidence):
    """A quasi-Newton method in softmax coordinates stopped far away on cold problems, and nothing told."""
    assert max(one.judge for one in evidence.others.values()) < 1e-11
    for batch in problems.random_problems(1, 30):
        assert max(problems._minimise_energy(batch, i).residual for i in range(batch.eps.size)) < 1e-11


@pytest.mark.parametrize("name", identities.COMPLEXITIES)
def test_gradients_by_hand_are_those_of_the_functions(name):
    one, rng = identities.COMPLEXITIES[name], np.random.default_rng(0)
    given = jax.tree.map(lambda leaf: leaf[0], one.draw(rng, 1))
    w = rng.dirichlet(np.ones(identities.WEIGHTS))
    with jax.enable_x64(True):
        np.testing.assert_allclose(one.slope(w, given), jax.grad(one.value)(w, given), rtol=1e-12)


def test_a_complexity_that_is_not_convex_fails_the_theorem(monkeypatch):
    """Two wells: the flow ends in the nearer one, above the least energy."""
    bumpy = identities._Complexity(
        lambda w, p, xp=jnp: -4.0 * xp.sum(w**2) + p @ w,
        lambda w, p: -8.0 * w + p,
        lambda rng, n: rng.normal(size=(n, 4)),
    )
    monkeypatch.setattr(identities, "COMPLEXITIES", {"bumpy": bumpy})
    found = identities.check_others(TheorySettings(others=10))["bumpy"]
    assert max(found.energy, found.end, found.above) > 1e-3


def test_a_unit_whose_target_is_another_does_not_arrive():
    one = problems.pick(STAND_INS["bandit"](0, 3), 0)
    scales, held = time_scales(one.eps), np.array([0.2, 0.3, 0.5])
    target = np.asarray(one.log_prior - primitive_cost(one, held) / one.eps)
    right, short = (
        circuits._integrate_fast_unit(one, scales, held, target, span * float(scales.gradient / one.eps))
        for span in (40.0, 2.0)
    )
    assert right.distance[-1] < 1e-8 < short.distance[-1]


def test_in_the_stated_ordering_each_layer_is_faster_than_the_next_by_the_ratio():
    scales = np.array(circuits._geometric_ladder(7.0, tau=2.0))
    np.testing.assert_allclose(scales[1:] / scales[:-1], 7.0)
    assert scales[-1] == 2.0


def test_stated_ordering_fails_and_corrected_ordering_holds():
    batch = STAND_INS["bandit"](0, 50)
    assert not circuit_stability(batch, circuits._geometric_ladder(10.0)).stable.all()
    assert circuit_stability(batch).stable.all()
    settling = circuits.ratio_that_settles(batch)
    assert circuit_stability(batch, circuits._geometric_ladder(settling)).stable.all()


def test_the_independent_circuit_ends_where_the_solver_does(evidence):
    shown = evidence.oscillation
    np.testing.assert_allclose(shown.corrected[-1], shown.optimum, atol=1e-6)
    assert np.abs(shown.stated[-200:] - shown.optimum).max() > 0.01


def test_actions_of_probability_zero_change_nothing():
    small = problems.random_problems(1, 9)[0]
    padded = problems.join([small, problems.random_problems(1, 9)[1]])
    np.testing.assert_allclose(solve(padded).weights[:3], solve(small).weights, atol=1e-9)


def test_same_seed_same_problems():
    for a, b in zip(problems.random_problems(3, 9), problems.random_problems(3, 9), strict=True):
        np.testing.assert_array_equal(a.pi, b.pi)


def test_decay_rate_of_an_exponential():
    times = np.linspace(0, 20, 201)
    rates = decay_rate(times, np.exp(-np.array([[0.7], [2.0], [0.01]]) * times), 1e-2, 1e-5)
    np.testing.assert_allclose(rates[:2], [0.7, 2.0], rtol=1e-9)
    assert np.isnan(rates[2])


def test_bounds_fall_as_the_theorems_say():
    """exp(-t/tau) from the first gap for the energy; sqrt(2/eps gap) exp(-t/(2 tau)) for the weights."""
    times, gap = np.array([0.0, 1.0, 3.0]), np.array([[0.5, 0.4, 0.1]])
    one = problem(pi=[[[0.9, 0.2], [0.1, 0.8]]], action_cost=[[0.0, 1.0]], eps=[0.04])
    weights = np.array([[[0.6, 0.4], [0.55, 0.45], [0.5, 0.5]]])
    paths = Paths(one, times, weights, 2.0 + gap, np.array([[0.5, 0.5]]), np.array([2.0]), np.ones(1))
    _, series, bound = bounded_gaps(SETTINGS, paths)
    np.testing.assert_allclose(series, gap)
    np.testing.assert_allclose(bound, [0.5 * np.exp([0.0, -1.0, -3.0])])
    _, series, bound = bounded_distances(SETTINGS, paths)
    np.testing.assert_allclose(series, [[0.02**0.5, 0.005**0.5, 0.0]])
    np.testing.assert_allclose(bound, [5.0 * np.exp([0.0, -0.5, -1.5])])


# ------------------------------------------------------------------- figures


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, evidence, tmp_path):
    figure = styled(FIGURES[name].draw, SETTINGS, evidence)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_every_claim_has_a_figure_and_every_figure_a_caption():
    assert {name for figure in STUDY.figures.values() for name in figure.claims} == set(BY_ID)
    assert all(len(figure.caption) > 100 for figure in STUDY.figures.values())
    assert STUDY.title
    assert STUDY.introduction


def test_the_worst_number_of_a_claim_is_shown(evidence):
    rows = {row.id: row for row in _errors(SETTINGS, evidence)}
    assert list(rows) == list(LABELS)
    assert rows["T9"].allowed == 1e-3
    assert {row.id: row.error for row in _errors(SETTINGS, identity("hot")(evidence, 0.5))}["T9"] == 0.5


# ------------------------------------------------------------------- sentences


def finding(evidence, title):
    return {f.title: " ".join(f.text.split()) for f in _findings(SETTINGS, evidence)}[title]


def answer(evidence, name):
    return {c.name: c.answer for c in controls(SETTINGS, evidence)}[name]


def test_sentences_follow_the_numbers(evidence):
    ladders, variants, shown = evidence.ladders, evidence.variants, evidence.oscillation
    title = "The circuit's time scales"
    assert f"{ladders.unstable['bandit']} of 48" in finding(evidence, title)
    assert "does not come to rest" in finding(evidence, title)
    assert "has come to rest" in finding(evidence._replace(oscillation=shown._replace(stated=shown.corrected)), title)
    none = ladders._replace(unstable=dict.fromkeys(ladders.unstable, 0))
    assert "No counter-example" in finding(evidence._replace(ladders=none), title)

    calm = variants._replace(stuck=0, excess_default=variants.excess_strict)
    quiet = evidence._replace(variants=calm, limits=evidence.limits._replace(any_prior={"any": 0.0}))
    for name, usual, other in (
        ("The integrator", "No.", "Yes:"),
        ("A gate that is iterated", "Not always", "it does"),
    ):
        assert usual in answer(evidence, name)
        assert other in answer(quiet, name)
    assert "fails to settle" in finding(evidence, "Constants, steps and priors")
    assert "settled on all" in finding(quiet, "Constants, steps and priors")
    assert "had the same effect" in finding(quiet, "Constants, steps and priors")
    assert "n pi_max/pi_min holds" in finding(evidence, "Constants, steps and priors")
    bent = identity("largest_eigenvalue")(evidence, 1.5)
    assert "n pi_max/pi_min does not hold" in finding(bent, "Constants, steps and priors")
    assert "none of these" in answer(evidence, "Corrected time scales")
    failing = evidence._replace(ladders=ladders._replace(failures=7))
    assert "Not always: 7" in answer(failing, "Corrected time scales")


def test_a_path_beyond_the_bound_is_counted_by_the_rule_of_the_claim(evidence):
    excess = np.array([3e-10, 3e-11, 0.0])
    altered = evidence._replace(variants=evidence.variants._replace(excess_default=excess))
    measured = {c.name: c.measured for c in controls(SETTINGS, altered)}["The integrator"]
    found = measured["paths that exceed the bound, default tolerances"]
    assert (found.value, found.of) == (1, 3)


def test_rates_are_read_off_the_paths(evidence):
    title = "How fast the weights converge"
    assert "faster in the long run" in finding(evidence, title)
    slow = evidence._replace(paths=[p._replace(times=4.0 * p.times) for p in evidence.paths])
    assert "no faster than" in finding(slow, title)


def test_datasets_are_small_and_labelled(evidence):
    stored = STUDY.datasets(SETTINGS, evidence)
    assert sum(data.nbytes for data in stored.values()) < 5e6
    flow = stored["flow-12x3"]
    np.testing.assert_allclose(flow.weights.isel(time=-1), flow.optimum, atol=1e-8)
    assert stored["oscillation"].time.attrs["units"] == "tau"


def test_misspelt_setting_is_an_error():
    with pytest.raises(pydantic.ValidationError, match="problms"):
        TheorySettings(problms=10)


def test_a_unit_that_begins_at_its_target_has_no_rate_to_fit():
    """As in the first trial of a block, in which all primitives are alike: 0/0 is no evidence against the circuit."""
    pi = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.2], [0.1, 0.8]]])
    found = circuits.units(problem(pi=pi, action_cost=np.array([[0.0, 0.0], [0.0, 1.0]]), eps=0.1), seed=3)
    assert 0.9 < found.fast_rate < 1.1
    assert 0.9 < found.slow_rate < 1.1
    assert max(found.fast_end, found.slow_end) < 1e-8
