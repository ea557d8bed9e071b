"""What is shown, as a program."""

from ....studies.quadrotor.settings import Composition, QuadrotorSettings
from .live import Live, crew
from .view import NAMES


def snippet(live: Live) -> str:
    """The same flight in Python: the study's own functions, or the room's where somebody has pushed."""
    usual = QuadrotorSettings()
    changed = {n: v for n, v in live.settings.model_dump().items() if v != getattr(usual, n) and n in NAMES}
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    who = ",\n".join(f"    {name!r}: {_composition(how)}" for name, how in crew(live.settings, live.view).items())
    if live.pushes:
        room = "policychord.studio.rooms.flight"
        more = f"from {room}.flying import fly\nfrom {room}.pushes import Push\n"
        pushes = f"pushes = {list(live.pushes)!r}  # decision, m/s to the right, m/s upwards\n"
        body = f"""\
    flight = fly(settings, {live.view.experiment!r}, name, how, {live.view.flight}, pushes)
    costs[name] = flight.cost.sum()
"""
    else:
        more = "from policychord.studies.quadrotor.simulate import fly_episodes, ready\n"
        pushes = ""
        body = f"""\
    agent, world = ready(settings, {live.view.experiment!r}, name, how)
    flight = fly_episodes(settings, agent, world, episodes=[{live.view.flight}])
    costs[name] = flight.cost[0]
"""
    return f"""\
import jax

jax.config.update("jax_enable_x64", True)  # certificates are honest in float64 only
from policychord.studies.quadrotor.settings import Composition, QuadrotorSettings
{more}
settings = QuadrotorSettings({settings})
who = {{
{who},
}}
{pushes}costs = {{}}
for name, how in who.items():
{body}    print(f"{{name}}: {{costs[name]:.1f}}")
"""


def _composition(how: Composition | None) -> str:
    if how is None:
        return "None"
    usual = Composition()
    changed = {name: value for name, value in how.model_dump().items() if value != getattr(usual, name)}
    return f"Composition({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
