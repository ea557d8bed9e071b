"""Formulas of the report: found in what one types, set as MathML, and nothing else is touched."""

import re
from html import unescape

import pytest

from policychord_paper import STUDIES, load_study
from policychord_paper.mathematics import prose, typeset

# what one types and print does not have
TYPED = re.compile(r"\beps\b|\btau\b|<=|>=|<<|\w\^\d|\b[0-9.]+e[+-]?[0-9]+\b|\bpi_|_max|w\*|V\*|KL\(|\|")


def marked(text) -> str:
    """The text with formulas in brackets, an index behind _, what stands above a letter behind ^."""
    html = re.sub(r"<mover[^>]*>(.*?)</mover>", lambda found: re.sub("<[^>]+>", "", found[1]), str(text))
    html = re.sub(r"<msub>(<m.*?>.*?</m\w>|[^<]+)(.*?)</msub>", r"\1_\2", html)
    html = re.sub(r"<msup>(<m.*?>.*?</m\w>)(.*?)</msup>", r"\1^\2", html)
    html = html.replace("<math>", "[").replace("</math>", "]")
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split()).replace("[ ", "[")


def in_print(text: str) -> str:
    """The signs of print as escapes, which a reader of this file can tell apart."""
    return text.encode().decode("unicode_escape") if "\\" in text else text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("largest |w - w*| after 40 tau", r"largest [|w \u2212 w^\u2217|] after [40 \u03c4]"),
        ("largest |sum - 1|", r"largest [|\u2211w \u2212 1|]"),
        ("|w - uniform| at eps 1e4", r"[|w \u2212 uniform|] at [\u03b5 = 10\u2074]"),
        ("V - V* <= eps KL(w, S(w))", r"[V \u2212] [V^\u2217 \u2264] [\u03b5 KL(w, S(w))]"),
        ("rate 1/(2 tau), with a proof", r"rate [1/(2 \u03c4)], with a proof"),
        ("L_F = n pi_max/pi_min", r"[L_F =] [n \u03c0_max/\u03c0_min]"),
        ("tau_g << tau~_g", r"[\u03c4_g \u226a] [\u03c4~_g]"),
        ("y = -h/eps + ln prior", r"[y =] [\u2212h/\u03b5 +] [ln prior]"),
        ("delta = -0.14, p < 1e-7 (1000 seeds)", r"[\u03b4 =] [\u22120.14], [p <] [10\u207b\u2077] (1000 seeds)"),
        ("largest gap - bound", r"largest gap \u2212 bound"),
        ("in [-0.14, 0.5], 2.5e-3 of it", r"in [\u22120.14, 0.5], 2.5\u00a0\u00d7\u00a010\u207b\u00b3 of it"),
        ("30^2 actions", "[30^2] actions"),
    ],
)
def test_formulas_are_set(text, shown):
    assert marked(typeset(text)) == " ".join(in_print(shown).split())


@pytest.mark.parametrize(
    "text",
    [
        "3-fold validation of F8 and S7a", "12 s, 3 m and 0.5 s later", "a person's choice", "B1: Exp 1, of 45 people",
        "a model that is x times as good", "step 29 of 106: 1/3 each",
    ],
)  # fmt: skip
def test_words_stay_words(text):
    assert typeset(text).replace("<math><mrow><mi>x</mi></mrow></math>", "x") == text


def test_what_is_no_formula_is_escaped():
    assert str(typeset('a <b> & "c" | e')) == 'a &lt;b&gt; &amp; "c" | e'
    assert "<script" not in typeset("|<script>alert(1)</script>|")


def test_code_and_tags_of_a_passage_stay_as_they_are():
    html = str(prose("At **eps 0.1** use `eps <= 1e-3`, [see](#x_1)."))
    assert "<code>eps &lt;= 1e-3</code>" in html
    assert '<a href="#x_1">' in html
    assert "<strong><math>" in html


def test_no_claim_is_shown_as_it_is_typed():
    """Statements, rules, their history and captions have no mathematics left that only a keyboard has."""
    for study in map(load_study, STUDIES):
        texts = [study.introduction, *(figure.caption for figure in study.figures.values())]
        for claim in study.claims:
            texts += [claim.statement, claim.paper, claim.reported, claim.rule.context]
            texts += [text for revision in claim.rule.history for text in (revision.rule, revision.reason)]
            texts += [c.quantity for part in claim.rule.parts for c in part.conditions]
        for text in texts:
            html = re.sub(r"<math>.*?</math>|<code>.*?</code>|<[^>]+>", "", str(prose(text)))
            assert not TYPED.search(unescape(html)), html
