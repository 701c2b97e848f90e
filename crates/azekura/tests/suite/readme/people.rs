use azekura::{Db, Options, TableDefinition};

const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");

fn main() -> azekura::Result<()> {
    let db = Db::open("people.azk", Options::new())?;
    let born = db.typed_table(&BORN)?;
    born.put("ada", 1815)?;                          // durable when it returns
    let mut txn = db.write();                        // all or nothing, over any number of tables
    born.write_in(&mut txn).put("grace", 1906)?;
    txn.commit()?;
    for record in born.range("a"..="c")? {
        let (name, year) = record?;
        println!("{name} {year}");
    }
    db.close()
}
