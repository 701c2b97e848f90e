// RocksDB: a log-structured merge tree, in a directory of files.
//
// Its writer and its iterators are those of batches.h.

#include "peer.h"

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr size_t kWriteBufferBytes = size_t{8} << 20;
constexpr int kWriteBuffers = 4;
constexpr uint64_t kBlockBytes = 4096;
constexpr int kFilterBits = 10;
constexpr uint64_t kIndexEntryBytes = 32;

constexpr uint64_t kLogKeptSeconds = 24 * 3600;
constexpr size_t kTimeBytes = 8;

struct Store {
  std::unique_ptr<rocksdb::CompactionFilter> filter;  // outlives the database
  std::unique_ptr<rocksdb::DB> db;
  bool durable = false;
  uint64_t lives_ms = 0;
};

uint64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// Numbers are added up when they are read or merged.
class Adds : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice &, const rocksdb::Slice *old, const rocksdb::Slice &operand, std::string *sum,
             rocksdb::Logger *) const override {
    const uint64_t number = old == nullptr ? 0 : bench_number(old->data(), old->size());
    uint8_t bytes[8];
    bench_write_number(bytes, number + bench_number(operand.data(), operand.size()));
    sum->assign(reinterpret_cast<const char *>(bytes), sizeof bytes);
    return true;
  }
  const char *Name() const override { return "adds"; }
};

// A record that lives for a time ends in the time when it is over. Whoever gets it compares, and compactions
// leave it out from then on.
bool IsOver(const rocksdb::Slice &value, uint64_t now_ms) {
  return value.size() >= kTimeBytes && bench_number(value.data() + value.size() - kTimeBytes, kTimeBytes) <= now_ms;
}

class Expired : public rocksdb::CompactionFilter {
 public:
  bool Filter(int, const rocksdb::Slice &, const rocksdb::Slice &value, std::string *, bool *) const override {
    return IsOver(value, NowMs());
  }
  const char *Name() const override { return "expired"; }
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
  options.merge_operator = std::make_shared<Adds>();
  if (how->flags & BENCH_FED) options.WAL_ttl_seconds = kLogKeptSeconds;
  if (how->lives_ms != 0) {
    // Files in which all has expired are compacted, if nothing else does it.
    options.ttl = how->lives_ms / 1000 + 1;
    options.periodic_compaction_seconds = options.ttl;
  }
  return options;
}

void *StoreOpen(const bench_open *how, bench_error *error) {
  rocksdb::DB *db = nullptr;
  auto store = std::make_unique<Store>();
  auto options = OptionsFor(how);
  store->lives_ms = how->lives_ms;
  if (how->lives_ms != 0) {
    store->filter = std::make_unique<Expired>();
    options.compaction_filter = store->filter.get();
  }
  const auto status = rocksdb::DB::Open(options, std::string(how->path) + "/rocksdb", &db);
  if (!status.ok()) {
    Fail(status, "DB::Open", error);
    return nullptr;
  }
  store->db.reset(db);
  store->durable = how->flags & BENCH_DURABLE;
  return store.release();
}

int PutFor(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes,
           bench_error *error) {
  auto *writer = static_cast<Writer *>(raw);
  if (writer->store->lives_ms == 0) return Put(raw, key, key_bytes, value, value_bytes, error);
  uint8_t time[kTimeBytes];
  bench_write_number(time, NowMs() + writer->store->lives_ms);
  const rocksdb::Slice keys[] = {Bytes(key, key_bytes)};
  const rocksdb::Slice values[] = {Bytes(value, value_bytes), Bytes(time, kTimeBytes)};
  return Told(writer->batch.Put(rocksdb::SliceParts(keys, 1), rocksdb::SliceParts(values, 2)), "WriteBatch::Put", error);
}

int Add(void *raw, const uint8_t *key, size_t key_bytes, uint64_t n, bench_error *error) {
  uint8_t operand[8];
  bench_write_number(operand, n);
  auto &batch = static_cast<Writer *>(raw)->batch;
  return Told(batch.Merge(Bytes(key, key_bytes), Bytes(operand, sizeof operand)), "WriteBatch::Merge", error);
}

// Reads the log. The files of it that are no longer needed are kept in its archive.
struct Changes {
  Store *store;
  rocksdb::SequenceNumber next = 1;
  std::unique_ptr<rocksdb::TransactionLogIterator> at;
};

class Sees : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice &key, const rocksdb::Slice &value) override {
    bench_see(&seen, key.data(), key.size(), value.data(), value.size());
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice &key) override {
    bench_see(&seen, key.data(), key.size(), nullptr, 0);
    return rocksdb::Status::OK();
  }
  bench_seen seen{};
};

void *ChangesOpen(void *raw, bench_error *) {
  auto *changes = new Changes;
  changes->store = static_cast<Store *>(raw);
  return changes;
}

// Goes on where it stood. A new iterator is needed where the old one cannot see what was added.
rocksdb::Status Resume(Changes *changes) {
  if (changes->at != nullptr && !changes->at->Valid() && changes->at->status().ok()) changes->at->Next();
  if (changes->at != nullptr && changes->at->status().ok()) return rocksdb::Status::OK();
  changes->at.reset();
  if (changes->store->db->GetLatestSequenceNumber() < changes->next) return rocksdb::Status::OK();
  return changes->store->db->GetUpdatesSince(changes->next, &changes->at);
}

int ChangesTake(void *raw, uint64_t limit, bench_seen *seen, bench_error *error) {
  auto *changes = static_cast<Changes *>(raw);
  Sees sees;
  const auto resumed = Resume(changes);
  // What is being written has no log yet.
  if (!resumed.ok() && !resumed.IsNotFound()) return Fail(resumed, "DB::GetUpdatesSince", error);
  while (changes->at != nullptr && changes->at->Valid() && sees.seen.records < limit) {
    auto batch = changes->at->GetBatch();
    const auto status = batch.writeBatchPtr->Iterate(&sees);
    if (!status.ok()) return Fail(status, "WriteBatch::Iterate", error);
    changes->next = batch.sequence + static_cast<rocksdb::SequenceNumber>(batch.writeBatchPtr->Count());
    changes->at->Next();
  }
  if (changes->at != nullptr && !changes->at->status().ok() && !changes->at->status().IsTryAgain())
    return Fail(changes->at->status(), "TransactionLogIterator::Next", error);
  *seen = sees.seen;
  return 0;
}

void ChangesClose(void *raw) { delete static_cast<Changes *>(raw); }

// Tables that the directory has from earlier backups are not copied again. Everything is synced.
int BackUp(void *raw, const char *to, bench_error *error) {
  rocksdb::BackupEngine *opened = nullptr;
  auto status = rocksdb::BackupEngine::Open(rocksdb::Env::Default(), rocksdb::BackupEngineOptions(to), &opened);
  if (!status.ok()) return Fail(status, "BackupEngine::Open", error);
  const std::unique_ptr<rocksdb::BackupEngine> engine(opened);
  return Told(engine->CreateNewBackup(static_cast<Store *>(raw)->db.get()), "BackupEngine::CreateNewBackup", error);
}

int Restore(const char *from, const char *to, bench_error *error) {
  rocksdb::BackupEngineReadOnly *opened = nullptr;
  auto status = rocksdb::BackupEngineReadOnly::Open(rocksdb::Env::Default(), rocksdb::BackupEngineOptions(from), &opened);
  if (!status.ok()) return Fail(status, "BackupEngineReadOnly::Open", error);
  const std::unique_ptr<rocksdb::BackupEngineReadOnly> engine(opened);
  const auto path = std::string(to) + "/rocksdb";
  return Told(engine->RestoreDBFromLatestBackup(path, path), "BackupEngine::RestoreDBFromLatestBackup", error);
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
  if (reader->store->lives_ms == 0) return 1;
  if (IsOver(reader->value, NowMs()) || *value_bytes < kTimeBytes) return 0;
  *value_bytes -= kTimeBytes;
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

}  // namespace

extern "C" const bench_peer bench_rocksdb = {
    Version,
    "four write buffers of 8 MiB, LRU block cache of what they, the indexes and the filters leave of the budget; "
    "10-bit Bloom filter, blocks of 4 KiB with a hash index, dynamic level sizes, 2 background jobs, no concurrent "
    "writes to a buffer, no periodic statistics, no compression; a WriteBatch a transaction, synced only when "
    "durable; MultiGet for many; settled by CompactRange; Merge with an operator that adds for the "
    "counters; for the ttl workload eight bytes of time behind each value, which gets compare, a compaction filter "
    "that drops what is over, ttl and periodic_compaction_seconds as long as records live; for the feed workload "
    "GetUpdatesSince, with WAL_ttl_seconds of a day; BackupEngine for backups",
    StoreOpen,
    StoreSync,
    StoreSettle,
    StoreClose,
    WriterOpen,
    Begin,
    PutFor,
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
    Add,
    ChangesOpen,
    ChangesTake,
    ChangesClose,
    BackUp,
    Restore,
};
