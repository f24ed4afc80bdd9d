"""Writes a GGUF file again, with every matrix in another format.

python3 examples/benches/quantize.py FROM.gguf TO.gguf F32|Q8_0|Q4_0|Q4_1|Q5_0|Q5_1

Needs the packages gguf and numpy. Matrices are dequantised and quantised again by gguf's own functions; vectors stay in f32, and
metadata are copied. examples/benches/speed.py measures several programs on the files.
"""

import sys

from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, quants


def main(source, target, name):
    format = GGMLQuantizationType[name]
    file_type = LlamaFileType.ALL_F32 if name == "F32" else LlamaFileType[f"MOSTLY_{name}"]
    reader = GGUFReader(source)
    writer = GGUFWriter(target, reader.get_field("general.architecture").contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        value = file_type if field.name == "general.file_type" else field.contents()
        sub_type = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, field.types[0], sub_type)
    for tensor in reader.tensors:
        values = quants.dequantize(tensor.data, tensor.tensor_type)
        if len(tensor.shape) == 1 or name == "F32":
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, quants.quantize(values, format), raw_dtype=format)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
