"""Serves the files of a folder over HTTP with the faults of real servers.

Usage: flaky_server.py FOLDER.  Prints its port, writes each request to FOLDER/.requests as a line
"PATH RANGE" (remove it to begin anew), and ends when its standard input does.  The first part of a path says what goes wrong:

  /plain/FILE           nothing
  /norange/FILE         Range is ignored: always everything with status 200
  /cut-N-K/FILE         the first K answers end after N bytes, though more were promised
  /status-CODE/FILE     answers with this status
  /length-N/FILE        promises N bytes, sends the file
  /endless-N/FILE       promises nothing, sends the file and N more bytes
  /shifted/FILE         answers a Range with bytes from elsewhere
  /wrong/FILE           the right number of wrong bytes
  /redirect/PATH        sends on to /PATH
  /loop/FILE            sends on to itself
  /elsewhere/PATH       sends on to file:///PATH
  /stall-N/FILE         sends N bytes, then nothing for a minute
"""

import http.server
import os
import sys
import threading
import time

folder = sys.argv[1]
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def count_request(self):
        with lock, open(os.path.join(folder, ".requests"), "a+") as log:
            log.write(f"{self.path} {self.headers.get('Range', '-')}\n")
            log.seek(0)
            return sum(line.split()[0] == self.path for line in log)

    def head(self, status, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def do_GET(self):
        count = self.count_request()
        fault, _, name = self.path[1:].partition("/")
        fault, *numbers = fault.split("-")
        numbers = [int(number) for number in numbers]
        if fault == "status":
            return self.head(numbers[0], Content_Length=0)
        if fault == "redirect":
            return self.head(302, Location="/" + name, Content_Length=0)
        if fault == "loop":
            return self.head(302, Location=self.path, Content_Length=0)
        if fault == "elsewhere":
            return self.head(302, Location="file:///" + name, Content_Length=0)
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            return self.head(404, Content_Length=0)
        with open(path, "rb") as file:
            content = file.read()
        self.answer(content, fault, numbers, count)

    def answer(self, content, fault, numbers, count):
        if fault == "wrong":
            content = bytes(255 - byte for byte in content)
        begin = 0
        wanted = self.headers.get("Range")
        if wanted and fault != "norange":
            begin = int(wanted.removeprefix("bytes=").split("-")[0])
            if begin >= len(content):
                return self.head(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
        if fault == "shifted":
            begin = begin // 2
        body = content[begin:]
        length = numbers[0] if fault == "length" else len(body)
        if fault == "endless":
            self.head(200)
            body += b"x" * numbers[0]
        elif wanted and fault != "norange":
            place = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            self.head(206, Content_Range=place, Content_Length=length)
        else:
            self.head(200, Content_Length=length)
        if fault == "cut" and count <= numbers[1]:
            body = body[: numbers[0]]
        if fault == "stall":
            self.wfile.write(body[: numbers[0]])
            self.wfile.flush()
            time.sleep(60)
            return
        try:
            self.wfile.write(body)
        except OSError:
            pass  # the client had enough


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
