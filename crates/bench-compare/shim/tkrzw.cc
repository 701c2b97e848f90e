// Tkrzw: HashDBM (hash, one file) and TreeDBM (B+ tree kept in a HashDBM), on memory-mapped files.
//
// The library has no transactions. A batch is a loop of Set. A durable commit is followed by
// Synchronize(true), which makes everything durable.

#include "peer.h"

#include <tkrzw_dbm_hash.h>
#include <tkrzw_dbm_tree.h>
#include <tkrzw_file_mmap.h>
#include <tkrzw_lib_common.h>

#include <algorithm>
#include <memory>
#include <string>

namespace {

template <typename DBM>
struct Store {
  DBM dbm{std::make_unique<tkrzw::MemoryMapParallelFile>()};
  bool durable = false;
};

int Fail(const tkrzw::Status &status, const char *call, bench_error *error) {
  return bench_fail(error, call, std::string(status).c_str());
}

const char *Version() { return tkrzw::PACKAGE_VERSION; }

// Four-byte offsets at 8-byte alignment reach 32 GiB. Beyond that, five bytes are needed.
template <typename Parameters>
void TuneFile(const bench_open *how, Parameters *p) {
  p->update_mode = tkrzw::HashDBM::UPDATE_IN_PLACE;
  p->record_crc_mode = tkrzw::HashDBM::RECORD_CRC_NONE;
  p->align_pow = 3;
  p->offset_width = how->raw_bytes + how->records * 32 < (UINT64_C(24) << 30) ? 4 : 5;
}

tkrzw::HashDBM::TuningParameters Tuned(const tkrzw::HashDBM *, const bench_open *how) {
  tkrzw::HashDBM::TuningParameters p;
  TuneFile(how, &p);
  p.num_buckets = static_cast<int64_t>(how->records * 2 + 1);
  return p;
}

// A cached page holds each record in a separate allocation. Its memory is estimated as twice the
// serialized size.
tkrzw::TreeDBM::TuningParameters Tuned(const tkrzw::TreeDBM *, const bench_open *how) {
  constexpr int32_t kPageBytes = 8130;
  tkrzw::TreeDBM::TuningParameters p;
  TuneFile(how, &p);
  p.max_page_size = kPageBytes;
  p.max_cached_pages =
      static_cast<int32_t>(std::max<uint64_t>(256, how->budget_bytes / (2 * kPageBytes)));
  const uint64_t pages = (how->raw_bytes + how->records * 4) / (kPageBytes / 2) + 1024;
  p.num_buckets = static_cast<int64_t>(pages * 2);
  return p;
}

const char *FileName(const tkrzw::HashDBM *) { return "/data.tkh"; }
const char *FileName(const tkrzw::TreeDBM *) { return "/data.tkt"; }

template <typename DBM>
void *StoreOpen(const bench_open *how, bench_error *error) {
  auto *store = new Store<DBM>;
  store->durable = how->flags & BENCH_DURABLE;
  const std::string path = std::string(how->path) + FileName(&store->dbm);
  const int32_t options =
      how->flags & BENCH_CREATE ? tkrzw::File::OPEN_TRUNCATE : tkrzw::File::OPEN_DEFAULT;
  const auto status = store->dbm.OpenAdvanced(path, true, options, Tuned(&store->dbm, how));
  if (!status.IsOK()) {
    Fail(status, "OpenAdvanced", error);
    delete store;
    return nullptr;
  }
  return store;
}

template <typename DBM>
int StoreSync(void *raw, bench_error *error) {
  const auto status = static_cast<Store<DBM> *>(raw)->dbm.Synchronize(true);
  return status.IsOK() ? 0 : Fail(status, "Synchronize", error);
}

template <typename DBM>
int StoreClose(void *raw, bench_error *error) {
  auto *store = static_cast<Store<DBM> *>(raw);
  const auto status = store->dbm.Close();
  delete store;
  return status.IsOK() ? 0 : Fail(status, "Close", error);
}

template <typename DBM>
void *WriterOpen(void *raw, bench_error *) {
  return raw;
}

int Begin(void *, bench_error *) { return 0; }

template <typename DBM>
int Put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes,
        bench_error *error) {
  const auto status = static_cast<Store<DBM> *>(raw)->dbm.Set(
      std::string_view(reinterpret_cast<const char *>(key), key_bytes),
      std::string_view(reinterpret_cast<const char *>(value), value_bytes));
  return status.IsOK() ? 0 : Fail(status, "Set", error);
}

template <typename DBM>
int Remove(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  const auto status = static_cast<Store<DBM> *>(raw)->dbm.Remove(
      std::string_view(reinterpret_cast<const char *>(key), key_bytes));
  return status.IsOK() || status == tkrzw::Status::NOT_FOUND_ERROR ? 0 : Fail(status, "Remove", error);
}

template <typename DBM>
int Commit(void *raw, bench_error *error) {
  return static_cast<Store<DBM> *>(raw)->durable ? StoreSync<DBM>(raw, error) : 0;
}

void WriterClose(void *) {}

// Copies the visited value into a buffer that lives until the next get.
class Copier : public tkrzw::DBM::RecordProcessor {
 public:
  std::string value;
  bool found = false;

  std::string_view ProcessFull(std::string_view, std::string_view stored) override {
    value.assign(stored.data(), stored.size());
    found = true;
    return NOOP;
  }
};

template <typename DBM>
struct Reader {
  Store<DBM> *store;
  Copier copier;
};

template <typename DBM>
void *ReaderOpen(void *raw, bench_error *) {
  auto *reader = new Reader<DBM>;
  reader->store = static_cast<Store<DBM> *>(raw);
  return reader;
}

template <typename DBM>
int Get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value, size_t *value_bytes,
        bench_error *error) {
  auto *reader = static_cast<Reader<DBM> *>(raw);
  reader->copier.found = false;
  const auto status = reader->store->dbm.Process(
      std::string_view(reinterpret_cast<const char *>(key), key_bytes), &reader->copier, false);
  if (!status.IsOK()) return Fail(status, "Process", error);
  if (!reader->copier.found) return 0;
  *value = reinterpret_cast<const uint8_t *>(reader->copier.value.data());
  *value_bytes = reader->copier.value.size();
  return 1;
}

class Summer : public tkrzw::DBM::RecordProcessor {
 public:
  bench_seen seen{};

  std::string_view ProcessFull(std::string_view key, std::string_view value) override {
    bench_see(&seen, key.data(), key.size(), value.data(), value.size());
    return NOOP;
  }
};

template <typename DBM>
int Scan(void *raw, bench_seen *seen, bench_error *error) {
  Summer summer;
  const auto status = static_cast<Reader<DBM> *>(raw)->store->dbm.ProcessEach(&summer, false);
  if (!status.IsOK()) return Fail(status, "ProcessEach", error);
  *seen = summer.seen;
  return 0;
}

tkrzw::Status Jump(tkrzw::DBM::Iterator *at, const bench_range *range) {
  if (range->from == nullptr) return at->First();
  return at->Jump(std::string_view(reinterpret_cast<const char *>(range->from), range->from_bytes));
}

// Going past the end, and processing a record there, are errors: they mean the end of the range.
//
// In Tkrzw 1.0.25 a tree that was closed and opened again cannot be walked backward: Last and Previous visit
// only the last page (109 of 3,000 records), and JumpLower ends there too. So there is no reverse scan.
int Range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  if (range->down) return 1;
  const auto at = static_cast<Reader<tkrzw::TreeDBM> *>(raw)->store->dbm.MakeIterator();
  Summer summer;
  auto status = Jump(at.get(), range);
  while (status.IsOK() && summer.seen.records < range->limit) {
    status = at->Process(&summer, false);
    if (status.IsOK()) status = at->Next();
  }
  if (!status.IsOK() && status != tkrzw::Status::NOT_FOUND_ERROR) return Fail(status, "Iterator", error);
  *seen = summer.seen;
  return 0;
}

template <typename DBM>
void ReaderClose(void *raw) {
  delete static_cast<Reader<DBM> *>(raw);
}

template <typename DBM>
constexpr bench_peer Peer(const char *configuration, decltype(bench_peer::range) range) {
  return {Version,         configuration, StoreOpen<DBM>, StoreSync<DBM>, nullptr,     StoreClose<DBM>,
          WriterOpen<DBM>, Begin,         Put<DBM>,       Remove<DBM>,    Commit<DBM>, WriterClose,
          ReaderOpen<DBM>, bench_refresh_nothing,       Get<DBM>,       nullptr,        Scan<DBM>,   range,
          ReaderClose<DBM>};
}

}  // namespace

extern "C" const bench_peer bench_tkrzw_hash = Peer<tkrzw::HashDBM>(
    "MemoryMapParallelFile, num_buckets = 2 x records, in place, no record CRC, align_pow 3, "
    "offset_width 4 below 24 GiB; Synchronize(hard) per commit only when durable",
    nullptr);

extern "C" const bench_peer bench_tkrzw_tree = Peer<tkrzw::TreeDBM>(
    "MemoryMapParallelFile, max_page_size 8130, max_cached_pages = budget / 16260, "
    "num_buckets = 4 x pages, in place, no record CRC; Synchronize(hard) per commit only when "
    "durable",
    Range);
