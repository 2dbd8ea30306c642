"""Classical multidimensional scaling: coordinates from distances."""
