"""Callbacks per second: real tokens, real HTTP, committed rows, over many repositories.

Beside it, in the same run, the floor: verify one token and commit one upsert, without any framework.
"""

import http.client
import json
import multiprocessing
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jwt
import psycopg
import requests
from django.conf import settings
from django.db import connection

from bench import figures, hub

REPOSITORIES = int(os.environ.get("BENCH_REPOSITORIES", "200"))
CALLBACKS = int(os.environ.get("BENCH_CALLBACKS", "6000"))
CLIENTS = int(os.environ.get("BENCH_CLIENTS", "16"))
FLOOR_SECONDS = 4.0
BODY_BYTES = 3_700

Prepared = tuple[bytes, bytes]


def run() -> None:
    """Print the floor with one process and with two, then the hub with its worker stopped and running."""
    print(
        f"\nCallbacks: {CLIENTS} clients, {REPOSITORIES} repositories, bodies of {BODY_BYTES:,} bytes, RS256, "
        f"{os.cpu_count()} cores"
    )
    print(figures.fdatasync(Path(settings.DATA_DIR)))
    with hub.standin() as standin:
        names = hub.list_repositories(standin, REPOSITORIES)
        key = requests.get(f"{standin.url}/.well-known/jwks", timeout=10).json()["keys"][0]
        token = standin.mint_token(names[0], audience=settings.OIDC_AUDIENCE, run_id="1")
        for count in (1, 2):
            done, seconds = _floor(key, token, standin.url, count)
            print(
                figures.line(
                    f"floor: verify + committed upsert, {count} process{'es'[: 2 * (count > 1)]}",
                    sum(done),
                    max(seconds),
                    [s for many in seconds_of(done, seconds) for s in many],
                )
            )
        with hub.running("web"):
            _measure(standin, names, "hub, worker stopped", 1)
            with hub.running("relay", "heavy", "beat"):
                _measure(standin, names, "hub, workers and beat running", 2)


def seconds_of(done: list[int], seconds: list[float]) -> list[list[float]]:
    """Mean time of each process's rounds: a floor has no queue, so its mean says it all."""
    return [[took / count] * count for count, took in zip(done, seconds, strict=True)]


# --- what is there before -----------------------------------------------------------------------------------------


def _dispatched(delivery_id: str) -> None:
    from apps.core.clock import now
    from apps.platforms.models import Repository
    from apps.relay.models import Delivery, Dispatch

    delivery = Delivery.objects.create(
        delivery_id=delivery_id, event="pull_request", state="fanned_out", received_at=now(), pr_number=1
    )
    Dispatch.objects.bulk_create(
        Dispatch(
            delivery=delivery,
            repository=repository,
            state="sent",
            attempts=1,
            created_at=now(),
            changed_at=now(),
            sent_at=now(),
        )
        for repository in Repository.objects.all()
    )


def _prepare(standin: Any, names: list[str], delivery_id: str, run: int) -> list[Prepared]:
    """Start and end of each job, as (authorization, body); signing is the downstream's work and not measured."""
    prepared: list[Prepared] = []
    for number in range(CALLBACKS // 2):
        name, run_id = names[number % len(names)], str(run * 1_000_000 + number)
        for status, conclusion in (("in_progress", None), ("completed", "success")):
            # A token speaks for one body.
            token = standin.mint_token(name, audience=settings.OIDC_AUDIENCE, run_id=run_id).encode()
            prepared.append((token, _body(delivery_id, run_id, status, conclusion)))
    return prepared


def _body(delivery_id: str, run_id: str, status: str, conclusion: str | None) -> bytes:
    body: dict[str, Any] = {
        "event_type": "pull_request",
        "delivery_id": delivery_id,
        "payload": {"action": "opened", "filler": ""},
        "workflow": {
            "schema_version": "1",
            "status": status,
            "conclusion": conclusion,
            "name": "CI",
            "url": f"https://github.com/o/r/actions/runs/{run_id}",
            "run_id": run_id,
            "run_attempt": "1",
            "job_name": "build",
            "check_run_id": run_id,
            "started_at": "2026-11-30T12:00:00Z",
            "completed_at": None,
        },
    }
    body["payload"]["filler"] = "x" * max(0, BODY_BYTES - len(json.dumps(body)))
    return json.dumps(body).encode()


# --- the floor ----------------------------------------------------------------------------------------------------


def _floor(key: dict[str, Any], token: str, issuer: str, count: int) -> tuple[list[int], list[float]]:
    """Rounds done and seconds taken by each process."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_floor (id bigint PRIMARY KEY, body text, seen timestamptz)")
    parameters = {key: settings.DATABASES["default"][key] for key in ("HOST", "NAME", "USER")}
    arguments = (key, token, issuer, settings.OIDC_AUDIENCE, parameters)
    context = multiprocessing.get_context("spawn")
    with context.Pool(count) as pool:
        results = pool.starmap(floor_rounds, [(*arguments, number) for number in range(count)])
    return [done for done, _ in results], [took for _, took in results]


def floor_rounds(
    key: dict[str, Any], token: str, issuer: str, audience: str, parameters: dict[str, str], number: int
) -> tuple[int, float]:
    """As fast as one process can: verify, upsert, commit."""
    public = jwt.PyJWK(key, algorithm="RS256").key
    body, done = "x" * BODY_BYTES, 0
    with psycopg.connect(
        host=parameters["HOST"], dbname=parameters["NAME"], user=parameters["USER"], autocommit=True
    ) as database:
        begun = time.perf_counter()
        while time.perf_counter() - begun < FLOOR_SECONDS:
            jwt.decode(token, public, algorithms=["RS256"], audience=audience, issuer=issuer)
            database.execute(
                "INSERT INTO bench_floor VALUES (%s, %s, now()) ON CONFLICT (id) DO UPDATE SET body = excluded.body, "
                "seen = excluded.seen",
                [number * 10_000_000 + done, body],
            )
            done += 1
        return done, time.perf_counter() - begun


# --- the hub ------------------------------------------------------------------------------------------------------


def _measure(standin: Any, names: list[str], name: str, run: int) -> None:
    delivery_id = f"bench-{run}"
    _dispatched(delivery_id)
    prepared = _prepare(standin, names, delivery_id, run)
    _post(prepared[: CLIENTS * 4])  # connections, caches, keys
    begun = time.perf_counter()
    latencies, answers = _post(prepared[CLIENTS * 4 :])
    elapsed = time.perf_counter() - begun
    print(figures.line(name, len(latencies), elapsed, latencies), dict(answers))


def _post(prepared: list[Prepared]) -> tuple[list[float], Counter[str]]:
    """Post everything with CLIENTS threads, each on its own kept connection; a job's end follows its start."""
    latencies: list[float] = []
    answers: Counter[str] = Counter()
    pairs = [prepared[at : at + 2] for at in range(0, len(prepared), 2)]
    shares = [pairs[client::CLIENTS] for client in range(CLIENTS)]
    lock = threading.Lock()

    def client(share: list[list[Prepared]]) -> None:
        mine, said = [], Counter[str]()
        link = http.client.HTTPConnection("127.0.0.1", settings.PORT, timeout=60)
        for token, body in (one for pair in share for one in pair):
            headers = {"Authorization": b"Bearer " + token, "Content-Type": "application/json"}
            begun = time.perf_counter()
            link.request("POST", "/github/callback", body, headers)
            response = link.getresponse()
            raw = response.read()
            mine.append(time.perf_counter() - begun)
            said[str(json.loads(raw).get("status"))] += 1
        link.close()
        with lock:
            latencies.extend(mine)
            answers.update(said)

    threads = [threading.Thread(target=client, args=[share]) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, answers
