"""Encoders: the protocol, open_clip models, the starter encoder that ships with the package, safe image loading."""

from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, concept_vectors

__all__ = ["Encoder", "FloatArray", "ImageSource", "concept_vectors"]
