"""The drone's outline in the plane, as lines to draw."""

import numpy as np
from jaxtyping import Float

SPAN = 0.16  # m; drawn larger than the drone is (0.08), so that its pitch can be read


def silhouette(x: float, z: float, pitch: float) -> list[Float[np.ndarray, "point 2"]]:
    """Arm, two rotors on their masts: polylines of a drone at (x, z). A positive pitch leans towards positive x."""
    half, mast, rotor = SPAN / 2, SPAN / 7, SPAN / 4.5
    shape = [np.array([[-half, 0.0], [half, 0.0]])]
    for side in (-half, half):
        shape += [np.array([[side, 0.0], [side, mast]]), np.array([[side - rotor, mast], [side + rotor, mast]])]
    c, s = np.cos(pitch), np.sin(pitch)
    turn = np.array([[c, s], [-s, c]])
    return [line @ turn.T + [x, z] for line in shape]
