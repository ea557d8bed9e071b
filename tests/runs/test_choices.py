"""A fit of choices into a folder: what is there belongs to one run, whatever interrupts it."""

import pytest

from policychord.choices import plan_models, synthetic
from policychord.runs import choices as running
from policychord.runs import page


def test_an_interrupted_fit_leaves_no_file_of_an_earlier_one(tmp_path, monkeypatch):
    """Ctrl-C while figures are drawn: the earlier run's tables, figures and draws are gone, other files stay."""
    earlier = ("report.html", "weights.csv", "shrunk.csv", "figures/weights.png", "posterior.zarr/zarr.json")
    for name in (*earlier, "notes.txt", "figures/mine.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    people = synthetic("2", 3, blocks=2, trials=10)
    plan = plan_models(people.task, models=("Value",))
    result = running.run_choices(people, plan, running.ChoiceChecks(False, False, False), lambda *_: None)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "save_figure", interrupt)
    with pytest.raises(KeyboardInterrupt):
        running.write_choices(result, running.results_of(result), tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"notes.txt", "figures/mine.png", "summary.md", "subjects.csv", "models.csv"}


def test_whatever_a_fit_writes_is_among_what_is_removed(tmp_path):
    people = synthetic("2", 3, blocks=2, trials=10)
    plan = plan_models(people.task, models=("Value", "Composed"))
    result = running.run_choices(people, plan, running.ChoiceChecks(False, False, True), lambda *_: None)
    files = running.write_choices(result, running.results_of(result, shrunk=True), tmp_path, "Value")
    assert {file.relative_to(tmp_path).as_posix() for file in files} <= set(running.WRITTEN)
