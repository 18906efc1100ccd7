"""A headless Chromium driven over the DevTools protocol, with the standard library alone."""

import base64
import json
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request


def find_chromium():
    names = [os.environ.get("FOVEA_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next((path for path in (shutil.which(name) for name in names if name) if path), None)


def skip_without_chromium():
    """Ends the program with the status that ctest reports as skipped, unless there is a Chromium."""
    if not find_chromium():
        print("skipped: no Chromium (FOVEA_CHROMIUM names one)")
        sys.exit(77)


class WebSocket:
    """Text frames both ways: what DevTools speaks (RFC 6455, a client's side)."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=60)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        self.socket.sendall(
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"no web socket at {url}")

    def _take(self, count):
        while len(self.buffer) < count:
            received = self.socket.recv(1 << 20)
            if not received:
                raise RuntimeError("the browser closed the connection")
            self.buffer += received
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, text):
        payload, mask = text.encode(), secrets.token_bytes(4)
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else struct.pack(">BH", 0xFE, size) if size < 65536 else struct.pack(">BQ", 0xFF, size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(b"\x81" + length + mask + masked)

    def receive(self):
        message = b""
        while True:
            first, second = self._take(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            payload = self._take(size)
            if first & 15 in (0, 1, 2):
                message += payload
                if first & 128:
                    return message.decode()

    def close(self):
        self.socket.close()


class Browser:
    """One page. Console errors, exceptions and requests that leave the machine are collected as they happen."""

    def __init__(self, width=1280, height=900, dark=False):
        self.folder = tempfile.mkdtemp(prefix="fovea-chromium-")
        self.process = subprocess.Popen(
            [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--force-color-profile=srgb",
             f"--user-data-dir={self.folder}", "--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = WebSocket(self._page_address())
        self.number = 0
        self.errors = []
        self.requests = []
        self.events = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.theme("dark" if dark else "light")

    def _page_address(self):
        port_file = os.path.join(self.folder, "DevToolsActivePort")
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"Chromium ended with {self.process.returncode}")
            try:
                with open(port_file, encoding="ascii") as file:
                    port = file.read().split()[0]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
                    pages = [target for target in json.load(answer) if target["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            except (OSError, IndexError):
                pass
            time.sleep(0.05)
        raise RuntimeError("Chromium did not open its DevTools port")

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._note(message)

    def _note(self, message):
        method, body = message.get("method"), message.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = body["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and body["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(argument.get("value", argument.get("description"))) for argument in body["args"]))
        elif method == "Log.entryAdded" and body["entry"]["level"] in ("error", "warning"):
            self.errors.append(body["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = body["request"]["url"]
            if not url.startswith(("data:", "blob:", "about:")):
                self.requests.append(url)

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, name, motion="no-preference"):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name},
                                                          {"name": "prefers-reduced-motion", "value": motion}])

    def open(self, path):
        """A file, or the address of a server."""
        self.call("Page.navigate", url=path if path.startswith("http://") else "file://" + os.path.abspath(path))
        self.wait("document.body && document.body.dataset.ready === 'yes'", seconds=60)

    def run(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def wait(self, expression, seconds=10):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"still false after {seconds} s: {expression}\n" + "\n".join(self.errors))
            time.sleep(0.05)

    def settle(self):
        """Two animation frames: what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, key):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=codes.get(key, ord(key[0])), **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes.get(key, ord(key[0])))

    def mouse(self, x, y, kind="mouseMoved", **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path, selector=None):
        # Grows the window to the page first: sticky and lazy parts then look as they do to a reader.
        clip = {}
        if selector:
            box = self.run(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                           " return [b.left + scrollX, b.top + scrollY, b.width, b.height]; })()")
            clip = {"clip": dict(zip(("x", "y", "width", "height"), box), scale=1)}
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, **clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))

    def close(self):
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def opened_pages(folder, only=()):
    """Pages of a folder (those named, or all), opened one by one at 1280 and 390 wide and in both themes: the browser, and "name-width-theme"."""
    names = only or sorted(name.removesuffix(".html") for name in os.listdir(folder) if name.endswith(".html"))
    for width in (1280, 390):
        for theme in ("light", "dark"):
            browser = Browser(width, 900, theme == "dark")
            for name in names:
                browser.open(os.path.join(folder, name + ".html"))
                yield browser, f"{name}-{width}-{theme}"
            browser.close()
