"""Every skip has a class: what real reasons look like, and that no reason can hold the hub up."""

import time

import pytest

from apps.results.skips import (
    MEANINGS,
    PATTERNS,
    DisabledBy,
    Pattern,
    SkipClass,
    classify,
    disabled_by,
)

ISSUE = "https://github.com/pytorch/pytorch/issues/81732"
DISABLED = f"Test is disabled because an issue exists disabling it: {ISSUE}"

REASONS = {
    SkipClass.WRONG_DEVICE: [
        "Only runs on cuda",
        "Only runs on cpu",
        "Only runs on ['cuda', 'xpu']",
        "Only runs on mps",
        "onlyNativeDeviceTypes: doesn't run on npu",
        "onlyNativeDeviceTypesAnd(['hpu']): doesn't run on privateuse1",
        "onlyOn: skipped, Only runs on cuda",
        "doesn't run on meta",
        "Skipped on meta",
        "Skipping for cuda",
        "CPU only",
        "test only for CUDA",
        "Only supported on CPU",
        "Not for this device",
    ],
    SkipClass.ELSEWHERE: [
        "requires CUDA",
        "Requires cuda",
        "CUDA not found",
        "CUDA is not available",
        "no CUDA",
        "CUDA unavailable",
        "XPU not available",
        "no cuDNN",
        "cuDNN not available",
        "cuSPARSELt is not available",
        "MIOpen is not available",
        "ROCm-only",
        "c10d was not compiled with the NCCL backend",
        "Test requires NCCL to be available",
        "Requires SM90",
        "Requires compute capability 8.0",
        "no MAGMA library detected",
        "requires nvshmem",
        "MPS not available",
        "Need H100 or newer",
        "Requires Intel GPU",
    ],
    SkipClass.UNSUPPORTED: [
        "not supported on privateuse1",
        "Device does not support bfloat16",
        "complex128 is not supported",
        "Sparse CSR is unsupported",
        "aten::_foo not implemented for NPU",
        "NotImplementedError: Could not run 'aten::nonzero_static'",
        "Backend doesn't support double precision tensors",
        "No float64 support",
        "IPC is not implemented yet",
        "kernel cannot handle empty tensors",
        "Graph capture unsupported",
        "lacks of fp8 kernels",
        "No kernel for int16",
        "op is not registered",
        "torch.compile is not yet supported for Python generators",
        "Peer access is not enabled",
    ],
    SkipClass.MISSING_DEPENDENCY: [
        "requires triton",
        "Requires Triton",
        "No module named 'torchvision'",
        "could not import 'onnxruntime': No module named 'onnxruntime'",
        "scipy not found",
        "Scipy required",
        "no numpy",
        "PyTorch was built without MKL support",
        "PyTorch compiled without Lapack",
        "MKL not available",
        "numba not available",
        "Missing dependency: onnxruntime",
        "test requires lark",
        "torch.distributed not available, skipping tests",
        "Gloo is not available",
        "No C++ compiler",
        "dill is not found or not correct version, package required",
        "tensorboard is not installed",
        "Quantization requires FBGEMM. FBGEMM is only optimized for CPUs",
        "PyTorch is not built with kineto",
    ],
    SkipClass.TOO_SLOW: [
        "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test",
        "too slow",
        "Too slow on NPU",
        "Takes too long to run on this backend",
        "Timeout on CI",
        "very slow on CUDA",
        "slow test",
    ],
    SkipClass.DISABLED: [
        f"{DISABLED} for allplatform(s) . If you're seeing this on your local machine",
        f"{DISABLED} for platform(s) linux, rocm. If you're seeing this on your local machine",
        f"disabled by issue {ISSUE}",
    ],
    SkipClass.ENVIRONMENT: [
        "Requires at least 2 GPUs",
        "Need at least 4 devices",
        "Test requires 8 ranks",
        "multi-GPU not supported",
        "multi-device test",
        "Insufficient memory",
        "Not enough GPU memory",
        "Insufficient cuda:0 memory",
        "Requires 20 GB of memory",
        "Not supported on Windows",
        "Windows doesn't support forking",
        "linux only",
        "requires python 3.12",
        "Python 3.13+ only",
        "test skipped under ASAN",
        "test is fast; we disabled it with PYTORCH_TEST_SKIP_FAST",
        "fbcode",
        "Only runs in CI",
        "Requires network access",
        "world size 2 not available",
        "skipped with dynamo",
    ],
    SkipClass.KNOWN_FAILURE: [
        "Fails on NPU: wrong strides",
        "known failure",
        "expectedFailure",
        "Known issue, waiting for the driver",
        "Flaky on this backend",
        "Segfaults in the driver",
        "Hangs in allreduce",
        "broken since 2.9",
        f"See {ISSUE}",
        "https://github.com/acme/torch/issues/12",
        "accuracy mismatch on npu",
        "gradcheck fails",
        "Precision error in fp16",
        "Doesn't work with fp8 yet",
        "needs investigation",
        "#45821",
        "Internal assert in autograd",
    ],
    SkipClass.UNEXPLAINED: [
        "Skipped!",
        "",
        "skip",
        "skipped",
        "Unconditional skip",
        "unconditional skip",
        "TODO",
        "no reason given",
        "N/A",
        "temporarily",
        "later",
        "?",
        "\n \t",
    ],
}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [(reason, skip_class) for skip_class, reasons in REASONS.items() for reason in reasons],
)
def test_reasons_as_reports_write_them(reason: str, expected: SkipClass) -> None:
    assert classify(reason) == expected


def test_there_are_reasons_of_every_class() -> None:
    assert set(REASONS) == set(SkipClass) == set(MEANINGS)
    assert {row.skip_class for row in PATTERNS} | {SkipClass.UNEXPLAINED} == set(SkipClass)


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row.skip_class)
def test_the_examples_of_the_table(row: Pattern) -> None:
    assert row.examples
    assert {example: classify(example) for example in row.examples} == dict.fromkeys(row.examples, row.skip_class)


def test_a_reason_has_one_class_however_often_it_comes() -> None:
    messages = ["Skipped!", "requires CUDA", "Skipped!", "requires CUDA"]
    assert {each: classify(each) for each in messages} == {
        "Skipped!": SkipClass.UNEXPLAINED,
        "requires CUDA": SkipClass.ELSEWHERE,
    }


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"{DISABLED} for allplatform(s) . If you're seeing", DisabledBy(ISSUE, ())),
        (f"{DISABLED} for platform(s) linux, rocm. If you're", DisabledBy(ISSUE, ("linux", "rocm"))),
        (f"{DISABLED} for all platform(s)", DisabledBy(ISSUE, ())),
        (f"{DISABLED} for platform(s) win, mac-arm", DisabledBy(ISSUE, ("win", "mac-arm"))),
        (f"{DISABLED}", DisabledBy(ISSUE, ())),
        ("Test is disabled because an issue exists disabling it: javascript:alert(1)", None),
        ("", None),
    ],
)
def test_the_issue_that_switched_it_off(message: str, expected: DisabledBy | None) -> None:
    assert disabled_by(message) == expected


# What would make a careless pattern look again from every place.
HOSTILE = [
    "requires ",
    "no ",
    "cuda ",
    "issues/",
    "a",
    " ",
    "not ",
    "only runs ",
    "for platform(s) ",
    "x" * 24 + " need ",
]


def seconds(row: Pattern, text: str) -> float:
    """The least processor time of several looks."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        row.pattern.search(text)
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row.skip_class)
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_pattern_takes_more_than_linear_time(row: Pattern, piece: str) -> None:
    """Eight times the text: eight times the time where it is linear, 64 times where it is quadratic."""
    small, large = piece * (4_000 // len(piece)), piece * (32_000 // len(piece))
    assert seconds(row, large) < 24 * max(seconds(row, small), 5e-5)


@pytest.mark.parametrize("piece", HOSTILE)
def test_of_a_reason_of_a_megabyte_only_the_beginning_is_looked_at(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert classify("Only runs on cuda " + text) == SkipClass.WRONG_DEVICE
    assert classify(" " * 1_000 + "Only runs on cuda") == SkipClass.UNEXPLAINED
    assert classify(text) == classify(text[:1_000])
