// Counts the words of its standard input, and prints those that begin with a letter.
#include <azekura.hpp>
#include <iostream>

int main()
{
    azekura::database db("words.azk");
    auto words = db.table("words", azekura::kind::ordered);
    db.transact([&](azekura::write_txn &txn) {
        std::string word;
        while (std::cin >> word)
            txn.append(words, word, "I");
    });
    for (auto [word, strokes] : words.prefix("a"))
        std::cout << word << ' ' << strokes.size() << '\n';
    db.close();
}
