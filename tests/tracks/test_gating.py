"""From motion to an answer: forces in body coordinates, decisions, simulated groups, calls, leadership."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

import policychord as pc
from policychord.runs import cache
from policychord.runs.tracks import TrackPlan
from policychord.runs.trials import _table_of, page_of_trials, run_trials
from policychord.tracks.decisions import cells_of, decide, of_trial
from policychord.tracks.figures import film
from policychord.tracks.forces import FAR, USUAL, ForceSettings, Layout, World, far_apart, forces_of, see
from policychord.tracks.gating import HeavyTailed, complete, fit_agent, gating_problem, weigh
from policychord.tracks.motion import Motion, Moved, Smoothing, leadership, move
from policychord.tracks.reading import TrackError, Tracks
from policychord.tracks.simulate import as_tracks, blank_decisions, predict, simulate_group
from policychord.worlds.flock.neighbours import Zones, look

LAYOUT = Layout(Zones(1.0, 3.0, 12.0, 320.0), None, 1.0, 0.15, 0.25, (), None, 24.0)
CELLS = cells_of(1.3 * np.random.default_rng(0).standard_t(4, size=(5000, 2)))
# a gate at a low temperature: weights move much
SHARP = {"eps": 0.2, "prior": [0.25] * 4, "gain": [3.0, 4.0, 4.0, 4.0], "sd": 0.5, "tail": 8.0}
AWAY = np.full(2, FAR)


def herd(seed=0, count=8):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, count)
    return rng.uniform(-2, 2, (count, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=-1)


@pytest.fixture(scope="module")
def group():
    return simulate_group(blank_decisions(LAYOUT, CELLS, USUAL), SHARP, herd(), 34, seed=3)


def test_forces_are_the_flocks_in_body_coordinates():
    position, velocity = herd(1)
    for i in range(len(position)):
        seen = see(LAYOUT, forces_of(ForceSettings()), World(position, velocity, AWAY, AWAY), i)
        view = look(LAYOUT.zones, jnp.asarray(position), jnp.asarray(velocity), i)
        ahead = velocity[i] / np.linalg.norm(velocity[i])
        body = np.stack([ahead, [-ahead[1], ahead[0]]])
        wanted = [ahead * (1 - np.linalg.norm(velocity[i])), view.separation, view.alignment - ahead, view.cohesion]
        np.testing.assert_allclose(seen.force, np.stack(wanted) @ body.T, atol=1e-12)
        np.testing.assert_allclose(seen.wanted, body @ np.asarray(view.mean_velocity - velocity[i]) / 0.15, atol=1e-12)
        near = np.asarray(view.closeness)[np.any(view.closeness != 0, axis=-1)] @ body.T
        assert len(near) <= len(seen.closeness)
        assert np.sum(seen.closeness**2) == pytest.approx(np.sum(near**2))


def test_what_is_seen_does_not_depend_on_the_axes_of_the_file():
    position, velocity = herd(2)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    a = see(LAYOUT, forces_of(ForceSettings()), World(position, velocity, AWAY, AWAY), 2)
    b = see(LAYOUT, forces_of(ForceSettings()), World(position @ turn.T + 7, velocity @ turn.T, AWAY, AWAY), 2)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_only_the_nearest_count_and_the_absent_do_not():
    position, velocity = herd(3)
    order = np.argsort(np.linalg.norm(position - position[0], axis=1))
    forces = forces_of(ForceSettings())
    few = see(LAYOUT._replace(nearest=3), forces, World(position, velocity, AWAY, AWAY), 0)
    others = position.copy()
    others[order[4:]] = FAR
    gone = see(LAYOUT, forces, World(others, velocity, AWAY, AWAY), 0)
    alone = see(LAYOUT, forces, World(position[order[:4]], velocity[order[:4]], AWAY, AWAY), 0)
    for a, b, c in zip(few, gone, alone, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
        np.testing.assert_allclose(a, c, atol=1e-12)


def test_wall_goal_predator_and_leader():
    settings = ForceSettings(forces=("wall", "goal", "predator", "leader"), arena=(0, 0, 5), goal=(0, 9),
                             predator="dog", leader="shepherd")  # fmt: skip
    layout = LAYOUT._replace(arena=(0.0, 0.0, 5.0), goal=(0.0, 9.0))
    world = World(np.array([[4.0, 0.0]]), np.array([[0.0, 2.0]]), np.array([10.0, 0.0]), np.array([4.0, 8.0]))
    wall, goal, predator, leader = np.asarray(see(layout, forces_of(settings), world, 0).force)
    # it looks along y, so the wall on its right pushes it to its left
    np.testing.assert_allclose(wall, [0, 1 - 1 / 3], atol=1e-12)
    np.testing.assert_allclose(predator, [0, 1 - 6 / 24], atol=1e-12)
    np.testing.assert_allclose(leader, 0.0, atol=1e-12)
    to_goal = np.array([-4.0, 9.0]) / np.hypot(4, 9)
    np.testing.assert_allclose(goal, [to_goal[1] - 1, -to_goal[0]], atol=1e-12)
    box = see(layout._replace(arena=(-5.0, -5.0, 5.0, 5.0)), forces_of(settings), world, 0)
    np.testing.assert_allclose(box.force[0], wall, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"forces": ("persist",)}, "two or more"), ({"forces": ("persist", "wall")}, "set arena"),
     ({"predator": "14"}, "add it to them"), ({"radii": (3, 2, 1)}, "that grow"), ({"arena": (1, 2)}, "a circle")],
)  # fmt: skip
def test_settings_that_do_not_fit_together_are_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        ForceSettings(**changes)


def test_own_forces_join_the_others():
    drift = {"drift": lambda sight: jnp.array([0.0, 1.0])}
    forces = forces_of(ForceSettings(forces=("persist", "drift")), drift)
    seen = see(LAYOUT, forces, World(np.zeros((1, 2)), np.array([[0.0, 1.0]]), AWAY, AWAY), 0)
    np.testing.assert_allclose(seen.force[1], [1.0, 0.0], atol=1e-12)
    with pytest.raises(ValueError, match="forces have sing"):
        forces_of(ForceSettings(forces=("persist", "sing")))
    with pytest.raises(ValueError, match=r"own has drift, which settings\.forces does not name"):
        forces_of(ForceSettings(forces=("persist", "cohesion")), drift)
    with pytest.raises(ValueError, match=r"force 'drift' has shape \(3,\): return a vector"):
        see(LAYOUT, {"drift": lambda sight: jnp.zeros(3)}, World(np.zeros((1, 2)), np.ones((1, 2)), AWAY, AWAY), 0)


def test_every_force_keeps_its_name(group):
    """Compiled functions sort dicts: the column of a force in decisions and its weight in a simulation are its own."""
    motion = move(as_tracks(group, LAYOUT, 8), Smoothing(window=0.16))
    settings = ForceSettings(forces=("persist", "separation", "alignment", "cohesion", "drift"))
    own = {"drift": lambda sight: jnp.array([0.0, 1.0])}
    given = decide(motion, settings, own, layout=LAYOUT, cells=CELLS)
    assert given.names == settings.forces
    for number in (0, given.size // 2):
        moment, who = given.frame[number], given.individual[number]
        one = motion.trials[0]
        world = World(one.position[moment], one.velocity[moment], AWAY, AWAY)
        for column, (name, force) in enumerate(forces_of(settings, own).items()):
            alone = see(LAYOUT, {name: force}, world, int(who))
            np.testing.assert_allclose(given.seen.force[number, column], alone.force[0], atol=1e-9, err_msg=name)
    # who follows cohesion alone comes together, who follows separation alone spreads
    blank, spread = blank_decisions(LAYOUT, CELLS, USUAL), {}
    for name in ("separation", "cohesion"):
        prior = [0.997 if force == name else 0.001 for force in USUAL]
        alone = simulate_group(blank, SHARP | {"prior": prior, "eps": 10.0}, herd(), 34, seed=3)
        spread[name] = alone.position[-1].std()
    assert spread["cohesion"] < 0.7 * spread["separation"]


def test_cells_cover_the_changes_and_primitives_on_them_are_densities():
    middle = np.flatnonzero(np.all(CELLS.points == 0, axis=1))
    assert len(middle) == 1
    assert CELLS.log_area[middle[0]] == CELLS.log_area.min()
    from policychord.actions import Finite

    one = HeavyTailed(lambda seen, k: jnp.array([0.3, 0.0]), lambda seen, k: jnp.ones(2), 5.0, CELLS.log_area)
    prob = np.exp(one.log_prob(Finite(CELLS.points), None, 0))
    assert prob.sum() == pytest.approx(1.0)
    # as a density it is Student's t: the ratio of two cells knows their areas
    near, far = 60, 5
    t = [(1 + np.sum((CELLS.points[c] - [0.3, 0]) ** 2) / 5) ** -3.5 for c in (near, far)]
    areas = np.exp(CELLS.log_area[[near, far]])
    assert prob[near] / prob[far] == pytest.approx(t[0] * areas[0] / (t[1] * areas[1]))


def test_decisions_are_those_that_were_simulated(group):
    """Without noise, three frames around a decision suffice to find its change of velocity nearly exactly."""
    motion = move(as_tracks(group, LAYOUT, 20), Smoothing(window=0.03))
    given = decide(motion, layout=LAYOUT, cells=CELLS)
    assert given.step == 20
    true = np.diff(group.velocity, axis=0)
    late = given.frame // 20
    keep = (late > 0) & (late < len(true) - 1)
    heading = group.velocity[late, given.individual]
    heading = heading / np.linalg.norm(heading, axis=1, keepdims=True)
    change = true[late, given.individual] / LAYOUT.change
    body = np.stack([(change * heading).sum(1), heading[:, 0] * change[:, 1] - heading[:, 1] * change[:, 0]], axis=-1)
    assert np.median(np.abs(given.change - body)[keep]) < 0.05
    nearest = np.argmin(((CELLS.points[:, None] - body) ** 2).sum(-1), axis=0)
    assert (given.action == nearest)[keep].mean() > 0.8
    assert group.gap.max() < 1e-8


def test_marked_individuals_are_no_members(group):
    motion = move(as_tracks(group, LAYOUT, 4))
    settings = ForceSettings(forces=("persist", "cohesion", "predator"), predator="0", leave_out=("3",))
    given = decide(motion, settings)
    assert not set(given.individual) & {0, 3}
    assert np.abs(given.seen.force[:, 2]).max() > 0
    with pytest.raises(TrackError, match="no individual 'wolf'"):
        decide(motion, ForceSettings(forces=("persist", "predator"), predator="wolf"))


def test_simulated_individuals_flee_a_predator_that_moves_as_recorded():
    names = ("persist", "predator")
    settings = ForceSettings(forces=names, predator="dog")
    given = blank_decisions(LAYOUT, CELLS, names)
    theta = {"eps": 1.0, "prior": [0.1, 0.9], "gain": [1.0, 6.0], "sd": 0.3, "tail": 8.0}
    place, velocity = np.array([[0.0, 0.0], *far_apart(1)]), np.zeros((2, 2))
    far = np.full((12, 2), np.nan)
    near = np.tile([-2.0, 0.0], (12, 1))
    calm, fled = (
        simulate_group(given, theta, (place, velocity), 12, settings=settings, marks=(at, far), gate="constant")
        for at in (far, near)
    )
    assert fled.position[-1, 0, 0] > calm.position[-1, 0, 0] + 1.0


def test_weights_of_any_decisions_are_those_of_the_gate(group):
    given = decide(move(as_tracks(group, LAYOUT, 4)), layout=LAYOUT, cells=CELLS)
    weights, gap = weigh(given, SHARP)
    assert weights.shape == (given.size, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert gap.max() < 1e-8
    one = of_trial(given, 0)
    assert one.size == given.size
    assert of_trial(given, 1).size == 0  # there is no other
    assert len(np.unique(one.block)) >= 19


def test_the_problem_of_a_decision_is_that_of_a_composer(group):
    """Written out for speed, it is the agent of heavy-tailed primitives with the flock's model of good motion."""
    given = decide(move(as_tracks(group, LAYOUT, 4)), layout=LAYOUT, cells=CELLS)
    theta = {**complete(USUAL, SHARP), "sideways": 1.2, "tilt": 0.3, "precision": 0.7, "collision": 1.5}
    for row in (0, given.size // 2):
        seen = jax.tree_util.tree_map(lambda field, row=row: jnp.asarray(field[row]), given.seen)
        along = theta["sd"] * (0.5 + 0.5 * seen.speed) ** theta["tilt"]
        spread = jnp.stack([along, along * theta["sideways"]])
        primitives = {
            name: HeavyTailed(lambda x, k, a=a: theta["gain"][a] * x.force[a], lambda x, k, spread=spread: spread,
                              theta["tail"], jnp.asarray(CELLS.log_area))
            for a, name in enumerate(USUAL)
        }  # fmt: skip
        model = pc.Sum(
            velocity=pc.GaussianTarget(lambda x, u, k: u, lambda x, k: x.wanted, 1.0 / theta["precision"]),
            collision=pc.Cost(lambda x, u, k: theta["collision"] * jnp.sum(jnp.maximum(x.closeness @ u, 0.0))),
            area=pc.Cost(-CELLS.log_area),
        )
        agent = pc.Composer(primitives, model, pc.Finite(CELLS.points), theta["eps"], theta["prior"])
        written_out = gating_problem(CELLS, theta, seen)
        for name, expected in agent.problem(seen)._asdict().items():
            np.testing.assert_allclose(getattr(written_out, name), expected, rtol=1e-12, atol=1e-14, err_msg=name)


def test_what_a_simulation_is_told_is_checked():
    given = blank_decisions(LAYOUT, CELLS, USUAL)
    for theta, words in (({"prior": [0.5, 0.5, 0.5, 0.5]}, "sum to one"), ({"eps": -1.0}, "positive"),
                         ({"epsilon": 1.0}, "theta has epsilon")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            simulate_group(given, theta, herd(), 2)


def test_a_film_has_the_tracks_and_the_simplex(group):
    motion = move(as_tracks(group, LAYOUT, 2))
    given = decide(motion, layout=LAYOUT, cells=CELLS)
    weights = np.full((given.size, 4), 0.25)
    moving = film(given, weights, motion)
    moving._func(5)
    left, right = moving._fig.axes
    assert left.get_title(loc="left").startswith("trial 0")
    places = np.asarray(right.collections[0].get_offsets())
    np.testing.assert_allclose(places, [[0.5, np.sqrt(3) / 6]] * len(group.position[0]))
    moving._draw_was_started = True  # it is not shown


def test_every_trial_is_fitted_once_and_kept(group, tmp_path):
    """On any executor: here a thread. What is there is not computed again."""
    one = as_tracks(group, LAYOUT, 8, noise=0.001).trials[0]
    short = one._replace(name="short", position=one.position[:40])
    tracks = Tracks("t", (one, short), 32.0, "m", ())
    motion = move(tracks, Smoothing(window=0.16))
    plan = TrackPlan(surrogates=0, forces=ForceSettings(radii=(1, 3, 12)))
    with ThreadPoolExecutor(1) as pool:
        found = run_trials(motion, plan, tmp_path / "out", pool, 1, lambda *_: None)
    kept = list((tmp_path / "out").rglob("*.npz"))
    before = [path.read_bytes() for path in kept]
    for path in kept:  # results that are well-formed, of something else
        cache.save_result(path, "0", cache.Result(7, 0.0))
    over = ThreadPoolExecutor(1)
    over.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):  # they are to be computed
        run_trials(motion, plan, tmp_path / "out", over, 1, lambda *_: None)
    for path, content in zip(kept, before, strict=True):
        path.write_bytes(content)
    again = run_trials(motion, plan, tmp_path / "out", None, 1, lambda *_: None)
    assert [row._replace(cpu_seconds=0) for row in again] == [row._replace(cpu_seconds=0) for row in found]
    assert [row.trial for row in found] == ["0"]
    page = page_of_trials(found, tracks, motion, plan)
    assert "1 of 2 trials have fewer than 100" in page.warnings[0]
    assert {"own motion", "constant sum", "softmax gate, sum"} <= set(found[0].held_out)
    assert found[0].held_out["constant mixture"] > found[0].held_out["own motion"]
    assert {"odds: cohesion", "slope: cohesion"} & set(found[0].estimates)
    lines = page.tables["trials.csv"].splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("trial,decisions,call,acts,gate,gain,error")
    assert page.verdict.startswith("Weights change in ")
    assert _table_of([found[0]._replace(trial="=1+1")]).splitlines()[1].startswith("'=1+1,")  # no formula


def filmed(group):
    """Decisions of a group, and its known gains and spreads."""
    given = decide(move(as_tracks(group, LAYOUT, 8, noise=0.001, gaps=0.02), Smoothing(window=0.16)), layout=LAYOUT,
                   cells=CELLS)  # fmt: skip
    return given, {name: np.asarray(SHARP[name]) for name in ("gain", "sd", "tail")}


@pytest.mark.thorough
def test_the_temperature_of_a_group_is_found_and_ctrl_c_ends_a_fit(group):
    given, held = filmed(group)
    found = fit_agent(given, free=("eps", "prior"), fixed=held, starts=1)
    assert found.gap.max() < 1e-8
    assert found.theta["eps"] < 2.0

    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_agent(given, free=("eps",), fixed=held | {"prior": SHARP["prior"]}, starts=1, progress=stop)


def test_predictions_of_the_truth_are_close(group):
    motion = move(as_tracks(group, LAYOUT, 8), Smoothing(window=0.1))
    given = decide(motion, layout=LAYOUT, cells=CELLS)
    right = {one.name: one.distance for one in predict(motion, given, SHARP, ForceSettings(), groups=3, seconds=3.0)}
    wild = {**SHARP, "sd": 3.0, "gain": [0.1] * 4}
    wrong = {one.name: one.distance for one in predict(motion, given, wild, ForceSettings(), groups=3, seconds=3.0)}
    assert right["speed"] < wrong["speed"]
    assert right["turning (rad)"] < 0.35 < wrong["turning (rad)"]


def test_leadership_finds_who_turns_first():
    time = np.arange(400) / 20.0
    angle = np.stack([np.sin(0.8 * (time - delay)) for delay in (0.0, 0.3, 0.6)], axis=1)
    velocity = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    one = Moved("0", ("first", "second", "third"), velocity.cumsum(axis=0) / 20, velocity, velocity)
    found = leadership(Motion((one,), 20.0, "m", 3, Smoothing(), 0, 0, 0))
    assert found.delay[0, 2] == pytest.approx(0.6, abs=0.051)
    assert found.delay[1, 0] == pytest.approx(-0.3, abs=0.051)
    assert found.ids[int(np.argmax(found.lead))] == "first"


def test_walkers_who_go_straight_on_lead_nobody():
    """Headings along a corridor are alike at any delay: the best one is chance."""
    rng = np.random.default_rng(0)
    angle = 0.15 * np.stack([np.convolve(rng.normal(size=440), np.ones(40) / 6, "valid")[:400] for _ in range(4)], 1)
    velocity = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    one = Moved("0", tuple("abcd"), velocity.cumsum(axis=0) / 20, velocity, velocity)
    motion = Motion((one,), 20.0, "m", 3, Smoothing(), 0, 0, 0)
    assert np.isfinite(leadership(motion, shifted=0).delay).sum() >= 4
    assert np.isfinite(leadership(motion).delay).sum() <= 2


def test_a_force_that_is_no_number_is_named(group):
    def nowhere(sight):
        return sight.view.velocity / jnp.where(sight.view.position[0] > 0, 0.0, 1.0)

    motion = move(as_tracks(group, LAYOUT, 8), Smoothing(window=0.16))
    with pytest.raises(ValueError, match="force 'nowhere' is not finite"):
        decide(motion, ForceSettings(forces=("persist", "nowhere")), own={"nowhere": nowhere})
