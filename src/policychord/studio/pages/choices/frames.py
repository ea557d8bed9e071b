"""What the page draws: the data, the group, one person, and the report to take away."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...._types import Watch
from ....choices.checks import Examination, examine, recover
from ....choices.compare import OURS, Analysis, fit_rivals, weights_by_trial
from ....choices.predictive import check_predictions
from ....choices.report import describe_groups, remarks_on, verdict
from ....choices.simulate import SYNTHETIC
from ....choices.tables import NAMES, NEEDED, DataError, guess_columns, header_of, parse_columns
from ....choices.tasks import describe_task
from ...security import LARGEST_BODY
from ...wire import Frame
from .state import Fitting, State

MOST_COLUMNS = 200  # that a page lists to choose from


def data_frame(state: State) -> Frame:
    """Whose choices these are, and what was wrong with a file."""
    choices = state.fitting.choices
    header = {
        "source": choices.source, "simulated": SYNTHETIC in choices.source, "uploaded": state.upload is not None,
        "file": state.upload.name if state.upload else "", "missing": state.missing, "fault": state.fault,
        "people": len(state.fitting.people), "trials": len(choices.choice), "left_out": choices.left_out,
        "notes": [*choices.said, *choices.notes],
        "task": choices.task.name, "arms": choices.task.arms, "experiment": state.view.experiment,
        "about": describe_task(choices.task), "largest": LARGEST_BODY, "table": _table_of(state),
    }  # fmt: skip
    return Frame("data", header, {})


def _table_of(state: State) -> dict[str, Any]:
    """The columns of the file that is there or was refused, and which of them is taken for which of ours."""
    upload = state.broken or state.upload
    if upload is None:
        return {}
    try:
        header = header_of(upload.content, upload.name)
    except DataError:
        return {}
    if len(header) > MOST_COLUMNS:
        return {}
    taken = {**guess_columns(header), **parse_columns(state.view.columns)}
    if "reward" not in taken and {"gain", "loss"} <= set(taken):
        taken["reward"] = f"{taken['gain']}+{taken['loss']}"
    gains, losses = ([column for column in header if kind in guess_columns([column])] for kind in ("gain", "loss"))
    sums = [f"{a}+{b}" for a in gains for b in losses]
    chosen = taken.get("reward", "")
    sums += [chosen] if "+" in chosen and chosen not in sums else []
    names = [name for name in NAMES if name != "source"]
    return {"columns": header, "sums": sums, "needed": list(NEEDED),
            "ours": {name: taken.get(name, "") for name in names}}  # fmt: skip


def progress_frame(fitting: Fitting, stopped: bool = False) -> Frame:
    """How far the fits are; `computing` names the parts that wait for them."""
    done, count = len(fitting.fits), len(fitting.plan.models)
    words = "Weighing the primitives at every trial, comparing the models"
    if stopped:
        words = f"Stopped: {done} of {count} models are fitted"
    elif fitting.waiting:
        words = f"Fitting {fitting.waiting[0]} to {len(fitting.people)} people, model {done + 1} of {count}"
    header = {"words": words, "done": done, "total": count + 1, "computing": ["group", "person"], "stopped": stopped}
    return Frame("progress", header, {})


def group_frame(watch: Watch, fitting: Fitting, analysis: Analysis, uploaded: bool) -> Frame:
    """The models over the group with warnings, and the mean weights at each trial of a block."""
    selection, against = analysis.everything.selection, analysis.ours.against_reference
    models = [
        {
            "name": name, "parameters": model.parameters, "log_evidence": float(model.log_evidence.sum()),
            "log_likelihood": float(model.log_likelihood.sum()), "bic": float(model.bic.sum()),
            "frequency": float(selection.expected[k]), "xp": float(selection.xp[k]), "pxp": float(selection.pxp[k]),
        }
        for k, (name, model) in enumerate(analysis.models.items())
    ]  # fmt: skip
    best = selection.responsibilities.argmax(1)
    names = list(analysis.models)
    examined = _examine(fitting, analysis) if uploaded else None
    header = {
        "models": models, "bor": float(selection.bor), "ours": OURS, "verdict": verdict(analysis, examined),
        "warnings": [] if examined is None else list(examined.warnings),
        "groups": list(describe_groups(fitting.choices, analysis)),
        "reference": analysis.ours.reference,
        "against_reference": {"pxp": against.pxp(OURS), "bor": float(against.selection.bor)},
        "subjects": analysis.models[OURS].subjects.tolist(), "best": [names[k] for k in best],
        "primitives": list(analysis.ours.primitives), "eps": analysis.eps, "link": analysis.link,
        "distance": float(analysis.ours.composition.distance.max()),
    }  # fmt: skip
    numbers, mean = weights_by_trial(analysis)
    evidence = np.stack([model.log_evidence for model in analysis.models.values()], axis=1)
    return Frame("group", header, {"trial": numbers, "mean_weights": mean, "log_evidence": evidence,
                                   "responsibilities": selection.responsibilities})  # fmt: skip


def _examine(fitting: Fitting, analysis: Analysis) -> Examination:
    """What a reader of the verdict must know of uploaded choices; of simulated people the model is known."""
    return examine(fitting.choices, analysis, fitting.plan)


def recovery_frame(watch: Watch, fitting: Fitting, analysis: Analysis, uploaded: bool) -> Frame:
    """People simulated by every fitted model on this task, and fitted again: what can be found?"""
    again = recover(fitting.choices, fitting.plan, analysis.models, cohorts=1, progress=watch)
    header = {
        "models": list(again.models), "best": again.people.tolist(),
        "coefficients": [
            {"model": row.model, "name": row.name, "bias": float(row.bias), "rmse": float(row.rmse),
             "correlation": None if np.isnan(row.correlation) else float(row.correlation)}
            for row in again.parameters
        ],
    }  # fmt: skip
    return Frame("recovery", header, {})


def ppc_frame(watch: Watch, fitting: Fitting, analysis: Analysis, uploaded: bool) -> Frame:
    """Do the fitted models repeat, stay, shift and find the best arm as often as these people do?"""
    checked = check_predictions(fitting.plan.everything, analysis.models, analysis.trials)
    rows = [("people", checked.observed), *zip(checked.models, checked.expected, strict=True)]
    header = {
        "statistics": list(checked.statistics),
        "rows": [{"who": who, "shares": [_share(shares) for shares in values.T]} for who, values in rows],
    }
    return Frame("ppc", header, {})


def _share(values: np.ndarray) -> float | None:
    """The mean over people who have such trials."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else None


def person_frame(state: State, analysis: Analysis) -> Frame:
    """One person: beliefs, choices, weights and certificates at every trial."""
    people, choices, composition = state.fitting.people, state.fitting.choices, analysis.ours.composition
    at = min(state.view.participant, len(people)) - 1
    rows = np.flatnonzero(analysis.trials.subject == people[at])
    chosen = analysis.trials.choice[rows]
    names = list(analysis.models)
    share = analysis.everything.selection.responsibilities[at]
    header = {
        "participant": at + 1, "subject": people[at].item(), "people": len(people),
        "primitives": list(analysis.ours.primitives),
        "moment": min(state.view.moment, len(rows)), "only_block": state.view.only_block,
        "best": names[int(share.argmax())],
        "alone": max(names, key=lambda name: analysis.models[name].log_evidence[at]),
        "models": [{"name": name, "share": float(share[k]),
                    "log_evidence": float(analysis.models[name].log_evidence[at])}
                   for k, name in enumerate(names)],
        "distance": float(composition.distance[rows].max()),
        "separated": [name for name in names if analysis.models[name].separated[at]],
    }  # fmt: skip
    arrays = {
        "block": analysis.trials.block[rows], "trial": analysis.trials.trial[rows], "choice": chosen + 1,
        "reward": choices.reward[rows], "mean": analysis.trials.mean[rows],
        "sd": np.sqrt(analysis.trials.variance[rows]),
        "weights": composition.weights[rows], "p_choice": np.exp(composition.log_prob[rows, chosen]),
        "distance": composition.distance[rows],
    }  # fmt: skip
    return Frame("person", header, arrays)


def report_frame(watch: Watch, fitting: Fitting, analysis: Analysis, uploaded: bool) -> Frame:
    """The page that `policychord choices fit` writes."""
    from ....runs.choices import ChoiceResult, results_of, write_choices  # matplotlib takes a second

    choices, plan = fitting.choices, fitting.plan
    known, remarks = analysis.models[plan.reference], remarks_on(choices, plan, analysis)
    rivals = fit_rivals(analysis.trials, analysis.link, analysis.eps, plan=plan, known=known)
    result = ChoiceResult(choices, plan, analysis, _examine(fitting, analysis), rivals, None, None, None, remarks)
    with TemporaryDirectory(prefix="policychord-") as folder:
        write_choices(result, results_of(result), Path(folder))
        return Frame("report", {"html": (Path(folder) / "report.html").read_text(encoding="utf-8")}, {})
