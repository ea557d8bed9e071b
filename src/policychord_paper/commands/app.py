"""The app that the paper's commands add themselves to when they are imported."""

import typer

app = typer.Typer()
