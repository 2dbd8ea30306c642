"""What every test process needs before it starts."""

import signal
import sys

import pytest

# A shell that starts the suite in the background has it ignore interrupts, and children inherit
# that: tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_figures_of_other_tests():
    """Each test finds none, whatever ran before it in the same process."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
