"""Two runs side by side: each kind of difference is found, and nothing else."""

import json
import shutil

import pytest
from PIL import Image
from typer.testing import CliRunner

from policychord.cli import app
from policychord.runs.compare import Change, Comparison, Moved, compare, numbers_in, read

from .pages import a_run


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    a_run(folder)
    return folder


@pytest.fixture
def copy(original, tmp_path):
    return shutil.copytree(original, tmp_path / "copy")


def change(path, edit):
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def differences(found: Comparison) -> dict:
    """The kinds of difference that were found."""
    kinds = {name: value for name, value in found._asdict().items() if name not in ("claims", "figures")}
    kinds["figures"] = [figure for figure in found.figures if figure.state != "identical"]
    return {name: value for name, value in kinds.items() if value}


def test_a_run_equals_itself_and_its_copy(original, copy):
    for other in (original, copy, copy / "claims.json", copy / "report.html"):
        found = compare(original, other)
        assert differences(found) == {}
        assert found.claims == 3
        assert [figure.state for figure in found.figures] == ["identical", "identical"]


def test_verdicts(original, copy):
    change(copy / "claims.json", lambda claims: claims[1].update(verdict="reproduced"))
    assert differences(compare(original, copy)) == {"verdicts": [Change("B2", "partly", "reproduced")]}


def test_numbers(original, copy):
    change(copy / "claims.json", lambda claims: claims[1]["measured"].update(only=1.5))
    (moved,) = differences(compare(original, copy))["moved"]
    assert moved == Moved("B2", "only", 1.0, 1.5, 0.5, pytest.approx(1 / 3))
    assert compare(original, copy, rtol=0.34).moved == []


def test_numbers_inside_others(original, copy):
    def edit(claims):
        claims[0]["measured"]["by model"]["UCB"] = 0.2
        claims[0]["measured"]["by trial"]["2"][1] = 0.6

    change(copy / "claims.json", edit)
    names = [moved.name for moved in compare(original, copy).moved]
    assert names == ["by model / UCB", "by trial / 2 / 2"]


def test_numbers_inside_words(original, copy):
    change(copy / "claims.json", lambda claims: claims[0]["measured"].update(text="180 of 200 <i>"))
    (moved,) = compare(original, copy).moved
    assert (moved.difference, moved.relative) == (6.0, pytest.approx(6 / 180))
    assert compare(original, copy, rtol=0.05).moved == []
    change(copy / "claims.json", lambda claims: claims[0]["measured"].update(text="174 out of 200 <i>"))
    (moved,) = compare(original, copy, rtol=10.0).moved
    assert (moved.difference, moved.relative) == (None, None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("-0.20 [-0.24, -0.15], p 2e-14", [-0.2, -0.24, -0.15, 2e-14]),
        ("12,345 of 20000, .5", [12345.0, 20000.0, 0.5]),
        ("[1,2] 10-20 +3", [1.0, 2.0, 10.0, 20.0, 3.0]),
        ("170 and 447", [170.0, 447.0]),
        ("no number.", []),
    ],
)
def test_numbers_are_found_in_words(text, found):
    between, numbers = numbers_in(text)
    assert numbers == found
    assert len(between) == len(found) + 1


def test_values_that_are_new_gone_or_of_another_kind(original, copy):
    def edit(claims):
        measured = claims[0]["measured"]
        del measured["whole"]
        measured |= {"settled": 1, "new": 5, "many": "123456"}

    change(copy / "claims.json", edit)
    found = {moved.name: (moved.a, moved.b, moved.relative) for moved in compare(original, copy).moved}
    assert found == {
        "whole": (240.0, None, None), "settled": (True, 1, None), "many": (123456, "123456", None),
        "new": (None, 5, None),
    }  # fmt: skip


def test_what_is_not_a_number_is_itself_and_infinitely_far_from_the_rest(original, copy):
    change(copy / "claims.json", lambda claims: claims[0]["measured"].update(odd=2.0))
    (moved,) = compare(original, copy, rtol=1e6).moved
    assert moved.name == "odd"
    assert moved.difference is None


def test_claims_in_one_run_only(original, copy):
    def edit(claims):
        claims[0]["id"] = "B9"

    change(copy / "claims.json", edit)
    found = compare(original, copy)
    assert (found.only_a, found.only_b, found.claims) == (["B1"], ["B9"], 2)


def test_rules_in_other_words(original, copy):
    change(copy / "claims.json", lambda claims: claims[1].update(rule="only > -1"))
    assert differences(compare(original, copy)) == {"wording": [Change("B2 rule", "only > 0", "only > -1")]}


def test_figures(original, copy):
    path = copy / "figures" / "bandit" / "costs.png"
    with Image.open(path) as image:
        width, height = image.size
        spoiled = image.convert("RGBA")
    spoiled.paste((255, 0, 0, 255), (0, 0, width // 2, height // 2))
    spoiled.save(path)
    (figure,) = differences(compare(original, copy))["figures"]
    assert (figure.name, figure.state) == ("bandit/costs", "different")
    assert figure.share == pytest.approx(0.25, abs=0.01)
    spoiled.resize((10, 10)).save(path)
    (copy / "figures" / "bandit" / "weights_over_time.png").rename(copy / "figures" / "bandit" / "other.png")
    states = {figure.name: figure.state for figure in compare(original, copy).figures}
    assert states == {
        "bandit/costs": "resized",
        "bandit/other": "only in the second",
        "bandit/weights_over_time": "only in the first",
    }


def test_a_figure_saved_anew_is_the_same_figure(original, copy):
    path = copy / "figures" / "bandit" / "costs.png"
    with Image.open(path) as image:
        image.load()
        image.save(path, compress_level=1)
    assert path.read_bytes() != (original / "figures" / "bandit" / "costs.png").read_bytes()
    assert differences(compare(original, copy)) == {}


def test_environment(original, copy):
    def edit(environment):
        environment["seed"] = 4
        environment["settings"]["bandit"] |= {"seed": 4, "eps": 0.5}
        environment["packages"]["jax"] = "0.8.0"
        del environment["packages"]["numpy"]
        environment |= {"cores": 64, "seconds": 1.0, "workers": 9, "reused": 0, "started": "2027", "quick": False}

    change(copy / "environment.json", edit)
    assert differences(compare(original, copy)) == {
        "seeds": [Change("seed", 3, 4), Change("bandit / seed", 3, 4)],
        "settings": [Change("quick", True, False), Change("bandit / eps", 0.01, 0.5)],
        "versions": [Change("jax", "0.7.0", "0.8.0"), Change("numpy", "2.3.1", None)],
        "machine": [Change("cores", 2, 64)],
    }


def test_a_page_that_was_sent_alone_is_enough(original, tmp_path):
    alone = shutil.copy(original / "report.html", tmp_path / "from-a-colleague.html")
    found = compare(original, alone)
    assert found.claims == 3
    assert list(differences(found)) == ["notes"]
    assert found.notes == ["the second run has no figures beside it: figures were not compared."]
    alone.rename(tmp_path / "report.html")
    assert list(read(tmp_path).claims) == ["B1", "B2", "F1"]


def test_claims_alone_say_what_is_left_out(original, tmp_path):
    alone = shutil.copy(original / "claims.json", tmp_path / "claims.json")
    found = compare(alone, original)
    assert [note.split(":")[0] for note in found.notes] == [
        "the first run has no environment.json", "the first run has no figures beside it",
    ]  # fmt: skip
    assert found.versions == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("claims.json", "{oh", "claims.json is not valid JSON"),
        ("claims.json", "{}", "holds a dict where a list of claims should be"),
        ("claims.json", "[1]", "claim 0 in .* is a int"),
        ("claims.json", '[{"id": "B1"}]', "claim 0 in .* has no statement"),
        ("claims.json", "\x80", "is not valid JSON"),
        ("environment.json", "[]", "holds no names with values"),
        ("report.html", "<p>", "holds no record of a run"),
        ("figures/bandit/costs.png", "none", "is no readable PNG"),
    ],
)
def test_broken_files_are_named(original, copy, file, text, words):
    (copy / file).write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=words):
        compare(original, copy / file if file.endswith("html") else copy)


def test_missing_runs_are_named(original, tmp_path):
    with pytest.raises(ValueError, match="does not exist: pass a run's folder"):
        compare(original, tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"neither claims\.json nor report\.html"):
        compare(tmp_path, original)
    with pytest.raises(ValueError, match="rtol = -1"):
        compare(original, original, rtol=-1.0)


def test_a_claim_that_is_there_twice_is_refused(original, copy):
    change(copy / "claims.json", lambda claims: claims.append(claims[0]))
    with pytest.raises(ValueError, match="claim B1 twice"):
        compare(original, copy)


def run(*given):
    return CliRunner().invoke(app, ["compare", *map(str, given)])


def test_command_for_people(original, copy):
    change(copy / "claims.json", lambda claims: claims[1].update(verdict="not reproduced"))
    same, other = run(original, original, "--strict"), run(original, copy)
    assert (same.exit_code, other.exit_code) == (0, 0)
    assert "0 verdicts changed" in same.output
    assert "Verdicts that changed" in other.output
    assert "not reproduced" in other.output
    assert run(original, copy, "--strict").exit_code == 1


def test_command_names_what_is_missing(original, copy):
    def edit(claims):
        claims[0]["measured"] |= {"new": 5, "many": 12345678}
        claims.pop()

    change(copy / "claims.json", edit)
    lines = [line.split() for line in run(original, copy).output.splitlines()]
    assert ["first", "claims", "F1"] in lines
    assert ["B1", "new", "5"] in lines
    assert ["B1", "many", "123,456", "12,345,678", "99%"] in lines


def test_command_for_programs(original, copy):
    def edit(claims):
        claims[0]["measured"]["odd"] = 1.0
        claims[1]["measured"]["only"] = 2.0

    change(copy / "claims.json", edit)
    result = run(original, copy, "--json", "--strict")
    assert result.exit_code == 0  # no verdict changed
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [moved["name"] for moved in found["results"]["moved"]] == ["odd", "only"]
    assert found["results"]["moved"][1]["difference"] == 1.0
    assert found["results"]["verdicts"] == []
