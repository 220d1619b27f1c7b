"""Kills (SIGKILL) and pauses (SIGSTOP) programs at any instruction."""

from __future__ import annotations

from chaos.context import Context
from chaos.schedule import Fault


def kill(context: Context, fault: Fault) -> bool:
    """Kill a program; it is started again at once."""
    return context.programs[fault.target].kill(fault.kind)


def kill_at_failpoint(context: Context, fault: Fault) -> bool:
    """Kill a program, and let its next life die at a failpoint when it comes there."""
    program = context.programs[fault.target]
    program.failpoint = fault.point
    return program.kill()


def pause(context: Context, fault: Fault) -> bool:
    """Pause a program for the fault's seconds: it goes on without knowing how late it is."""
    program = context.programs[fault.target]
    met = program.pause()
    context.stop.wait(fault.seconds)
    return program.resume() and met
