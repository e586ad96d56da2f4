"""The settings that clients and workers share."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from ._address import Address, read_addresses
from .hooks import Hooks
from .times import Span, seconds


@dataclass(frozen=True)
class Settings:
    """How to reach servers, and what to do when they do not answer."""

    addresses: list[Address]
    #: Seconds for one try of a request, beyond the time it asks the server to wait.
    timeout: float
    #: Seconds in which a failed request is sent again.
    retry_for: float
    #: Whether puts without a key get one, so that they can be sent again.
    make_keys: bool
    #: The most connections that are open at the same time.
    connections: int
    hooks: Hooks = field(default_factory=Hooks)


def read_settings(
    url: str | Sequence[str] | None,
    *,
    token: str | None,
    tls: ssl.SSLContext | None,
    ca_file: str | None,
    timeout: Span,
    retry_for: Span,
    make_keys: bool,
    connections: int,
    hooks: Hooks | None,
) -> Settings:
    """Read the arguments of a client."""
    return Settings(
        addresses=read_addresses(url, token, tls, ca_file),
        timeout=seconds(timeout, "timeout"),
        retry_for=seconds(retry_for, "retry_for"),
        make_keys=make_keys,
        connections=connections,
        hooks=hooks or Hooks(),
    )
