"""Equations as MathML, which browsers draw themselves: the site needs no network and no scripts for them."""

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
# spellings that the converter does not know, and the space behind a logarithm
SPELLINGS = (
    (re.compile(r"\\dots(?![a-z])"), r"\\ldots"),
    (re.compile(r"\\([bB]ig)(?![a-zA-Z])"), r"\\\1l"),
    (re.compile(r"\\ln(?![a-zA-Z])\s*"), r"\\ln\\,"),
)
# the converter takes an accent for a limit and puts the index of a letter under it
BELOW = re.compile(r'<munderover>\s*(<mi>.</mi>)\s*(<mi>.</mi>)\s*(<mo stretchy="false">.</mo>)\s*</munderover>')
BESIDE = r'<msub><mover accent="true">\1\3</mover>\2</msub>'


def converted(tex: str, as_block: bool) -> str:
    for known, wanted in SPELLINGS:
        tex = known.sub(wanted, tex)
    return BELOW.sub(BESIDE, tex2mathml(tex.strip(), as_block=as_block))


def _written(node: Any, as_block: bool) -> str:
    try:
        return converted(node.astext(), as_block)
    except MathError as error:
        _log.warning("equation %r: %s", node.astext(), error, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_written(node, as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    opening = writer.starttag(node, "div", CLASS="math notranslate nohighlight", style="overflow: auto hidden")
    writer.body += [opening, _written(node, as_block=True), "</div>\n"]
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True}
