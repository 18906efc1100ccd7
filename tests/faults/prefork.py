"""Commands of `fovea` without the time it takes to load: fovea_prefork (prefork.cc) has loaded it, and forks for each.

Without that program a command is a process of its own, and everything else is the same.
"""

import os
import selectors
import signal
import socket
import subprocess
import threading
import time


class Forked:
    """A call that a server has begun; as much of subprocess.Popen as is needed."""

    def __init__(self, server, arguments, folder, variables, limits):
        self.server, self.arguments, self.returncode = server, arguments, None
        pipes = [os.pipe(), os.pipe()]
        fields = [f"d{folder}"] if folder else []
        fields += [f"v{name}={value}" for name, value in variables.items()] + [f"l{what}={number}" for what, number in limits]
        fields += [f"a{argument}" for argument in arguments]
        socket.send_fds(server.socket, [b"".join(os.fsencode(field) + b"\0" for field in fields)], [written for _, written in pipes])
        for _, written in pipes:
            os.close(written)
        self.said = {read: b"" for read, _ in pipes}
        self.open = selectors.DefaultSelector()
        for read in self.said:
            self.open.register(read, selectors.EVENT_READ)
        self.pid = server.number()

    def communicate(self, timeout):
        """Standard output and standard error. Where it takes longer it runs on, and may be waited for again."""
        end = time.monotonic() + timeout
        while self.open.get_map():
            ready = self.open.select(max(0, end - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(self.arguments, timeout)
            for key, _ in ready:
                self.read(key.fd)
        try:
            self.server.socket.settimeout(max(0.001, end - time.monotonic()))
            self.returncode = os.waitstatus_to_exitcode(self.server.number())
        except TimeoutError:
            raise subprocess.TimeoutExpired(self.arguments, timeout) from None
        finally:
            self.server.socket.settimeout(None)
        return tuple(self.said.values())

    def read(self, fd):
        text = os.read(fd, 1 << 16)
        self.said[fd] += text
        if not text:
            self.open.unregister(fd)
            os.close(fd)


class Server:
    """One fovea_prefork."""

    def __init__(self, program, environment):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen([program], stdin=theirs, env=environment)

    def number(self):
        text = self.socket.recv(64)
        if not text:
            raise RuntimeError("fovea_prefork ended")
        return int(text)

    def close(self):
        self.socket.close()
        self.process.wait()


class Commands:
    """Calls of a command from several threads; `program` is fovea_prefork, or nothing. Of the environment, what libraries read while they are
    loaded is that of all calls."""

    def __init__(self, command, program="", **environment):
        self.command, self.program, self.environment = command, program, dict(os.environ) | environment
        self.own, self.servers, self.lock = threading.local(), [], threading.Lock()

    def server(self):
        if not hasattr(self.own, "server"):
            self.own.server = Server(self.program, self.environment)
            with self.lock:
                self.servers.append(self.own.server)
        return self.own.server

    def start(self, arguments, folder=None, variables={}, limits=()):
        """Leads a session of its own. `limits`: pairs for setrlimit."""
        if self.program:
            return Forked(self.server(), list(map(str, arguments)), folder, variables, limits)
        import resource
        set_limits = (lambda: [resource.setrlimit(what, (number, number)) for what, number in limits]) if limits else None
        return subprocess.Popen([self.command, *arguments], cwd=folder, env=self.environment | variables, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=set_limits, start_new_session=True)

    def run(self, arguments, patience, **how):
        """Ends it where it takes longer than its patience: subprocess.TimeoutExpired."""
        process = self.start(arguments, **how)
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=60)
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def close(self):
        for server in self.servers:
            server.close()
