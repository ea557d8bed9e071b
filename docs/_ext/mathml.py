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
# two spellings that the converter does not know
SPELLINGS = ((re.compile(r"\\dots(?![a-z])"), r"\\ldots"), (re.compile(r"\\([bB]ig)(?![a-zA-Z])"), r"\\\1l"))


def converted(tex: str, as_block: bool) -> str:
    for known, wanted in SPELLINGS:
        tex = known.sub(wanted, tex)
    return tex2mathml(tex.strip(), as_block=as_block)


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
    opening = writer.starttag(node, "div", CLASS="math notranslate nohighlight")
    writer.body += [opening, _written(node, as_block=True), "</div>\n"]
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True}
