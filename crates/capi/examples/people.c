/* A minute's start: a table, a transaction, a walk over a prefix. */
#include <azekura.h>
#include <stdio.h>
#include <stdlib.h>

/* Any other answer than AZK_OK ends the program with what the library says of it. */
static void must(azk_status status)
{
    if (status != AZK_OK) {
        fprintf(stderr, "%s: %s\n", azk_status_name(status), azk_error_message());
        exit(1);
    }
}

int main(void)
{
    azk_db *db;
    azk_table *born;
    azk_write *txn;
    azk_cursor *cursor;
    azk_bytes key, value;
    azk_status status;
    char year[8];
    size_t len;

    must(azk_db_open("people.azk", NULL, &db));
    must(azk_db_table(db, "born", AZK_ORDERED, &born));
    must(azk_table_put(born, "ada", 3, "1815", 4)); /* durable when it returns */

    must(azk_write_begin(db, AZK_DURABILITY_DEFAULT, AZK_SERIALIZABLE, &txn)); /* all or nothing */
    must(azk_write_put(txn, born, "alan", 4, "1912", 4));
    must(azk_write_put(txn, born, "grace", 5, "1906", 4));
    must(azk_write_commit(txn));

    status = azk_table_get(born, "grace", 5, year, sizeof year, &len);
    if (status == AZK_OK)
        printf("grace was born in %.*s\n", (int)len, year);
    else if (status != AZK_NOT_FOUND)
        must(status);

    must(azk_table_prefix_cursor(born, "a", 1, &cursor));
    while ((status = azk_cursor_next(cursor, &key, &value)) == AZK_OK)
        printf("%.*s %.*s\n", (int)key.len, (const char *)key.data, (int)value.len, (const char *)value.data);
    if (status != AZK_NOT_FOUND)
        must(status);

    must(azk_cursor_free(cursor));
    must(azk_table_free(born));
    must(azk_db_close(db));
    return 0;
}
