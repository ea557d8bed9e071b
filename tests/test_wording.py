"""What is wrong with settings is said by name, with the value and the remedy."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from policychord.wording import LONGEST, NOWHERE, Sources, in_words, nearest


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    low: float = 0.0


class Told(BaseModel):
    model_config = ConfigDict(extra="forbid")

    eps: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    seeds: int = Field(default=2, ge=1, le=9)
    gate: Literal["a", "b"] = "a"
    names: tuple[str, ...] = Field(default=(), max_length=2)
    inner: Inner | None = None
    over: dict[str, Inner] = {}

    @model_validator(mode="after")
    def _fits(self):
        if self.seeds == 7:
            raise ValueError("seeds = 7 is nobody's number: pass another")
        return self


def said(sources=NOWHERE, **given):
    with pytest.raises(ValidationError) as refused:
        Told(**given)
    return in_words(refused.value, Told, sources)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"eps": -1.0}, "eps = -1: must be more than 0."),
        ({"eps": "hot"}, "eps = 'hot': must be a number."),
        ({"eps": float("nan")}, "eps = nan: must be a finite number."),
        ({"seeds": 10}, "seeds = 10: must be at most 9."),
        ({"seeds": 7}, "seeds = 7 is nobody's number: pass another."),
        ({"gate": "c"}, "gate = 'c': use 'a' or 'b'."),
        ({"names": 3}, "names = 3: must be a list."),
        ({"names": ["a"] * 3}, "names = ['a', 'a', 'a']: must have at most 2 entries."),
        ({"inner": 3}, "inner = 3: must be a table with low."),
        ({"inner": {"lwo": 1}}, "inner.lwo is not a setting: did you mean low?"),
        ({"over": {"x": {"lwo": 1}}}, "over.x.lwo is not a setting: did you mean low?"),
        ({"epz": 1, "seeds": 0}, "seeds = 0: must be at least 1. epz is not a setting: did you mean eps?"),
    ],
)
def test_sentences(given, words):
    assert said(**given) == words


def test_it_is_said_where_the_value_came_from():
    assert said(Sources({"eps": "--eps"}), eps=-1.0) == "--eps -1: must be more than 0."
    assert said(Sources(file=Path("a/own.toml")), eps=-1.0) == "eps = -1 in own.toml: must be more than 0."


def test_a_long_value_is_cut():
    assert len(said(names="x" * 10_000)) < 2 * LONGEST


def test_a_name_that_nobody_knows():
    assert nearest("epz", ["eps", "seeds"]) == "did you mean eps?"
    assert nearest("zzz", ["eps", "seeds"]) == "there are eps, seeds."
