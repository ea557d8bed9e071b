"""The checker of the English finds what it should. `make check` applies it to all pages and the source."""

import re

import pytest

from .pages import ROOT
from .prose import LONGEST, TOTAL, banned, counted, prose, sentences, texts, words

PAGE = """---
kernelspec: python3
---

# A title

Open the [next page](a/very/long/address.md). It has `some code` and $x + y$.

```python
told = "no word of this counts"
```

<!-- generated: speed -->

| no word of this counts |

<!-- end -->

| cell one | cell two. And more |
|---|---|

- an item
- another
"""


def test_code_addresses_front_matter_and_generated_parts_are_not_words():
    assert words("Open the [next page](a/very/long/address.md).\n\n```python\nx = 1\n```\n") == 4
    assert "no word" not in " ".join(sentences(PAGE))
    assert words(PAGE) == words(PAGE.replace("address", "other/address"))


def test_sentences_end_at_full_stops_cells_and_items():
    found = list(sentences(PAGE))
    assert "Open the next page." in found
    assert {"cell one", "cell two.", "And more", "- an item", "- another"} <= set(found)
    long = " ".join(["Word"] + ["word"] * LONGEST)
    assert max(len(one.split()) for one in sentences(f"Short. {long}. Short.")) == LONGEST + 1


@pytest.mark.parametrize(
    "text",
    ["Who frees both is told by the verdicts.", "The room Flock shows it.", "It stands beside the others.",
     "Weigh them anew.", "Four doors lead in.", "The behavior is optimal.", "It gains .1 nats a decision."],
)  # fmt: skip
def test_private_words_are_found(text):
    assert list(banned(prose(text)))


@pytest.mark.parametrize(
    "text",
    ["It is `told` so.", "The agent behaves well.", "A room is heated at night.", "Besides, it helps.",
     "nats per decision", "*An Energy-Based Mechanism for Compositional Behavior*"],
)  # fmt: skip
def test_ordinary_words_pass(text):
    assert list(banned(prose(text))) == []


def test_docstrings_messages_and_comments_are_read():
    source = '"""It is beside it."""\nroom = 1  # told apart\nraise ValueError(f"{room} is drawn anew, by {room}")\n'
    assert len(list(banned(texts(source)))) == 3
    assert sorted(re.findall(r"beside|told|anew|room", texts(source))) == ["anew", "beside", "told"]


def test_what_is_counted():
    """The pages for users, not the generated reference, the proofs and the records."""
    pages = counted()
    assert "README.md" in pages
    assert "docs/tutorials/tracks.md" in pages
    assert not {"docs/reference/api/gating.md", "docs/explanation/mathematics.md", "benchmarks/RECORD.md"} & set(pages)
    assert sum(pages.values()) <= TOTAL


def test_make_check_runs_it():
    recipe = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    assert "-m tests.docs.prose" in recipe
