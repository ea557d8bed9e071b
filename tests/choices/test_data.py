"""A table of choices is read whole, or refused with every problem and its rows."""

import hashlib
import html
import io
import os
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from benchmarks.attack import attack_tables

from policychord import cli
from policychord.choices import fetch as fetching
from policychord.choices import figures
from policychord.choices.compare import analyse
from policychord.choices.data import TASKS, DataError, Reading, Task, as_csv, as_table, parse_choices, read_choices
from policychord.choices.estimate import fit
from policychord.choices.learners import believe
from policychord.choices.models import classic
from policychord.choices.report import about_data, weight_table
from policychord.runs.page import markdown


def text_of(rows) -> bytes:
    return ("\n".join(",".join(map(str, row)) for row in rows) + "\n").encode()


def spoil(table, row, column, value):
    table[row][table[0].index(column)] = value
    return table


def without(table, column):
    at = table[0].index(column)
    return [row[:at] + row[at + 1 :] for row in table]


def drop(table, keep):
    return [table[0], *(row for row in table[1:] if keep(row))]


# what is done to a correct table, and what the message must say
BROKEN = {
    "missing column": (lambda t: text_of(without(t, "choice")), ["missing column choice", "'reward'"]),
    "two missing columns": (lambda t: text_of(without(without(t, "choice"), "reward")), ["columns choice, reward"]),
    "column twice": (lambda t: text_of([[*row, row[3]] for row in t]), ["occur twice", "'choice'"]),
    "extra cell": (lambda t: text_of([*t[:4], [*t[4], 9], *t[5:]]), ["row 5 (7 cells)", "6 cells of the header"]),
    "row of commas": (lambda t: text_of([*t, [""] * 6]), ["row 26", "no values"]),
    "empty cell": (lambda t: text_of(spoil(t, 3, "reward", "")), ["reward must be a number", "row 4 (empty)"]),
    "text for a number": (lambda t: text_of(spoil(t, 3, "reward", "many")), ["reward must be", "row 4 ('many')"]),
    "decimal comma": (lambda t: text_of(spoil(t, 3, "reward", '"1,5"')), ["row 4 ('1,5')"]),
    "choice 0": (lambda t: text_of(spoil(t, 6, "choice", 0)), ["choice must be 1 or 2", "row 7 ('0')", "--missed"]),
    "choice 3": (lambda t: text_of(spoil(t, 6, "choice", 3)), ["choice must be 1 or 2", "row 7 ('3')"]),
    "half a choice": (lambda t: text_of(spoil(t, 6, "choice", 1.5)), ["row 7 ('1.5')"]),
    "reward NaN": (lambda t: text_of(spoil(t, 2, "reward", "nan")), ["reward must be a number", "row 3 ('nan')"]),
    "reward infinite": (lambda t: text_of(spoil(t, 2, "reward", "inf")), ["finite", "row 3 ('inf')"]),
    "reward too large": (lambda t: text_of(spoil(t, 2, "reward", "-2e12")), ["lies beyond 1e+12", "row 3 ('-2e12')"]),
    "same trial twice": (lambda t: text_of([*t, t[5]]), ["occur twice", "row 26 (subject 1, block 1, trial 5)"]),
    "negative RT": (lambda t: text_of(spoil(t, 8, "RT", -5)), ["RT cannot be negative", "row 9 ('-5')"]),
    "few trials": (lambda t: text_of(t[:8]), ["fewer than 10 trials", "subject 1"]),
    "slow throughout": (
        lambda t: text_of([t[0], *([*r[:5], 30_000] for r in t[1:])]),
        ["fewer than 10 trials", "20000 ms", "subject 1, 2"],
    ),
    "nobody": (lambda t: text_of(spoil(t, 2, "subject", "")), ["subject is empty", "row 3"]),
    "half a trial": (lambda t: text_of(spoil(t, 2, "trial", 1.5)), ["trial must be a whole number", "row 3 ('1.5')"]),
    "constant reward": (lambda t: text_of([t[0], *([*r[:4], 1, 400] for r in t[1:])]), ["reward never changes"]),
    "escapes": (lambda t: text_of(spoil(t, 2, "reward", "\x1b[31m")), [r"row 3 ('\x1b[31m')"]),
    "RT in words": (lambda t: text_of(spoil(t, 2, "RT", "slow")), ["RT must be a number", "row 3 ('slow')"]),
    "markup": (lambda t: text_of(spoil(t, 2, "reward", "[/red]")), ["row 3 ('[/red]')"]),
    "no trials": (lambda t: text_of(t[:1]), ["header but no trials"]),
    "empty": (lambda t: b"", ["the file is empty"]),
    "binary": (lambda t: bytes(range(256)) * 9, ["not text"]),
    "spreadsheet": (lambda t: b"PK\x03\x04" + b"x" * 200, ["not text", "save it as CSV"]),
    "UTF-16": (lambda t: text_of(t).decode().encode("utf-16"), ["UTF-16"]),
    "Latin-1": (lambda t: text_of(spoil(t, 4, "reward", "fünf")).decode().encode("latin-1"), ["row 5", "not UTF-8"]),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_table_is_refused_in_words(kind, table, tmp_path, monkeypatch, capsys):
    """As a user meets it: one message, exit code 2, and no folder of results."""
    make, words = BROKEN[kind]
    (tmp_path / "choices.csv").write_bytes(make(table))
    out = tmp_path / "out"
    monkeypatch.setattr(
        sys, "argv", ["policychord", "choices", "fit", str(tmp_path / "choices.csv"), "--out", str(out)]
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr().err
    assert stop.value.code == 2
    for word in words:
        assert word in " ".join(said.split())
    assert "Traceback" not in said
    assert not out.exists()


@pytest.mark.parametrize("path", ["nowhere.csv", "."])
def test_a_file_that_is_not_there(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["policychord", "choices", "fit", str(tmp_path / path)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert str(tmp_path) in capsys.readouterr().err.replace("\n", "")


def test_all_problems_at_once(table, tmp_path):
    table = spoil(spoil(spoil(table, 1, "choice", 9), 2, "reward", "x"), 8, "RT", -1)
    (tmp_path / "c.csv").write_bytes(text_of([*table, table[5]]))
    with pytest.raises(DataError, match="4 kinds of problems") as found:
        read_choices(tmp_path / "c.csv", TASKS["2"])
    for word in ("row 2 ('9')", "row 3 ('x')", "row 9 ('-1')", "row 26"):
        assert word in str(found.value)


def test_whatever_is_wrong_with_a_table_is_a_sentence():
    found = attack_tables(100, seed=1)
    assert found.broken == []
    assert 50 < found.refused < 100


def test_many_rows_are_counted_not_listed(table, tmp_path):
    (tmp_path / "c.csv").write_bytes(text_of([table[0], *([*r[:3], 7, *r[4:]] for r in table[1:])]))
    with pytest.raises(DataError, match=r"row 6 \('7'\) and 19 more rows"):
        read_choices(tmp_path / "c.csv", TASKS["2"])


def test_a_good_table_in_any_order_and_dress(table, tmp_path):
    plain = tmp_path / "plain.csv"
    plain.write_bytes(text_of(table))
    known = read_choices(plain, TASKS["2"])
    assert known.choice.min() == 0
    odd = [[" Subject", "BLOCK", "trial", "choice", "reward", "rt", "comment"], *([*r, "x"] for r in table[:0:-1])]
    (tmp_path / "odd.csv").write_bytes(b"\xef\xbb\xbf" + text_of(odd).replace(b"\n", b"\r\n\r\n"))
    other = read_choices(tmp_path / "odd.csv", TASKS["2"])
    for name in ("subject", "block", "trial", "choice", "reward"):
        np.testing.assert_array_equal(getattr(known, name), getattr(other, name))


def test_slow_trials_are_learned_from_dropped_or_kept_as_declared(table, tmp_path):
    spoil(spoil(table, 3, "RT", 20_000), 9, "RT", 90_000)
    (tmp_path / "c.csv").write_bytes(text_of(table))
    found = {how: read_choices(tmp_path / "c.csv", TASKS["2"], how=Reading(doubtful=how)) for how in
             ("learn", "drop", "keep")}  # fmt: skip
    assert {how: (one.left_out, len(one.choice)) for how, one in found.items()} == {
        "learn": (2, 24), "drop": (2, 22), "keep": (0, 24)}  # fmt: skip
    learned = believe(found["learn"])
    assert (~learned.counts).sum() == 2
    assert "learned from but not scored" in found["learn"].notes[0]
    # the reward of an unscored trial is learned, its choice is not counted
    np.testing.assert_array_equal(learned.mean, believe(found["keep"]).mean)
    model = fit(classic("Value"), learned)
    assert model.log_likelihood.sum() > fit(classic("Value"), believe(found["keep"])).log_likelihood.sum()
    with pytest.raises(ValueError, match="doubtful = 'forget'"):
        read_choices(tmp_path / "c.csv", TASKS["2"], how=Reading(doubtful="forget"))


def test_more_arms_and_no_rt(table, tmp_path):
    rows = [table[0][:5], *([*r[:3], 1 + k % 4, *r[4:5]] for k, r in enumerate(table[1:]))]
    (tmp_path / "c.csv").write_bytes(text_of(rows))
    assert read_choices(tmp_path / "c.csv", Task("own", (1.0,) * 4)).choice.max() == 3
    with pytest.raises(DataError, match="choice must be 1, 2, 3"):
        read_choices(tmp_path / "c.csv", Task("own", (1.0,) * 3))


def test_tables_go_round(table, tmp_path):
    (tmp_path / "c.csv").write_bytes(text_of(table))
    once = read_choices(tmp_path / "c.csv", TASKS["2"])
    as_table(once).assign(source="synthetic cohort").to_csv(tmp_path / "d.csv", index=False)
    again = read_choices(tmp_path / "d.csv", TASKS["2"])
    np.testing.assert_array_equal(once.choice, again.choice)
    assert again.source == "d.csv, synthetic cohort"


def test_data_are_looked_for_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "data_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv(fetching.VARIABLE, raising=False)
    assert fetching.find_data() is None
    for folder in ("cache", "named", "given"):
        (tmp_path / folder).mkdir()
        for name in fetching.FILES:
            (tmp_path / folder / name).write_text("")
    assert fetching.find_data() == tmp_path / "cache"
    monkeypatch.setenv(fetching.VARIABLE, str(tmp_path / "named"))
    assert fetching.find_data() == tmp_path / "named"
    assert fetching.find_data(tmp_path / "given") == tmp_path / "given"
    with pytest.raises(ValueError, match=r"--data points to .* no data1\.csv and no data2\.csv"):
        fetching.find_data(tmp_path)


def test_fetching_without_a_network_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fetching, "_ADDRESS", "http://127.0.0.1:9/")  # nobody listens there
    monkeypatch.setattr(sys, "argv", ["policychord", "choices", "data", "fetch", "--out", str(tmp_path / "new")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr().err
    assert stop.value.code == 1
    assert "network" in said
    assert fetching.VARIABLE in said
    assert not list(tmp_path.rglob("*.csv"))


def test_fetching_refuses_other_content(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    for name in fetching.FILES:
        (tmp_path / "there" / name).write_text("something else")
    monkeypatch.setattr(fetching, "_ADDRESS", (tmp_path / "there").as_uri() + "/")
    with pytest.raises((ValueError, OSError), match="--data"):
        fetching.fetch(tmp_path / "new")


@pytest.fixture
def server(tmp_path):
    """A server on this machine that has two files."""
    folder = tmp_path / "there"
    folder.mkdir()
    for name in fetching.FILES:
        (folder / name).write_text(f"the public choices in {name}")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


def test_fetching_says_from_where_and_checks_what_came(server, tmp_path, monkeypatch, capsys):
    folder, address = server
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in fetching.FILES}
    monkeypatch.setattr(fetching, "_ADDRESS", address)
    monkeypatch.setattr(fetching, "FILES", sums)
    monkeypatch.setattr(sys, "argv", ["policychord", "choices", "data", "fetch", "--out", str(tmp_path / "new")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr()
    assert stop.value.code == 0
    assert f"data1.csv and data2.csv from {address}" in " ".join(said.err.split())
    assert "2 files" in said.out
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(sums)
    (folder / "data2.csv").write_text("something else")
    with pytest.raises(ValueError, match="not the file that was expected"):
        fetching.fetch(tmp_path / "another")


def test_make_fetches_first_only_where_it_is_asked_to():
    root = Path(__file__).parents[2]

    def planned(*words):
        told = subprocess.run(["make", "-n", "reproduce", *words], cwd=root, capture_output=True, text=True, check=True)
        return [line for line in told.stdout.splitlines() if "policychord " in line]

    assert [line.split("policychord ")[1].strip() for line in planned("DATA=fetch")] == [
        "choices data fetch", "reproduce all --quick --out out/paper",
    ]  # fmt: skip
    (only,) = planned()
    assert only.strip().endswith("--out out/paper")
    (named,) = planned("DATA=mine")
    assert named.strip().endswith("--data mine")


def test_fetched_files_are_kept(data_folder, tmp_path, monkeypatch):
    """Files that are there with the right checksum are not asked for again."""
    for name in fetching.FILES:
        (tmp_path / name).write_bytes((data_folder / name).read_bytes())
    monkeypatch.setattr(fetching, "_ADDRESS", "http://127.0.0.1:9/")
    assert [path.name for path in fetching.fetch(tmp_path)] == list(fetching.FILES)


def test_numbers_and_sources_beyond_measure_are_named(tmp_path):
    rows = [f"1,1,{trial}e300,1,0.5,made up {trial}" for trial in range(1, 31)]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["subject,block,trial,choice,reward,source", *rows]))
    with pytest.raises(DataError, match="trial must be a whole number") as caught:
        read_choices(path, TASKS["2"])
    assert "source has 30 different values" in str(caught.value)


def test_a_missing_response_time_is_no_reason_to_refuse_a_file(table, tmp_path):
    spoil(spoil(table, 3, "RT", ""), 9, "RT", "NA")
    (tmp_path / "c.csv").write_bytes(text_of(table))
    choices = read_choices(tmp_path / "c.csv", TASKS["2"])
    assert (len(choices.choice), choices.left_out) == (24, 0)
    assert choices.notes == ("RT is missing: row 4, row 10. These trials are learned from but not scored.",)
    assert "RT is missing" in about_data(analyse(choices), ())


def test_messages_quote_little(table, tmp_path):
    long = "x" * 5000
    for spoilt in (spoil([*table], 3, "reward", long), [[*table[0], long, long], *([*row, 1, 1] for row in table[1:])],
                   [[long if name == "choice" else name for name in table[0]], *table[1:]]):  # fmt: skip
        (tmp_path / "c.csv").write_bytes(text_of(spoilt))
        with pytest.raises(DataError) as caught:
            read_choices(tmp_path / "c.csv", TASKS["2"])
        assert "x" * 20 in str(caught.value)
        assert "x" * 80 not in str(caught.value)


def test_only_files_are_read(tmp_path):
    """A pipe would never end: it is refused before it is opened."""
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        with pytest.raises(DataError, match="a pipe or a device"):
            read_choices(path, TASKS["2"])
    with pytest.raises(DataError, match="a folder"):
        read_choices(tmp_path, TASKS["2"])


# text that figures, Markdown, terminals or spreadsheets would obey
HOSTILE = ["$\\frac{x$", "<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "[link](http://x.org) **bold** `code`",
           "\u202egnp.exe", "a|b"]  # fmt: skip


@pytest.mark.parametrize("source", HOSTILE)
def test_text_of_a_table_stays_text(source, table, tmp_path):
    rows = [[*table[0], "source"], *([*row, f'"{source}"'] for row in table[1:])]
    (tmp_path / "=1+1.csv").write_bytes(text_of(rows))
    found = analyse(read_choices(tmp_path / "=1+1.csv", TASKS["2"]))
    assert found.trials.source.isprintable()
    for draw in (figures.comparison, figures.weights, figures.course, figures.coefficients, figures.evidence):
        draw(found).savefig(tmp_path / "figure.svg")
    page = str(markdown(about_data(found, ()).split("\n")[0]))
    assert not re.search("<(?!/?p>)", page)
    assert html.unescape(page).startswith(f"<p>Data: {found.trials.source};")
    cells = pd.read_csv(io.StringIO(as_csv(weight_table(found))))["data"]
    assert (cells == f"'{found.trials.source}").all()


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x", "\ufe661", " =1", "\u22121"]
)
def test_formulas_are_written_as_text(text):
    """Also those with full-width signs, which some spreadsheets read like the plain ones, and in names of columns."""
    written = as_csv(pd.DataFrame({"number": [-1.5], "text": [text], "flag": [True], text: [1]}))
    assert written == f"number,text,flag,'{text}\n-1.5,'{text},True,1\n"


def test_a_word_without_a_reward_is_a_missed_trial_and_no_arm():
    """As exported by an online experiment: semicolons, decimal commas, names of its own, timeouts with empty cells."""
    lines = ["row_id;Prolific_ID;diagnosis;game_no;trial_no;key_pressed;points_won;rt_s"]
    for k in range(36):
        key = ("left", "right", "too slow", "x")[3 if k == 7 else k % 3]
        paid = f"{k % 5},5" if key in ("left", "right") else ""
        lines.append(f"{k};P{k // 18};HC;1;{k % 18 + 1};{key};{paid};0,{400 + k}")
    choices = parse_choices("\n".join(lines).encode(), "export.csv")
    said = " ".join(choices.said)
    for theirs, ours in {"Prolific_ID": "subject", "game_no": "block", "key_pressed": "choice",
                         "points_won": "reward", "rt_s": "rt", "diagnosis": "group"}.items():  # fmt: skip
        assert f"Read {theirs} as {ours}." in said
    assert "Read 'too slow', 'x' in the column choice as a missed trial" in said
    assert choices.arms == ("left", "right")
    assert "Missed trials: 13," in choices.notes[-1]
    named = Reading(arms=("left", "right", "too slow", "x"))
    with pytest.raises(DataError, match="reward must be a number"):
        parse_choices("\n".join(lines).encode(), "export.csv", how=named)


def test_all_columns_are_named_where_the_needed_ones_are_missing():
    header = [f"column{k}" for k in range(20)]
    text = ",".join(header) + "\n" + ",".join(["1"] * 20)
    with pytest.raises(DataError, match=r"'column19'.*--columns subject=...,choice=...,reward=...") as caught:
        parse_choices(text.encode(), "odd.csv")
    assert all(f"'{name}'" in str(caught.value) for name in header)


def test_a_table_of_gigabytes_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "t.csv", "wb") as file:
        file.truncate(10**9)  # takes no place on the disk
    with pytest.raises(DataError, match=r"1,000,000,000 bytes: a table of choices may have 50,000,000. Split it"):
        read_choices(tmp_path / "t.csv")
