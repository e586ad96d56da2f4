"""Topics, schedules, locks and counts, as the server answers them."""

from __future__ import annotations

from ._answer import (
    Answer,
    answers,
    duration,
    items,
    mapping,
    maybe_text,
    maybe_when,
    number,
    text,
    truth,
    when,
)


class Stats(Answer):
    """Counts of jobs by state, and totals, of all topics together."""

    __slots__ = ()

    waiting = number("waiting", 0)
    delayed = number("delayed", 0)
    ready = number("ready", 0)
    urgent = number("urgent", 0)
    leased = number("leased", 0)
    dead = number("dead", 0)
    bytes = number("bytes", 0)
    waiters = number("waiters", 0)
    topics = number("topics", 0)
    locks = number("locks", 0)
    #: How long the longest overdue job has been ready.
    oldest_ready = duration("oldest_ready_ms")
    #: `puts`, `reserves`, `acks`, ... since the start of the server.
    totals = mapping("totals")


class Topic(Stats):
    """Counts, settings and totals of one topic."""

    __slots__ = ()

    topic = text("topic")
    paused = truth("paused")
    #: How long the pause still lasts; zero for one without an end.
    paused_for = duration("paused_ms")
    #: What was set, in ms where it is a span; absent settings have their default.
    settings = mapping("settings")


class TopicPage(Answer):
    """Some topics, and the name after which the next ones begin."""

    __slots__ = ()

    topics = answers("topics", Topic)
    next = maybe_text("next")


class Forecast(Answer):
    """How many jobs come due in each step of a time."""

    __slots__ = ()

    start = when("from")
    end = when("to")
    step = duration("step_ms")
    counts = items("counts")


class ScheduleResult(Answer):
    """What became of the definition of a schedule."""

    __slots__ = ()

    topic = text("topic")
    name = text("name")
    #: `created`, `replaced`, `unchanged` or `duplicate`.
    code = text("code")
    next_at = maybe_when("next_at")
    #: The rule in words.
    words = maybe_text("words")
    #: What the rule does on days when clocks change.
    notes = items("notes")
    #: Grows with each definition that differs.
    version = number("version")


class Schedule(Answer):
    """A rule that repeats, and what became of its ticks."""

    __slots__ = ()

    topic = text("topic")
    name = text("name")
    #: `waiting`, `paused`, `busy` or `broken`.
    state = text("state")
    #: The next ticks.
    next = items("next")
    #: `given`, `missed`, `overlapped`, `skipped`.
    counts = mapping("counts")
    #: The newest job: `id`, `tick`, `put_at`.
    last = mapping("last")
    #: Grows with each definition that differs.
    version = number("version")


class SchedulePage(Answer):
    """Some schedules of a topic; an empty page may have a cursor."""

    __slots__ = ()

    schedules = answers("schedules", Schedule)
    cursor = maybe_text("cursor")


class Preview(Answer):
    """What a rule would do."""

    __slots__ = ()

    ticks = items("ticks")
    local = items("local")
    words = text("words")
    notes = items("notes")


class Lock(Answer):
    """A lock that somebody holds."""

    __slots__ = ()

    name = maybe_text("name")
    owner = maybe_text("owner")
    #: Grows with each grant; a store can refuse an older one.
    fence = text("fence")
    expires_at = when("expires_at")
    #: How often its owner has acquired it.
    depth = number("depth", 1)


class LockPage(Answer):
    """Some locks; an empty page may have a cursor."""

    __slots__ = ()

    locks = answers("locks", Lock)
    cursor = maybe_text("cursor")
