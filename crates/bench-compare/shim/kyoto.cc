// Kyoto Cabinet: HashDB (hash, one file) and TreeDB (B+ tree kept in a HashDB).
//
// Transactions are the library's own. begin_transaction(false) writes the old contents of what it
// changes to a log beside the file, without a sync; `true` syncs. There is one transaction at a time
// in the whole database, and readers see its changes before it commits.

#include "peer.h"

#include <kchashdb.h>
#include <kcplantdb.h>

#include <memory>
#include <string>
#include <vector>

namespace {

namespace kc = kyotocabinet;

constexpr uint64_t kSmallAddressLimit = UINT64_C(24) << 30;  // TSMALL reaches 32 GiB at 8-byte alignment

template <typename DB>
struct Store {
  DB db;
  bool durable = false;
};

template <typename DB>
struct Reader {
  Store<DB> *store;
  std::vector<char> buffer = std::vector<char>(8192);
};

template <typename DB>
int Fail(const Store<DB> *store, const char *call, bench_error *error) {
  const auto e = store->db.error();
  const std::string text = std::string(e.name()) + ": " + e.message();
  return bench_fail(error, call, text.c_str());
}

const char *Version() { return kc::VERSION; }

// Chaining by a linear list saves one child pointer per record, and is good while chains are short: here
// there are two buckets per record. 32-bit addresses save two bytes per pointer wherever they suffice.
template <typename DB>
int8_t OptionsFor(const bench_open *how) {
  const bool small = how->raw_bytes + how->records * 32 < kSmallAddressLimit;
  return static_cast<int8_t>(DB::TLINEAR | (small ? DB::TSMALL : 0));
}

bool Tune(kc::HashDB *db, const bench_open *how) {
  return db->tune_options(OptionsFor<kc::HashDB>(how)) &&
         db->tune_buckets(static_cast<int64_t>(how->records * 2 + 1)) &&
         db->tune_map(static_cast<int64_t>(how->budget_bytes));
}

// A record in a cached page is a separate allocation, so a page takes about two and a half times its
// serialized size in memory. With a quarter of the budget as serialized bytes, a quarter is left for the
// mapping of the file beneath.
bool Tune(kc::TreeDB *db, const bench_open *how) {
  constexpr int32_t kPageBytes = 8192;
  const uint64_t pages = (how->raw_bytes + how->records * 4) / (kPageBytes / 2) + 1024;
  return db->tune_options(OptionsFor<kc::TreeDB>(how)) && db->tune_page(kPageBytes) &&
         db->tune_buckets(static_cast<int64_t>(pages * 2)) &&
         db->tune_page_cache(static_cast<int64_t>(how->budget_bytes / 4)) &&
         db->tune_map(static_cast<int64_t>(how->budget_bytes / 4));
}

const char *FileName(const kc::HashDB *) { return "/data.kch"; }
const char *FileName(const kc::TreeDB *) { return "/data.kct"; }

template <typename DB>
void *StoreOpen(const bench_open *how, bench_error *error) {
  auto *store = new Store<DB>;
  store->durable = how->flags & BENCH_DURABLE;
  const std::string path = std::string(how->path) + FileName(&store->db);
  uint32_t mode = DB::OWRITER;
  if (how->flags & BENCH_CREATE) mode |= DB::OCREATE | DB::OTRUNCATE;
  if (!Tune(&store->db, how) || !store->db.open(path, mode)) {
    Fail(store, "open", error);
    delete store;
    return nullptr;
  }
  return store;
}

template <typename DB>
int StoreSync(void *raw, bench_error *error) {
  auto *store = static_cast<Store<DB> *>(raw);
  return store->db.synchronize(true) ? 0 : Fail(store, "synchronize", error);
}

template <typename DB>
int StoreClose(void *raw, bench_error *error) {
  auto *store = static_cast<Store<DB> *>(raw);
  const int result = store->db.close() ? 0 : Fail(store, "close", error);
  delete store;
  return result;
}

template <typename DB>
struct Writer {
  Store<DB> *store;
  bool open = false;
};

template <typename DB>
void *WriterOpen(void *raw, bench_error *) {
  return new Writer<DB>{static_cast<Store<DB> *>(raw)};
}

template <typename DB>
int Begin(void *raw, bench_error *error) {
  auto *writer = static_cast<Writer<DB> *>(raw);
  if (!writer->store->db.begin_transaction(writer->store->durable))
    return Fail(writer->store, "begin_transaction", error);
  writer->open = true;
  return 0;
}

template <typename DB>
int Put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes,
        bench_error *error) {
  auto *writer = static_cast<Writer<DB> *>(raw);
  // The library treats a value at address 1 as a request to remove the record. Rust's empty slices lie
  // there.
  const char *bytes = value_bytes == 0 ? "" : reinterpret_cast<const char *>(value);
  return writer->store->db.set(reinterpret_cast<const char *>(key), key_bytes, bytes, value_bytes)
             ? 0
             : Fail(writer->store, "set", error);
}

template <typename DB>
int Remove(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  auto *store = static_cast<Writer<DB> *>(raw)->store;
  if (store->db.remove(reinterpret_cast<const char *>(key), key_bytes)) return 0;
  return store->db.error().code() == DB::Error::NOREC ? 0 : Fail(store, "remove", error);
}

template <typename DB>
int Commit(void *raw, bench_error *error) {
  auto *writer = static_cast<Writer<DB> *>(raw);
  writer->open = false;
  return writer->store->db.end_transaction(true) ? 0
                                                 : Fail(writer->store, "end_transaction", error);
}

template <typename DB>
void WriterClose(void *raw) {
  auto *writer = static_cast<Writer<DB> *>(raw);
  if (writer->open) writer->store->db.end_transaction(false);
  delete writer;
}

template <typename DB>
void *ReaderOpen(void *raw, bench_error *) {
  return new Reader<DB>{static_cast<Store<DB> *>(raw)};
}

template <typename DB>
int Refresh(void *, bench_error *) {
  return 0;
}

template <typename DB>
int Get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value, size_t *value_bytes,
        bench_error *error) {
  auto *reader = static_cast<Reader<DB> *>(raw);
  for (;;) {
    const int32_t found = reader->store->db.get(reinterpret_cast<const char *>(key), key_bytes,
                                                reader->buffer.data(), reader->buffer.size());
    if (found < 0) {
      if (reader->store->db.error().code() == DB::Error::NOREC) return 0;
      return Fail(reader->store, "get", error);
    }
    if (static_cast<size_t>(found) <= reader->buffer.size()) {
      *value = reinterpret_cast<const uint8_t *>(reader->buffer.data());
      *value_bytes = static_cast<size_t>(found);
      return 1;
    }
    reader->buffer.resize(static_cast<size_t>(found));
  }
}

class Summer : public kc::DB::Visitor {
 public:
  bench_seen seen{};

 private:
  const char *visit_full(const char *key, size_t key_bytes, const char *value, size_t value_bytes,
                         size_t *) override {
    bench_see(&seen, key, key_bytes, value, value_bytes);
    return NOP;
  }
};

// The library's own iterator over all records locks once. Its cursors lock at every step.
template <typename DB>
int Scan(void *raw, bench_seen *seen, bench_error *error) {
  auto *reader = static_cast<Reader<DB> *>(raw);
  Summer summer;
  if (!reader->store->db.iterate(&summer, false)) return Fail(reader->store, "iterate", error);
  *seen = summer.seen;
  return 0;
}

bool Jump(kc::TreeDB::Cursor *cursor, const bench_range *range) {
  const auto *from = reinterpret_cast<const char *>(range->from);
  if (from == nullptr) return range->down ? cursor->jump_back() : cursor->jump();
  return range->down ? cursor->jump_back(from, range->from_bytes) : cursor->jump(from, range->from_bytes);
}

// The call that visits a record also moves the cursor forward. Moving back takes a separate call.
int Range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  auto *reader = static_cast<Reader<kc::TreeDB> *>(raw);
  const std::unique_ptr<kc::TreeDB::Cursor> cursor(reader->store->db.cursor());
  Summer summer;
  bool there = Jump(cursor.get(), range);
  while (there && summer.seen.records < range->limit) {
    there = cursor->accept(&summer, false, !range->down);
    if (there && range->down) there = cursor->step_back();
  }
  if (!there && reader->store->db.error().code() != kc::TreeDB::Error::NOREC)
    return Fail(reader->store, "Cursor", error);
  *seen = summer.seen;
  return 0;
}

template <typename DB>
void ReaderClose(void *raw) {
  delete static_cast<Reader<DB> *>(raw);
}

template <typename DB>
constexpr bench_peer Peer(const char *configuration, decltype(bench_peer::range) range) {
  return {Version,         configuration,   StoreOpen<DB>,  StoreSync<DB>, nullptr,    StoreClose<DB>,
          WriterOpen<DB>,  Begin<DB>,       Put<DB>,        Remove<DB>,    Commit<DB>, WriterClose<DB>,
          ReaderOpen<DB>,  Refresh<DB>,     Get<DB>,        nullptr,       Scan<DB>,   range,
          ReaderClose<DB>};
}

}  // namespace

extern "C" const bench_peer bench_kyoto_hash = Peer<kc::HashDB>(
    "tune_buckets(2 x records), tune_map(budget), tune_options(TLINEAR | TSMALL below 24 GiB), "
    "begin_transaction(hard only when durable); iterate() for scans",
    nullptr);

extern "C" const bench_peer bench_kyoto_tree = Peer<kc::TreeDB>(
    "tune_page(8192), tune_page_cache(budget / 4 of serialized bytes), tune_map(budget / 4), "
    "tune_buckets(4 x pages), tune_options(TLINEAR | TSMALL), lexical order, "
    "begin_transaction(hard only when durable); iterate() for scans, a cursor for ranges",
    Range);
