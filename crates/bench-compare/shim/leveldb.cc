// LevelDB: a log-structured merge tree, in a directory of files.
//
// Its writer and its iterators are those of batches.h.

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

// Of buffers from 4 to 64 MiB, 8 MiB inserts fastest, at 6M random records of 8 + 8 bytes in transactions
// of 65,536. A skip list of 64 MiB misses the cache at every step. Gets are a third slower with 8 MiB than
// with 64 MiB.
constexpr size_t kWriteBufferBytes = size_t{8} << 20;
constexpr size_t kFileBytes = size_t{16} << 20;

struct Store {
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::DB> db;
  bool durable = false;

  ~Store() { db.reset(); }  // before what it uses
};

}  // namespace

namespace library = leveldb;

#include "batches.h"

namespace {

struct Reader {
  Store *store;
  std::string value;
};

const char *Version() {
  static const std::string version =
      std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion);
  return version.c_str();
}

void *StoreOpen(const bench_open *how, bench_error *error) {
  auto store = std::make_unique<Store>();
  store->durable = how->flags & BENCH_DURABLE;
  // There are two write buffers at a time: one is being filled, the other one written out.
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

// The library has no call to sync. A synced write of nothing syncs the log. The log has all data that are
// not in tables, and tables are synced when they are made.
int StoreSync(void *raw, bench_error *error) {
  leveldb::WriteOptions options;
  options.sync = true;
  leveldb::WriteBatch nothing;
  return Told(static_cast<Store *>(raw)->db->Write(options, &nothing), "DB::Write", error);
}

int StoreSettle(void *raw, bench_error *) {
  static_cast<Store *>(raw)->db->CompactRange(nullptr, nullptr);
  return 0;
}

int StoreClose(void *raw, bench_error *) {
  delete static_cast<Store *>(raw);
  return 0;
}

void *ReaderOpen(void *raw, bench_error *) {
  auto *reader = new Reader;
  reader->store = static_cast<Store *>(raw);
  return reader;
}

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
  return Visit(static_cast<Reader *>(raw)->store, options, &kAll, seen, error);
}

int Range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  return Visit(static_cast<Reader *>(raw)->store, leveldb::ReadOptions(), range, seen, error);
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
    bench_refresh_nothing,
    Get,
    nullptr,
    Scan,
    Range,
    ReaderClose,
};
