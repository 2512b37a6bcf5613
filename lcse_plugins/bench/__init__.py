"""Measure an encoder, a scoring mode or this machine: the benchmarks of the paper, and what a user sees.

`lcse bench --help` lists them; `cli` leads to `quality_commands`, `analysis_commands` and `speed_commands`. What
measures quality takes an encoder and data and gives back a value with `to_json()`; `timing`, `concurrency` and `qdrant`
have a `run` that gives back JSON values. `record.write_result` keeps either with the command, the versions and the
date, and `readme_tables` makes the tables of the README files from what was kept.
"""
