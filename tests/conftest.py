"""What every test process needs before it starts."""

import signal

# A shell that starts the suite in the background has it ignore interrupts, and children inherit
# that: tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
