"""Plans: which points they name, and what is said of those that make no sense."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attack import attack_plans

from policychord.runs.plan import SweepPlan, batches_of, check_plan, points_of, read_sweep_plan
from policychord.runs.store import read_settings

FOLDER = Path(__file__).parents[2] / "plans"
SHIPPED = sorted(path for path in FOLDER.glob("*.toml") if not path.stem.startswith("fit_"))  # those are not sweeps


def plan(**more):
    return SweepPlan.model_validate({"study": "flock", "episodes": 2, "grid": {"eps": [0.1, 1.0]}} | more)


def test_a_grid_is_every_combination_and_the_last_setting_varies_fastest():
    points = points_of(plan(grid={"form": ["a", "b"], "eps": [0.1, 1.0]}))
    assert points == [
        {"form": "a", "eps": 0.1}, {"form": "a", "eps": 1.0}, {"form": "b", "eps": 0.1}, {"form": "b", "eps": 1.0}
    ]  # fmt: skip


def test_ranges_hold_their_ends_and_round_numbers():
    axis = {"low": 0.01, "high": 10.0, "points": 4, "scale": "log"}
    assert [p["eps"] for p in points_of(plan(grid={"eps": axis}))] == [0.01, 0.1, 1.0, 10.0]
    axis = {"low": 0.0, "high": 0.3, "points": 4}
    assert [p["eps"] for p in points_of(plan(grid={"eps": axis}))] == [0.0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize("design", ["latin-hypercube", "sobol", "uniform"])
def test_random_points_stay_in_their_ranges_and_depend_on_the_seed_alone(design):
    over = {"eps": {"low": 0.01, "high": 10.0, "scale": "log"}, "vision_angle": {"low": 100.0, "high": 200.0}}

    def drawn(seed):
        return points_of(plan(grid={}, random={"points": 64, "over": over, "design": design}, seed=seed))

    eps, angle = (np.array([point[name] for point in drawn(0)]) for name in over)
    assert len(eps) == 64
    assert eps.min() >= 0.01
    assert eps.max() <= 10.0
    assert 0.3 < np.mean(np.log10(eps) < -0.5) < 0.7, "even on the log scale"
    assert 100 <= angle.min() <= angle.max() <= 200
    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_a_latin_hypercube_has_one_point_in_every_slice():
    over = {"eps": {"low": 0.0, "high": 1.0}}
    points = points_of(plan(grid={}, random={"points": 20, "over": over}))
    assert sorted(int(point["eps"] * 20) for point in points) == list(range(20))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('study = "flock"', "episodes is missing"),
        ('study = "flock"\nepisodes = 0\n[grid]\neps = [1]', "episodes = 0"),
        ('study = "flock"\nepisodes = 2', r"either a \[grid\] or a \[random\]"),
        ('study = "flock"\nepisodes = 2\n[grid]\neps = []', "eps"),
        ('study = "flock"\nepisodes = 2\n[grid]\neps = [1, 1]', "there twice"),
        ('study = "flock"\nepisodes = 2\n[grid]\neps = {low = 1, high = 2}', "without points"),
        ('study = "flock"\nepisodes = 2\n[grid]\neps = {low = 2, high = 1, points = 3}', "the lower one first"),
        ('study = "flock"\nepisodes = 2\n[grid]\neps = {low = 0, high = 1, points = 3, scale = "log"}', "log scale"),
        ('study = "flock"\nepisodes = 2\n[settings]\neps = 1\n[grid]\neps = [1]', "both fixed in"),
        ('study = "flock"\nepisode = 2\n[grid]\neps = [1]', "episode is not part of a plan"),
        ("study = flock", "not valid TOML"),
        (
            'study = "flock"\nepisodes = 2\n[grid]\neps = 3',
            r"grid\.eps = 3: pass a list of values, such as .* or a range",
        ),
        ('study = "flock"\nepisodes = 2\n[grid]\neps = [[1]]', "every value must be a number, a text, true or false"),
        (
            'study = "flock"\nepisodes = 2\n[grid]\neps = {low = 1, high = 2, pionts = 3}',
            r"grid\.eps\.pionts is not part of a plan: did you mean points\?",
        ),
        (
            'study = "flock"\nepisodes = 2\n[random]\npoints = 3\nover = {}',
            r"random\.over = {}: must have at least 1 entry",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_name(tmp_path, text, words):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words) as refused:
        read_sweep_plan(path)
    assert not re.search("instance|dictionary|Input|Range", str(refused.value)), "the checker's own words"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("episodes = 2\n[grid]\neps = {low = 1, high = 2, points = 1000000000}", "1,000,000,000 points: at most"),
        ("episodes = 1000000000\n[grid]\neps = [1]", "episodes = 1000000000: must be at most"),
        ("episodes = 100000\n[grid]\neps = {low = 1, high = 2, points = 10001}", "1,000,100,000 episodes: at most"),
        (
            "episodes = 2\n[grid]\neps = {low = 1, high = 2, points = 3000}\n"
            "collision_strength = {low = 1, high = 2, points = 3000}",
            "9,000,000 points: at most 1,000,000; cut it into several plans",
        ),
        ("episodes = 100000\nbatch = 1\n[grid]\neps = {low = 1, high = 2, points = 11}", "1,100,000 batches: at most"),
        ("episodes = 2\n[random]\npoints = 1000000000\nover.eps = {low = 1, high = 2}", "random.points = 1000000000"),
        (f"episodes = 2\n[grid]\neps = {{low = 1, high = 2, points = 1{'0' * 400}}}", r"more than 10\^15 points"),
        (f"episodes = 2\nseed = 1{'0' * 400}\n[grid]\neps = [1]", "seed = 1000"),
        (f"episodes = 2\n[grid]\neps = {'[' * 5000}{']' * 5000}", "not valid TOML"),
        (f"episodes = 2\n[settings]\n{'a.' * 5000}b = 1\n[grid]\neps = [1]", "more than 20 dots"),
    ],
)  # fmt: skip
def test_a_plan_beyond_all_measure_is_refused_with_its_size(tmp_path, text, words):
    path = tmp_path / "plan.toml"
    path.write_text(f'study = "flock"\n{text}')
    with pytest.raises(ValueError, match=words) as refused:
        read_sweep_plan(path)
    assert len(str(refused.value)) < 400


def test_endless_lists_are_refused_whatever_python_allows(tmp_path):
    """Some libraries raise the limit of recursion for the whole process: it must not decide what is read."""
    (tmp_path / "plan.toml").write_text(f"eps = {'[' * 5000}{']' * 5000}")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(ValueError, match="not valid TOML: more than 50 lists"):
            read_sweep_plan(tmp_path / "plan.toml")
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 100_000) + " = 1",
        "[" + ".".join("a" * 100_000) + "]",
        " . ".join(['"="'] * 50_000) + " = 1",
        'x = { b = """a"b""", ' + ".".join("a" * 50_000) + ' = 1, c = "" }',
        "# '''\n" + ".".join("a" * 50_000) + " = 1\n# '''",
        "x = '\\'\n" + ".".join("a" * 50_000) + " = 1 # '",
    ],
)
def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed(tmp_path, text):
    """The parser takes memory by the square of their number: 200 kB took 12 GB."""
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(ValueError, match="more than 20 dots"):
        read_sweep_plan(tmp_path / "plan.toml")


def test_dots_in_numbers_texts_and_comments_are_no_keys(tmp_path):
    many, dots = ", ".join(f"{k}.5" for k in range(100)), "." * 100
    lines = [f"# {dots}", f"x = [{many}]", f"y = '{dots}'", f'z = """\n{dots}"""', f"a.b.c = '''{dots}'''"]
    (tmp_path / "own.toml").write_text("\n".join(lines))
    assert read_settings(tmp_path / "own.toml")["a"] == {"b": {"c": dots}}


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"x{k} = 1\n" for k in range(5000)),
        "x" * 100_000 + " = 1",
        f"grid = {{ eps = [{', '.join(['0.1'] * 50_000)}] }}",
        f'study = "{"x" * 100_000}"',
        f"grid = {{ {'x' * 100_000} = [1] }}",
        f'metrics = ["{"x" * 100_000}"]',
    ],
    ids=range(6),
)
def test_no_error_is_longer_than_anybody_reads(tmp_path, text):
    usual = {"study": 'study = "flock"', "episodes": "episodes = 1", "grid": "grid = { eps = [0.1] }"}
    lines = [line for name, line in usual.items() if not text.startswith(name)]
    (tmp_path / "plan.toml").write_text("\n".join([*lines, text]))
    with pytest.raises(ValueError, match=r"\w") as said:
        check_plan(read_sweep_plan(tmp_path / "plan.toml"))
    assert len(str(said.value)) < 1500


def test_a_plan_comes_back_from_its_file():
    written = plan(grid={"eps": {"low": 0.1, "high": 1.0, "points": 3}, "form": ["a", "b"]})
    assert SweepPlan.model_validate_json(written.model_dump_json()) == written


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_plans_are_sound(path):
    chosen = read_sweep_plan(path)
    check_plan(chosen)
    assert len(points_of(chosen)) > 10
    assert sum(batch.episodes for batch in batches_of(chosen)) == chosen.episodes * len(points_of(chosen))


def test_whatever_is_wrong_with_a_plan_is_a_sentence():
    found = attack_plans(100, seed=1)
    assert found.broken == []
    assert 50 < found.refused < 100
