"""The optimiser arrives where outer products of scores say nothing true about the curvature."""

import numpy as np

from policychord.inference.search import maximise_groups


def test_a_run_along_a_bent_ridge_arrives() -> None:
    """Rosenbrock's function with products of a wrong scale: 741 evaluations once, and no end."""
    evaluations = 0

    def objective(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        nonlocal evaluations
        evaluations += 1
        x, y = z.T
        slope = np.stack([2 * (1 - x) + 400 * x * (y - x**2), -200 * (y - x**2)], axis=1)
        return -((1 - x) ** 2) - 100 * (y - x**2) ** 2, slope, np.tile(1e-3 * np.eye(2), (len(z), 1, 1))

    modes = maximise_groups(objective, np.array([[-1.2, 1.0]]))
    assert modes.converged.all()
    np.testing.assert_allclose(modes.z, 1.0, atol=1e-5)
    assert evaluations < 150
