"""`fovea serve`: pages to type into and the same as an HTTP service, to friendly and to hostile requests."""

import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMAND = os.environ["FOVEA_COMMAND"]


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([COMMAND, "serve", *map(str, arguments), "--port", "0"], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/", line)[1]) if line else 0

    def ask(self, method, path, body=None, host=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Host": host or f"127.0.0.1:{self.port}"}
        if body is not None:
            headers["Content-Type"] = kind
        connection.request(method, path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response, text

    def post(self, path, text):
        response, answer = self.ask("POST", path, {"input": text})
        return response.status, json.loads(answer)

    def kilobytes(self):
        """Of memory that it has."""
        return int(re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1])

    def send(self, request):
        """What comes back for these bytes and no more."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            parts = []
            try:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(1 << 16):
                    parts.append(part)
            except ConnectionError:  # closed before all of it was sent
                pass
            return b"".join(parts)

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


PIECES = [b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"%00", b"%", b"%2e%2e%2f", b"../", b"\xff", b"Content-Length: 99999999999999999999\r\n", b"Content-Length: -1\r\n",
          b"Content-Length: 3\r\nContent-Length: 4\r\n", b"Transfer-Encoding: chunked\r\n", b"FFFFFFFFFFFFFFFF\r\n", b"0\r\n\r\n", b"Expect: 100-continue\r\n",
          b"Range: bytes=0-,0-\r\n", b"Host: evil.example\r\n", b"Content-Encoding: gzip\r\n", b"Connection: upgrade\r\n", b'{"input":', b"[" * 64, b'"\\ud800"', b"1e999",
          b"Content-Type: multipart/form-data; boundary=x\r\n", b"HTTP/9.9", b"GET http://[::1]:0/ HTTP/1.1\r\n", b"A" * 9000]


def changed_request(draw, port):
    """A request that a browser would send, with a few bytes, pieces or lines of it taken out, doubled or replaced."""
    body = draw.choice([b'{"input": "not good"}', b'{"input": "times\\n10\\n"}', b'{"input": ""}', b"{}", b""])
    place = draw.choice([b"/", b"/runs", b"/words/", b"/words/predict", b"/words/explain", b"/curve/predict", b"/sets/predict"])
    request = bytearray(b"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        draw.choice([b"GET", b"POST", b"HEAD", b"OPTIONS"]), place, port, len(body), body))
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(request))
        end = min(len(request), at + draw.choice([0, 1, 1, 2, 8, 40]))
        request[at:end] = draw.choice([b"", bytes([draw.randrange(256)]), draw.choice(PIECES), bytes(request[at:end]) * 2])
    return bytes(request)


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="fovea-serve-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for system, out, more in (("word-sum", "words", ["--epochs", "2"]), ("nadaraya-watson", "curve", []),
                                  ("deep-sets", "sets", ["--epochs", "1", "--set", "sets=40"])):
            done = subprocess.run([COMMAND, "train", system, "--out", cls.folder / out, "--quiet", *more], text=True, capture_output=True)
            assert done.returncode == 0, done.stderr
        cls.server = Server(cls.folder / "words", cls.folder / "curve", cls.folder / "sets")
        cls.addClassCleanup(cls.server.stop)

    def test_runs_are_listed_and_lead_to_pages(self):
        _, text = self.server.ask("GET", "/runs")
        self.assertEqual([(run["name"], run["system"]) for run in json.loads(text)["runs"]],
                         [("words", "word-sum"), ("curve", "nadaraya-watson"), ("sets", "deep-sets")])
        _, text = self.server.ask("GET", "/")
        for name in ("words", "curve", "sets"):
            self.assertIn(f'href="{name}/"', text)
        response, text = self.server.ask("GET", "/words/")
        self.assertEqual(response.status, 200)
        self.assertIn('<textarea id="live-input"', text)
        self.assertIn("connect-src 'self'", text)
        self.assertEqual(response.getheader("X-Frame-Options"), "DENY")
        response, _ = self.server.ask("GET", "/words")
        self.assertEqual((response.status, response.getheader("Location")), (302, "/words/"))

    def test_answers_are_those_of_predict(self):
        text = "not really great\nawful\n"
        status, answer = self.server.post("/words/predict", text)
        self.assertEqual(status, 200, answer)
        done = subprocess.run([COMMAND, "predict", self.folder / "words", "--json"], input=text, text=True, stdout=subprocess.PIPE)
        self.assertEqual(answer["answers"], [json.loads(line) for line in done.stdout.splitlines()])
        self.assertNotIn("explanations", answer)

    def test_pictures_are_those_of_explain(self):
        status, answer = self.server.post("/words/explain", "not really great")
        self.assertEqual(status, 200, answer)
        self.assertEqual([key["text"] for key in answer["explanations"][0]["keys"]], ["not", "really", "great"])
        self.assertEqual(len(answer["answers"]), 1)

    def test_pictures_of_thousands_of_lines_are_refused(self):
        status, answer = self.server.post("/words/explain", "good\n" * 1001)
        self.assertEqual((status, answer), (413, {"error": "input: 1001 lines, expected at most 1000 to explain"}))
        self.assertEqual(self.server.post("/words/predict", "good\n" * 1001)[0], 200)

    def test_a_table_is_answered_too(self):
        status, answer = self.server.post("/curve/predict", "times\n10\n20\n")
        self.assertEqual((status, len(answer["answers"])), (200, 2))

    def test_input_may_not_name_files(self):
        for path in (self.folder, self.folder / "none", "/etc/passwd"):
            status, answer = self.server.post("/sets/predict", f"{path}\n")
            words = json.dumps(answer)
            self.assertTrue(status == 400 or "error" in answer["answers"][0], answer)
            self.assertNotIn("root:", words)

    def test_wrong_requests_are_refused_in_words(self):
        good = {"input": "good"}
        for expected, arguments in (
                (404, ("GET", "/none/")), (404, ("POST", "/none/predict", good)), (404, ("GET", "/../etc/passwd")),
                (405, ("DELETE", "/words/")), (405, ("GET", "/words/predict")),
                (415, ("POST", "/words/predict", json.dumps(good), None, "text/plain")),
                (400, ("POST", "/words/predict", "{")), (400, ("POST", "/words/predict", "[" * 100_000)), (400, ("POST", "/words/predict", {})),
                (400, ("POST", "/words/predict", {"input": 3})), (400, ("POST", "/words/predict", {"input": "a", "more": 1})),
                (413, ("POST", "/words/predict", {"input": "a " * 600_000})),
                (403, ("GET", "/runs", None, "example.org")), (403, ("POST", "/words/predict", good, "127.0.0.1.example.org"))):
            response, text = self.server.ask(*arguments)
            self.assertEqual(response.status, expected, (arguments[:2], text))
            self.assertTrue(json.loads(text)["error"])
        self.assertEqual(self.server.ask("GET", "/runs")[0].status, 200)

    def test_what_is_no_http_does_not_end_the_server(self):
        for hostile in (b"\0\xff" * 2000, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n", b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
                        b"POST /words/predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
                connection.sendall(hostile)
                connection.shutdown(socket.SHUT_WR)
                try:
                    connection.recv(1000)
                except OSError:
                    pass
        self.assertEqual(self.server.ask("GET", "/runs")[0].status, 200)

    def memory(self):
        """The server's, in megabytes."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024

    def send(self, head, *parts):
        """The status of the answer, once all parts are sent or no longer taken."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as connection:
            try:
                connection.sendall(f"{head}\r\nHost: localhost\r\n".encode())
                for part in parts:
                    connection.sendall(part)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = connection.recv(100)
        return int(answer.split()[1]) if answer else None

    def test_requests_with_parts_changed_at_random(self):
        """Each is answered in words, or the connection is closed; the server goes on, as large as before. FOVEA_REQUESTS says how many."""
        draw = random.Random(17)
        before = self.server.kilobytes()
        for _ in range(int(os.environ.get("FOVEA_REQUESTS", 300))):
            request = changed_request(draw, self.server.port)
            answer = self.server.send(request)
            if not answer:
                continue
            head, _, body = answer.partition(b"\r\n\r\n")
            self.assertRegex(head, rb"^HTTP/1\.[01] [1-5]\d\d ")
            self.assertNotIn(b"root:", body)
            if not re.match(rb"HTTP/1\.[01] [123]", head) and not request.startswith(b"HEAD"):  # whose answers have no body
                self.assertRegex(body, rb'^\{"error":"[^\0-\x1f\x7f]+"\}\n$', request)
        self.assertEqual(self.server.post("/words/predict", "good")[0], 200)
        self.assertLess(self.server.kilobytes(), before + 200_000)

    def test_what_is_longer_than_a_request_is_not_kept(self):
        post, kind, megabyte = "POST /words/predict HTTP/1.1", b"Content-Type: application/json\r\n", b"a" * (1 << 20)
        packed = gzip.compress(b"a" * (300 << 20), 1)
        before = self.memory()
        chunks = [b"100000\r\n" + megabyte + b"\r\n"] * 300
        self.assertEqual(self.send(post, kind, b"Transfer-Encoding: chunked\r\n\r\n", *chunks), 413)
        self.assertEqual(self.send(post, kind, b"\r\n", *[megabyte] * 300), 413)
        self.assertEqual(self.send(post, kind, b"Content-Length: 99999999999999\r\n\r\n", megabyte), 413)
        self.assertEqual(self.send(post, kind, b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed), packed), 415)
        self.assertEqual(self.send("PRI * HTTP/2.0", b"\r\n", *[megabyte] * 300), 400)
        self.assertEqual(self.send("PUT / HTTP/1.1", b"Transfer-Encoding: chunked\r\n\r\n", *chunks), 405)
        self.assertIn(self.send("GET /runs HTTP/1.1", *[b"".join(b"X-%d-%d: a\r\n" % (m, n) for n in range(10_000)) for m in range(100)], b"\r\n"), (None, 400))
        self.assertLess(self.memory() - before, 150)

    def test_ranges_do_not_multiply_a_page(self):
        before = self.memory()
        for header in (b"0-," * 2000, b"0-0," * 1500):
            self.assertIn(self.send("GET /words/ HTTP/1.1", b"Range: bytes=" + header + b"0-\r\n\r\n"), (200, 400, 416))
        self.assertLess(self.memory() - before, 150)

    def test_slow_connections_do_not_keep_others_waiting_and_end(self):
        slow = [socket.create_connection(("127.0.0.1", self.server.port), timeout=20) for _ in range(40)]
        for connection in slow:
            connection.sendall(b"POST /words/predict HTTP/1.1\r\nHost: localhost\r\n")
        begin = time.monotonic()
        self.assertEqual(self.server.ask("GET", "/runs")[0].status, 200)
        self.assertLess(time.monotonic() - begin, 5)
        # A byte now and then, so that no single wait is long.
        ended = False
        while not ended and time.monotonic() - begin < 20:
            time.sleep(0.5)
            try:
                slow[0].sendall(b"X")
                slow[0].setblocking(False)
                ended = slow[0].recv(100) is not None
            except BlockingIOError:
                pass
            except OSError:
                ended = True
            finally:
                slow[0].setblocking(True)
        self.assertTrue(ended, "a request that never ends is waited for")
        for connection in slow:
            connection.close()

    def test_bytes_that_are_no_text_are_refused_in_words(self):
        for body in (b'{"input": "\xff\xfe"}', b'\xff', b'{"input": "\\ud800"}', b"\xef\xbb\xbf{}"):
            response, text = self.server.ask("POST", "/words/predict", body)
            self.assertEqual(response.status, 400, text)
            self.assertTrue(json.loads(text)["error"])

    def test_other_pages_of_a_browser_get_nothing(self):
        # A page elsewhere may send this without asking; anything else it has to ask for, and is refused.
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data"):
            response, text = self.server.ask("POST", "/words/predict", {"input": "good"}, kind=kind)
            self.assertEqual(response.status, 415, text)
        response, _ = self.server.ask("OPTIONS", "/words/predict")
        self.assertEqual(response.status, 405)
        self.assertIsNone(response.getheader("Access-Control-Allow-Origin"))
        for host in ("localhost.example.org", "127.0.0.1.nip.io:80", "evil.test", "localhost:80:80", "localhost@evil.test", "[::1].evil.test", "0x7f.1", "127.1",
                     "[::1]:x", "::1"):
            self.assertEqual(self.server.ask("GET", "/words/", host=host)[0].status, 403, host)

    def test_a_signal_during_requests_ends_it_at_once(self):
        server = Server(self.folder / "words")
        with ThreadPoolExecutor(8) as pool:
            for _ in range(8):
                pool.submit(server.post, "/words/explain", "great good " * 2000)
            time.sleep(0.5)
            begin = time.monotonic()
            self.assertEqual(server.stop(signal.SIGTERM), 143)
            self.assertLess(time.monotonic() - begin, 2)

    def test_many_at_once_each_get_their_own_answer(self):
        def one(n):
            text = "great" if n % 2 else "awful"
            return self.server.post("/words/explain", text)[1]["explanations"][0]["keys"][0]["text"] == text
        with ThreadPoolExecutor(8) as pool:
            self.assertTrue(all(pool.map(one, range(40))))

    def test_a_taken_port_and_a_wrong_run_are_named(self):
        done = subprocess.run([COMMAND, "serve", self.folder / "words", "--port", str(self.server.port)], text=True, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.server.port), done.stderr)
        done = subprocess.run([COMMAND, "serve", self.folder / "none"], text=True, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none", done.stderr)

    def test_what_is_empty_is_no_folder_and_no_address(self):
        for arguments in ([""], [self.folder / "words", "--host", ""]):
            done = subprocess.run([COMMAND, "serve", *arguments, "--port", "0"], text=True, stderr=subprocess.PIPE, timeout=30)
            self.assertEqual((done.returncode, "''" in done.stderr), (2, True), done.stderr)

    def test_every_address_of_this_machine_alone_is_one(self):
        server = Server(self.folder / "words", "--host", "127.0.0.2")
        self.addCleanup(server.stop)
        for host, expected in ((f"127.0.0.2:{server.port}", b"200"), ("example.org", b"403")):
            with socket.create_connection(("127.0.0.2", server.port), timeout=20) as connection:
                connection.sendall(f"GET /runs HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                self.assertEqual(connection.recv(100).split()[1], expected)

    def test_signals_end_it(self):
        for how, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            server = Server(self.folder / "words")
            response, _ = server.ask("GET", "/")
            self.assertEqual((response.status, response.getheader("Location")), (302, "words/"))
            self.assertEqual(server.stop(how), expected)


if __name__ == "__main__":
    unittest.main()
