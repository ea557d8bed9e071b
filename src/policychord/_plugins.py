"""What other packages add to this one, by entry points: commands (`policychord.commands`) and worlds for sweeps
(`policychord.episodes`). Nothing of theirs is loaded before it is asked for.
"""

from importlib.metadata import EntryPoint, entry_points

COMMANDS = "policychord.commands"  # a function that adds commands to the app
EPISODES = "policychord.episodes"  # an `Episodes`: what a world offers to sweeps


def installed(group: str) -> dict[str, EntryPoint]:
    """What is installed in a group, by name; of two with one name the first counts, as when importing."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, point)
    return dict(sorted(points.items()))
