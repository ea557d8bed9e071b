"""Running studies: what to do in which order, and where results are kept."""
