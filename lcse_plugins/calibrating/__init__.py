"""Fitting the numbers of an encoder."""
