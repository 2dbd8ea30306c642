"""Spectral clustering: the eigenproblem of affinities over their degrees, whole or in a span."""
