"""From torch towers to the files that ship: export, weight-only int8, static int8 for the convolutions."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import Tensor, nn

OPSET = 17
SMALLEST = 20_000
"""Weights with fewer numbers than this stay float."""


def export(module: nn.Module, example: tuple[Tensor, ...], inputs: dict[str, dict[int, str]], path: Path) -> None:
    """Write a float ONNX file; `inputs` names the axes of each input that may vary."""
    buffer = io.BytesIO()
    torch.onnx.export(
        module.eval(),
        example,
        buffer,
        input_names=list(inputs),
        output_names=["embedding"],
        dynamic_axes={**inputs, "embedding": {0: "n"}},
        opset_version=OPSET,
        dynamo=False,
    )
    path.write_bytes(buffer.getvalue())


def store_weights_as_int8(source: Path, target: Path) -> None:
    """Keep large matrices as int8 and one scale for each output channel (for each row of a token table).

    They become float again by Cast and Mul, which onnxruntime folds when it opens the file: the arithmetic is float32,
    so a vector does not depend on what else is in its batch, and no weight is converted twice.
    """
    model = onnx.load(source)
    graph = model.graph
    axis_of = {}
    for node in graph.node:
        if node.op_type == "Gather":
            axis_of[node.input[0]] = 0
        elif node.op_type == "MatMul":
            axis_of[node.input[1]] = 1
        elif node.op_type == "Gemm":
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            axis_of[node.input[1]] = 0 if transposed else 1
    for tensor in [t for t in graph.initializer if t.name in axis_of]:
        values = numpy_helper.to_array(tensor)
        if values.ndim != 2 or values.size < SMALLEST or values.dtype != np.float32:
            continue
        scale = np.abs(values).max(axis=1 - axis_of[tensor.name], keepdims=True) / 127
        scale[scale == 0] = 1.0
        small = np.rint(values / scale).astype(np.int8)
        name = tensor.name
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(small, f"{name}_int8"))
        graph.initializer.append(numpy_helper.from_array(scale.astype(np.float32), f"{name}_scale"))
        graph.node.insert(0, helper.make_node("Mul", [f"{name}_float", f"{name}_scale"], [name]))
        graph.node.insert(0, helper.make_node("Cast", [f"{name}_int8"], [f"{name}_float"], to=TensorProto.FLOAT))
    onnx.checker.check_model(model)
    onnx.save(model, target)


class _Photographs(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, pixels: Sequence[np.ndarray]) -> None:
        self._left: Iterator[np.ndarray] = iter(pixels)

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self._left, None)
        return None if image is None else {"image": image[None]}


def quantise_convolutions(source: Path, target: Path, pixels: Sequence[np.ndarray]) -> None:
    """Static int8 for every convolution and residual sum; the poolings and the head stay float.

    Args:
        source: the float image tower.
        target: the file to write.
        pixels: preprocessed photographs that show the range of each activation.
    """
    prepared = target.with_suffix(".prepared.onnx")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(target),
        _Photographs(pixels),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["Conv", "Add", "Clip"],
        nodes_to_exclude=_head_nodes(prepared),
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
    )
    model = onnx.load(target)
    _keep_products_within_16_bits(model.graph, onnx.load(prepared).graph)
    onnx.save(model, target)
    prepared.unlink()


def _head_nodes(path: Path) -> list[str]:
    """The sums after the last convolution."""
    nodes = list(onnx.load(path).graph.node)
    last = max(i for i, node in enumerate(nodes) if node.op_type == "Conv")
    return [node.name for node in nodes[last + 1 :] if node.op_type == "Add"]


def _keep_products_within_16_bits(graph: onnx.GraphProto, floats: onnx.GraphProto) -> None:
    """Quantise the weights again, so that x86 CPUs without VNNI compute what all others do.

    They multiply uint8 by int8 and add two neighbours in 16 bits, which saturate when 255 (w + w') passes 32,767. A
    channel's scale is the least that keeps both |w| ≤ 127 and the like-signed sum of each pair ≤ 128. `reduce_range`,
    which halves every weight, is safe as well but twice as coarse. Depthwise convolutions add in 32 bits.
    """
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in floats.initializer}
    stored = {tensor.name: tensor for tensor in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}

    def put(name: str, values: np.ndarray) -> None:
        stored[name].CopyFrom(numpy_helper.from_array(values, name))

    for conv in (node for node in graph.node if node.op_type == "Conv"):
        activation, weight, bias = (list(maker[name].input) for name in conv.input)
        exact = weights[weight[0].removesuffix("_quantized")]
        flat = exact.reshape(len(exact), -1)
        scale = np.abs(flat).max(1) / 127
        if exact.shape[1] > 1:
            scale = np.maximum(scale, _largest_pair_sum(exact) / 128)
        step = float(numpy_helper.to_array(stored[activation[1]]))
        offset = weights[bias[0].removesuffix("_quantized")]
        scale = np.maximum(scale, np.maximum(np.abs(offset), 1e-6) / step / 2**30)  # the bias must fit in 32 bits
        small = np.clip(np.rint(flat / scale[:, None]), -127, 127).reshape(exact.shape)
        put(weight[0], small.astype(np.int8))
        put(weight[1], scale.astype(np.float32))
        put(bias[0], np.rint(offset / (scale * step)).astype(np.int32))
        put(bias[1], (scale * step).astype(np.float32))


def _largest_pair_sum(weight: np.ndarray) -> np.ndarray:
    """Per output channel, the largest like-signed sum of neighbours; a safe bound where their layout is not known."""
    if weight.shape[2:] == (1, 1):
        channels = weight[:, :, 0, 0]
        even = np.pad(channels, ((0, 0), (0, channels.shape[1] % 2)))
        pairs = even.reshape(len(weight), -1, 2)
        up, down = np.maximum(pairs, 0).sum(2).max(1), np.maximum(-pairs, 0).sum(2).max(1)
        return np.asarray(np.maximum(up, down))
    return 2 * np.abs(weight.reshape(len(weight), -1)).max(1)
