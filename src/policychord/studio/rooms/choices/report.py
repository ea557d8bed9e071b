"""The report to take away: what `policychord bandit fit` writes to a folder, in one page that fetches nothing."""

import base64
import io
import re
from html import escape

from ....runs.report import markdown
from ....studies.bandit.analysis import Analysis
from ....studies.bandit.primitives import KNOWN
from ....studies.bandit.summary import describe, model_table, subject_table, weight_table
from ....studies.bandit.validation import controls

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


def report(found: Analysis) -> str:
    """Words, figures, and the tables as files inside the page."""
    from ....studies.bandit.figures import own_comparison, own_weights  # matplotlib takes a second

    names = tuple(name for name in KNOWN if name in found.primitives)
    words = describe(found, controls(found.trials, found.link, found.eps, own=False, primitives=names))
    title, *parts = re.split(r"^#{1,2} (.*)\n", words, flags=re.MULTILINE)[1:]
    tables = {"models.csv": model_table, "subjects.csv": subject_table, "weights.csv": weight_table}
    links = "".join(
        f'<li><a download="{name}" href="{_uri("text/csv", table(found).to_csv(index=False).encode())}">{name}</a></li>'
        for name, table in tables.items()
    )
    figures = {"Protected exceedance probability of every model": own_comparison, "Weights in the course": own_weights}
    drawn = "".join(
        f'<figure><img alt="{escape(alt)}" src="{_uri("image/svg+xml", _svg(draw, found))}"></figure>'
        for alt, draw in figures.items()
    )
    first, *rest = (markdown(text) for text in parts[::2])
    sections = "".join(f"<h2>{escape(head)}</h2>{body}" for head, body in zip(parts[1::2], rest, strict=True))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{first}{drawn}{sections}<h2>Tables</h2><p>As files, inside this page:</p>"
        f"<ul>{links}</ul></body></html>\n"
    )


def _svg(draw, found: Analysis) -> bytes:
    from ....studies.drawing import save, styled

    target = io.BytesIO()
    save(styled(draw, found), target, format="svg", metadata={"Date": None})
    return target.getvalue()


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
