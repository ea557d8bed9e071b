"""Choices between uncertain arms: which model is the most frequent, and what does a person weigh at every trial?"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ....choices.data import Choices, DataError
from ...inputs import check_limits, check_names, describe_inputs, in_words
from ...uploads import Upload, tidy
from ...wire import Frame
from ..base import Room
from .frames import data_frame, group_frame, person_frame, progress_frame, report_page
from .state import EVERYTHING, State, finish_fitting, fit_next, read_upload, simulate_cohort, start_fitting
from .view import INPUTS, OF_COHORT, OF_CUSTOM, ChoicesView, snippet

LONGEST_FAULT = 3000  # characters of what is wrong with a file


def begin() -> State:
    view = ChoicesView()
    return State(view, start_fitting(simulate_cohort(view), view.link))


def change(state: State, changes: Mapping[str, Any]) -> State:
    """New fits only where the choices or the link are new."""
    named = tidy(changes["file"]) if changes.get("file") else ""
    numbers = {name: value for name, value in changes.items() if name != "file"}
    check_names(INPUTS, numbers)
    try:
        given = {**state.view.model_dump(), **numbers}
        if given["experiment"] != "custom":  # known tasks have their own arms
            given |= {name: ChoicesView.model_fields[name].default for name in OF_CUSTOM if name not in numbers}
        view = ChoicesView(**given)
    except ValidationError as error:
        raise ValueError(in_words(error)) from None
    check_limits(INPUTS, view, list(numbers))
    _check_read(state, view, numbers)
    if named and state.upload is None:
        state = state._replace(missing=named, left=_with(state.left, "data"))
    return _updated(state, view)


def _check_read(state: State, view: ChoicesView, numbers: Mapping[str, Any]) -> None:
    """A setting that is not used is an error."""
    standard = ChoicesView()
    for name in OF_CUSTOM:
        if name in numbers and view.experiment != "custom" and getattr(view, name) != getattr(standard, name):
            raise ValueError(f"{name} = {numbers[name]}: {view.experiment} has its own; choose custom first.")
    for name in OF_COHORT:
        if name in numbers and state.upload is not None and numbers[name] != getattr(state.view, name):
            raise ValueError(f"{name} = {numbers[name]}: that is for simulated people; go back to those first.")


def _updated(old: State, view: ChoicesView) -> State:
    """The same choices seen anew, or other choices."""
    state = old._replace(view=view)
    tried = old.broken or old.upload
    simulated = old.upload is None and any(getattr(view, n) != getattr(old.view, n) for n in OF_COHORT)
    # people at more than two arms choose by the link that is set
    simulated |= old.upload is None and view.experiment == "custom" and view.link != old.view.link
    if view.task != old.view.task and tried is not None:
        try:
            return _with_choices(state, read_upload(tried, view.task), tried)
        except DataError as error:
            if old.upload is not None:
                raise ValueError(str(error)) from None
            state = state._replace(fault=str(error)[:LONGEST_FAULT])
    if view.task != old.view.task or simulated:
        return _with_choices(state, simulate_cohort(view), None)._replace(
            missing=state.missing, fault=state.fault, broken=state.broken
        )
    if view.link != old.view.link:
        return state._replace(fitting=start_fitting(state.fitting.choices, view.link), found=None, left=EVERYTHING)
    if view.eps != old.view.eps or view.primitives != old.view.primitives:
        return state._replace(found=None, left=_with(state.left, "fit", "group", "person"))
    if view != old.view:
        return state._replace(left=_with(state.left, "person"))
    return state


def _with(left: tuple[str, ...], *parts: str) -> tuple[str, ...]:
    """Parts that are to be drawn besides those that are left, in the order of the work."""
    return tuple(part for part in (*EVERYTHING, "report") if part in left or part in parts)


def _with_choices(state: State, choices: Choices, upload: Upload | None) -> State:
    return State(state.view, start_fitting(choices, state.view.link), upload)


def act(state: State, what: Mapping[str, Any]) -> State:
    """Take a file, go back to simulated people, or make the report."""
    view = state.view.model_copy(update={"participant": 1, "moment": 1})
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            try:
                return _with_choices(state._replace(view=view), read_upload(upload, view.task), upload)
            except DataError as error:
                return state._replace(broken=upload, fault=str(error)[:LONGEST_FAULT], left=_with(state.left, "data"))
        case {"cohort": True, **rest} if not rest:
            return _with_choices(state._replace(view=view), simulate_cohort(view), None)
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
            found = finish_fitting(state.fitting, state.view.eps, state.view.primitives)
            return drawn._replace(found=found), progress_frame(state.fitting)
        fitting = fit_next(state.fitting)
        return state._replace(fitting=fitting), progress_frame(fitting)
    if part == "report":
        return drawn, Frame("report", {"html": report_page(state.found)}, {})
    if part == "person":
        return drawn, person_frame(state, state.found)
    return drawn, group_frame(state, state.found) if part == "group" else progress_frame(state.fitting)


def restart(state: State) -> State:
    """Everything as it was at first; a file stays, with the task it was read for."""
    view = ChoicesView()
    if state.upload is not None:
        view = view.model_copy(update={name: getattr(state.view, name) for name in ("experiment", *OF_CUSTOM)})
        if state.view.arms > 2:
            view = view.model_copy(update={"link": "logit"})
    return _updated(state._replace(missing="", fault="", broken=None), view)._replace(left=EVERYTHING)


def describe(state: State) -> dict[str, Any]:
    standard = {**ChoicesView().model_dump(), "file": ""}
    now = {**state.view.model_dump(), "file": state.upload.name if state.upload else state.missing}
    people = state.fitting.people
    person = people[min(state.view.participant, len(people)) - 1].item()
    names = [*(control.name for control in INPUTS), "file"]
    return {
        "settings": {name: now[name] for name in names}, "defaults": {name: standard[name] for name in names},
        "snippet": snippet(state.view, state.upload.name if state.upload else "", person),
    }  # fmt: skip


CHOICES = Room(
    name="choices",
    title="Choices",
    inputs=lambda: describe_inputs([ChoicesView], INPUTS),
    begin=begin,
    change=change,
    restart=restart,
    describe=describe,
    frame=frame,
    settled=lambda state: not state.left,
    act=act,
)
