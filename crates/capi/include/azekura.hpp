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

#include "azekura_base.hpp"

namespace azekura {

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

namespace detail {

/* A time to live in milliseconds; the longest one does not end, and a negative one has. */
inline uint64_t ttl_ms(std::chrono::milliseconds ttl)
{
    if (ttl == std::chrono::milliseconds::max())
        return AZK_FOREVER;
    return ttl.count() < 0 ? 0 : static_cast<uint64_t>(ttl.count());
}

/* How long a record will still be there, as the call says. */
template <class Call> std::optional<std::chrono::milliseconds> lifetime(Call call)
{
    uint64_t left = 0;
    if (!found(call(&left)))
        return std::nullopt;
    return left == AZK_FOREVER ? std::chrono::milliseconds::max() : std::chrono::milliseconds(left);
}

/* A loop over what has next(), key() and value(). */
template <class Place> class record_iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::pair<std::string_view, std::string_view>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type *;
    using reference = const value_type &;

    record_iterator() = default;
    explicit record_iterator(Place *at) : at_(at) { ++*this; }

    reference operator*() const { return record_; }
    pointer operator->() const { return &record_; }

    record_iterator &operator++()
    {
        if (at_->next())
            record_ = {at_->key(), at_->value()};
        else
            at_ = nullptr;
        return *this;
    }

    void operator++(int) { ++*this; }

    bool operator==(const record_iterator &other) const { return at_ == other.at_; }
    bool operator!=(const record_iterator &other) const { return at_ != other.at_; }

private:
    Place *at_ = nullptr;
    value_type record_;
};

} // namespace detail

/* Records to loop over, once, from the last to the first. */
class reversed_records {
    struct place {
        azekura::cursor cursor;

        bool next() { return cursor.prev(); }
        std::string_view key() const { return cursor.key(); }
        std::string_view value() const { return cursor.value(); }
    };

public:
    using record = std::pair<std::string_view, std::string_view>;
    using iterator = detail::record_iterator<place>;

    explicit reversed_records(azekura::cursor cursor) : place_{std::move(cursor)} {}

    iterator begin()
    {
        place_.cursor.seek_last();
        return iterator(&place_);
    }

    iterator end() { return iterator(); }

private:
    place place_;
};

/* Records to loop over, once: for (auto [key, value] : table.prefix("a")). */
class records {
public:
    using record = std::pair<std::string_view, std::string_view>;
    using iterator = detail::record_iterator<cursor>;

    explicit records(azekura::cursor cursor) : cursor_(std::move(cursor)) {}

    iterator begin() { return iterator(&cursor_); }
    iterator end() { return iterator(); }

    /* The same from the last to the first: for (auto [key, value] : table.prefix("a").reversed()). */
    reversed_records reversed() && { return reversed_records(std::move(cursor_)); }

private:
    azekura::cursor cursor_;
};

} // namespace azekura

#include "azekura_index.hpp"
#include "azekura_feed.hpp"

namespace azekura {

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

    /// Sets the value of a key for some time, after which the record is gone by itself.
    void put_for(std::string_view key, std::string_view value, std::chrono::milliseconds ttl)
    {
        detail::check(
            azk_table_put_for(get(), key.data(), key.size(), value.data(), value.size(), detail::ttl_ms(ttl)));
    }

    /// How long records live if the put does not say otherwise; std::chrono::milliseconds::max() if until they are
    /// removed.
    std::chrono::milliseconds usual_ttl() const
    {
        return *detail::lifetime([&](uint64_t *ttl) { return azk_table_usual_ttl(get(), ttl); });
    }

    /// How long those live that are put from now on.
    void set_usual_ttl(std::chrono::milliseconds ttl)
    {
        detail::check(azk_table_set_usual_ttl(get(), detail::ttl_ms(ttl)));
    }

    /// How long a record will still be there: std::chrono::milliseconds::max() if until it is removed; none if it
    /// is not there.
    std::optional<std::chrono::milliseconds> ttl(std::string_view key) const
    {
        return detail::lifetime([&](uint64_t *left) { return azk_table_ttl(get(), key.data(), key.size(), left); });
    }

    /// Gives a record another time to live; with std::chrono::milliseconds::max() it stays. True if it was there.
    bool expire(std::string_view key, std::chrono::milliseconds ttl)
    {
        return detail::answer([&](bool *done) {
            return azk_table_expire(get(), key.data(), key.size(), detail::ttl_ms(ttl), done);
        });
    }

    int64_t increment(std::string_view key, int64_t delta)
    {
        int64_t sum = 0;
        detail::check(azk_table_increment(get(), key.data(), key.size(), delta, &sum));
        return sum;
    }

    /// Changes a number of eight bytes (std::int64_t, std::uint64_t, double) without reading it. An absent key gets
    /// `number` as its value.
    template <typename Number> void merge(std::string_view key, azk_operator operation, Number number)
    {
        static_assert(sizeof(Number) == 8 && std::is_arithmetic<Number>::value, "numbers have eight bytes");
        detail::check(azk_table_merge(get(), key.data(), key.size(), operation, &number, sizeof number));
    }

    /// Puts bytes behind the value without reading it. An absent key gets them as its value.
    void merge_append(std::string_view key, std::string_view bytes)
    {
        detail::check(azk_table_merge(get(), key.data(), key.size(), AZK_APPEND, bytes.data(), bytes.size()));
    }

    /// Unites a set with elements of `width` bytes (1 to 255) without reading it. They stand one after the other in
    /// `elements`, in any order; the value has them in the order of their bytes, each once.
    void merge_union(std::string_view key, int width, std::string_view elements)
    {
        int32_t operation = detail::union_of(width);
        detail::check(azk_table_merge(get(), key.data(), key.size(), operation, elements.data(), elements.size()));
    }

    bool compare_and_swap(std::string_view key, optional_view expected, optional_view value)
    {
        detail::optional_bytes from(expected), to(value);
        return detail::answer([&](bool *done) {
            return azk_table_compare_and_swap(get(), key.data(), key.size(), from.get(), to.get(), done);
        });
    }

    /*
     * Replaces the value by what f(old) makes of it, where none stands for an absent key, before and after. f may be
     * called again if another commit comes between, and must not change the key itself. What it throws writes nothing.
     */
    template <class F> void update(std::string_view key, F f)
    {
        detail::updater<F> calls(f);
        calls.check(azk_table_update(get(), key.data(), key.size(), detail::updater<F>::call, &calls));
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

    /* Makes an index, complete and durable when it returns, or opens it: table.create_index("by_year", "v:i64"). */
    azekura::index create_index(const std::string &name, const std::string &spec)
    {
        azk_index *out = nullptr;
        detail::check(azk_table_create_index(get(), name.c_str(), spec.c_str(), nullptr, nullptr, &out));
        return azekura::index(out);
    }

    azekura::index index(const std::string &name) const
    {
        azk_index *out = nullptr;
        detail::check(azk_table_index(get(), name.c_str(), &out));
        return azekura::index(out);
    }

    /* Has the feed every change from now on, or none any more. */
    void set_feed(feed_content content)
    {
        detail::check(azk_table_set_feed(get(), static_cast<int32_t>(content)));
    }

    void drop_index(const std::string &name) { detail::check(azk_table_drop_index(get(), name.c_str())); }

    std::vector<index_info> indexes() const
    {
        azk_index_info *list = nullptr;
        size_t count = 0;
        detail::check(azk_table_indexes(get(), &list, &count));
        detail::memory<azk_index_info> owner(list);
        std::vector<index_info> out;
        for (size_t i = 0; i < count; i++)
            out.push_back({list[i].name, list[i].spec, list[i].is_ready, list[i].entries, list[i].bytes});
        return out;
    }

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
