"""The helper of the peer written in Python: CodernityDB.

    helper.py <socket>

It listens on an abstract Unix socket, says "ready" on its standard output, and serves one connection for
the store and one for each writer and reader, as src/peers/helper/wire.rs describes. Each answer carries the
nanoseconds that the peer's own calls took: decoding a request and sending an answer are not among them.
"""

import hashlib
import os
import socket
import struct
import sys
import threading
import time

from codernitydb3.database import Database, RecordDeleted, RecordNotFound
from codernitydb3.hash_index import HashIndex
from codernitydb3.index import IndexException
from codernitydb3.storage import IU_Storage

OPEN, APPLY, COMMIT, ABANDON, GET, SCAN, RANGE, REFRESH, SYNC, SETTLE, CLOSE, INDEX, FIND = range(1, 14)
OPEN_HEAD = struct.Struct("<??QQQ")
CHANGE_HEAD = struct.Struct("<?II")
LENGTH = struct.Struct("<I")
REQUEST_HEAD = struct.Struct("<IB")
ANSWER_HEAD = struct.Struct("<IBQ")
SEEN = struct.Struct("<QQ")

ID_BYTES = 32
HASHED = 255
WORD = (1 << 64) - 1


def storage_get(self, start, size, status="c"):
    """The storage's own method, without the print of all its variables at every call."""
    if status == "d":
        return None
    self._f.seek(start)
    return self.data_from(self._f.read(size))


IU_Storage.get = storage_get


class FieldIndex(HashIndex):
    """The first 8 bytes of values. The database keeps this text beside its files."""

    def __init__(self, *args, **kwargs):
        kwargs["key_format"] = "8s"
        super().__init__(*args, **kwargs)

    def make_key_value(self, data):
        return data["v"][:8], None

    def make_key(self, key):
        return key


def id_of(key):
    """A document's _id is 32 bytes: a key's length and the key, or a hash of a longer key."""
    if len(key) < ID_BYTES:
        return bytes((len(key),)) + key + bytes(ID_BYTES - 1 - len(key))
    return bytes((HASHED,)) + hashlib.blake2b(key, digest_size=ID_BYTES - 1).digest()


def key_of(document):
    """The key of a document; one whose _id is a hash has it beside the value."""
    identifier = document["_id"]
    return document["k"] if identifier[0] == HASHED else identifier[1 : 1 + identifier[0]]


def document_of(key, value):
    identifier = id_of(key)
    if identifier[0] == HASHED:
        return {"_id": identifier, "k": key, "v": value}
    return {"_id": identifier, "v": value}


def words(data):
    """The sum of the bytes as little-endian 64-bit words, the last one padded with zeros."""
    padded = data + bytes(-len(data) % 8)
    return sum(struct.unpack("<%dQ" % (len(padded) // 8), padded)) & WORD


def record_sum(key, value):
    """What a record adds to the sum of a scan; shim/peer.h has the same function."""
    x = words(key) * 0x9E3779B97F4A7C15 & WORD
    x = (x ^ (x >> 29)) + words(value) & WORD
    x = x * 0xBF58476D1CE4E5B9 & WORD
    return x ^ (x >> 32)


class Store:
    """The open database. One thread at a time uses it: the library's classes for threads do the same."""

    def __init__(self, request):
        create, self.durable, _budget, records, _raw = OPEN_HEAD.unpack_from(request)
        path = os.path.join(os.fsdecode(request[OPEN_HEAD.size :]), "codernity")
        self.lock = threading.Lock()
        self.database = Database(path)
        if create:
            self.buckets = 1 << max(16, (records - 1).bit_length())
            self.database.create(index_kwargs={"hash_lim": self.buckets - 1})
        else:
            self.database.open()

    def index(self):
        self.database.add_index(FieldIndex(self.database.path, "field", hash_lim=self.buckets - 1))

    def find(self, field):
        records = total = 0
        try:
            for found in self.database.get_many("field", field, limit=-1, with_doc=True):
                records += 1
                total += record_sum(key_of(found["doc"]), found["doc"]["v"])
        except RecordNotFound:
            pass
        return SEEN.pack(records, total & WORD)

    def put(self, key, value):
        try:
            self.database.insert(document_of(key, value))
        except IndexException:
            self.replace(document_of(key, value))

    def replace(self, document):
        """The index keeps the place of a removed key, for which the database has no call: so it is put back
        as update would, in the index, of which there is no other."""
        identifier = document["_id"]
        try:
            document["_rev"] = self.database.get("id", identifier)["_rev"]
            self.database.update(document)
        except RecordDeleted:
            del document["_id"]
            self.database.id_ind.update_with_storage(identifier, self.database.create_new_rev(), document)

    def remove(self, key):
        try:
            document = self.database.get("id", id_of(key))
        except (RecordNotFound, RecordDeleted):
            return
        self.database.delete(document)

    def change(self, changes, commit):
        for remove, key, value in changes:
            if remove:
                self.remove(key)
            else:
                self.put(key, value)
        if commit and self.durable:
            self.database.fsync()

    def get(self, key):
        try:
            document = self.database.get("id", id_of(key))
        except (RecordNotFound, RecordDeleted):
            return None
        return document["v"]

    def scan(self):
        records = total = 0
        for document in self.database.all("id"):
            records += 1
            total += record_sum(key_of(document), document["v"])
        return SEEN.pack(records, total & WORD)


def changes_of(body):
    changes, at = [], 0
    while at < len(body):
        remove, key_bytes, value_bytes = CHANGE_HEAD.unpack_from(body, at)
        at += CHANGE_HEAD.size
        key = body[at : at + key_bytes]
        at += key_bytes
        changes.append((remove, key, body[at : at + value_bytes]))
        at += value_bytes
    return changes


def keys_of(body):
    keys, at = [], 0
    while at < len(body):
        (key_bytes,) = LENGTH.unpack_from(body, at)
        at += LENGTH.size
        keys.append(body[at : at + key_bytes])
        at += key_bytes
    return keys


def values_answer(values):
    parts = []
    for value in values:
        parts.append(LENGTH.pack(0 if value is None else len(value) + 1))
        if value is not None:
            parts.append(value)
    return b"".join(parts)


class Server:
    """Has the one store of this process, which the first connection opens and closes."""

    def __init__(self):
        self.store = None

    def handle(self, kind, body):
        """Gives an answer's body and the nanoseconds that the peer's calls took."""
        if kind == OPEN:
            began = time.perf_counter_ns()
            self.store = Store(body)
            return b"", time.perf_counter_ns() - began
        if self.store is None:
            raise ValueError("no store is open")
        with self.store.lock:
            return self.use(kind, body)

    def use(self, kind, body):
        store, answer = self.store, b""
        # Decoding comes before the clock, and encoding after it.
        changes = changes_of(body) if kind in (APPLY, COMMIT) else None
        keys = keys_of(body) if kind == GET else None
        values = None
        began = time.perf_counter_ns()
        if changes is not None:
            store.change(changes, kind == COMMIT)
        elif keys is not None:
            get = store.get
            values = [get(key) for key in keys]
        elif kind == SCAN:
            answer = store.scan()
        elif kind == INDEX:
            store.index()
        elif kind == FIND:
            answer = store.find(bytes(body))
        elif kind == SYNC:
            store.database.fsync()
        elif kind == SETTLE:
            answer = b"\0"
        elif kind == CLOSE:
            store.database.close()
            self.store = None
        elif kind not in (ABANDON, REFRESH):
            raise ValueError("no request has the kind %d" % kind)
        took = time.perf_counter_ns() - began
        return answer if values is None else values_answer(values), took

    def serve(self, connection):
        """Answers until the other side goes away."""
        with connection, connection.makefile("rb") as requests:
            while True:
                head = requests.read(REQUEST_HEAD.size)
                if len(head) < REQUEST_HEAD.size:
                    return
                length, kind = REQUEST_HEAD.unpack(head)
                body = requests.read(length - 1)
                try:
                    answer, took = self.handle(kind, body)
                    status = 0
                except Exception as error:  # whatever it is, the other side tells it
                    answer, took, status = repr(error).encode(), 0, 1
                connection.sendall(ANSWER_HEAD.pack(len(answer) + 9, status, took) + answer)


def main():
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    server = Server()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=server.serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
