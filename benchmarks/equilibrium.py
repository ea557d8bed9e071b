"""Speed of `solve` against the flow by ODE solvers and a cone solver: CPU time, one thread, contenders in turn.

python -m benchmarks.equilibrium --out build/bench.json
"""

from functools import partial

import numpy as np

from policychord import Problem, Tsallis, best_response, certify, problem, solve

from . import fresh, growth, traced
from .families import SIZES, Arrays, flock_cost, gaussians, grid
from .report import Parts, Target, report
from .rivals import Clarabel, Moreau, integrate, is_installed, on_simplex
from .timing import Contender, Record, take_turns

PROBLEMS_FOR_RIVALS = 8


TARGETS = [
    Target("size A", "RK45", 600.0),
    Target("size B", "RK45", 600.0),
    Target("size C", "RK45", 1500.0),
    Target("size D", "RK45", 150.0),
    Target("size E", "RK45", 5.0),
    Target("one call, size A", "RK45", 50.0),
    Target("one problem and call, size A", "one of a batch", 6.7, most=True),  # 60 us where the kernel takes 9
    Target("pure JAX route in jit, size A", "NumPy arrays", 0.15),  # 60 us where the kernel takes 9
    Target("pure JAX route in jit, size D", "NumPy arrays", 0.4),
    *(Target(f"value and gradient, size {size}", "value alone", 1.5, most=True) for size in "ABD"),
    Target("value and gradient, size E", "value alone", 1.6, most=True),
]


def one_of(problems: Problem, index: int) -> Problem:
    """A single problem of a batch."""
    return Problem(*(field[index] for field in problems))


def against_rivals(size: str, seed: int) -> list[Record]:
    """A batch of ours against several of its problems for each rival, which take them one by one."""
    family = SIZES[size]
    problems = problem(**family.draw(np.random.default_rng(seed), family.batch)._asdict())
    few = [one_of(problems, k) for k in range(PROBLEMS_FOR_RIVALS)]
    answers = {method: [partial(integrate, one, method) for one in few] for method in ("RK45", "LSODA")}
    if size == "A":
        answers["Clarabel"] = [Clarabel(one).solve for one in few[:3]]
    contenders = {"ours": Contender(lambda: solve(problems), family.batch)} | {
        name: Contender(lambda calls=calls: [call() for call in calls], len(calls)) for name, calls in answers.items()
    }
    reached = {
        name: max(float(certify(one, on_simplex(call())).gap) for one, call in zip(few, calls, strict=False))
        for name, calls in answers.items()
    }
    if size in "ACD" and is_installed("moreau"):
        for name, some in {"moreau, one by one": 1, "moreau, batch of 8": PROBLEMS_FOR_RIVALS}.items():
            taken = Problem(*(field[:some] for field in problems))
            rival = Moreau(taken)
            contenders[name] = Contender(rival.solve, some)
            reached[name] = float(certify(taken, rival.solve()).gap.max())
    times = take_turns(contenders, rounds=15 if size != "A" else 9)
    ours, gap = times.pop("ours"), float(solve(problems).certificate.gap.max())
    return [
        Record(f"size {size}", ours, name, us, us / ours, gap, f"it reached {reached[name]:.0e}")
        for name, us in times.items()
    ]


def sparse_gates(seed: int) -> list[Record]:
    """The response to a linear cost with exact zeros, against the package entmax; answers of both are certified."""
    if not is_installed("entmax"):
        return []
    import entmax
    import torch

    torch.set_num_threads(1)
    lines = []
    for n in (3, 16, 128):
        cost = np.random.default_rng(seed).normal(scale=2.0, size=(1000, n))
        tensor = torch.tensor(-cost)
        for alpha, theirs in ((1.5, entmax.entmax15), (2.0, entmax.sparsemax)):
            linear = problem(complexity=priced, n=n, eps=np.ones(1000), parameters=cost, regulariser=Tsallis(alpha))
            calls = {
                "ours": lambda alpha=alpha, cost=cost: best_response(cost, regulariser=Tsallis(alpha)),
                "entmax": lambda theirs=theirs, tensor=tensor: theirs(tensor, dim=-1).numpy(),
            }
            gaps = {name: float(certify(linear, on_simplex(call())).gap.max()) for name, call in calls.items()}
            times = take_turns({name: Contender(call, 1000) for name, call in calls.items()})
            line = f"sparse gate, alpha {alpha:g}, n = {n}", times["ours"], "entmax", times["entmax"]
            lines.append(
                Record(*line, times["entmax"] / times["ours"], gaps["ours"], f"it reached {gaps['entmax']:.0e}")
            )
    return lines


def priced(weights, cost):
    """A linear complexity, of which the optimum is the best response."""
    return cost @ weights


def single_call(seed: int) -> list[Record]:
    """The latency of one problem, with and without building it, against RK45 on the same one."""
    arrays = SIZES["A"].draw(np.random.default_rng(seed), PROBLEMS_FOR_RIVALS)
    given = [Arrays(a.pi[k], a.action_cost[k], a.eps[k]) for a in (arrays,) for k in range(PROBLEMS_FOR_RIVALS)]
    built = [problem(**one._asdict()) for one in given]
    contenders = {
        "one call": Contender(lambda: [solve(one) for one in built], len(built)),
        "one problem and call": Contender(lambda: [solve(problem(**one._asdict())) for one in given], len(built)),
        "RK45": Contender(lambda: [integrate(one, "RK45") for one in built], len(built)),
    }
    together = problem(**arrays._asdict())
    contenders["one of a batch"] = Contender(lambda: solve(together), len(built))
    times = take_turns(contenders, rounds=15)
    gap = max(float(solve(one).certificate.gap) for one in built)
    reference, bare = times.pop("RK45"), times.pop("one of a batch")
    lines = [Record(f"{name}, size A", us, "RK45", reference, reference / us, gap) for name, us in times.items()]
    return lines + [Record(f"{name}, size A", us, "one of a batch", bare, us / bare, gap) for name, us in times.items()]


def slowly_changing(eps: float, rng: np.random.Generator, steps: int, batch: int) -> list[Problem]:
    """Size A in motion: means and velocities that drift a little from one step to the next."""
    points = grid(-3.0, 3.0)
    means, velocities = rng.uniform(-2.0, 2.0, (batch, 3, 2)), rng.uniform(-0.7, 0.7, (2, batch, 2))
    sequence = []
    for _ in range(steps):
        means = np.clip(means + 0.05 * rng.normal(size=means.shape), -3.0, 3.0)
        velocities = velocities + 0.01 * rng.normal(size=velocities.shape)
        pi = gaussians(points, means, np.sqrt(0.1))
        sequence.append(problem(pi=pi, action_cost=flock_cost(points, *velocities), eps=eps))
    return sequence


def warm_start(eps: float, seed: int) -> Record:
    """Each step started from the previous answer, against each started from the prior."""
    batch, steps = 40, 40
    sequence = slowly_changing(eps, np.random.default_rng(seed), steps, batch)

    def cold():
        return [solve(problems) for problems in sequence]

    def warm():
        found = [solve(sequence[0])]
        for problems in sequence[1:]:
            found.append(solve(problems, start=found[-1].weights))
        return found

    times = take_turns({"cold": Contender(cold, batch * steps), "warm": Contender(warm, batch * steps)})
    passes = {name: np.mean([e.passes for e in run()]) for name, run in (("warm", warm), ("cold", cold))}
    gap = max(float(e.certificate.gap.max()) for e in warm())
    note = f"passes {passes['warm']:.1f}, cold {passes['cold']:.1f}"
    ratio = times["cold"] / times["warm"]
    return Record(f"warm start, size A, eps {eps:g}", times["warm"], "cold start", times["cold"], ratio, gap, note)


def parts(seed: int) -> Parts:
    """Everything that is measured, by name."""
    return {f"size {size} against others": lambda size=size: against_rivals(size, seed) for size in SIZES} | {
        "one call": lambda: single_call(seed),
        "sparse gates": lambda: sparse_gates(seed),
        "warm starts": lambda: [warm_start(eps, seed) for eps in (0.5, 0.01)],
        "inside jit": lambda: traced.records(seed),
        "growth": lambda: growth.records(seed),
        "new processes (compiling)": fresh.records,
    }


if __name__ == "__main__":
    title = "CPU microseconds per solve, one thread, medians of interleaved rounds"
    report(__doc__, parts, title, TARGETS, "build/bench.json")
