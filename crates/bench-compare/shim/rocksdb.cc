// RocksDB: a log-structured merge tree, in a directory of files.
//
// A transaction is a WriteBatch, atomic and written at commit.

#include "peer.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr size_t kWriteBufferBytes = size_t{8} << 20;
constexpr int kWriteBuffers = 4;

struct Store {
  std::unique_ptr<rocksdb::DB> db;
  bool durable = false;
};

struct Writer {
  Store *store;
  rocksdb::WriteBatch batch;
};

struct Reader {
  Store *store;
  rocksdb::PinnableSlice value;
  std::vector<rocksdb::Slice> keys;
  std::vector<rocksdb::PinnableSlice> values;
  std::vector<rocksdb::Status> statuses;
};

int Fail(const rocksdb::Status &status, const char *call, bench_error *error) {
  return bench_fail(error, call, status.ToString().c_str());
}

rocksdb::Slice Bytes(const uint8_t *bytes, size_t count) {
  return rocksdb::Slice(reinterpret_cast<const char *>(bytes), count);
}

const uint8_t *Pointer(const rocksdb::Slice &slice) {
  return reinterpret_cast<const uint8_t *>(slice.data());
}

const char *Version() {
  static const std::string version = rocksdb::GetRocksVersionAsString(false);
  return version.c_str();
}

// The cache holds indexes and filters too, and the write buffers are charged to it, so that the budget
// bounds all of them.
rocksdb::Options OptionsFor(const bench_open *how) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(std::max<uint64_t>(how->budget_bytes, 8 << 20));
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;

  rocksdb::Options options;
  options.create_if_missing = how->flags & BENCH_CREATE;
  options.error_if_exists = how->flags & BENCH_CREATE;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = std::min<uint64_t>(kWriteBufferBytes, how->budget_bytes / 8);
  options.max_write_buffer_number = kWriteBuffers;
  options.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(
      kWriteBuffers * options.write_buffer_size, table.block_cache);
  options.compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_background_jobs = 2;
  options.max_subcompactions = 2;
  options.bytes_per_sync = 1 << 20;
  options.max_open_files = -1;
  options.allow_concurrent_memtable_write = false;
  return options;
}

void *StoreOpen(const bench_open *how, bench_error *error) {
  rocksdb::DB *db = nullptr;
  const auto status = rocksdb::DB::Open(OptionsFor(how), std::string(how->path) + "/rocksdb", &db);
  if (!status.ok()) {
    Fail(status, "DB::Open", error);
    return nullptr;
  }
  auto *store = new Store;
  store->db.reset(db);
  store->durable = how->flags & BENCH_DURABLE;
  return store;
}

int StoreSync(void *raw, bench_error *error) {
  const auto status = static_cast<Store *>(raw)->db->FlushWAL(true);
  return status.ok() ? 0 : Fail(status, "DB::FlushWAL", error);
}

int StoreSettle(void *raw, bench_error *error) {
  auto *db = static_cast<Store *>(raw)->db.get();
  const auto status = db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr);
  return status.ok() ? 0 : Fail(status, "DB::CompactRange", error);
}

int StoreClose(void *raw, bench_error *error) {
  auto *store = static_cast<Store *>(raw);
  const auto status = store->db->Close();
  delete store;
  return status.ok() ? 0 : Fail(status, "DB::Close", error);
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
        bench_error *error) {
  const auto status =
      static_cast<Writer *>(raw)->batch.Put(Bytes(key, key_bytes), Bytes(value, value_bytes));
  return status.ok() ? 0 : Fail(status, "WriteBatch::Put", error);
}

int Remove(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  const auto status = static_cast<Writer *>(raw)->batch.Delete(Bytes(key, key_bytes));
  return status.ok() ? 0 : Fail(status, "WriteBatch::Delete", error);
}

int Commit(void *raw, bench_error *error) {
  auto *writer = static_cast<Writer *>(raw);
  rocksdb::WriteOptions options;
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
  auto *db = reader->store->db.get();
  reader->value.Reset();
  const auto status = db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(), Bytes(key, key_bytes),
                              &reader->value);
  if (status.IsNotFound()) return 0;
  if (!status.ok()) return Fail(status, "DB::Get", error);
  *value = Pointer(reader->value);
  *value_bytes = reader->value.size();
  return 1;
}

int GetMany(void *raw, const bench_bytes *keys, size_t count, bench_bytes *values, bench_error *error) {
  auto *reader = static_cast<Reader *>(raw);
  auto *db = reader->store->db.get();
  reader->keys.clear();
  for (size_t at = 0; at < count; ++at) reader->keys.push_back(Bytes(keys[at].at, keys[at].count));
  if (reader->values.size() < count) reader->values = std::vector<rocksdb::PinnableSlice>(count);
  for (auto &value : reader->values) value.Reset();
  reader->statuses.resize(count);
  db->MultiGet(rocksdb::ReadOptions(), db->DefaultColumnFamily(), count, reader->keys.data(),
               reader->values.data(), reader->statuses.data());
  for (size_t at = 0; at < count; ++at) {
    const auto &status = reader->statuses[at];
    if (status.IsNotFound()) continue;
    if (!status.ok()) return Fail(status, "DB::MultiGet", error);
    values[at] = {Pointer(reader->values[at]), reader->values[at].size()};
  }
  return 0;
}

void Seek(rocksdb::Iterator *at, const bench_range *range) {
  if (range->from == nullptr) return range->down ? at->SeekToLast() : at->SeekToFirst();
  const rocksdb::Slice from = Bytes(range->from, range->from_bytes);
  range->down ? at->SeekForPrev(from) : at->Seek(from);
}

int Visit(void *raw, const rocksdb::ReadOptions &options, const bench_range *range, bench_seen *seen,
          bench_error *error) {
  std::unique_ptr<rocksdb::Iterator> at(static_cast<Reader *>(raw)->store->db->NewIterator(options));
  bench_seen sum{};
  for (Seek(at.get(), range); at->Valid() && sum.records < range->limit;) {
    bench_see(&sum, at->key().data(), at->key().size(), at->value().data(), at->value().size());
    range->down ? at->Prev() : at->Next();
  }
  if (!at->status().ok()) return Fail(at->status(), "Iterator::Next", error);
  *seen = sum;
  return 0;
}

int Range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  return Visit(raw, rocksdb::ReadOptions(), range, seen, error);
}

int Scan(void *raw, bench_seen *seen, bench_error *error) {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 2 << 20;
  const bench_range all = {nullptr, 0, UINT64_MAX, 0};
  return Visit(raw, options, &all, seen, error);
}

void ReaderClose(void *raw) { delete static_cast<Reader *>(raw); }

}  // namespace

extern "C" const bench_peer bench_rocksdb = {
    Version,
    "LRU block cache of the budget, with indexes, filters and four write buffers of 8 MiB charged to it; "
    "10-bit Bloom filter, hash index in data blocks, dynamic level sizes, 2 background jobs, no concurrent "
    "writes to a buffer, no compression; a WriteBatch a transaction, synced only when durable; MultiGet for many; settled by "
    "CompactRange",
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
    GetMany,
    Scan,
    Range,
    ReaderClose,
};
