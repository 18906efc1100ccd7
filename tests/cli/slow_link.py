"""A cable between two network namespaces that delays every packet and loses some, where the kernel has no `tc netem`: a TUN device in each, and a thread
that carries packets from one to the other."""

import collections
import fcntl
import os
import random
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h


def tun(name):
    """A new device, as a file of its packets. OSError where that is not permitted."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(handle)
        raise
    return handle


class SlowLink:
    def __init__(self, namespaces, devices, addresses, delay, loss):
        self.delay, self.loss, self.carried, self.lost = delay, loss, 0, 0
        self.handles = [tun(device) for device in devices]
        for namespace, device, address in zip(namespaces, devices, addresses):
            for command in (["link", "set", device, "netns", namespace], ["-n", namespace, "addr", "add", f"{address}/24", "dev", device],
                            ["-n", namespace, "link", "set", device, "up"]):
                subprocess.run(["ip", *command], check=True, capture_output=True, text=True)
        self.end, self.stop = os.pipe()
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def close(self):
        os.close(self.stop)
        self.thread.join()
        for handle in (*self.handles, self.end):
            os.close(handle)

    def carry(self):
        drawn = random.Random(1)
        first, second = self.handles
        underway = collections.deque()  # when it arrives, where, and the packet
        while True:
            wait = max(0, underway[0][0] - time.monotonic()) if underway else None
            ready, _, _ = select.select([*self.handles, self.end], [], [], wait)
            if self.end in ready:
                return
            now = time.monotonic()
            for handle in ready:
                packet = os.read(handle, 65536)
                if drawn.random() < self.loss:
                    self.lost += 1
                else:
                    underway.append((now + self.delay, second if handle == first else first, packet))
            while underway and underway[0][0] <= time.monotonic():
                _, handle, packet = underway.popleft()
                try:
                    os.write(handle, packet)
                    self.carried += 1
                except OSError:  # the device is down, or full
                    self.lost += 1
