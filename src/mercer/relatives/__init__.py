"""Relatives of kernel PCA, built on its contracts: a file here is a feature that can go alone."""
