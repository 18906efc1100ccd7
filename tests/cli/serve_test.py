"""`fovea serve`: pages to type into and the same as an HTTP service, to friendly and to hostile requests."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
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

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


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

    def test_signals_end_it(self):
        for how, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            server = Server(self.folder / "words")
            response, _ = server.ask("GET", "/")
            self.assertEqual((response.status, response.getheader("Location")), (302, "words/"))
            self.assertEqual(server.stop(how), expected)


if __name__ == "__main__":
    unittest.main()
