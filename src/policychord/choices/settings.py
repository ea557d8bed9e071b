"""Settings of an analysis of choices, and of simulated ones. They load nothing heavy: the command's options are these.

Text stays text here, such as `risky:36,0;safe:0`: what it means may depend on the table.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .._names import EPS, SEED

EACH = "one for all arms or one for each; by condition risky:36,0;safe:0"
Learner = Literal["kalman", "delta", "two-rates", "gain-loss", "bernoulli", "none"]


class ChoiceSettings(BaseModel):
    """How a table of choices is read, what people know of the arms, which models are compared, and what is checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    columns: str = Field(default="", description="what the table calls our columns, where the guess is wrong: subject, "
                         "block, trial, choice, reward (a sum will do: gain+loss), rt, condition, offered, left, "
                         "right, pair, group; none for a column that is not to be used; such as "
                         "subject=ppt,reward=outcome,block=none")  # fmt: skip
    arm_names: str = Field(default="", description="what the table calls the arms, in order")
    missed: str = Field(default="", description="what stands in the column choice if a trial was missed, besides NA "
                        "and nothing")  # fmt: skip
    sides: str = Field(default="", description="with columns left and right, or pair: what the column choice calls the "
                       "first and the second arm, such as 0,1; arms if it names the arm itself")  # fmt: skip
    longest_rt: float = Field(default=20_000.0, gt=0, description="trials of this many ms or more are doubtful")
    doubtful: Literal["learn", "drop", "keep"] | None = Field(
        default=None, description="slow trials and those without RT: learn from them but do not score them; drop them "
        "before learning; or keep them",
    )  # fmt: skip

    experiment: Literal["auto", "1", "2", "custom"] = Field(
        default="auto", description="what people know of the arms. auto: measured from the rewards, where not given "
        "below or in a file next to the table; 1 and 2: the tasks of Gershman (2018) with their variances (in 1 the "
        "second arm always pays zero); custom: as given below",
    )  # fmt: skip
    variance: str = Field(default="", description=f"how much an arm's value varies from block to block; {EACH}")
    noise: str = Field(default="", description=f"variance of a reward around its arm's value; {EACH}")
    prior_mean: str = Field(default="", description=f"what people expect of an arm at first; {EACH}")
    drift: str = Field(default="", description=f"variance that a value gains from trial to trial; {EACH}")
    decay: str = Field(default="", description="what is left of a value's distance from its mean after a trial, from 0 "
                       f"to 1; {EACH}")  # fmt: skip

    learner: Learner = Field(
        default="kalman", description="how people learn: kalman, delta (a rate), two-rates (for gains and losses), "
        "gain-loss (a rate, and how much a loss counts against a gain), bernoulli (wins and losses counted), none",
    )  # fmt: skip
    free: str = Field(default="", description="parameters of the learner that are fitted to each person, such as "
                      "noise,drift")  # fmt: skip
    models: str | None = Field(
        default=None, description="what is compared, and nothing else but chance: UCB, Thompson, Hybrid, Value, also "
        "with +stickiness and +lapse, or with a learner of its own (delta, two-rates:Value, kalman/noise:UCB); none "
        "(chance, in the group selection as well); Composed",
    )  # fmt: skip
    also: str = Field(default="", description="compare every classic model also with stickiness, with lapse, or with "
                      "both (stickiness+lapse); chance is one more model")  # fmt: skip
    reference: str = Field(default="", description="the model that the composed one comes close to")
    primitives: str = Field(default="", description="what is composed, of exploit, uncertainty, risk, repeat, random; "
                            "or paper: the paper's definitions, of which risk depends on the unit of the rewards (as "
                            "in experiments 1 and 2)")  # fmt: skip
    link: Literal["probit", "logit"] | None = Field(
        default=None, description="from utilities to probabilities: probit (two arms) or logit (any number)"
    )
    eps: float = Field(default=0.01, ge=1e-9, le=1e9, description=EPS)

    empirical_bayes: bool = Field(default=False, description="also draw everybody's estimates towards the group's "
                                  "(shrunk.csv)")  # fmt: skip
    recover: bool = Field(default=False, description="simulate each fitted model on this task and fit all: what can be "
                          "found again?")  # fmt: skip
    cross_validate: bool = Field(default=False, description="predict people who were left out")
    ppc: bool = Field(default=False, description="do the models repeat, stay and shift as people do? One step ahead, "
                      "and in whole experiments with drawn parameters (a posterior predictive check)")  # fmt: skip
    effects: str = Field(default="", description="what coefficients may differ with, of the columns group (between "
                         "people) and condition (within people): differences by empirical Bayes, and what could have "
                         "been found (effects.csv)")  # fmt: skip
    arviz: str = Field(default="", description="write this model's draws and pointwise log-likelihood for ArviZ "
                       "(posterior.nc, for arviz.from_netcdf)")  # fmt: skip
    draw_people: bool = Field(default=False, description="a line for each person in the figure of the weights")


class SimulatedChoices(BaseModel):
    """The task of simulated people, and who they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    experiment: Literal["1", "2", "custom"] = Field(
        default="2", description="1: the second arm always pays zero; 2: two uncertain arms; custom: as given below"
    )
    arms: int = Field(default=2, ge=2, description="how many arms")
    variance: str = Field(default="", description=ChoiceSettings.model_fields["variance"].description)
    noise: str = Field(default="", description=ChoiceSettings.model_fields["noise"].description)
    prior_mean: str = Field(default="", description=f"mean of the arms' values; {EACH}")
    drift: str = Field(default="", description=ChoiceSettings.model_fields["drift"].description)
    decay: str = Field(default="", description=ChoiceSettings.model_fields["decay"].description)
    model: str = Field(default="Hybrid", description="how people choose: as --models of fit, or Composed")
    coefficients: str = Field(default="", description="mean of each coefficient over people, in the order of the "
                              "model's; they vary by a third of it (rates and lapses on the logit scale)")  # fmt: skip
    subjects: int = Field(default=44, ge=1, description="how many people")
    blocks: int = Field(default=20, ge=1, description="blocks of each person")
    trials: int = Field(default=10, ge=1, description="trials of a block")
    seed: int = Field(default=0, ge=0, description=SEED)

    @property
    def own(self) -> bool:
        """Whether the task is none of the known experiments."""
        numbers = self.variance, self.noise, self.prior_mean, self.drift, self.decay
        return self.experiment == "custom" or self.arms != 2 or any(numbers)
