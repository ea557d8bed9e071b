"""Objective, equilibrium, flow and circuit of one gating problem."""
