"""type_into.py KEYS PROGRAM ARGUMENT...: types KEYS into a program once it prompts with 'ready> ', and prints all that
its terminal shows until it ends."""

import os
import pty
import signal
import sys

keys, program = sys.argv[1], sys.argv[2:]
signal.alarm(60)  # its end is that of the terminal, and so of the program
child, terminal = pty.fork()
if child == 0:
    os.execvp(program[0], program)
shown = b""
typed = False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:  # nobody has it open any more
        break
    shown += more
    if not typed and b"ready> " in shown:
        os.write(terminal, keys.encode())
        typed = True
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
