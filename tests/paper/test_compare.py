"""Two runs side by side: each kind of difference is found, and nothing else."""

import json
import shutil

import pytest
from PIL import Image
from typer.testing import CliRunner

from policychord.cli import app
from policychord_paper.claim import Quantity
from policychord_paper.compare import RunComparison, _Change, _MovedQuantity, compare, read_run

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


def differences(found: RunComparison) -> dict:
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
    assert differences(compare(original, copy)) == {"verdicts": [_Change("B2", "partly", "reproduced")]}


def test_parts_of_rules(original, copy):
    change(copy / "claims.json", lambda claims: claims[1].update(holds={"early": False, "late": True}))
    assert differences(compare(original, copy)) == {
        "parts": [_Change("B2 early", True, False), _Change("B2 late", False, True)]
    }


def test_numbers(original, copy):
    change(copy / "claims.json", lambda claims: claims[1]["measured"]["only"].update(value=1.5))
    (moved,) = differences(compare(original, copy))["moved"]
    assert moved == _MovedQuantity("B2", "only", Quantity(1.0), Quantity(1.5), 0.5, pytest.approx(1 / 3))
    assert compare(original, copy, rtol=0.34).moved == []


@pytest.mark.parametrize(
    ("name", "new", "gap"),
    [
        ("settled", {"of": 250}, (50.0, 0.2)),
        ("third", {"interval": [0.25, 0.7]}, (0.35, 0.5)),
        ("third", {"interval": None}, (None, None)),
        ("third", {"unit": "km"}, (None, None)),
        ("odd", {"value": 2.0}, (None, None)),  # what is not a number is infinitely far from every number
    ],
)
def test_totals_intervals_units_and_what_is_not_a_number(original, copy, name, new, gap):
    change(copy / "claims.json", lambda claims: claims[0]["measured"][name].update(new))
    (moved,) = compare(original, copy).moved
    assert (moved.claim, moved.name) == ("B1", name)
    assert (moved.difference, moved.relative) == (gap if None in gap else pytest.approx(gap))


def test_quantities_that_are_new_or_gone(original, copy):
    def edit(claims):
        claims[0]["measured"] |= {"new": {"value": 5.0}}
        del claims[0]["measured"]["whole"]

    change(copy / "claims.json", edit)
    found = {moved.name: (moved.a, moved.b, moved.relative) for moved in compare(original, copy).moved}
    assert found == {"whole": (Quantity(240.0, "nat <"), None, None), "new": (None, Quantity(5.0), None)}


def test_a_run_of_the_first_version_is_read(original, copy):
    def edit(claims):
        claims[0]["measured"] = {"third": 0.3, "by model": {"UCB": 0.2, "rest": [1, True]}, "text": "174 of 200"}

    change(copy / "claims.json", edit)
    found = compare(copy, original)
    assert [moved.name for moved in found.moved][:4] == ["third", "by model / UCB", "by model / rest / 1",
                                                         "by model / rest / 2"]  # fmt: skip
    assert found.notes == ["the first run is of version 0.1.0: 1 values that are text were not compared."]


def test_claims_in_one_run_only(original, copy):
    def edit(claims):
        claims[0]["id"] = "B9"

    change(copy / "claims.json", edit)
    found = compare(original, copy)
    assert (found.only_a, found.only_b, found.claims) == (["B1"], ["B9"], 2)


def test_rules_in_other_words(original, copy):
    change(copy / "claims.json", lambda claims: claims[1].update(rule="only > -1"))
    assert differences(compare(original, copy)) == {"wording": [_Change("B2 rule", "only > 0; other > 0", "only > -1")]}


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
        "seeds": [_Change("seed", 3, 4), _Change("bandit / seed", 3, 4)],
        "settings": [_Change("quick", True, False), _Change("bandit / eps", 0.01, 0.5)],
        "versions": [_Change("jax", "0.7.0", "0.8.0"), _Change("numpy", "2.3.1", None)],
        "machine": [_Change("cores", 2, 64)],
    }


def test_a_page_that_was_sent_alone_is_enough(original, tmp_path):
    alone = shutil.copy(original / "report.html", tmp_path / "from-a-colleague.html")
    found = compare(original, alone)
    assert found.claims == 3
    assert list(differences(found)) == ["notes"]
    assert found.notes == ["the second run has no figures in its folder: figures were not compared."]
    alone.rename(tmp_path / "report.html")
    assert list(read_run(tmp_path).claims) == ["B1", "B2", "F1"]


def test_claims_alone_say_what_is_left_out(original, tmp_path):
    alone = shutil.copy(original / "claims.json", tmp_path / "claims.json")
    found = compare(alone, original)
    assert [note.split(":")[0] for note in found.notes] == [
        "the first run has no environment.json", "the first run has no figures in its folder",
    ]  # fmt: skip
    assert found.versions == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("claims.json", "{oh", "claims.json is not valid JSON"),
        ("claims.json", "{}", "holds a dict where a list of claims should be"),
        ("claims.json", "[1]", "the claims in .* are not of a known form"),
        ("claims.json", '[{"id": "B1"}]', "0.statement is missing"),
        ("claims.json", "[" * 100_000, "is not valid JSON"),
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
    with pytest.raises(ValueError, match=r"neither claims\.json nor report\.html: policychord reproduce writes them"):
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
        claims[0]["measured"] |= {"new": {"value": 5}, "many": {"value": 654321}}
        claims.pop()

    change(copy / "claims.json", edit)
    lines = [line.split() for line in run(original, copy).output.splitlines()]
    assert ["first", "claims", "F1"] in lines
    assert ["B1", "new", "5"] in lines
    assert ["B1", "many", "123,456", "654,321", "81%"] in lines


def test_command_for_programs(original, copy):
    def edit(claims):
        claims[0]["measured"]["odd"]["value"] = 1.0
        claims[1]["measured"]["only"]["value"] = 2.0

    change(copy / "claims.json", edit)
    result = run(original, copy, "--json", "--strict")
    assert result.exit_code == 0  # no verdict changed
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [moved["name"] for moved in found["results"]["moved"]] == ["odd", "only"]
    assert found["results"]["moved"][1]["difference"] == 1.0
    assert found["results"]["verdicts"] == []
