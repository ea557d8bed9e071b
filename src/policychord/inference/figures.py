from matplotlib.figure import Figure

from ..drawing import COLOURS, blank
from .comparison import SURE, Comparison

GREY, DARK = "0.55", "0.25"
LINEAR = 0.01
SPAN = 30.0


def _blank(w, h):
    f = blank(w, h)
    return f, f.add_subplot()


def draw_differences(comparison: Comparison, reference: str | None = None) -> Figure:
    """Held-out difference of every model to the reference, or to the best, with bars of two errors; grey: not clear."""
    base = comparison.names[0] if reference is None else reference
    gains = {name: comparison.difference(name, base) for name in comparison.names if name != base}
    figure, ax = _blank(5.6, 0.9 + 0.32 * len(gains))
    colours = {"better": COLOURS[0], "worse": COLOURS[1], "not established": GREY}
    for row, gain in enumerate(gains.values()):
        ax.errorbar(gain.mean, row, xerr=SURE * gain.error, fmt="o", color=colours[gain.call], markersize=5)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    sizes = [abs(gain.mean) for gain in gains.values() if gain.clear]
    if sizes and max(sizes) > SPAN * max(min(sizes), LINEAR / 10):
        ax.set_xscale("symlog", linthresh=LINEAR)
        ax.minorticks_off()
    ax.set_yticks(range(len(gains)), list(gains))
    ax.set(ylim=(len(gains) - 0.5, -0.5), xlabel=f"held out: nats per decision over {base}")
    return figure
