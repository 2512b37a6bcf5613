"""Encoders, and safe image loading.

`protocol` says what an encoder is, `registry` finds one by name. `starter` is the one that ships with the package,
`open_clip` any open_clip model (`checkpoints` reads local weights). `images` loads pictures safely, `colours` makes
their pixels RGB, `ahead` does such work in threads ahead of whoever takes the results.
"""

from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, concept_vectors

__all__ = ["Encoder", "FloatArray", "ImageSource", "concept_vectors"]
