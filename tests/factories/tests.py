"""Names of tests as reports write them, and the catalogue's rows."""

from apps.results import catalogue
from apps.results.models import Test
from apps.results.names.rules import words_of

NPU = words_of("npu")


def names(count: int, *, first: int = 0, device: str = "npu") -> list[tuple[str, str, str]]:
    """(file, class, name) of so many tests of a platform."""
    return [
        ("test_ops.py", f"TestOps{number // 100}PRIVATEUSE1", f"test_{number}_{device}_float32")
        for number in range(first, first + count)
    ]


def catalogued(name: str, class_name: str = "TestX", file: str = "test_x.py") -> Test:
    """The catalogue's row of one test, written if it is new."""
    identified = catalogue.identify([(file, class_name, name)], NPU)
    return Test.objects.get(pk=identified.tests[0])
