"""What type checkers see: `problem` gives the kind of problem that its arguments say, and verbs take both kinds."""

import re
import sys

import pytest
from mypy import api

BEGIN = """\
from typing import assert_type
import policychord as pc
from policychord import Certificate, CircuitPath, ConvexProblem, Equilibrium, Path, Problem

pi, cost, prior = [[0.9, 0.1], [0.1, 0.9]], [0.0, 1.0], [0.5, 0.5]
paper = pc.problem(pi=pi, action_cost=cost, eps=0.1, prior=prior)
sparse = pc.problem(pi=pi, action_cost=cost, eps=0.1, regulariser=pc.Tsallis(1.5))
"""
MIXTURE = "pc.problem(pi=pi, action_cost=cost, eps=0.1"
KNOWN = {
    "paper": "Problem",
    "pc.problem(log_pi=pi, action_cost=cost, eps=0.1, log_prior=prior, combine='mixture')": "Problem",
    f"{MIXTURE}, regulariser=None)": "Problem",
    "sparse": "ConvexProblem",
    f"{MIXTURE}, combine='product')": "ConvexProblem",
    f"{MIXTURE}, combine='local product', regulariser=pc.Entropy(0.7))": "ConvexProblem",
    "pc.problem(complexity=lambda w: w @ w, n=2, eps=0.1, prior=prior)": "ConvexProblem",
    "pc.problem(complexity=max, n=2, eps=0.1, parameters=cost, regulariser=pc.Tsallis(2.0))": "ConvexProblem",
    # whether the entropy has caps is known when it runs
    f"{MIXTURE}, regulariser=pc.Entropy())": "Problem | ConvexProblem",
    f"{MIXTURE}, combine=str(0))": "Problem | ConvexProblem",
    "pc.solve(paper)": "Equilibrium",
    "pc.solve(sparse)": "Equilibrium",
    "pc.certify(sparse, prior)": "Certificate",
    "pc.flow(sparse)": "Path",
    "pc.circuit(sparse)": "CircuitPath",
}
REFUSED = (
    "assert_type(paper, ConvexProblem)",
    "assert_type(sparse, Problem)",
    "pc.problem(pi=pi, eps=0.1)",
    "pc.problem(complexity=max, n=2, eps=0.1, pi=pi)",
    f"{MIXTURE}, regulariser='Tsallis')",
    *(f"pc.{verb}(pi, prior)" for verb in ("complexity", "primitive_cost", "energy", "gate", "certify", "dissipation")),
    *(f"pc.{verb}(pi)" for verb in ("solve", "flow", "circuit")),
)
SETTINGS = """\
[mypy]
follow_imports = skip
[mypy-policychord,policychord._types,policychord.core.*]
follow_imports = silent
"""  # the rest of the library, and of what it uses, would take a minute
LINES = (*(f"assert_type({expression}, {kind})" for expression, kind in KNOWN.items()), *REFUSED)


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """mypy's errors about each line of `LINES`."""
    folder = tmp_path_factory.mktemp("types")
    file, settings = folder / "snippet.py", folder / "mypy.ini"
    file.write_text(BEGIN + "\n".join(LINES), encoding="utf-8")
    settings.write_text(SETTINGS, encoding="utf-8")
    limit = sys.getrecursionlimit()
    out, complaints, _ = api.run([str(file), "--config-file", str(settings), "--cache-dir", str(folder / "cache")])
    sys.setrecursionlimit(limit)  # mypy raises it for its whole process
    assert not complaints
    first = BEGIN.count("\n") + 1
    numbers = [int(number) - first for number in re.findall(r"snippet\.py:(\d+): error: ", out)]
    assert all(number >= 0 for number in numbers), out
    return {LINES[number] for number in numbers}


@pytest.mark.parametrize(("expression", "kind"), KNOWN.items())
def test_the_kind_of_problem_is_known_before_it_runs(errors, expression, kind):
    assert f"assert_type({expression}, {kind})" not in errors


@pytest.mark.parametrize("line", REFUSED)
def test_what_does_not_fit_is_refused_before_it_runs(errors, line):
    assert line in errors
