"""Models of choice as data, and the one policy of each: ln p of every arm, in NumPy or JAX.

A model takes the utilities of a classic model (the reference) to probabilities q of the arms. It may have a learner of
its own, stickiness (a bonus for the arm taken last) and a lapse rate. A composed model mixes primitives so that they
come close to q; a floored one keeps q away from zero without any primitive. `estimate.py` fits them.

A new model is a `ChoiceModel`. The features and primitives that it is made of are lines in `FEATURES` and `KNOWN`, what
people learn by in `learners.py`.
"""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
import scipy.special

from .._types import ArrayLike, namespace
from ..core.equilibrium import solve
from ..core.objective import problem
from ..worlds.bandit import Belief
from .learners import LEARNERS, AbstractLearner, Trials, learner_of, relearn
from .tasks import TASKS, Task

# ||w - w*||_1 <= sqrt(2 gap/eps), so a gap of 1e-22 places every weight to 1e-9 or better at eps = 1e-3 and above.
# Where rounding does not allow as much (very cold, or very sure), the trial's own certificate says what was reached.
GAP = 1e-22
ROUNDING = 1e-9  # values closer than this are the same but for the order in which they were added up
LEAST = 1e-300  # no choice is impossible, only unheard of (as in `models.Reference`)
NOT_OFFERED = -1e9  # the utility of an arm that is not on offer: exp of it is zero, and it has a derivative
FLOOR = 0.01  # that of the exploitation primitive
SURE = 0.99  # how often exploitation takes the best arm
OURS = "Composed"
Link = Literal["probit", "logit"]
Floor = Literal["clip", "lapse", "hull"]
OfTrials = Callable[[Trials], np.ndarray]  # (trials, arms): probabilities, or the value of a feature
Schemas = Collection[str] | Mapping[str, OfTrials]  # names of ours, or functions by names of your own


# -------------------------------------------------------------------------------------- primitives


def exploit(trials: Trials, ties: float = 0.0) -> np.ndarray:
    """The best arm with probability .99, the others share the rest; arms within `ties` of the best share alike."""
    mean = trials.mean if trials.offered is None else np.where(trials.offered, trials.mean, -np.inf)
    best = mean >= mean.max(1, keepdims=True) - ties
    count, arms = best.sum(1, keepdims=True), np.isfinite(mean).sum(1, keepdims=True)
    prob = np.where(best, SURE / count, (1.0 - SURE) / np.maximum(arms - count, 1))
    return np.where(count == arms, 1.0 / arms, prob)


def _uncertainty(trials: Trials) -> np.ndarray:
    """s_j / sum s: the more uncertain, the more often."""
    total = trials.variance.sum(1, keepdims=True)
    share = np.full_like(trials.variance, 1.0 / trials.arms)
    return np.divide(trials.variance, total, out=share, where=total > 0)


def _risk(trials: Trials) -> np.ndarray:
    """(1/s_j) / sum 1/s: the more uncertain, the more rarely, in any unit of the rewards; known arms come first."""
    known = trials.variance <= 0
    certainty = np.where(known.any(1, keepdims=True), known, 1.0 / np.where(known, 1.0, trials.variance))
    return certainty / certainty.sum(1, keepdims=True)


def _risk_of_paper(trials: Trials) -> np.ndarray:
    """softmax(-s), with s in squared units of the rewards."""
    return scipy.special.softmax(-trials.variance, axis=1)


def _exploit_in_any_unit(trials: Trials) -> np.ndarray:
    """`exploit`, with ties up to rounding, which is not the same in every unit of the rewards."""
    return exploit(trials, ROUNDING * float(np.sqrt(trials.variance.max(initial=0.0))))


def _repeat(trials: Trials) -> np.ndarray:
    """The arm taken last in the block with probability .99; any arm at first."""
    again = np.arange(trials.arms) == trials.previous[:, None]
    prob = np.where(again, SURE, (1.0 - SURE) / (trials.arms - 1))
    return np.where(trials.previous[:, None] < 0, 1.0 / trials.arms, prob)


def _random(trials: Trials) -> np.ndarray:
    """Any arm."""
    return np.full_like(trials.mean, 1.0 / trials.arms)


# The paper's own definitions, for its two experiments: `risk` depends on the unit of the rewards.
PAPER: Mapping[str, OfTrials] = MappingProxyType(
    {"exploit": exploit, "uncertainty": _uncertainty, "risk": _risk_of_paper}
)
# Those for all other data: the same in every unit of the rewards and with every zero.
KNOWN: Mapping[str, OfTrials] = MappingProxyType(
    {"exploit": _exploit_in_any_unit, "uncertainty": _uncertainty, "risk": _risk, "repeat": _repeat, "random": _random}
)
USUAL_PRIMITIVES = ("exploit", "uncertainty", "risk")
OF_PAPER = "paper"  # a name for all of PAPER


def schemas_by_name(names: Schemas, task: Task | None = None) -> dict[str, OfTrials]:
    """Primitives by name, or the user's own functions of `Trials` by the names they give them.

    Names mean the paper's definitions (`PAPER`) in the paper's two experiments, and those of `KNOWN` elsewhere. The
    name `paper` alone means all of the paper's definitions.
    """
    if not names:
        raise ValueError("primitives is empty: name at least one.")
    if isinstance(names, Mapping):
        return dict(names)
    if tuple(names) == (OF_PAPER,):
        return dict(PAPER)
    if unknown := [name for name in names if name not in KNOWN]:
        raise ValueError(
            f"primitives has {', '.join(map(repr, unknown))}: known are {', '.join(KNOWN)}, and {OF_PAPER} alone; "
            "for your own pass a dict of names to functions of Trials."
        )
    known = {**KNOWN, **PAPER} if task in TASKS.values() else KNOWN
    return {name: known[name] for name in names}


def in_unit_of_rewards(schemas: Schemas) -> bool:
    """Whether some primitive changes with the unit of the rewards: the paper's `risk` does."""
    return isinstance(schemas, Mapping) and _risk_of_paper in schemas.values()


def columns(schemas: Mapping[str, OfTrials], trials: Trials) -> np.ndarray:
    """Pi: (trials, arms, primitives). Where arms are not on offer, the others share their probability."""
    parts = []
    for name, schema in schemas.items():
        prob = _checked(schema(trials), f"primitive {name!r}", "a probability", trials)
        if trials.offered is not None:
            prob = np.where(trials.offered, prob, 0.0)
            left = prob.sum(1, keepdims=True)
            evenly = _evenly(np, trials.arms, trials.offered)
            prob = np.where(left > 0, prob / np.where(left > 0, left, 1.0), evenly)
        parts.append(prob)
    return np.stack(parts, axis=-1)


def _checked(answer: Any, what: str, wanted: str, trials: Trials) -> np.ndarray:
    values = np.asarray(answer, dtype=float)
    if values.shape != trials.mean.shape:
        raise ValueError(
            f"{what} answered with shape {values.shape}: {wanted} for each of the {len(trials.choice)} trials and "
            f"{trials.arms} arms was expected."
        )
    return values


# ---------------------------------------------------------------------- what the classic models look at


def _deviation(belief: Belief | Trials) -> Any:
    """sqrt(s), in NumPy or JAX; where nothing is uncertain it has no slope either."""
    xp = namespace(belief.variance)
    known = belief.variance <= 0
    return xp.where(known, 0.0, xp.sqrt(xp.where(known, 1.0, belief.variance)))


def _scaled_value(belief: Belief | Trials) -> Any:
    """Values in units of the total uncertainty; nothing to weigh where nothing is uncertain."""
    xp = namespace(belief.mean, belief.variance)
    total = belief.variance.sum(-1, keepdims=True)
    known = total <= 0
    return xp.where(known, 0.0, belief.mean / xp.sqrt(xp.where(known, 1.0, total)))


# The weighted sum of its features is an arm's utility. With two arms only differences matter, and these are
# V = m1 - m2, RU = sqrt(s1) - sqrt(s2) and V/TU, TU = sqrt(s1 + s2), of Gershman (2018). With more arms the same
# utilities go through the softmax.
EVERY_FEATURE: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"V": lambda belief: belief.mean, "RU": _deviation, "V/TU": _scaled_value}
)
FEATURES: Mapping[str, Mapping[str, Callable[[Any], Any]]] = MappingProxyType({
    model: {name: EVERY_FEATURE[name] for name in names}
    for model, names in {"UCB": ("V", "RU"), "Thompson": ("V/TU",), "Hybrid": ("V/TU", "RU"), "Value": ("V",),
                         "Habit": ()}.items()
})  # fmt: skip
CLASSIC = ("UCB", "Thompson", "Hybrid", "Value")  # the Habit looks at nothing: stickiness is all it has


def features(model: str, trials: Trials) -> np.ndarray:
    """(trials, arms, features) of a classic model."""
    parts = [feature(trials) for feature in FEATURES[model].values()]
    return np.stack(parts, axis=-1) if parts else np.zeros((*trials.mean.shape, 0))


# ------------------------------------------------------------------------------------------ models


class Mixture(NamedTuple):
    """Primitives that are mixed at every trial, at temperature `eps`."""

    primitives: Mapping[str, OfTrials]
    eps: float
    prior: ArrayLike | None = None
    own: bool = False  # coefficients maximise the mixture's own likelihood, not the reference's


class ChoiceModel(NamedTuple):
    """A model with coefficients for each person, or with `pooled` the same for all. See `classic` and `composed`."""

    reference: str | OfTrials  # the classic model whose coefficients these are, or a function with ln q of every arm
    link: Link
    change: Mixture | Floor | None  # what becomes of the reference's probabilities
    parameters: int  # counted by BIC and AIC
    pooled: bool = False
    learner: AbstractLearner | None = None  # None: the beliefs that stand in the trials
    stickiness: bool = False  # one more coefficient: what the arm taken last has more
    lapse: bool = False  # one more: how often any arm is drawn

    @property
    def name(self) -> str:
        """The reference's."""
        return self.reference if isinstance(self.reference, str) else getattr(self.reference, "__name__", "function")

    @property
    def coefficients(self) -> tuple[str, ...]:
        """In their order: the learner's, those of the features, stickiness, lapse."""
        weighed = tuple(FEATURES[self.reference]) if isinstance(self.reference, str) else ()
        more = [name for name in ("stickiness", "lapse") if getattr(self, name)]
        return (*self.learned, *weighed, *more)

    @property
    def learned(self) -> tuple[str, ...]:
        """The coefficients of the learner."""
        return () if self.learner is None else self.learner.free


def classic(
    name: str = "Hybrid",
    link: Link = "probit",
    *,
    learner: AbstractLearner | None = None,
    stickiness: bool = False,
    lapse: bool = False,
    pooled: bool = False,
) -> ChoiceModel:
    """UCB, Thompson, Hybrid or Value: p(arm) from a weighted sum of features, by probit or logit.

    `learner` makes its own beliefs (with parameters of each person, where it has `free` ones); `stickiness` and `lapse`
    add a coefficient each.
    """
    if name not in FEATURES:
        raise ValueError(f"name = {name!r}: the classic models are {', '.join(FEATURES)}.")
    if link not in get_args(Link):
        raise ValueError(f"link = {link!r}: use 'probit' or 'logit'.")
    model = ChoiceModel(name, link, None, 0, pooled, learner, stickiness, lapse)
    return model._replace(parameters=len(model.coefficients))


def composed(
    primitives: Schemas = USUAL_PRIMITIVES,
    reference: "str | ChoiceModel | OfTrials" = "Hybrid",
    link: Link = "probit",
    *,
    eps: float = 0.01,
    prior: ArrayLike | None = None,
    coefficients: Literal["reference", "own"] = "reference",
    parameters: int | None = None,
    pooled: bool = False,
) -> ChoiceModel:
    """Primitives mixed at every trial so that they come close to a reference.

    The reference is a classic model by name, any other model, or a function of `Trials` that gives ln q of every arm
    (its link, learner and coefficients are then its own). `coefficients="reference"` are those that fit the reference
    best, as in the paper; `"own"` maximise this model's own likelihood. `parameters` are the reference's unless counted
    otherwise. `primitives`: names (see `KNOWN`), `PAPER` for the paper's definitions, or a dict of names to functions
    of `Trials`.
    """
    if coefficients not in ("reference", "own"):
        raise ValueError(f"coefficients = {coefficients!r}: use 'reference' or 'own'.")
    if isinstance(reference, ChoiceModel):
        base = reference
    elif isinstance(reference, str):
        base = classic(reference, link, pooled=pooled)
    else:
        base = ChoiceModel(reference, link, None, 0, pooled)
    if base.change is not None or (coefficients == "own" and (base.learned or not base.coefficients)):
        raise ValueError(
            f"reference = {base.name} is changed already, or its beliefs have free parameters, or it has none at all: "
            "compose a plain model, with coefficients='reference'."
        )
    mixture = Mixture(schemas_by_name(primitives), eps, prior, coefficients == "own")
    return base._replace(change=mixture, parameters=base.parameters if parameters is None else parameters)


def model_by_name(text: str, task: Task, link: Link = "logit", learner: AbstractLearner | None = None) -> ChoiceModel:
    """A model by its name: `Hybrid`, `Value+stickiness+lapse`, `delta`, `kalman/noise/drift:UCB`.

    Before the colon stands a learner of the model's own, with the parameters that are fitted after slashes; a learner
    alone chooses by value, and none by habit. After plus signs stand stickiness and lapse.
    """
    known = {name.lower(): name for name in FEATURES}
    head, *more = text.strip().split("+")
    own, colon, decider = head.partition(":")
    if not colon and head.lower() in known:
        own, decider = "", head
    own, *free = own.split("/")
    classic_name = known.get((decider or ("habit" if own == "none" else "value")).lower())
    if classic_name is None or not (own or decider) or (own and own not in LEARNERS) or set(more) - {
        "stickiness", "lapse"
    }:  # fmt: skip
        raise ValueError(
            f"model {text!r} is not known: use one of {', '.join((*CLASSIC, OURS))}, a learner alone (delta), one "
            f"before a model ({', '.join(LEARNERS)}, such as delta:Value or kalman/noise:UCB), and +stickiness or "
            "+lapse after it."
        )
    if link == "probit" and task.arms != 2:
        raise ValueError(f"link = 'probit' with {task.arms} arms: use link='logit'.")
    if own:
        learner = learner_of(own, tuple(free) or None)
    return classic(classic_name, link, learner=learner, stickiness="stickiness" in more, lapse="lapse" in more)


# --------------------------------------------------------------------------------------- policies


class Composition(NamedTuple):
    """Weights of the primitives at every trial and the policy they make."""

    weights: np.ndarray  # (trials, primitives)
    log_prob: np.ndarray  # (trials, arms)
    distance: np.ndarray  # (trials) certificate: |w - w*|_1 is at most this


def log_reference(link: Link, theta: Mapping[str, Any], belief: Belief, previous: Any, offered: Any = None) -> Any:
    """ln q of every arm, (..., arms), from beliefs (..., arms) and coefficients by name with the axes (...).

    u_j = sum_f theta_f x_f(belief)_j + stickiness [j taken last];  q = Phi(+-(u_1 - u_2)) or softmax(u);
    with a lapse (1 - lapse) q + lapse / arms. An arm that is not on offer has none. In NumPy or JAX.
    """
    xp = namespace(*belief, *theta.values())
    utility, arms = 0.0 * belief.mean, belief.mean.shape[-1]
    for name, feature in EVERY_FEATURE.items():
        if name in theta:
            utility = utility + xp.asarray(theta[name])[..., None] * feature(belief)
    if "stickiness" in theta:
        again = xp.arange(arms) == xp.asarray(previous)[..., None]
        utility = utility + xp.where(again, xp.asarray(theta["stickiness"])[..., None], 0.0)
    if link == "probit":
        if arms != 2 or offered is not None:
            raise ValueError(f"link = 'probit' with {arms} arms or with choice sets: use link='logit'.")
        z = utility[..., 0] - utility[..., 1]
        log_ndtr = scipy.special.log_ndtr if xp is np else jax.scipy.special.log_ndtr
        log_q = log_ndtr(xp.stack([z, -z], axis=-1))
    else:
        log_softmax = scipy.special.log_softmax if xp is np else jax.nn.log_softmax
        log_q = log_softmax(utility if offered is None else xp.where(offered, utility, NOT_OFFERED), axis=-1)
    if "lapse" not in theta:
        return log_q
    rate = xp.asarray(theta["lapse"])[..., None]
    return xp.log((1.0 - rate) * xp.exp(log_q) + rate * _evenly(xp, arms, offered) + LEAST)


def _evenly(xp: Any, arms: int, offered: Any) -> Any:
    """The same probability for every arm on offer."""
    return 1.0 / arms if offered is None else offered / xp.sum(offered, axis=-1, keepdims=True)


def log_proba(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """ln p of every arm at every trial, (trials, arms); `coef` has a row for each trial (see `coefficients_of`)."""
    if isinstance(model.change, Mixture):
        return weigh(model, trials, coef).log_prob
    log_q = _reference(model, trials, coef)
    return log_q if model.change is None else FLOORS[model.change](log_q, trials)


def weigh(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> Composition:
    """Weights and policy of a composed model at every trial, all solved as one batch."""
    mixture = model.change
    if not isinstance(mixture, Mixture):
        raise ValueError(f"model is the {model.name} without primitives: only a composed model has weights.")
    log_q = _reference(model, trials, coef)
    return compose(columns(mixture.primitives, believed(model, trials, coef)), log_q, mixture.eps, mixture.prior)


def believed(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> Trials:
    """The trials with the beliefs of the model's own learner, if it has one; `coef` has a row for each trial."""
    if model.learner is None:
        return trials
    return relearn(trials, model.learner, {name: coef[:, k, None] for k, name in enumerate(model.learned)})


def _reference(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """ln q of every arm at every trial, (trials, arms)."""
    seen = believed(model, trials, coef)
    if isinstance(model.reference, str):
        theta = dict(zip(model.coefficients, np.asarray(coef, dtype=float).T, strict=True))
        return log_reference(model.link, theta, Belief(seen.mean, seen.variance), trials.previous, trials.offered)
    log_q = _checked(model.reference(seen), f"the reference {model.name!r}", "ln q", trials)
    offered = log_q if trials.offered is None else np.where(trials.offered, log_q, NOT_OFFERED)
    return scipy.special.log_softmax(offered, axis=1)


def compose(pi: Any, log_q: Any, eps: float, prior: ArrayLike | None = None) -> Composition:
    """min_w KL(Pi w, q) + eps KL(w, prior) for every trial. State terms cancel (q(x|.) = p(x|.)), so s = -ln q.

    The batch form of a `Composer` with a `Reference` that `replay` walks through: the same weights, without a loop. In
    NumPy or JAX, with the derivative of `solve`.
    """
    xp = namespace(pi, log_q)
    posed = problem(pi=pi, action_cost=-xp.maximum(log_q, np.log(LEAST)), eps=eps, prior=prior)
    best = solve(posed, tol=GAP, throw=False)
    # Both arms by the same sum, never as 1 - p: a primitive that excludes an arm leaves it to the others.
    prob = xp.einsum("...an,...n->...a", pi, best.weights)
    return Composition(best.weights, xp.log(xp.maximum(prob, LEAST)), best.certificate.distance)  # type: ignore[arg-type]


def _clip(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """q kept within [.01, .99]; with more arms, raised to .01 and normalised."""
    prob = np.clip(np.exp(log_q), FLOOR, 1 - FLOOR)
    return np.log(prob / prob.sum(1, keepdims=True))


def _lapse(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """.98 q + .01 for two arms: in one trial of fifty an arm is drawn blindly."""
    return np.log((1 - FLOOR * trials.arms) * np.exp(log_q) + FLOOR)


def _hull(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """q kept between the most extreme of the paper's primitives (two arms): what any mixture of them can reach."""
    if trials.arms != 2:
        raise ValueError(f"rule = 'hull' with {trials.arms} arms: it is there for two; use 'clip' or 'lapse'.")
    pi = columns(PAPER, trials)
    return np.log(np.maximum(np.clip(np.exp(log_q), pi.min(-1), pi.max(-1)), LEAST))


FLOORS: Mapping[str, Callable[[np.ndarray, Trials], np.ndarray]] = {"clip": _clip, "lapse": _lapse, "hull": _hull}
