"""What the page draws: the data, the group, one person, and the report to take away."""

import base64
import io
import re
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from ....choices.compare import OURS, Analysis, fit_rivals, plan_models, weights_by_trial
from ....choices.data import as_csv
from ....choices.quality import examine
from ....choices.report import describe, model_table, subject_table, verdict, weight_table
from ....choices.schemas import KNOWN
from ....choices.simulate import SYNTHETIC
from ....runs.report import markdown
from ...security import LARGEST_BODY
from ...wire import Frame
from .state import Fitting, State

_STYLE = """
:root { color-scheme: light; }
body { max-width: 52rem; margin: 2.5rem auto 4rem; padding: 0 1.2rem; color: #1c1e21; background: #fff;
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
h1, h2 { font-family: Charter, "Iowan Old Style", Palatino, Georgia, "Liberation Serif", serif; line-height: 1.2; }
h2 { margin-top: 2.4rem; }
table { display: block; max-width: 100%; overflow-x: auto; border-collapse: collapse; font-size: .92rem; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #dfe1e4; text-align: left; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th { white-space: normal; vertical-align: bottom; }
img { max-width: 100%; height: auto; }
a { color: #0b5394; }
"""


def data_frame(state: State) -> Frame:
    """Whose choices these are, and what was wrong with a file."""
    choices = state.fitting.choices
    header = {
        "source": choices.source, "simulated": SYNTHETIC in choices.source, "uploaded": state.upload is not None,
        "file": state.upload.name if state.upload else "", "missing": state.missing, "fault": state.fault,
        "people": len(state.fitting.people), "trials": len(choices.choice), "left_out": choices.left_out,
        "notes": [*choices.said, *choices.notes],
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


def group_frame(state: State, found: Analysis) -> Frame:
    """The models over the group with warnings beside them, and the mean weights at each trial of a block."""
    selection, against = found.everything.selection, found.against_hybrid
    models = [
        {
            "name": name, "parameters": model.parameters, "log_evidence": float(model.log_evidence.sum()),
            "log_likelihood": float(model.log_likelihood.sum()), "bic": float(model.bic.sum()),
            "frequency": float(selection.expected[k]), "xp": float(selection.xp[k]), "pxp": float(selection.pxp[k]),
        }
        for k, (name, model) in enumerate(found.models.items())
    ]  # fmt: skip
    best = selection.responsibilities.argmax(1)
    names = list(found.models)
    header = {
        "models": models, "bor": float(selection.bor), "ours": OURS, "verdict": verdict(found),
        "warnings": warnings_of(state, found),
        "against_hybrid": {"pxp": against.pxp(OURS), "bor": float(against.selection.bor)},
        "subjects": found.models[OURS].subjects.tolist(), "best": [names[k] for k in best],
        "primitives": list(found.primitives), "eps": found.eps, "link": found.link,
        "distance": float(found.composition.distance.max()),
    }  # fmt: skip
    numbers, mean = weights_by_trial(found)
    evidence = np.stack([model.log_evidence for model in found.models.values()], axis=1)
    return Frame("group", header, {"trial": numbers, "mean_weights": mean, "log_evidence": evidence,
                                   "responsibilities": selection.responsibilities})  # fmt: skip


def warnings_of(state: State, found: Analysis) -> list[str]:
    """What a reader of the verdict must know of uploaded choices; of simulated people the model is known."""
    if state.upload is None:
        return []
    plan = plan_models(state.fitting.choices.task, found.link, found.eps, found.primitives)
    return list(examine(state.fitting.choices, found, plan).warnings)


def person_frame(state: State, found: Analysis) -> Frame:
    """One person: beliefs, choices, weights and certificates at every trial."""
    people, choices = state.fitting.people, state.fitting.choices
    at = min(state.view.participant, len(people)) - 1
    rows = np.flatnonzero(found.trials.subject == people[at])
    chosen = found.trials.choice[rows]
    names = list(found.models)
    share = found.everything.selection.responsibilities[at]
    header = {
        "participant": at + 1, "subject": people[at].item(), "people": len(people),
        "primitives": list(found.primitives),
        "moment": min(state.view.moment, len(rows)), "only_block": state.view.only_block,
        "best": names[int(share.argmax())],
        "alone": max(names, key=lambda name: found.models[name].log_evidence[at]),
        "models": [{"name": name, "share": float(share[k]), "log_evidence": float(found.models[name].log_evidence[at])}
                   for k, name in enumerate(names)],
        "distance": float(found.composition.distance[rows].max()),
        "separated": [name for name in names if found.models[name].separated[at]],
    }  # fmt: skip
    arrays = {
        "block": found.trials.block[rows], "trial": found.trials.trial[rows], "choice": chosen + 1,
        "reward": choices.reward[rows], "mean": found.trials.mean[rows], "sd": np.sqrt(found.trials.variance[rows]),
        "weights": found.composition.weights[rows], "p_choice": np.exp(found.composition.log_prob[rows, chosen]),
        "distance": found.composition.distance[rows],
    }  # fmt: skip
    return Frame("person", header, arrays)


def report_page(found: Analysis) -> str:
    """What `policychord bandit fit` writes to a folder, in one page that fetches nothing."""
    from ....choices import figures  # matplotlib takes a second

    names = tuple(name for name in KNOWN if name in found.primitives)
    words = describe(found, fit_rivals(found.trials, found.link, found.eps, primitives=names))
    title, *parts = re.split(r"^#{1,2} (.*)\n", words, flags=re.MULTILINE)[1:]
    tables: dict[str, Callable[..., Any]] = {
        "models.csv": model_table,
        "subjects.csv": subject_table,
        "weights.csv": weight_table,
    }
    links = "".join(
        f'<li><a download="{name}" href="{_uri("text/csv", as_csv(table(found)).encode())}">{name}</a></li>'
        for name, table in tables.items()
    )
    shown = {"Protected exceedance probability of every model": figures.comparison,
             "Weights in the course": figures.weights}  # fmt: skip
    drawn = "".join(
        f'<figure><img alt="{escape(alt)}" src="{_uri("image/svg+xml", _svg(draw, found))}"></figure>'
        for alt, draw in shown.items()
    )
    first, *rest = (markdown(text) for text in parts[::2])
    sections = "".join(f"<h2>{escape(head)}</h2>{body}" for head, body in zip(parts[1::2], rest, strict=True))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{first}{drawn}{sections}<h2>Tables</h2><p>As files, inside this page:</p>"
        f"<ul>{links}</ul></body></html>\n"
    )


def _svg(draw: Any, found: Analysis) -> bytes:
    from ....studies.drawing import save, styled

    target = io.BytesIO()
    save(styled(draw, found), target, format="svg", metadata={"Date": None})
    return target.getvalue()


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
