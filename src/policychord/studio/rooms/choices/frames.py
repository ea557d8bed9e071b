"""What the page draws: the data, the group, and one person."""

import numpy as np

from ....studies.bandit.analysis import OURS, Analysis, weights_by_trial
from ....studies.bandit.cohort import SYNTHETIC
from ....studies.bandit.summary import verdict
from ...security import LARGEST_BODY
from ...wire import Frame
from .fitting import Fitting
from .state import State


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
