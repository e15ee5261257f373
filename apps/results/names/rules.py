"""How a test's name, as a report writes it, becomes one identity on every platform: the words, and the rules.

Source: how PyTorch instantiates device-generic tests (`TestFoo` → `TestFooCUDA`, `test_x` → `test_x_cuda_float32`), and
how unittest and pytest spell one class. Where a rule would be a guess, the name stays as it is written.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

PLACEHOLDER = "<device>"
# The class suffix of every backend outside PyTorch's tree, whatever the backend is called.
PRIVATE = "privateuse1"
# Devices of PyTorch's own tree. Each brings its own word only: a CUDA job also runs the CPU's tests, and those are the
# CPU's.
IN_TREE = frozenset({"cpu", "cuda", "hpu", "ipu", "lazy", "meta", "mps", "mtia", "xla", "xpu"})

# What may follow the device in a method's name.
DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "bfloat16", "complex32", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    *("qint8", "qint32", "quint8", "quint4x2", "quint2x4"),
)
# Folders from which upstream's tests are run: what stands before the file is the machine's, not the test's.
ROOTS = ("/pytorch/test/", "/workspace/test/")
RELATIVE_ROOTS = ("./", "test/")
# pytest's and upstream's pattern of a test file.
MODULE = re.compile(r"test_\w*|\w+_test")


def words_of(device: str) -> frozenset[str]:
    """The words that a platform's tests carry: of one outside the tree its declared device and PrivateUse1's."""
    word = device.strip().lower()
    if not word:
        return frozenset({PRIVATE})
    return frozenset({word}) if word in IN_TREE else frozenset({word, PRIVATE})


def class_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """A class with the device at its end; what stays must name more than `Test`."""
    device = _either(word.upper() for word in words)
    return re.compile(rf"(?!Tests?(?:{device})\Z)(.+?)({device})", re.DOTALL)


def _either(words: Iterable[str]) -> str:
    # The longest first: `float8_e4m3fnuz` is not `float8_e4m3fn` with something behind it.
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


# What follows the device in a method's name, and what its name must not come down to without it.
TAIL = re.compile(rf"(?:_(?:{_either(DTYPES)}))*+")
NOTHING_NAMED = "test"


@dataclass(frozen=True)
class Rule:
    """One rule. `examples`: (device, file, class, name as written) → (file, class, name of the identity)."""

    what: str
    examples: tuple[tuple[tuple[str, str, str, str], tuple[str, str, str]], ...]


RULES: tuple[Rule, ...] = (
    Rule(
        "The device is taken off the end of a class: the platform's own word in capitals, or PRIVATEUSE1. What stays "
        "must name more than `Test`.",
        (
            (("cuda", "test_ops.py", "TestCommonCUDA", "test_out"), ("test_ops", "TestCommon", "test_out")),
            (("npu", "test_ops.py", "TestCommonPRIVATEUSE1", "test_out"), ("test_ops", "TestCommon", "test_out")),
            (("npu", "test_ops.py", "TestCommonCUDA", "test_out"), ("test_ops", "TestCommonCUDA", "test_out")),
            (("cuda", "test_cuda.py", "TestCudaMultiGPU", "test_x"), ("test_cuda", "TestCudaMultiGPU", "test_x")),
            (("mps", "test_mps.py", "TestMPS", "test_x"), ("test_mps", "TestMPS", "test_x")),
        ),
    ),
    Rule(
        "The device is taken off the end of a method, where only dtypes may follow it. In the middle of a name it "
        "stays, and what stays must name more than `test`.",
        (
            (("npu", "test_t.py", "TestT", "test_exp_npu_float32"), ("test_t", "TestT", "test_exp_<device>_float32")),
            (("npu", "test_t.py", "TestT", "test_exp_npu"), ("test_t", "TestT", "test_exp_<device>")),
            (
                ("xpu", "test_t.py", "TestT", "test_to_xpu_float8_e4m3fn_complex64"),
                ("test_t", "TestT", "test_to_<device>_float8_e4m3fn_complex64"),
            ),
            (("npu", "test_t.py", "TestT", "test_x_privateuse1"), ("test_t", "TestT", "test_x_<device>")),
            (("npu", "test_t.py", "TestT", "test_x_cpu"), ("test_t", "TestT", "test_x_cpu")),
            (("cuda", "test_t.py", "TestT", "test_cuda_graph"), ("test_t", "TestT", "test_cuda_graph")),
            (("cuda", "test_t.py", "TestT", "test_cuda"), ("test_t", "TestT", "test_cuda")),
        ),
    ),
    Rule(
        "A file is named without `.py`, with `/` between its folders, from upstream's test folder on. Folders stay.",
        (
            (("npu", "test/test_ops.py", "TestX", "test_a"), ("test_ops", "TestX", "test_a")),
            (("npu", "functorch/test_ops.py", "TestX", "test_a"), ("functorch/test_ops", "TestX", "test_a")),
            (("npu", "inductor\\test_x.py", "TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (("npu", "inductor.test_x", "TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (
                ("npu", "/var/lib/jenkins/workspace/test/inductor/test_x.py", "TestX", "test_a"),
                ("inductor/test_x", "TestX", "test_a"),
            ),
            (
                ("npu", "torch_npu/test/test_ops.py", "TestX", "test_a"),
                ("torch_npu/test/test_ops", "TestX", "test_a"),
            ),
        ),
    ),
    Rule(
        "A module before the class says the file, or agrees with it and goes; `__main__.` goes. Of two that agree the "
        "one with more folders is taken. Where module and file disagree, the class stays as it is written.",
        (
            (("npu", "", "test_mod.TestX", "test_a"), ("test_mod", "TestX", "test_a")),
            (("npu", "inductor/test_x.py", "TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (("npu", "inductor/test_x.py", "__main__.TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (("npu", "", "test.inductor.test_x.TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (("npu", "test_x.py", "inductor.test_x.TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (("npu", "inductor/test_x.py", "test_x.TestX", "test_a"), ("inductor/test_x", "TestX", "test_a")),
            (("npu", "", "inductor.test_x", "test_a"), ("inductor/test_x", "", "test_a")),
            (("npu", "test_y.py", "test_x.TestX", "test_a"), ("test_y", "test_x.TestX", "test_a")),
            (("npu", "", "TestX", "test_a"), ("", "TestX", "test_a")),
        ),
    ),
)
