// LevelDB: a log-structured merge tree, in a directory of files.
//
// A transaction is a WriteBatch, atomic and written at commit.

#include "peer.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/write_batch.h>

#include <memory>
#include <string>

namespace {

// Measured at 6M random records of 8 + 8 bytes, transactions of 65,536: a buffer of 64 MiB inserts
// 0.58M/s, 16 MiB 0.7 to 1.3M/s, 8 MiB 1.3 to 1.5M/s, 4 MiB 0.75M/s. A skip list of 64 MiB misses the
// cache at every step. Gets are 0.34M/s with 64 MiB, 0.23M/s with 8 MiB.
constexpr size_t kWriteBufferBytes = size_t{8} << 20;
constexpr size_t kFileBytes = size_t{16} << 20;

struct Store {
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::DB> db;
  bool durable = false;

  ~Store() { db.reset(); }  // before what it uses
};

struct Writer {
  Store *store;
  leveldb::WriteBatch batch;
};

struct Reader {
  Store *store;
  std::string value;
};

int Fail(const leveldb::Status &status, const char *call, bench_error *error) {
  return bench_fail(error, call, status.ToString().c_str());
}

leveldb::Slice Bytes(const uint8_t *bytes, size_t count) {
  return leveldb::Slice(reinterpret_cast<const char *>(bytes), count);
}

const uint8_t *Pointer(const leveldb::Slice &slice) {
  return reinterpret_cast<const uint8_t *>(slice.data());
}

const char *Version() {
  static const std::string version =
      std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion);
  return version.c_str();
}

void *StoreOpen(const bench_open *how, bench_error *error) {
  auto store = std::make_unique<Store>();
  store->durable = how->flags & BENCH_DURABLE;
  // There are two write buffers at a time: the one being filled and the one being written out.
  const uint64_t buffers = 2 * kWriteBufferBytes;
  const uint64_t left = how->budget_bytes > buffers ? how->budget_bytes - buffers : 0;
  store->cache.reset(leveldb::NewLRUCache(left > (8 << 20) ? left : (8 << 20)));
  store->filter.reset(leveldb::NewBloomFilterPolicy(10));

  leveldb::Options options;
  options.create_if_missing = how->flags & BENCH_CREATE;
  options.error_if_exists = how->flags & BENCH_CREATE;
  options.write_buffer_size = kWriteBufferBytes;
  options.max_file_size = kFileBytes;
  options.max_open_files = 10000;
  options.block_cache = store->cache.get();
  options.filter_policy = store->filter.get();
  options.compression = leveldb::kNoCompression;

  leveldb::DB *db = nullptr;
  const auto status = leveldb::DB::Open(options, std::string(how->path) + "/leveldb", &db);
  if (!status.ok()) {
    Fail(status, "DB::Open", error);
    return nullptr;
  }
  store->db.reset(db);
  return store.release();
}

// The library has no call to sync; a synced write of nothing syncs the log that holds what the
// tables, which are synced when they are made, do not.
int StoreSync(void *raw, bench_error *error) {
  leveldb::WriteOptions options;
  options.sync = true;
  leveldb::WriteBatch nothing;
  const auto status = static_cast<Store *>(raw)->db->Write(options, &nothing);
  return status.ok() ? 0 : Fail(status, "DB::Write", error);
}

int StoreSettle(void *raw, bench_error *) {
  static_cast<Store *>(raw)->db->CompactRange(nullptr, nullptr);
  return 0;
}

int StoreClose(void *raw, bench_error *) {
  delete static_cast<Store *>(raw);
  return 0;
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

int Put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes,
        bench_error *) {
  static_cast<Writer *>(raw)->batch.Put(Bytes(key, key_bytes), Bytes(value, value_bytes));
  return 0;
}

int Remove(void *raw, const uint8_t *key, size_t key_bytes, bench_error *) {
  static_cast<Writer *>(raw)->batch.Delete(Bytes(key, key_bytes));
  return 0;
}

int Commit(void *raw, bench_error *error) {
  auto *writer = static_cast<Writer *>(raw);
  leveldb::WriteOptions options;
  options.sync = writer->store->durable;
  const auto status = writer->store->db->Write(options, &writer->batch);
  return status.ok() ? 0 : Fail(status, "DB::Write", error);
}

void WriterClose(void *raw) { delete static_cast<Writer *>(raw); }

void *ReaderOpen(void *raw, bench_error *) {
  auto *reader = new Reader;
  reader->store = static_cast<Store *>(raw);
  return reader;
}

int Refresh(void *, bench_error *) { return 0; }

int Get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value, size_t *value_bytes,
        bench_error *error) {
  auto *reader = static_cast<Reader *>(raw);
  const auto status =
      reader->store->db->Get(leveldb::ReadOptions(), Bytes(key, key_bytes), &reader->value);
  if (status.IsNotFound()) return 0;
  if (!status.ok()) return Fail(status, "DB::Get", error);
  *value = Pointer(reader->value);
  *value_bytes = reader->value.size();
  return 1;
}

int Scan(void *raw, bench_seen *seen, bench_error *error) {
  leveldb::ReadOptions options;
  options.fill_cache = false;
  std::unique_ptr<leveldb::Iterator> at(static_cast<Reader *>(raw)->store->db->NewIterator(options));
  bench_seen sum{};
  for (at->SeekToFirst(); at->Valid(); at->Next())
    bench_see(&sum, at->key().data(), at->key().size(), at->value().data(), at->value().size());
  if (!at->status().ok()) return Fail(at->status(), "Iterator::Next", error);
  *seen = sum;
  return 0;
}

// Seek goes to the first key at or after the one asked for: on the way down that may be one too far.
void Seek(leveldb::Iterator *at, const bench_range *range) {
  if (range->from == nullptr) return range->down ? at->SeekToLast() : at->SeekToFirst();
  const leveldb::Slice from = Bytes(range->from, range->from_bytes);
  at->Seek(from);
  if (!range->down) return;
  if (!at->Valid()) return at->SeekToLast();
  if (at->key() != from) at->Prev();
}

int Range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  const leveldb::ReadOptions options;
  std::unique_ptr<leveldb::Iterator> at(static_cast<Reader *>(raw)->store->db->NewIterator(options));
  bench_seen sum{};
  for (Seek(at.get(), range); at->Valid() && sum.records < range->limit;) {
    bench_see(&sum, at->key().data(), at->key().size(), at->value().data(), at->value().size());
    range->down ? at->Prev() : at->Next();
  }
  if (!at->status().ok()) return Fail(at->status(), "Iterator::Next", error);
  *seen = sum;
  return 0;
}

void ReaderClose(void *raw) { delete static_cast<Reader *>(raw); }

}  // namespace

extern "C" const bench_peer bench_leveldb = {
    Version,
    "write_buffer_size 8 MiB (two of them), block cache of the rest of the budget, 10-bit Bloom "
    "filter, max_file_size 16 MiB, no compression; a WriteBatch a transaction, synced only when "
    "durable; settled by CompactRange",
    StoreOpen,
    StoreSync,
    StoreSettle,
    StoreClose,
    WriterOpen,
    Begin,
    Put,
    Remove,
    Commit,
    WriterClose,
    ReaderOpen,
    Refresh,
    Get,
    nullptr,
    Scan,
    Range,
    ReaderClose,
};
