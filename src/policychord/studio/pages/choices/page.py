"""Choices between uncertain arms: which model is the most frequent, and what does a person weigh at every trial?"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ....choices.data import Choices, DataError
from ...inputs import check_limits, check_names, describe_inputs, in_words, inputs_of
from ...jobs import pursue
from ...uploads import Upload, tidy
from ...wire import Frame
from ..base import Page
from .frames import data_frame, group_frame, person_frame, ppc_frame, progress_frame, recovery_frame, report_frame
from .state import (
    ASKED,
    EVERYTHING,
    State,
    finish_fitting,
    fit_next,
    read_upload,
    simulate_cohort,
    start_fitting,
    suited,
)
from .view import INPUTS, LEARNS_UNCERTAINTY, OF_COHORT, OF_CUSTOM, OWN_DEFAULTS, ChoicesView, choices_snippet

MAKE = {"group": group_frame, "report": report_frame, "recovery": recovery_frame, "ppc": ppc_frame}
NOT_PERSON = ("moment", "only_block")  # settings that a part does not depend on
NOT_GROUP = ("participant", *NOT_PERSON)
LONGEST_FAULT = 3000  # characters of what is wrong with a file


def _begin() -> State:
    view = ChoicesView()
    return State(view, start_fitting(simulate_cohort(view), view))


def _change(state: State, changes: Mapping[str, Any]) -> State:
    """New fits only where the choices or the link are new."""
    named = tidy(changes["file"]) if changes.get("file") else ""
    numbers = {name: value for name, value in changes.items() if name != "file"}
    check_names(INPUTS, numbers)
    try:
        values = {**state.view.model_dump(), **numbers}
        if values["experiment"] != "custom":  # known tasks have their own arms
            values |= {name: value for name, value in OWN_DEFAULTS.items() if name not in numbers}
        values |= _suitable_primitives(state.view, values, numbers)
        view = ChoicesView(**values)
    except ValidationError as error:
        raise ValueError(in_words(error)) from None
    check_limits(INPUTS, view, list(numbers))
    _check_read(state, view, numbers)
    if view.columns != state.view.columns and not (named or state.missing or state.upload or state.broken):
        raise ValueError(f"columns = {view.columns!r}: they are those of a file; choose one first.")
    if named and state.upload is None:
        state = state._replace(missing=named, left=_with(state.left, "data"))
    return _updated(state, view)


def _suitable_primitives(old: ChoicesView, values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, bool]:
    """Seeking and avoiding uncertainty mean nothing to a learner without one: the usual primitives change with it."""
    usual = {True: ("exploit", "uncertainty", "risk"), False: ("exploit", "repeat", "random")}
    before, now = old.learner in LEARNS_UNCERTAINTY, values["learner"] in LEARNS_UNCERTAINTY
    every = {name for names in usual.values() for name in names}
    if before == now or set(old.primitives) != set(usual[before]) or every & set(asked):
        return {}
    return {name: name in usual[now] for name in every}


def _check_read(state: State, view: ChoicesView, numbers: Mapping[str, Any]) -> None:
    """A setting that is not used is an error."""
    for name, standard in OWN_DEFAULTS.items():
        if name in numbers and view.experiment != "custom" and getattr(view, name) != standard:
            raise ValueError(f"{name} = {numbers[name]}: {view.experiment} has its own; choose custom first.")
    for name in OF_COHORT:
        if name in numbers and state.upload is not None and numbers[name] != getattr(state.view, name):
            raise ValueError(f"{name} = {numbers[name]}: that is for simulated people; go back to those first.")


def _updated(old: State, view: ChoicesView) -> State:
    """The same choices seen again, or other choices."""
    state = old._replace(view=view)
    tried = old.broken or old.upload
    simulated = old.upload is None and any(getattr(view, n) != getattr(old.view, n) for n in OF_COHORT)
    # people at more than two arms choose by the link that is set
    simulated |= old.upload is None and view.experiment == "custom" and view.link != old.view.link
    other_reading = view.task != old.view.task or view.columns != old.view.columns
    if other_reading and tried is not None:
        try:
            if old.upload is None:
                view, choices = suited(view, tried)
            else:
                choices = read_upload(tried, view)
            return _with_choices(state._replace(view=view), choices, tried)
        except DataError as error:
            if old.upload is not None:
                raise ValueError(str(error)) from None
            state = state._replace(fault=str(error)[:LONGEST_FAULT], left=_with(state.left, "data"))
    if view.task != old.view.task or simulated:
        return _with_choices(state, simulate_cohort(view), None)._replace(
            missing=state.missing, fault=state.fault, broken=state.broken
        )
    if any(getattr(view, name) != getattr(old.view, name) for name in ("link", "models", "learner")):
        fitting = start_fitting(state.fitting.choices, view)
        return state._replace(fitting=fitting, analysis=None, left=EVERYTHING, stopped=False)
    if view.eps != old.view.eps or view.primitives != old.view.primitives:
        fitting = state.fitting._replace(plan=view.plan(state.fitting.choices.task))
        return state._replace(
            fitting=fitting, analysis=None, left=_with(state.left, "fit", "group", "person"), stopped=False
        )
    if view != old.view:
        return state._replace(left=_with(state.left, "person"))
    return state


def _with(left: tuple[str, ...], *parts: str) -> tuple[str, ...]:
    """Parts that are to be drawn besides those that are left, in the order of the work."""
    return tuple(part for part in (*EVERYTHING, *ASKED) if part in left or part in parts)


def _with_choices(state: State, choices: Choices, upload: Upload | None) -> State:
    return State(state.view, start_fitting(choices, state.view), upload, job=state.job)


def _act(state: State, what: Mapping[str, Any]) -> State:
    """Take a file, go back to simulated people, make the report, simulate and refit, check predictions, or stop."""
    view = state.view.model_copy(update={"participant": 1, "moment": 1})
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            try:
                suiting, choices = suited(view.model_copy(update={"columns": ""}), upload)
                return _with_choices(state._replace(view=suiting), choices, upload)
            except DataError as error:
                return state._replace(broken=upload, fault=str(error)[:LONGEST_FAULT], left=_with(state.left, "data"))
        case {"cohort": True, **rest} if not rest:
            plain = view.model_copy(update={"columns": ""})
            return _with_choices(state._replace(view=plain), simulate_cohort(plain), None)
        case {"report": True, **rest} | {"recovery": True, **rest} | {"ppc": True, **rest} if not rest:
            return state._replace(left=_with(state.left, *what))
        case {"cancel": bool() as stop, **rest} if not rest:
            if stop and state.job is not None:
                state.job.stop()
            if state.analysis is None:
                return state._replace(stopped=stop, left=EVERYTHING)
            return state._replace(left=tuple(part for part in state.left if part not in ASKED))
    raise ValueError(f"act = {str(dict(what))[:60]}: use file, cohort, report, recovery, ppc or cancel.")


def _frame(state: State) -> tuple[State, Frame | None]:
    """The next part; of the fits, one model after another."""
    part, *rest = state.left
    if part == "data":
        return state._replace(left=tuple(rest)), data_frame(state)
    if state.analysis is None or part == "fit":
        return _fit_on(state)
    left = state._replace(left=tuple(rest))
    if part == "person":
        return left, _of_settings(person_frame(state, state.analysis), state, NOT_PERSON)
    job, ended = pursue(state.job, MAKE[part], state.fitting, state.analysis, state.upload is not None)
    if not ended:
        new = job is not state.job and part in ASKED
        return state._replace(job=job), Frame("asked", {"words": ASKED[part]}, {}) if new else None
    return left._replace(job=None), _of_settings(job.result(), state, NOT_GROUP)


def _fit_on(state: State) -> tuple[State, Frame | None]:
    """The next model; a frame says that it has begun."""
    if state.analysis is not None or state.stopped:
        rest = tuple(part for part in state.left if part != "fit") if state.analysis else ()
        return state._replace(left=rest), progress_frame(state.fitting, state.stopped)
    job, ended = pursue(state.job, fit_next if state.fitting.waiting else finish_fitting, state.fitting)
    if not ended:
        begun = job is not state.job and not state.fitting.fits
        return state._replace(job=job), progress_frame(state.fitting) if begun else None
    if not state.fitting.waiting:
        return state._replace(job=None, analysis=job.result(), left=_with(state.left, "fit")), None
    return state._replace(job=None, fitting=job.result()), progress_frame(job.result())


def _of_settings(frame: Frame, state: State, without: tuple[str, ...]) -> Frame:
    return frame._replace(header={**frame.header, **inputs_of(_describe(state)["settings"], without)})


def _restart(state: State) -> State:
    """Everything as it was at first; a file stays, with the task it was read for."""
    view = ChoicesView()
    if state.upload is not None:
        kept = ("experiment", "columns", *OF_CUSTOM)
        view = view.model_copy(update={name: getattr(state.view, name) for name in kept})
        if state.fitting.choices.task.arms > 2 or state.fitting.choices.offered is not None:
            view = view.model_copy(update={"link": "logit"})
    return _updated(state._replace(missing="", fault="", broken=None), view)._replace(left=EVERYTHING)


def _describe(state: State) -> dict[str, Any]:
    standard = {**ChoicesView().model_dump(), "file": ""}
    now = {**state.view.model_dump(), "file": state.upload.name if state.upload else state.missing}
    people = state.fitting.people
    person = people[min(state.view.participant, len(people)) - 1].item()
    names = [*(control.name for control in INPUTS), "file"]
    return {
        "settings": {name: now[name] for name in names}, "defaults": {name: standard[name] for name in names},
        "snippet": choices_snippet(state.view, state.upload.name if state.upload else "", person),
        "idle": _idle(state),
    }  # fmt: skip


def _idle(state: State) -> dict[str, str]:
    """Inputs that do nothing now, and why."""
    view = state.view
    idle = dict.fromkeys(OF_CUSTOM, "Choose the experiment custom first.") if view.experiment != "custom" else {}
    if view.learner not in LEARNS_UNCERTAINTY:
        idle |= dict.fromkeys(("ucb", "thompson", "hybrid"), "This learner has no uncertainty.")
    if state.upload is not None:
        idle |= dict.fromkeys(OF_COHORT, "These are your data: go back to simulated people first.")
    if state.fitting.choices.task.arms > 2 or state.fitting.choices.offered is not None:
        idle["link"] = "More than two arms, or arms that are not always there, need the logit."
    return idle


CHOICES = Page(
    name="choices",
    title="Choices",
    inputs=lambda: describe_inputs([ChoicesView], INPUTS),
    begin=_begin,
    change=_change,
    restart=_restart,
    describe=_describe,
    frame=_frame,
    settled=lambda state: not state.left,
    act=_act,
)
