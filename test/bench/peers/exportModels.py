"""Exports a Hugging Face folder for a peer: exportModels.py openvino|transformers MODEL TARGET.

openvino: int8 weights by optimum-intel, like those of its users.
transformers: ONNX by optimum with past keys and values, then dynamic quantisation to int8 by onnxruntime. This is what
`dtype: 'q8'` of transformers.js loads.
"""

import json
import os
import sys
import tempfile


def export_openvino(model, target):
    from optimum.commands.optimum_cli import main

    # The library's own main_export accepts a quantisation but still writes 16-bit weights.
    sys.argv[1:] = ["export", "openvino", "--model", model, "--task", "text-generation-with-past", "--weight-format", "int8", "--disable-convert-tokenizer", target]
    main()


def export_transformers(model, target):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from optimum.exporters.onnx import main_export

    with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as work:
        main_export(model, work, task="text-generation-with-past", do_validation=False)
        quantised = os.path.join(work, "quantised.onnx")
        quantize_dynamic(os.path.join(work, "model.onnx"), quantised, weight_type=QuantType.QInt8, use_external_data_format=True, extra_options={"MatMulConstBOnly": True})
        os.makedirs(os.path.join(target, "onnx"))
        # Saves one file if it fits, because transformers.js expects one by default.
        onnx.save(onnx.load(quantised), os.path.join(target, "onnx", "model_quantized.onnx"))
        with open(os.path.join(work, "config.json")) as file:
            config = json.load(file)
    # Benchmarks generate a given number of tokens, so no token may end the text.
    config["eos_token_id"] = None
    with open(os.path.join(target, "config.json"), "w") as file:
        json.dump(config, file)


if __name__ == "__main__":
    what, model, target = sys.argv[1:]
    {"openvino": export_openvino, "transformers": export_transformers}[what](os.path.abspath(model), os.path.abspath(target))
