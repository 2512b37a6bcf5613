"""OpenClipEncoder against open_clip itself, on small models with random weights and checkpoints written here."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidOption, ModelFileError, UnknownEncoder
from lcse_plugins.scoring.calibration import CLIP_PRESET, SIGLIP2_PRESET
from tests.encoders.test_starter import refuses_what_is_no_list

if TYPE_CHECKING:
    from lcse_plugins.encoders.open_clip import OpenClipEncoder

TEXTS = ["a red umbrella", "A Photo of a Person", "no dog", "", "x " * 300]


def small_config(*, quick_gelu: bool = False, vocabulary: int = 49_408, **extra: Any) -> dict[str, Any]:
    return {
        "embed_dim": 16,
        "quick_gelu": quick_gelu,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 16, "head_width": 16},
        "text_cfg": {"context_length": 24, "vocab_size": vocabulary, "width": 16, "heads": 2, "layers": 2},
        **extra,
    }


def encoder_of(model: str, **options: Any) -> OpenClipEncoder:
    """Imported late, since the import needs the library."""
    from lcse_plugins.encoders.open_clip import OpenClipEncoder

    return OpenClipEncoder(model, **options)


@pytest.fixture(scope="session")
def library(open_clip: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """open_clip with small models registered beside its own."""
    folder = tmp_path_factory.mktemp("configs")
    wide = small_config()
    wide["vision_cfg"]["width"] = 48
    for name, config in {
        "small": small_config(),
        "small-quickgelu": small_config(quick_gelu=True),
        "small-wide": wide,
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return open_clip


@pytest.fixture(scope="session")
def weights(library: ModuleType) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    state = library.create_model("small").state_dict()
    return OrderedDict((key, value + 0.05 * torch.randn_like(value)) for key, value in state.items())


@pytest.fixture(scope="session")
def checkpoint(weights: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    path = tmp_path_factory.mktemp("weights") / "small.pt"
    torch.save(weights, path)
    return path


@pytest.fixture(scope="session")
def encoder(checkpoint: Path) -> OpenClipEncoder:
    return encoder_of("small", checkpoint=checkpoint, device="cpu")


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    rng = np.random.default_rng(3)
    return [Image.fromarray(rng.integers(0, 256, (40 + n, 60 - n, 3), dtype=np.uint8)) for n in range(7)]


def direct(library: ModuleType, model: str, checkpoint: Path | None = None) -> tuple[Any, Any, Any]:
    network, _, preprocess = library.create_model_and_transforms(model, pretrained=checkpoint and str(checkpoint))
    return network.eval(), preprocess, library.get_tokenizer(model)


def test_vectors_equal_those_of_open_clip_itself(
    encoder: OpenClipEncoder, library: ModuleType, checkpoint: Path, pictures: list[Image.Image]
) -> None:
    import torch

    network, preprocess, tokenizer = direct(library, "small", checkpoint)
    with torch.no_grad():
        images = network.encode_image(torch.stack([preprocess(p) for p in pictures]), normalize=True).numpy()
        texts = network.encode_text(tokenizer(TEXTS), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_images(pictures), images, atol=1e-6)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), texts, atol=1e-6)
    assert np.abs(images - images.mean(axis=0)).max() > 0.01  # the pictures differ, so the comparison can fail
    assert encoder.dimension == 16
    assert isinstance(encoder, Encoder)
    assert encoder.calibration is CLIP_PRESET


@pytest.mark.parametrize("wrapping", ["state_dict", "safetensors"])
def test_checkpoints_are_found_in_their_wrappings(
    wrapping: str,
    weights: dict[str, Any],
    encoder: OpenClipEncoder,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import torch
    from safetensors.torch import save_file

    parallel = {f"module.{key}": value for key, value in weights.items()}
    path = tmp_path / ("w.safetensors" if wrapping == "safetensors" else "w.pt")
    if wrapping == "safetensors":
        save_file({key: value.contiguous() for key, value in weights.items()}, path)
    else:
        torch.save({"epoch": 5, "name": "negclip", "state_dict": parallel, "optimizer": {"state": {}}}, path)
    loaded = encoder_of("small", checkpoint=path, device="cpu")
    assert "initialized randomly" not in caplog.text
    np.testing.assert_array_equal(loaded.encode_texts(TEXTS), encoder.encode_texts(TEXTS))
    assert loaded.encoder_id == encoder.encoder_id


def test_files_that_are_no_checkpoints_are_refused(
    weights: dict[str, Any], library: ModuleType, checkpoint: Path, tmp_path: Path
) -> None:
    import torch

    run = tmp_path / "run"

    class Code:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (run,)

    torch.save({"state_dict": {**weights, "x": Code()}}, tmp_path / "code.pt")
    torch.save({**weights, "head.weight": torch.zeros(2)}, tmp_path / "head.weight.pt")
    torch.save({key: value for key, value in weights.items() if key != "visual.proj"}, tmp_path / "visual.proj.pt")
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "cut.pt").write_bytes(checkpoint.read_bytes()[:5000])
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(ModelFileError, match="is no checkpoint of small, is damaged, or holds Python") as caught:
            encoder_of("small", checkpoint=path)
        assert str(caught.value).count(path.stem) >= (2 if "." in path.stem else 1)  # the weight that does not fit
    assert not run.exists()
    with pytest.raises(ModelFileError, match="there is no checkpoint"):
        encoder_of("small", checkpoint=tmp_path / "absent.pt")
    with pytest.raises(ModelFileError, match="size mismatch"):
        encoder_of("small-wide", checkpoint=checkpoint)


def test_identity_follows_weights_and_activation(
    weights: dict[str, Any], encoder: OpenClipEncoder, tmp_path: Path
) -> None:
    import torch

    nudged = dict(weights)
    nudged["visual.proj"] = weights["visual.proj"] + 1e-4
    torch.save(nudged, tmp_path / "nudged.pt")
    torch.save(weights, tmp_path / "same.pt")
    other = encoder_of("small", checkpoint=tmp_path / "nudged.pt", device="cpu")
    quick = encoder_of("small-quickgelu", checkpoint=tmp_path / "same.pt", device="cpu")
    half = encoder_of("small", checkpoint=tmp_path / "same.pt", device="cpu", precision="bf16")
    assert len({encoder.encoder_id, other.encoder_id, quick.encoder_id}) == 3
    assert half.encoder_id == encoder.encoder_id
    assert encoder.encoder_id.startswith("open_clip:small@")
    assert np.abs(quick.encode_texts(TEXTS) - encoder.encode_texts(TEXTS)).max() > 1e-4


def test_neither_batches_nor_precision_change_much(
    encoder: OpenClipEncoder, checkpoint: Path, pictures: list[Image.Image]
) -> None:
    whole = encoder.encode_images(pictures)
    np.testing.assert_allclose(encoder.encode_images(iter(pictures), batch_size=2), whole, atol=1e-6)
    assert encoder.encode_images([]).shape == encoder.encode_texts([]).shape == (0, 16)
    rows = encoder_of("small", checkpoint=checkpoint, device="cpu", precision="bf16").encode_images(pictures)
    assert whole.dtype == rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert (rows * whole).sum(axis=1).min() > 0.999
    assert (rows != whole).any()


def test_openai_weights_get_quick_gelu_whichever_name_is_given(
    library: ModuleType, checkpoint: Path, encoder: OpenClipEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag of a small model, served from a local file: only the table of downloads is ours."""
    from open_clip import factory, pretrained  # type: ignore[import-untyped]

    tags = {"openai": {"url": "x", "quick_gelu": True}, "laion": {"url": "x"}}
    monkeypatch.setitem(pretrained._PRETRAINED, "small", tags)
    monkeypatch.setitem(pretrained._PRETRAINED, "small-quickgelu", {"openai": tags["openai"]})
    monkeypatch.setattr(factory, "download_pretrained", lambda *args, **kwargs: str(checkpoint))
    explicit = encoder_of("small-quickgelu", checkpoint=checkpoint, device="cpu")
    for name in ("small", "small-quickgelu"):
        loaded = encoder_of(name, pretrained="openai", device="cpu")
        assert loaded.name == "small-quickgelu"
        assert loaded.encoder_id == explicit.encoder_id
        np.testing.assert_array_equal(loaded.encode_texts(TEXTS), explicit.encode_texts(TEXTS))
    plain = encoder_of("small", pretrained="laion", device="cpu")
    np.testing.assert_array_equal(plain.encode_texts(TEXTS), encoder.encode_texts(TEXTS))
    with pytest.raises(UnknownEncoder, match="plain GELU: use small, not small-quickgelu"):
        encoder_of("small-quickgelu", pretrained="laion")
    with pytest.raises(UnknownEncoder, match="no weights 'webli' for small; it has openai, laion"):
        encoder_of("small", pretrained="webli")


def write_siglip_folder(folder: Path, library: ModuleType, *, vocabulary: int) -> None:
    """A model folder as SigLIP 2's: sigmoid bias, Gemma-sized vocabulary, a case-sensitive tokenizer of its own."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {w: n for n, w in enumerate(["<pad>", "<unk>", "a", "red", "Red", "umbrella", "UMBRELLA", "dog"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>").save_pretrained(folder)
    config = small_config(vocabulary=vocabulary, custom_text=True, init_logit_bias=-10)
    config["text_cfg"] |= {"hf_tokenizer_name": "own", "no_causal_mask": True, "pool_type": "last", "width": 8}
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config}))
    torch.manual_seed(1)
    copy = json.loads(json.dumps(config))
    copy.pop("custom_text")
    model = library.CustomTextCLIP(**copy)
    torch.save(model.state_dict(), folder / "open_clip_pytorch_model.bin")


@pytest.mark.parametrize(("vocabulary", "preset"), [(256_000, SIGLIP2_PRESET), (32_000, None)])
def test_a_siglip_folder_gets_lower_case_text_and_only_the_second_a_preset(
    vocabulary: int, preset: object, library: ModuleType, tmp_path: Path
) -> None:
    import torch

    write_siglip_folder(tmp_path, library, vocabulary=vocabulary)
    name = f"local-dir:{tmp_path}"
    encoder = encoder_of(name, device="cpu")
    assert encoder.calibration is preset
    network, _, tokenizer = direct(library, name)
    with torch.no_grad():
        lower, upper = network.encode_text(tokenizer(["a red umbrella", "a Red UMBRELLA"]), normalize=True).numpy()
    assert np.abs(lower - upper).max() > 1e-3
    np.testing.assert_allclose(encoder.encode_texts(["a Red UMBRELLA"])[0], lower, atol=1e-6)
    (tmp_path / "open_clip_pytorch_model.bin").unlink()
    with pytest.raises(ModelFileError, match="cannot load local-dir"):
        encoder_of(name)


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        ("ViT-B32", {"pretrained": "openai"}, UnknownEncoder, "no model 'ViT-B32'; did you mean ViT-B-32"),
        ("ViT-B-32", {}, InvalidOption, r"name the weights of ViT-B-32: either pretrained \(one of openai, "),
        ("small", {"pretrained": "openai", "checkpoint": "w.pt"}, InvalidOption, "either pretrained"),
        ("hf-hub:timm/ViT-B-32-SigLIP2-256", {"checkpoint": "w.pt"}, InvalidOption, "brings its own weights"),
        ("small", {"checkpoint": "w.pt", "precision": "int4"}, InvalidOption, "unknown precision 'int4'"),
        ("small", {"checkpoint": "w.pt", "device": "gpu"}, InvalidOption, "device 'gpu'"),
    ],
)
def test_unknown_models_and_bad_options_say_what_to_do(
    model: str, options: dict[str, Any], error: type[Exception], message: str, library: ModuleType
) -> None:
    with pytest.raises(error, match=message):
        encoder_of(model, **options)


def test_a_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['open_clip'] = None; import lcse_plugins.encoders.open_clip"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "lcse-plugins[open-clip]"' in done.stderr


def test_a_pickled_one_works_and_refuses_what_is_no_list(encoder: OpenClipEncoder, pictures: list[Image.Image]) -> None:
    twin = pickle.loads(pickle.dumps(encoder))
    assert twin.encoder_id == encoder.encoder_id
    np.testing.assert_array_equal(twin.encode_images(pictures), encoder.encode_images(pictures))
    refuses_what_is_no_list(twin)
