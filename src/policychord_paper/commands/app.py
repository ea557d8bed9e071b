"""The app that each of the paper's commands adds itself to when it is imported."""

import typer

app = typer.Typer()
