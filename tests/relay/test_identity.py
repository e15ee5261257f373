"""Tokens: signature, trust anchors, claims. Real keys, fetched from the issuer over HTTP."""

import time
from typing import Any

import jwt
import pytest
from django.conf import settings
from django.test import override_settings

from apps.core.errors import Problem
from apps.relay import claims, identity
from apps.simulator.oidc import load_key, new_key
from apps.simulator.standin import GitHubStandIn

NAME = "kestrel-demo/torch-kestrel"


@pytest.fixture
def issuer(github: GitHubStandIn) -> GitHubStandIn:
    github.add_repository(NAME, repository_id=5001, owner_id=6001)
    return github


def mint(issuer: GitHubStandIn, **overrides: Any) -> str:
    return issuer.mint_token(NAME, **{"audience": settings.OIDC_AUDIENCE, "run_id": "123"} | overrides)


def refused(token: str) -> tuple[str, str | None, str]:
    with pytest.raises(claims.Refused) as caught:
        identity.verify(token)
    return caught.value.code, caught.value.field, caught.value.reason


def jwks_requests(issuer: GitHubStandIn) -> int:
    return sum(request.path == "/.well-known/jwks" for request in issuer.requests)


def test_a_good_token_is_an_identity(issuer: GitHubStandIn) -> None:
    found = identity.verify(mint(issuer, run_attempt="2", jti="j-1"))
    assert found == claims.Identity(
        issuer=issuer.url,
        repository=NAME,
        repository_id=5001,
        owner_id=6001,
        run_id="123",
        run_attempt=2,
        claims=found.claims,
    )
    kept = {row.name for row in identity.CLAIMS if row.is_kept}
    assert set(found.claims) <= kept
    assert {name: found.claims[name] for name in ("repository", "run_id", "run_attempt", "jti", "event_name")} == {
        "repository": NAME,
        "run_id": "123",
        "run_attempt": "2",
        "jti": "j-1",
        "event_name": "repository_dispatch",
    }


def test_an_audience_may_be_one_of_a_list(issuer: GitHubStandIn) -> None:
    assert identity.verify(mint(issuer, aud=["x", settings.OIDC_AUDIENCE])).repository_id == 5001


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"aud": "another"}, ("token_invalid", "aud", "audience")),
        ({"aud": None}, ("token_invalid", "aud", "no aud")),
        ({"exp": 1}, ("token_expired", "exp", "expired")),
        ({"exp": None}, ("token_invalid", "exp", "no exp")),
        ({"exp": "soon"}, ("token_invalid", None, "unreadable")),
        ({"iat": None}, ("token_invalid", "iat", "no iat")),
        ({"iat": 4_000_000_000}, ("token_invalid", "iat", "not yet valid")),
        ({"nbf": 4_000_000_000}, ("token_invalid", "iat", "not yet valid")),
        ({"iss": "https://token.actions.githubusercontent.com"}, ("token_invalid", "iss", "unknown issuer")),
        ({"iss": None}, ("token_invalid", "iss", "unknown issuer")),
        ({"repository": None}, ("identity_unknown", "repository", "claim repository")),
        ({"repository": "no-slash"}, ("identity_unknown", "repository", "claim repository")),
        ({"repository": "a/b/c"}, ("identity_unknown", "repository", "claim repository")),
        ({"repository": "a/\u202eb"}, ("identity_unknown", "repository", "claim repository")),
        ({"repository": "a/" + "x" * 200}, ("identity_unknown", "repository", "claim repository")),
        ({"repository_id": None}, ("identity_unknown", "repository_id", "claim repository_id")),
        ({"repository_id": 5001}, ("identity_unknown", "repository_id", "claim repository_id")),
        ({"repository_id": "5001x"}, ("identity_unknown", "repository_id", "claim repository_id")),
        ({"repository_id": "9" * 19}, ("identity_unknown", "repository_id", "claim repository_id")),
        ({"repository_owner_id": ""}, ("identity_unknown", "repository_owner_id", "claim repository_owner_id")),
        ({"run_id": "x"}, ("identity_unknown", "run_id", "claim run_id")),
        ({"run_attempt": 1.0}, ("identity_unknown", "run_attempt", "claim run_attempt")),
        ({"jti": None}, ("identity_unknown", "jti", "claim jti")),
        ({"jti": "a\x00b"}, ("identity_unknown", "jti", "claim jti")),
        ({"actor": ["x"]}, ("identity_unknown", "actor", "claim actor")),
        ({"ref": "x" * 1_001}, ("identity_unknown", "ref", "claim ref")),
    ],
)
def test_a_claim_that_does_not_fit_is_refused_by_name(
    issuer: GitHubStandIn, overrides: dict[str, Any], expected: tuple[str, str | None, str]
) -> None:
    claims = jwt.decode(mint(issuer), options={"verify_signature": False}) | overrides
    token = issuer.sign({name: value for name, value in claims.items() if value is not None})
    assert refused(token) == expected


@pytest.mark.parametrize("token", ["x", "a.b.c", "", "é.é.é", "." * 20, "ey" * 5_000])
def test_what_is_no_jwt_is_refused(issuer: GitHubStandIn, token: str) -> None:
    assert refused(token) == ("token_invalid", None, "not a JWT")


def test_another_key_under_a_known_key_id_is_refused(issuer: GitHubStandIn) -> None:
    good = mint(issuer)
    claims = jwt.decode(good, options={"verify_signature": False})
    kid = jwt.get_unverified_header(good)["kid"]
    forged = jwt.encode(claims, load_key(new_key()), algorithm="RS256", headers={"kid": kid})
    assert refused(forged) == ("token_invalid", None, "signature")


def test_a_changed_payload_is_refused(issuer: GitHubStandIn) -> None:
    head, _, signature = mint(issuer).split(".")
    other = mint(issuer, run_id="124").split(".")[1]
    assert refused(f"{head}.{other}.{signature}") == ("token_invalid", None, "signature")


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS512", "PS256"])
def test_only_rs256_is_accepted(issuer: GitHubStandIn, algorithm: str) -> None:
    good = mint(issuer)
    claims = jwt.decode(good, options={"verify_signature": False})
    headers = {"kid": jwt.get_unverified_header(good)["kid"]}
    key: Any = {"none": None, "HS256": "x" * 32}.get(algorithm, load_key(new_key()))
    assert refused(jwt.encode(claims, key, algorithm=algorithm, headers=headers)) == (
        "token_invalid",
        "alg",
        "algorithm",
    )


@pytest.mark.parametrize("kid", [None, "", "unknown", "x" * 500])
def test_an_unknown_key_id_is_refused(issuer: GitHubStandIn, kid: str | None) -> None:
    claims = jwt.decode(mint(issuer), options={"verify_signature": False})
    headers = {} if kid is None else {"kid": kid}
    forged = jwt.encode(claims, load_key(new_key()), algorithm="RS256", headers=headers)
    assert refused(forged) == ("token_invalid", "kid", "unknown key")


def test_keys_are_fetched_once_and_kept(issuer: GitHubStandIn) -> None:
    for _ in range(5):
        identity.verify(mint(issuer))
    assert jwks_requests(issuer) == 1


def test_an_unknown_key_id_refetches_once_and_then_only_after_a_pause(
    issuer: GitHubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity.verify(mint(issuer))
    issuer.rotate_keys()
    # The first fetch was moments ago, so the new key is not known yet, however often it is asked for.
    for _ in range(5):
        assert refused(mint(issuer))[2] == "unknown key"
    assert jwks_requests(issuer) == 1
    monkeypatch.setattr(identity, "REFETCH_EVERY_SECONDS", 0)
    assert identity.verify(mint(issuer)).repository_id == 5001
    assert jwks_requests(issuer) == 2


def test_a_withdrawn_key_is_no_longer_trusted_once_the_keys_are_fetched_again(
    issuer: GitHubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = mint(issuer)
    identity.verify(old)
    issuer.rotate_keys(keep_old=False)
    monkeypatch.setattr(identity, "REFETCH_EVERY_SECONDS", 0)
    monkeypatch.setattr(identity, "KEYS_KEPT_SECONDS", 0)
    assert refused(old)[2] == "unknown key"


def test_an_issuer_that_was_never_reached_makes_us_unavailable_not_the_token_bad(issuer: GitHubStandIn) -> None:
    issuer.fail("/.well-known/jwks", status=503, times=10)
    with pytest.raises(Problem) as caught:
        identity.verify(mint(issuer))
    assert (caught.value.code, caught.value.headers) == ("unavailable", {"Retry-After": "30"})


def test_known_keys_outlive_an_issuer_that_is_away(issuer: GitHubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    identity.verify(mint(issuer))
    monkeypatch.setattr(identity, "REFETCH_EVERY_SECONDS", 0)
    monkeypatch.setattr(identity, "KEYS_KEPT_SECONDS", 0)
    issuer.fail("/.well-known/jwks", status=0, times=10)
    assert identity.verify(mint(issuer)).repository_id == 5001


@pytest.mark.parametrize("kind", ["redirect", "not JSON", "no keys", "large"])
def test_an_answer_that_is_no_key_set_is_not_believed(
    issuer: GitHubStandIn, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = {"redirect": "/login", "not JSON": "/healthz", "no keys": "/app", "large": "/.well-known/jwks"}[kind]
    if kind == "large":
        monkeypatch.setattr(identity, "JWKS_MAX_BYTES", 10)
    anchor = {"issuer": issuer.url, "jwks_url": issuer.url + path, "kind": "github"}
    with override_settings(OIDC_ISSUERS=[anchor]), pytest.raises(Problem) as caught:
        identity.verify(mint(issuer))
    assert caught.value.code == "unavailable"


def test_a_little_clock_difference_is_allowed(issuer: GitHubStandIn) -> None:
    now = int(time.time())
    assert identity.verify(mint(issuer, iat=now + 5, nbf=now + 5)).repository_id == 5001


def test_the_claims_table_says_one_thing_about_each_claim() -> None:
    names = [row.name for row in identity.CLAIMS]
    assert len(names) == len(set(names))
    assert {row.use for row in identity.CLAIMS} == {"required", "optional", "unchecked"}
    assert all(row.check for row in identity.CLAIMS)


def test_every_claim_that_github_sends_stands_in_the_table(issuer: GitHubStandIn) -> None:
    sent = set(jwt.decode(mint(issuer), options={"verify_signature": False}))
    assert sent - {row.name for row in identity.CLAIMS} == set()
