"""Where servers are: URLs, and the headers that each request to them has."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from .errors import Invalid

DEFAULT_URL = "http://127.0.0.1:7788"


@dataclass(frozen=True)
class Address:
    """One server."""

    url: str
    host: str
    port: int
    #: The path before the API, without a slash at its end.
    base: str
    tls: ssl.SSLContext | None
    #: `host`, `authorization` and the like, each with its line end.
    headers: bytes

    def __str__(self) -> str:
        return self.url


def read_addresses(
    urls: str | Sequence[str] | None,
    token: str | None,
    tls: ssl.SSLContext | None,
    ca_file: str | None,
) -> list[Address]:
    """Read URLs; without any, the environment's DORMOUSE_URL, else the local server."""
    if urls is None:
        urls = os.environ.get("DORMOUSE_URL") or DEFAULT_URL
    listed = [urls] if isinstance(urls, str) else list(urls)
    if not listed:
        raise Invalid("the list of URLs is empty; give at least one")
    if token is None:
        token = _token_of_environment()
    if token is not None and (not token.isascii() or not token.isprintable()):
        raise Invalid("the token has characters that a header cannot carry; was a newline read?")
    if tls is None and any(url.lower().startswith("https:") for url in listed):
        tls = _trust(ca_file or os.environ.get("DORMOUSE_CA_FILE"))
    return [_read(url, token, tls) for url in listed]


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise Invalid(f"the CA file {ca_file} cannot be read: {error}") from None


def _token_of_environment() -> str | None:
    path = os.environ.get("DORMOUSE_TOKEN_FILE")
    if not path:
        return os.environ.get("DORMOUSE_TOKEN") or None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError as error:
        raise Invalid(f"the file of DORMOUSE_TOKEN_FILE cannot be read: {error}") from None


def _read(url: str, token: str | None, tls: ssl.SSLContext | None) -> Address:
    fix = f"write it like {DEFAULT_URL} or https://queue.example:7788"
    if "://" not in url:
        raise Invalid(f'the URL "{url}" has no scheme; {fix}')
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        other = " (this client speaks HTTP, not RESP)" if parts.scheme.startswith("redis") else ""
        raise Invalid(f'the URL "{url}" is neither http nor https{other}; {fix}')
    if parts.username or parts.password:
        raise Invalid("the URL has a user or password; give the token as token=...")
    if parts.query or parts.fragment:
        raise Invalid(f'the URL "{url}" has a query or fragment; {fix}')
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise Invalid(f'the URL "{url}" has no good port; {fix}') from None
    if not parts.hostname:
        raise Invalid(f'the URL "{url}" has no host; {fix}')
    headers = f"host: {parts.netloc}\r\naccept: application/json\r\n"
    if token is not None:
        headers += f"authorization: Bearer {token}\r\n"
    return Address(
        url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        host=parts.hostname,
        port=port,
        base=parts.path.rstrip("/"),
        tls=tls if parts.scheme == "https" else None,
        headers=headers.encode("ascii"),
    )


def path(*parts: str) -> str:
    """Join parts of a path, each percent-encoded whole."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)
