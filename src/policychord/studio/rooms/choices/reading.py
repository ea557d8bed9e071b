"""From an uploaded file to choices, by the reader of `policychord bandit fit`."""

import numpy as np

from ....studies.bandit.data import Choices, DataError, parse_choices
from ....studies.bandit.settings import Task
from ...uploads import Upload

MOST_PEOPLE, MOST_TRIALS = 300, 100_000  # that a page is ready to wait for
LONGEST_SOURCE = 160  # characters; every row of a table repeats it


def read(upload: Upload, task: Task) -> Choices:
    """The choices, or a `DataError` that says what is wrong with the file, where, and what to do."""
    try:
        choices = parse_choices(upload.content, upload.name, task)
    except DataError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{upload.name} cannot be used ({error}): check its numbers.") from None
    people, trials = len(np.unique(choices.subject)), len(choices.choice)
    if people > MOST_PEOPLE or trials > MOST_TRIALS:
        raise DataError(
            f"{upload.name} has {people} people and {trials} trials: the studio takes up to {MOST_PEOPLE} and "
            f"{MOST_TRIALS}; more can be done with  policychord bandit fit"
        )
    return choices._replace(source=choices.source[:LONGEST_SOURCE])
