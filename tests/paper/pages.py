"""A small run with everything in it that a page has to cope with, drawn and written as a real one is."""

from pathlib import Path

from policychord.drawing import blank, styled
from policychord.runs.page import PageFigure
from policychord.runs.store import save_figure, write_json
from policychord_paper.claim import JudgedClaim, JudgedCondition, JudgedPart, Quantity, Revision
from policychord_paper.report import write_report
from policychord_paper.study import Chapter, Control, Environment, Finding, Objection, Report, claim_records

ENVIRONMENT = Environment(
    policychord="0.1.0", python="3.11.9", packages={"jax": "0.7.0", "numpy": "2.3.1"}, platform="Linux",
    processor="A processor", cores=2, memory_gib=7.75, devices=["cpu"], workers=2, quick=True, seed=3,
    data="simulated choices; not human data", settings={"bandit": {"seed": 3, "eps": 0.01}, "flock": {"seed": 3}},
    started="2026-03-01T12:30:00+00:00", seconds=161.4, steps={"bandit: fits": 120.0, "flock: a <step>": 0.25},
    reused=1,
)  # fmt: skip

OUTSIDE = "https://example.org/x.png"
CLAIMS = [
    JudgedClaim("B1", "x < y & <script>alert(1)</script> beats \"z\"", "Fig. 4 <b>", "p < 1e-7 & more", {
        "third": Quantity(0.1 + 0.2, "m", interval=(0.25, 0.35)), "tiny": Quantity(-1.887379141862766e-15),
        "many": Quantity(123456), "whole": Quantity(240.0, "nat <"), "settled": Quantity(174, of=200),
        "share": Quantity(0.189468, "share"), "odd": Quantity(float("nan")),
    }, "a <= b & c; later: d > 1", {"first <": True, "later": True}, (), "reproduced"),
    JudgedClaim("B2", "no figure in the paper", "Fig. 5", "", {"only": Quantity(1.0), "other": Quantity(-1.0)},
                "only > 0; other > 0",
                {"early": True, "late": False}, (Revision("only > <2>", "not reproduced", "2 was a guess."),),
                "partly", parts=(
                    JudgedPart("early", (JudgedCondition("only", ">", 0.0, True),)),
                    JudgedPart("late", (JudgedCondition("other", ">", 0.0, False),)),
                )),
]  # fmt: skip
OTHER = [JudgedClaim("F1", "a flock " * 60, "Lemma", "", {}, "none", {"": False}, (), "not reproduced")]


def dot(k: int):
    """A figure with one line, at a height of its own."""
    figure = blank(3.0 + 3.0 * k, 2.0)
    axes = figure.subplots()
    axes.plot([0, 1], [k, k + 1])
    axes.set_title("< & >")
    return figure


def a_report(folder: Path) -> Report:
    """Two studies: one with everything, one with claims alone."""
    for k, name in enumerate(("weights_over_time", "costs")):
        save_figure(folder / "figures" / "bandit" / name, styled(dot, k))
    stem = "figures/bandit"
    figures = [
        PageFigure("weights_over_time", f"{stem}/weights_over_time.svg", f"{stem}/weights_over_time.png",
              "What *is seen*, with 2 < 3.", ("B1", "F1", "Z9")),
        PageFigure("costs", f"{stem}/costs.svg", f"{stem}/costs.png", "", ()),
    ]  # fmt: skip
    passage = f"# Big\n\n- one\n- two\n\n![no]({OUTSIDE}) <img src=x onerror=alert(1)>"
    full = Chapter(
        "bandit", "Choices & people", "The **paper** did <u>this</u>, see [B2](#B2).",
        {"seed": 3, "eps": 0.01, "deep": {"a": [1, 2]}, "empty": {}}, ENVIRONMENT.data, CLAIMS, figures,
        [Control("clipped", "Is 1 < 2?", {"PXP": 0.123456}, "Yes & `no`.")], [Finding("A floor & its effect", passage)],
        ["data/bandit/weights.zarr"], [Objection(("B1",), "author", "It is *more* than that.", "Then 1 < 2.")],
        "**All** of it at eps 0.1.", "costs",
    )  # fmt: skip
    bare = Chapter("flock", "", "", {}, "", OTHER, [], [], [], [])
    return Report([full, bare], ENVIRONMENT)


def a_run(folder: Path) -> Report:
    """The report with the files that lie beside it."""
    report = a_report(folder)
    write_json(folder / "claims.json", claim_records(report))
    write_json(folder / "environment.json", report.environment)
    write_report(report, folder)
    return report
