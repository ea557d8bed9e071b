"""Tracks of real groups: which social forces do these animals use, and do their weights follow the situation?

Tracks -> motion -> decisions -> fit and rivals -> a sentence, figures, a film, and flocks simulated with the estimates.
"""
