"""Writes the golden nodes with an encoder of its own. Run it only when the format gets a new version."""
import hashlib, json, os, struct

def head(major, value):
    if value < 24: return bytes([major << 5 | value])
    for extra, size, form in ((24, 8, ">B"), (25, 16, ">H"), (26, 32, ">I"), (27, 64, ">Q")):
        if value < 1 << size: return bytes([major << 5 | extra]) + struct.pack(form, value)

def cbor(value):
    if value is None: return b"\xf6"
    if isinstance(value, int): return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes): return head(2, len(value)) + value
    if isinstance(value, str): return head(3, len(value.encode())) + value.encode()
    return head(4, len(value)) + b"".join(map(cbor, value))

sha = lambda data: hashlib.sha256(data).digest()
time = 1_700_000_000_123
directory = lambda name, tree, mode=0o755: [name, 0, mode, time, time + 1, tree]

leaf = [1, "leaf", "", [
    ["a.txt", 1, 0o644, time, time, b"hello\n"],
    directory("dir", None),
    ["large", 2, 0o600, time, time, 300_000, sha(b"whole"), 1, sha(b"index")],
    ["latest", 3, 0o777, -1, 0, "dir/a.txt"],
    ["one-chunk", 2, 0o600, time, time, 3000, sha(b"x" * 3000), 0, sha(b"x" * 3000)],
    ["\u00e9", 1, 0o644, time, time, b""],
    ["\U0001f600", 1, 0o4755, time, time, b"\x00\xff"],
]]
name = next(n for n in map(str, range(10**6)) if sha(n.encode()).hex().startswith("c0"))
deep = [1, "leaf", "c0", [[name, 1, 0o644, time, time, b"deep"]]]
branch = [1, "branch", "c", [[0, sha(cbor(deep)), 20_000], [15, sha(b"other"), 20_001]]]
index = [1, "index", 1, [[sha(b"first"), 200_000], [sha(b"second"), 100_000]]]
root = [1, "root", directory("", sha(cbor(leaf))), directory("", None), [bytes(range(16)), b"\xff" * 16]]
empty = [1, "root", directory("", None), directory("", None), []]
answers = [2, "answers", [[bytes(range(16)), b"\x01" * 16, time, '{"bytesWritten":5}'], [b"\xff" * 16, b"\x02" * 16, time - 1, None]]]
first = [2, "root", directory("", None), directory("", None), [bytes(range(16))], [1, None, None, None], [0, []]]
later = [2, "root", directory("", sha(cbor(leaf))), directory("", None), [b"\xff" * 16, bytes(range(16))],
         [70_000, sha(b"parent"), b"\x0f" * 16, [69_999, sha(b"lost")]], [time - 9, [[sha(cbor(answers)), len(cbor(answers)), time]]]]
third = [3, "root", directory("", None), directory("", None), [b"\xff" * 16],
         [3, sha(b"parent"), b"\x0f" * 16, None, ["ada \u00e9", "write a.txt", time]], [0, []]]

# Content-defined boundaries of a megabyte that is the SHA-256 of counters.
gear = [int.from_bytes(sha(f"fs-algebra gear {byte}".encode())[:4], "big") for byte in range(256)]
data = b"".join(sha(struct.pack(">I", i)) for i in range(131072))
sizes, start, rolling = [], 0, 0
for i, byte in enumerate(data):
    length = i - start + 1
    if length > 65536: rolling = ((rolling << 1) + gear[byte]) & 0xFFFFFFFF
    bits = 20 if length <= 262144 else 16
    if length == 1048576 or (length > 65536 and rolling >> (32 - bits) == 0):
        sizes.append(length); start = i + 1; rolling = 0
sizes.append(len(data) - start)

here = os.path.dirname(os.path.abspath(__file__))
golden = {key: {"bytes": cbor(value).hex(), "sha256": sha(cbor(value)).hex()}
          for key, value in dict(leaf=leaf, deep=deep, branch=branch, index=index, root=root, empty=empty, answers=answers, first=first, later=later, third=third).items()}
with open(os.path.join(here, "nodes.json"), "w") as file:
    json.dump({"deepName": name, "nodes": golden, "chunkSizes": sizes}, file, indent=2); file.write("\n")
