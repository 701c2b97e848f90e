/*
 * Azekura for C++17: the functions of azekura.h as classes. Handles are freed by their destructors, keys and values are
 * std::string_view, errors are exceptions of the class azekura::error. What azekura.h says of threads and forks is true
 * here too.
 *
 * Views that a cursor or a loop gives are good until it moves on; those of read_txn::view until the transaction ends.
 */
#ifndef AZEKURA_HPP
#define AZEKURA_HPP

#include "azekura.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace azekura {

/* What went wrong: a message, and the status of the call. */
class error : public std::runtime_error {
public:
    explicit error(int32_t status) : std::runtime_error(text(status)), status_(status) {}

    azk_status code() const noexcept { return static_cast<azk_status>(status_); }

private:
    /* Calls that give a status which is no error leave no message. */
    static std::string text(int32_t status)
    {
        bool is_error = status > 0 || status <= AZK_BAD_HANDLE;
        return is_error ? azk_error_message() : azk_status_name(status);
    }

    int32_t status_;
};

enum class kind : int32_t { ordered = AZK_ORDERED, hash = AZK_HASH };

enum class durability : int32_t {
    as_opened = AZK_DURABILITY_DEFAULT,
    sync = AZK_DURABILITY_SYNC,
    eventual = AZK_DURABILITY_EVENTUAL
};

enum class follow : int32_t { nothing = AZK_FOLLOW_NOTHING, checkpoints = AZK_FOLLOW_CHECKPOINTS, log = AZK_FOLLOW_LOG };

enum class isolation : int32_t { serializable = AZK_SERIALIZABLE, snapshot = AZK_SNAPSHOT };

/* A key, a value, or a bound that may be missing. */
using optional_view = std::optional<std::string_view>;

namespace detail {

inline void check(int32_t status)
{
    if (status != AZK_OK)
        throw error(status);
}

/* Whether there was something. */
inline bool found(int32_t status)
{
    if (status == AZK_NOT_FOUND)
        return false;
    check(status);
    return true;
}

inline azk_bytes bytes(std::string_view view) { return azk_bytes{view.data(), view.size()}; }

inline std::string_view view(azk_bytes bytes) { return {static_cast<const char *>(bytes.data), bytes.len}; }

/* A bound or value for C, which has NULL where there is none. */
class optional_bytes {
public:
    explicit optional_bytes(optional_view view) : is_there_(view.has_value()), bytes_(bytes(view.value_or(""))) {}

    const azk_bytes *get() const { return is_there_ ? &bytes_ : nullptr; }

private:
    bool is_there_;
    azk_bytes bytes_;
};

struct free_memory {
    void operator()(void *memory) const { azk_free(memory); }
};

template <class T> using memory = std::unique_ptr<T, free_memory>;

/* A handle that is freed by a function. */
template <class H, azk_status (*Free)(H *)> struct free_handle {
    void operator()(H *handle) const { Free(handle); }
};

template <class H, azk_status (*Free)(H *)> using handle = std::unique_ptr<H, free_handle<H, Free>>;

/* A value by way of a buffer, which is made large enough if it must. */
template <class Get> std::optional<std::string> fetch(Get get)
{
    char small[256];
    size_t len = 0;
    int32_t status = get(static_cast<void *>(small), sizeof small, &len);
    if (status == AZK_OK)
        return std::string(small, len);
    std::string large;
    while (status == AZK_BUFFER_TOO_SMALL) {
        large.resize(len);
        status = get(static_cast<void *>(large.data()), large.size(), &len);
    }
    if (!found(status))
        return std::nullopt;
    large.resize(len);
    return large;
}

/* A value in memory of the library's. */
template <class Take> std::optional<std::string> taken(Take take)
{
    void *value = nullptr;
    size_t len = 0;
    if (!found(take(&value, &len)))
        return std::nullopt;
    memory<void> owner(value);
    return std::string(static_cast<const char *>(value), len);
}

/* A key and a value. */
using record = std::pair<std::string, std::string>;

/* A record in one block of the library's, which begins with the key. */
template <class Take> std::optional<record> taken_record(Take take)
{
    azk_bytes key, value;
    if (!found(take(&key, &value)))
        return std::nullopt;
    memory<void> owner(const_cast<void *>(key.data));
    return record(view(key), view(value));
}

/* A function of the caller's for records, as a callback for C. What it throws waits until the call is over. */
template <class F> class callback {
public:
    explicit callback(F &f) : f_(f) {}

    /* As azk_scan_fn. After an exception it answers 1. */
    static int32_t call(void *self, const void *key, size_t key_len, const void *value, size_t value_len)
    {
        auto *own = static_cast<callback *>(self);
        if (own->thrown_)
            return 1;
        try {
            return own->f_(view({key, key_len}), view({value, value_len})) ? 1 : 0;
        } catch (...) {
            own->thrown_ = std::current_exception();
            return 1;
        }
    }

    /* The status of the call. That the walk was ended is none. */
    void check(int32_t status) const
    {
        if (thrown_)
            std::rethrow_exception(thrown_);
        if (status != AZK_STOPPED)
            detail::check(status);
    }

private:
    F &f_;
    std::exception_ptr thrown_;
};

/* Whether what an iterator gives is still there when it has gone on. */
template <class Item> constexpr bool stays = std::is_reference_v<Item> || std::is_same_v<Item, std::string_view>;

/* The values of several keys. */
template <class Keys, class Get> std::vector<std::optional<std::string>> fetch_many(const Keys &keys, Get get)
{
    static_assert(stays<decltype(*std::begin(keys))>, "the keys are to outlive the call: give them as views, or in a container");
    std::vector<azk_bytes> all;
    for (const auto &key : keys)
        all.push_back(bytes(key));
    azk_bytes *values = nullptr;
    check(get(all.data(), all.size(), &values));
    memory<azk_bytes> owner(values);
    std::vector<std::optional<std::string>> out(all.size());
    for (size_t i = 0; i < all.size(); i++)
        if (values[i].data != nullptr)
            out[i] = std::string(view(values[i]));
    return out;
}

/* Pairs of keys and values, as two arrays. */
template <class Records, class Put> void put_many(const Records &records, Put put)
{
    static_assert(std::is_reference_v<decltype(*std::begin(records))>, "the records are to outlive the call: give them in a container");
    std::vector<azk_bytes> keys, values;
    for (const auto &[key, value] : records) {
        keys.push_back(bytes(key));
        values.push_back(bytes(value));
    }
    check(put(keys.data(), values.data(), keys.size()));
}

template <class Call> bool answer(Call call)
{
    bool yes = false;
    check(call(&yes));
    return yes;
}

template <class Call> uint64_t number(Call call)
{
    uint64_t n = 0;
    check(call(&n));
    return n;
}

} // namespace detail

/* A moving place in a table, as of one snapshot. Values are read when they are asked for. */
class cursor {
public:
    explicit cursor(azk_cursor *handle) : handle_(handle) {}

    /* To the next record, or the one before; false if there is none. */
    bool next() { return detail::found(azk_cursor_next(handle_.get(), &key_, nullptr)); }
    bool prev() { return detail::found(azk_cursor_prev(handle_.get(), &key_, nullptr)); }

    std::string_view key() const { return detail::view(key_); }

    std::string_view value() const
    {
        azk_bytes value;
        detail::check(azk_cursor_value(handle_.get(), &value));
        return detail::view(value);
    }

    size_t value_size() const
    {
        size_t len = 0;
        detail::check(azk_cursor_value_len(handle_.get(), &len));
        return len;
    }

    void seek(std::string_view key) { detail::check(azk_cursor_seek(handle_.get(), key.data(), key.size())); }
    void seek_first() { detail::check(azk_cursor_seek_first(handle_.get())); }
    void seek_last() { detail::check(azk_cursor_seek_last(handle_.get())); }

private:
    detail::handle<azk_cursor, azk_cursor_free> handle_;
    azk_bytes key_{nullptr, 0};
};

/* Records to loop over, once: for (auto [key, value] : table.prefix("a")). */
class records {
public:
    using record = std::pair<std::string_view, std::string_view>;

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = record;
        using difference_type = std::ptrdiff_t;
        using pointer = const record *;
        using reference = const record &;

        iterator() = default;
        explicit iterator(cursor *at) : at_(at) { ++*this; }

        reference operator*() const { return record_; }
        pointer operator->() const { return &record_; }

        iterator &operator++()
        {
            if (at_->next())
                record_ = {at_->key(), at_->value()};
            else
                at_ = nullptr;
            return *this;
        }

        void operator++(int) { ++*this; }

        bool operator==(const iterator &other) const { return at_ == other.at_; }
        bool operator!=(const iterator &other) const { return at_ != other.at_; }

    private:
        cursor *at_ = nullptr;
        record record_;
    };

    explicit records(azekura::cursor cursor) : cursor_(std::move(cursor)) {}

    iterator begin() { return iterator(&cursor_); }
    iterator end() { return iterator(); }

private:
    azekura::cursor cursor_;
};

/* A table of an open database. Each operation is a transaction of its own. */
class table {
public:
    explicit table(azk_table *handle) : handle_(handle) {}

    azk_table *get() const { return handle_.get(); }

    azekura::kind kind() const
    {
        azk_kind kind;
        detail::check(azk_table_kind(get(), &kind));
        return static_cast<azekura::kind>(kind);
    }

    std::string name() const
    {
        char *name = nullptr;
        detail::check(azk_table_name(get(), &name));
        return detail::memory<char>(name).get();
    }

    std::optional<std::string> get(std::string_view key) const
    {
        return detail::fetch([&](void *buffer, size_t capacity, size_t *len) {
            return azk_table_get(get(), key.data(), key.size(), buffer, capacity, len);
        });
    }

    template <class Keys> std::vector<std::optional<std::string>> get_many(const Keys &keys) const
    {
        return detail::fetch_many(keys, [&](const azk_bytes *all, size_t count, azk_bytes **values) {
            return azk_table_get_many(get(), all, count, values);
        });
    }

    bool contains(std::string_view key) const
    {
        return detail::answer([&](bool *yes) { return azk_table_contains(get(), key.data(), key.size(), yes); });
    }

    uint64_t count() const
    {
        return detail::number([&](uint64_t *n) { return azk_table_count(get(), n); });
    }

    void put(std::string_view key, std::string_view value)
    {
        detail::check(azk_table_put(get(), key.data(), key.size(), value.data(), value.size()));
    }

    /* Of pairs of keys and values. */
    template <class Records> void put_many(const Records &records)
    {
        detail::put_many(records, [&](const azk_bytes *keys, const azk_bytes *values, size_t count) {
            return azk_table_put_many(get(), keys, values, count);
        });
    }

    void remove(std::string_view key) { detail::check(azk_table_remove(get(), key.data(), key.size())); }

    bool add(std::string_view key, std::string_view value)
    {
        return detail::answer([&](bool *done) {
            return azk_table_add(get(), key.data(), key.size(), value.data(), value.size(), done);
        });
    }

    bool replace(std::string_view key, std::string_view value)
    {
        return detail::answer([&](bool *done) {
            return azk_table_replace(get(), key.data(), key.size(), value.data(), value.size(), done);
        });
    }

    void append(std::string_view key, std::string_view value)
    {
        detail::check(azk_table_append(get(), key.data(), key.size(), value.data(), value.size()));
    }

    int64_t increment(std::string_view key, int64_t delta)
    {
        int64_t sum = 0;
        detail::check(azk_table_increment(get(), key.data(), key.size(), delta, &sum));
        return sum;
    }

    bool compare_and_swap(std::string_view key, optional_view expected, optional_view value)
    {
        detail::optional_bytes from(expected), to(value);
        return detail::answer([&](bool *done) {
            return azk_table_compare_and_swap(get(), key.data(), key.size(), from.get(), to.get(), done);
        });
    }

    std::optional<std::string> take(std::string_view key)
    {
        return detail::taken([&](void **value, size_t *len) {
            return azk_table_take(get(), key.data(), key.size(), value, len);
        });
    }

    /* Whether it was there. */
    bool remove_existing(std::string_view key)
    {
        return detail::answer([&](bool *done) { return azk_table_remove_existing(get(), key.data(), key.size(), done); });
    }

    std::optional<detail::record> first() const
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) { return azk_table_first(get(), key, value); });
    }

    std::optional<detail::record> last() const
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) { return azk_table_last(get(), key, value); });
    }

    /* Removes the first record, or the last one, and gives it. */
    std::optional<detail::record> pop_first()
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) { return azk_table_pop_first(get(), key, value); });
    }

    std::optional<detail::record> pop_last()
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) { return azk_table_pop_last(get(), key, value); });
    }

    /*
     * Removes the records of a range for which f(key, value) is false, and tells how many. f may be called again for
     * a record. If it throws, what it has refused before is removed all the same.
     */
    template <class F> uint64_t retain(optional_view from, optional_view to, F f)
    {
        detail::optional_bytes start(from), end(to);
        detail::callback<F> calls(f);
        uint64_t removed = 0;
        calls.check(azk_table_retain(get(), start.get(), end.get(), detail::callback<F>::call, &calls, &removed));
        return removed;
    }

    /* Removes a range, and then calls f(key, value) with its records, until it is true. */
    template <class F> void drain(optional_view from, optional_view to, F f)
    {
        detail::optional_bytes start(from), end(to);
        detail::callback<F> calls(f);
        calls.check(azk_table_drain(get(), start.get(), end.get(), detail::callback<F>::call, &calls));
    }

    azk_table_figures stats() const
    {
        azk_table_figures stats;
        stats.size = sizeof stats;
        detail::check(azk_table_stats(get(), &stats));
        return stats;
    }

    /* From a key on, and below another. */
    void remove_range(optional_view from, optional_view to)
    {
        detail::check(azk_table_remove_range(get(), detail::optional_bytes(from).get(), detail::optional_bytes(to).get()));
    }

    void clear() { detail::check(azk_table_clear(get())); }

    azekura::cursor cursor(optional_view from = {}, optional_view to = {}) const
    {
        azk_cursor *out = nullptr;
        detail::check(azk_table_cursor(get(), detail::optional_bytes(from).get(), detail::optional_bytes(to).get(), &out));
        return azekura::cursor(out);
    }

    records range(optional_view from, optional_view to) const { return records(cursor(from, to)); }

    records all() const { return records(cursor()); }

    records prefix(std::string_view prefix) const
    {
        azk_cursor *out = nullptr;
        detail::check(azk_table_prefix_cursor(get(), prefix.data(), prefix.size(), &out));
        return records(azekura::cursor(out));
    }

    /* A loop over the table itself: the records as they are when it begins. */
    class iterator : public records::iterator {
    public:
        iterator() = default;
        explicit iterator(std::shared_ptr<records> all) : records::iterator(all->begin()), all_(std::move(all)) {}

    private:
        std::shared_ptr<records> all_;
    };

    iterator begin() const { return iterator(std::make_shared<records>(all())); }
    iterator end() const { return iterator(); }

private:
    detail::handle<azk_table, azk_table_free> handle_;
};

} // namespace azekura

#include "azekura_txn.hpp"

#include "azekura_backup.hpp"

#endif
