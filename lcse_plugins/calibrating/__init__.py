"""Fitting μ and β of an encoder: with labelled images, or without labels."""
