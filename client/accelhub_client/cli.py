"""`accelhub`: the command line."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Optional

from accelhub_client import VERSION, ci, packing, places, receipts, uploading
from accelhub_client.console import Progress, clean, note, result, size
from accelhub_client.exits import EXITS, Stop, described
from accelhub_client.multipart import Part
from accelhub_client.questions import add_questions
from accelhub_client.redaction import Redactor, redactor
from accelhub_client.selection import Selection, select
from accelhub_client.tokens import AUDIENCE, tokens
from accelhub_client.transport import Address

WAIT_SECONDS = 900.0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command. Returns its exit code, one of EXITS."""
    options = _parser().parse_args(arguments)
    try:
        reason: str = options.run(options)
    except Stop as stop:
        note(f"accelhub: {stop.message}")
        return stop.code
    except KeyboardInterrupt:
        reason = "interrupted"
    return EXITS[reason][0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="accelhub",
        description="The client of an AccelHub.",
        epilog=described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"accelhub {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    report = commands.add_parser("report", help="send test reports, ask what became of them")
    add_questions(commands)
    verbs = report.add_subparsers(required=True, metavar="VERB")
    _add_upload(verbs.add_parser("upload", help="send a job's test reports"))
    _add_status(verbs.add_parser("status", help="ask what became of an upload"))
    return parser


def _add_upload(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_upload)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a report, a folder, a glob, or an archive of reports")
    parser.add_argument("--url", help="the hub's address; else ACCELHUB_URL")
    for field in ci.FIELDS:
        parser.add_argument(field.option, dest=field.name, metavar=field.name.upper(), help=field.says)
    parser.add_argument("--shard", metavar="I/N", help="which of how many shards of one report this is")
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="PATTERN",
        help="a regular expression of Python: what it matches in messages and output is replaced; repeatable",
    )
    parser.add_argument("--wait", action="store_true", help="wait until the hub has read it, and show the receipt")
    parser.add_argument("--wait-seconds", type=float, default=WAIT_SECONDS, metavar="S", help="how long, at most")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be sent; send nothing, ask for no token"
    )
    parser.add_argument("--audience", help=f"of the token; else ACCELHUB_OIDC_AUDIENCE, else {AUDIENCE}")
    parser.add_argument("--token", help="an OIDC token, for tests; others see it: rather set ACCELHUB_TOKEN")
    parser.add_argument("--outputs", metavar="FILE", help="append id=…, receipt=… and status=… to this file")


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_status)
    parser.add_argument("report", metavar="ID|URL", help="the report's id, or its receipt's address")
    parser.add_argument("--url", help="the hub's address, for an id; else ACCELHUB_URL")


def _upload(options: argparse.Namespace) -> str:
    environment = os.environ
    meta = ci.meta(vars(options), options.shard, environment)
    selection, secrets = select(options.paths), redactor(options.redact, environment)
    if selection.archives and options.redact:
        raise Stop(
            "usage", f"--redact: {clean(selection.archives[0])} is an archive, which goes as it is. Give its folder."
        )
    hub = None if options.dry_run else places.hub(options.url)
    audience = options.audience or environment.get("ACCELHUB_OIDC_AUDIENCE") or AUDIENCE
    given = options.token or environment.get("ACCELHUB_TOKEN")
    source = None if options.dry_run else tokens(environment, audience, given)
    with ExitStack() as opened:
        parts = _parts(selection, secrets, opened)
        if hub is None or source is None:
            _show_plan(meta, selection, parts)
            return "ok"
        taken = uploading.send(hub, meta, parts, source)
    return _told(taken, hub, options)


def _parts(selection: Selection, secrets: Redactor, opened: ExitStack) -> list[Part]:
    """The files to send: a new archive of the reports, and the archives that were named."""
    parts = []
    if selection.links:
        note(f"Left out {selection.links} symbolic links below the folders.")
    if selection.reports:
        packed: Any = opened.enter_context(tempfile.TemporaryFile(suffix=".zip"))  # noqa: SIM115 - it is one
        progress = Progress("Packing", sum(report.length for report in selection.reports))
        packing.pack(selection.reports, packed, secrets.cleaned, progress.advance)
        progress.end()
        packed.flush()
        parts.append(Part.of(packing.NAME, packed))
        note(f"Packed {len(selection.reports)} reports into {size(parts[0].length)}; {_redacted(secrets)}.")
    for path in selection.archives:
        parts.append(Part.of(os.path.basename(path), opened.enter_context(open(path, "rb"))))  # noqa: SIM115 - as above
        note(f"{clean(path)} goes as it is, {size(parts[-1].length)}: nothing in it is redacted.")
    return parts


def _redacted(secrets: Redactor) -> str:
    if not secrets.counts:
        return "nothing in them was redacted"
    by_name = ", ".join(f"{count} × {name}" for name, count in sorted(secrets.counts.items()))
    return f"redacted {sum(secrets.counts.values())}: {by_name}"


def _show_plan(meta: dict[str, Any], selection: Selection, parts: list[Part]) -> None:
    result(f"meta: {json.dumps(meta, ensure_ascii=False)}")
    for part in parts:
        result(f"file: {part.name}, {part.length} bytes")
    for report in selection.reports:
        result(f"  {clean(report.name)}")


def _told(taken: uploading.Taken, hub: Address, options: argparse.Namespace) -> str:
    """Say what the hub said, and wait for the receipt where that is wanted."""
    if options.outputs:
        with open(options.outputs, "a", encoding="utf-8") as file:
            file.write(f"id={taken.report}\nreceipt={taken.receipt}\nstatus={taken.status}\n")
    if taken.status == uploading.IGNORED:
        note("The hub ignores it: it does not list this repository. Nothing was kept.")
        return "ok"
    result(f"{taken.status}: {taken.report}")
    result(f"receipt: {taken.receipt}")
    if not options.wait:
        return "ok"
    found = receipts.wait(hub, taken.report, os.environ, options.wait_seconds)
    receipts.show(found)
    return receipts.end_of(found)


def _status(options: argparse.Namespace) -> str:
    hub, report = places.report(options.report, options.url)
    receipts.show(receipts.receipt(hub, report, os.environ))
    return "ok"


if __name__ == "__main__":
    sys.exit(main())
