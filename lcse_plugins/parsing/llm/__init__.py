"""Queries read by a language model."""
