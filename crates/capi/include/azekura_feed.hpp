/* A part of azekura.hpp, which includes it: the feed of changes. */
#ifndef AZEKURA_FEED_HPP
#define AZEKURA_FEED_HPP

#ifndef AZEKURA_HPP
#error "include azekura.hpp"
#endif

namespace azekura {

/* What the feed has of a table's changes: nothing, keys, new values, or the values before, too. */
enum class feed_content {
    nothing = AZK_FEED_NOTHING,
    keys = AZK_FEED_KEYS,
    values = AZK_FEED_VALUES,
    both = AZK_FEED_BOTH
};

/* What was done, as azk_change_kind has it. */
enum class change_kind {
    other = AZK_CHANGE_OTHER,
    put = AZK_CHANGE_PUT,
    remove = AZK_CHANGE_REMOVE,
    remove_range = AZK_CHANGE_REMOVE_RANGE,
    clear = AZK_CHANGE_CLEAR,
    rename = AZK_CHANGE_RENAME,
    drop = AZK_CHANGE_DROP,
    begin = AZK_CHANGE_BEGIN,
    stop = AZK_CHANGE_STOP
};

/* A change. Views are good until the reader's next call. */
struct change {
    uint64_t commit;
    uint64_t time_ms;
    change_kind kind;
    feed_content content;
    std::string_view table;
    std::string_view key;
    std::optional<std::string_view> end;
    std::optional<std::string_view> value;
    std::optional<std::string_view> old;
    /* When the record that was put expires, in milliseconds since 1970; 0: it does not. */
    uint64_t expires_ms;
};

/* A reader of the feed: while (auto change = feed.next()) …; feed.wait(std::chrono::seconds(60)). */
class feed {
public:
    explicit feed(azk_feed *handle) : handle_(handle) {}

    /* The next change; none if there is no more at present. */
    std::optional<change> next()
    {
        azk_change found;
        if (!detail::found(azk_feed_next(handle_.get(), &found)))
            return std::nullopt;
        return change{found.commit,
                      found.time_ms,
                      static_cast<change_kind>(found.kind),
                      static_cast<feed_content>(found.content),
                      detail::view(found.table),
                      detail::view(found.key),
                      some(found.end),
                      some(found.value),
                      some(found.old),
                      found.expires_ms};
    }

    /* Waits for a change; false if there is none when the time is over. */
    bool wait(std::chrono::milliseconds time)
    {
        return detail::found(azk_feed_wait(handle_.get(), static_cast<uint64_t>(time.count() < 0 ? 0 : time.count())));
    }

    /* The newest commit of which all was given: another reader goes on from there. */
    uint64_t position() const
    {
        uint64_t commit = 0;
        detail::check(azk_feed_position(handle_.get(), &commit));
        return commit;
    }

private:
    static std::optional<std::string_view> some(azk_bytes bytes)
    {
        if (bytes.data == nullptr)
            return std::nullopt;
        return detail::view(bytes);
    }

    detail::handle<azk_feed, azk_feed_free> handle_;
};

} // namespace azekura

#endif
