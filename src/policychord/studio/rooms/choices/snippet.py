"""What is shown, as a program."""

from .state import State
from .view import EXPERIMENTS, OF_COHORT


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
        numbers = {name: getattr(study, name) for name in OF_COHORT}
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
