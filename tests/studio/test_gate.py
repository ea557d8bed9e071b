"""The gate's pictures show what the library computes, and the snippet computes the same."""

import numpy as np
import pytest

from policychord.core.objective import certify, energy
from policychord.core.stability import circuit_stability
from policychord.studio.inputs import describe_inputs
from policychord.studio.pages import gate
from policychord.studio.pages.gate import INPUTS, _GateSettings


@pytest.fixture(params=[{}, {"eps": 0.03, "ladder": "plain", "prior_3": 4.0, "tau": 2.0}], ids=["default", "changed"])
def settings(request):
    return _GateSettings(**request.param)


def test_weights_are_optimal_and_lowest_on_the_landscape(settings):
    one = gate._gate_problem(settings)
    shown = gate._equilibrium_frame(settings)
    assert certify(one, shown.arrays["weights"]).gap <= 1e-10
    assert shown.arrays["landscape"].min() >= -1e-12
    nearest = np.abs(shown.arrays["grid"] - shown.arrays["weights"]).sum(axis=1).argmin()
    assert shown.arrays["landscape"][nearest] < np.median(shown.arrays["landscape"])


def test_the_grid_covers_the_simplex():
    grid = gate._simplex_grid(6)
    assert grid.shape == (28, 3)
    np.testing.assert_allclose(grid.sum(axis=1), 1.0)
    assert len(np.unique(grid.round(9), axis=0)) == 28
    np.testing.assert_array_equal(grid[[0, 21, 27]], np.eye(3))  # top, left, right, as the page draws them


def test_the_flow_starts_where_it_was_clicked_and_runs_downhill(settings):
    path = gate._flow_frame(print, settings).arrays
    np.testing.assert_allclose(path["weights"][0], gate._start(settings), atol=1e-12)
    assert np.all(np.diff(path["energy"]) <= 1e-9)
    assert path["energy"][-1] < 1e-3 * path["energy"][0]


def test_the_circuit_and_its_verdict(settings):
    shown = gate._circuit_frame(print, settings)
    assert shown.header["stable"] == bool(
        circuit_stability(gate._gate_problem(settings), gate._scales(settings)).stable
    )
    best = gate._equilibrium_frame(settings).arrays["weights"]
    late = shown.arrays["w"][-60:]
    assert (np.abs(late - best).max() < 0.02) == shown.header["stable"]


def test_a_plain_ladder_swings_when_it_is_cold():
    for ladder in ("plain", "stable"):
        cold = _GateSettings(eps=0.02, ladder=ladder)
        assert circuit_stability(gate._gate_problem(cold), gate._scales(cold)).stable == (ladder == "stable")


def test_the_snippet_runs_and_says_the_same(settings, capsys):
    found: dict = {}
    exec(gate._snippet(settings), found)
    shown = gate._equilibrium_frame(settings)
    np.testing.assert_allclose(found["best"].weights, shown.arrays["weights"], atol=1e-9)
    np.testing.assert_allclose(energy(found["posed"], found["best"].weights), shown.header["energy"], atol=1e-12)
    path = gate._flow_frame(print, settings).arrays["weights"]
    np.testing.assert_allclose(found["path"].weights[-1], path[-1], atol=1e-8)
    assert "proved within" in capsys.readouterr().out


def test_a_sparse_gate_has_exact_zeros_a_flow_and_a_circuit():
    sparse = _GateSettings(regulariser="Tsallis", alpha=2.0, spread_2=1.5)
    shown = gate._equilibrium_frame(sparse)
    assert any(shown.header["zeros"])
    assert not any(gate._equilibrium_frame(_GateSettings(spread_2=1.5)).header["zeros"])
    np.testing.assert_array_equal(shown.arrays["weights"] == 0.0, shown.header["zeros"])
    assert certify(gate._gate_problem(sparse), shown.arrays["weights"]).gap <= 1e-10
    state, parts = gate._change(gate.GATE.begin(), sparse.model_dump(exclude_defaults=True)), {}
    while not gate.GATE.settled(state):
        state, one = gate._frame(state)
        parts |= {} if one is None else {one.part: one}
    np.testing.assert_allclose(parts["flow"].arrays["weights"][-1], shown.arrays["weights"], atol=1e-3)
    assert parts["circuit"].header["stable"]
    np.testing.assert_allclose(parts["circuit"].arrays["weights"][-1], shown.arrays["weights"], atol=1e-3)
    found: dict = {}
    exec(gate._snippet(sparse), found)
    np.testing.assert_allclose(found["best"].weights, shown.arrays["weights"], atol=1e-9)


def test_every_setting_has_a_control_with_words():
    built = describe_inputs([_GateSettings], INPUTS)
    assert {control["name"] for control in built} == set(_GateSettings.model_fields)
    for control in built:
        assert control["description"].endswith(".")
        default = _GateSettings.model_fields[control["name"]].default
        assert control["kind"] == "choice" or control["low"] <= default <= control["high"]
