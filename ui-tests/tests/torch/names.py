#!/usr/bin/env python3
"""Prints the names that docs/OPERATIONS.md must have, as they are in names.txt: the functions of `torch.nn.functional` and the
methods of `torch.Tensor`, without those that write in place.

    pip download --no-deps --only-binary=:all: torch==2.11.0
    python3 names.py torch-2.11.0-*.whl > names.txt

It reads the wheel as text, so that PyTorch need not be installed; the wheel of any platform will do.
"""

import re
import sys
import zipfile

# Helpers of the module, which nobody calls.
NOT_OPERATIONS = {"assert_int_or_pair", "wrapped"}


def functions(source):
    defined = re.findall(r"^def ([a-z]\w*)\(", source, re.M)
    assigned = re.findall(r"^([a-z]\w*) = ", source, re.M)
    return {name for name in defined + assigned if not name.endswith("_with_indices")}


def methods(source):
    return set(re.findall(r"^    def ([a-z]\w*)\(", source, re.M))


def main():
    wheel = zipfile.ZipFile(sys.argv[1])

    def read(path):
        return wheel.read(path).decode()

    stub = read("torch/_C/__init__.pyi")
    base = re.search(r"^class TensorBase.*?(?=^class )", stub, re.M | re.S).group()
    names = functions(read("torch/nn/functional.py")) | methods(base) | methods(read("torch/_tensor.py"))
    for name in sorted(names - NOT_OPERATIONS):
        if not name.endswith("_"):
            print(name)


main()
