"""The verdict: its models, its surrogates, its calls; and tracks that must not deceive it."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.inference import Difference, likelihood
from policychord.tracks import explained, hidden, rivals
from policychord.tracks.arena import find_arena, inward
from policychord.tracks.decisions import decide
from policychord.tracks.explained import Judged, Rank, power_of, sentence_of, weights_of
from policychord.tracks.forces import ForceSettings
from policychord.tracks.kinds import KINDS, simulate_kind
from policychord.tracks.motion import Smoothing, move
from policychord.tracks.nested import at, search
from policychord.tracks.quality import suspect
from policychord.tracks.rivals import MIXTURE, SOFT_MIXTURE, SOFT_SUM, SUM, log_prob_of, models_of, names_of, units_of
from policychord.tracks.situations import situations_of
from policychord.tracks.surrogates import exchanged, rotated
from policychord.tracks.verdict import call_of, judge


@pytest.fixture(scope="module")
def school():
    """A short group with all that is made of it."""
    motion = move(simulate_kind("sum", seed=1, individuals=5, seconds=12))
    given = decide(motion)
    situations = situations_of(motion, given)
    return motion, given, situations, names_of(situations), units_of(situations)


def some_theta(names, name, seed=0):
    rng = np.random.default_rng(seed)
    parameters = models_of(names)[name].parameters
    from policychord.inference.parameters import natural, size

    return natural(parameters, jnp.asarray(0.4 * rng.normal(size=size(parameters))))


# ------------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("name", [SUM, SOFT_MIXTURE])
def test_a_model_is_a_density_of_the_change(school, name):
    *_, names, units = school
    theta = {**some_theta(names, name), "tail": 12.0}
    unit = {key: jnp.asarray(values[7]) for key, values in units.items()}
    axis = np.linspace(-40, 40, 241)
    grid = jnp.asarray(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2))
    log_p = jax.vmap(lambda change: log_prob_of(name, names, theta, {**unit, "change": change}))(grid)
    assert float(jnp.exp(log_p).sum()) * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("constant", "gate"), [(SUM, SOFT_SUM), (MIXTURE, SOFT_MIXTURE)])
def test_a_gate_without_effect_is_constant_weights(school, constant, gate):
    *_, names, units = school
    theta = some_theta(names, gate)
    flat = {**theta, "gate": jnp.zeros_like(theta["gate"])}
    unit = {key: jnp.asarray(values[3]) for key, values in units.items()}
    assert log_prob_of(gate, names, flat, unit) == pytest.approx(float(log_prob_of(constant, names, flat, unit)))
    assert abs(float(log_prob_of(gate, names, theta, unit) - log_prob_of(constant, names, theta, unit))) > 1e-6


def test_slopes_have_the_names_and_signs_of_a_hand_made_example(school):
    """Changes that are written down, not simulated: each force must come out under its own name."""
    *_, names, units = school
    wanted = {"separation": -1.5, "alignment": 0.7, "cohesion": 2.0}
    assert names.social == tuple(wanted)
    noise = 0.3 * np.random.default_rng(0).standard_t(8, size=units["change"].shape)
    change = np.einsum("a,nak->nk", list(wanted.values()), units["force"]) + noise
    plain = names._replace(shapes=(), of=())
    model = models_of(plain)[SUM]
    data = {name: values for name, values in units.items() if name != "shape"} | {"change": change}
    found = search(model, data, [at(model, {})])
    rows = {row[0]: row[1:] for row in explained.estimates_of(found, np.arange(len(change)) // 20)}
    for name, slope in wanted.items():
        estimate, error, robust = rows[f"slope: {name}"]
        assert abs(estimate - slope) < 4 * max(error, robust)
        assert np.sign(estimate) == np.sign(slope)


def test_shapes_half_a_step_later_and_by_angle_are_those_of_plain_loops(school):
    motion, given, situations, *_ = school
    trial, radius = motion.trials[0], given.layout.zones.separation
    later = situations.shape[:, situations.shapes.index("separation half a step later")]
    angle = situations.shape[:, situations.shapes.index("alignment by angle")]
    seen = 0
    for row in range(0, given.size, 7):
        frame, i = given.frame[row], given.individual[row]
        place = trial.position[frame] + 0.5 * given.layout.every * trial.velocity[frame]
        push = np.zeros(2)
        for j in range(len(place)):
            apart = place[j] - place[i]
            length = np.hypot(*apart)
            if j != i and length < radius:
                push -= (1 - length / radius) * apart / length
        heading = given.velocity[row] / np.hypot(*given.velocity[row])
        left = np.array([-heading[1], heading[0]])
        seen += bool(push.any())
        push = push / np.hypot(*push) if push.any() else push
        np.testing.assert_allclose(later[row], [push @ heading, push @ left], atol=1e-9)
        mean = situations.force[row, situations.social.index("alignment")]
        np.testing.assert_allclose(angle[row], [0.0, np.arctan2(mean[1], mean[0])], atol=1e-12)
    assert seen > 3


def test_alignment_holds_no_drag_that_a_gate_could_use(school):
    """In body coordinates the own heading is ahead: what is left of alignment is where the others head."""
    motion, given, situations, names, _ = school
    column = names.social.index("alignment")
    raw = given.seen.force[:, given.names.index("alignment")]
    moved = np.any(raw != 0, axis=1)
    np.testing.assert_allclose(situations.force[moved, column] - raw[moved], [[1.0, 0.0]] * moved.sum())
    assert motion.rate == 20


def test_the_forward_algorithm_sums_over_all_paths(school):
    """Three moments of two decisions: all eight paths of states, one by one."""
    *_, names, units = school
    trial, frame = np.zeros(6, int), np.repeat([0, 5, 10], 2)
    model = models_of(names)[SUM]
    six = {key: values[:6] for key, values in units.items()}
    constant = search(model, six, [at(model, {})], near=10.0)
    own = hidden._parameters(names, SUM, True)
    state = {"shift": np.array([0.1, 0.2, -0.1]), "change": np.array([1.0, -0.5, 0.3]), "louder": 0.2,
             "faster": np.array([0.1, -0.2]), "stay": np.array([1.0, 0.5])}  # fmt: skip
    z = hidden.unconstrained(own, state)
    found = hidden.find_hidden(constant, names, trial, frame, True, z)
    each = found.estimator.predict(np.concatenate([constant.z, z]))
    theta = {name: jnp.asarray(value) for name, value in constant.theta.items()}
    log_p = np.stack([
        [float(log_prob_of(SUM, names, hidden._theta_of(SUM, theta, state, side),
                           {key: jnp.asarray(values[row]) for key, values in six.items()})) for row in range(6)]
        for side in (-1.0, 1.0)
    ])  # fmt: skip
    stay = 1 / (1 + np.exp(-state["stay"]))
    move_on = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
    usual = np.array([1 - stay[1], 1 - stay[0]]) / (2 - stay.sum())
    total = sum(
        usual[path[0]] * move_on[path[0], path[1]] * move_on[path[1], path[2]]
        * np.exp(sum(log_p[path[moment], 2 * moment : 2 * moment + 2].sum() for moment in range(3)))
        for path in itertools.product(range(2), repeat=3)
    )  # fmt: skip
    assert each.sum() == pytest.approx(np.log(total))


def test_weights_of_a_gating_problem_are_certified(school):
    *_, names, units = school
    model = models_of(names)[rivals.GATED]
    few = {key: values[:40] for key, values in units.items()}
    z = at(model, {"eps": np.array(0.5), "gain": np.array([1.0, 2.0, 1.0])})
    constant = search(models_of(names)[MIXTURE], few, [at(models_of(names)[MIXTURE], {})], near=10.0)
    some, weights, gap = weights_of(constant._replace(model=model, z=z), names)
    assert some == ("separation", "alignment", "cohesion", "none")
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert gap.max() < 1e-8
    assert weights.std(axis=0).max() > 0.01


def test_power_grows_with_the_number_of_decisions(school):
    _, _, situations, names, units = school
    model = models_of(names)[SUM]
    found = search(model, units, [at(model, {})])
    one = power_of(found, situations)
    twice = {key: np.concatenate([values, values]) for key, values in units.items()}
    more = power_of(found._replace(given=likelihood(model, twice, at_once=256)), situations._replace(
        feature=np.concatenate([situations.feature, situations.feature])))  # fmt: skip
    for name, value in one.items():
        assert more[name] == pytest.approx(value / np.sqrt(2), rel=1e-6)


# ------------------------------------------------------------------------------------------------- surrogates


def test_a_surrogate_keeps_everybodys_own_motion_and_exchanges_company(school):
    _, given, situations, _, units = school
    other = exchanged(given, units, situations, np.random.default_rng(0))
    for name in ("change", "before", "speed"):
        np.testing.assert_array_equal(other[name], units[name])
    moved = np.any(other["force"] != units["force"], axis=(1, 2))
    assert moved.mean() > 0.9
    speed = situations.features.index("speed")
    np.testing.assert_array_equal(other["feature"][:, speed], units["feature"][:, speed])
    drag = situations.own_terms.index("drag")
    np.testing.assert_array_equal(other["own"][:, drag], units["own"][:, drag])


def test_rotated_tracks_keep_their_changes_and_their_walls():
    motion = move(simulate_kind("dish", seed=2, individuals=6, seconds=60))
    arena = find_arena(motion)
    assert len(arena) == 3
    assert arena[2] == pytest.approx(4.8, abs=0.5)
    given = decide(motion)
    units = units_of(situations_of(motion, given, arena))
    other = rotated(motion, given, ForceSettings(), arena, np.random.default_rng(0))
    np.testing.assert_allclose(other["change"], units["change"], atol=1e-9)
    wall = situations_of(motion, given, arena).own_terms.index("wall 6")
    np.testing.assert_allclose(other["own"][:, wall], units["own"][:, wall], atol=1e-9)
    assert np.any(np.abs(other["force"] - units["force"]) > 0.1)


def test_no_arena_is_found_where_there_is_none():
    for kind in ("walkers", "sum"):
        assert find_arena(move(simulate_kind(kind, seed=1, individuals=6, seconds=30))) == ()
    share, away = inward((0.0, 0.0, 10.0, 4.0), np.array([[5.0, 2.0], [5.0, 3.5]]))
    np.testing.assert_allclose(share, [0.0, 0.75])
    np.testing.assert_allclose(away[1], [0.0, -1.0])


# ------------------------------------------------------------------------------------------------- quality


def test_exchanged_identities_are_jumps_and_nobody_decides_across_them():
    tracks = simulate_kind("sum", seed=4, individuals=5, seconds=10)
    trial = tracks.trials[0]
    position = trial.position.copy()
    position[100:, [0, 3]] = position[100:, [3, 0]]
    bad, found = suspect([position], 8.0)
    assert found.swaps >= 1
    assert bad[0][100, [0, 3]].all()
    assert suspect([position], 0.0)[1].jumps == 0
    clean = suspect([trial.position], 8.0)[1]
    assert clean.swaps == 0
    assert clean.share < 0.01
    motion = move(tracks._replace(trials=(trial._replace(position=position),)), Smoothing(window=0.15))
    given = decide(motion)
    cut = np.isin(given.individual, [0, 3]) & (given.frame < 100) & (given.frame + given.step >= 100)
    assert not cut.any()
    assert "exchanged identities" in " ".join(motion.suspicions.notes)


def test_frames_that_repeat_and_merged_detections_are_counted():
    path = np.cumsum(np.random.default_rng(0).normal(size=(40, 3, 2)), axis=0)
    path[20] = path[19]
    path[30, 1] = path[30, 0]
    found = suspect([path], 0.0)[1]
    assert (found.repeated, found.merged) == (1, 1)
    assert len(found.notes) == 2


# ------------------------------------------------------------------------------------------------- calls

CLEAR, NONE = Difference(0.05, 0.01), Difference(-0.002, 0.004)
COMPANY, POWER = Difference(0.2, 0.02), {"distance": 0.3, "speed": 0.4}


def ranked(real, surrogate=1.0, constant=1.0):
    return Rank(real, np.array([0.0, surrogate]), "exchanged", np.array([0.0, constant]))


@pytest.mark.parametrize(
    ("changes", "call"),
    [
        ({}, "re-weighting"),
        ({"rank": None}, "re-weighting"),
        ({"rank": ranked(60.0, surrogate=70.0)}, "constant weights"),  # nothing social is left, and it gains as much
        ({"rank": ranked(60.0, constant=60.0)}, "constant weights"),  # nor may it be what constant weights give
        ({"gain": NONE}, "constant weights"),
        ({"gain": Difference(0.05, 0.03)}, "constant weights"),  # 1.7 errors
        ({"gain": Difference(0.05, 0.024)}, "cannot tell"),  # 2.1 errors: constant weights give as much now and then
        ({"company": Difference(0.01, 0.01)}, "no social force"),  # walls and bursts look like weights that change
        ({"moved": 0.001}, "constant weights"),
        ({"gain": NONE, "power": {"distance": 3.0}}, "cannot tell"),
        ({"gain": NONE, "company": Difference(0.01, 0.01)}, "no social force"),
        ({"suspicious": 0.2}, "withheld"),
        ({"enough": False}, "cannot tell"),  # 256 decisions "gained" half a nat each
    ],
)
def test_calls(changes, call):
    usual = {"gain": CLEAR, "company": COMPANY, "moved": 0.2, "rank": ranked(60.0), "power": POWER, "suspicious": 0.0}
    assert call_of(**(usual | changes)) == call


def test_a_sentence_says_what_was_found_and_why():
    judged = Judged("re-weighting", "by sum", SOFT_SUM, SUM, CLEAR, COMPANY, 0.2, (("density", 20.0), ("speed", 1.0)),
                    ranked(60.0), POWER, 0.0, 0.0)  # fmt: skip
    sentence = sentence_of(judged, "block of time")
    for words in ("re-weight their social forces", "density", "+0.0500 ± 0.0100", "60.0 nats", "2 surrogates",
                  "(Held out by block of time.)"):  # fmt: skip
        assert words in sentence
    assert "speed" not in sentence
    same = judged._replace(call="constant weights", gain=NONE, rank=None)
    assert "±35% between two halves of the situations would have been seen" in sentence_of(same, "trial")
    assert "cannot tell" in sentence_of(same._replace(call="cannot tell"), "trial")
    close = same._replace(call="cannot tell", gain=Difference(0.05, 0.024))
    assert "too close to its error" in sentence_of(close, "trial")
    assert "Even weights that vanish" in sentence_of(close._replace(power={"distance": 3.0}), "trial")
    assert "too few decisions" in sentence_of(same._replace(call="cannot tell", enough=False), "trial")
    assert "20% of the positions" in sentence_of(same._replace(call="withheld", suspicious=0.2), "trial")
    assert "nothing to re-weight" in sentence_of(same._replace(call="no social force"), "trial")


# ------------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize("kind", [name for name in KINDS if not name.startswith("ours")])
def test_groups_of_known_kinds_are_tracks(kind):
    one, same, other = (simulate_kind(kind, seed=seed, individuals=4, seconds=3).trials[0] for seed in (0, 0, 1))
    assert one.position.shape == (60, 4, 2)
    assert np.isfinite(one.position).all()
    np.testing.assert_array_equal(one.position, same.position)
    assert np.abs(one.position - other.position).max() > 0.1


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind = 'sing': use one of walkers"):
        simulate_kind("sing")


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "call"), [("edge", "re-weighting"), ("burst-and-coast", "no social force")])
def test_the_verdict_on_groups_with_known_rules(kind, call):
    motion = move(simulate_kind(kind, seed=1))
    assert judge(motion, decide(motion), surrogates=6).judged.call == call


def test_a_recommended_command_keeps_every_option_of_the_file():
    from policychord.cli.options import Given, repeat
    from policychord.runs.tracks import TrackPlan

    flags = {
        "--rate": ("rate", 25.0), "--unit": ("unit", "cm"), "--columns": ("columns", "id=my fish"),
        "--smooth": ("smoothing.window", 0.5), "--jump": ("smoothing.jump", 0.0), "--scale": ("scale", None),
    }  # fmt: skip
    again = repeat("policychord tracks fit", ["a.csv"], Given(TrackPlan, flags))
    assert again == "policychord tracks fit a.csv --rate 25 --unit cm --columns 'id=my fish' --smooth 0.5 --jump 0"
    assert repeat("policychord tracks fit", ["a.csv"], Given(TrackPlan, {})) == "policychord tracks fit a.csv"
