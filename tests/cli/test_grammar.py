"""One grammar for all commands: a word for an option means one thing, and commands are short."""

import inspect
import re
from collections import defaultdict

import pytest

from policychord.choices.settings import ChoiceSettings
from policychord.cli.options import Given, offer, settle
from policychord.tracks.settings import TrackPlan

from .test_pages import COMMANDS
from .test_results import record_of

# One meaning, in the words of the command: of which table, of which file, in which task.
OWN_WORDS = {"--animation", "--columns", "--eps", "--experiment", "--out", "--prior-mean", "--seeds", "--settings"}
LEAVES = {path: command for path, command in COMMANDS.items() if path and not hasattr(command, "commands")}


def test_an_option_has_one_meaning_everywhere():
    meanings = defaultdict(set)
    for command in LEAVES.values():
        for param in command.params:
            if param.param_type_name == "option":
                meanings[param.opts[0]].add(re.sub(r" \[dim\].*", "", param.help or ""))
    assert {name for name, words in meanings.items() if len(words) > 1} <= OWN_WORDS
    assert {"--out", "--seed", "--jobs", "--json"} <= set(meanings)
    assert not {"--workers", "--arms-names"} & set(meanings)
    assert not [words for each in meanings.values() for words in each if "?." in words]


def test_no_command_function_takes_more_than_eight_parameters():
    for path, command in LEAVES.items():
        function = inspect.unwrap(command.callback)
        assert len(inspect.signature(function).parameters) <= 8, path


@pytest.mark.parametrize("group", ["choices", "tracks", "agents"])
def test_every_group_can_be_tried_checked_fitted_and_shown(group):
    assert {"simulate", "check", "fit", "show"} <= {path[1] for path in LEAVES if path[0] == group}


def test_an_option_says_what_its_setting_says():
    (rate,) = offer(TrackPlan, {"smoothing.window": "SECONDS"})
    assert (rate.flag, rate.place) == ("--window", "smoothing.window")
    given = Given(ChoiceSettings, {"--eps": ("eps", 0.2), "--recover": ("recover", False)})
    assert settle(given) == ChoiceSettings(eps=0.2)
    for flag, place, value, said in (("--eps", "eps", 0.0, "--eps 0: must be at least 1e-09"),
                                     ("--also", "also", 3, "--also 3: must be text")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            settle(Given(ChoiceSettings, {flag: (place, value)}))
    with pytest.raises(ValueError, match="--radii 'a,b': write numbers with commas"):
        settle(Given(TrackPlan, {"--radii": ("forces.radii", "a,b")}))
    found = settle(Given(TrackPlan, {"--columns": ("columns", "id=fish, x=px"), "--goal": ("forces.goal", "1,2"),
                                     "--forces": ("forces.forces", "persist,goal")}))  # fmt: skip
    assert (found.columns, found.forces.goal) == ({"id": "fish", "x": "px"}, (1.0, 2.0))


def test_zero_is_a_value_and_not_the_absence_of_one():
    assert settle(Given(TrackPlan, {"--surrogates": ("surrogates", 0)})).surrogates == 0


def test_an_old_option_works_with_a_note(here, tmp_path):
    (tmp_path / "plan.toml").write_text("")
    answer = here("sweep", "run", tmp_path / "plan.toml", "--workers", 1)
    assert "--workers is now called --jobs" in answer.err


def test_policies_are_made_checked_weighed_and_shown(here, tmp_path):
    table, out = tmp_path / "policies.csv", tmp_path / "out"
    assert record_of(here("agents", "simulate", table, "--policies", 2, "--states", 4, "--json"))["files"]
    assert record_of(here("agents", "check", table, "--json"))["results"]["states"] == "4"
    record = record_of(here("agents", "fit", table, "--out", out, "--prior", "1,3", "--json"))
    weights, names = record["results"]["weights"], record["results"]["policies"]
    assert len(weights) == 4
    assert all(abs(sum(row) - 1) < 1e-9 and min(row) > 0 for row in weights)
    assert max(record["results"]["gap"]) <= 1e-10
    costs = {row["agent"]: -row["mean"] for row in record["results"]["contest"]}
    assert set(costs) == {*(f"{name} alone" for name in names), "fixed mixture", "cheapest", "composed"}
    assert costs["cheapest"] <= costs["composed"] <= max(costs[f"{name} alone"] for name in names)
    shown = here("agents", "show", out)
    assert record["notes"][0] in " ".join(shown.out.split())
    assert "policychord agents fit" in shown.out
    wrong = here("agents", "fit", table, "--prior", "1,2,3")
    assert (wrong.code, "give 2 positive shares" in wrong.err) == (2, True)
    assert here("agents", "show", tmp_path).code == 2


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("x,l,0,.9,.1 x,r,1,.1,.9 y,l,1,.9,.1 y,r,0,.1,.9", "Picking the cheapest policy in each state costs less"),
        ("x,l,5,1,0 x,r,900,0,1 y,l,900,1,0 y,r,5,0,1", "Composing pays: "),
        ("$\\foo$,l,5,1,0 $\\foo$,r,900,0,1", "Composing does not pay here: "),
    ],
)
def test_the_verdict_names_who_is_cheaper_than_the_composed_policies(here, tmp_path, cells, said):
    (tmp_path / "p.csv").write_text("\n".join(["state,action,cost,a,b", *cells.split()]))
    record = record_of(here("agents", "fit", tmp_path / "p.csv", "--out", tmp_path / "out", "--json"))
    assert record["notes"][0].startswith(said)
    costs = {row["agent"]: -row["mean"] for row in record["results"]["contest"]}
    assert ("cheapest" in record["notes"][0]) == (costs["composed"] > costs["cheapest"] + 1e-3)


def test_a_cost_that_hardly_counts_and_policies_that_do_the_same_are_named(here, tmp_path):
    (tmp_path / "p.csv").write_text("action,cost,a,b\nx,1,0.5,0.5\ny,1.001,0.5,0.5\n")
    notes = record_of(here("agents", "fit", tmp_path / "p.csv", "--out", tmp_path / "out", "--json"))["notes"]
    assert any("a and b do the same in every state" in note for note in notes)
    assert any("cost hardly counts" in note for note in notes)


def test_a_table_of_choices_is_checked_without_fitting(here, tmp_path):
    made = tmp_path / "choices.csv"
    here("choices", "simulate", made, "--subjects", 2, "--blocks", 2)
    record = record_of(here("choices", "check", made, "--json"))
    assert record["results"] == {"people": 2, "trials": 40, "arms": 2, "left_out": 0}
    assert not (tmp_path / "out").exists()
    made.write_text(made.read_text().replace("choice", "picked", 1))
    options = ("--columns", "choice=picked", "--missed", "no answer", "--longest-rt", "5000")
    answer = here("choices", "check", made, *options)
    assert f"choices fit {made} --columns choice=picked --missed 'no answer' --longest-rt 5000" in answer.out
