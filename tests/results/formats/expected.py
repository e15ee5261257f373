"""What each file of corpus/ says."""

from apps.results.formats.cases import Case, Outcome
from tests.results.formats.reading import Read

EXPECTED: dict[str, Read] = {
    "bytes.xml": Read(
        [
            Case("test_ops", "T", "nul�esc�high�half���end", Outcome.PASSED),
            Case("test_ops", "T", "ref���é", Outcome.PASSED),
        ],
        {"characters": 9},
    ),
    "cut.xml": Read(
        [
            Case("test_ops", "T", "whole", Outcome.PASSED),
            Case(
                "test_ops",
                "",
                "cut",
                Outcome.LOST,
                None,
                "The suite counts 2 failures and errors, the file holds 0: 2 lost.",
            ),
        ],
        {"truncated": 1, "dropped": 1, "lost": 2},
    ),
    "cut_in_failure.xml": Read(
        [
            Case("test_ops", "T", "whole", Outcome.PASSED),
            Case("test_ops", "T", "red", Outcome.FAILED, None, "m", "trace begins"),
        ],
        {"truncated": 1},
    ),
    "entities.xml": Read(
        [
            Case("test_ops", "T", "onetwo", Outcome.FAILED, None, "m", "xy"),
            Case("test_ops", "T", "three", Outcome.PASSED),
        ],
        {"entities": 5},
    ),
    "import_error.xml": Read(
        [
            Case("test_ops", "", "test_gone", Outcome.ERROR, 0.0, "collection failure", "ImportError: no module"),
            Case("test_ops", "", "test_other.py", Outcome.ERROR, None, "ImportError", "Traceback"),
            Case("test_ops", "", "unnamed", Outcome.ERROR, None, "no name", "e"),
        ],
        {"suite_error": 1, "unnamed": 1},
    ),
    "latin1.xml": Read([Case("test_ops", "", "é", Outcome.PASSED)], {}),
    "log.jsonl": Read(
        [
            Case(
                "test_gone.py",
                "",
                "test_gone.py",
                Outcome.ERROR,
                None,
                "ImportError: no module",
                "ImportError: no module",
            ),
            Case("test_off.py", "", "test_off.py", Outcome.SKIPPED, None, "no device"),
            Case("test_ops.py", "TestAdd", "test_plain[a::b]", Outcome.PASSED, 1.75),
            Case(
                "test_ops.py", "", "test_red", Outcome.FAILED, None, "assert 1 == 2", "assert 1 == 2\nE   assert 1 == 2"
            ),
            Case("test_ops.py", "", "test_mixed", Outcome.ERROR, None, "leak", "leak"),
            Case("test_ops.py", "", "test_skip", Outcome.SKIPPED, None, "requires CUDA"),
            Case("test_ops.py", "", "test_xfail", Outcome.XFAILED, None, "not yet"),
            Case("test_ops.py", "", "test_xpass", Outcome.XPASSED),
            Case(
                "test_ops.py",
                "",
                "test_strict",
                Outcome.XPASSED,
                None,
                "[XPASS(strict)] fixed",
                "[XPASS(strict)] fixed",
            ),
            Case("test_ops.py", "", "test_again", Outcome.FLAKY, None, "busy", "busy\nbusy indeed", 1),
            Case("test_ops.py", "", "test_parts", Outcome.FAILED, None, "part two", "part two"),
            Case("test_ops.py", "", "test_odd", Outcome.UNKNOWN, None, "", "", 0, "perhaps"),
        ],
        {"unknown_word": 1, "time": 1},
    ),
    "log_cut.jsonl": Read(
        [
            Case("t.py", "", "test_�whole�", Outcome.PASSED),
            Case("t.py", "", "test_no_call", Outcome.LOST, None, "The log has no call of this test."),
            Case("t.py", "", "test_red", Outcome.FAILED, None, "red", "red"),
            Case("t.py", "", "test_running", Outcome.LOST, None, "The test had begun, and the log ends before it did."),
        ],
        {"bad_line": 3, "unknown_line": 1, "characters": 4, "time": 1, "lost": 2, "truncated": 1, "no_end": 1},
    ),
    "lost.xml": Read(
        [
            Case("test_ops", "T", "a", Outcome.PASSED),
            Case("test_ops", "T", "b", Outcome.FAILED, None, "m"),
            Case(
                "test_ops",
                "",
                "died",
                Outcome.LOST,
                None,
                "The suite counts 3 failures and errors, the file holds 1: 2 lost.",
            ),
        ],
        {"header": 2, "lost": 2},
    ),
    "mismatched.xml": Read([Case("test_ops", "T", "whole", Outcome.PASSED)], {"damaged": 1}),
    "not_utf16.xml": Read([Case("test_ops", "", "é", Outcome.PASSED)], {"encoding": 1}),
    "pytest.xml": Read(
        [
            Case("test_ops.py", "TestAddPRIVATEUSE1", "test_add_npu_float32", Outcome.PASSED, 0.004),
            Case("test_ops", "TestAddPRIVATEUSE1", "test_sub_npu_int8", Outcome.SKIPPED, 0.001, "Only runs on cuda"),
            Case("test_ops", "TestAddPRIVATEUSE1", "test_inv_npu", Outcome.XFAILED, 0.01, "singular"),
            Case(
                "test_ops",
                "TestAddPRIVATEUSE1",
                "test_strict_npu",
                Outcome.XPASSED,
                0.01,
                "[XPASS(strict)] fixed since",
                "[XPASS(strict)] fixed since",
            ),
            Case(
                "test_ops",
                "TestAddPRIVATEUSE1",
                "test_mul_npu",
                Outcome.FAILED,
                1.5,
                "AssertionError: 1 != 2",
                "Traceback:\n  test_ops.py:77\nAssertionError: 1 != 2",
            ),
            Case(
                "test_ops",
                "TestAddPRIVATEUSE1",
                "test_mul_npu",
                Outcome.ERROR,
                0.1,
                'failed on teardown with "leak"',
                "leak",
            ),
            Case(
                "test_ops",
                "TestAddPRIVATEUSE1",
                "test_div_npu",
                Outcome.FLAKY,
                0.2,
                "RuntimeError: busy",
                "Traceback: busy",
                2,
            ),
        ],
        {},
    ),
    "rerun_of_disabled.xml": Read(
        [
            Case(
                "test_ops",
                "T",
                "flaky",
                Outcome.SKIPPED,
                None,
                '{"num_red": 2, "num_green": 48, "max_num_retries": 50, "flaky": true}',
            ),
            Case("test_ops", "T", "steady", Outcome.SKIPPED, None, '{"num_red": 0, "num_green": 50, "flaky": false}'),
        ],
        {"flaky_evidence": 1},
    ),
    "surefire.xml": Read(
        [
            Case("test_ops", "a.B", "flaky", Outcome.FLAKY, 0.1, "first", "at x", 1),
            Case("test_ops", "a.B", "red", Outcome.FAILED, None, "last", "at y", 1),
            Case("test_ops", "a.B", "error", Outcome.FLAKY, None, "once", "", 1),
            Case("test_ops", "a.C", "plain", Outcome.PASSED),
        ],
        {"time": 2},
    ),
    "unittest.xml": Read(
        [
            Case("nn/test_pool.py", "TestPool", "test_max", Outcome.PASSED, 1234.5),
            Case("nn/test_pool.py", "TestPool", "test_avg", Outcome.XFAILED, 0.0, "expected failure: not yet"),
            Case("nn/test_pool.py", "TestPool", "test_min", Outcome.XPASSED, 0.5, "Unexpected success: it passed"),
        ],
        {},
    ),
    "words.xml": Read(
        [
            Case("test_ops", "", "gtest_run", Outcome.PASSED, 0.1),
            Case("test_ops", "", "gtest_off", Outcome.SKIPPED),
            Case("test_ops", "", "by_word", Outcome.FAILED),
            Case("test_ops", "", "both", Outcome.FAILED, None, "so it says"),
            Case("test_ops", "", "odd_word", Outcome.UNKNOWN, None, "", "", 0, "inconclusive"),
            Case("test_ops", "", "odd_element", Outcome.UNKNOWN, None, "", "", 0, "timeout"),
            Case("test_ops", "", "decided", Outcome.FAILED, None, "m"),
            Case("test_ops", "", "several", Outcome.FAILED, None, "f"),
        ],
        {"unknown_word": 2},
    ),
}
