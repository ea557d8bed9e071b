"""Rules as data: readings, limits for fewer seeds, what would turn a verdict around, and how often it is the same."""

import numpy as np
import pytest

from policychord_paper import STUDIES, load_study
from policychord_paper.claim import (
    Claim,
    Condition,
    Fewer,
    Quantity,
    Revision,
    Rule,
    _Move,
    _nearest_flip,
    _parts_that_hold,
    _verdict_of,
    all_of,
    check_claim,
    history_text,
    in_parts,
    in_readings,
    judge_claim,
    robustness_text,
    rule_text,
)
from policychord_paper.flock.report import STUDY as FLOCK
from policychord_paper.quadrotor.report import STUDY as QUADROTOR
from policychord_paper.reproduce import DRAWS, _judge_again

from .flock.flights import STUDY_SIZE, as_claimed, made, put
from .quadrotor.invented import SMALL, evidence


def found(**values):
    return {name: value if isinstance(value, Quantity) else Quantity(value) for name, value in values.items()}


TWO = in_parts({"a": (Condition("x", ">", 1.0),), "b": (Condition("y", "<", 10.0), Condition("z", ">=", 0.5))})


@pytest.mark.parametrize(
    ("measured", "verdict", "moves"),
    [
        # reproduced: the part that is nearest to failing decides
        ({"x": 2.0, "y": 9.0, "z": 0.9}, "partly", (_Move("y", 10.0, 9.0),)),
        # partly: both failing conditions of the part have to move, or the part that holds
        ({"x": 4.0, "y": 11.0, "z": 0.4}, "reproduced", (_Move("y", 10.0, 11.0), _Move("z", 0.5, 0.4))),
        ({"x": 1.01, "y": 99.0, "z": 0.4}, "not reproduced", (_Move("x", 1.0, 1.01),)),
        # not reproduced: one part is enough
        ({"x": 0.9, "y": 99.0, "z": 0.4}, "partly", (_Move("x", 1.0, 0.9),)),
    ],
)
def test_the_smallest_change_of_limits_that_changes_the_verdict(measured, verdict, moves):
    flip = _nearest_flip(TWO, found(**measured))
    assert (flip.verdict, flip.moves) == (verdict, moves)
    # it does what it says: with limits moved a little further, the verdict is the other one
    moved = {move.quantity: move.past for move in moves}

    def change(condition):
        if condition.quantity not in moved:
            return condition
        further = 1e-9 if condition.relation in ("<", "<=") else -1e-9
        held = _parts_that_hold(all_of(condition), found(**measured))[""]
        return condition._replace(limit=moved[condition.quantity] + (-further if held else further))

    parts = tuple(part._replace(conditions=tuple(map(change, part.conditions))) for part in TWO.parts)
    assert _verdict_of(_parts_that_hold(Rule(parts), found(**measured))) == verdict


def test_limits_that_move_together_are_in_the_order_of_the_rule():
    """A run that was killed and continued must write the report of one that was not, bit for bit."""
    names = [f"part {number}" for number in range(9)]
    rule = in_parts({name: (Condition(name, ">", 1.0),) for name in names})
    values = found(**dict.fromkeys(names, 0.99) | {"part 4": 100.0})
    flip = _nearest_flip(rule, values)
    assert flip.verdict == "reproduced"
    assert [move.quantity for move in flip.moves] == [name for name in names if name != "part 4"]


def test_what_is_no_number_cannot_be_turned():
    assert _nearest_flip(all_of(Condition("x", ">", 1.0)), found(x=np.nan)) is None


def test_the_number_of_seeds_is_no_measurement():
    rule = all_of(Condition("x", ">", 1.0), Condition("seeds", ">=", 8))
    assert _nearest_flip(rule, found(x=3.0, seeds=8)).moves == (_Move("x", 1.0, 3.0),)


def test_a_limit_for_fewer_seeds():
    rule = all_of(Condition("p", "<", 1e-7, Fewer("seeds", 1000, 0.05)))
    assert _parts_that_hold(rule, found(p=0.01, seeds=60)) == {"": True}
    assert _parts_that_hold(rule, found(p=0.01, seeds=1000)) == {"": False}
    assert rule_text(rule) == "p < 1e-07 (0.05 if seeds < 1000)"


def test_every_reading_has_its_parts():
    both = in_readings(TWO, "", "script")
    assert [part.name for part in both.parts] == ["a", "b", "script: a", "script: b"]
    assert both.parts[2].conditions == (Condition("script: x", ">", 1.0),)
    assert [part.name for part in in_readings(all_of(Condition("x", ">", 1)), "", "script").parts] == ["", "script"]


def test_a_rule_says_when_it_was_set():
    assert history_text((), "partly") == "Rule fixed beforehand."
    told = history_text((Revision("x > 0", "reproduced", "x was too easy"), Revision("", None, "new")), "partly")
    assert told == "Set after a measurement: x was too easy (before: x > 0; verdict reproduced, now partly); new."


def test_verdicts_of_seeds_drawn_anew():
    """Half of the seeds arrive, so that a share of 80% is reached in few draws; what all seeds do is always there."""
    half = made(goal_distance=np.where(np.arange(8) < 6, 1.0, 9.0))
    found = put(as_claimed(), "leaders", tenth=half)
    judged = [judge_claim(claim, STUDY_SIZE, found) for claim in FLOCK.claims]
    again = {one.id: one.robustness for one in _judge_again(FLOCK, STUDY_SIZE, found, judged)}
    assert again["F1"].same == again["F1"].draws == DRAWS
    assert 0 < again["F4"].same < DRAWS
    assert f"Same verdict in {again['F4'].same} of {DRAWS}" in robustness_text(again["F4"])


def test_paired_flights_are_drawn_together():
    told, drawn = QUADROTOR.redraw(SMALL, evidence(), 3)
    assert told.resamples <= 100
    assert set(drawn.stale_point.pd) == {"baseline", "stabilise", "track", "one-step gate", "equilibrium, sample"}
    before, after = evidence().stale_point.pd, drawn.stale_point.pd
    rows = [np.argmax(before["baseline"].cost == cost) for cost in after["baseline"].cost]
    for name, flight in after.items():
        np.testing.assert_array_equal(flight.cost, before[name].cost[rows])


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_has_a_null_and_an_alternative(name):
    study = load_study(name)
    kinds = {claim.id: set() for claim in study.claims}
    for world in study.worlds:
        for claim in world.claims:
            kinds[claim].add(world.expected)
    assert kinds == {claim: {"rejected", "accepted"} for claim in kinds}


def test_a_rule_that_its_null_passes_is_seen():
    """A null is rejected by any verdict but reproduced; an alternative is accepted by that one alone."""
    claim = Claim("X", "x is large", "", TWO, lambda settings, evidence: evidence)
    for values, got in (((2.0, 9.0), "reproduced"), ((2.0, 99.0), "partly"), ((0.0, 99.0), "not reproduced")):
        evidence = {"x": values[0], "y": values[1], "z": 0.9, "shown": 1.0}
        null, other = (check_claim(claim, None, evidence, "w", "", kind) for kind in ("rejected", "accepted"))
        assert (null.got, null.holds, other.holds) == (got, got != "reproduced", got == "reproduced")
        assert set(null.measured) == {"x", "y", "z"}


def test_flights_that_are_made_have_the_answers_that_are_known():
    """Worlds of the flock on invented flights: those that are made and not flown are accepted."""
    evidence = as_claimed()
    claims = {claim.id: claim for claim in FLOCK.claims}
    for world in FLOCK.worlds:
        if world.name.startswith(("a straight flight", "a wheel", "a sweet spot", "balance with order", "one temp")):
            for name in world.claims:
                known = world.evidence(STUDY_SIZE, evidence)
                check = check_claim(claims[name], *known, world.name, world.what, world.expected)
                assert check.holds, (world.name, name, check.measured)
