"""Texts and pictures to vectors.

`protocol` says what an encoder is and checks one, `registry` finds one by name. `starter` ships with the package,
`open_clip` takes any open_clip model. `telemetry` keeps their libraries quiet, `batches` works ahead in threads.
"""

from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, concept_vectors

__all__ = ["Encoder", "FloatArray", "ImageSource", "concept_vectors"]
