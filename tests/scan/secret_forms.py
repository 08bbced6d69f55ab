"""Forms of secrets, and of values that are none, generated from random characters.

No file of this project contains a secret: every value is made when a test runs, and the prefixes
are split so that scanners of repositories do not report this file.
"""

import random
import string
import uuid
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256

Form = Callable[[random.Random], tuple[str, str]]
"""Returns a text and the secret in it."""

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "-_"
PASSWORD = ALNUM + "!@#%^&*_+=?"


def some(chance: random.Random, alphabet: str, length: int) -> str:
    return "".join(chance.choice(alphabet) for _ in range(length))


def password(chance: random.Random, length: int = 16) -> str:
    """A generated password: all kinds of characters, a letter first."""
    parts = [chance.choice(string.ascii_letters), some(chance, PASSWORD, length - 4)]
    tail = [chance.choice(kind) for kind in (string.ascii_lowercase, string.ascii_uppercase)]
    return "".join([*parts, chance.choice(string.digits), *tail])


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _pem(chance: random.Random, name: str, lines: int = 12, header: str = "") -> str:
    body = "\n".join(some(chance, BASE64, 64) for _ in range(lines))
    dashes = "-" * 5
    kind = f"{name}PRIVATE KEY{' BLOCK' if name.startswith('PGP') else ''}"
    return f"{dashes}BEGIN {kind}{dashes}\n{header}{body}\n{dashes}END {kind}{dashes}"


def _encryption(chance: random.Random) -> str:
    return f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{some(chance, UPPER, 32)}\n\n"


def _form(template: str, *parts: str | tuple[str, int] | Callable[[random.Random], str]) -> Form:
    """A form of a secret of these parts: texts, numbers of characters, and what makes a text."""

    def form(chance: random.Random) -> tuple[str, str]:
        secret = ""
        for part in parts:
            if isinstance(part, tuple):
                secret += some(chance, *part)
            else:
                secret += part if isinstance(part, str) else part(chance)
        return template.replace("$", secret), secret

    return form


def _token(prefix: str, alphabet: str, length: int, template: str = "$") -> Form:
    return _form(template, prefix, (alphabet, length))


def _uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


SECRET_FORMS: dict[str, Form] = {
    # Clouds
    "aws_access_key_id": _token("AK" + "IA", UPPER, 16, "aws_access_key_id = $"),
    "aws_secret_env": _token("", BASE64, 40, "AWS_SECRET_ACCESS_KEY=$"),
    "aws_secret_ini": _token("", BASE64, 40, "[default]\naws_secret_access_key = $"),
    "aws_session_token": _token("IQoJ", BASE64, 300, "export AWS_SESSION_TOKEN=$"),
    "azure_account_key": _form(
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=$;EndpointSuffix=core.windows.net",
        (BASE64, 86),
        "==",
    ),
    "azure_shared_access_key": _form(
        "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=$",
        (BASE64, 43),
        "=",
    ),
    "azure_sas": _form(
        "https://a.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&se=2031-01-01&sp=r&sig=$",
        (ALNUM, 40),
        "%2B",
        (ALNUM, 2),
        "%3D",
    ),
    "azure_client_secret": _form("client: $", (ALNUM, 3), "8Q~", (ALNUM, 34)),
    "google_api_key": _token("AI" + "za", URL_SAFE, 35, 'key: "$"'),
    "google_oauth_secret": _token("GOC" + "SPX-", URL_SAFE, 28),
    "google_oauth_token": _token("ya" + "29.", URL_SAFE, 80),
    "firebase_server_key": _form("FCM: $", "AAAA", (URL_SAFE, 7), ":", (URL_SAFE, 140)),
    "heroku_api_key": _form("HEROKU_API_KEY=$", _uuid),
    "heroku_token": _token("HRKU" + "-AA", URL_SAFE, 58),
    "digitalocean_token": _token("dop" + "_v1_", HEX, 64),
    "cloudflare_token": _token("", URL_SAFE, 40, "CLOUDFLARE_API_TOKEN: '$'"),
    # Code and packages
    "github_classic": _token("gh" + "p_", ALNUM, 36, "git clone https://$@github.com/a/b"),
    "github_fine_grained": _form(
        "GITHUB_TOKEN=$", "github", "_pat_", (ALNUM, 22), "_", (ALNUM, 59)
    ),
    "gitlab": _token("gl" + "pat-", URL_SAFE, 20, "PRIVATE-TOKEN: $"),
    "npm": _token("np" + "m_", ALNUM, 36),
    "npmrc": _form("//registry.npmjs.org/:_authToken=$", _uuid),
    "pypi": _token("py" + "pi-AgEIcHlwaS5vcmc", URL_SAFE, 90, "password = $"),
    "docker_token": _token("dckr" + "_pat_", URL_SAFE, 27),
    "docker_login": _form(
        '{"auths": {"index.docker.io": {"auth": "$"}}}', lambda c: _base64("me:" + password(c))
    ),
    "atlassian": _token("AT" + "ATT3xFfGF0", URL_SAFE, 170),
    # Infrastructure
    "vault": _token("hv" + "s.", ALNUM, 24, "VAULT: $"),
    "terraform": _form('token = "aB3dE5gH7jK9mN.atlasv1.$"', (ALNUM, 64)),
    "databricks": _token("da" + "pi", HEX, 32),
    "doppler": _token("dp" + ".pt.", ALNUM, 43),
    "kubeconfig_key": _form("    client-key-data: $", lambda c: _base64(_pem(c, "RSA "))),
    "kubernetes_secret": _form("data:\n  password: $", lambda c: _base64(password(c, 18))),
    "datadog": _token("", HEX, 32, "DD_API_KEY=$"),
    "newrelic": _token("NR" + "AK-", UPPER, 27),
    "sentry_dsn": _form("dsn: https://$@o4505.ingest.sentry.io/450512", (HEX, 32)),
    "sentry_token": _token("sn" + "tryu_", HEX, 64),
    # Messages
    "slack_bot": _form("SLACK: $", "xo", "xb-", (string.digits, 12), "-", (ALNUM, 24)),
    "slack_webhook": _form(
        "https://hooks.slack.com/services/$", "T", (UPPER, 8), "/B", (UPPER, 8), "/", (ALNUM, 24)
    ),
    "discord_bot": _form("bot: $", "M", (ALNUM, 23), ".", (ALNUM, 6), ".", (ALNUM, 38)),
    "telegram_bot": _form(
        "https://api.telegram.org/bot$/getMe", ("123456789", 10), ":AA", (URL_SAFE, 33)
    ),
    "twilio_key": _token("SK", HEX, 32),
    "twilio_token": _token("", HEX, 32, "TWILIO_AUTH_TOKEN=$"),
    "sendgrid": _form("k: $", "S", "G.", (ALNUM, 22), ".", (ALNUM, 43)),
    "mailgun": _token("ke" + "y-", HEX, 32),
    # Payment and shops
    "stripe": _token("sk" + "_live_", ALNUM, 24),
    "shopify": _token("shp" + "at_", HEX, 32),
    "square": _token("sq0" + "atp-", URL_SAFE, 22),
    # Models and tools
    "openai": _token("sk" + "-proj-", URL_SAFE, 120),
    "anthropic": _token("sk" + "-ant-api03-", URL_SAFE, 95),
    "huggingface": _token("h" + "f_", string.ascii_letters, 34),
    "linear": _token("lin" + "_api_", ALNUM, 40),
    "notion": _form("n: $", "nt", "n_", (string.digits, 11), (ALNUM, 35)),
    # Keys
    "rsa_key": _form("$", lambda c: _pem(c, "RSA ")),
    "encrypted_rsa_key": _form("$", lambda c: _pem(c, "RSA ", header=_encryption(c))),
    "openssh_key": _form("$", lambda c: _pem(c, "OPENSSH ")),
    "pgp_key": _form("$", lambda c: _pem(c, "PGP ", header="Version: GnuPG v2\n\n")),
    "json_key": _form(
        '{"type": "service_account", "private_key": "$"}',
        lambda c: _pem(c, "").replace("\n", "\\n"),
    ),
    "age_key": _token("AGE-SECRET" + "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "json_web_token": _form(
        "jwt: $",
        _base64('{"alg":"HS256"}').rstrip("="),
        lambda c: "." + _base64(f'{{"sub":"{some(c, HEX, 12)}"}}').rstrip("=") + ".",
        (URL_SAFE, 43),
    ),
    # A name or a place calls them secrets.
    "env_password": _form("DB_PASSWORD=$", password),
    "yaml_password": _form("database:\n  user: app\n  password: $\n", password),
    "json_password": _form('{"user": "app", "password": "$"}', password),
    "properties_password": _form("spring.datasource.password=$", (ALNUM, 14)),
    "sql_server": _form("Server=db;User Id=app;Password=$;Encrypt=True", (ALNUM, 16)),
    "xml_password": _form("<server><password>$</password></server>", (ALNUM, 14)),
    "php_constant": _form("define('DB_PASSWORD', '$');", password),
    "python_api_key": _token("", ALNUM, 32, 'api_key = "$"'),
    "client_secret": _token("", URL_SAFE, 40, "client_secret: $"),
    "django_secret": _form("SECRET_KEY = '$'", "k", (ALNUM + "!@#%^&*(-_=+)", 49)),
    "bearer_header": _token("", URL_SAFE, 40, "Authorization: Bearer $"),
    "bearer_curl": _token("", HEX, 40, 'curl -H "Authorization: Bearer $" https://x.y'),
    "basic_header": _form("Authorization: Basic $", lambda c: _base64("app:" + password(c))),
    "api_key_header": _token("", ALNUM, 32, "X-Api-Key: $"),
    "curl_user": _form("curl -u admin:$ https://x.y/z", (ALNUM, 16)),
    "password_option": _form("login --password $ --user app", (ALNUM, 16)),
    "postgres_url": _form("postgres://app:$@db.internal:5432/app", (ALNUM, 18)),
    "https_url": _form("https://me:$@git.internal/a.git", (ALNUM, 18)),
    "redis_url": _form("REDIS_URL=redis://:$@cache:6379/0", (ALNUM, 20)),
    "netrc": _form("machine api.internal login me password $", (ALNUM, 16)),
    "pgpass": _form("db.internal:5432:app:owner:$", (ALNUM, 16)),
}


def _harmless(chance: random.Random) -> dict[str, str]:
    """Lines with identifiers, hashes, images, examples and placeholders; no secrets."""
    word = chance.choice("config settings self options app request vault env".split())
    name = chance.choice(["DB_PASSWORD", "API_KEY", "AUTH_TOKEN", "CLIENT_SECRET", "SECRET_KEY"])
    blanks = "changeme change-me CHANGE_ME xxxxxxxxxxxxxxxx ******** TODO none"
    blank = chance.choice(blanks.split())
    number = chance.randint(1, 999)
    identifier = _uuid(chance)
    digest = sha256(chance.randbytes(8))
    image = b64encode(chance.randbytes(chance.randint(90, 900))).decode()
    return {
        "uuid": f"request_id: {identifier}",
        "uuid in JSON": f'{{"id": "{identifier}", "tenant_id": "{identifier}"}}',
        "commit": f"commit {digest.hexdigest()[:40]}",
        "digest": f"image: app@sha256:{digest.hexdigest()}",
        "integrity": f'"integrity": "sha512-{b64encode(digest.digest() * 2).decode()}"',
        "etag": f'ETag: "{digest.hexdigest()[:32]}"',
        "md5": f"{digest.hexdigest()[:32]}  release-{number}.tar.gz",
        "image": f"![x](data:image/png;base64,iVBORw0KGgo{image})",
        "font": f"src: url(data:font/woff2;base64,{image})",
        "certificate": f"-----BEGIN CERTIFICATE-----\n{image}\n-----END CERTIFICATE-----",
        "public key": f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB{image} me@laptop",
        "nanoid": f"ref {some(chance, URL_SAFE, 21)}",
        "ulid": f"event 01{some(chance, UPPER, 24)}",
        "arn": f"arn:aws:iam::{some(chance, string.digits, 12)}:role/app-{number}",
        "key id": f'"private_key_id": "{digest.hexdigest()[:40]}"',
        "account": f"TWILIO_SID=AC{digest.hexdigest()[:32]}",
        "published key": f"pk_live_{some(chance, ALNUM, 24)}",
        "aws example": "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE",
        "aws secret example": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY"
        + "EXAMPLEKEY",
        "blank": f"{name}={blank}",
        "blank in YAML": f"password: {blank}  # {number}",
        "your": f'{name} = "<your {name.lower()} {number}>"',
        "your words": f"token: your-token-here-{number}",
        "variable": f"{name}=${{{name}_{number}}}",
        "shell": f"{name}=$({word} read {number})",
        "python": f'password = os.environ["{name}_{number}"]',
        "attribute": f"api_key={word}.api_key_{number}",
        "call": f"token = get_token{number}('{word}')",
        "javascript": f"secret: process.env.{name}_{number}",
        "actions": f"token: ${{{{ secrets.{name}_{number} }}}}",
        "vault": f"password: vault:secret/data/{word}{number}#password",
        "word": f"password: {word}-password-{number}",
        "numbered": f"DB_PASSWORD=password{number}",
        "hashed": f"password: $2b$12${some(chance, ALNUM, 53)}",
        "type": f"def f(password: str, token: Token{number} | None = None) -> None: ...",
        "prose": f"The password: at least {number} characters, one digit and one sign.",
        "header": "Authorization: Bearer <token>",
        "header name": f"Authorization: Bearer ACCESS_TOKEN_{number}",
        "basic example": "Authorization: Basic "
        + _base64(chance.choice(["user:pass", "user:password"])),
        "url": f"postgres://user:password@localhost:{5000 + number}/db",
        "url variable": f"https://user:${{PASSWORD}}@host{number}/x",
        "port": f"http://localhost:{5000 + number}/a@b",
        "truncated": "token: ghp_" + some(chance, ALNUM, 4) + "...",
        "x token": "GITHUB_TOKEN=ghp_" + "x" * 36,
        "empty key": "-----BEGIN RSA PRIVATE"
        + " KEY-----\n...\n-----END RSA PRIVATE"
        + " KEY-----",
        "jwt example": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
        + "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0."
        + some(chance, URL_SAFE, 43),
        "option": f"run --token TOKEN --password-file /run/secrets/db{number}",
        "version": f"token-cli: 1.{number}.0-rc1",
        "setting": f"max_token: {number}; token_type: bearer{number}; secretName: db-credentials-v{number}",
        "address": f"address: 2606:2800:21f:cb07:6820:80da:{number:x}:8b2c",
    }


def harmless_lines(count: int, seed: int = 7) -> list[tuple[str, str]]:
    """Lines without secrets, each with the name of its form; every form in turn."""
    chance = random.Random(seed)
    lines: list[tuple[str, str]] = []
    while len(lines) < count:
        lines += _harmless(chance).items()
    return lines[:count]
