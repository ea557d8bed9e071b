"""The public data of Gershman (2018): where they are found, and how they get there. Nothing is fetched unasked."""

import os
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "POLICYCHORD_DATA"
# The repository that accompanies the article, at the commit that the checksums belong to. It states no licence, so
# everyone fetches their own copy.
_ADDRESS = "https://raw.githubusercontent.com/sjgershm/exploration/3116a7dbb44fb9900d47c3a5259363a00656a2fb/"
FILES = {
    "data1.csv": "e84d9a294f1119913f0f4ae781b5f18b3c361193d8825746cb7e232a65e943ef",
    "data2.csv": "577ae6c97ba8377006e9e32cad3f590712be04016dfe64b0c696e0e9ab8a46e2",
}


def address() -> str:
    """Where the files are fetched from."""
    return _ADDRESS


def data_folder() -> Path:
    """The folder of the user's cache in which fetched data are kept."""
    return user_cache_path("policychord") / "gershman2018"


def find_data(given: Path | None = None) -> Path | None:
    """The folder with data1.csv and data2.csv: as given, by POLICYCHORD_DATA, as fetched before; None if nowhere."""
    named = os.environ.get(VARIABLE)
    for folder, said in ((given, "--data"), (Path(named) if named else None, VARIABLE)):
        if folder is None:
            continue
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise ValueError(
                f"{said} points to {folder}, which has no {' and no '.join(missing)}: "
                "fetch the public data with  policychord choices data fetch"
            )
        return folder
    return data_folder() if all((data_folder() / name).is_file() for name in FILES) else None


def fetch(folder: Path | None = None) -> list[Path]:
    """Download the public files into `folder`, check them, and keep what is there already."""
    import pooch

    folder = data_folder() if folder is None else folder
    shelf = pooch.create(path=folder, base_url=_ADDRESS, registry={name: f"sha256:{h}" for name, h in FILES.items()})
    try:
        return [Path(shelf.fetch(name)) for name in FILES]
    except OSError as error:  # no network, no such host, refused, disk full
        raise OSError(
            f"could not fetch the data ({type(error).__name__}): a network connection to {_ADDRESS} and a writable "
            f"folder {folder} are needed. Without them, put data1.csv and data2.csv into a folder and point to it "
            f"with --data or {VARIABLE}; or leave both out for a synthetic cohort."
        ) from error
    except ValueError as error:  # the checksum
        raise ValueError(
            f"what was downloaded is not the file that was expected ({error}): nothing was kept. Try again later, or "
            f"point to your own copy with --data or {VARIABLE}."
        ) from error
