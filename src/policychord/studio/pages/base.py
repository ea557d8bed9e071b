"""What a page is to the server: a name, inputs, and pure functions from one state to the next."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..wire import Frame

FRAMES_PER_SECOND = 30  # pictures that a page is asked for, at most


def _nothing_to_do(state: Any, act: Mapping[str, Any]) -> Any:
    raise ValueError(f"act = {str(dict(act))[:60]}: this page has settings only.")


class Page(NamedTuple):
    """Functions of a state that only the page looks into. `change` raises a ValueError that says what is wrong."""

    name: str
    title: str
    inputs: Callable[[], list[dict[str, Any]]]
    begin: Callable[[], Any]
    change: Callable[[Any, Mapping[str, Any]], Any]  # (state, settings with new values)
    restart: Callable[[Any], Any]
    describe: Callable[[Any], dict[str, Any]]  # settings, defaults, snippet, and why some inputs do nothing now (idle)
    frame: Callable[[Any], tuple[Any, Frame | None]]  # the next thing to draw; None while a job goes on
    settled: Callable[[Any], bool]  # whether nothing new will be drawn until something is changed
    act: Callable[[Any, Mapping[str, Any]], Any] = _nothing_to_do  # what happens once and is no setting
    moves: bool = False  # whether time goes on by itself: then pictures come at `FRAMES_PER_SECOND`
