"""Secrets leave neither in messages nor in output; names of tests, and all that is no secret, stay as they are."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.client.recorder import Client, Recorder
from tests.client.secrets import SECRETS, client_module

redaction = client_module("redaction")
UPLOAD = ("report", "upload", "r.xml", "--run-id", "7", "--job-name", "build")
TOKEN = SECRETS["GitHub token"]


def cleaned(content: bytes, *expressions: str) -> bytes:
    return b"".join(redaction.redactor(list(expressions), {}).cleaned(io.BytesIO(content)))


def test_a_report_leaves_without_its_secrets_and_that_is_said(cli: Client, recorder: Recorder, step: Path) -> None:
    (step / "r.xml").write_text(
        f"""<?xml version="1.0"?>
<testsuite name="{TOKEN}" hostname="box-17">
<testcase classname="TestA" name="test_{TOKEN}"><failure message="no &amp; {TOKEN} &quot;x&quot;">see
https://ci:hunter2@registry.example/ and box-17 &lt;ok&gt;</failure></testcase>
<testcase classname="TestA" name="test_b" time="0.1"/>
<system-out><![CDATA[<key> own-secret-of-step box-99]]></system-out></testsuite>"""
    )
    env = {"GITHUB_TOKEN": "own-secret-of-step"}
    ended = cli(*UPLOAD, "--redact", r"box-\d+", env=env)
    assert ended.code == 0
    assert recorder.asked[0].packed["r.xml"] == (
        f"""<?xml version="1.0"?>
<testsuite name="{TOKEN}" hostname="***">
<testcase classname="TestA" name="test_{TOKEN}"><failure message="no &amp; *** &quot;x&quot;">see
https://***@registry.example/ and *** &lt;ok&gt;</failure></testcase>
<testcase classname="TestA" name="test_b" time="0.1"/>
<system-out><![CDATA[<key> *** ***]]></system-out></testsuite>"""
    )
    counted = (
        r"redacted 6: 3 × --redact box-\d+, 1 × GitHub token, 1 × password in an address, 1 × secret of this step."
    )
    assert counted in ended.err


def test_what_is_spelled_with_entities_is_found_as_it_is_meant() -> None:
    assert cleaned(b"<a m='p&lt;w&#49;'>p&lt;w1</a>", "p<w1") == b'<a m="***">***</a>'


def test_a_report_log_leaves_without_its_secrets() -> None:
    line = {"nodeid": f"test_{TOKEN}", "longrepr": f"x\n{TOKEN} 1/2", "sections": [["out", {"a": TOKEN}]], "n": 1.5}
    content = json.dumps(line) + '\n{"a": "b"}\n{"cut": "' + TOKEN
    first, second, third = cleaned(content.encode()).decode().split("\n")
    assert json.loads(first) == line | {"longrepr": "x\n*** 1/2", "sections": [["out", {"a": "***"}]]}
    assert (second, third) == ('{"a": "b"}', '{"cut": "***')


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_each_default_finds_its_secret(name: str) -> None:
    made = redaction.redactor([], {})
    found = b"".join(made.cleaned(io.BytesIO(f"<f>say {SECRETS[name]}</f>".encode())))
    assert (SECRETS[name].encode() in found, dict(made.counts)) == (False, {name: 1})


def test_the_secrets_are_one_of_each_default() -> None:
    assert set(SECRETS) == {pattern.name for pattern in redaction.DEFAULTS}


def test_a_secret_at_the_border_of_what_is_read_at_once_is_found() -> None:
    for before in range(redaction._CHUNK - 60, redaction._CHUNK + 5, 3):
        content = b"<a><![CDATA[" + b"x" * before + b" " + TOKEN.encode() + b"]]></a>"
        assert TOKEN.encode() not in cleaned(content)


def test_utf_16_is_read_as_what_it_is() -> None:
    content = f"\ufeff<a>é {TOKEN}</a>".encode("utf-16-le")
    assert cleaned(content) == "\ufeff<a>é ***</a>".encode("utf-16-le")
    assert cleaned(content[:21]) == content[:21]


PIECES = st.sampled_from(
    ["<a b='c'>", "</a>", "<![CDATA[", "]]>", "<!--", "-->", "<", ">", "&amp;", "&", '"', "'", "x\n", "\\", "<?", "?>"]
)


@given(st.lists(st.one_of(PIECES.map(str.encode), st.binary(max_size=5)), max_size=30).map(b"".join))
def test_what_holds_no_secret_leaves_byte_for_byte_however_damaged(content: bytes) -> None:
    assert cleaned(content, "no-such-thing") == content


@given(st.lists(PIECES, max_size=15).map("".join), st.lists(PIECES, max_size=15).map("".join))
@example("<", "]]>")
@example("</", ">")
@example("<b c=", ">")
def test_no_damage_hides_a_secret(before: str, after: str) -> None:
    found = cleaned(f"<a>{before}{TOKEN}{after}".encode(), "no-such-thing")
    assert TOKEN.encode() not in found
