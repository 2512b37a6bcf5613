"""What every encoder that ships must refuse."""

from __future__ import annotations

import pytest
from PIL import Image

from lcse_plugins import Encoder
from lcse_plugins.errors import InvalidOption, QueryError


def refuses_what_is_no_list(encoder: Encoder) -> None:
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        encoder.encode_images(Image.new("RGB", (30, 30)))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"\[text\]"):
        encoder.encode_texts("a cat")
    with pytest.raises(InvalidOption, match="batch_size"):
        encoder.encode_images(["cat.jpg"], batch_size=0)
    for texts in ([None], [b"dog"]):
        with pytest.raises(InvalidOption, match="texts holds strings"):
            encoder.encode_texts(texts)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="UTF-8"):
        encoder.encode_texts(["\ud800"])
