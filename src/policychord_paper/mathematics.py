"""Mathematics of the report as MathML, which browsers draw themselves.

Claims and findings are written as one types them, `eps KL(w,S) <= 1e-12`, since they are also read in a terminal and in
claims.json. The page finds the formulas in such a text by their symbols and sets them.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape, unescape
from typing import NamedTuple

from markupsafe import Markup

from policychord.runs import markdown

from .claim import MINUS, SPACE, TIMES, raised

GREEK = {"eps": "&epsilon;"} | {name: f"&{name};" for name in ("tau", "mu", "rho", "pi", "delta")}
RELATIONS = {"<=": "≤", ">=": "≥", "<<": "≪", "<": "&lt;", ">": "&gt;", "=": "="}
SIGNS = RELATIONS | {"-": MINUS, "*": "·", "+": "+", "/": "/", "^": "^", "(": "(", ")": ")", ",": ","}
FUNCTIONS = ("KL", "exp", "softmax", "argmin", "min", "max", "ln", "S")  # formulas only before a bracket or a symbol
NAMES = ("w", "V", "F", "S", "h", "p", "q", "d", "n", "m", "r", "s", "t", "x", "y", "w_hat", "dV", "dt")
UNITS = ("m", "s", "h", "d", "p")  # behind a number these are no variables
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?![\w.]*[A-Za-z]))|(?P<bar>\|)"
    r"|(?P<word>[A-Za-z]+~?(?:_\w+)?\*?(?![\w])(?:'(?!\w))?)|(?P<sign><=|>=|<<|[-<>=+/^(),*])|(?P<other>[\w'\u2019-]+|.)",
    re.DOTALL,
)
_TAGS = re.compile(r"(<code>.*?</code>|<pre>.*?</pre>|<[^>]+>)", re.DOTALL)


class _Token(NamedTuple):
    kind: str  # space, number, bar, word, sign or other
    text: str


def typeset(text: str) -> Markup:
    """Plain text as HTML with its formulas as MathML."""
    tokens = [_Token(match.lastgroup or "other", match.group()) for match in _TOKEN.finditer(text)]
    pieces: list[str] = []
    at = 0
    while at < len(tokens):
        end = _formula(tokens, at)
        pieces += _set(tokens[at:end]) if end > at else [_plain(tokens, at)]
        at = max(end, at + 1)
    return Markup("".join(pieces))


def prose(text: str) -> Markup:
    """Markdown as HTML with its formulas as MathML; code stays as it is."""
    return _outside_tags(markdown(text))


def _outside_tags(html: str) -> Markup:
    parts = _TAGS.split(html)  # every second one is a tag, or code
    return Markup("".join(part if k % 2 else typeset(unescape(part)) for k, part in enumerate(parts)))


# ------------------------------------------------------------------------------------ where a formula is


def _formula(tokens: Sequence[_Token], at: int) -> int:
    """Where the formula ends that begins here, or `at` if none does: operands with signs between them."""
    end, symbols = at, False
    here = at
    while (after := _operand(tokens, here)) > here:
        symbols |= any(t.kind in ("word", "bar") or t.text == "^" for t in tokens[at:after])
        end = here = after
        sign = _skip(tokens, here)
        if _is(tokens, sign, "sign", "-+/*=^") or _is(tokens, sign, "sign", tuple(RELATIONS)):
            spaces = (sign > here) + (_skip(tokens, sign + 1) > sign + 1)
            if tokens[sign].text in "-*" and spaces != 2:  # a hyphen, the sign of a number, the star of a word
                break
            here = _skip(tokens, sign + 1)
        elif _is(tokens, sign, "number", "") and tokens[here - 1].text != "eps":
            break
        else:
            here = sign
    return end if symbols else at


def _operand(tokens: Sequence[_Token], at: int) -> int:
    """Where the number, symbol, call, bracket or absolute value ends that begins here, or `at`."""
    if at >= len(tokens):
        return at
    kind, text = tokens[at]
    if kind == "sign" and text == "-" and _operand(tokens, at + 1) > at + 1:
        return _operand(tokens, at + 1)
    if kind == "number":
        return at + 1
    if kind == "bar":
        return next((k + 1 for k in range(at + 1, len(tokens)) if tokens[k].kind == "bar"), at)
    if kind == "sign" and text == "(":
        end = _closing(tokens, at)
        inside = at + 1
        return end if end > at and _formula(tokens, inside) == end - 1 else at
    if kind != "word":
        return at
    opened = _is(tokens, at + 1, "sign", "(")
    if text in FUNCTIONS and opened and (end := _closing(tokens, at + 1)) > at:
        return end
    if text in FUNCTIONS[3:7]:
        behind = _skip(tokens, at + 1)
        if text == "ln" and _is(tokens, behind, "word", ("prior",)):
            return behind + 1
        bare = _is(tokens, behind, "bar", "|") or _is(tokens, behind, "word", "VFSwnh")
        return _operand(tokens, behind) if bare else at
    if text == "grad":
        return _operand(tokens, _skip(tokens, at + 1))
    known = text.rstrip("*'") in NAMES or re.split(r"[~_*]", text)[0] in GREEK or re.fullmatch(r"[A-Za-z]_\w\*?", text)
    measured = text in UNITS and _is(tokens, at - 2, "number", "")
    return at + 1 if known and not measured else at


def _is(tokens: Sequence[_Token], at: int, kind: str, texts: str | tuple[str, ...]) -> bool:
    return 0 <= at < len(tokens) and tokens[at].kind == kind and (not texts or tokens[at].text in texts)


def _skip(tokens: Sequence[_Token], at: int) -> int:
    return at + 1 if _is(tokens, at, "space", "") else at


def _closing(tokens: Sequence[_Token], at: int) -> int:
    """Behind the bracket that closes the one here; `at` if none does."""
    depth = 0
    for k in range(at, len(tokens)):
        depth += (tokens[k].text == "(") - (tokens[k].text == ")")
        if depth == 0:
            return k + 1
    return at


# ------------------------------------------------------------------------------------ how it is set


def _set(tokens: Sequence[_Token]) -> Iterator[str]:
    """A formula, in pieces between which a line may break: behind the signs of its outermost level."""
    piece: list[_Token] = []
    depth, barred = 0, False
    for k, (kind, text) in enumerate(tokens):
        barred ^= kind == "bar"
        depth += (text == "(") - (text == ")")
        piece.append(tokens[k])
        outermost = not depth and not barred and kind == "sign" and text not in "/^(),*"
        if outermost and _is(tokens, k + 1, "space", ""):
            yield f"<math><mrow>{_elements(piece)}</mrow></math> "
            piece = []
    if piece:
        yield f"<math><mrow>{_elements(piece)}</mrow></math>"


def _elements(tokens: Sequence[_Token]) -> str:
    made: list[str] = []
    barred = False
    for k, (kind, text) in enumerate(tokens):
        if kind == "bar":
            barred = not barred
            made.append('<mo stretchy="false" form="{}">|</mo>'.format("prefix" if barred else "postfix"))
        elif kind == "number":
            made.append(_number(text))
        elif kind == "word":
            made.append(_symbol(text, barred))
            if text == "ln":
                made.append('<mspace width="0.17em"/>')
        elif kind == "sign" and text == "^" and made:
            continue
        elif kind == "sign":
            made.append(f'<mo stretchy="false">{SIGNS[text]}</mo>')
        elif kind == "other":
            made.append(f"<mtext>{escape(text)}</mtext>")
        else:
            made.append(_gap(tokens, k))
        if k and tokens[k - 1].text == "^" and len(made) > 1:
            made[-2:] = [f"<msup>{made[-2]}{made[-1]}</msup>"]
    return "".join(made)


def _gap(tokens: Sequence[_Token], at: int) -> str:
    """A space that is typed is not drawn around signs, and is a sign itself where `eps 0.1` names a value."""
    before, after = (tokens[k].kind if 0 <= k < len(tokens) else "sign" for k in (at - 1, at + 1))
    if after == "number" and tokens[at - 1].text == "eps":
        return " <mo>=</mo> "
    drawn = "sign" not in (before, after) and tokens[at - 1].text != "ln"
    return ' <mspace width="0.25em"/>' if drawn else " "


def _symbol(text: str, barred: bool) -> str:
    """A letter with its accent, index and star; a word as a word."""
    match = re.fullmatch(r"([A-Za-z]+)(~?)(?:_(\w+?))?([*']?)", text)
    name, accent, index, star = match.groups() if match else (text, "", "", "")
    if name == "sum" and barred:
        return "<mo>∑</mo><mi>w</mi>"
    if name == "grad":
        return "<mo>∇</mo>"
    if len(name) > 1 and name not in (*GREEK, *FUNCTIONS, *NAMES):
        return f"<mtext>{escape(text)}</mtext>"
    whole = name in (*GREEK, *FUNCTIONS)
    base = "".join(f"<mi>{letter}</mi>" for letter in ([GREEK.get(name, name)] if whole else name))
    base = f'<mover accent="true">{base}<mo>~</mo></mover>' if accent else base
    if index == "hat":
        base, index = f'<mover accent="true">{base}<mo>^</mo></mover>', None
    below = "" if not index else f"<mi>{index}</mi>" if len(index) == 1 else f"<mtext>{escape(index)}</mtext>"
    above = {"*": "<mo>&lowast;</mo>", "'": "<mo>&prime;</mo>"}.get(star, "")
    if below and above:
        return f"<msubsup>{base}{below}{above}</msubsup>"
    return f"<msub>{base}{below}</msub>" if below else f"<msup>{base}{above}</msup>" if above else base


def _number(text: str) -> str:
    return f"<mn>{_power(text)}</mn>"


def _power(text: str) -> str:
    """1e-7 as a power of ten; other numbers as they are."""
    mantissa, _, power = text.partition("e")
    if not power:
        return text
    return raised(int(power)) if mantissa == "1" else f"{mantissa}{SPACE}{TIMES}{SPACE}{raised(int(power))}"


def _plain(tokens: Sequence[_Token], at: int) -> str:
    """A piece of a text that is no formula: its signs and powers of ten, as print has them."""
    kind, text = tokens[at]
    if kind == "number":
        return _power(text)
    if kind == "sign" and text in ("<=", ">=", "<<"):
        return SIGNS[text]
    before = tokens[at - 1].text[-1] if at else " "
    spaced = before == " " and _is(tokens, at + 1, "space", "")
    if text == "-" and (spaced or (_is(tokens, at + 1, "number", "") and not before.isalnum())):
        return MINUS
    return escape(text, quote=False)
