// The common part of the shims of LevelDB and RocksDB: RocksDB has LevelDB's interface and more.
//
// A transaction is a WriteBatch, which is atomic and written at commit. Before including this file, a shim
// names the library's namespace `library` and defines a `Store` with `db` and `durable`.

#ifndef BENCH_BATCHES_H
#define BENCH_BATCHES_H

#include "peer.h"

#include <memory>
#include <type_traits>

namespace {

struct Writer {
  Store *store;
  library::WriteBatch batch;
};

int Fail(const library::Status &status, const char *call, bench_error *error) {
  return bench_fail(error, call, status.ToString().c_str());
}

int Told(const library::Status &status, const char *call, bench_error *error) {
  return status.ok() ? 0 : Fail(status, call, error);
}

library::Slice Bytes(const uint8_t *bytes, size_t count) {
  return library::Slice(reinterpret_cast<const char *>(bytes), count);
}

const uint8_t *Pointer(const library::Slice &slice) {
  return reinterpret_cast<const uint8_t *>(slice.data());
}

void *WriterOpen(void *raw, bench_error *) {
  auto *writer = new Writer;
  writer->store = static_cast<Store *>(raw);
  return writer;
}

int Begin(void *raw, bench_error *) {
  static_cast<Writer *>(raw)->batch.Clear();
  return 0;
}

// LevelDB's batches accept everything and return nothing.
template <typename Change>
int Batched(const Change &change, const char *call, bench_error *error) {
  if constexpr (std::is_void_v<decltype(change())>) {
    change();
    return 0;
  } else {
    return Told(change(), call, error);
  }
}

int Put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes,
        bench_error *error) {
  auto &batch = static_cast<Writer *>(raw)->batch;
  return Batched([&] { return batch.Put(Bytes(key, key_bytes), Bytes(value, value_bytes)); },
                 "WriteBatch::Put", error);
}

int Remove(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  auto &batch = static_cast<Writer *>(raw)->batch;
  return Batched([&] { return batch.Delete(Bytes(key, key_bytes)); }, "WriteBatch::Delete", error);
}

int Commit(void *raw, bench_error *error) {
  auto *writer = static_cast<Writer *>(raw);
  library::WriteOptions options;
  options.sync = writer->store->durable;
  return Told(writer->store->db->Write(options, &writer->batch), "DB::Write", error);
}

void WriterClose(void *raw) { delete static_cast<Writer *>(raw); }

// Seek goes to the first key at or after the requested one. On the way down that may be one too far.
void Seek(library::Iterator *at, const bench_range *range) {
  if (range->from == nullptr) return range->down ? at->SeekToLast() : at->SeekToFirst();
  const library::Slice from = Bytes(range->from, range->from_bytes);
  at->Seek(from);
  if (!range->down) return;
  if (!at->Valid()) return at->SeekToLast();
  if (at->key() != from) at->Prev();
}

int Visit(Store *store, const library::ReadOptions &options, const bench_range *range, bench_seen *seen,
          bench_error *error) {
  std::unique_ptr<library::Iterator> at(store->db->NewIterator(options));
  bench_seen sum{};
  for (Seek(at.get(), range); at->Valid() && sum.records < range->limit;) {
    bench_see(&sum, at->key().data(), at->key().size(), at->value().data(), at->value().size());
    range->down ? at->Prev() : at->Next();
  }
  if (!at->status().ok()) return Fail(at->status(), "Iterator::Next", error);
  *seen = sum;
  return 0;
}

constexpr bench_range kAll = {nullptr, 0, UINT64_MAX, 0};

}  // namespace

#endif
