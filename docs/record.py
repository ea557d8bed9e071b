"""Make the site's record of the claims from a full run: python docs/record.py out/record

Nothing of the record is written by hand; `make record` runs the studies and then this.
"""

import argparse
import json
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "explanation" / "full_run.json"
KEPT = ("policychord", "python", "seed", "data", "started", "quick", "seconds", "cores", "workers")


def record(run: Path) -> dict[str, object]:
    """Claims of a run and where it took place. Only a full run with people's choices is a record."""
    environment, claims = (
        json.loads((run / name).read_text(encoding="utf-8")) for name in ("environment.json", "claims.json")
    )
    if environment["quick"]:
        raise SystemExit(f"{run} is a quick run: pass the folder of a run with --full.")
    if "human" not in environment["data"]:
        raise SystemExit(f"{run} has {environment['data']}: run with --data and the folder of the public choices.")
    return {"environment": {name: environment[name] for name in KEPT}, "claims": list(filter(is_measured, claims))}


def is_measured(claim: dict[str, Any]) -> bool:
    """Whether every number of a claim is one. Where an instrument failed, its verdict says nothing about the paper."""
    failed = [name for name, one in claim["measured"].items() if one["value"] != one["value"]]
    if failed:
        print(f"{claim['id']} is left out: {', '.join(failed)} is not a number.")
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a full run, as `policychord reproduce` writes it")
    made = record(parser.parse_args().run)
    RECORD.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Wrote {RECORD}: {len(made['claims'])} claims.")


if __name__ == "__main__":
    main()
