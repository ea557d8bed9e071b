"""Fitting composed agents: derivatives of the weights, recovery of a known agent, rivals, the tree, plans."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.attack import attack_fits

import policychord
from policychord import Composer, Cost, Gaussian, Grid, Problem, inference
from policychord.core.equilibrium import solve
from policychord.core.objective import problem
from policychord.inference import decisions, findings, likelihoods, optimise, parameters
from policychord.runs.fit import FitPlan, _design_of, _earlier, read_fit_plan, run_fit
from policychord.worlds import AbstractEnv, Box, Spaces, Step, Variable

D, N = 24, 3


def build(theta):
    """Three bumps over a line; the cost asks for a place that is seen."""
    place = jnp.linspace(-1.0, 1.0, D)

    def pose(seen, k):
        log_pi = jax.nn.log_softmax(-0.5 * ((place[:, None] - jnp.array([-0.6, 0.0, 0.6])) / theta["sd"]) ** 2, axis=0)
        cost = theta["scale"] * (place - seen[0]) ** 2
        return problem(log_pi=log_pi, action_cost=cost, eps=theta["eps"], prior=theta["prior"])

    return pose


LINE = inference.Family(
    "line", build,
    (inference.positive("eps", 0.5), inference.simplex("prior", ("a", "b", "c")), inference.positive("scale", 8.0),
     inference.positive("sd", 0.3)),
    ("eps", "prior"), features=lambda seen: seen,
)  # fmt: skip
TRUTH = {"eps": 0.4, "prior": [0.2, 0.5, 0.3], "scale": 8.0, "sd": 0.3}


def simulate(theta, count, seed):
    rng = np.random.default_rng(seed)
    seen = rng.uniform(-1, 1, size=(count, 1))
    agent = build({name: jnp.asarray(value) for name, value in theta.items()})
    given = jax.vmap(lambda one: agent(one, 0))(jnp.asarray(seen))
    prob = np.einsum("tdn,tn->td", given.pi, solve(given).weights)
    action = (np.cumsum(prob, axis=1) < rng.random((count, 1))).sum(axis=1)
    return inference.observations(seen, np.minimum(action, D - 1), subject=np.arange(count) // 50)


@pytest.fixture(scope="module")
def seen():
    return simulate(TRUTH, 600, 1)


@pytest.fixture(scope="module")
def found(seen):
    return policychord.fit(LINE, seen, starts=2)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_derivatives_of_the_weights_are_those_of_the_solver(n, rng):
    """Against differences, in all four arguments."""
    pi = rng.dirichlet(np.ones(12), size=n).T
    given = (
        jnp.asarray(pi),
        jnp.asarray(rng.normal(size=12)),
        jnp.asarray(0.3),
        jnp.asarray(np.log(np.full(n, 1 / n))),
    )
    towards = [rng.normal(size=a.shape) * 0.1 for a in given]
    towards[0] = pi * (towards[0] - (pi * towards[0]).sum(axis=0))
    _, change = jax.jvp(lambda *a: decisions.log_weights(Problem(*a))[0], given, tuple(map(jnp.asarray, towards)))
    h = 1e-4
    ahead, behind = (decisions.log_weights(Problem(*(a + s * h * t for a, t in zip(given, towards, strict=True))))[0]
                     for s in (1, -1))  # fmt: skip
    np.testing.assert_allclose(change, (ahead - behind) / (2 * h), rtol=1e-4, atol=1e-6)


def test_gradients_in_chunks_are_those_of_differences(seen):
    given = decisions.likelihood_of_setup(decisions.setup_of(LINE, seen, ("eps", "prior", "scale", "sd")))
    z = parameters.unconstrained(given.parameters, TRUTH)
    value, gradient = optimise.log_posterior(given, z)
    assert value == pytest.approx(likelihoods.pointwise(given, z).sum(), abs=1e-9)
    for j in range(len(z)):
        step = 1e-4 * np.eye(len(z))[j]
        slope = (likelihoods.pointwise(given, z + step).sum() - likelihoods.pointwise(given, z - step).sum()) / 2e-4
        assert gradient[j] == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_a_known_agent_is_recovered_with_certificates_and_rivals(found):
    low, high = found.intervals["eps"]
    assert low < TRUTH["eps"] < high
    assert np.all(np.abs(found.theta["prior"] - TRUTH["prior"]) < 3 * found.errors["prior"])
    assert found.gap.max() <= 1e-10
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-9)
    compared = found.comparison
    assert {"chance", "constant weights", "cheapest", "softmax gate", "composed with a lapse"} < set(compared.names)
    assert compared.score("chance").log_likelihood.sum() == pytest.approx(-600 * np.log(D), abs=1e-6)
    assert compared.difference("composed", "constant weights").call == "better"
    # the agent itself is the one that was fitted
    own = compared.score("composed")
    np.testing.assert_allclose(own.z[0], found.z, atol=1e-4)
    assert own.log_likelihood.sum() == pytest.approx(found.log_likelihood, abs=1e-6)
    assert own.bic.sum() == pytest.approx(found.bic, abs=1e-6)
    assert found.held_out == own.held_out < found.log_likelihood / 600
    assert "it is needed here" in inference.sentence_of(found)
    assert found.held_out_by == "subject"


def test_primitives_of_bare_problems_are_called_as_in_the_prior(found, seen):
    assert found.primitives == ("a", "b", "c")
    unnamed = LINE._replace(
        build=lambda theta: build({**theta, "prior": jnp.asarray(TRUTH["prior"])}),
        parameters=tuple(one for one in LINE.parameters if one.name != "prior"), free=("eps",),
    )  # fmt: skip
    setup = decisions.setup_of(unnamed, seen)
    assert setup.primitives == ("primitive 0", "primitive 1", "primitive 2")


def winding(theta):
    """How far the cost follows what is seen rises and falls with b: the likelihood of few decisions has two modes."""
    place, share = jnp.linspace(-1.0, 1.0, D), 0.1 * theta["b"] + 0.2 * jnp.sin(theta["b"])
    log_pi = jax.nn.log_softmax(-0.5 * ((place[:, None] - jnp.array([-0.6, 0.0, 0.6])) / 0.3) ** 2, axis=0)

    def pose(seen, k):
        return problem(log_pi=log_pi, action_cost=2.0 * (place - share * seen[0]) ** 2, eps=0.3, prior=jnp.ones(3) / 3)

    return pose


def test_a_fit_goes_on_from_a_mode_that_a_profile_finds():
    rng = np.random.default_rng(3)
    seen = rng.uniform(-1, 1, size=(40, 1))
    given = jax.vmap(lambda one: winding({"b": jnp.asarray(7.0)})(one, 0))(jnp.asarray(seen))
    prob = np.einsum("tdn,tn->td", given.pi, solve(given).weights)
    action = np.minimum((np.cumsum(prob, axis=1) < rng.random((40, 1))).sum(axis=1), D - 1)
    family = inference.Family("winding", winding, (inference.real("b", 2.1),))
    lower, found = (
        policychord.fit(family, inference.observations(seen, action), starts=1, compare=False, profiles=profiles)
        for profiles in (False, True)
    )
    assert lower.theta["b"] == pytest.approx(np.arccos(-0.5), abs=1e-3)
    assert found.log_likelihood > lower.log_likelihood + 1
    assert found.intervals["b"][0] < found.theta["b"] < found.intervals["b"][1]
    assert found.optimum.log_likelihood == pytest.approx(found.log_likelihood)


def test_actions_that_ignore_the_situation_are_said_to_need_no_gating(seen):
    # the temperature runs off to infinity here; runs ended on a plateau, or at a temperature that a problem refuses
    order = np.random.default_rng(0).permutation(len(seen.action))
    found = policychord.fit(LINE, seen._replace(action=np.asarray(seen.action)[order]), starts=1)
    sentence = inference.sentence_of(found)
    assert "constant weights do" in sentence or "it is not needed here" in sentence
    assert abs(found.comparison.difference("composed", "constant weights").mean) < 0.01
    np.testing.assert_allclose(found.theta["prior"], 1 / 3, atol=0.1)


@pytest.mark.parametrize(
    ("gain", "moved", "words"),
    [
        ((0.3, 0.01), 0.2, "it is needed here"),
        ((0.002, 0.0015), 0.2, "it is not needed here"),
        ((-0.3, 0.01), 0.2, "wrong model"),
        ((0.3, 0.01), 0.001, "is not gating"),
    ],
)
def test_the_sentence_follows_from_gain_and_movement(found, gain, moved, words):
    clusters, spread = np.arange(100), np.tile([1.0, -1.0], 50)
    means = {"composed": -1.0, "constant weights": -1.0 - gain[0], "chance": -3.0}
    scores = [
        found.comparison.score("composed")._replace(
            name=name, each=np.full(100, mean) + (name == "composed") * gain[1] * np.sqrt(99) * spread
        )
        for name, mean in means.items()
    ]
    compared = inference.Comparison(tuple(sorted(scores, key=lambda score: -score.held_out)), clusters, None)
    assert compared.difference("composed", "constant weights").error == pytest.approx(gain[1])
    weights = np.full((100, 2), 0.5) + moved * np.tile([[1.0, -1.0], [-1.0, 1.0]], (50, 1))
    assert words in inference.sentence_of(found._replace(comparison=compared, weights=weights, held_out_by="subject"))


def test_scale_and_temperature_are_told_to_be_hard_to_tell_apart(seen):
    known = inference.information(LINE, TRUTH, seen, free=("eps", "scale", "prior"))
    assert known.correlation[0, 1] > 0.8
    assert np.all(known.needed >= known.needed_alone * (1 - 1e-9))


def test_information_is_the_spread_of_scores(seen):
    """Without any action: the expected outer product of scores, here against simulated actions."""
    known = inference.information(LINE, TRUTH, seen, free=("eps", "scale"))
    many = simulate(TRUTH, 6000, 4)
    setup = decisions.setup_of(LINE, many, ("eps", "scale"), {"prior": TRUTH["prior"], "sd": 0.3})
    given = decisions.likelihood_of_setup(setup)
    slope = likelihoods.scores(given, parameters.unconstrained(given.parameters, {"eps": 0.4, "scale": 8.0})).gradient
    np.testing.assert_allclose(slope.T @ slope / len(slope), known.matrix, rtol=0.25)
    assert np.all(np.abs(slope.mean(axis=0)) < 4 * slope.std(axis=0) / np.sqrt(len(slope)))


def test_recovery_covers_the_truth():
    which = {"profiles": ("ln eps",), "tests": ("ln eps",)}
    known = inference.recover(LINE, TRUTH, simulate, 12, decisions=300, free=("eps",), starts=1, **which)
    wald, profiled = inference.coverage(known, "ln eps")
    # a test of the truth says whether the profile interval holds it
    inside = (known.profiled["ln eps"][:, 0] <= known.truth[0]) & (known.truth[0] <= known.profiled["ln eps"][:, 1])
    np.testing.assert_array_equal(known.deviance["ln eps"] <= 3.84, inside)
    assert profiled.share >= 0.75
    assert wald.low <= 0.95
    assert abs(known.bias[0]) < 3 * known.sd[0] / np.sqrt(12) + 0.05
    assert known.converged.all()


def test_everybody_is_shrunk_towards_the_group(seen):
    found = policychord.fit(LINE, seen, ("eps",), method="group", starts=1, compare=False, profiles=False)
    assert found.group.z.shape == (12, 1)
    assert np.ptp(found.group.z) < 3.0
    assert found.held_out_by == "time"
    tree = inference.to_datatree(found, draws=8)
    assert tree["posterior"]["eps_person"].dims == ("chain", "draw", "person")
    # decisions are scored under everybody's own draws, not under the group's mean
    assert float(tree["log_likelihood"]["action"].mean(("chain", "draw")).sum()) < found.log_likelihood
    assert [row["person"] for row in findings.person_rows(found)] == list(range(12))
    assert inference.draw_people(found).get_axes()
    assert "mean of 12 people" in inference.describe(found)


def stop_at(words):
    """Progress that presses Ctrl-C at the first step with these words."""

    def progress(what, done, total):
        if what.startswith(words):
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    ("stage", "note"),
    [
        ("optimising with all data", "the optimisation"),
        ("profiles", "the profiles"),
        ("comparing: constant", "2 of 9 models are done"),
    ],
)
def test_ctrl_c_gives_the_best_so_far_and_the_fit_goes_on_from_there(seen, stage, note):
    found = policychord.fit(LINE, seen, ("eps",), starts=2, progress=stop_at(stage))
    assert not found.complete
    assert note in found.notes[0]
    assert np.isfinite(found.log_likelihood)
    assert found.weights.shape == (600, 3)
    assert found.notes[0] in inference.describe(found)
    again = policychord.fit(LINE, seen, ("eps",), resume=found.optimum, compare=False, profiles=False)
    assert again.complete
    assert again.log_likelihood >= found.log_likelihood - 1e-9
    assert again.optimum.converged


@pytest.mark.parametrize("call", range(1, 5))
def test_ctrl_c_is_not_lost_in_a_step_of_something_longer(seen, monkeypatch, call):
    """`maximise` answers Ctrl-C with the best so far; a comparison must not take that for an estimate."""
    given = inference.likelihood_of(policychord.fit(LINE, seen, ("eps",), starts=1, compare=False, profiles=False))
    data, fold = inference.Data(given.data, seen.subject, seen.block), np.arange(600) % 2
    calls, real = [], inference.optimise.by_group

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(inference.optimise, "by_group", interrupted)
    for partial in (False, True):  # nothing is there of the first model, so nothing partial either
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            inference.compare([given.model], data, fold=fold, method="ml", partial=partial)
    calls.clear()
    assert not inference.maximise(given, starts=1).complete


def test_a_decision_that_is_not_finite_is_named(seen):
    broken = seen.observation.copy()
    broken[7] = np.nan
    with pytest.raises(ValueError, match=r"decision 7 .* observation of it is not finite"):
        policychord.fit(LINE, seen._replace(observation=broken), ("eps",), starts=1)


def test_arviz_reads_the_tree(found):
    az = pytest.importorskip("arviz")
    tree = inference.to_datatree(found, draws=40)
    assert {"posterior", "log_likelihood", "observed_data", "constant_data", "estimates", "gating"} <= set(
        tree.children
    )
    read = az.InferenceData.from_datatree(tree) if hasattr(az.InferenceData, "from_datatree") else tree
    summary = az.summary(read, var_names=["eps"])
    assert summary.loc["eps", "mean"] == pytest.approx(float(found.theta["eps"]), abs=0.2)
    loo = az.loo(read)
    assert loo.elpd_loo == pytest.approx(found.log_likelihood, abs=15)


def test_actions_off_the_grid_are_densities():
    """A mixture on a grid, and an action between its points: the Gaussian's own density counts."""
    spots = {name: Gaussian(jnp.array([m]), 0.2) for name, m in (("left", -0.5), ("right", 0.5))}

    def agent(theta):
        cost = Cost(lambda seen, action, k: theta["scale"] * (action[0] - seen[0]) ** 2)
        return Composer(spots, cost, Grid([-2.0], [2.0], 81), 0.5)

    rng = np.random.default_rng(0)
    side = rng.choice([-0.5, 0.5], size=(40, 1))
    action = side + 0.2 * rng.normal(size=(40, 1))
    given = inference.observations(0.4 * side, action)
    found = policychord.fit(agent, given, [inference.positive("scale", 1.0)], starts=1, compare=False, profiles=False)
    at = -0.5 * ((action - np.array([-0.5, 0.5])) / 0.2) ** 2 - np.log(0.2) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(found.pointwise, np.log((np.exp(at) * found.weights).sum(1)), atol=1e-9)


def test_words_and_figures_are_made_from_the_fit(found):
    text = inference.describe(found)
    assert inference.sentence_of(found) in text
    assert "| eps |" in text
    for draw in (inference.draw_estimates, inference.draw_weights):
        assert draw(found).get_axes()


class Clock(NamedTuple):
    time: jax.Array  # what a dataset calls one of its dims
    place: jax.Array


class Path(AbstractEnv):
    """A place that moves by the action, and is over beyond 1."""

    variables: ClassVar[Mapping[str, Variable]] = {"time": Variable(), "place": Variable((), "m")}

    def reset(self, key):
        return Clock(jnp.zeros((), int), jax.random.normal(key, dtype=float))

    def step(self, key, state, action, k):
        place = state.place + action[0]
        return Step(Clock(state.time + 1, place), 0.0 * place, jnp.abs(place) > 1)

    def observe(self, state):
        return {"place": state.place, "none": jnp.zeros((0, 2))}

    def signals(self, state):
        return state.place[None]

    def spaces(self):
        return Spaces(Box(np.array([-9.0]), np.array([9.0])), Box(np.array([-2.0]), np.array([2.0])))


def test_a_dataset_gives_the_decisions_of_its_trace():
    """Also of a state with a field called `time`, and of an observation without entries: both failed once."""
    ways = {"left": Gaussian([-0.3], 0.3), "right": Gaussian([0.3], 0.3)}
    agent = Composer(ways, Cost(lambda seen, u, k: (seen["place"] + u[0]) ** 2), Grid(-2.0, 2.0, 11), 0.1)
    trace = policychord.rollout(agent, Path(), steps=4, episodes=3, seed=0)
    first = inference.from_trace(trace, Path())
    second = inference.from_dataset(policychord.to_dataset(trace), Path())
    assert first.size == int(np.asarray(trace.alive).sum())
    jax.tree_util.tree_map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda seen: policychord.fit(LINE, seen, ("temperature",)), "does not declare"),
        (lambda seen: policychord.fit(LINE, seen, ("eps",), {"eps": 1.0}), "both free and fixed"),
        (lambda seen: policychord.fit(3, seen), "a function of theta"),
        (lambda seen: policychord.fit(LINE, seen, method="all"), "method = 'all'"),
        (lambda seen: policychord.fit(LINE, seen.action), "from_trace"),
        (lambda seen: policychord.fit(LINE, seen, ("eps",), {"scale": np.nan}), "a finite number"),
        (lambda seen: policychord.fit(LINE, seen, hold_out="trial"), "hold_out = 'trial'"),
        (lambda seen: policychord.fit(LINE, seen, method="group", hold_out="subject"), "own decisions"),
        (lambda seen: policychord.fit(LINE, seen, method="group", hold_out="block"), "one block only"),
        (lambda seen: policychord.fit(LINE, seen, method="map"), "has no prior"),
        (lambda seen: inference.recover(LINE, {"eps": 1.0}, simulate, 2), "theta has no prior"),
        (
            lambda seen: inference.needed_for(
                inference.Information(("x",), np.ones(1), np.eye(1), np.eye(1), False), 0.0
            ),
            "positive",
        ),
        (lambda seen: policychord.fit(LINE, seen._replace(action=-1 - seen.action)), "an index from 0"),
        (lambda seen: inference.observations(seen.observation[:5], seen.action), "a row for each decision"),
    ],
)
def test_wrong_requests_are_named(seen, call, words):
    with pytest.raises(ValueError, match=words):
        call(seen)


def test_plans_name_what_is_wrong_and_never_import_by_themselves(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('family = "bandit"\n')
    with pytest.raises(ValueError, match="either data"):
        read_fit_plan(plan)
    plan.write_text('family = "python"\n[simulate]\ndecisions = 100\n')
    with pytest.raises(ValueError, match="belong together"):
        _design_of(read_fit_plan(plan), None)
    with pytest.raises(ValueError, match="could not be imported"):
        _design_of(read_fit_plan(plan), "no_such_module_here:design")
    plan.write_text('family = "bandit"\nbogus = 1\n[simulate]\n')
    with pytest.raises(ValueError, match="bogus"):
        read_fit_plan(plan)
    plan.write_text('family = "bandit"\n[simulate]\n[prior]\neps = {mean = 0, sd = 1}\n')
    with pytest.raises(ValueError, match="method = 'map' only"):
        read_fit_plan(plan)
    for text, words in (('free = ["epsilon"]\n[simulate]', "'epsilon'"), ("[simulate]\ntheta = {epz = 1.0}", "has epz"),
                        ("[simulate]\ndecisions = 20\n[recover]\nprofiles = ['eps']", "ln eps|coef"),
                        ('method = "map"\n[simulate]\n[prior]\nepz = {mean = 0, sd = 1}', "prior.epz")):  # fmt: skip
        plan.write_text(f'family = "bandit"\n{text}\n')
        with pytest.raises(ValueError, match=words):
            run_fit(read_fit_plan(plan), tmp_path / "out", stop_at("optimising"))
    assert not (tmp_path / "out").exists()


def design():
    """The line as a plan's own family."""
    return inference.Design(LINE, simulate)


def test_a_plan_writes_its_page_also_if_it_is_interrupted(tmp_path):
    path, out = tmp_path / "plan.toml", tmp_path / "out"
    path.write_text('family = "python"\nfree = ["eps"]\nstarts = 2\ndraws = 4\n[simulate]\ndecisions = 200\ntheta = '
                    "{eps = 0.4, prior = [0.2, 0.5, 0.3], scale = 8.0, sd = 0.3}\n")  # fmt: skip
    plan = read_fit_plan(path)
    found = run_fit(plan, out, stop_at("comparing: a alone"), entry="tests.inference.test_decisions:design")
    names = {"report.html", "summary.md", "results.json", "fit.zarr", "models.svg"}
    assert {file.name for file in found.files} >= names
    page = (out / "report.html").read_text()
    assert "Interrupted during the comparison" in page
    assert "State-dependent gating" in page or "weights hardly move" in page
    before = _earlier(plan, out / "results.json", 1)
    np.testing.assert_array_equal(before.z, found.fit.optimum.z)
    for other, words in ((plan.model_copy(update={"starts": 3}), "another plan"), (plan, "another shape")):
        with pytest.raises(ValueError, match=words):
            _earlier(other, out / "results.json", 2)
    with pytest.raises(ValueError, match="there is no"):
        _earlier(plan, out / "nothing.json", 1)


@pytest.mark.parametrize(
    ("family", "options", "said"),
    [
        ("flock", {"boids": 0}, "boids = 0: must be at least 2"),
        ("flock", {"boids": 10**9}, "boids = 1000000000: must be at most 1000"),
        ("bandit", {"variance": [4.0]}, "variance.1"),
        ("bandit", {"variance": 7.0}, "variance = 7: must be a list"),
        ("bandit", {"variance": [1.0, float("inf")]}, "variance.1 = inf"),
        ("bandit", {"trials": 0}, "trials = 0: must be at least 1"),
        ("quadrotor", {"points": 10**9}, "points = 1000000000: must be at most 300"),
        ("quadrotor", {"grid": 3}, "Its options: points"),
    ],
)
def test_options_of_a_family_are_looked_at_before_anything_is_made(family, options, said):
    plan = FitPlan.model_validate({"family": family, "options": options, "simulate": {}})
    with pytest.raises(ValueError, match=r"^options: [^\n]+$") as refused:
        _design_of(plan, None)
    assert said in str(refused.value)


def test_whatever_is_wrong_with_a_plan_of_a_fit_is_a_sentence():
    found = attack_fits(100, seed=1)
    assert found.broken == []
    assert 50 < found.refused < 100
