"""Streams by moments: rows join the moments of a span that may grow, and leave as they fade."""
