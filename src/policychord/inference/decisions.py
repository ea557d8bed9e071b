"""The likelihood of a composed agent's decisions: ln sum_a w_a(theta) pi_a(action), and of its rivals on the same data.

The weights solve a gating problem on the agent's action set. The action that was observed is one of the set's points,
or any point of a continuous set: then the primitives' densities at it count, with the weights of the grid.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Float, Int, Shaped

from .._types import Array, ArrayLike, Observation, in_native_order
from ..actions import AbstractActions, Grid
from ..agent import Composer
from ..agent.gates import AtEquilibrium
from ..core.equilibrium import solve
from ..core.objective import Problem
from ..loops.environment import AbstractEnv
from ..loops.trace import Trace
from ..primitives.base import AbstractPrimitive
from ..primitives.gaussian import Gaussian
from .likelihoods import Likelihood, Model, likelihood, standardise
from .parameters import Parameter, Theta, bounded, real, simplex

LEAST = -690.0  # ln of the probability below which an action counts as unheard of, not as impossible
TOL = 1e-12
AGENT = "composed"  # the agent's own name in a comparison
CONSTANT = "constant weights"  # the rival of every gate
ON_POINT = 1e-9  # how far from a point of the set an action may be that was taken from it
ENTRIES = 12_000  # numbers of one matrix of primitives times units worked on together: what a cache holds
By = Literal["index", "density"]  # how the action was observed


class Observations(NamedTuple):
    """Decisions that were observed: what was seen, what was done, when and by whom. One row each."""

    observation: Any  # arrays, or a pytree of them, with a leading decision axis
    action: Shaped[np.ndarray, "N ..."]  # indices into the action set (N), or actions (N, ...)
    k: Int[np.ndarray, " N"]  # the number of the step
    subject: Shaped[np.ndarray, " N"]
    block: Shaped[np.ndarray, " N"]

    @property
    def size(self) -> int:
        """N, the number of decisions."""
        return len(self.k)


class Family(NamedTuple):
    """Agents by their parameters. `build(theta)` gives a `Composer`, or a function of (observation, k) to a problem."""

    name: str
    build: Callable[[Theta], Any]
    parameters: tuple[Parameter, ...]
    free: tuple[str, ...] = ()  # which of them are fitted unless somebody says otherwise
    features: Callable[[Observation], Any] | None = None  # what a softmax gate may look at: (F) numbers


class _Choice(NamedTuple):
    """What a decision's likelihood is made of."""

    problem: Problem
    log_at: Float[Array, " n"]  # ln of the probability or density of the observed action under each primitive
    log_chance: Float[Array, ""]  # the same if all actions are alike


def observations(
    observation: Any,
    action: ArrayLike,
    *,
    k: ArrayLike | None = None,
    subject: ArrayLike | None = None,
    block: ArrayLike | None = None,
) -> Observations:
    """Check arrays of decisions. Without labels there is one subject in one block, and k counts from 0."""
    action = in_native_order(np.asarray(action))
    count = len(action) if action.ndim else 0
    if count == 0:
        raise ValueError("action is empty: pass one action for each decision.")
    seen = in_native_order(jax.tree_util.tree_map(np.asarray, observation))
    rows = {"k": k, "subject": subject, "block": block}
    default = {"k": np.arange(count), "subject": np.zeros(count, int), "block": np.zeros(count, int)}
    labels = {name: default[name] if given is None else np.asarray(given) for name, given in rows.items()}
    shapes = {f"observation{jax.tree_util.keystr(path)}": leaf.shape
              for path, leaf in jax.tree_util.tree_leaves_with_path(seen)}  # fmt: skip
    shapes |= {name: values.shape for name, values in labels.items()}
    for name, shape in shapes.items():
        if shape[:1] != (count,):
            raise ValueError(f"{name} has shape {shape}, but there are {count} actions: pass a row for each decision.")
    return Observations(seen, action, labels["k"].astype(int), labels["subject"], labels["block"])


def from_trace(trace: Trace, env: AbstractEnv) -> Observations:
    """The decisions of a trace: every agent of a population is a subject, every episode a block."""
    action = np.asarray(trace.action)
    action = action if trace.population else np.expand_dims(action, 2)
    return _rows(env, trace.state, action, trace.alive, trace.labels.episodes, trace.population)


def from_dataset(dataset: Any, env: AbstractEnv) -> Observations:
    """The decisions of a dataset that `to_dataset` wrote, or another with its variables and dims."""
    wanted = ("episode", "time", "agent")
    missing = [name for name in ("action", "alive") if name not in dataset]
    missing += [name for name in wanted if name not in dataset.dims]
    if missing:
        raise ValueError(f"the dataset has no {', '.join(missing)}: pass one that `loops.to_dataset` made.")
    # a field of the state with the name of a dim, such as `time`, has another name in the dataset
    stored = {name: f"state_{name}" if f"state_{name}" in dataset else name for name in env.variables}
    fields = {name: dataset[own].to_numpy() for name, own in stored.items()}
    kind = type(env.reset(jax.random.key(0)))
    state = kind(**fields) if hasattr(kind, "_fields") else next(iter(fields.values()))
    action = dataset["action"].transpose(*wanted, ...).to_numpy()
    population = any("boid" in variable.dims or "agent" in variable.dims for variable in env.variables.values())
    return _rows(env, state, action, dataset["alive"], dataset["episode"], population)


def _rows(
    env: AbstractEnv, state: Any, action: np.ndarray, alive: ArrayLike, episodes: ArrayLike, population: bool
) -> Observations:
    """One row for each decision of states (episodes, times, ...) and actions (episodes, times, agents, ...)."""
    seen = jax.jit(jax.vmap(jax.vmap(env.observe)))(jax.tree_util.tree_map(jnp.asarray, state))
    alive, shape = np.asarray(alive), action.shape[:3]

    def rows(values: np.ndarray) -> np.ndarray:
        return values[alive].reshape(int(alive.sum()) * shape[2], *values.shape[3:])

    labels = (np.arange(shape[1])[:, None], np.arange(shape[2]), np.asarray(episodes)[:, None, None])
    return Observations(
        jax.tree_util.tree_map(lambda leaf: rows(np.asarray(leaf) if population else np.expand_dims(leaf, 2)), seen),
        rows(action), *(rows(np.broadcast_to(label, shape)) for label in labels),
    )  # fmt: skip


def log_weights(problem: Problem) -> tuple[Any, Any]:
    """(ln w*, gap) of one gating problem; ln w* has derivatives, those of `solve`."""
    equilibrium = solve(problem, tol=TOL)
    return equilibrium.log_weights, jax.lax.stop_gradient(equilibrium.certificate.gap)


# ------------------------------------------------------------------------------------------- one decision


def observed_by(actions: AbstractActions | None, action: np.ndarray) -> tuple[By, np.ndarray]:
    """How actions were observed, and as what they enter: as indices, or as points of a continuous set."""
    if action.ndim == 1 and action.dtype.kind in "iu" and (actions is None or _index_like(actions)):
        limit = np.inf if actions is None else actions.size
        if (wrong := (action < 0) | (action >= limit)).any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"action[{row}] = {action[row]}: an index from 0 to {limit - 1:g}.")
        return "index", action.astype(int)
    if actions is None:
        raise ValueError(f"action has shape {action.shape}: a family of problems needs indices of actions (N).")
    points = np.asarray(actions.points, dtype=float).reshape(actions.size, -1)
    flat = np.asarray(action, dtype=float).reshape(len(action), -1)
    if flat.shape[1] != points.shape[1]:
        raise ValueError(f"action has shape {action.shape}, but an action of the set has {points.shape[1]} numbers.")
    from scipy.spatial import cKDTree  # slow to import

    distance, index = cKDTree(points).query(flat)
    if distance.max() <= ON_POINT * (1 + np.abs(points).max()):
        return "index", index
    return "density", np.asarray(action, dtype=float)


def _index_like(actions: AbstractActions) -> bool:
    return actions.points.ndim > 1 or jnp.issubdtype(actions.points.dtype, jnp.integer)


# ----------------------------------------------------------------------------------------- what is posed


class Setup(NamedTuple):
    """Observations of a family's agents, posed as a likelihood. Made by `setup_of`."""

    family: Family
    parameters: tuple[Parameter, ...]  # that are free
    fixed: dict[str, Any]
    primitives: tuple[str, ...]
    units: dict[str, Any]
    subject: Shaped[np.ndarray, " N"]
    choice: Callable[[Theta, Any], _Choice]  # of (natural values of the free parameters, unit)
    at_once: int
    features: int = 0  # how many numbers each unit has for a softmax gate


def setup_of(family: Any, seen: Observations, free: Any = None, fixed: Theta | None = None) -> Setup:
    """What the observations mean for this family, or what is wrong with the request."""
    family, parameters, fixed = family_of(family, free, fixed or {})
    agent = family.build({**fixed, **_starts_of(parameters)})
    labels = next((parameter.labels for parameter in family.parameters if parameter.name == "prior"), ())
    actions, pose = None, agent
    if isinstance(agent, Composer):
        if not isinstance(agent.gate, AtEquilibrium):
            raise ValueError(
                f"the family's agents have the gate {type(agent.gate).__name__}: a fit needs gate='equilibrium', whose "
                "weights follow from the observation alone. Constant weights are among the rivals."
            )
        actions, pose, labels = agent.actions, agent.problem, agent.names
    by, action = observed_by(actions, seen.action)
    units = {"observation": seen.observation, "action": action, "k": seen.k}
    first = jax.tree_util.tree_map(lambda leaf: leaf[0], seen.observation)
    size, count = jax.eval_shape(pose, first, 0).pi.shape
    names = labels if len(labels) == count else tuple(f"primitive {a}" for a in range(count))
    setup = Setup(family, parameters, fixed, tuple(names), units, seen.subject, partial(_choice_of, family, fixed, by),
                  int(np.clip(ENTRIES * 3 // (size * count), 8, 256)))  # fmt: skip
    if family.features is None:
        return setup
    units["features"] = standardise(jax.jit(jax.vmap(family.features))(seen.observation))
    return setup._replace(features=units["features"].shape[1])


def _choice_of(family: Family, fixed: Theta, by: By, theta: Theta, unit: Mapping[str, Any]) -> _Choice:
    """The gating problem of a decision, and the observed action under each primitive."""
    agent = family.build({**fixed, **theta})
    seen, k, action = unit["observation"], unit["k"], unit["action"]
    posed = agent.problem(seen, k) if isinstance(agent, Composer) else agent(seen, k)
    if not isinstance(posed, Problem):
        raise ValueError(f"the family poses a {type(posed).__name__}: derivatives are known for the entropy (Problem).")
    if by == "index":
        log_at = jnp.log(jnp.maximum(posed.pi[action], np.exp(LEAST)))
        return _Choice(posed, log_at, -jnp.log(1.0 * posed.pi.shape[0]))
    if not isinstance(agent.actions, Grid):
        raise ValueError("actions lie off the points of a finite set: pass indices, or an agent with a Grid.")
    cell = jnp.prod(agent.actions.spacing)  # the volume that a point of the set stands for
    density = partial(_log_density, agent.actions, action, seen, k, cell)
    log_at = jnp.stack([density(primitive) for primitive in agent.primitives])
    return _Choice(posed, jnp.maximum(log_at, LEAST), -jnp.log(agent.actions.size * cell))


def _log_density(
    actions: AbstractActions, action: Any, seen: Observation, k: Any, cell: Any, primitive: AbstractPrimitive
) -> Any:
    """ln of a primitive's density at any point: the Gaussian's own, or the nearest point's spread over its cell."""
    if isinstance(primitive, Gaussian):
        offset = (action - primitive.centre(actions, seen, k)).reshape(-1)
        if primitive.sd is not None:
            own = primitive.sd(seen, k) if callable(primitive.sd) else primitive.sd
            sd = jnp.broadcast_to(jnp.asarray(own), offset.shape)
            return -jnp.sum(0.5 * (offset / sd) ** 2 + jnp.log(sd) + 0.5 * jnp.log(2 * jnp.pi))
        assert primitive.cholesky is not None
        scaled = jax.scipy.linalg.solve_triangular(primitive.cholesky, offset, lower=True)
        logs = jnp.sum(jnp.log(jnp.diag(primitive.cholesky)))
        return -0.5 * jnp.sum(scaled**2) - logs - 0.5 * offset.size * jnp.log(2 * jnp.pi)
    nearest = jnp.argmin(jnp.sum((actions.points - action) ** 2, axis=-1))
    return primitive.log_prob(actions, seen, k)[nearest] - jnp.log(cell)


def likelihood_of_setup(setup: Setup) -> Likelihood:
    """The agent's own likelihood, with the subjects as groups."""
    return likelihood(composed(setup), setup.units, groups=setup.subject, at_once=setup.at_once)


def _starts_of(parameters: Sequence[Parameter]) -> dict[str, Array]:
    return {parameter.name: jnp.asarray(parameter.start, float) for parameter in parameters}


# -------------------------------------------------------------------------------- the agent and its rivals


def composed(setup: Setup) -> Model:
    """The agent itself: the weights that its gate chooses at every decision."""
    choice = setup.choice  # programs are kept, and hold what a model holds: not the observations

    def log_prob(theta: Theta, unit: Any) -> Any:
        return _gated(choice(theta, unit))

    return Model(AGENT, setup.parameters, log_prob, "weights that the gate chooses at every decision")


def rivals(setup: Setup, theta: Theta) -> list[Model]:
    """Other explanations with the same primitives: what gating, and the agent's cost, add must be seen against them.

    Searches of their estimates begin at those of the agent, theta. Rivals without a gate estimate the free parameters
    that belong to the primitives, too.
    """
    free = tuple(
        parameter._replace(start=theta[parameter.name] if parameter.labels else float(theta[parameter.name]))
        for parameter in setup.parameters
    )
    inner, held, names, choice = _inner(setup, free), _starts_of(free), setup.primitives, setup.choice

    def here(theta: Theta, unit: Any) -> _Choice:
        own = {"weights", "gate", "lapse"}
        return choice({**held, **{name: theta[name] for name in theta if name not in own}}, unit)

    def chance(theta: Theta, unit: Any) -> Any:
        return here(theta, unit).log_chance

    def constant(theta: Theta, unit: Any) -> Any:
        return _mixed(here(theta, unit), jnp.log(theta["weights"]))

    def alone(a: int, theta: Theta, unit: Any) -> Any:
        return here(theta, unit).log_at[a]

    def cheapest(theta: Theta, unit: Any) -> Any:
        now = here(theta, unit)
        first = jnp.argmin(now.problem.action_cost @ now.problem.pi)
        return _lapsing(theta["lapse"], now.log_at[first], now.log_chance)

    def softmax_gate(theta: Theta, unit: Any) -> Any:
        return _mixed(here(theta, unit), softmax_weights(theta["gate"], unit["features"], len(names)))

    def lapsing(theta: Theta, unit: Any) -> Any:
        now = here(theta, unit)
        return _lapsing(theta["lapse"], _gated(now), now.log_chance)

    lapse = bounded("lapse", 0.0, 1.0, 0.05)
    several = len(names) > 1
    models = [Model("chance", (), chance, "all actions alike")]
    if several:
        models.append(Model(CONSTANT, (*inner, simplex("weights", names)), constant, "one mixture for all decisions"))
    models += [
        Model(f"{name} alone", inner, partial(alone, a), "one primitive for all decisions")
        for a, name in enumerate(names)
    ]
    if several:
        words = "the primitive with the least expected cost, with a lapse"
        models.append(Model("cheapest", (*inner, lapse), cheapest, words))
    if setup.features and several:
        columns = ("constant", *(f"feature {i}" for i in range(1, setup.features + 1)))
        gate = real("gate", labels=[f"{name}, {column}" for name in names[:-1] for column in columns])
        models.append(Model("softmax gate", (*inner, gate), softmax_gate, "weights by a softmax of given features"))
    models.append(Model("composed with a lapse", (*free, lapse), lapsing, "the agent, blind in a share of decisions"))
    return models


def softmax_weights(coef: Any, features: Any, count: int) -> Any:
    """ln w of a plain mixture of experts: a softmax of features, with the last of `count` primitives as reference."""
    logits = jnp.reshape(coef, (count - 1, -1)) @ jnp.concatenate([jnp.ones(1), features])
    return jax.nn.log_softmax(jnp.concatenate([logits, jnp.zeros(1)]))


def _mixed(here: _Choice, log_w: Any) -> Any:
    """ln of the mixture at the observed action."""
    return logsumexp(here.log_at + log_w)


def _gated(here: _Choice) -> Any:
    return _mixed(here, log_weights(here.problem)[0])


def _lapsing(lapse: Any, log_prob: Any, log_chance: Any) -> Any:
    return jnp.logaddexp(jnp.log1p(-lapse) + log_prob, jnp.log(lapse) + log_chance)


def family_of(family: Any, free: Any, fixed: Theta) -> tuple[Family, tuple[Parameter, ...], dict[str, Any]]:
    """The family, what is free and all that is fixed, or what is wrong with them."""
    if not isinstance(family, Family):
        if not callable(family):
            raise ValueError(f"family is a {type(family).__name__}: pass a Family, or a function of theta.")
        family = Family(getattr(family, "__name__", "own family"), family, ())
    known = {parameter.name: parameter for parameter in family.parameters}
    wanted = (family.free or tuple(known)) if free is None else free
    wanted = (wanted,) if isinstance(wanted, str | Parameter) else tuple(wanted)
    chosen = []
    for name in wanted:
        if isinstance(name, Parameter):
            chosen.append(name)
        elif name in known:
            chosen.append(known[name])
        else:
            declared = f"it declares {', '.join(known)}" if known else "pass a Parameter, such as positive('eps', 0.5)"
            raise ValueError(f"free has {name!r}, which the family {family.name} does not declare: {declared}.")
    names = [parameter.name for parameter in chosen]
    if both := sorted(set(names) & set(fixed)):
        raise ValueError(f"{', '.join(both)} is both free and fixed: name it once.")
    if unknown := sorted(set(fixed) - set(known)) if known else []:
        raise ValueError(f"fixed has {', '.join(unknown)}: the family {family.name} declares {', '.join(known)}.")
    for name, value in fixed.items():
        wanted = np.shape(known[name].start) if known else np.shape(value)
        if np.shape(value) != wanted or not np.isfinite(np.asarray(value, dtype=float)).all():
            shape = f"{wanted[0]} finite numbers" if wanted else "a finite number"
            raise ValueError(f"fixed has {name} = {value}: pass {shape}.")
    rest = {name: parameter.start for name, parameter in known.items() if name not in names}
    return family, tuple(chosen), {**rest, **{name: jnp.asarray(value, float) for name, value in fixed.items()}}


def _inner(setup: Setup, free: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The free parameters of the primitives: those that move ln pi_a at an observed action, whatever the weights."""
    some = jax.tree_util.tree_map(lambda leaf: leaf[:8], setup.units)

    def log_at(theta: Theta) -> Any:
        return jax.vmap(lambda unit: setup.choice(theta, unit).log_at)(some)

    slope = jax.jit(jax.jacrev(log_at))(_starts_of(free))
    return tuple(parameter for parameter in free if float(jnp.abs(jnp.asarray(slope[parameter.name])).max()) > 0)
