"""What the report says of this study whatever was measured: its title, its lead, and what each figure shows."""

TITLE = "Collective behaviour: boids that weigh three social forces"

LEAD = """Each boid of the paper's flock mixes separation, alignment and cohesion anew at every step, with weights from
the gate. The paper shows single flights: a flock that polarizes, one that mills, one that a few leaders bring to a
goal, and followers of other models. Here the same flights are flown from several random starts each, with Table
S1's constants, and measured: polarization, milling, distance of the flock's centre from the goal, and how the
weights move. Every weight comes with a certificate of 1e-10. Beside each claim stands the flock without the thing
that is said to matter."""

CAPTIONS = {
    "behaviours": """Paths of one seed, colour is time: crosses mark the start, dots the end (leaders orange), the star
is the goal. Below, the weights of one boid in time on the simplex of the three forces; the orange cross is the
balanced mixture. Compare how far a follower's dots and a leader's keep from the cross.""",
    "weights_of_all": """The weights of every boid of the leaderless flock, one triangle each: top is separation, left
alignment, right cohesion, colour is time. Late (yellow) dots that lie off the centre are a bias that stays.""",
    "order": """Mean and one standard deviation over the seeds. **Top left**: the leaderless flock with the gate, and
with weights held at a third. **Top right**: the milling order parameter from the ring with the collision term,
without it, and from a random start. **Bottom**: polarization and distance to the goal by share of leaders; after
arrival the distance rises again, as nothing in the model asks the flock to stop. Grey is the control in every
panel.""",
    "informed": """All boids informed (top) and one in five (bottom): paths of one seed, order and distance over all
seeds against the flock without leaders (grey), and the weights of one leader.""",
    "temperatures": """Left: polarization and distance to the goal at three temperatures, mean and one standard
deviation over the seeds. Right: the weights of one leader (orange) and one follower (blue). The hotter, the flatter
the weights; where the leader's curve lies on the follower's, nobody leads.""",
    "followers": """Six leaders of the paper's model among followers of three models of the literature, with the
constants of the released scripts: paths of one seed, order and distance over all seeds against the same followers
without leaders (grey), and the weights of one leader.""",
    "forms": """How near the flock's centre comes to the goal, one dot for each seed and a bar at their median:
followers with the released constants and in the form of the original papers, with six leaders (colour) and with
none (grey). Below the dashed line the flock counts as arrived.""",
}

SHOWS = {
    "behaviours": ("F1", "F2", "F3", "F4", "F5"),
    "weights_of_all": ("F2",),
    "order": ("F1", "F3", "F4", "F6", "F7"),
    "informed": ("F6", "F7"),
    "temperatures": ("F8",),
    "followers": ("F9", "F10", "F11"),
    "forms": ("F9", "F10", "F11"),
}
