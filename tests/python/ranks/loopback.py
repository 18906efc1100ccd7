"""A script of this folder as several ranks on this machine, over loopback."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def answers(script, ranks, *arguments):
    """What each rank prints, JSON; every rank must exit with 0."""
    shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    started = [subprocess.Popen([sys.executable, Path(__file__).with_name(script), *arguments], env={**os.environ, **shared, "RANK": str(rank)},
                                stdout=subprocess.PIPE, text=True) for rank in range(ranks)]  # fmt: skip
    try:
        for one in started:
            out, _ = one.communicate(timeout=300)
            assert one.returncode == 0
            yield json.loads(out)
    finally:
        for one in started:
            one.kill()  # those that wait for one that failed
