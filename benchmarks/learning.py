"""Learning primitives, measured: `python -m benchmarks.learning PART --out FILE`, then `--show FILE [--record]`.

cohorts   planted primitives from 45 x 200 choices: recovery, and how many there are                 (20 cohorts)
designs   which experiments can tell primitives apart at all: bounds by Fisher information
em        the same cohorts by plain EM, which forgets that the gate follows the primitives
flock     planted forces of a simulated flock
people    Gershman (2018): learned primitives, hand-made ones and rivals, held out; needs --data DIR
tracks    a real group, the same; needs --data FILE
local     the local rule: what it converges to, against descent on the energy
circuit   the same with slow synapses in the six-layer circuit

Results are kept in FILE after every step; a second call goes on where the first one stopped, and `--seconds` ends a
call early.
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import policychord as pc  # noqa: E402
from policychord import inference  # noqa: E402
from policychord.inference import learning  # noqa: E402
from policychord.inference.comparison import folds_of, held_out_by  # noqa: E402
from policychord.inference.decisions import composed, rivals, setup_of  # noqa: E402
from policychord.inference.learning.count import _choose, _grown, _match_columns, degenerate, estimator_of  # noqa: E402
from policychord.inference.learning.local import drift  # noqa: E402
from policychord.inference.learning.markov import hide, markov_estimator  # noqa: E402
from policychord.inference.learning.objectives import learn_posed, log_prob, pose, with_data  # noqa: E402
from policychord.inference.parameters import natural  # noqa: E402
from policychord.primitives.base import AbstractPrimitive  # noqa: E402
from policychord.runs.compiled import keep_programs  # noqa: E402

from . import learning_record  # noqa: E402
from .learning_record import QUICK, RIVALS, SLOW, WANTED  # noqa: E402

PEOPLE, TRIALS, ARMS = 45, 200, 4
SPREAD, EPS = 2.0, 0.1  # sd of the costs of an offer, nats; temperature
APART = 0.4  # total variation that planted primitives have at least


class Book:
    """Results by name in a JSON file, written after every step."""

    def __init__(self, path: Path | None, seconds: float):
        self.path, self.seconds = path, seconds
        self.rows: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        if name not in self.rows:
            if time.process_time() > self.seconds:
                raise SystemExit(f"time is up before {name}: the same command goes on.")
            begun = time.process_time()
            found = work()
            self.rows[name] = found | {"date": date.today().isoformat()} if isinstance(found, dict) else found
            print(f"{name}: CPU {time.process_time() - begun:.1f} s", flush=True)
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_text(json.dumps(self.rows))
        return self.rows[name]


# ------------------------------------------------------------------------------------------------ cohorts


def price(offer: Any, arm: Any, k: Any) -> Any:
    return offer[arm]


def chooser(rows: Any, eps: float = EPS) -> pc.Composer:
    """An agent with tables as primitives, that sees what each action costs."""
    return pc.Composer([pc.Table(row) for row in rows], pc.Cost(price), pc.Finite(ARMS), eps)


def planted(rng: np.random.Generator, n: int = 3) -> np.ndarray:
    """Random primitives that differ: no probability below .02, total variation of every pair above .4."""
    while True:
        rows = (rng.dirichlet(np.full(ARMS, 0.7), size=n) + 0.02) / (1 + 0.02 * ARMS)
        if min(0.5 * np.abs(rows[a] - rows[b]).sum() for a in range(n) for b in range(a)) > APART:
            return rows


def cohort(seed: int, spread: float = SPREAD, eps: float = EPS) -> tuple[np.ndarray, inference.Observations]:
    """Planted primitives, and the choices of 45 people who all see the same 200 offers."""
    rng = np.random.default_rng([22, seed])
    truth, cost = planted(rng), spread * rng.normal(size=(TRIALS, ARMS))
    posed = pc.problem(pi=truth.T, action_cost=cost, eps=eps)
    prob = np.einsum("tdn,tn->td", posed.pi, pc.solve(posed).weights)
    action = (np.cumsum(prob, axis=1)[None] < rng.random((PEOPLE, TRIALS, 1))).sum(axis=-1).clip(max=ARMS - 1)
    who = np.repeat(np.arange(PEOPLE), TRIALS)
    none = np.zeros(PEOPLE * TRIALS, int)
    return truth, inference.observations(np.tile(cost, (PEOPLE, 1)), action.ravel(), k=none, subject=who)


def guess(n: int) -> pc.Composer:
    """Where optimisation runs begin, whatever the truth is."""
    return chooser(np.random.default_rng(n).dirichlet(np.full(ARMS, 2.0), size=n))


def bound(truth: np.ndarray, data: inference.Observations, eps: float, decisions: int) -> dict[str, Any]:
    """Total variations that an efficient estimate would have, from the Fisher information, by drawing."""
    family = learning.family_of_agent(chooser(truth, eps))
    start = {one.name: one.start for one in family.parameters}
    offers = np.unique(data.observation, axis=0)
    seen = inference.observations(offers, np.zeros(len(offers), int), k=np.zeros(len(offers), int))
    known = inference.information(family, start, seen)
    if known.flat:
        return {"flat": True, "mean": float("nan"), "largest": float("nan"), "often": float("nan")}
    z = np.random.default_rng(0).multivariate_normal(known.z, known.covariance / decisions, size=200)
    rows = np.array([[np.asarray(v) for v in natural(family.parameters, one).values()] for one in z])
    tv = 0.5 * np.abs(rows - truth).sum(axis=-1)
    return {"flat": False, "mean": float(tv.mean()), "largest": float(tv.max(axis=1).mean()),
            "often": float(np.mean(tv.max(axis=1) <= WANTED))}  # fmt: skip


def run_cohorts(book: Book, options: argparse.Namespace) -> None:
    posed: dict[int, Any] = {}

    def one(seed: int) -> Any:
        truth, data = cohort(seed)
        fold = folds_of(data.subject)
        rows = []
        for n in (1, 2, 3, 4, 5):
            posed[n] = with_data(posed[n], data) if n in posed else pose(guess(n), "likelihood", data)
            found = learn_posed(posed[n], starts=(1, 3, 6, 4, 4)[n - 1], seed=seed)
            rows.append((n, found, held_out_by(estimator_of(posed[n]), fold, found.z), degenerate(found, data)))
        chosen = _choose(rows, data.subject)
        three = rows[2][1]
        pi = np.stack([three.theta[f"primitive {a}[0]"] for a in range(3)], axis=1)[None]
        distance = _match_columns(pi, truth.T[None]).distance
        worst = max(_fall(row[1].paths) for row in rows)
        at_truth = [float(log_prob(posed[3], _z_of(truth)).mean()), three.value]
        return {"distance": distance.tolist(), "best": chosen.best, "chosen": chosen.chosen, "at truth": at_truth,
                "held out": {str(t.n): [t.held_out, t.behind.mean, t.behind.error] for t in chosen.tried},
                "degenerate": {str(t.n): list(t.degenerate) for t in chosen.tried}, "fell": worst,
                "steps": int(sum(len(path) - 1 for row in rows for path in row[1].paths)),
                "bound": bound(truth, data, EPS, data.size), "sentence": chosen.sentence}  # fmt: skip

    for seed in range(options.first, options.first + options.count):
        book.step(f"cohort {seed}", lambda seed=seed: one(seed))


def _fall(paths: Any) -> float:
    """The largest step in the wrong direction of an objective that should rise."""
    return max(float(np.max(-np.diff(path), initial=0.0)) for path in paths)


def _z_of(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([np.log(row[:-1]) - np.log(row[-1]) for row in rows])


# ------------------------------------------------------------------------------------------------- designs


def run_designs(book: Book, options: argparse.Namespace) -> None:
    designs = {
        "as in the cohorts": (SPREAD, EPS, TRIALS, 3), "costs half as different": (SPREAD / 2, EPS, TRIALS, 3),
        "temperature 1": (SPREAD, 1.0, TRIALS, 3), "temperature 10": (SPREAD, 10.0, TRIALS, 3),
        "2 different offers": (SPREAD, EPS, 2, 3), "one offer": (SPREAD, EPS, 1, 3),
        "all actions cost the same": (0.0, EPS, TRIALS, 3),
    }  # fmt: skip

    def one(spread: float, eps: float, offers: int, repeats: int) -> Any:
        found = []
        for seed in range(repeats):
            rng = np.random.default_rng([22, seed])
            truth, cost = planted(rng), spread * rng.normal(size=(TRIALS, ARMS))[:offers]
            none = np.zeros(offers, int)
            found.append(bound(truth, inference.observations(cost, none, k=none), eps, PEOPLE * TRIALS))
        return found

    for name, how in designs.items():
        book.step(f"design: {name}", lambda how=how: one(*how))


# ------------------------------------------------------------------------------------------------------ em


def run_em(book: Book, options: argparse.Namespace) -> None:
    """pi_a(u) <- sum_t r_ta [u_t = u] / sum_t r_ta: the M-step of a mixture whose weights do not follow pi."""

    def one(seed: int) -> Any:
        truth, data = cohort(seed)
        posed = with_data(kept[0], data) if kept else pose(guess(3), "likelihood", data)
        kept[:] = [posed]
        count, cost = posed.likelihood.data["count"], posed.likelihood.data["observation"]
        pi = np.stack([np.exp(np.asarray(one.log_rows[0])) for one in guess(3).primitives], axis=1)
        path = []
        for _ in range(300):
            w = pc.solve(pc.problem(pi=pi, action_cost=cost, eps=EPS)).weights
            joint = pi[None] * w[:, None, :]
            p = joint.sum(axis=-1)
            path.append(float((count * np.log(p)).sum() / count.sum()))
            share = (count[..., None] * joint / p[..., None]).sum(axis=0)
            pi = np.maximum(share, 1e-12) / np.maximum(share, 1e-12).sum(axis=0)
        ours = learn_posed(posed, starts=1)
        rows = np.stack([ours.theta[f"primitive {a}[0]"] for a in range(3)], axis=1)[None]
        return {"fell": float(np.maximum(-np.diff(path), 0).max()), "nats": (ours.value - path[-1]) * count.sum(),
                "falls": int((np.diff(path) < -1e-12).sum()),
                "end": path[-1], "ours": ours.value,
                "distance": _match_columns(pi[None], truth.T[None]).distance.tolist(),
                "our distance": _match_columns(rows, truth.T[None]).distance.tolist()}  # fmt: skip

    kept: list[Any] = []
    for seed in range(options.first, options.first + options.count):
        book.step(f"em {seed}", lambda seed=seed: one(seed))


# --------------------------------------------------------------------------------------------------- flock


def push(strength: Any, gain: Any, view: Any, k: Any) -> Any:
    """A force of one's own: any sum of separation, alignment and cohesion."""
    return strength * (gain[0] * view.separation + gain[1] * view.alignment + gain[2] * view.cohesion)


def boids(gains: Any, usual: pc.Composer) -> pc.Composer:
    parts = [pc.Gaussian(eqx.Partial(push, 3.0, jnp.asarray(gain)), float(np.sqrt(0.1))) for gain in gains]
    return pc.Composer(parts, usual.model, usual.actions, usual.eps)


def run_flock(book: Book, options: argparse.Namespace) -> None:
    from policychord.inference.families import flock

    design = flock()
    usual = design.family.build({one.name: jnp.asarray(one.start) for one in design.family.parameters})
    start = np.random.default_rng(7).uniform(0.0, 0.6, size=(3, 3))
    kept: list[Any] = []

    def one(seed: int) -> Any:
        data = design.simulate({}, options.decisions, 100 + seed)
        data = data._replace(k=np.zeros(data.size, int), block=np.zeros(data.size, int))
        crowd = np.zeros((data.size, 16, 2))
        close = data.observation.closeness[:, :16]
        crowd[:, : close.shape[1]] = close
        data = data._replace(observation=data.observation._replace(closeness=crowd))
        posed = with_data(kept[0], data) if kept else pose(boids(start, usual), "likelihood", data)
        kept[:] = [posed]
        found = learn_posed(posed, starts=options.starts, seed=seed)
        truth = boids(np.eye(3), usual)
        both = learning.match(found.agent, truth, data)
        gains = np.stack([np.asarray(one.mean.args[1]) for one in found.agent.primitives])[both.order]
        sd = [float(one.sd) for one in found.agent.primitives]
        return {"distance": both.distance.tolist(), "gains": gains.tolist(), "sd": sd, "value": found.value,
                "decisions": data.size, "notes": list(found.notes), "evaluations": found.optimum.evaluations,
                "degenerate": list(degenerate(found, data)),
                "weights": found.weights.mean(axis=0).tolist()}  # fmt: skip

    for seed in range(options.first, options.first + options.count):
        book.step(f"flock {seed}", lambda seed=seed: one(seed))


# -------------------------------------------------------------------------------------------------- people


def looks(belief: Any) -> Any:
    """V, RU, V/TU and TU, in their usual units of the task."""
    deviation, value = jnp.sqrt(belief.variance), belief.mean[0] - belief.mean[1]
    total = jnp.sqrt(belief.variance.sum())
    return jnp.stack([value / 10.0, (deviation[0] - deviation[1]) / 5.0, value / jnp.maximum(total, 0.1)])


class Logistic(AbstractPrimitive):
    """P(first arm) = sigmoid(slope . (1, V, RU, V/TU)): the policies of a GLM-HMM."""

    slope: Any

    def log_prob(self, actions: Any, observation: Any, k: Any) -> Any:
        z = self.slope @ jnp.concatenate([jnp.ones(1), looks(observation)])
        return jnp.stack([jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z)])


def hybrid(belief: Any, k: Any, *, coef: Any) -> Any:
    from policychord.inference.families import _hybrid

    return _hybrid(coef, belief, k)


def person(primitives: Any, eps: float = 0.1) -> pc.Composer:
    cost = pc.Reference(pc.Categorical(eqx.Partial(hybrid, coef=jnp.array([1.0, 0.2]))), floor=1e-6)
    return pc.Composer(primitives, cost, pc.Finite(2), eps)


def logistics(n: int) -> pc.Composer:
    rng = np.random.default_rng(n)
    return person([Logistic(jnp.asarray(rng.normal(size=4))) for _ in range(n)])


def hand_made() -> pc.Composer:
    from policychord.inference.families import _exploit, _risk, _uncertain

    return person({name: pc.Categorical(f) for name, f in
                   {"exploit": _exploit, "uncertainty": _uncertain, "risk": _risk}.items()})  # fmt: skip


def run_people(book: Book, options: argparse.Namespace) -> None:
    from policychord.choices.data import TASKS, Reading, read_choices
    from policychord.choices.learners import believe
    from policychord.worlds.bandit import Belief

    if options.data is None:
        raise SystemExit("people: pass --data DIR with data1.csv and data2.csv (policychord choices data fetch).")
    for number in options.experiment or ("1", "2"):
        file = options.data / f"data{number}.csv"
        trials = believe(read_choices(file, TASKS[number], how=Reading(doubtful="drop")))
        none = np.zeros(len(trials.choice), int)
        seen = Belief(trials.mean, np.maximum(trials.variance, 1e-6))
        data = inference.observations(seen, trials.choice, k=none, subject=trials.subject, block=none)
        whole = ("coef", "prior", "eps")
        plans: dict[str, Any] = {"hand-made, gate": (hand_made, whole, "gate")}
        plans["Hybrid"] = (
            lambda: person([pc.Categorical(eqx.Partial(hybrid, coef=jnp.array([1.0, 0.2])))]),
            None,
            None,
        )
        plans |= {f"hand-made, {way}": (hand_made, (), way) for way in ("constant", "softmax")}
        plans["1 learned"] = (lambda: logistics(1), ("slope",), "gate")
        for n in (2, 3, 4, 5):
            make = eqx.Partial(logistics, n)
            plans[f"{n} learned, gate"] = (make, ("slope", *whole), "gate")
            plans |= {f"{n} learned, {way}": (make, ("slope",), way) for way in RIVALS}
        score_all(book, f"experiment {number}", plans, data, looks, options)


def score_all(book: Book, title: str, plans: Any, data: Any, features: Any, options: argparse.Namespace) -> None:
    """Held-out scores of every way to explain the data, on the same folds.

    A hidden chain also knows who decides, from the decisions before. `shuffled` tells what of its score is that: the
    chain with the decisions of each subject in random order.
    """
    fold, mixed = folds_of(data.subject, options.folds), np.random.default_rng(22).random(data.size)

    def one(make: Any, free: Any, way: Any) -> Any:
        agent = make()
        if way in ("markov", "shuffled"):
            order = np.lexsort((np.arange(data.size) if way == "markov" else mixed, data.subject))
            given = hide(agent, jax.tree_util.tree_map(lambda leaf: np.asarray(leaf)[order], data), free)
            each = np.empty(data.size)
            chain = markov_estimator(given, options.starts, rounds=options.rounds)
            each[order] = held_out_by(chain, fold[order], chain.fit())
            n = len(agent.names)
            return {"each": _round(each), "parameters": fitting_size(agent, free) + n * n - 1, "told": [], **how}
        if free is None:  # one primitive with numbers of its own
            free, way = ("coef",), "gate"
            agent = agent.replace(model=pc.Cost(jnp.zeros(agent.actions.size)))
        posed = pose(agent, "likelihood", data, free, way, features if way == "softmax" else None)
        found = learn_posed(posed, starts=options.starts)
        fewer = book.rows.get(f"{title}: {len(agent.names) - 1} learned, {way}")
        learned = {"slope", "primitives"} & set(free)
        if learned and fewer is not None and found.value < fewer["inside"]:  # it missed the best hill
            again = learn_posed(posed, starts=_grown(fewer["theta"], posed)[None])
            found = max(found, again, key=lambda one: one.value)
        each = held_out_by(estimator_of(posed), fold, found.z)
        fell = _fall(found.paths)
        said = list(degenerate(found, data)) if way == "gate" else []
        kept = {name: np.round(value, 4).tolist() for name, value in found.theta.items()}
        return {"each": _round(each), "parameters": len(found.z), "told": said, "inside": found.value, "fell": fell,
                "weights": found.weights.mean(axis=0).tolist(), "sd": found.weights.std(axis=0).tolist(),
                "theta": kept, "notes": list(found.notes), **how}  # fmt: skip

    how = {"starts": options.starts, "folds": options.folds}
    book.step(f"{title}: subjects", lambda: np.unique(data.subject, return_inverse=True)[1].reshape(-1).tolist())
    for name, plan in plans.items():
        if options.only is None or options.only in name:
            book.step(f"{title}: {name}", lambda plan=plan: one(*plan))


def fitting_size(agent: pc.Composer, free: Any) -> int:
    from policychord.inference.learning.parts import of_primitives
    from policychord.inference.parameters import size

    return size(learning.family_of_agent(agent, of_primitives(agent, free)).parameters)


def _round(each: np.ndarray) -> list[float]:
    return np.round(each, 5).tolist()


# -------------------------------------------------------------------------------------------------- tracks


class Steer(AbstractPrimitive):
    """A change of velocity around any sum of the forces, with a spread, a shape and a tail of its own."""

    gain: Any  # (forces)
    form: Any  # ln sd, ln sideways, tilt, ln tail
    cells: tuple = eqx.field(static=True)

    def log_prob(self, actions: Any, observation: Any, k: Any) -> Any:
        sd, sideways, tilt, tail = jnp.exp(self.form[0]), jnp.exp(self.form[1]), self.form[2], jnp.exp(self.form[3])
        along = sd * (0.5 + 0.5 * observation.speed) ** tilt
        offset = (actions.points - self.gain @ observation.force) / jnp.stack([along, along * sideways])
        distance = offset[:, 0] ** 2 + offset[:, 1] ** 2
        return jax.nn.log_softmax(jnp.asarray(self.cells) - (1 + 0.5 * tail) * jnp.log1p(distance / tail))


def run_tracks(book: Book, options: argparse.Namespace) -> None:
    from policychord.tracks.decisions import decide
    from policychord.tracks.forces import ForceSettings
    from policychord.tracks.gating import COLLISION, PRECISION, family_of, features
    from policychord.tracks.motion import move
    from policychord.tracks.reading import read_tracks

    if options.data is None:
        raise SystemExit("tracks: pass --data FILE, a table of tracks (trial, frame, id, x, y).")
    file = options.data
    leave = tuple(options.leave_out or ())
    motion = move(read_tracks(file, rate=options.rate))
    given = _of(decide(motion, ForceSettings(leave_out=leave, every=options.every)), options.individuals)
    none = np.zeros(given.size, int)
    data = inference.observations(given.seen, given.action, k=none, subject=given.block,
                                block=given.trial * 10_000 + given.individual)  # fmt: skip
    family = family_of(given)
    cells, forces = tuple(given.cells.log_area.tolist()), len(given.names)
    model = pc.Sum(
        velocity=pc.GaussianTarget(lambda seen, change, k: change, lambda seen, k: seen.wanted, 1.0 / PRECISION),
        collision=pc.Cost(lambda seen, change, k: COLLISION * jnp.sum(jnp.maximum(seen.closeness @ change, 0.0))),
        area=pc.Cost(-given.cells.log_area),
    )

    def learned(n: int) -> pc.Composer:
        rng = np.random.default_rng(n)
        parts = [Steer(jnp.asarray(rng.normal(size=forces)), jnp.array([0.0, 0.0, 0.0, np.log(4.0)])
                       + 0.3 * jnp.asarray(rng.normal(size=4)), cells) for _ in range(n)]  # fmt: skip
        return pc.Composer(parts, model, pc.Finite(given.cells.points), 1.0)

    title, fold = file.stem, folds_of(data.subject, options.folds)
    book.step(f"{title}: subjects", lambda: np.unique(data.subject, return_inverse=True)[1].reshape(-1).tolist())
    setup = setup_of(family, data)
    start = {parameter.name: parameter.start for parameter in setup.parameters}
    models = {one.name: one for one in (composed(setup), *rivals(setup, start))}

    def known(name: str) -> Any:
        score = inference.compare([models[name]], inference.Data(setup.units, data.subject, data.subject), fold=fold,
                                  method="ml", at_once=setup.at_once).scores[0]  # fmt: skip
        inside = float(score.log_likelihood.sum()) / given.size
        return {"each": _round(score.each), "parameters": score.parameters, "told": [], "inside": inside}

    for name, new in (("chance", "chance"), ("composed", "hand-made, gate"),
                      ("constant mixture", "hand-made, constant"), ("softmax gate", "hand-made, softmax")):  # fmt: skip
        if options.only is None or options.only in new:
            book.step(f"{title}: {new}", lambda name=name: known(name))
    plans: dict[str, Any] = {"1 learned": (lambda: learned(1), ("primitives",), "gate")}
    for n in (2, 3, 4, 5):
        make = eqx.Partial(learned, n)
        plans[f"{n} learned, gate"] = (make, ("primitives", "prior", "eps"), "gate")
        plans |= {f"{n} learned, {way}": (make, ("primitives",), way) for way in RIVALS}
    score_all(book, title, plans, data, features, options)


def _of(given: Any, individuals: list[int] | None) -> Any:
    """The decisions of some individuals, with nothing left out between them: a hidden state needs what came before."""
    if not individuals:
        return given
    rows = np.isin(given.individual, individuals)
    per = {"action", "change", "trial", "frame", "individual", "position", "velocity", "neighbour", "block"}
    order = np.flatnonzero(rows)
    order = order[np.lexsort((given.frame[order], given.individual[order], given.trial[order]))]
    seen = type(given.seen)(*(field[order] for field in given.seen))
    return given._replace(seen=seen, **{name: getattr(given, name)[order] for name in per})


# --------------------------------------------------------------------------------------------------- local

SITUATIONS, ACTIONS, STARTS = 12, 6, 20
HOLD = 10.0  # tau that a situation lasts


def world() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(22)
    return 2.0 * rng.normal(size=(SITUATIONS, ACTIONS)), rng.normal(size=(STARTS, ACTIONS, 3))


def run_local(book: Book, options: argparse.Namespace) -> None:
    cost, begin = world()
    none = np.zeros(SITUATIONS, int)
    seen = inference.observations(cost, none, k=none)
    for eps in (0.1, 1.0):

        def descend(eps: float = eps) -> Any:
            rows = np.asarray(jax.nn.softmax(jnp.asarray(begin), axis=1)).transpose(0, 2, 1)
            agents = [
                pc.Composer([pc.Table(row) for row in of], pc.Cost(price), pc.Finite(ACTIONS), eps) for of in rows
            ]
            posed = pose(agents[0], "energy", seen)
            ends = [learn_posed(posed, starts=np.concatenate([_z_of(row[None]) for row in of])[None]) for of in rows]
            return {"energy": [end.value for end in ends], "settled": True, "told": list(degenerate(ends[0], seen)),
                    "rose": max(_fall([-path for path in end.paths]) for end in ends)}  # fmt: skip

        book.step(f"local, eps {eps:g}: descent on the energy", descend)
        ways: dict[str, Any] = {
            "settled weights, rate 0.5": {"signal": "settled", "stages": [(0.5, 2000)]},
            "settled weights, rate 5": {"signal": "settled", "stages": [(5.0, 2000)]},
            "settled weights, rate 50": {"signal": "settled", "stages": [(50.0, 400)]},
            "only the action taken, rate 0.05": {"signal": "sampled", "stages": [(0.05, 6000)]},
            "flow, 10 tau a situation, rate 0.05": {"signal": "flow", "stages": [(0.05, 1000)], "hold": HOLD},
            "flow, 10 tau a situation, rate 0.2": {"signal": "flow", "stages": [QUICK], "hold": HOLD},
            "flow, 10 tau a situation, rate 0.2, then 0.02": {"signal": "flow", "stages": [QUICK, SLOW], "hold": HOLD},
            "flow, 1 tau a situation, rate 0.05": {"signal": "flow", "stages": [(0.05, 6000)], "hold": 1.0},
            "flow, 0.1 tau a situation, rate 0.05": {"signal": "flow", "stages": [(0.05, 20_000)], "hold": 0.1},
            "settled weights, accumulated": {"signal": "accumulated", "stages": [(1.0, 400)]},
        }  # fmt: skip
        for name, how in ways.items():
            book.step(f"local, eps {eps:g}: {name}", lambda how=how, eps=eps: _ends(_stages(cost, eps, begin, **how)))


def run_circuit(book: Book, options: argparse.Namespace) -> None:
    cost, begin = world()
    for name, stages in {"rate 0.2": [QUICK], "rate 0.2, then 0.02": [QUICK, SLOW]}.items():
        _in_circuit(book, f"six-layer circuit, 10 tau a situation, {name}", cost, begin[: options.circuits], stages)
    how = {"signal": "accumulated", "rate": 1.0, "passes": 100, "hold": HOLD}
    pieces = [
        book.step(
            f"piece: circuit, start {start}, accumulated",
            lambda rows=rows, start=start: drift(cost, 0.1, rows, seed=start, circuit=True, **how).energy[0].tolist(),
        )
        for start, rows in enumerate(begin[: options.circuits])
    ]
    book.rows.pop(name := "local, eps 0.1: six-layer circuit, 10 tau a situation, accumulated", None)
    book.step(name, lambda: _ends({"energy": np.array(pieces), "step": 1.0, "passes": 100}))


def _stages(cost: Any, eps: float, rows: Any, stages: Any, **how: Any) -> dict[str, Any]:
    """The local rule at one rate after another, each from where the last one ended: the energy after every pass."""
    path = []
    for seed, (rate, passes) in enumerate(stages):
        found = drift(cost, eps, rows, rate=rate, passes=passes, seed=seed, **how)
        rows, path = found.logits, [*path, found.energy]
    energy = np.concatenate(path, axis=1)
    return {"energy": energy, "step": rate * how.get("hold", 1.0), "passes": energy.shape[1]}


def _in_circuit(book: Book, name: str, cost: Any, begin: Any, stages: Any) -> None:
    """One start after another, because each takes a minute; a stage goes on from the recorded end of the one before."""
    found = []
    for start, rows in enumerate(begin):
        path: list[float] = []
        for stage, (rate, passes) in enumerate(stages):
            how = {"signal": "flow", "rate": rate, "passes": passes, "hold": HOLD, "seed": 100 * start + stage}

            def one(rows: Any = rows, how: Any = how) -> Any:
                went = drift(cost, 0.1, np.asarray(rows), circuit=True, **how)
                return {"path": went.energy[0].tolist(), "rows": went.logits[0].tolist()}

            piece = book.step(f"piece: circuit, start {start}, stage {stage}", one)
            rows, path = piece["rows"], path + piece["path"]
        found.append(path)
    whole = {"energy": np.array(found), "step": stages[-1][0] * HOLD, "passes": len(path)}
    book.rows.pop(f"local, eps 0.1: {name}", None)  # there may be more starts now
    book.step(f"local, eps 0.1: {name}", lambda: _ends(whole))


def _ends(found: dict[str, Any]) -> Any:
    """Where the energy was in the last tenth, and whether it had stopped falling by then."""
    count = found["energy"].shape[1]
    late, before = found["energy"][:, -(count // 10) :], found["energy"][:, -(count // 5) : -(count // 10)]
    return {"energy": late.mean(axis=1).tolist(), "noise": late.std(axis=1).tolist(),
            "still": (late.mean(axis=1) - before.mean(axis=1)).tolist(),
            "step": found["step"], "passes": found["passes"],
            "path": found["energy"].mean(axis=0)[:: max(1, count // 100)].tolist()}  # fmt: skip


def main() -> None:
    parts = {"cohorts": run_cohorts, "designs": run_designs, "em": run_em, "flock": run_flock, "people": run_people,
             "tracks": run_tracks, "local": run_local, "circuit": run_circuit}  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=(*parts, []))
    parser.add_argument("--out", type=Path, help="results; goes on from them if they are there")
    parser.add_argument("--show", type=Path, nargs="+", help="print the tables of results")
    parser.add_argument("--record", action="store_true", help="with --show: renew the record and figure of the page")
    parser.add_argument("--seconds", type=float, default=1e9, help="of CPU, after which no step is begun")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20, help="of cohorts or flocks")
    parser.add_argument("--decisions", type=int, default=2000, help="of a flock")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=60, help="of EM at most, for hidden-Markov mixtures")
    parser.add_argument("--circuits", type=int, default=10, help="starts of the circuit")
    parser.add_argument("--experiment", nargs="+", choices=("1", "2"))
    parser.add_argument("--only", help="ways whose name has this")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rate", type=float, help="frames a second of tracks")
    parser.add_argument("--every", type=float, default=0.5, help="seconds from one decision of tracks to the next")
    parser.add_argument("--individuals", nargs="+", type=int, help="whose tracks are used; all unless given")
    parser.add_argument("--leave-out", nargs="+", help="individuals that belong to no group")
    options = parser.parse_args()
    keep_programs()  # a second call need not compile again
    if options.show:
        rows = {name: row for file in options.show for name, row in json.loads(file.read_text()).items()}
        print(learning_record.show(learning_record.summarise(rows)))
        if options.record:
            learning_record.write(rows)
            learning_record.draw(rows)
        return
    book = Book(options.out, options.seconds)
    for part in options.part:
        parts[part](book, options)


if __name__ == "__main__":
    main()
