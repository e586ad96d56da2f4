"""What all verbs share: a call is sent until it is answered, or until it must not be."""
# Made by tools/make_sync.py from _async/_core.py: change that, not this.

from __future__ import annotations

from typing import Any

from .._call import AnswerLost, Call, Trial, read_answer
from .._settings import Settings
from ..errors import DormouseError
from ._io import Pool, sleep
from ._joint import JointPuts


class Core:
    """Sends calls."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = Pool(settings)
        self._joint = JointPuts()
        # The server that answered last is asked first.
        self._favourite = 0

    def _call(self, call: Call) -> Any:
        answer, _ = self._call_told(call)
        return answer

    def _call_told(self, call: Call) -> tuple[Any, bool]:
        """Send a call; tell also whether it was repeated after an answer was lost."""
        trial = Trial(self._settings, call, self._favourite)
        while True:
            try:
                response = self._pool.exchange(trial.address, call)
                answer = read_answer(response)
            except (AnswerLost, DormouseError) as error:
                sleep(trial.failed(error))
            else:
                self._favourite = trial.index
                return answer, trial.lost
