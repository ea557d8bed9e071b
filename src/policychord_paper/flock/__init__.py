"""The flock study: polarization, milling, leaders, and what else follows from composed social forces."""
