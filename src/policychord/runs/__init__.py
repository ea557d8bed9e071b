"""Many runs: results on disk, workers here or on a cluster, sweeps over plans, and the page that results end in."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .._types import Watch
    from .cache import FOLDER, MissingError, Result, forget_others, load_result, save_result, step_files
    from .compiled import keep_programs
    from .doctor import devices, hardware, packages
    from .engine import available_cores, processes
    from .page import (
        Embedded,
        PageFigure,
        duration,
        embedded,
        markdown,
        page_style,
        page_templates,
        print_page,
        render_results,  # fmt: skip
    )
    from .store import (
        note_earlier,
        plain,
        prepare,
        save_animation,
        save_figure,
        write_dataset,
        write_json,
        write_text,  # fmt: skip
    )
    from .versions import code_version

_HOME = {
    "cache": ("FOLDER", "MissingError", "Result", "forget_others", "load_result", "step_files", "save_result"),
    "compiled": ("keep_programs",),
    "doctor": ("devices", "hardware", "packages"),
    "engine": ("available_cores", "processes"),
    "page": ("Embedded", "PageFigure", "duration", "embedded", "markdown", "page_style", "page_templates",
             "print_page", "render_results"),
    "._types": ("Watch",),
    "versions": ("code_version",),
    "store": ("note_earlier", "plain", "prepare", "save_animation", "save_figure", "write_dataset", "write_json",
              "write_text"),
}  # fmt: skip
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
