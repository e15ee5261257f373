"""The report set that results are measured with: a full run of an accelerator, as JUnit XML on disk. Seeded: the same
arguments make the same bytes, on any machine.

    python -m bench.reports_data FOLDER [--cases 600000] [--files 1500] [--device npu] [--run 1]

Names depend on the seed alone, so that runs and devices name the same suite; outcomes and times depend on the run too.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO
from xml.sax.saxutils import quoteattr

CASES, FILES, SEED = 600_000, 1_500, 2_026
# Shares of all cases. A rerun is a test that was red first and passed when run again.
SKIPPED, FAILED, RERUN = 0.35, 0.003, 0.01
TRACE_BYTES = 4_096
# Of the times, in seconds: the median is e^mu.
TIME_MU, TIME_SIGMA = -3.2, 1.6

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "int8", "uint8", "bool", "complex64")
FOLDERS = ("", "", "", "inductor/", "dynamo/", "functorch/", "distributed/", "export/", "nn/", "distributed/tensor/")
TOPICS = (
    *("ops", "torch", "nn", "autograd", "linalg", "sparse", "reductions", "indexing", "shape", "unary", "binary"),
    *("fft", "foreach", "optim", "serialization", "quantization", "decomp", "meta", "jit", "fx", "loops", "conv"),
)
VERBS = ("forward", "backward", "out", "noncontiguous", "variant", "dtypes", "errors", "view", "inplace", "broadcast")
OPS = (
    *("add", "mul", "matmul", "conv2d", "softmax", "layer_norm", "index_put", "scatter_reduce", "cumsum", "sort"),
    *("topk", "einsum", "linalg_svd", "fft_rfft", "nn_functional_gelu", "nn_functional_interpolate", "masked_fill"),
    *("logsumexp", "_refs_clamp", "special_bessel_j0", "nonzero_static", "unique_consecutive", "pinverse", "roll"),
)
# 60 free texts, as reports write them.
REASONS = (
    *("Only runs on cuda", "Only runs on cpu", "Only runs on ['cuda', 'xpu']", "Only runs on mps", "Skipped on meta"),
    *("onlyNativeDeviceTypes: doesn't run on npu", "CPU only", "test only for CUDA", "requires CUDA", "no cuDNN"),
    *("CUDA not found", "CUDA is not available", "cuDNN not available", "MIOpen is not available", "ROCm-only"),
    *("c10d was not compiled with the NCCL backend", "Requires SM90", "Requires compute capability 8.0"),
    *("no MAGMA library detected", "XPU not available", "not supported on privateuse1", "No complex support"),
    *("Device does not support bfloat16", "complex128 is not supported", "Sparse CSR is unsupported"),
    *("aten::_foo not implemented for NPU", "Backend doesn't support double precision tensors", "No float64 support"),
    *("IPC is not implemented yet", "kernel cannot handle empty tensors", "Graph capture unsupported"),
    *("op is not registered", "requires triton", "No module named 'torchvision'", "scipy not found", "no numpy"),
    *("PyTorch was built without MKL support", "PyTorch compiled without Lapack", "numba not available"),
    *("torch.distributed not available, skipping tests", "tensorboard is not installed", "No C++ compiler"),
    *("test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test", "too slow", "Timeout on CI", "very slow on NPU"),
    *("Requires at least 2 GPUs", "Insufficient memory", "Not supported on Windows", "requires python 3.12"),
    *(
        "test skipped under ASAN",
        "test is fast; we disabled it with PYTORCH_TEST_SKIP_FAST",
        "world size 2 not available",
    ),
    *("Fails on NPU: wrong strides", "known failure", "Flaky on this backend", "Segfaults in the driver"),
    "Test is disabled because an issue exists disabling it: https://github.com/pytorch/pytorch/issues/81732 for "
    "platform(s) linux, rocm. If you're seeing this on your local machine and would like to enable this test, please "
    "make sure CI is not set and you are not using the flag --import-disabled-tests.",
    *("Skipped!", "skip", ""),
)
ERRORS = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {device}:0 and cpu!",
    "AssertionError: Tensor-likes are not close!\n\nMismatched elements: {n} / 125 (12.8%)\nGreatest absolute "
    "difference: 0.00{n} at index (0, {n}) (up to 1e-05 allowed)",
    "NotImplementedError: Could not run 'aten::index_put' with arguments from the '{device}' backend.",
    "RuntimeError: {device} error: operation not supported, at 0x7f{n}a0",
    "AssertionError: Scalars are not equal!\n\nExpected {n} but got 0.",
)


class Test(NamedTuple):
    """A test of the suite: its file, class and name without the device."""

    file: str
    class_name: str
    base: str
    dtype: str

    def written(self, device: str) -> tuple[str, str, str]:
        """File, class and name as the platform's report writes them."""
        suffix = device.upper() if device in ("cpu", "cuda", "xpu", "mps") else "PRIVATEUSE1"
        dtype = f"_{self.dtype}" if self.dtype else ""
        return self.file, f"{self.class_name}{suffix}", f"{self.base}_{device}{dtype}"


@dataclass
class Written:
    """What was written."""

    files: int = 0
    bytes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)

    def lines(self) -> Iterator[str]:
        """The set's figures, for people."""
        cases = self.outcomes.total()
        shares = ", ".join(f"{word} {count / cases:.2%}" for word, count in self.outcomes.most_common())
        yield f"{cases:,} cases in {self.files:,} files, {self.bytes / 2**20:.0f} MiB of XML"
        yield f"{shares}; {len(self.reasons)} different skip reasons"


def suite(*, cases: int = CASES, files: int = FILES, seed: int = SEED) -> Iterator[list[Test]]:
    """The suite, file by file: exactly so many cases, in files of very different sizes."""
    dice = random.Random(f"{seed}:suite")
    weights = [dice.lognormvariate(0, 1.3) for _ in range(files)]
    total, left = sum(weights), cases - files
    for number, weight in enumerate(weights):
        count = 1 + (left if number == files - 1 else min(left, int(weight / total * (cases - files))))
        left -= count - 1
        file = f"{dice.choice(FOLDERS)}test_{dice.choice(TOPICS)}_{number}.py"
        yield [_test(file, at, dice) for at in range(count)]


def _test(file: str, at: int, dice: random.Random) -> Test:
    topic = file.rpartition("test_")[2].removesuffix(".py").title().replace("_", "")
    base = f"test_{dice.choice(VERBS)}_{dice.choice(OPS)}_{at}"
    return Test(
        file, f"Test{topic}{'Common' if at % 5 else 'Gradients'}", base, "" if at % 11 == 0 else dice.choice(DTYPES)
    )


def write(
    folder: Path, *, cases: int = CASES, files: int = FILES, seed: int = SEED, device: str = "npu", run: int = 1
) -> Written:
    """Write one run's reports below `folder`, a file at a time, in the layout of upstream's test-reports."""
    dice = random.Random(f"{seed}:{device}:{run}")
    written = Written()
    for tests in suite(cases=cases, files=files, seed=seed):
        module = tests[0].file.removesuffix(".py").replace("/", ".")
        path = folder / "test-reports" / "python-pytest" / module / f"{module}-{dice.getrandbits(64):016x}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as out:
            out.write('<?xml version="1.0" encoding="utf-8"?><testsuites>')
            out.write(
                f'<testsuite name="pytest" tests="{len(tests)}" hostname="bench" timestamp="2026-11-01T00:00:00">'
            )
            for test in tests:
                _case(out, test, device, dice, written)
            out.write("</testsuite></testsuites>\n")
        written.files += 1
        written.bytes += path.stat().st_size
    return written


def _case(out: TextIO, test: Test, device: str, dice: random.Random, written: Written) -> None:
    file, class_name, name = test.written(device)
    seconds = dice.lognormvariate(TIME_MU, TIME_SIGMA)
    out.write(f'<testcase classname="{class_name}" name="{name}" time="{seconds:.3f}" file="{file}"')
    roll = dice.random()
    if roll < SKIPPED:
        # The first reasons are the frequent ones, as in life.
        reason = REASONS[
            min(int(dice.expovariate(0.08)), len(REASONS) - 1) if dice.random() < 0.9 else dice.randrange(len(REASONS))
        ]
        written.reasons.add(reason)
        written.outcomes["skipped"] += 1
        out.write(f'><skipped type="pytest.skip" message={quoteattr(reason)}>{file}:1: skip</skipped></testcase>')
    elif roll < SKIPPED + FAILED:
        written.outcomes["failed"] += 1
        out.write(f">{_failure('failure', file, device, dice)}</testcase>")
    elif roll < SKIPPED + FAILED + RERUN:
        written.outcomes["rerun, then passed"] += 1
        out.write(f">{_failure('rerun', file, device, dice)}</testcase>")
    else:
        written.outcomes["passed"] += 1
        out.write(" />")


def _failure(element: str, file: str, device: str, dice: random.Random) -> str:
    message = dice.choice(ERRORS).format(device=device, n=dice.randrange(10, 99))
    size = TRACE_BYTES if element == "failure" else 300
    frame = f"torch/testing/_internal/common_utils.py:{dice.randrange(100, 4_000)}: in wrapper\n    method(*args)\n"
    trace = (
        f"{file}:{dice.randrange(10, 900)}: in test\n"
        + frame * (size // len(frame))
        + f"torch/_ops.py:1158: in __call__\nE   {message}"
    )
    # The traces hold nothing that XML would want escaped but quotes in messages.
    return f"<{element} message={quoteattr(message)}>{trace.replace('&', '&amp;').replace('<', '&lt;')}</{element}>"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    for option, default in (("cases", CASES), ("files", FILES), ("seed", SEED), ("run", 1)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--device", default="npu")
    given = vars(parser.parse_args())
    print("\n".join(write(given.pop("folder"), **given).lines()))
