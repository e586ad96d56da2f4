"""Every RESP verb through redis-py, as people would call it, with RESP2 and RESP3."""

import threading
import time
import unittest

import redis

PORT = 7789


class Verbs:
    """The cases; below they run once for each version of the protocol."""

    protocol = 2

    def setUp(self):
        self.client = redis.Redis(port=PORT, protocol=self.protocol, decode_responses=True)
        self.do = self.client.execute_command
        self.topic = f"{self.id().rsplit('.', 1)[-1]}-{self.protocol}"

    def tearDown(self):
        self.client.close()

    def refused(self, code, *words):
        with self.assertRaises(redis.RedisError) as caught:
            self.do(*words)
        text = f"{type(caught.exception).__name__} {caught.exception}"
        self.assertIn(code, text)

    def test_a_job_is_put_reserved_and_acked(self):
        job_id = self.do("PUT", self.topic, "hello")
        [[topic, got_id, token, attempt, due_at, body, ttr]] = self.do("RESERVE", self.topic)
        self.assertEqual((topic, got_id, int(attempt), body), (self.topic, job_id, 1, "hello"))
        self.assertLess(abs(int(due_at) / 1000 - time.time()), 60)
        self.assertEqual(int(ttr), 60_000)
        self.assertIn(self.do("ACK", token), (True, "OK"))
        self.assertEqual(self.do("ACK", token), "GONE")
        self.assertEqual(self.do("RESERVE", self.topic), [])

    def test_a_delay_is_kept(self):
        started = time.monotonic()
        self.do("PUT", self.topic, "later", "DELAY", "300ms")
        self.assertEqual(self.do("RESERVE", self.topic), [])
        [job] = self.do("RESERVE", self.topic, "WAIT", "10s")
        self.assertGreaterEqual(time.monotonic() - started, 0.3)
        self.do("ACK", job[2])

    def test_a_key_is_taken_once(self):
        [first, created] = self.do("PUT", self.topic, "a", "KEY", "k", "DELAY", "1h")
        [second, duplicate] = self.do("PUT", self.topic, "b", "KEY", "k", "DELAY", "1h")
        self.assertEqual((created, duplicate, first), ("created", "duplicate", second))
        [third, replaced] = self.do(
            "PUT", self.topic, "c", "KEY", "k", "DELAY", "2h", "ON_CONFLICT", "replace"
        )
        self.assertEqual((replaced, third), ("replaced", first))
        self.do("CANCEL", self.topic, "KEY", "k")
        self.refused("NOTFOUND", "CANCEL", self.topic, "KEY", "k")

    def test_failures_come_back_and_die(self):
        self.do("PUT", self.topic, "work", "ATTEMPTS", "2")
        [job] = self.do("RESERVE", self.topic)
        self.do("NACK", job[2], "DELAY", "1", "ERROR", "not yet")
        self.refused("LEASELOST", "ACK", job[2])
        [job] = self.do("RESERVE", self.topic, "WAIT", "5000")
        self.assertEqual(int(job[3]), 2)
        self.do("NACK", job[2], "ERROR", "never")
        self.assertEqual(self.do("RESERVE", self.topic), [])
        self.do("REVIVE", job[1])
        [job] = self.do("RESERVE", self.topic)
        self.do("EXTEND", job[2], "1m")
        self.do("RELEASE", job[2])
        [job] = self.do("RESERVE", self.topic)
        self.do("KILL", job[2])
        self.do("CANCEL", job[1])

    def test_a_job_can_be_moved_and_looked_at(self):
        job_id = self.do("PUT", self.topic, "x", "DELAY", "1h", "PRIORITY", "7", "HEADER", "a", "b")
        self.assertIsNotNone(self.do("GET", job_id))
        self.do("RESCHEDULE", job_id, "DELAY", "0")
        jobs = self.do("RESERVE", self.topic, "FULL")
        job = jobs[0]
        if isinstance(job, list):
            job = dict(zip(job[::2], job[1::2]))
        self.assertEqual(job["id"], job_id)
        self.do("ACK", job["token"])
        self.assertIsNone(self.do("GET", job_id))

    def test_topics_are_paused_and_purged(self):
        for body in ("a", "b"):
            self.do("PUT", self.topic, body)
        self.do("PAUSE", self.topic)
        self.assertEqual(self.do("RESERVE", self.topic), [])
        self.do("RESUME", self.topic)
        self.assertIsNotNone(self.do("STATS", self.topic))
        self.assertIsNotNone(self.do("STATS"))
        self.assertIsNotNone(self.do("LIST", self.topic, "ready"))
        self.assertEqual(int(self.do("PURGE", self.topic)), 2)

    def test_pipelines_are_answered_in_order(self):
        pipeline = self.client.pipeline(transaction=False)
        for number in range(1000):
            pipeline.execute_command("PUT", self.topic, str(number))
        pipeline.execute_command("PUT", self.topic)
        pipeline.execute_command("PING")
        answers = pipeline.execute(raise_on_error=False)
        ids = [int(answer) for answer in answers[:1000]]
        self.assertEqual(ids, sorted(ids))
        self.assertIsInstance(answers[1000], redis.RedisError)
        self.assertTrue(answers[1001])
        jobs = self.do("RESERVE", self.topic, "MAX", "1000")
        self.assertEqual([job[5] for job in jobs], [str(number) for number in range(1000)])
        acked = self.do("ACK", *[job[2] for job in jobs])
        self.assertEqual(len(acked), 1000)

    def test_who_waits_is_woken_by_another_connection(self):
        got = []
        waiter = threading.Thread(
            target=lambda: got.extend(self.do("RESERVE", self.topic, "WAIT", "20s"))
        )
        waiter.start()
        with redis.Redis(port=PORT, protocol=self.protocol) as other:
            other.execute_command("PUT", self.topic, "wake up")
        waiter.join(20)
        self.assertEqual([job[5] for job in got], ["wake up"])
        self.do("ACK", got[0][2])

    def test_locks_are_held_once(self):
        name = self.topic
        self.assertIsNotNone(self.do("LOCK", name, "me", "TTL", "10s"))
        self.refused("", "LOCK", name, "you", "TTL", "10s")
        self.do("UNLOCK", name, "me")
        self.assertIsNotNone(self.do("LOCK", name, "you", "TTL", "10s"))
        self.do("UNLOCK", name, "you")

    def test_what_clients_ask_by_themselves_is_answered(self):
        self.assertTrue(self.client.ping())
        self.assertEqual(self.client.echo("x"), "x")
        self.assertIn("redis_version", self.client.info())
        self.client.client_setname("tester")
        self.assertEqual(self.client.client_getname(), "tester")
        self.assertIsInstance(self.client.client_id(), int)
        self.assertTrue(self.client.command_count() > 10)

    def test_mistakes_are_named(self):
        self.refused("", "PUT")
        self.refused("INVALID", "PUT", "a topic", "x")
        self.refused("INVALID", "PUT", self.topic, "x", "DELAY", "soon")
        self.refused("INVALID", "PUT", self.topic, "x", "COLOUR", "red")
        self.refused("unknown", "PUTT", self.topic, "x")


class Resp2(Verbs, unittest.TestCase):
    protocol = 2


class Resp3(Verbs, unittest.TestCase):
    protocol = 3


if __name__ == "__main__":
    unittest.main()
