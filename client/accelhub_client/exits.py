"""How the command ends: one table. client/README.md prints it."""

EXITS = {
    "ok": (0, "the hub has the report; with `--wait`: it is ready; a question: it is answered"),
    "usage": (2, "an option or a path is wrong, or there is no report at the paths"),
    "refused": (3, "the hub refuses it; sending the same again would not help"),
    "no_token": (4, "the CI gives no OIDC token"),
    "unavailable": (5, "the hub could not be reached, or kept failing, until the retries were used up"),
    "not_ready": (6, "`--wait`: the hub could not read the report, or it was taken down"),
    "still_waiting": (7, "`--wait`: the report was not read in time; the hub has it"),
    "found": (8, "`compare --fail-on`: a test changed so"),
    "interrupted": (130, "interrupted"),
}


def described() -> str:
    """The table as `--help` prints it."""
    return "\n".join(("exit codes:", *(f"  {code:<4} {says}" for code, says in EXITS.values())))


class Stop(Exception):
    """The command ends here. `reason` is a key of EXITS, `message` says what was seen and what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message

    @property
    def code(self) -> int:
        return EXITS[self.reason][0]
