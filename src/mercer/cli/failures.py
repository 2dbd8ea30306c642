"""Exit codes, errors of a job and of its options, and signals as errors."""

import signal

SUCCESS, FAILED, WRONG_USAGE = 0, 1, 2


class JobError(Exception):
    """The job cannot be done; the message says why and what to do."""


class UsageError(Exception):
    """The options contradict each other; the message says which and what to give instead.

    Parameters
    ----------
    message : str
    command : str or None
        The command whose help to read, such as ``mercer fit``; None for the one that runs.
    """

    def __init__(self, message: str, command: str | None = None):
        super().__init__(message)
        self.command = command


class Stopped(BaseException):
    """A signal asks to stop.

    Not KeyboardInterrupt, on which online methods return the model so far: a command that is
    stopped leaves nothing behind.
    """

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        # What shells report for a program that a signal has ended.
        self.exit_code = 128 + number
