"""Benchmarks that a user runs on their own encoder and images; `lcse bench --help` lists them.

What this project runs on itself (timing, Qdrant, the tables of the docs) is in `benchmarks/`, outside the package.
"""
