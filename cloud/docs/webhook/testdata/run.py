import base64
import sys

sys.path.insert(0, "../snippets")
sys.dont_write_bytecode = True
from verify import verify  # noqa: E402

for line in sys.stdin:
    secret, now, body, *head = line.rstrip("\n").split("\t")
    headers = {}
    for h in head:
        name, _, value = h.partition("=")
        headers[name] = base64.b64decode(value).decode("latin-1")
    print(int(verify(headers, base64.b64decode(body), base64.b64decode(secret).decode(), int(now))))
