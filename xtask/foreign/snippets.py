"""The Python of docs/resp.md as it is printed, against an idle queue and a server that pauses."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import redis

PORT = 7789
PAUSE = 13
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "resp.md"


def snippet():
    """The block with the worker. Waits are shorter, so that several of them end."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.M | re.S)
    [block] = [block for block in blocks if "RESERVE" in block]
    return block.replace('"30s"', '"1s"').replace('"DELAY", "30m"', '"DELAY", "3s"')


class Snippet(unittest.TestCase):
    def setUp(self):
        self.client = redis.Redis(port=PORT, decode_responses=True)
        self.client.execute_command("PURGE", "mails")

    def tearDown(self):
        self.client.close()

    def test_the_loop_survives_quiet_times_and_works(self):
        with subprocess.Popen([sys.executable, "-u", "-c", snippet()], stdout=subprocess.PIPE, text=True) as loop:
            try:
                # Its own job is due after three empty answers.
                self.assertIn("attempt 1 of", loop.stdout.readline())
                # The other connection puts at once while the worker waits.
                started = time.monotonic()
                self.client.execute_command("PUT", "mails", "at once")
                self.assertIn("at once", loop.stdout.readline())
                self.assertLess(time.monotonic() - started, 0.9)
                self.assertIsNone(loop.poll())
            finally:
                loop.kill()

    def test_a_put_with_a_key_is_one_job_even_if_the_server_pauses(self):
        names = {}
        exec(snippet().split("while True:")[0], names)
        self.client.execute_command("PURGE", "mails")
        put = ("PUT", "mails", "hello", "KEY", "mail-43", "DELAY", "1h")
        server = int(os.environ["DORMOUSE_PID"])
        os.kill(server, signal.SIGSTOP)
        try:
            started = time.monotonic()
            with self.assertRaises(redis.TimeoutError):
                names["producer"].execute_command(*put)
            # The client did not try again by itself: that would take several time-outs.
            self.assertLess(time.monotonic() - started, 8)
            time.sleep(max(0, PAUSE - (time.monotonic() - started)))
        finally:
            os.kill(server, signal.SIGCONT)
        names["producer"].execute_command(*put)
        stats = self.client.execute_command("LIST", "mails", "delayed")
        self.assertEqual(str(stats).count("mail-43"), 1)


if __name__ == "__main__":
    unittest.main()
