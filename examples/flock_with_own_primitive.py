"""A hundred boids of the paper, and a primitive of one's own that brings them home."""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, figure, save

import policychord as pc

pc.enable_x64()

settings = pc.worlds.flock.FlockSettings(boids=100, grid=16)  # all else as in the paper
air = pc.worlds.flock.flock_world(settings)
paper = pc.worlds.flock.boid(settings, air, informed=False)
HOME_RANGE = 8.0  # m


def homeward(view, k):
    """The new primitive: accelerate towards the origin."""
    return -3.0 * view.position / jnp.maximum(jnp.linalg.norm(view.position), 1.0)


def wanted_velocity(view, k):
    """The neighbours' velocity, and towards home beyond its range: without a wish the ability would hardly be used."""
    far = jax.nn.sigmoid(2.0 * (jnp.linalg.norm(view.position) - HOME_RANGE))
    return (1 - far) * view.mean_velocity + far * homeward(view, k) / 3.0


def next_velocity(view, acceleration, k):
    return air.move(view.position, view.velocity, acceleration)[1]


homing = paper.with_primitives(home=pc.Gaussian(homeward, sd=0.3)).replace(
    model=pc.GaussianTarget(next_velocity, wanted_velocity, covariance=settings.desired_variance)
)
flights = {"the paper's boids": paper, "with home": homing}
traces = {name: pc.rollout(pc.Population(one, 100), air, steps=500) for name, one in flights.items()}
for name, trace in traces.items():
    off = np.linalg.norm(np.asarray(trace.state.position)[0], axis=-1)
    print(f"{name:<18} farthest from home {off.max():5.1f} m, largest certified gap {trace.gap.max():.0e}")
weight = np.asarray(traces["with home"].weights)[0, :, :, -1]
print(f"mean weight of home {weight.mean():.2f}")


def draw():
    """Where both flocks went, and how the weight of the new primitive follows the distance."""
    fig = figure(6.4, 3.0)
    paths, use = fig.subplots(1, 2)
    for (name, trace), colour in zip(traces.items(), (GREY, GREEN), strict=True):
        paths.plot(*np.asarray(trace.state.position)[0].mean(axis=1).T, color=colour, label=name)
        last = (np.asarray(a)[0].T for a in trace.final_state)
        paths.quiver(*next(last), *next(last), color=colour, scale=40, width=0.004)
    paths.plot(0, 0, "*", color="black", markersize=9)
    paths.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    paths.set_title("Centre of the flock; boids at the end")
    paths.legend()
    position = np.asarray(traces["with home"].state.position)[0]
    use.plot(0.05 * np.arange(500), np.linalg.norm(position, axis=-1).mean(axis=1), color=GREY)
    use.set(xlabel="time (s)", ylabel="mean distance from home (m)", ylim=(0, None))
    use.set_title("Distance, and in blue its weight")
    right = use.twinx()
    right.plot(0.05 * np.arange(500), weight.mean(axis=1), color=BLUE)
    right.set(ylim=(0, 0.5), ylabel="weight of home")
    return fig


if __name__ == "__main__":
    save(draw(), "flock_with_own_primitive")
