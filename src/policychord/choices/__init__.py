"""Choices between uncertain arms: read them, fit models of choice, compare the models over a group, report."""
