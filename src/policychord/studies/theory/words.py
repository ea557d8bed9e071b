"""What the report says of this study whatever was measured: its title, its lead, and what each figure shows."""

TITLE = "Theory: one energy, one flow, one circuit"

LEAD = """The paper derives a softmax gate from one variational problem, shows that a flow computes it while an energy
only falls, and writes the flow as a neural circuit of six layers. Twelve of its statements can be checked by
measurement. Here they are, on 240 random problems (peaked and flat primitives, hot and cold, half of them with a
prior) and on problems as they occur in the paper's three studies. Paths are integrated to ten digits, optima come
from optimisers that know nothing of this library's solver, and derivatives from automatic differentiation.

In formulas w are the weights and w\\* the optimal ones; V is the energy and F its part without the temperature eps; h
is the gradient of F, up to a constant; S(w) = softmax(-h(w)/eps + ln prior) is the gate; KL is the Kullback-Leibler
divergence; tau is the time constant of the flow. Of the circuit's layers, a, b and y compute the gradient (at rest y =
-h/eps + ln prior), and m, r and w turn it into weights."""

CAPTIONS = {
    "landscape": """The energy of one problem with three primitives, over all mixtures of them: a corner is one
primitive alone, dark is low. White lines are the flow from a ring of starts (dots); the star is the optimum found
by the solver. Look at where the lines end: all meet at the star, and none leaves the triangle.""",
    "bounds": """**a** The energy gap of random problems along the flow, divided by the gap at the start, against the
bound of the theorem (orange). **b** The distance of the weights from the optimum, divided by the bound at the
start. A curve above orange would refute the theorem; curves that run parallel to it show where the bound is tight,
steeper ones where the flow is faster than guaranteed. **c** For weights far from and near the optimum, how far
their energy is from the least (blue) against the certificate that one evaluation of the gate gives: below the
diagonal, the certificate holds. Yellow is the bound from the other side.""",
    "agreement": """The largest error over all problems (dot) for every statement judged by an error, and what its rule
allows (bar). A dot right of its bar, in orange, fails. A triangle at the left means that a bound was never even
reached.""",
    "circuit_and_flow": """Weights in time on one problem of each of the paper's studies: the flow (broad, pale) and
the circuit with time scales that suit its temperature (dashed). The circuit trails the flow a little where weights
move fast, since its layers take time to follow, and ends at the same weights.""",
    "stability_map": """How fast the circuit departs from the optimum (red) or returns to it (blue), by temperature and
by how much faster each layer is than the next; the line is where it neither grows nor decays. Dots are the paper's
three temperatures at a ratio of ten. Left, with the time scales ordered as in the text; right, with the two middle
ones shortened in proportion to the temperature. The line tells the least ratio that the ordering needs at each
temperature.""",
    "oscillation": """One problem of the bandit study (temperature 0.01), integrated neuron by neuron, with each layer
ten times faster than the next (left) and with the corrected ladder (right). Broad lines are the optimal weights.
Look at whether the thin lines come to rest on them.""",
}

SHOWS = {
    "landscape": ("T1", "T2"),
    "bounds": ("T5", "T6", "T7"),
    "agreement": ("T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11"),
    "circuit_and_flow": ("T11",),
    "stability_map": ("T12",),
    "oscillation": ("T12",),
}
