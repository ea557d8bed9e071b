"""The list of `make mutants` fits the present source, and the tool tells noticed from unnoticed changes."""

import ast
import shutil
import subprocess
import sys

import pytest
from benchmarks import mutants
from benchmarks.mutants import ROOT, SOURCE, Mutation, changed, files_of, package_of

MUTATIONS = mutants.load()
IDS = [f"{mutation.file}:{number}" for number, mutation in enumerate(MUTATIONS)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=IDS)
def test_every_mutation_changes_one_place_of_the_present_source(mutation):
    source = (SOURCE / mutation.file).read_text(encoding="utf-8")
    assert source.count(mutation.old) == 1, "the source has moved on: give the new text, and see that tests notice it"
    assert ast.dump(ast.parse(changed(mutation, source))) != ast.dump(ast.parse(source))
    assert files_of(mutation.tests)
    for path in files_of(mutation.tests):
        assert path.exists(), path


def test_no_mutation_stands_twice():
    assert len({(mutation.file, mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS)


def test_a_text_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="2 times"):
        changed(Mutation("x.py", "a", "b", ("t",)), "a a")


TOOL = """
import sys
from pathlib import Path
from benchmarks.mutants import Mutation, try_out
tree, judge, opening = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
news = ('\"\"\"mutated.\"\"\"', '\"\"\"another.\"\"\"')
seen, unseen = (Mutation("policychord/wording.py", opening, new, (judge,)) for new in news)
sound = {}
fates = [try_out(seen, tree, sound), try_out(unseen, tree, sound)]
Path(judge).write_text("def test_it():\\n    raise ValueError")
print(*fates, try_out(seen, tree, {}), sep="; ")
"""


def test_the_tool_tells_noticed_from_survived(tmp_path):
    """In a process of its own: the tool forks, and must not have loaded the package itself."""
    tree = tmp_path / "src"
    shutil.copytree(SOURCE / "policychord", tree / "policychord", ignore=shutil.ignore_patterns("__pycache__"))
    judge = tmp_path / "test_judge.py"
    lines = ("from policychord import wording", "def test_it():", "    assert 'mutated' not in wording.__doc__")
    judge.write_text("\n".join(lines), encoding="utf-8")
    source = (SOURCE / "policychord" / "wording.py").read_text(encoding="utf-8")
    command = [sys.executable, "-c", TOOL, tree, judge, source[: source.index("\n")]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "noticed; survived; tests fail without it", done.stderr
    assert (tree / "policychord" / "wording.py").read_text(encoding="utf-8") == source


def test_a_result_is_stored_until_its_file_or_tests_change(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(mutants, "try_out", lambda mutation, *_: tried.append(mutation) or "noticed")
    monkeypatch.setattr(mutants, "reason", lambda _: "a test")
    chosen, out = list(MUTATIONS[:2]), tmp_path / "results.json"
    mutants.run_all(chosen, out, fresh=False)
    mutants.run_all(chosen, out, fresh=False)
    assert tried == chosen
    mutants.run_all(chosen, out, fresh=True)
    assert len(tried) == 4


def test_packages_are_folders_or_files():
    assert package_of(Mutation("policychord/core/flow.py", "a", "b", ())) == "core"
    assert package_of(Mutation("policychord_paper/theory/claims.py", "a", "b", ())) == "theory"
    assert package_of(Mutation("policychord/population.py", "a", "b", ())) == "population"
