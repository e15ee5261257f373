"""docs/names-and-skips.md prints tables as they are in code. `python -m tests.documents tests.results.test_docs` writes
them anew."""

from collections.abc import Iterator

from tests.documents import Document, code, rows


def names() -> str:
    from apps.results.names.rules import RULES

    def each() -> Iterator[str]:
        for rule in RULES:
            lines = [
                [device, *map(code, written), " · ".join(map(code, identity))]
                for (device, *written), identity in rule.examples
            ]
            yield f"{rule.what}\n\n" + rows(["device", "file", "class", "name", "identity"], lines)

    return "\n".join(each())


def dtypes() -> str:
    from apps.results.names.rules import DTYPES

    return ", ".join(map(code, DTYPES)) + ".\n"


def classes() -> str:
    from apps.results.skips import MEANINGS

    return rows(["class", "meaning"], [[code(word), meaning] for word, meaning in MEANINGS.items()])


def skips() -> str:
    from apps.results.skips import PATTERNS

    return rows(
        ["class", "such as", "where it could be read otherwise"],
        [[code(row.skip_class), " ".join(map(code, row.examples)), row.why or "–"] for row in PATTERNS],
    )


def fingerprints() -> str:
    from apps.results.fingerprints import DEVICE_EXAMPLES, STEPS

    lines = [[step.what, code(before), code(after)] for step in STEPS for before, after in step.examples]
    lines += [["the platform's words, with the device's number", *map(code, example)] for example in DEVICE_EXAMPLES]
    return rows(["what goes", "before", "after"], lines)


def columns() -> str:
    from apps.results.outcomes import COLUMNS, SCHEMA

    return rows(
        ["column", "type", "meaning"],
        [
            [code(name), f"{SCHEMA.field(name).type}{', nullable' * SCHEMA.field(name).nullable}", meaning]
            for name, meaning in COLUMNS.items()
        ],
    )


def opendata() -> str:
    from apps.results.open_data import COLUMNS, REASONS, TESTS

    return rows(
        ["file", "column", "type", "meaning"],
        [
            [code(file), code(name), str(schema.field(name).type), meaning]
            for (file, columns), schema in zip(COLUMNS.items(), (TESTS, REASONS), strict=True)
            for name, meaning in columns.items()
        ],
    )


def limits() -> str:
    from apps.results import catalogue, fingerprints, outcomes, skips
    from apps.results.names import canonical

    return rows(
        ["what", "limit", "past it"],
        [
            ["spellings of one report", f"{canonical.SPELLINGS_MAX:,}", "further names stay as they are written"],
            ["different skip messages of one report", f"{catalogue.REASONS_MAX:,}", "the rest share one that says so"],
            ["characters of a skip message that decide its class", f"{skips.LOOKED_AT:,}", "not looked at"],
            ["characters of a message in a fingerprint", f"{fingerprints.MESSAGE_LOOKED_AT:,}", "not looked at"],
            ["characters of a trace's end in a fingerprint", f"{fingerprints.TRACE_LOOKED_AT:,}", "not looked at"],
            ["rows in a row group", f"{outcomes.ROWS_A_GROUP:,}", "the next group"],
            ["names that one step writes", f"{catalogue.STEP:,}", "the next step"],
        ],
    )


PAGE = Document("names-and-skips.md", names, dtypes, classes, skips, fingerprints, columns, opendata, limits)


def test_the_tables_are_those_of_the_code() -> None:
    PAGE.check()
