"""The figures of the quadrotor study, with what is seen on them."""

from ..study import Plate
from .figures import FIGURES

_TRAJECTORIES = """One flight of the released gate (blue) and one of the baseline (pink) through the same
disturbances, over the path (grey), from the red cross; silhouettes show the drone's pitch. The episode is one in
which both cost about as much as in the median. Left, PD primitives beside PID; right, LQR primitives beside LQR, with
the impulse marked. Look at how far each line parts from the path, and where."""

_COSTS = """Total cost of an episode for every controller: boxes from the lower to the upper quartile with the median,
whiskers without outliers, on a logarithmic scale; dotted lines continue the baseline's median. Orange: forces as in
the paper's simulator; blue: the same forces at the centre of mass. `baseline`, `stabilise` and `track` fly alone.
`one-step gate` is what the paper's scripts compute, `equilibrium, sample` what its text defines; `wide` is a grid
past the motors' limits, `fixed 50/50` a mixture without any gate, `cost-to-go` a model that looks ahead. Compare each
composition with the dotted line of its colour, and then with `fixed 50/50`."""

_IMPULSE = """LQR pair, around the impulse (vertical line). Left: the stabilising weight of the released gate in one
flight, a dot for each decision; where dots lie on both borders, the two controllers take turns. Middle: its mean over
all flights, averaged over two neighbouring steps so that the turns do not hide it. Right: median distance from the
path; the dotted line is the radius that counts as back. Faster recovery means a line that returns below it
earlier."""

_TEMPERATURE = """Median cost (dots) and quartiles (bands) of the PD pair against the temperature, for a model that
prices one step and for one that prices all that follow; mean action, wide grid. Dashed: PID and the fixed mixture.
Where a line does not go below the grey one, the gate adds nothing to an average; at high temperatures every gate
becomes it."""

PLATES = {
    "trajectories": Plate(FIGURES["trajectories"], _TRAJECTORIES, ("Q1", "Q5")),
    "costs": Plate(FIGURES["costs"], _COSTS, ("Q1", "Q2", "Q3", "Q4")),
    "impulse": Plate(FIGURES["impulse"], _IMPULSE, ("Q5",)),
    "temperature": Plate(FIGURES["temperature"], _TEMPERATURE, ("Q2",)),
}
