"""What became of an upload: its receipt, asked for and shown."""

import time
from typing import Any

from accelhub_client.asking import ask
from accelhub_client.ci import Environment
from accelhub_client.console import clean, note, result
from accelhub_client.exits import Stop
from accelhub_client.transport import Address
from accelhub_client.uploading import PATH

READY, FAILED, REMOVED = "ready", "failed", "removed"
FINAL = (READY, FAILED, REMOVED)
SHOWN_MAX = 20  # files with notes, and missing shards
_POLLS = (1.0, 2.0, 3.0, 5.0)  # seconds between questions; the last one stays

Receipt = dict[str, Any]


def receipt(hub: Address, report: str, environment: Environment) -> Receipt:
    """The receipt of a report. Raises Stop `refused`, `unavailable`."""
    found = ask("The receipt", hub, f"{PATH}{report}/", environment)
    if not isinstance(found.get("state"), str):
        raise Stop("unavailable", "The answer is no receipt of a hub. Is --url the hub's address?")
    return found


def wait(hub: Address, report: str, environment: Environment, seconds: float) -> Receipt:
    """Ask until the receipt is final. Raises Stop `still_waiting` after so many seconds, and what `receipt` raises."""
    until = time.monotonic() + seconds
    asked, shown = 0, ""
    while True:
        found = receipt(hub, report, environment)
        if found["state"] in FINAL:
            return found
        stage = f"{clean(found['state'])}, {clean(found.get('progress'))} %"
        if stage != shown:
            note(f"The report is {stage}.")
            shown = stage
        pause = _POLLS[min(asked, len(_POLLS) - 1)]
        if time.monotonic() + pause > until:
            raise Stop("still_waiting", f"The report is {stage} after {seconds:.0f} s. The hub goes on without you.")
        asked += 1
        time.sleep(pause)


def show(found: Receipt) -> None:
    """Print a receipt."""
    result(f"state: {clean(found['state'])}")
    if found.get("reason"):
        result(f"reason: {clean(found['reason'])}")
    counts = found.get("counts")
    if isinstance(counts, dict):
        result(
            "counts: " + ", ".join(f"{clean(name, 40)} {clean(count, 20)}" for name, count in list(counts.items())[:20])
        )
    flags = found.get("flags")
    if isinstance(flags, list) and flags:
        result("flags: " + ", ".join(clean(flag, 60) for flag in flags[:SHOWN_MAX]))
    _show_shards(found.get("shards"))
    _show_files(found.get("files"))


def _show_shards(shards: Any) -> None:
    missing = shards.get("missing") if isinstance(shards, dict) else None
    if isinstance(missing, list) and missing:
        numbers = ", ".join(clean(number, 10) for number in missing[:SHOWN_MAX])
        more = f" and {len(missing) - SHOWN_MAX} more" if len(missing) > SHOWN_MAX else ""
        result(f"shards missing: {numbers}{more} of {clean(shards.get('declared'), 10)}")


def _show_files(files: Any) -> None:
    """The files about which something is to be said."""
    if not isinstance(files, list):
        return
    said = [file for file in files if isinstance(file, dict) and (file.get("notes") or file.get("state") != "parsed")]
    result(f"files: {len(files)}, {len(said)} of them with notes")
    for file in said[:SHOWN_MAX]:
        numbers = f"{clean(file.get('parsed'), 20)} parsed, {clean(file.get('dropped'), 20)} dropped"
        result(f"  {clean(file.get('name'), 200)}: {clean(file.get('state'), 40)}, {numbers}")
        notes = file.get("notes")
        for one in notes[:SHOWN_MAX] if isinstance(notes, list) else ():
            if isinstance(one, dict):
                result(f"    {clean(one.get('code'), 60)} × {clean(one.get('count'), 20)}: {clean(one.get('says'))}")
    if len(said) > SHOWN_MAX:
        result(f"  … and {len(said) - SHOWN_MAX} more: see the receipt's page")


def end_of(found: Receipt) -> str:
    """How the command ends that waited for this receipt: a key of EXITS."""
    return "ok" if found["state"] == READY else "not_ready"
