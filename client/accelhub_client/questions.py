"""What reports answer, asked from a terminal or a CI step: one table of commands over the hub's API."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from accelhub_client import places
from accelhub_client.asking import ask
from accelhub_client.console import clean, note, result
from accelhub_client.exits import Stop, described
from accelhub_client.tables import found_in, show_json, show_table
from accelhub_client.transport import Address

API = "/api/v1/"
ROWS = 50
ROWS_MAX = 10_000
_SHOWN_MAX = 20  # of a list within a line
_PAGE = ("next", "previous", "results")

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of the table: its title, and what of a row stands in it."""

    title: str
    cell: Callable[[Row], object]


@dataclass(frozen=True)
class Question:
    """One command. `where` reads the command line: hub, path of the API, query; `page` is how many rows an answer may
    have without growing too long; `head` says in lines what an answer says beside its rows."""

    name: str
    says: str
    add: Callable[[argparse.ArgumentParser], None]
    where: Callable[[argparse.Namespace], tuple[Address, str, dict[str, str]]]
    columns: tuple[Column, ...]
    head: Callable[[Row], list[str]]
    page: int = 100


def add_questions(commands: Any) -> None:
    """Add every question to the commands."""
    for question in QUESTIONS:
        parser = commands.add_parser(
            question.name,
            help=question.says,
            description=question.says,
            epilog=described(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        question.add(parser)
        parser.add_argument("--limit", type=int, default=ROWS, metavar="N", help=f"rows at most; {ROWS} if not given")
        parser.add_argument("--json", action="store_true", help="the hub's answer as JSON, instead of a table")
        parser.add_argument("--url", help="the hub's address; else ACCELHUB_URL")
        parser.set_defaults(run=_run, question=question)


def _run(options: argparse.Namespace) -> str:
    question: Question = options.question
    if not 0 < options.limit <= ROWS_MAX:
        raise Stop("usage", f"--limit: saw {options.limit}, give 1 to {ROWS_MAX}.")
    hub, path, query = question.where(options)
    about, rows, has_more = _answered(question, hub, path, query, options.limit)
    if options.json:
        show_json({**about, "results": rows, "has_more": has_more})
    else:
        for line in question.head(about):
            result(line)
        if rows:
            titles = [column.title for column in question.columns]
            show_table(titles, [[column.cell(row) for column in question.columns] for row in rows])
        if has_more:
            note(f"These are the first {len(rows)}: there are more. Give a greater --limit.")
    return _end(about, getattr(options, "fail_on", []))


def _answered(
    question: Question, hub: Address, path: str, query: dict[str, str], limit: int
) -> tuple[Row, list[Row], bool]:
    """What an answer says beside its rows, up to `limit` rows, and whether there are more. Of the next page's address
    only the cursor is taken: it is the same hub that is asked."""
    rows: list[Row] = []
    while True:
        given = {**query, "limit": str(min(question.page, limit - len(rows)))}
        answer = ask(f"The {question.name}", hub, f"{API}{path}?{urlencode(given)}", os.environ)
        if not isinstance(answer.get("results"), list):
            raise Stop("unavailable", "The answer is none of a hub. Is --url the hub's address?")
        page = [row for row in answer["results"] if isinstance(row, dict)]
        rows += page
        cursor = parse_qs(urlsplit(str(answer.get("next") or "")).query).get("cursor")
        if not cursor or not page or len(rows) >= limit:
            return {name: said for name, said in answer.items() if name not in _PAGE}, rows[:limit], bool(cursor)
        query = {**query, "cursor": cursor[0]}


def _end(about: Row, fail_on: list[str]) -> str:
    """How the command ends: a key of EXITS. Raises Stop `usage` for a change that the hub does not know."""
    for change in fail_on:
        count = found_in(about, f"counts.{change}")
        if not isinstance(count, int):
            known = ", ".join(clean(name, 40) for name in found_in(about, "counts") or ())
            raise Stop("usage", f"--fail-on {change[:40]}: is no change. They are {known}.")
        if count:
            return "found"
    return "ok"


# --- cells ------------------------------------------------------------------------------------------------------------


def _said(title: str, path: str = "") -> Column:
    return Column(title, lambda row: found_in(row, path or title))


def _test_words(test: Any) -> str:
    return " ".join(str(part) for name in ("file", "class_name", "name") if (part := found_in(test, name)))


_TEST = Column("test", lambda row: _test_words(row.get("test")))


def _seconds(row: Row) -> str:
    ms = row.get("ms")
    return f"{ms / 1_000:.3f}" if isinstance(ms, int) else "unknown"


def _elsewhere(row: Row) -> str:
    """Where else it is: each platform once, with how it ended there."""
    seen = row.get("elsewhere")
    if not isinstance(seen, list) or not seen:
        return "nowhere"
    places_seen = (
        f"{found_in(one, 'platform')} at the {found_in(one, 'where')}: {found_in(one, 'outcome') or 'the same failure'}"
        for one in seen[:_SHOWN_MAX]
    )
    return "; ".join(dict.fromkeys(places_seen))


def _counts(counts: Any) -> str:
    """The counts that are not zero, in words."""
    pairs = counts.items() if isinstance(counts, dict) else ()
    said = [f"{clean(name, 40).replace('_', ' ')} {clean(count, 20)}" for name, count in pairs if count]
    return ", ".join(said[:_SHOWN_MAX]) or "none"


# --- the questions ----------------------------------------------------------------------------------------------------


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "base",
        metavar="BASE",
        help="a report; or `previous` (the run before), `base` (the base commit's), a platform's slug (at that commit)",
    )
    parser.add_argument("head", metavar="HEAD", help="the report that is held against it: its id or address")
    parser.add_argument("--change", default="", help="only tests that changed so, such as newly_red")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CHANGE",
        help="end with exit code 8 where a test changed so; repeatable",
    )


def _where_compare(options: argparse.Namespace) -> tuple[Address, str, dict[str, str]]:
    hub, head = places.report(options.head, options.url)
    base = options.base
    if "://" in base:
        other, base = places.report(base, options.url)
        if other.origin != hub.origin:
            raise Stop("usage", f"{options.base[:100]}: is of another hub than {options.head[:100]}.")
    return hub, "compare/", {"base": base, "head": head, **_given(options, "change")}


def _head_compare(about: Row) -> list[str]:
    tests = f"{clean(about.get('tests'), 20)} tests in either, variant {clean(about.get('variant'), 100)}"
    return [_side(about, "base"), _side(about, "head"), f"{tests}: {_counts(about.get('counts'))}"]


def _side(about: Row, name: str) -> str:
    platform, run, at, report = (
        clean(found_in(about, f"{name}.{field}"), 60) for field in ("platform", "run_id", "received_at", "id")
    )
    return f"{name}: {platform} run {run} of {at}, {report}"


def _add_findings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", metavar="REPORT", help="its id or address")
    parser.add_argument("--outcome", default="", help="failed, error, lost, xpassed or flaky")


def _where_findings(options: argparse.Namespace) -> tuple[Address, str, dict[str, str]]:
    hub, report = places.report(options.report, options.url)
    return hub, f"reports/{report}/findings/", _given(options, "outcome")


def _head_findings(about: Row) -> list[str]:
    commit, base = (clean(found_in(about, f"looked_at.{name}"), 20) for name in ("commit", "base"))
    which = clean(found_in(about, "looked_at.base_is"), 200)
    return [f"looked for in {commit} other reports of the commit and {base} of the base ({which})"]


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("test", metavar="TEST", help="its number, which `search` prints, or its page's address")
    parser.add_argument("--variant", default="", help="default, where there is one")
    parser.add_argument("--platform", default="", help="a platform's slug; else all platforms")


def _where_history(options: argparse.Namespace) -> tuple[Address, str, dict[str, str]]:
    hub, test = places.test(options.test, options.url)
    return hub, f"tests/{test}/", _given(options, "variant", "platform")


def _head_history(about: Row) -> list[str]:
    variants = about.get("variants")
    known = ", ".join(clean(name, 60) for name in variants[:_SHOWN_MAX]) if isinstance(variants, list) else ""
    return [
        clean(_test_words(about.get("test"))),
        f"variant {clean(about.get('variant'), 100)} (there are: {known}), in the newest "
        f"{clean(about.get('looked_at'), 20)} reports",
    ]


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="+", metavar="WORD", help="of its file, class and name: three characters or more"
    )


def _where_search(options: argparse.Namespace) -> tuple[Address, str, dict[str, str]]:
    return places.hub(options.url), "tests/", {"q": " ".join(options.words)}


def _given(options: argparse.Namespace, *names: str) -> dict[str, str]:
    return {name: getattr(options, name) for name in names if getattr(options, name)}


QUESTIONS = (
    Question(
        "compare",
        "what changed from one report of tests to another",
        _add_compare,
        _where_compare,
        (_said("change"), _said("before"), _said("after"), _TEST, _said("message")),
        _head_compare,
    ),
    Question(
        "findings",
        "what went wrong in a report, and where else: is it me, or upstream?",
        _add_findings,
        _where_findings,
        (_said("verdict"), _said("outcome"), _TEST, Column("elsewhere", _elsewhere), _said("message")),
        _head_findings,
        page=20,
    ),
    Question(
        "history",
        "one test across runs and platforms",
        _add_history,
        _where_history,
        (
            _said("received_at"),
            _said("platform"),
            Column("commit", lambda row: str(found_in(row, "head_sha"))[:12] or "unknown"),
            _said("outcome"),
            _said("attempts"),
            Column("seconds", _seconds),
            _said("message"),
        ),
        _head_history,
    ),
    Question(
        "search",
        "tests by words of their names",
        _add_search,
        _where_search,
        (_said("number", "id"), Column("test", _test_words)),
        lambda about: [],
    ),
)
