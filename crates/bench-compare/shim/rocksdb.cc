// RocksDB: a log-structured merge tree, in a directory of files.
//
// Its writer and its iterators are those of batches.h.

#include "peer.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr size_t kWriteBufferBytes = size_t{8} << 20;
constexpr int kWriteBuffers = 4;
constexpr uint64_t kBlockBytes = 4096;
constexpr int kFilterBits = 10;
constexpr uint64_t kIndexEntryBytes = 32;

struct Store {
  std::unique_ptr<rocksdb::DB> db;
  bool durable = false;
};

}  // namespace

namespace library = rocksdb;

#include "batches.h"

namespace {

struct Reader {
  Store *store;
  rocksdb::PinnableSlice value;
  std::vector<rocksdb::Slice> keys;
  std::vector<rocksdb::PinnableSlice> values;
  std::vector<rocksdb::Status> statuses;
};

const char *Version() {
  static const std::string version = rocksdb::GetRocksVersionAsString(false);
  return version.c_str();
}

// Open tables keep their indexes and filters. This saves each get two lookups in the cache. Their memory and
// that of the write buffers is subtracted from the budget. The rest is the block cache.
rocksdb::Options OptionsFor(const bench_open *how) {
  const uint64_t buffer_bytes = std::min<uint64_t>(kWriteBufferBytes, how->budget_bytes / 8);
  const uint64_t blocks = how->raw_bytes / kBlockBytes;
  const uint64_t aside = kWriteBuffers * buffer_bytes + how->records * kFilterBits / 8 + blocks * kIndexEntryBytes;

  rocksdb::BlockBasedTableOptions table;
  table.block_size = kBlockBytes;
  const uint64_t left = how->budget_bytes - std::min(aside, how->budget_bytes);
  table.block_cache = rocksdb::NewLRUCache(std::max(how->budget_bytes / 4, left));
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBits));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;

  rocksdb::Options options;
  options.create_if_missing = how->flags & BENCH_CREATE;
  options.error_if_exists = how->flags & BENCH_CREATE;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = buffer_bytes;
  options.max_write_buffer_number = kWriteBuffers;
  options.compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_background_jobs = 2;
  options.max_subcompactions = 2;
  options.max_open_files = -1;
  options.allow_concurrent_memtable_write = false;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
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
  return Told(static_cast<Store *>(raw)->db->FlushWAL(true), "DB::FlushWAL", error);
}

int StoreSettle(void *raw, bench_error *error) {
  auto *db = static_cast<Store *>(raw)->db.get();
  return Told(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr), "DB::CompactRange", error);
}

int StoreClose(void *raw, bench_error *error) {
  auto *store = static_cast<Store *>(raw);
  const auto status = store->db->Close();
  delete store;
  return Told(status, "DB::Close", error);
}

void *ReaderOpen(void *raw, bench_error *) {
  auto *reader = new Reader;
  reader->store = static_cast<Store *>(raw);
  return reader;
}

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

int Range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  return Visit(static_cast<Reader *>(raw)->store, rocksdb::ReadOptions(), range, seen, error);
}

int Scan(void *raw, bench_seen *seen, bench_error *error) {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 2 << 20;
  return Visit(static_cast<Reader *>(raw)->store, options, &kAll, seen, error);
}

void ReaderClose(void *raw) { delete static_cast<Reader *>(raw); }

// Backups share the files that they have in common.
std::string BackupsIn(const char *dir) { return std::string(dir) + "/backups"; }

int Backup(void *raw, const char *to, bench_error *error) {
  rocksdb::BackupEngine *engine = nullptr;
  const rocksdb::BackupEngineOptions options(BackupsIn(to));
  const auto opened = rocksdb::BackupEngine::Open(options, rocksdb::Env::Default(), &engine);
  if (!opened.ok()) return Fail(opened, "BackupEngine::Open", error);
  const std::unique_ptr<rocksdb::BackupEngine> owned(engine);
  auto *db = static_cast<Store *>(raw)->db.get();
  return Told(engine->CreateNewBackup(db, true), "BackupEngine::CreateNewBackup", error);
}

int Restore(const char *from, const char *to, bench_error *error) {
  rocksdb::BackupEngineReadOnly *engine = nullptr;
  const rocksdb::BackupEngineOptions options(BackupsIn(from));
  const auto opened = rocksdb::BackupEngineReadOnly::Open(options, rocksdb::Env::Default(), &engine);
  if (!opened.ok()) return Fail(opened, "BackupEngineReadOnly::Open", error);
  const std::unique_ptr<rocksdb::BackupEngineReadOnly> owned(engine);
  const std::string target = std::string(to) + "/rocksdb";
  return Told(engine->RestoreDBFromLatestBackup(target, target), "RestoreDBFromLatestBackup", error);
}

}  // namespace

extern "C" const bench_peer bench_rocksdb = {
    Version,
    "four write buffers of 8 MiB, LRU block cache of what they, the indexes and the filters leave of the budget; "
    "10-bit Bloom filter, blocks of 4 KiB with a hash index, dynamic level sizes, 2 background jobs, no concurrent "
    "writes to a buffer, no periodic statistics, no compression; a WriteBatch a transaction, synced only when "
    "durable; MultiGet for many; settled by CompactRange; a backup is one of its BackupEngine, flushed first",
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
    GetMany,
    Scan,
    Range,
    ReaderClose,
    nullptr,
    Backup,
    Restore,
};
