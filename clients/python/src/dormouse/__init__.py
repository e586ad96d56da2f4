"""Dormouse, a durable delay queue: put a job now, get it at its time."""

from ._async.client import AsyncClient
from ._sync.client import Client
from .hooks import Hooks, RetryNotice, current_job
from .jobs import Change, Ending, Job, LeasedJob
from .outcome import BadBody, Done, Kill, Release, Retry
from .puts import Backoff, Put, PutResult
from .worker import Tally, Worker

__all__ = [
    "AsyncClient", "Backoff", "BadBody", "Change", "Client", "Done", "Ending", "Hooks", "Job",
    "Kill", "LeasedJob", "Put", "PutResult", "Release", "Retry", "RetryNotice", "Tally", "Worker",
    "current_job",
]  # fmt: skip
