"""Flights made of given numbers, so that claims and findings can be tested without flying."""

import jax
import numpy as np

from policychord.loops import Trace
from policychord.worlds.flock.flights import FlockFlight
from policychord.worlds.flock.measures import Measures
from policychord.worlds.flock.settings import scenario
from policychord_paper.flock.experiments import FlockStudySettings, Forms, _plan

STEPS, EVERY = 200, 20
ORDERED = np.where(np.arange(STEPS) < 20, 0.5, 0.99)  # polarized from the step on at which weights are balanced
STUDY_SIZE = FlockStudySettings(goal_seeds=2, temperature_seeds=2, shorten=0.1)


def made(
    seeds=8, steps=STEPS, leader_sd=0.2, follower_sd=0.1, weights=(0.5, 0.3, 0.2), linked=1.0, raised=90.0, **series
):
    """A flight whose series have these values: a number, one for each seed, one for each step, or one for each pair."""

    def filled(value, length=steps):
        value = np.asarray(value, dtype=float)
        return np.broadcast_to(value[:, None] if value.shape == (seeds,) else value, (seeds, length)).copy()

    usual = {
        "polarization": 0.97, "milling": 0.05, "goal_distance": 19.0, "pair_distance": 0.3, "spread": 2.0,
        "imbalance": 0.1, "balanced": 0.9, "leader_imbalance": 0.5,
        "follower_imbalance": np.where(np.arange(steps) < 20, 0.4, 0.1),
    }  # fmt: skip
    by_boid = {
        "leader_sd": leader_sd, "follower_sd": follower_sd, "leader_sd_before": leader_sd,
        "follower_sd_before": follower_sd,
    }  # fmt: skip
    measured = Measures(
        **{name: filled(value) for name, value in (usual | series).items()},
        **{name: filled(value, 3) for name, value in by_boid.items()},
        groups=filled(1.0, -(-steps // EVERY)), largest_group=filled(1.0, -(-steps // EVERY)),
        linked=filled(linked, -(-steps // EVERY)), every=EVERY, raised=np.tile([100.0, raised], (seeds, 1)),
        leader_weights=np.full((seeds, steps, 1, 3), 1 / 3), follower_weights=np.full((seeds, steps, 1, 3), 1 / 3),
        largest_gap=1e-11,
    )  # fmt: skip
    shown = Trace(*[None] * len(Trace._fields))._replace(weights=np.broadcast_to(weights, (1, steps, 4, 3)))
    return FlockFlight(scenario("leaders", steps=steps, seeds=seeds), measured, shown)


def everywhere(flight):
    """The same flight in every place of the evidence."""
    structure = jax.tree_util.tree_structure(_plan(STUDY_SIZE))
    return jax.tree_util.tree_unflatten(structure, [flight] * structure.num_leaves)


def put(evidence, theme, **flights):
    """The evidence with other flights in one of its themes, in either order of moving."""
    in_turn = evidence.in_turn
    if theme in in_turn._fields:
        in_turn = in_turn._replace(**{theme: getattr(in_turn, theme)._replace(**flights)})
    return evidence._replace(**{theme: getattr(evidence, theme)._replace(**flights)}, in_turn=in_turn)


def as_claimed():
    """Evidence for which every claim is reproduced."""
    near, far = made(goal_distance=1.0), made()
    settling = np.where(np.arange(STEPS) < 20, 0.4, 0.1)
    evidence = everywhere(far)
    evidence = put(evidence, "leaderless", gated=made(polarization=ORDERED, imbalance=settling))
    mill = made(milling=0.95, polarization=0.1)
    evidence = put(evidence, "milling", ring=mill, random_start=mill)
    evidence = put(evidence, "leaders", tenth=near, fifth=near, everyone=near)
    cold, middle, hot = (
        made(goal_distance=distance + spread * np.arange(8.0), imbalance=imbalance, leader_imbalance=0.1)
        for distance, spread, imbalance in ((9.0, 0.0, 0.2), (1.0, 0.1, 0.1), (14.0, 0.0, 0.02))
    )
    evidence = put(evidence, "temperatures", cold=cold, middle=middle, hot=hot)
    guided = Forms((near, far), (near, far))
    return evidence._replace(couzin=guided, cucker_smale=guided, vicsek=guided)
