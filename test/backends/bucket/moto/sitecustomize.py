# Python loads this file before moto_server.
#
# moto checks the condition of a write and stores the object in two steps, each request in a thread of its own. Of two writers with
# the same condition sometimes both succeed, which no real store permits. With this file it answers one request at a time. It reads
# bodies first, so that a client that stands still holds up nobody.
import io
import threading

import werkzeug.serving

serve = werkzeug.serving.run_simple
lock = threading.Lock()


def one_at_a_time(app):
    def answer(environ, start_response):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length > 0:
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with lock:
            body = app(environ, start_response)
            try:
                return [b"".join(body)]
            finally:
                if hasattr(body, "close"):
                    body.close()

    return answer


def run_simple(host, port, app, **options):
    serve(host, port, one_at_a_time(app), **options)


werkzeug.serving.run_simple = run_simple
