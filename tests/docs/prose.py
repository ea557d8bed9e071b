"""The project's English: how many words, which sentences are too long, and words that only this project would use.

`python -m tests.docs.prose` prints the words of every page and ends with an error if a rule is broken. Words are
checked in pages, and in the docstrings, messages, help texts and comments of the source.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .pages import PAGES, ROOT

LONGEST = 35  # words in a sentence
TOTAL = 26_000  # words of all pages that are counted
PAGE = 900  # words of a page that is read from top to bottom; a page of the reference is looked up
PROOFS = {"docs/explanation/mathematics.md"}
GENERATED = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "reference" / "api").glob("*.md")}
RECORDS = {"benchmarks/RECORD.md"}
CONTRIBUTORS = {"CONTRIBUTING.md"}
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]

# What a native engineer would not write, and what to write. A word with ordinary uses has them in ORDINARY.
BANNED = {
    r"rooms?": "package, page, tab",
    r"doors?": "where to start",
    r"words of": "terms of",
    r"beside": "next to, compared with",
    r"anew": "again",
    r"climb(?:s|ed|ing)?|hills?": "optimisation run, mode",
    r"accounts?": "model",
    r"told|said": "messages, given, known to, named",
    r"uphill|downhill": "up, ascending, descending",
    r"heals?|healed": "is rebuilt",
    r"nats? a (?:decision|trial|person|choice)": "nats per",
    r"is no (?:regression|proof|error)": "is not a",
    r"(?:world|system) has chance": "is stochastic",
    r"by chance alone": "at random",
    r"weigh(?:s|ed)? (?:them|it) (?:anew|afresh)": "re-weight",
    r"at hand": "available",
    r"hear(?:s|ing)?": "receives",
    r"colour-?blind(?:s)": "colour-blind",
    r"color|behavior|optimiz\w+|center(?:s|ed)?\b(?!\.)": "British spelling",
}
ORDINARY = {
    "room": ("room is heated",),
    "account": ("into account",),
    "accounts": ("interpretable accounts, trial-by-trial",),  # the paper's words
    "said": ("the record said that the paper",),
    "behavior": ("Mechanism for Compositional Behavior", "{compositional-behavior,"),
    # names in the record of the full run
    "beside": ("start 1e-15 m beside: ", "costs beside which entropy is nothing"),
    "nat a trial": ("shares; nat a trial",),
    # matplotlib and CSS
    "center": ("upper center", "lower center", "center left", "center right", "right center"),
    "color": ("color-scheme", "color: #"),
}
_FENCE = re.compile(r"^( *)(`{3,})(?!\{figure|\{admonition|\{note|\{tip).*?^\1\2\s*?$", re.DOTALL | re.MULTILINE)
_PART = re.compile(r"^<!-- generated.*?^<!-- end -->$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][\w'\N{RIGHT SINGLE QUOTATION MARK}-]*")
_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[(\"*_`\[$]*[A-Z0-9`$]|[*_]\w)")


def prose(text: str) -> str:
    """A page without front matter, code, generated parts, mathematics and addresses of links."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    for pattern in (_PART, _FENCE):
        text = pattern.sub("", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$\n]+\$", "X", text)
    text = re.sub(r"(?m)^    .*$", "", text) if "\n\n    " in text else text
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def words(text: str) -> int:
    return len(_WORD.findall(prose(text)))


def sentences(text: str) -> Iterator[str]:
    """Sentences of paragraphs, list items and cells of tables; code within a line counts as one word."""
    text = re.sub(r"`[^`\n]+`", "`code`", prose(text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.) )|\n(?=#)|(?<=\|)\n", text):
        for cell in re.split(r"(?<!\\)\|", block) if block.lstrip().startswith("|") else [block]:
            yield from (" ".join(one.split()) for one in _END.split(cell) if one.strip())


def banned(text: str) -> Iterator[tuple[str, str]]:
    """(what was found with its neighbours, what to write)."""
    plain = " ".join(re.sub(r"`[^`\n]+`", "", text).split())
    for pattern, instead in BANNED.items():
        for found in re.finditer(rf"\b(?:{pattern})\b", plain, re.IGNORECASE):
            around = plain[max(0, found.start() - 40) : found.end() + 40]
            if not any(use in around for use in ORDINARY.get(found[0].lower(), ())):
                yield around, instead


def texts(source: str) -> str:
    """Every text of a Python file that has a space in it, and every comment, a paragraph each."""
    found = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    comments = [
        one.string for one in tokenize.generate_tokens(io.StringIO(source).readline) if one.type == tokenize.COMMENT
    ]
    return "\n\n".join([*(one for one in found if isinstance(one, str) and " " in one), *comments])


def names() -> dict[str, str]:
    """Every page that is checked, by its path."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PAGES}


def counted() -> dict[str, int]:
    """Words of the pages for users: no generated reference, no proofs, no records, nothing for contributors only."""
    left_out = PROOFS | GENERATED | RECORDS | CONTRIBUTORS
    return {name: words(text) for name, text in names().items() if name not in left_out}


def faults() -> list[str]:
    """Every rule that is broken, with its place."""
    found = []
    for name, text in names().items():
        if name in RECORDS:
            continue
        found += [f"{name}: {around!r}: write {instead}" for around, instead in banned(prose(text))]
        long = [(len(_WORD.findall(one)), one) for one in sentences(text)]
        found += [f"{name}: a sentence of {n} words: {one}" for n, one in long if n > LONGEST]
    for path in SOURCES:
        wrong = banned(texts(path.read_text(encoding="utf-8")))
        found += [f"{path.relative_to(ROOT)}: {around!r}: write {instead}" for around, instead in wrong]
    read = {name: n for name, n in counted().items() if not name.startswith("docs/reference/")}
    found += [f"{name}: {n} words, more than {PAGE}" for name, n in read.items() if n > PAGE]
    if (total := sum(counted().values())) > TOTAL:
        found.append(f"all pages: {total} words, more than {TOTAL}")
    return found


def main() -> None:
    sections = Counter[str]()
    for name, n in counted().items():
        print(f"{n:6,d}  {name}")
        sections[str(Path(name).parent)] += n
    for section, n in sections.items():
        print(f"{n:6,d}  {section}/")
    print(f"{sections.total():6,d}  all pages")
    if found := faults():
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
