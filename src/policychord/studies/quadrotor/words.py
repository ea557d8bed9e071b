"""What was found about the drone, in plain words; every sentence is chosen by the numbers of the run."""

import numpy as np
from scipy.stats import norm

from ..study import Evidence, Passage
from .claims import CONTROL, RELEASED, USEFUL, WRITTEN
from .comparing import BASELINE, against_baseline, beside, in_both, median, pairs
from .metrics import alternation, recovery
from .plan import ACCELERATIONS, SCRIPT_VALUE, SCRIPT_WEIGHT, disputed_at, flights_at
from .settings import QuadrotorSettings

TITLE = "A drone and two controllers: the layered-control study"
LEAD = """The paper lets a small drone follow a figure of eight in gusts with two controllers of which neither can do
it alone: one keeps it in the air and goes nowhere, the other follows the path, but not well enough. At every step
their thrusts are mixed by the optimal weights, and the cost of an episode is compared with a standard controller: PID
for a pair of PD primitives, LQR for a pair of LQR primitives that also meets an impulse. Here every controller flies
through the same weather, seed by seed, and each claim is judged twice: for the gate that the paper's scripts compute
(the released gate, `one-step gate` in the tables), and for the optimum that its text defines (`equilibrium, sample`).
A claim is reproduced if its rule holds for both, and partly if for one.

Random forces act where the drone was when the control step began, as in the paper's simulator (`stale-point`); once the
drone has moved, they also turn it. Values marked `centre` come from the same forces at the centre of mass, which only
push. Differences in cost are judged by the paper's test (Mann-Whitney, p). Since flights of one seed share their
disturbances, Wilcoxon's signed-rank test for pairs stands beside it (paired p) and judges nothing. Delta is Cliff's:
how often a flight costs more than one of the other's, less how often it costs less."""
REPORTED = {"pd": -0.14, "lqr": -0.34}  # the paper's deltas
PAPERS_SEEDS = 1000


def found(settings: QuadrotorSettings, evidence: Evidence) -> list[Passage]:
    passages = (takes_turns, average, as_written, disturbances, one_step, useful, impulse, differs, seeds)
    return [passage(settings, evidence) for passage in passages]


def takes_turns(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    flights = flights_at(settings, evidence, "pd", "stale-point")
    swaps, settled = alternation(flights[RELEASED]), alternation(flights[WRITTEN])
    if swaps > 0.5:
        title = "The released gate takes turns"
        so = "Two controllers that take turns this fast act much like their average."
    else:
        title = "The released gate is a single undamped step"
        so = "In this run it does not simply take turns."
    both = in_both(settings, evidence, RELEASED)
    return Passage(
        title,
        f"""The paper's text weighs the controllers by the minimum of its objective. Its scripts evaluate the gradient
once, at the previous weights, put a floor of 1e-8 under the mixture and the generative model, and relax almost fully
towards the softmax of that gradient: one undamped fixed-point step for each decision. Here the leading controller
changes at {100 * swaps:.0f}% of the steps with that gate, and at {100 * settled:.0f}% at the optimum. {so}

In cost, the released gate {against_baseline(both)}.""",
    )


def average(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    both = in_both(settings, evidence, CONTROL, RELEASED)
    if any(one.dearer for one in both.values()):
        title = "The average is not all of it"
        so = "So the released gate does more than to average, in at least one of the two."
    else:
        better = all(one.cheaper for one in both.values())
        title = "The average does better" if better else "The average is not shown to do worse"
        so = "So the costs of the released gate are no evidence that weights have to be computed."
    return Passage(
        title,
        f"""A fixed 50/50 mixture of the two commands has no gate, no generative model and no temperature. Beside the
released gate, {pairs(both, "the gate")}. {so}""",
    )


def as_written(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    drawn = in_both(settings, evidence, WRITTEN)
    mean = in_both(settings, evidence, "equilibrium, mean", WRITTEN)
    wide = in_both(settings, evidence, "equilibrium, sample, wide", WRITTEN)
    holds = all(one.cheaper for one in drawn.values())
    title = "The optimum as the text defines it " + ("holds up" if holds else "does not give the published result")
    return Passage(
        title,
        f"""With the weights at the minimum of the objective and the thrust drawn from the mixture, as the text says,
the composition {against_baseline(drawn)}.

Two details bear on it. Drawing adds noise that the scripts, which apply the controllers' own commands, do not have:
for the mean of the mixture, {pairs(mean, "the drawn thrust")}. And on the paper's grid, which ends at the limits of the
motors, a command near a limit makes a narrower primitive with less entropy, which moves the weights by itself: with a
grid that reaches {settings.wide_margin:g} N further, {pairs(wide, "the drawn thrust on the paper's grid")}.""",
    )


def disturbances(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    centre = in_both(settings, evidence, RELEASED, world="centre")
    weak = disputed_at(evidence, ACCELERATIONS)
    mild = beside(settings, weak, RELEASED)
    here, there = (flights_at(settings, evidence, "lqr", world)["baseline"] for world in ("stale-point", "centre"))
    fewer = len(there.cost)
    return Passage(
        "The disturbances are forces, and they act beside the drone",
        f"""The text adds the disturbances to the accelerations. In the simulator they are forces in newtons, 37
times as strong on a drone of 27 g, and they act where the drone was when the decision was made: once it has moved, they
turn it as no wind would. With the same forces at the centre of mass ({fewer} seeds) LQR costs
{median(there):.0f} instead of {median(here):.0f}, and the released gate {against_baseline(centre)}.

Read literally, as accelerations, the disturbances nearly vanish: the released gate then {mild.verb} PID
({mild.figures}), and the optimum as written {beside(settings, weak, WRITTEN).verb} it
({beside(settings, weak, WRITTEN).figures}).""",
    )


def one_step(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    ahead = in_both(settings, evidence, "cost-to-go", "equilibrium, mean, wide")
    control = in_both(settings, evidence, "equilibrium, mean, wide", CONTROL)
    blind = not any(one.cheaper for one in control.values())
    title = "One step does not see where a thrust leads" if blind else "One step sees little of where a thrust leads"
    return Passage(
        title,
        f"""The generative model prices the state after one step of 20 ms. In the drone's Euler model only the
vertical speed and the pitch rate depend on the thrusts within that step; where the drone will be does not, so the gate
cannot prefer a thrust for leading back to the path. With the mean action and the wide grid,
{pairs(control, "the fixed mixture")}. With the cost-to-go in place of the cost of one step and nothing else changed,
{pairs(ahead, "the same gate with one step")}.""",
    )


def useful(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    base, control = in_both(settings, evidence, USEFUL), in_both(settings, evidence, USEFUL, CONTROL)
    centre = in_both(settings, evidence, USEFUL, world="centre")
    flights = flights_at(settings, evidence, "lqr", "centre")
    rest = [name for name in flights if name not in ("baseline", "stabilise", "track")]
    better = [name for name in rest if beside(settings, flights, name).cheaper]
    beaten = f"beaten by {'; '.join(better)}" if better else "beaten by no composition here"
    gains = all(one.cheaper for one in control.values())
    return Passage(
        "What makes the gate useful" if gains else "What was tried to make the gate useful",
        f"""A generative model that looks ahead. With the cost-to-go of the LQR, x'Px with P from the Riccati equation,
the mean action and eps = {settings.warm_eps:g}, the composition {against_baseline(base)}; beside the average of its two
controllers, {pairs(control, "the fixed mixture")}. With forces at the centre of mass it {against_baseline(centre)}.
There, where nothing turns the drone but its motors, the LQR baseline, the optimum for the drone's linear model, is
{beaten}.""",
    )


def impulse(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    flights = flights_at(settings, evidence, "lqr", "stale-point")
    times = {n: float(np.median(recovery(settings, flights[n]).time)) for n in ("baseline", RELEASED, CONTROL)}
    words = {name: f"{time:.2f} s" if np.isfinite(time) else "not within the episode" for name, time in times.items()}
    faster = times[RELEASED] < times["baseline"]
    mixture = "So does" if (times[CONTROL] < times["baseline"]) == faster else "Not so"
    return Passage(
        "After the impulse",
        f"""The released gate comes back to within {settings.recovered:g} m of the path
{"sooner" if faster else "no sooner"} than LQR: in the median after {words[RELEASED]}, LQR after {words["baseline"]}.
{mixture} the fixed mixture, which knows nothing of an impulse: {words[CONTROL]}.""",
    )


def differs(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    lines = []
    for experiment, one in in_both(settings, evidence, RELEASED).items():
        paper, effect = REPORTED[experiment], one.effect
        agrees = effect.low <= paper <= effect.high
        lines.append(
            f"With {experiment.upper()} primitives the released gate has a delta of {effect.delta:+.2f} against "
            f"{BASELINE[experiment]} (95% interval {effect.low:+.2f} to {effect.high:+.2f}); the paper's {paper:+.2f} "
            f"lies {'inside' if agrees else 'outside'} that interval."
        )
    script = disputed_at(evidence, SCRIPT_WEIGHT)
    changed, count = beside(settings, script, RELEASED), len(script[RELEASED].cost)
    table = in_both(settings, evidence, RELEASED)["lqr"]
    return Passage(
        "This run beside the paper's numbers",
        f"""{" ".join(lines)}

An exact match is not to be expected. The cascade's turns are limited to a difference of thrusts about as large as the
noise of the motors, so that a change in the last digit becomes another flight: costs of single seeds are not portable,
their distributions are. Text and scripts also differ in numbers. The table gives the stabilising LQR a second weight of
{settings.lqr_stabilise.state[1]:g}, the script {SCRIPT_VALUE:g}: with the script's weight ({count} seeds) the released
gate {changed.verb} LQR ({changed.figures}), with the table's it {table.verb} LQR ({table.figures}). The size of the
figure of eight, {settings.scale:g} m, is in the scripts alone.""",
    )


def expected_p(delta: float, count: int) -> float:
    """The Mann-Whitney p-value of a delta between two samples of this size: z = delta / sqrt((2n + 1)/(3 n^2))."""
    return float(2 * norm.sf(abs(delta) / np.sqrt((2 * count + 1) / (3 * count**2))))


def seeds(settings: QuadrotorSettings, evidence: Evidence) -> Passage:
    count = len(flights_at(settings, evidence, "pd", "stale-point")["baseline"].cost)
    here, paper = ({e: expected_p(d, n) for e, d in REPORTED.items()} for n in (count, PAPERS_SEEDS))
    blind = [e for e, p in here.items() if p >= 0.05]
    if blind:
        pair = " and ".join(f"{e.upper()} pair" for e in blind)
        so = f"A difference as large as the paper's for the {pair} would then not count as one: fly more (`--full`)."
    else:
        so = "Differences as large as the paper's are then told from chance."
    return Passage(
        f"What {count} seeds can show",
        f"""A p-value shrinks with the number of seeds whatever the effect. A delta of {REPORTED["pd"]:+.2f} has an
expected p of {here["pd"]:.1g} with {count} seeds and of {paper["pd"]:.1g} with {PAPERS_SEEDS}; a delta of
{REPORTED["lqr"]:+.2f} of {here["lqr"]:.1g} and {paper["lqr"]:.1g}. {so}""",
    )
