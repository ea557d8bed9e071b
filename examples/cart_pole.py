"""CartPole-v1 from three habits, none of which can do it: catch the pole, hold it up, keep the cart in the middle."""

import jax.numpy as jnp
from contest import certain, compare, contestants, draw, show
from style import save

import policychord as pc

pc.enable_x64()

LEANS, ENDS = 0.2095, 2.4  # the episode is over beyond this angle, or this far from the middle


def predict(state, label, k):
    """The cart and its pole after a push to the left (0) or to the right (1): the equations of CartPole-v1."""
    place, velocity, angle, spin = state
    force = 20.0 * label - 10.0
    pull = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
    turn = (9.8 * jnp.sin(angle) - jnp.cos(angle) * pull) / (0.5 * (4.0 / 3.0 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
    push = pull - 0.05 * turn * jnp.cos(angle) / 1.1
    return jnp.stack([place + 0.02 * velocity, velocity + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn])


def price(state, k):
    """How close a state is to the end, and whether it is beyond."""
    place, _, angle, _ = state
    near = (angle / LEANS) ** 2 + (place / ENDS) ** 2
    return near + 10.0 * ((jnp.abs(angle) > LEANS) | (jnp.abs(place) > ENDS))


def catch(state, k):
    """Push to the side to which the pole turns, wherever it is."""
    return (state[3] > 0).astype(int)


def upright(state, k):
    """Push to the side to which the pole leans, however it turns."""
    return (state[2] > 0).astype(int)


def middle(state, k):
    """Push the cart to the middle."""
    return (state[0] + 0.7 * state[1] < 0).astype(int)


def hand(state, k):
    """A rule that a person would tune: the pole first, and a slight lean towards the middle."""
    return (state[2] + 0.3 * state[3] + 0.05 * state[0] + 0.1 * state[1] > 0).astype(int)


if __name__ == "__main__":
    composer = pc.Composer(
        {"catch": certain(catch), "upright": certain(upright), "middle": certain(middle)},
        pc.Cost(predict=predict, state_cost=price), pc.Finite(2), eps=0.05, selection="mode",
    )  # fmt: skip
    agents = contestants(
        composer, one_step=composer.model, predict=predict, stage=lambda state, label, k: price(state, k),
        steps=50, hand=certain(hand),
    )  # fmt: skip
    # the habits were tried out in episodes 0 to 15, which therefore are not among these
    _, returns = compare(agents, "CartPole-v1", range(1000, 1050))
    show("CartPole-v1", returns)
    save(draw("CartPole-v1", returns), "cart_pole")
