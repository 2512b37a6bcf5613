"""What the wrappers in `integrations/` share, and the core itself does not need.

`result_metadata` is what a result says about itself, `reranking` ranks what another search found, `text_vectors`
notices vectors that are not of pictures, `embedding_encoder` makes an encoder of a host's embedding model,
`logic_queries` asks a database that scores by itself, `payloads` reads what the frameworks wrote to one. `pictures`
opens pictures and makes them fit to send, `search_tool` holds the words of an agent's tool, `checked_options` refuses
what a component does not know, `notices` are warnings told once.
"""
