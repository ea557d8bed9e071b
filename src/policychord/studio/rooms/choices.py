"""Choices between uncertain arms: which model is the most frequent, and what does a person weigh at every trial?"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...studies.bandit.analysis import OURS, Analysis, weights_by_trial
from ...studies.bandit.cohort import SYNTHETIC, draw_people, simulate, synthetic
from ...studies.bandit.data import Choices, DataError
from ...studies.bandit.models import Classic
from ...studies.bandit.primitives import KNOWN
from ...studies.bandit.settings import GROUPS, TASKS, BanditSettings, Task
from ...studies.bandit.summary import verdict
from ..controls import Control, check_limits, check_names, described, in_words
from ..security import LARGEST_BODY
from ..uploads import Upload, tidy
from ..wire import Frame
from .base import Room
from .choices_fitting import Fitting, Link, analysed, fit_next, started
from .choices_reading import MOST_PEOPLE, read
from .choices_report import report

EXPERIMENTS = {"experiment 1": "1", "experiment 2": "2"}
LONGEST_FAULT = 3000  # characters of what is wrong with a file
COHORT = 20  # people who are simulated: enough to tell models apart, and an answer within seconds


class ChoicesView(BaseModel):
    """Whose choices are explained, by what, and who is looked at; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    experiment: Literal["experiment 1", "experiment 2", "custom"] = Field(
        default="experiment 2",
        description="1: the second arm always pays zero. 2: two uncertain arms. custom: other arms, all alike.",
    )
    arms: int = Field(default=2, ge=2, description="How many arms there are to choose from.")
    variance: float = Field(default=100.0, gt=0, description="How much an arm's value varies from block to block.")
    noise: float = Field(default=10.0, gt=0, description="Variance of a reward around its arm's value.")
    link: Link = Field(default="probit", description="From utilities to probabilities; more than two arms need logit.")
    exploit: bool = Field(default=True, description="Take the arm that seems best.")
    uncertainty: bool = Field(default=True, description="Take the arm of which least is known.")
    risk: bool = Field(default=True, description="Avoid the arm of which least is known.")
    repeat: bool = Field(default=False, description="Take the same arm again.")
    random: bool = Field(default=False, description="Take any arm.")
    participant: int = Field(default=1, ge=1, description="Whose weights are shown, by place in the list.")
    moment: int = Field(default=1, ge=1, description="The trial that is looked at, all blocks counted through.")
    only_block: bool = Field(default=False, description="Show the block of that trial alone.")

    @model_validator(mode="after")
    def _fits(self):
        if not self.primitives:
            raise ValueError("no primitive is left: switch on at least one of " + ", ".join(KNOWN) + ".")
        if self.link == "probit" and self.arms > 2:
            raise ValueError(f"link = probit with {self.arms} arms: it is there for two. Choose logit first.")
        return self

    @property
    def primitives(self) -> tuple[str, ...]:
        return tuple(name for name in KNOWN if getattr(self, name))

    @property
    def task(self) -> Task:
        if self.experiment == "custom":
            return Task("own data", (self.variance,) * self.arms, self.noise)
        return TASKS[EXPERIMENTS[self.experiment]]


TASK, OWN, MODEL, PEOPLE, WATCH = "Task", "Own task", "Composed model", "Simulated people", "Looking at"
CONTROLS = (
    Control("experiment", "Experiment", TASK),
    Control("arms", "Arms", OWN, 2, 10, 1),
    Control("variance", "Spread of values", OWN, 1.0, 1000.0, 1.0, "points²", "log"),
    Control("noise", "Noise of rewards", OWN, 0.1, 1000.0, 0.1, "points²", "log"),
    Control("eps", "Temperature", MODEL, 0.001, 1.0, 0.001, "nats", "log", "paper"),
    Control("exploit", "Exploit", MODEL, source="paper"),
    Control("uncertainty", "Seek uncertainty", MODEL, source="paper"),
    Control("risk", "Avoid risk", MODEL, source="paper"),
    Control("repeat", "Repeat", MODEL, source="paper"),
    Control("random", "Random", MODEL, source="paper"),
    Control("link", "Link", MODEL, source="paper"),
    Control("subjects", "People", PEOPLE, 3, 100, 1),
    Control("blocks", "Blocks", PEOPLE, 1, 40, 1, source="paper"),
    Control("trials", "Trials of a block", PEOPLE, 1, 40, 1, source="paper"),
    Control("seed", "Seed", PEOPLE, 0, 999, 1),
    Control("participant", "Participant", WATCH, 1, MOST_PEOPLE, 1),
    Control("moment", "Trial", WATCH, 1, 100_000, 1),
    Control("only_block", "Only its block", WATCH),
)
_OWN = set(ChoicesView.model_fields)
_OF_COHORT = tuple(control.name for control in CONTROLS if control.group == PEOPLE)
_OF_CUSTOM = tuple(control.name for control in CONTROLS if control.group == OWN)
EVERYTHING = ("data", "fit", "group", "person")


class State(NamedTuple):
    """Choices, how far their analysis is, and the parts that are still to be drawn."""

    view: ChoicesView
    study: BanditSettings
    fitting: Fitting
    upload: Upload | None = None  # what the choices were read from; None is the cohort
    broken: Upload | None = None  # what could not be read, in case another task makes sense of it
    fault: str = ""  # and why
    missing: str = ""  # the file that a link was made with
    found: Analysis | None = None
    left: tuple[str, ...] = EVERYTHING


def cohort(view: ChoicesView, study: BanditSettings) -> Choices:
    """The study's synthetic cohort; for a task of one's own, people with the coefficients of Experiment 2."""
    if view.experiment != "custom":
        return synthetic(EXPERIMENTS[view.experiment], study)
    people = draw_people(GROUPS["2"]["Hybrid"], study.subjects or COHORT, (study.seed, 2, 0))
    model, seed = Classic("Hybrid", view.link), (study.seed, 2, 1)
    return simulate(view.task, model, people, blocks=study.blocks, trials=study.trials, seed=seed)


# ------------------------------------------------------------------ what is drawn


def data_frame(state: State) -> Frame:
    """Whose choices these are, and what was wrong with a file."""
    choices = state.fitting.choices
    header = {
        "source": choices.source, "simulated": SYNTHETIC in choices.source, "uploaded": state.upload is not None,
        "file": state.upload.name if state.upload else "", "missing": state.missing, "fault": state.fault,
        "people": len(state.fitting.people), "trials": len(choices.choice), "left_out": choices.left_out,
        "task": choices.task.name, "arms": choices.task.arms, "experiment": state.view.experiment,
        "largest": LARGEST_BODY,
    }  # fmt: skip
    return Frame("data", header, {})


def progress_frame(fitting: Fitting) -> Frame:
    done, people = len(fitting.fits), len(fitting.people)
    words = "Weighing the primitives at every trial, comparing the models" if fitting.done else (
        f"Fitting four models: person {done + 1} of {people}"
    )  # fmt: skip
    return Frame("progress", {"words": words, "done": done, "of": people + 1}, {})


def group_frame(found: Analysis) -> Frame:
    """The models over the group, and the mean weights at each trial of a block."""
    selection, against = found.everything.selection, found.against_hybrid
    models = [
        {
            "name": name, "parameters": model.parameters, "log_evidence": float(model.log_evidence_.sum()),
            "log_likelihood": float(model.log_likelihood_.sum()), "bic": float(model.bic_.sum()),
            "frequency": float(selection.expected[k]), "xp": float(selection.xp[k]), "pxp": float(selection.pxp[k]),
        }
        for k, (name, model) in enumerate(found.models.items())
    ]  # fmt: skip
    best = selection.responsibilities.argmax(1)
    names = list(found.models)
    header = {
        "models": models, "bor": float(selection.bor), "ours": OURS, "verdict": verdict(found),
        "against_hybrid": {"pxp": against.pxp(OURS), "bor": float(against.selection.bor)},
        "subjects": [int(number) for number in found.models[OURS].subjects_], "best": [names[k] for k in best],
        "primitives": list(found.primitives), "eps": found.eps, "link": found.link,
        "distance": float(found.composition.distance.max()),
    }  # fmt: skip
    numbers, mean = weights_by_trial(found)
    evidence = np.stack([model.log_evidence_ for model in found.models.values()], axis=1)
    return Frame("group", header, {"trial": numbers, "mean_weights": mean, "log_evidence": evidence,
                                   "responsibilities": selection.responsibilities})  # fmt: skip


def person_frame(state: State, found: Analysis) -> Frame:
    """One person: beliefs, choices, weights and certificates at every trial."""
    people, choices = state.fitting.people, state.fitting.choices
    at = min(state.view.participant, len(people)) - 1
    rows = np.flatnonzero(found.trials.subject == people[at])
    chosen = found.trials.choice[rows]
    names = list(found.models)
    share = found.everything.selection.responsibilities[at]
    header = {
        "participant": at + 1, "subject": int(people[at]), "people": len(people), "primitives": list(found.primitives),
        "moment": min(state.view.moment, len(rows)), "only_block": state.view.only_block,
        "best": names[int(share.argmax())],
        "alone": max(names, key=lambda name: found.models[name].log_evidence_[at]),
        "models": [{"name": name, "share": float(share[k]), "log_evidence": float(found.models[name].log_evidence_[at])}
                   for k, name in enumerate(names)],
        "distance": float(found.composition.distance[rows].max()),
        "separated": [name for name in names if found.models[name].separated_[at]],
    }  # fmt: skip
    arrays = {
        "block": found.trials.block[rows], "trial": found.trials.trial[rows], "choice": chosen + 1,
        "reward": choices.reward[rows], "mean": found.trials.mean[rows], "sd": np.sqrt(found.trials.variance[rows]),
        "weights": found.composition.weights[rows], "p_choice": np.exp(found.composition.log_prob[rows, chosen]),
        "distance": found.composition.distance[rows],
    }  # fmt: skip
    return Frame("person", header, arrays)


def snippet(state: State) -> str:
    """The same in Python."""
    view, study, task = state.view, state.study, state.fitting.choices.task
    at = min(view.participant, len(state.fitting.people)) - 1
    known = EXPERIMENTS.get(view.experiment)
    more, line = [], ""
    if state.upload is not None:
        more = ["from policychord.studies.bandit.data import read_choices"]
        more += [f"from policychord.studies.bandit.settings import {'TASKS' if known else 'Task'}"]
        own = f"TASKS[{known!r}]" if known else repr(task)
        line = f"choices = read_choices({state.upload.name!r}, {own})"
    else:
        numbers = {name: getattr(study, name) for name in _OF_COHORT}
        given = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
        if known:
            more = ["from policychord.studies.bandit.cohort import synthetic"]
            more += ["from policychord.studies.bandit.settings import BanditSettings"]
            line = f"choices = synthetic({known!r}, BanditSettings({given}))  # simulated people, not human data"
        else:
            more = ["from policychord.studies.bandit.cohort import draw_people, simulate"]
            more += ["from policychord.studies.bandit.models import Classic"]
            more += ["from policychord.studies.bandit.settings import GROUPS, Task"]
            line = (
                f'people = draw_people(GROUPS["2"]["Hybrid"], {study.subjects}, ({study.seed}, 2, 0))\n'
                f'choices = simulate({task!r}, Classic("Hybrid", {view.link!r}), people, blocks={study.blocks}, '
                f"trials={study.trials}, seed=({study.seed}, 2, 1))  # simulated people, not human data"
            )
    imports = "\n".join(sorted([
        "from policychord.studies.bandit.analysis import analyse", *more,
        "from policychord.studies.bandit.summary import model_table, verdict",
    ]))  # fmt: skip
    return f"""\
{imports}

{line}
found = analyse(choices, {view.link!r}, eps={study.eps!r}, primitives={view.primitives!r})
print(model_table(found).to_string(index=False))
print(verdict(found))

person = found.trials.subject == {state.fitting.people[at]}
print(found.primitives)
print(found.composition.weights[person].round(3))
"""


# ------------------------------------------------------------------ as a room


def begin() -> State:
    view, study = ChoicesView(), BanditSettings(subjects=COHORT)
    return State(view, study, started(cohort(view, study), view.link))


def change(state: State, changes: Mapping[str, Any]) -> State:
    """New fits only where the choices or the link are new."""
    named = tidy(changes["file"]) if changes.get("file") else ""
    numbers = {name: value for name, value in changes.items() if name != "file"}
    check_names(CONTROLS, numbers)
    try:
        given = {**state.view.model_dump(), **{n: v for n, v in numbers.items() if n in _OWN}}
        if given["experiment"] != "custom":  # known tasks have their own arms
            given |= {name: ChoicesView.model_fields[name].default for name in _OF_CUSTOM if name not in numbers}
        view = ChoicesView(**given)
        study = BanditSettings(**{**state.study.model_dump(), **{n: v for n, v in numbers.items() if n not in _OWN}})
    except ValidationError as error:
        raise ValueError(in_words(error)) from None
    check_limits(CONTROLS, view, list(numbers))
    check_limits(CONTROLS, study, list(numbers))
    _check_read(state, view, numbers)
    if named and state.upload is None:
        state = state._replace(missing=named, left=_with(state.left, "data"))
    return _updated(state, view, study)


def _check_read(state: State, view: ChoicesView, numbers: Mapping[str, Any]) -> None:
    """A setting that nobody would read is an error."""
    standard = ChoicesView()
    for name in _OF_CUSTOM:
        if name in numbers and view.experiment != "custom" and getattr(view, name) != getattr(standard, name):
            raise ValueError(f"{name} = {numbers[name]}: {view.experiment} has its own; choose custom first.")
    for name in _OF_COHORT:
        if name in numbers and state.upload is not None and numbers[name] != getattr(state.study, name):
            raise ValueError(f"{name} = {numbers[name]}: that is for simulated people; go back to those first.")


def _updated(old: State, view: ChoicesView, study: BanditSettings) -> State:
    """The same choices seen anew, or other choices."""
    state = old._replace(view=view, study=study)
    tried = old.broken or old.upload
    simulated = old.upload is None and any(getattr(study, n) != getattr(old.study, n) for n in _OF_COHORT)
    # people at more than two arms choose by the link that is set
    simulated |= old.upload is None and view.experiment == "custom" and view.link != old.view.link
    if view.task != old.view.task and tried is not None:
        try:
            return _with_choices(state, read(tried, view.task), tried)
        except DataError as error:
            if old.upload is not None:
                raise ValueError(str(error)) from None
            state = state._replace(fault=str(error)[:LONGEST_FAULT])
    if view.task != old.view.task or simulated:
        return _with_choices(state, cohort(view, study), None)._replace(
            missing=state.missing, fault=state.fault, broken=state.broken
        )
    if view.link != old.view.link:
        return state._replace(fitting=started(state.fitting.choices, view.link), found=None, left=EVERYTHING)
    if study.eps != old.study.eps or view.primitives != old.view.primitives:
        return state._replace(found=None, left=_with(state.left, "fit", "group", "person"))
    if view != old.view:
        return state._replace(left=_with(state.left, "person"))
    return state


def _with(left: tuple[str, ...], *parts: str) -> tuple[str, ...]:
    """Parts that are to be drawn besides those that are left, in the order of the work."""
    return tuple(part for part in (*EVERYTHING, "report") if part in left or part in parts)


def _with_choices(state: State, choices: Choices, upload: Upload | None) -> State:
    return State(state.view, state.study, started(choices, state.view.link), upload)


def act(state: State, what: Mapping[str, Any]) -> State:
    """Take a file, go back to simulated people, or make the report."""
    view = state.view.model_copy(update={"participant": 1, "moment": 1})
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            try:
                return _with_choices(state._replace(view=view), read(upload, view.task), upload)
            except DataError as error:
                return state._replace(broken=upload, fault=str(error)[:LONGEST_FAULT], left=_with(state.left, "data"))
        case {"cohort": True, **rest} if not rest:
            return _with_choices(state._replace(view=view), cohort(view, state.study), None)
        case {"report": True, **rest} if not rest:
            return state._replace(left=_with(state.left, "report"))
    raise ValueError(f"act = {str(dict(what))[:60]}: use file, cohort or report.")


def frame(state: State) -> tuple[State, Frame]:
    """The next part; of the fits, one person after another."""
    part, *rest = state.left
    drawn = state._replace(left=tuple(rest))
    if part == "data":
        return drawn, data_frame(state)
    if state.found is None:
        if state.fitting.done:
            found = analysed(state.fitting, state.study.eps, state.view.primitives)
            return drawn._replace(found=found), progress_frame(state.fitting)
        fitting = fit_next(state.fitting)
        return state._replace(fitting=fitting), progress_frame(fitting)
    if part == "report":
        return drawn, Frame("report", {"html": report(state.found)}, {})
    if part == "person":
        return drawn, person_frame(state, state.found)
    return drawn, group_frame(state.found) if part == "group" else progress_frame(state.fitting)


def restart(state: State) -> State:
    """Everything as it was at first; a file stays, with the task it was read for."""
    study, view = BanditSettings(subjects=COHORT), ChoicesView()
    if state.upload is not None:
        view = view.model_copy(update={name: getattr(state.view, name) for name in ("experiment", *_OF_CUSTOM)})
        if state.view.arms > 2:
            view = view.model_copy(update={"link": "logit"})
    return _updated(state._replace(missing="", fault="", broken=None), view, study)._replace(left=EVERYTHING)


def told(state: State) -> dict[str, Any]:
    standard = {**BanditSettings(subjects=COHORT).model_dump(), **ChoicesView().model_dump(), "file": ""}
    now = {**state.study.model_dump(), **state.view.model_dump()}
    now["file"] = state.upload.name if state.upload else state.missing
    names = [*(control.name for control in CONTROLS), "file"]
    return {
        "settings": {name: now[name] for name in names}, "defaults": {name: standard[name] for name in names},
        "snippet": snippet(state),
    }  # fmt: skip


CHOICES = Room(
    name="choices",
    title="Choices",
    controls=lambda: described([ChoicesView, BanditSettings], CONTROLS),
    begin=begin,
    change=change,
    restart=restart,
    told=told,
    frame=frame,
    settled=lambda state: not state.left,
    act=act,
)
