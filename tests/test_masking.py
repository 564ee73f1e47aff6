"""Real-looking secrets and harmless text in, what masking makes of them out; misses and false hits are counted over both tables."""

from __future__ import annotations

import base64
import json
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools.errors import InvalidInput
from memory_tools.masking import mask, mask_value

_random = random.Random(20250305)
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "_-"
HEX = "0123456789abcdef"
UPPER32 = string.ascii_uppercase + "234567"


def _some(alphabet: str, n: int) -> str:
    """n characters that hold a digit and both cases where the alphabet does, as a generated key nearly always does."""
    while True:
        text = "".join(_random.choice(alphabet) for _ in range(n))
        if text[0] in "-_" or text[-1] in "-_":
            continue
        if (
            n < 12
            or not set(ALNUM) & set(alphabet) - set(string.digits)
            or (any(c.isdigit() for c in text) and any(c.isalpha() for c in text))
        ):
            return text


def _b64(n: int) -> str:
    return base64.b64encode(_random.randbytes(n)).decode()


def _jwt() -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': '1234567890', 'name': 'John Doe', 'iat': 1516239022})}.{_some(URL, 43)}"


def _pem(kind: str) -> str:
    body = "\n".join(_b64(48) for _ in range(12))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


# Formats are put together here so that no line of this file is itself a key.
SHAPES: dict[str, list[str]] = {
    "openai": ["sk-" + _some(ALNUM, 48), "sk-proj-" + _some(URL, 120), "sk-svcacct-" + _some(URL, 90), "sk-" + _some(HEX, 32)],
    "openai admin": ["sk-admin-" + _some(URL, 60), "sk-" + _some(ALNUM, 20) + "T3BlbkFJ" + _some(ALNUM, 20)],
    "anthropic": ["sk-ant-api03-" + _some(URL, 93) + "AA", "sk-ant-admin01-" + _some(URL, 80), "sk-ant-oat01-" + _some(URL, 80)],
    "openrouter": ["sk-or-v1-" + _some(HEX, 64)],
    "github": [p + _some(ALNUM, 36) for p in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")],
    "github fine grained": ["github_pat_" + _some(ALNUM, 22) + "_" + _some(ALNUM, 59)],
    "gitlab": [p + _some(URL, 20) for p in ("glpat-", "gldt-", "glrt-", "glptt-")],
    "slack": [
        f"xoxb-{_some(string.digits, 12)}-{_some(string.digits, 13)}-{_some(ALNUM, 24)}",
        f"xoxp-{_some(string.digits, 11)}-{_some(string.digits, 11)}-{_some(HEX, 32)}",
        f"xapp-1-A0{_some(ALNUM, 9)}-{_some(string.digits, 13)}-{_some(HEX, 64)}",
        "xoxe.xoxp-1-" + _some(ALNUM, 140),
    ],
    "aws id": ["AKIA" + _some(UPPER32, 16), "ASIA" + _some(UPPER32, 16)],
    "google": ["AIza" + _some(URL, 35), "ya29." + _some(URL, 120), "GOCSPX-" + _some(URL, 28), "1//0" + _some(URL, 60)],
    "stripe": ["sk_live_" + _some(ALNUM, 24), "sk_test_" + _some(ALNUM, 99), "rk_live_" + _some(ALNUM, 24), "whsec_" + _some(ALNUM, 32)],
    "jwt": [_jwt()],
    "npm": ["npm_" + _some(ALNUM, 36)],
    "pypi": ["pypi-AgEIcHlwaS5vcmc" + _some(URL, 150)],
    "huggingface": ["hf_" + _some(ALNUM, 34)],
    "telegram": [f"{_some('123456789', 10)}:AA{_some(URL, 33)}"],
    "discord": ["M" + _some(URL, 23) + "." + _some(ALNUM, 6) + "." + _some(ALNUM, 38)],
    "azure": [_some(ALNUM, 3) + "8Q~" + _some(ALNUM, 34), base64.b64encode(_random.randbytes(64)).decode()],
    "sendgrid": [f"SG.{_some(ALNUM, 22)}.{_some(ALNUM, 43)}"],
    "mailgun, mailchimp, twilio": ["key-" + _some(HEX, 32), _some(HEX, 32) + "-us12", "SK" + _some(HEX, 32)],
    "digitalocean": ["dop_v1_" + _some(HEX, 64)],
    "shopify": ["shpat_" + _some(HEX, 32)],
    "databricks": ["dapi" + _some(HEX, 32)],
    "linear, notion": ["lin_api_" + _some(ALNUM, 40), "ntn_" + _some(ALNUM, 46), "secret_" + _some(ALNUM, 43)],
    "vault, doppler": ["hvs." + _some(URL, 90), "dp.pt." + _some(ALNUM, 43)],
    "groq, xai, replicate": ["gsk_" + _some(ALNUM, 52), "xai-" + _some(ALNUM, 80), "r8_" + _some(ALNUM, 37)],
    "perplexity, tavily, langsmith": [
        "pplx-" + _some(ALNUM, 48),
        "tvly-" + _some(ALNUM, 32),
        "lsv2_pt_" + _some(HEX, 32) + "_" + _some(HEX, 10),
    ],
    "nvidia, pinecone, supabase": ["nvapi-" + _some(URL, 64), "pcsk_" + _some(ALNUM, 60), "sbp_" + _some(HEX, 40)],
    "grafana, sentry, figma": ["glsa_" + _some(ALNUM, 32) + "_" + _some(HEX, 8), "sntrys_" + _some(ALNUM, 90), "figd_" + _some(ALNUM, 40)],
    "atlassian, airtable": ["ATATT3xFfGF0" + _some(URL, 170), "pat" + _some(ALNUM, 14) + "." + _some(HEX, 64)],
    "square, planetscale": ["sq0atp-" + _some(URL, 22), "pscale_tkn_" + _some(ALNUM, 43)],
    "postman, new relic, docker": [
        f"PMAK-{_some(HEX, 24)}-{_some(HEX, 34)}",
        "NRAK-" + _some(string.ascii_uppercase + "0123456789", 27),
        "dckr_pat_" + _some(URL, 27),
    ],
    "alibaba, tencent": ["LTAI5t" + _some(ALNUM, 18), "AKID" + _some(ALNUM, 32)],
    "age, terraform": [
        "AGE-SECRET-KEY-1" + _some(string.ascii_uppercase + "0123456789", 58),
        _some(ALNUM, 14) + ".atlasv1." + _some(URL, 67),
    ],
}

# Where such a token is met. `{}` is the token.
PLACES = [
    "{}",
    "key {} works",
    '{{"k": "{}"}}',
    "Authorization: Bearer {}",
    "export X={}\n",
    "https://api.example.com/v1?x={}&y=1",
    "`{}`",
    "({})",
    "{}.",
    "a={},b=2",
]

# The secret is the second of each pair; the text holds it.
NAMED: list[tuple[str, str]] = [
    ("password=hunter2", "hunter2"),
    ("password: hunter2\nuser: bob", "hunter2"),
    ("DB_PASSWORD='correct horse battery staple'", "correct horse battery staple"),
    ('"password": "hunter2"', "hunter2"),
    ('{"user":"bob","passwd":"a\\"b!c"}', 'a\\"b!c'),
    ('{\\"password\\": \\"hunter2\\", \\"x\\": 1}', "hunter2"),
    ('"api_key": "9f8e7d6c5b4a39281706"', "9f8e7d6c5b4a39281706"),
    ("api-key: 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
    ("X-API-Key: 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
    ("apiKey=abcDEF123456", "abcDEF123456"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ('"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("client_secret=Zx81QwErTy77", "Zx81QwErTy77"),
    ("clientSecret: 'Zx81QwErTy77'", "Zx81QwErTy77"),
    ("access_token=2YotnFZFEjr1zCsicMWpAA", "2YotnFZFEjr1zCsicMWpAA"),
    ('"refresh_token": "tGzv3JOkF0XG5Qx2TlKWIA"', "tGzv3JOkF0XG5Qx2TlKWIA"),
    ("https://api.example.com/v1/items?access_token=2YotnFZFEjr1zCsicMWpAA&page=2", "2YotnFZFEjr1zCsicMWpAA"),
    ("GET /v1?api_key=9f8e7d6c5b4a3928 HTTP/1.1", "9f8e7d6c5b4a3928"),
    ("postgres://app:S3cr3t!pw@db.internal:5432/prod", "S3cr3t!pw"),
    ("postgresql+asyncpg://app:p@ss/w0rd@db.internal/prod", "p@ss/w0rd"),
    ("redis://:foobared99@10.0.0.5:6379/0", "foobared99"),
    ("mongodb+srv://root:hunter2@cluster0.abcde.mongodb.net/?retryWrites=true", "hunter2"),
    ("https://bob:hunter2@example.com/private.git", "hunter2"),
    ("amqp://guest:gu3st@rabbit:5672//", "gu3st"),
    ("git clone https://9f8e7d6c5b4a392817069f8e7d6c5b4a@git.example.com/a.git", "9f8e7d6c5b4a392817069f8e7d6c5b4a"),
    ("Authorization: Basic Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI="),
    ("curl -H 'Authorization: Bearer opaque-token-1234567890' https://x", "opaque-token-1234567890"),
    ("authorization: token 0123456789abcdef0123", "0123456789abcdef0123"),
    ("curl -u bob:hunter2 https://x", "hunter2"),
    ("curl --user 'bob:hunter2' https://x", "hunter2"),
    ("Bearer abcdef1234567890abcdef", "abcdef1234567890abcdef"),
    ("Cookie: sessionid=38afes7a8; csrftoken=abcdef", "38afes7a8"),
    ("Set-Cookie: sid=s%3Aabc.def; HttpOnly", "s%3Aabc.def"),
    ("mysql -uroot -phunter2 prod", "hunter2"),
    ("mysqldump --password=hunter2 prod", "hunter2"),
    ("tool --password hunter2 --verbose", "hunter2"),
    ("tool --api-key 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("gh auth login --with-token abcdef1234567890", "abcdef1234567890"),
    ("sshpass -p hunter2 ssh root@host", "hunter2"),
    ("machine github.com\n  login bob\n  password hunter2\n", "hunter2"),
    ("PGPASSWORD=hunter2 psql", "hunter2"),
    ('export SECRET_KEY="django-insecure-abc123$%^"', "django-insecure-abc123$%^"),
    ("SECRET_KEY_BASE: 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
    ("密码: hunter2", "hunter2"),
    ("密码是 hunter2，别告诉别人", "hunter2"),
    ("口令：Tr0ub4dor", "Tr0ub4dor"),
    ("Passwort: geheim123", "geheim123"),
    (
        "AccountName=x;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==;EndpointSuffix=y",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
    ),
    ("Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=Ab3dEf6hIj9lMn0pQr2t", "Ab3dEf6hIj9lMn0pQr2t"),
    ("Server=db;User Id=sa;Password=P@ssw0rd;Encrypt=yes", "P@ssw0rd"),
    (
        "https://acct.blob.core.windows.net/c/b?sv=2022-11-02&sr=b&sig=Z%2FRHIX5Xcg0Mq2rqI3OlWTjEg2tYkboXr1P9ZUXDtkk%3D",
        "Z%2FRHIX5Xcg0Mq2rqI3OlWTjEg2tYkboXr1P9ZUXDtkk%3D",
    ),
    (
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Signature=98f1c0d8c4fa98f1c0d8c4fa98f1c0d8c4fa",
        "98f1c0d8c4fa98f1c0d8c4fa98f1c0d8c4fa",
    ),
    ("https://hooks.slack.com/services/T01ABCDEF/B02GHIJKL/" + _some(ALNUM, 24), "T01ABCDEF"),
    ("https://discord.com/api/webhooks/123456789012345678/" + _some(URL, 68), "ZZ-none"),
    ("api.telegram.org/bot123456789:AA" + _some(URL, 33) + "/getMe", "123456789:AA"),
    ("//registry.npmjs.org/:_authToken=abcdef12-3456-7890-abcd-ef1234567890", "abcdef12-3456-7890-abcd-ef1234567890"),
    ("wifi passphrase: 'blue mountain river 9'", "blue mountain river 9"),
    ("$env:API_TOKEN = 'abc123def456'", "abc123def456"),
    ("password => 'hunter2',", "hunter2"),
    ("config['password'] = 'hunter2'", "hunter2"),
    ('<add key="password" value="x"/> password="hunter2"', "hunter2"),
]

HARMLESS: list[str] = [
    "Found 10 relevant results including official docs and tutorials",
    "The password must have at least 8 letters.",
    "Password: must contain a digit",
    "Error: password is required",
    "Invalid password or token",
    "password: required",
    "password: string (optional)",
    "token: string",
    "tokens: 150, prompt_tokens=1200, max_tokens=4096",
    "nextPageToken: CAoQAA1234567890abcdef",
    '{"next_page_token": "CAoQAA1234567890abcdef"}',
    "continuation_token=abc1234567890def",
    "eos_token: <|endoftext|>",
    "API key missing; set OPENAI_API_KEY",
    "export OPENAI_API_KEY=$OPENAI_API_KEY",
    "password=os.environ['DB_PASSWORD']",
    'api_key = os.getenv("API_KEY")',
    "token = get_token(user)",
    "password = self.config.password",
    "secret: ${{ secrets.DEPLOY_KEY }}",
    "password: <your password>",
    "api_key=YOUR_API_KEY_HERE",
    "connect(username=username, password=password, credentials=credentials)",
    "self.key_password = key_password",
    "password=****",
    "password: null",
    '{"password": null, "token": ""}',
    "const token = req.headers.authorization",
    "git commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "550e8400-e29b-41d4-a716-446655440000",
    '"integrity": "sha512-' + base64.b64encode(bytes(range(64))).decode() + '"',
    "task-list-of-things-1234567890-abcdef",
    "risk-assessment-for-2025-third-quarter-v2",
    "import sk-learn; pip install scikit-learn==1.4.2",
    "https://example.com/a:b@c",
    "http://localhost:8080/users/@me",
    "http://127.0.0.1:8002/docs?x=1",
    "git@github.com:owner/repo.git",
    "ssh://git@github.com/owner/repo.git",
    "mailto:bob@example.com",
    "see https://medium.com/@someone/an-article-about-tokens-1234",
    "a basic understanding of JavaScript/TypeScript is enough",
    "Basic Authentication is deprecated",
    "the bearer of good news arrived; bearer responsibilities are listed below",
    "Authorization: required",
    "authorization: see section 4",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "base64: SGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5yT8cQ bob@host",
    "ISO date 2025-03-05T11:00:00Z, version 1.0.21, E-4711",
    "arn:aws:iam::123456789012:role/deploy",
    "AKIA is how ids of access keys begin",
    "the secret of success: patience",
    "The secret is to keep going",
    "passport: X1234567, passenger: Bob, compass: north, bypass: on",
    "the author: Bob; authority: none; auth: none",
    "key: value; primary_key: id; foreign_key=user_id; keyboard: qwerty",
    "cookie recipes: flour, sugar",
    "Cookies are used on this page",
    "session: 5 minutes; session_timeout=300",
    "token_count=532 token_cost: 150 tokenizer=cl100k_base",
    "credentials not found in ~/.aws/credentials",
    "Set a secret with `gh secret set NAME`",
    "def login(user, password): ...",
    "SELECT password_hash FROM users WHERE id = 7",
    "--password-file /run/secrets/db",
    "密码错误，请重试",
    "请输入密码",
    "访问令牌已过期",
    "fc-list lists fonts; sl.py draws a train; hf_hub_download is a function",
    "pul-request and pat-terns and key-value stores",
    "eyJ is how base64 of JSON begins",
    "The user pressed -p and then -u",
    '{"status": "ok", "items": [1, 2, 3], "secretary": "Alice"}',
    "10:30:45 INFO request done in 0.23s id=8f14e45fceea167a5a36dedd4bea2543",
    "email=bob@example.com&name=Bob&country=DE",
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 'token'",
    "pk_live_51H8x2eKZvPublishable is for browsers",
    "Content-Security-Policy: default-src 'self'",
    "node_modules/.bin/eslint --max-warnings=0",
    "https://example.com/reset?next=/account/password",
    "X-Request-Id: 7b3f2c1a9d8e4f6a",
    "commit -m 'Rotate token handling' && git push",
]


def test_no_secret_of_a_known_shape_is_missed() -> None:
    missed = [
        (name, place) for name, tokens in SHAPES.items() for token in tokens for place in PLACES if token in mask(place.format(token)).text
    ]
    tried = sum(len(t) for t in SHAPES.values()) * len(PLACES)
    print(f"shapes: {tried} tried, {len(missed)} missed")
    assert missed == []


def test_no_secret_under_a_telling_name_is_missed() -> None:
    missed = [text for text, secret in NAMED if secret in mask(text).text or mask(text).count == 0]
    print(f"names: {len(NAMED)} tried, {len(missed)} missed")
    assert missed == []


def test_private_keys_are_masked_whole_and_cut_off() -> None:
    for kind in (
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "EC PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
        "ENCRYPTED PRIVATE KEY",
    ):
        pem = _pem(kind)
        for text in (pem, f"before\n{pem}\nafter", json.dumps({"private_key": pem}), pem[: len(pem) // 2], pem.replace("\n", "\\n")):
            masked = mask(text)
            assert masked.count >= 1
            assert not any(line in masked.text for line in pem.split("\n")[1:6]), kind
    assert mask(f"before\n{_pem('PRIVATE KEY')}\nafter").text == "before\n[masked:private-key]\nafter"


def test_an_aws_secret_beside_its_id_is_masked() -> None:
    identifier, secret = "AKIA" + _some(UPPER32, 16), "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    assert secret not in mask(f"bob,{identifier},{secret}").text


def test_few_harmless_texts_are_masked() -> None:
    hit = [(text, mask(text).text) for text in HARMLESS if mask(text).count]
    print(f"harmless: {len(HARMLESS)} tried, {len(hit)} masked")
    assert len(hit) <= len(HARMLESS) // 50, hit


def test_a_json_value_is_masked_by_its_names_and_its_text() -> None:
    value = {
        "user": "bob",
        "password": "hunter2",
        "pin": 1,
        "nested": {"headers": {"Authorization": "Bearer zzz", "Accept": "*/*"}, "apiKey": "abcdef12"},
        "argv": ["mysql", "--password", "hunter2", "--host", "db"],
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "/root"}],
        "passwords": ["one1", "two2"],
        "url": "https://bob:hunter2@example.com",
        "max_tokens": 4096,
        "pageToken": "CAoQAA1234567890",
        "numbers": [1, 2.5, None, True],
        "secret": {"value": "abcdefgh"},
    }
    masked = mask_value(value)
    text = json.dumps(masked.value)
    assert [s for s in ("hunter2", "zzz", "abcdef12", "one1", "abcdefgh") if s in text] == []
    assert [s for s in ('"max_tokens": 4096', "CAoQAA1234567890", '"Accept": "*/*"', "/root") if s not in text] == []
    assert masked.count == 9


def test_a_numeric_password_is_masked_and_a_count_is_not() -> None:
    assert mask_value({"password": 123456, "count": 7}).value == {"password": "[masked:password]", "count": 7}


def test_a_secret_in_a_key_is_masked() -> None:
    token = SHAPES["github"][0]
    assert token not in json.dumps(mask_value({token: 1}).value)


def test_masking_twice_changes_nothing() -> None:
    texts = (
        [text for text, _ in NAMED] + [place.format(t) for ts in SHAPES.values() for t in ts for place in PLACES] + [_pem("PRIVATE KEY")]
    )
    for text in texts:
        once = mask(text)
        again = mask(once.text)
        assert (again.text, again.count) == (once.text, 0)


def test_a_value_nested_too_deep_is_refused() -> None:
    value: object = "x"
    for _ in range(70):
        value = [value]
    with pytest.raises(InvalidInput, match="nested"):
        mask_value(value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    ["a", "password", "password=", "pass:<", "eyJ", "eyJ.", "sk-", "://", "://a:", "a:b@", "-----BEGIN PRIVATE KEY-----", "-----END ",
     "ghp_", "Bearer ", "cookie: a=", "authorization:", "AKIA" + "A" * 16, "login x password ", '"', "\\", '\\"', "密码", "key-",
     "mysql -", ".", "=", " ", "\u0301", "\ufdfa", "token=", "pat", "MMMM", "sig=", "--token "],
)  # fmt: skip
def test_a_long_text_of_one_thing_is_masked_in_bounded_time(piece: str) -> None:
    text = (piece * (200_000 // len(piece) + 1))[:200_000]
    assert len(mask(text).text) > 0


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from([t for ts in SHAPES.values() for t in ts]))
def test_a_token_between_spaces_is_masked_in_any_text(text: str, token: str) -> None:
    assert token not in mask(f"{text} {token} {text}").text


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda s: st.lists(s) | st.dictionaries(st.text(max_size=12), s),
    )
)
def test_any_json_value_comes_back_as_json(value: object) -> None:
    masked = mask_value(value)
    json.dumps(masked.value)
    if masked.count == 0:
        assert masked.value == value
