#!/usr/bin/env bash
# Sends a running demo hub one webhook and the two callbacks of one job, as GitHub and the official reporter send
# them. Needs bash, curl, openssl and python3, and a demo in another terminal: make demo
#
# Everything is as on GitHub, except where the CI run gets its token from: a workflow finds ACTIONS_ID_TOKEN_REQUEST_URL
# and ACTIONS_ID_TOKEN_REQUEST_TOKEN in its environment, this script asks the demo's stand-in for GitHub for them.
set -euo pipefail

cd "$(dirname "$0")/.."
DEMO_FILE="${ACCELHUB_DATA_DIR:-var}/demo.json"
UPSTREAM="${ACCELHUB_UPSTREAM_REPO:-pytorch/pytorch}"
AUDIENCE="${ACCELHUB_OIDC_AUDIENCE:-pytorch-cross-repo-ci-relay}"
DOWNSTREAM="kestrel-demo/torch-kestrel"

[[ -r $DEMO_FILE ]] || { echo "There is no $DEMO_FILE: start a demo first (make demo)." >&2; exit 1; }
demo() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$DEMO_FILE" "$1"; }
HUB="${ACCELHUB_BASE_URL:-$(demo base_url)}"
GITHUB="http://127.0.0.1:$(demo port)"
SECRET="$(demo webhook_secret)"
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost # all of it stays on this machine

# post URL FILE HEADER...: a JSON body as the reporter posts it. Prints the answer; any 4xx or 5xx ends the script.
post() {
  local url=$1 file=$2 headers=() header
  shift 2
  for header in "$@"; do headers+=(--header "$header"); done
  curl --silent --show-error --fail-with-body --max-time 10 --write-out ' (HTTP %{http_code})\n' \
    --request POST --header 'Content-Type: application/json' "${headers[@]}" --data-binary "@$file" "$url"
}
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

WORK="$(mktemp -d)"
trap 'rm -rf "$WORK"' EXIT
DELIVERY="$(python3 -c 'import uuid; print(uuid.uuid4())')"
RUN_ID="$(date +%s)$((RANDOM % 10))"
CHECK_RUN_ID="7$RUN_ID"

echo "1. A pull request is opened on $UPSTREAM: GitHub sends a signed webhook, delivery $DELIVERY."
python3 - "$UPSTREAM" "$WORK/webhook.json" <<'PYTHON'
import json, secrets, sys

upstream, path = sys.argv[1:]
body = {
    "action": "opened",
    "number": 999001,
    "pull_request": {
        "number": 999001,
        "title": "Show one job of a downstream repository",
        "user": {"login": "demo-contributor-1"},
        "labels": [],
        "head": {"sha": secrets.token_hex(20), "ref": "demo-example", "repo": {"full_name": "demo-contributor-1/pytorch"}},
        "base": {"sha": secrets.token_hex(20), "ref": "main"},
    },
    "repository": {"full_name": upstream},
}
with open(path, "w") as file:
    json.dump(body, file)
PYTHON
SIGNATURE="sha256=$(openssl dgst -sha256 -hmac "$SECRET" -r "$WORK/webhook.json" | cut -d' ' -f1)"
post "$HUB/github/webhook" "$WORK/webhook.json" \
  "X-GitHub-Event: pull_request" "X-GitHub-Delivery: $DELIVERY" "X-Hub-Signature-256: $SIGNATURE"

echo "2. The hub dispatches it; $DOWNSTREAM receives client_payload."
for attempt in {1..60}; do
  curl --silent --show-error --fail-with-body --max-time 10 --output "$WORK/dispatches.json" \
    "$GITHUB/_standin/dispatches?repository=$DOWNSTREAM"
  if python3 - "$DELIVERY" "$WORK" <<'PYTHON'
import json, sys

delivery, work = sys.argv[1:]
rows = json.load(open(f"{work}/dispatches.json"))["dispatches"]
found = [row["client_payload"] for row in rows if row["client_payload"].get("delivery_id") == delivery]
if not found:
    sys.exit(1)
with open(f"{work}/client_payload.json", "w") as file:
    json.dump(found[-1], file)
print("   top-level keys:", ", ".join(found[-1]))
PYTHON
  then break; fi
  [[ $attempt -lt 60 ]] || { echo "No dispatch within 30 seconds." >&2; exit 1; }
  sleep 0.5
done

echo "3. A workflow run begins: run $RUN_ID, attempt 1."
echo "{\"repository\": \"$DOWNSTREAM\", \"run_id\": \"$RUN_ID\", \"run_attempt\": \"1\"}" >"$WORK/run.json"
RUN="$(curl --silent --show-error --fail-with-body --max-time 10 --header 'Content-Type: application/json' \
  --data-binary "@$WORK/run.json" "$GITHUB/_standin/runs")"
ACTIONS_ID_TOKEN_REQUEST_URL="$(field token_url <<<"$RUN")"
ACTIONS_ID_TOKEN_REQUEST_TOKEN="$(field request_token <<<"$RUN")"

# report STATUS CONCLUSION TEST_RESULTS: one call of the reporter, with a token of its own as each call has.
report() {
  local token
  token="$(curl --silent --show-error --fail-with-body --max-time 10 \
    --header "Authorization: bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
    "$ACTIONS_ID_TOKEN_REQUEST_URL&audience=$AUDIENCE" | field value)"
  python3 - "$1" "$2" "$3" "$DOWNSTREAM" "$RUN_ID" "$CHECK_RUN_ID" "$WORK" <<'PYTHON'
import datetime, json, sys

status, conclusion, test_results, repository, run_id, check_run_id, work = sys.argv[1:]
now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
with open(f"{work}/client_payload.json") as file:
    body = json.load(file)  # echoed whole: delivery_id, payload, and whatever else the hub put there
body["workflow"] = {
    "schema_version": "1",
    "status": status,
    "conclusion": conclusion or None,
    "name": "CI",
    "url": f"https://github.com/{repository}/actions/runs/{run_id}",
    "run_id": run_id,
    "run_attempt": "1",
    "job_name": "reporter-example",
    "check_run_id": check_run_id,
    "started_at": now if status == "in_progress" else None,
    "completed_at": now if status == "completed" else None,
}
if test_results:
    body["workflow"]["test_results"] = json.loads(test_results)
    body["workflow"]["artifact_url"] = f"https://artifacts.kestrel-demo.example/{run_id}/"
with open(f"{work}/callback.json", "w") as file:
    json.dump(body, file)
PYTHON
  post "$HUB/github/callback" "$WORK/callback.json" "Authorization: Bearer $token"
}

echo "4. The job reports its start."
report in_progress "" ""
sleep 2
echo "5. The job reports its end."
report completed success '{"passed": 42, "failed": 0, "skipped": 5, "total": 47}'
