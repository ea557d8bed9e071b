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
from ..core.equilibrium import solve
from ..core.objective import Problem
from ..loops.step import AbstractEnv
from ..loops.trace import Trace
from ..primitives.base import AbstractPrimitive
from ..primitives.gaussian import Gaussian
from .likelihoods import Model
from .parameters import Parameter, Theta, bounded, real, simplex

LEAST = -690.0  # ln of the probability below which an action counts as unheard of, not as impossible
TOL = 1e-12
CONSTANT = "constant weights"  # the rival of every gate
ON_POINT = 1e-9  # how far from a point of the set an action may be that was taken from it
By = Literal["index", "density"]  # how the action was observed
Posing = Callable[[Observation, Any], Problem]


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


class Choice(NamedTuple):
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
    alive = np.asarray(trace.alive)
    state = jax.tree_util.tree_map(jnp.asarray, trace.state)
    seen = jax.jit(jax.vmap(jax.vmap(env.observe)))(state)
    episodes, times = alive.shape
    agents = trace.weights.shape[2] if trace.population else 1

    def rows(values: Any, per_agent: bool) -> np.ndarray:
        values = np.asarray(values)
        values = values if per_agent else np.expand_dims(values, 2)
        return values[alive].reshape(int(alive.sum()) * agents, *values.shape[3:])

    def label(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, (episodes, times, agents))[alive].ravel()

    return Observations(
        jax.tree_util.tree_map(lambda leaf: rows(leaf, trace.population), seen),
        rows(trace.action, trace.population),
        label(np.arange(times)[None, :, None]),
        label(np.arange(agents)[None, None, :]),
        label(np.asarray(trace.labels.episodes)[:, None, None]),
    )


def from_dataset(dataset: Any, env: AbstractEnv) -> Observations:
    """The decisions of a dataset that `to_dataset` wrote, or another with its variables and dims."""
    wanted = ("episode", "time", "agent")
    missing = [name for name in ("action", "alive") if name not in dataset] + [
        name for name in wanted if name not in dataset.dims
    ]
    if missing:
        raise ValueError(f"the dataset has no {', '.join(missing)}: pass one that `loops.to_dataset` made.")
    # a field of the state with the name of a dim, such as `time`, has another name in the dataset
    stored = {name: f"state_{name}" if f"state_{name}" in dataset else name for name in env.variables}
    fields = {name: dataset[given].to_numpy() for name, given in stored.items()}
    kind = type(env.reset(jax.random.key(0)))
    state = kind(**fields) if hasattr(kind, "_fields") else next(iter(fields.values()))
    alive = dataset["alive"].to_numpy()
    action = dataset["action"].transpose(*wanted, ...).to_numpy()
    population = any("boid" in variable.dims or "agent" in variable.dims for variable in env.variables.values())
    seen = jax.jit(jax.vmap(jax.vmap(env.observe)))(jax.tree_util.tree_map(jnp.asarray, state))
    agents = action.shape[2]
    flat = jax.tree_util.tree_map(
        lambda leaf: (np.asarray(leaf) if population else np.expand_dims(np.asarray(leaf), 2))[alive].reshape(
            int(alive.sum()) * agents, *np.shape(leaf)[3 if population else 2 :]
        ),
        seen,
    )
    shape = (*alive.shape, agents)
    labels = [
        np.broadcast_to(values, shape)[alive].ravel()
        for values in (np.arange(shape[1])[None, :, None], np.arange(agents)[None, None, :],
                       dataset["episode"].to_numpy()[:, None, None])
    ]  # fmt: skip
    return Observations(flat, action[alive].reshape(-1, *action.shape[3:]), *labels)


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
    index, distance = _nearest(points, flat)
    if distance.max() <= ON_POINT * (1 + np.abs(points).max()):
        return "index", index
    return "density", np.asarray(action, dtype=float)


def _index_like(actions: AbstractActions) -> bool:
    return actions.points.ndim > 1 or jnp.issubdtype(actions.points.dtype, jnp.integer)


def _nearest(points: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.spatial import cKDTree

    distance, index = cKDTree(points).query(actions)
    return index, distance


def choice(agent: Any, by: By, unit: Mapping[str, Any]) -> Choice:
    """The gating problem of a decision, and the observed action under each primitive."""
    seen, k, action = unit["observation"], unit["k"], unit["action"]
    if not isinstance(agent, Composer):
        given = _with_entropy(agent(seen, k))
        return Choice(given, _log(given.pi[action]), -jnp.log(1.0 * given.pi.shape[0]))
    given = _with_entropy(agent.problem(seen, k))
    if by == "index":
        return Choice(given, _log(given.pi[action]), -jnp.log(1.0 * agent.actions.size))
    cell = _cell(agent.actions)
    density = partial(_log_density, agent.actions, action, seen, k, cell)
    at = jnp.stack([density(primitive) for primitive in agent.primitives])
    return Choice(given, jnp.maximum(at, LEAST), -jnp.log(agent.actions.size * cell))


def _with_entropy(given: Any) -> Problem:
    if not isinstance(given, Problem):
        raise ValueError(f"the family poses a {type(given).__name__}: derivatives are known for the entropy (Problem).")
    return given


def _log(prob: Any) -> Any:
    return jnp.log(jnp.maximum(prob, np.exp(LEAST)))


def _cell(actions: AbstractActions) -> Any:
    """The volume that a point of the set stands for."""
    if not isinstance(actions, Grid):
        raise ValueError("actions lie off the points of a finite set: pass indices, or an agent with a Grid.")
    return jnp.prod(actions.spacing)


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


def _by_weights(here: Choice, log_w: Any) -> Any:
    """ln of the mixture at the observed action."""
    return logsumexp(here.log_at + log_w)


# -------------------------------------------------------------------------------- the agent and its rivals


def composed(family: Family, free: Sequence[Parameter], fixed: Theta, by: By) -> Model:
    """The agent itself: the weights that its gate chooses at every decision."""

    def log_prob(theta: Theta, unit: Any) -> Any:
        here = choice(family.build({**fixed, **theta}), by, unit)
        return _by_weights(here, log_weights(here.problem)[0])

    return Model("composed", tuple(free), log_prob, "weights that the gate chooses at every decision")


def weights_of(family: Family, fixed: Theta, by: By) -> Callable[[Theta, Any], Any]:
    """Of (theta, unit): the weights of a decision, and their certified gap."""

    def weigh(theta: Theta, unit: Any) -> Any:
        here = choice(family.build({**fixed, **theta}), by, unit)
        equilibrium = solve(here.problem, tol=TOL)
        return equilibrium.weights, equilibrium.certificate.gap, equilibrium.certificate.distance

    return weigh


def rivals(
    family: Family,
    free: Sequence[Parameter],
    inner: Sequence[Parameter],
    fixed: Theta,
    by: By,
    names: Sequence[str],
    features: int,
) -> list[Model]:
    """Other explanations with the same primitives: what gating, and the agent's cost, add must be seen against them.

    `inner` are the free parameters that belong to the primitives (see `inner_parameters`): rivals without a gate
    estimate these too. `features` is how many numbers each unit has for a softmax gate.
    """
    held = {**fixed, **{parameter.name: jnp.asarray(parameter.start, float) for parameter in free}}
    own = {"weights", "gate", "lapse"}

    def here(theta: Theta, unit: Any) -> Choice:
        kept = {name: value for name, value in theta.items() if name not in own}
        return choice(family.build({**held, **kept}), by, unit)

    def chance(theta: Theta, unit: Any) -> Any:
        return here(theta, unit).log_chance

    def constant(theta: Theta, unit: Any) -> Any:
        return _by_weights(here(theta, unit), jnp.log(theta["weights"]))

    def alone(a: int, theta: Theta, unit: Any) -> Any:
        return here(theta, unit).log_at[a]

    def cheapest(theta: Theta, unit: Any) -> Any:
        now = here(theta, unit)
        first = jnp.argmin(now.problem.action_cost @ now.problem.pi)
        return _lapsing(theta["lapse"], now.log_at[first], now.log_chance)

    def softmax_gate(theta: Theta, unit: Any) -> Any:
        matrix = jnp.reshape(theta["gate"], (len(names) - 1, features + 1))
        logits = matrix @ jnp.concatenate([jnp.ones(1), unit["features"]])
        return _by_weights(here(theta, unit), jax.nn.log_softmax(jnp.concatenate([logits, jnp.zeros(1)])))

    def lapsing(theta: Theta, unit: Any) -> Any:
        now = here(theta, unit)
        return _lapsing(theta["lapse"], _by_weights(now, log_weights(now.problem)[0]), now.log_chance)

    lapse = bounded("lapse", 0.0, 1.0, 0.05)
    models = [Model("chance", (), chance, "all actions alike")]
    if len(names) > 1:
        models.append(Model(CONSTANT, (*inner, simplex("weights", names)), constant, "one mixture for all decisions"))
    models += [
        Model(f"{name} alone", tuple(inner), partial(alone, a), "one primitive for all decisions")
        for a, name in enumerate(names)
    ]
    if len(names) > 1:
        words = "the primitive with the least expected cost, with a lapse"
        models.append(Model("cheapest", (*inner, lapse), cheapest, words))
    if features and len(names) > 1:
        labels = [
            f"{name}, {'constant' if i == 0 else f'feature {i}'}" for name in names[:-1] for i in range(features + 1)
        ]
        gate = real("gate", labels=labels)
        models.append(Model("softmax gate", (*inner, gate), softmax_gate, "weights by a softmax of given features"))
    models.append(Model("composed with a lapse", (*free, lapse), lapsing, "the agent, blind in a share of decisions"))
    return models


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


def inner_parameters(
    family: Family, free: Sequence[Parameter], fixed: Theta, by: By, data: Any
) -> tuple[Parameter, ...]:
    """The free parameters of the primitives: those that move ln pi_a at an observed action, whatever the weights."""
    start = {parameter.name: jnp.asarray(parameter.start, float) for parameter in free}
    some = jax.tree_util.tree_map(lambda leaf: leaf[:8], data)

    def at(theta: Theta) -> Any:
        return jax.vmap(lambda unit: choice(family.build({**fixed, **theta}), by, unit).log_at)(some)

    slope = jax.jit(jax.jacrev(at))(start)
    return tuple(parameter for parameter in free if float(jnp.abs(jnp.asarray(slope[parameter.name])).max()) > 0)
