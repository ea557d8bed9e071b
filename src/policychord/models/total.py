"""`Sum`: several demands at once."""

from .._types import State, Time
from ..actions import AbstractActions
from .base import AbstractModel, Parts


class Sum(AbstractModel):
    """s(u) = the sum of the models' costs. Parts carry their model's name: `Sum(goal=Cost(...))` has `goal.state`."""

    models: dict[str, AbstractModel]

    def __init__(self, **models: AbstractModel):
        if not models:
            raise ValueError("a sum needs at least one model: Sum(goal=..., safety=...).")
        for name, model in models.items():
            if not isinstance(model, AbstractModel):
                raise ValueError(f"{name} is a {type(model).__name__}: pass generative models.")
        self.models = models

    def parts(self, actions: AbstractActions, state: State, k: Time) -> Parts:
        return {
            f"{name}.{part}": cost
            for name, model in self.models.items()
            for part, cost in model.parts(actions, state, k).items()
        }
