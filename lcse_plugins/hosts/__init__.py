"""What the wrappers in `integrations/` share, and the core itself does not need.

`account` is what a result says of itself in a host's metadata, `reranking` ranks what another search found,
`logic_queries` asks a database that scores by itself, `payloads` reads what the frameworks wrote to one, and
`stored_vectors` tells which of its vectors can be scored. `checked_options`, `keywords` and `made_once` serve the
components: their fields, arguments and what is made of them; `pictures` opens what they embed, `refusals` tells a
server's refusal from its failure, and `versions` checks which framework they run in.
"""
