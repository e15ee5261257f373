"""Why a test was skipped: the message as the report writes it → one class. Pure; a changed table re-classifies "
"what is
stored, since only messages are.

The first pattern that fits decides, so what is more special stands higher. Patterns look only for short runs of text:
none can take more than linear time, whatever a report writes. docs/names-and-skips.md prints the table, ambiguous cases
included.
"""

import enum
import re
from dataclasses import dataclass


class SkipClass(enum.StrEnum):
    WRONG_DEVICE = "wrong_device"
    ELSEWHERE = "elsewhere"
    UNSUPPORTED = "unsupported"
    MISSING_DEPENDENCY = "missing_dependency"
    TOO_SLOW = "too_slow"
    DISABLED = "disabled"
    ENVIRONMENT = "environment"
    KNOWN_FAILURE = "known_failure"
    UNEXPLAINED = "unexplained"


MEANINGS: dict[SkipClass, str] = {
    SkipClass.WRONG_DEVICE: "by design this instance is for another device; its own platform runs it",
    SkipClass.ELSEWHERE: "needs another vendor's hardware or library: the test is that accelerator's own",
    SkipClass.UNSUPPORTED: "the platform lacks the feature",
    SkipClass.MISSING_DEPENDENCY: "a package or build option is missing on this machine",
    SkipClass.TOO_SLOW: "left out for its time",
    SkipClass.DISABLED: "switched off by an issue, for the platforms it names",
    SkipClass.ENVIRONMENT: "this machine, system, Python or kind of run is not the one it needs",
    SkipClass.KNOWN_FAILURE: "it fails here, is known to, and is not repaired",
    SkipClass.UNEXPLAINED: "no reason, or none that says why",
}

# How much of a message is looked at: reasons are sentences, and the reason stands at their beginning.
LOOKED_AT = 1_000


@dataclass(frozen=True)
class Pattern:
    """One row. `why` says what decides where a message could be read in two ways."""

    skip_class: SkipClass
    pattern: re.Pattern[str]
    examples: tuple[str, ...]
    why: str = ""


def _row(skip_class: SkipClass, pattern: str, *examples: str, why: str = "") -> Pattern:
    return Pattern(skip_class, re.compile(pattern, re.IGNORECASE), examples, why)


_DEVICE = r"(?:cpu|cuda|xpu|mps|hpu|mtia|xla|meta|lazy|gpu|privateuse1|native device types?|accelerators?)"
_VENDOR = (
    r"(?:cuda|rocm|hip|cudnn|cublas\w{0,6}|cusparse\w{0,4}|cusolver|cufft|cutlass|nccl|rccl|miopen|hipblas\w{0,4}|"
    r"nvshmem|nvml|nvrtc|nvtx|cupti|tensorrt|magma|xpu|mps|metal|hpu|mtia|tpu|xla|xccl|oneccl|sm_?\d{2}|a100|"
    r"h100|b200|"
    r"ampere|hopper|blackwell|nvidia|amd gpu|intel gpu|mi\d{3})"
)
_PACKAGE = (
    r"(?:triton|numpy|scipy|numba|torchvision|torchaudio|pandas|pillow|pil|matplotlib|networkx|sympy|hypothesis|"
    r"expecttest|"
    r"onnx\w{0,10}|tensorboard|transformers|timm|psutil|dill|cffi|opt_?einsum|lark|tabulate|z3|fbgemm|qnnpack|"
    r"xnnpack|mkl\w{0,4}|"
    r"lapack|openmp|openblas|gloo|mpi|ucc|kineto|jax|librosa|boto3|yaml|protobuf|ninja|gcc|g\+\+|clang|"
    r"c\+\+ compiler|llvm|"
    r"vulkan|distributed|c10d|flash.?attn|pybind11?|torchrec|torchao|pydot|pytest\w{0,12}|cmake|ffmpeg|libtorch)"
)

PATTERNS: tuple[Pattern, ...] = (
    _row(
        SkipClass.DISABLED,
        r"test is disabled because an issue exists disabling it|\bdisabled (?:by|in|due to|"
        r"because of) (?:an )?issue\b",
        "Test is disabled because an issue exists disabling it: https://github.com/pytorch/pytorch/issues/81732 for "
        "platform(s) linux, rocm. If you're seeing this on your local machine …",
        "disabled by issue https://github.com/pytorch/pytorch/issues/5",
    ),
    _row(
        SkipClass.TOO_SLOW,
        r"\b(?:too|very|really|extremely) slow\b|\btest is slow\b|\bslow(?: test| on|;|$)|"
        r"PYTORCH_TEST_WITH_SLOW|\btakes? "
        r"(?:too|very) long\b|\btimes? ?out\b|\btimed out\b|\btoo (?:long|expensive|many samples)\b|"
        r"\btoo large to run\b",
        "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test",
        "Takes too long to run on this backend",
        "Timeout on CI",
        why="Slowness decides before the device that is named with it.",
    ),
    _row(
        SkipClass.WRONG_DEVICE,
        r"\bonly(?: meant| intended)? (?:runs?|tested|for)(?: on)?:? \[?['\"]?" + _DEVICE + r"\b|\bonly runs on\b|"
        r"\bonly(?:cpu|cuda|xpu|mps|on|native\w{0,20}|accelerator)\b|"
        r"\bdoes(?:n't| not) run on\b|\b"
        + _DEVICE
        + r"[- ]only (?:test|case)\b|\bnot (?:meant|intended) for this device\b|"
        r"\bskipp?(?:ed|ing)?(?: test)? (?:on|for) " + _DEVICE + r"\W*$",
        "Only runs on cuda",
        "Only runs on ['cuda', 'xpu']",
        "onlyNativeDeviceTypes: doesn't run on npu",
        "CPU-only test",
        "Skipped on meta",
        why="“Only runs on …” is what upstream's device decorators write: the same test exists for the other device. "
        "“requires …” is a test of that accelerator itself (elsewhere).",
    ),
    _row(
        SkipClass.KNOWN_FAILURE,
        r"\bknown (?:to fail|failure|issue|bug|problem)\b|\bx?fail(?:s|ing|ed)?\b(?! to import)|"
        r"\bexpected ?failure\b|"
        r"\bflaky\b|\bbroken\b|\bbugs?\b|\bcrash(?:es|ed|ing)?\b|\bsegfaults?\b|\bhangs?\b|\bdeadlocks?\b|"
        r"\bincorrect\b|"
        r"\bwrong (?:results?|values?|output)\b|\bnumerical(?:ly)? (?:mismatch|error|unstable|issues?)\b|"
        r"\bprecision (?:error|loss|issue|problem)s?\b|\b(?:low|lower|loss of|insufficient) precision\b|"
        r"\baccuracy\b|\btolerance\b|\bmismatch\b|\bregression\b|\binternal assert\b|\b(?:does(?:n't| not)|"
        r"not) work(?:ing)?\b|"
        r"\bissues/\d|(?<!\w)#\d{3}|\bsee (?:issue|gh-?\d)|\bneeds? (?:fix|to be fixed|investigation)\b|"
        r"\bto be fixed\b",
        "Fails on NPU: wrong strides",
        "known failure, see https://github.com/acme/torch/issues/12",
        "Flaky on this backend",
        "Segfaults in the driver",
        "Doesn't work with fp8 yet",
        why="Whoever writes that it fails, crashes or is wrong says more than the device or feature that is "
        "named with it. An "
        "issue that is only linked counts as one that is open.",
    ),
    _row(
        SkipClass.ENVIRONMENT,
        r"\b(?:at least |>=? ?|needs? |requires? |fewer than |less than |only )(?:\d{1,3}|two|three|four|eight|"
        r"multiple|multi) ?\+?"
        r"(?:\w{1,8} )?(?:gpus?|devices?|cards?|ranks?|process(?:es)?|nodes?|cores?)\b|"
        r"\bmulti(?:ple)?[- ]?(?:gpus?|devices?|nodes?)\b|"
        r"\bworld.?size\b|\bnot enough\b|\binsufficient\b|\bout of memory\b|\boom\b|"
        r"\bmemory\b.{0,30}\b(?:required|available)\b|"
        r"\b(?:requires?|needs?)\b.{0,30}\b(?:gb|mb|gib)\b|"
        r"\b(?:windows|macos|mac os|darwin|linux|arm64|aarch64|s390x|ppc64le|x86|fbcode|sandcastle|internal|ci)\b|"
        r"\bpython ?(?:\d|version|>|<|=)|\b(?:py)?3\.\d{1,2}\b|\b[atu]san\b|\bsanitizers?\b|\bdebug build\b|"
        r"\bPYTORCH_TEST_\w{1,30}|\btest is fast\b|\b(?:environment|env var|variable)\b|\bnetwork\b|"
        r"\binternet\b|\bdownload\b|"
        r"\broot\b|\bpermission\b|\bcross.?ref\b|\b(?:under|with|in|for) (?:torch)?(?:dynamo|inductor)(?: mode|"
        r" config)?\W*$",
        "Requires at least 2 GPUs",
        "Only 1 devices, need world size 4",
        "Insufficient memory",
        "Not supported on Windows",
        "requires python 3.12",
        "test skipped under ASAN",
        "test is fast; we disabled it with PYTORCH_TEST_SKIP_FAST",
        why="How many devices a machine has, how much memory, which system: the run's, before the vendor that "
        "is named with it.",
    ),
    _row(
        SkipClass.ELSEWHERE,
        r"\b(?:no|needs?|requires?|only|without|missing|with|if|lacks?|for|uses?)\b.{0,24}\b" + _VENDOR + r"\b|"
        r"\b"
        + _VENDOR
        + r"\b.{0,30}\b(?:not (?:found|available|enabled|built|present|installed)|unavailable|is required|"
        r"required|only|specific|to be available|to be installed)\b|\bcompute capability\b|\b"
        + _VENDOR
        + r"-(?:only|specific)\b|"
        r"\bnot (?:compiled|built) with\b.{0,20}\b" + _VENDOR + r"\b",
        "requires CUDA",
        "CUDA is not available",
        "no cuDNN",
        "c10d was not compiled with the NCCL backend",
        "Requires compute capability 9.0",
        "Requires SM80",
        why="A test that asks for a vendor's chip or library is that accelerator's own, also where the library "
        "could be installed.",
    ),
    _row(
        SkipClass.MISSING_DEPENDENCY,
        r"\bno module named\b|\bcould not import\b|\bimport ?error\b|\bfail(?:s|ed) to import\b|\bnot installed\b|"
        r"\binstall(?:ed|ation)?\b|\b(?:not|without|wasn't) (?:been )?(?:built|compiled)\b|"
        r"\b(?:no|needs?|requires?|missing|without|lacks?|only)\b.{0,24}\b" + _PACKAGE + r"(?![\w+])|"
        r"\b" + _PACKAGE + r"(?![\w+]).{0,30}\b(?:not (?:found|available|enabled|present)|unavailable|missing|"
        r"required|"
        r"to be available)\b|\b(?:package|library|dependency|module|compiler)\b.{0,30}\b(?:not|missing|required|"
        r"unavailable)\b|"
        r"\b(?:missing|requires?)\b.{0,20}\b(?:package|library|dependency|module|compiler)\b",
        "requires triton",
        "No module named 'torchvision'",
        "PyTorch was built without MKL support",
        "scipy not found",
        "Missing dependency: onnxruntime",
    ),
    _row(
        SkipClass.UNSUPPORTED,
        r"\b(?:not|isn't|aren't|un|never) ?(?:yet )?(?:be )?(?:currently )?(?:fully )?(?:supported|"
        r"implemented)\b|\bno(?:t)? support\b|"
        r"\b(?:does|do|did|can)(?:n't| not|not) (?:yet |currently )?(?:support|have|handle|implement|allow|"
        r"accept|expose)\b|"
        r"\black(?:s|ing)?(?: of)? \w|\bmissing (?:kernel|support|operator|op|feature|implementation)\b|"
        r"\bnotimplemented\w{0,5}|"
        r"\bunimplemented\b|\bno (?:kernel|implementation|operator|\w{1,12} support)\b|\bno(?:t|"
        r"n)? \w{0,20} ?(?:dtypes?)\b|"
        r"\bnot (?:available|enabled|registered|ready|applicable|allowed|possible)\b|\bunavailable\b|"
        r"\brequires? \w{1,20} (?:support|dtype)\b|\bsupport (?:is )?(?:missing|pending|planned|coming)\b|"
        r"\bwithout \w{1,20} support\b",
        "not supported on privateuse1",
        "Device does not support bfloat16",
        "aten::_foo not implemented for NPU",
        "No complex support",
        "Sparse CSR is unsupported",
    ),
    _row(
        SkipClass.WRONG_DEVICE,
        r"\bskipp?(?:ed|ing)?(?: test)? (?:on|for) \w|\bnot (?:for|on) (?:this device|"
        + _DEVICE
        + r")\b|\b"
        + _DEVICE
        + r"[- ]only\b|"
        r"\bonly (?:on|for|supports?|supported (?:on|for)|works? (?:on|for|with)|valid (?:on|for))\b.{0,12}\b"
        + _DEVICE
        + r"\b",
        "Skipping for cuda",
        "GPU only",
        "Only supports CPU",
        "not for this device",
        why="The weak wordings, after everything that says more.",
    ),
)

_DISABLED_ISSUE = re.compile(r"https://github\.com/[\w.-]{1,100}/[\w.-]{1,100}/issues/\d{1,12}", re.IGNORECASE)
_DISABLED_PLATFORMS = re.compile(r"\bfor (all)?\s?platform\(s\)\s?([\w, -]{0,300})", re.IGNORECASE)


def classify(message: str) -> SkipClass:
    """The class of one skip message, `unexplained` where no pattern says more."""
    looked_at = message[:LOOKED_AT]
    return next((row.skip_class for row in PATTERNS if row.pattern.search(looked_at)), SkipClass.UNEXPLAINED)


@dataclass(frozen=True)
class DisabledBy:
    """The issue that switched a test off. `platforms` is empty where it is all of them."""

    issue: str
    platforms: tuple[str, ...]


def disabled_by(message: str) -> DisabledBy | None:
    """What a message of class `disabled` names: None where it links no issue."""
    looked_at = message[:LOOKED_AT]
    issue = _DISABLED_ISSUE.search(looked_at)
    if not issue:
        return None
    found = _DISABLED_PLATFORMS.search(looked_at, issue.end())
    listed = found[2] if found and not found[1] else ""
    return DisabledBy(issue[0], tuple(name for each in listed.split(",") if (name := each.strip())))
