"""Tensors in, tensors out: the numbers of the library, and gradients that torch's own checker accepts.

torch is no dependency of ours: these tests run where somebody has installed it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed, and need not be")

import torch
from torch.autograd import gradcheck

import policychord
from policychord import Composer
from policychord.actions import Finite, Grid
from policychord.models import Cost
from policychord.primitives import Categorical, Gaussian
from policychord.torch import decide, solve

torch.set_num_threads(1)


def drawn(*batch, d=6, n=3, seed=0):
    random = torch.Generator().manual_seed(seed)
    normal = [torch.randn((*batch, *tail), generator=random, dtype=torch.float64) for tail in ((d, n), (d,), (), (n,))]
    return [normal[0].softmax(-2), normal[1], normal[2].exp(), normal[3].softmax(-1)]


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)], ids=str)
def test_the_numbers_are_those_of_the_library(batch):
    given = drawn(*batch)
    found = solve(*given)
    names = ("pi", "action_cost", "eps", "prior")
    expected = policychord.solve(policychord.problem(**{n: a.numpy() for n, a in zip(names, given, strict=True)}))
    for ours, theirs in zip((*found[:2], *found.certificate), (*expected[:2], *expected.certificate), strict=True):
        assert ours.dtype == torch.float64
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)
    assert bool(found.converged.all())
    assert found.weights.shape == (*batch, 3)


def test_gradients_of_the_weights_pass_torchs_checker():
    given = [a.requires_grad_() for a in drawn(2)]
    assert gradcheck(lambda *a: solve(*a, tol=1e-13).weights, given, atol=1e-6, rtol=1e-4)
    assert gradcheck(lambda *a: solve(*a, tol=1e-13).log_weights, given, atol=1e-6, rtol=1e-4)


def test_gradients_sum_over_what_is_shared():
    """Primitives and prior for all, one cost for each problem, one temperature."""
    pi, _, eps, prior = (a.requires_grad_() for a in drawn())
    cost = drawn(3)[1].requires_grad_()
    assert gradcheck(lambda *a: solve(*a, tol=1e-13).weights, [pi, cost, eps, prior], atol=1e-6, rtol=1e-4)


def test_a_network_behind_it_learns():
    """Gradient descent through the weights finds a cost that asks for them."""
    pi, cost, eps, prior = drawn(n=2)
    wanted = torch.tensor([0.8, 0.2], dtype=torch.float64)
    cost = cost.clone().requires_grad_()
    step = torch.optim.Adam([cost], lr=0.1)
    for _ in range(150):
        step.zero_grad()
        loss = ((solve(pi, cost, eps, prior).weights - wanted) ** 2).sum()
        loss.backward()
        step.step()
    assert loss.item() < 1e-4


def test_single_precision_comes_back_as_it_was():
    given = [a.float().requires_grad_() for a in drawn(2)]
    found, exact = solve(*given), solve(*(a.detach().double() for a in given))
    assert found.weights.dtype == found.log_weights.dtype == torch.float32
    assert exact.weights.dtype == torch.float64
    torch.testing.assert_close(found.weights, exact.weights.float(), atol=1e-7, rtol=1e-7)
    assert found.certificate.gap.dtype == torch.float64  # and below what single precision could say
    assert float(found.certificate.gap.max()) < 1e-9
    single, double = (decide(composer(), {"at": AT.to(kind), "goal": torch.zeros(2, dtype=kind)})
                      for kind in (torch.float32, torch.float64))  # fmt: skip
    assert single.action.dtype == single.weights.dtype == torch.float32
    assert double.action.dtype == double.weights.dtype == torch.float64
    torch.testing.assert_close(single.action.double(), double.action, atol=1e-6, rtol=1e-6)
    found.weights[:, 0].sum().backward()
    assert all(a.grad.dtype == torch.float32 and bool(a.grad.isfinite().all()) for a in given)


def test_probabilities_that_are_none_are_refused():
    pi, cost, eps, prior = drawn()
    with pytest.raises(ValueError, match="pi sums to 2"):
        solve(2 * pi, cost, eps, prior)
    with pytest.raises(ValueError, match="prior sums to 3"):
        solve(pi, cost, eps, 3 * prior)


def composer(selection="mean", **options):
    primitives = {"follow": Gaussian(lambda x, k: x["at"][:1], 0.4), "turn": Gaussian(lambda x, k: -x["at"][1:], 0.3)}
    model = Cost(lambda x, u, k: (x["at"][0] + u[0] - x["goal"]) ** 2)
    return Composer(primitives, model, Grid(-3.0, 3.0, 31), 0.5, selection=selection, tol=1e-13, **options)


AT = torch.tensor([[0.3, -0.4], [0.1, 0.8]], dtype=torch.float64)
GOAL = torch.tensor([0.5, -0.2], dtype=torch.float64)


def test_decisions_are_those_of_the_composer():
    found = decide(composer(), {"at": AT, "goal": GOAL})
    for i in range(2):
        expected = composer().decide(jax.random.key(0), {"at": jnp.asarray(AT[i].numpy()), "goal": float(GOAL[i])})
        np.testing.assert_allclose(found.weights[i].numpy(), expected.weights, atol=1e-9)
        np.testing.assert_allclose(found.action[i].numpy(), expected.action, atol=1e-9)
    assert float(found.certificate.gap.max()) <= 1e-12
    again = decide(composer(), {"at": AT, "goal": GOAL}, 1, memory=found.memory)
    torch.testing.assert_close(again.weights, found.weights)


def test_gradients_of_decisions_pass_torchs_checker():
    def both(at, goal):
        found = decide(composer(), {"at": at, "goal": goal})
        return found.weights, found.action

    given = [AT.clone().requires_grad_(), GOAL.clone().requires_grad_()]
    assert gradcheck(both, given, atol=1e-6, rtol=1e-4)


def test_labels_do_not_move_and_weights_do():
    habits = {
        "a": Categorical(lambda x, k: jnp.array([1.0, 0.0])),
        "b": Categorical(lambda x, k: jnp.array([0.0, 1.0])),
    }
    agent = Composer(habits, Cost(lambda x, u, k: x[0] * u), Finite(2), 0.5)
    seen = AT.clone().requires_grad_()
    found = decide(agent, seen, seed=3)
    assert found.action.dtype == torch.int64
    assert not found.action.requires_grad
    found.weights[:, 0].sum().backward()
    assert bool((seen.grad[:, 0] > 0).all())
    torch.testing.assert_close(decide(agent, seen, seed=3).action, found.action)


@pytest.mark.parametrize("observation", [np.zeros((2, 2)), torch.tensor(0.3), {"a": AT, "b": GOAL[:1]}], ids=str)
def test_what_is_no_batch_of_tensors_is_refused(observation):
    with pytest.raises(ValueError, match="tensors that share a leading batch axis"):
        decide(composer(), observation)
