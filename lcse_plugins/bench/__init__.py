"""Measure an encoder and a scoring mode: the benchmarks of the paper, and what a user sees.

`lcse bench --help` lists them. Every measurement is a function that takes an encoder and data and gives back a
value with `to_json()`; `record.write_result` keeps it with the command, the versions and the date.
"""
