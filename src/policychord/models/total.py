"""`Sum`: several demands at once."""

from .._types import Observation, Time
from ..actions import AbstractActions
from .base import AbstractModel, Terms


class Sum(AbstractModel):
    """s(u) = the sum of the models' costs. Terms carry their model's name: `Sum(goal=Cost(...))` has `goal.state`."""

    models: dict[str, AbstractModel]

    def __init__(self, **models: AbstractModel):
        if not models:
            raise ValueError("a sum needs at least one model: Sum(goal=..., safety=...).")
        for name, model in models.items():
            if not isinstance(model, AbstractModel):
                raise ValueError(f"{name} is a {type(model).__name__}: pass generative models.")
        self.models = models

    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        return {
            f"{name}.{term}": cost
            for name, model in self.models.items()
            for term, cost in model.terms(actions, observation, k).items()
        }
