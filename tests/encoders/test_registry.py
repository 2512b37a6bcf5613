"""Encoders by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lcse_plugins.encoders.registry import available_encoders, load_encoder
from lcse_plugins.errors import InvalidOption, ModelFileError, UnknownEncoder
from lcse_plugins.testing import ToyEncoder
from tests.encoders.test_open_clip import small_config


def test_an_encoder_object_is_passed_through() -> None:
    own = ToyEncoder()
    assert load_encoder(own) is own
    with pytest.raises(InvalidOption, match="built already"):
        load_encoder(own, device="cpu")
    with pytest.raises(UnknownEncoder, match="not int"):
        load_encoder(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "clip", "open_clip:?device=cpu", "starter:x", "starter?"])
def test_unknown_names_list_what_exists(name: str) -> None:
    with pytest.raises(
        UnknownEncoder, match=r"known are starter, starter\?folder=FOLDER, open_clip:ViT-B-32-quickgelu/openai"
    ):
        load_encoder(name)


def test_the_starter_takes_its_own_options_and_refuses_others(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no complete starter model"):
        load_encoder(f"starter?folder={tmp_path}")
    with pytest.raises(InvalidOption, match=r"starter has no options \['precision'\]"):
        load_encoder("starter", precision="fp16")
    assert load_encoder("starter?threads=2&batch_size=8").encode_texts(["a cat"]).shape == (1, 256)
    with pytest.raises(InvalidOption, match="threads is a number, not 'two'"):
        load_encoder("starter?threads=two")
    with pytest.raises(ModelFileError, match="R&D/m holds no"):
        load_encoder("starter?folder=R&D/m&threads=2")


def test_open_clip_names_carry_model_tag_checkpoint_and_options(
    open_clip: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    (tmp_path / "registry-tiny.json").write_text(json.dumps(small_config()))
    open_clip.add_model_config(tmp_path / "registry-tiny.json")
    weights = tmp_path / "50% a+b.pt"  # taken literally: nothing in a path needs quoting
    torch.save(open_clip.create_model("registry-tiny").state_dict(), weights)
    encoder = load_encoder(f"open_clip:registry-tiny?checkpoint={weights}&device=cpu&batch_size=3&precision=bf16")
    assert (encoder.device, encoder.batch_size, encoder.precision) == ("cpu", 3, "bf16")  # type: ignore[attr-defined]
    by_keyword = load_encoder("open_clip:registry-tiny", checkpoint=weights, precision="bf16")
    np.testing.assert_array_equal(encoder.encode_texts(["a cat"]), by_keyword.encode_texts(["a cat"]))
    assert encoder.encoder_id == by_keyword.encoder_id

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelFileError, match="cannot load hf-hub:timm/ViT-B-32-SigLIP2-256"):
        load_encoder("open_clip:hf-hub:timm/ViT-B-32-SigLIP2-256")
    with pytest.raises(UnknownEncoder, match="no weights 'nope' for ViT-B-32"):
        load_encoder("open_clip:ViT-B-32/nope")
    with pytest.raises(InvalidOption, match="NAME=VALUE, not 'cpu'"):
        load_encoder("open_clip:registry-tiny?cpu")
    with pytest.raises(InvalidOption, match=r"no options \['devise'\]; it has \['batch_size', 'checkpoint', 'device'"):
        load_encoder("open_clip:registry-tiny?devise=cpu")


def test_the_listed_names_exist_in_open_clip(open_clip: ModuleType) -> None:
    listed = [x.name.removeprefix("open_clip:") for x in available_encoders() if x.extra == "open-clip"]
    pairs = {f"{model}/{tag}" for model, tag in open_clip.list_pretrained()}
    assert [name for name in listed if name in pairs] == ["ViT-B-32-quickgelu/openai", "ViT-L-14-quickgelu/openai"]
    assert "ViT-B-32-SigLIP2-256" in open_clip.list_models()
    assert all(listing.installed for listing in available_encoders())


def test_listing_and_naming_encoders_imports_nothing_heavy() -> None:
    code = (
        "import sys; from lcse_plugins import available_encoders, load_encoder; available_encoders()\n"
        "print(sorted({'torch', 'open_clip', 'onnxruntime', 'PIL', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
