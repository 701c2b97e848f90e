//! Sessions that end by themselves: found by their token, made longer by use, and removed when their time is
//! over.
//!
//! A hash table finds a session by its token. An ordered one has the tokens by the time at which they end, so
//! that what is over is found without looking at the rest.

use azekura::{Db, Durability, Options, Result, TableDefinition, TypedTable};

/// A token as it is drawn.
type Token = [u8; 16];

/// By token: who it is, and until when.
const SESSIONS: TableDefinition<Token, (u64, String)> = TableDefinition::hash("sessions");
/// Until when, and which token.
const ENDS: TableDefinition<(u64, Token), ()> = TableDefinition::ordered("ends");

/// A session ends so many seconds after its last use.
const LASTS: u64 = 600;

struct Sessions {
    db: Db,
    sessions: TypedTable<Token, (u64, String)>,
    ends: TypedTable<(u64, Token), ()>,
}

impl Sessions {
    fn open(path: &std::path::Path) -> Result<Sessions> {
        // A session that is lost with the power is a login more: commits need not wait for the disk.
        let db = Db::open(path, Options::new().durability(Durability::Eventual))?;
        Ok(Sessions { sessions: db.typed_table(&SESSIONS)?, ends: db.typed_table(&ENDS)?, db })
    }

    fn begin(&self, token: Token, user: &str, now: u64) -> Result<()> {
        let mut txn = self.db.write();
        self.sessions.write_in(&mut txn).put(token, (now + LASTS, user))?;
        self.ends.write_in(&mut txn).put((now + LASTS, token), ())?;
        txn.commit()
    }

    /// The user of a session. From now on the session lasts as long as a new one.
    fn user(&self, token: Token, now: u64) -> Result<Option<String>> {
        // Most calls change nothing, and cost one get.
        let Some((end, user)) = self.sessions.get(token)?.filter(|(end, _)| *end > now) else {
            return Ok(None);
        };
        if end < now + LASTS {
            self.db.transact(|txn| {
                let Some((end, user)) = self.sessions.write_in(txn).take(token)? else { return Ok(()) };
                self.ends.write_in(txn).remove((end, token))?;
                self.sessions.write_in(txn).put(token, (now + LASTS, &user))?;
                self.ends.write_in(txn).put((now + LASTS, token), ())
            })?;
        }
        Ok(Some(user))
    }

    /// Removes the sessions that are over; how many they were.
    fn sweep(&self, now: u64) -> Result<usize> {
        self.db.transact(|txn| {
            let over: Vec<_> = self.ends.write_in(txn).drain(..(now + 1, [0; 16]))?.collect::<Result<_>>()?;
            for ((_, token), ()) in &over {
                self.sessions.write_in(txn).remove(*token)?;
            }
            Ok(over.len())
        })
    }
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("azekura-session-cache-{}.azk", std::process::id()));
    let sessions = Sessions::open(&path)?;
    let token = |n: u8| [n; 16];
    sessions.begin(token(1), "ada", 1000)?;
    sessions.begin(token(2), "alan", 1100)?;
    sessions.begin(token(3), "grace", 1200)?;

    assert_eq!(sessions.user(token(1), 1500)?.as_deref(), Some("ada"));
    assert_eq!(sessions.user(token(2), 1700)?, None, "over, though nobody has swept");
    assert_eq!(sessions.user(token(9), 1500)?, None, "never drawn");

    assert_eq!(sessions.sweep(1700)?, 1);
    assert_eq!(sessions.user(token(1), 1800)?.as_deref(), Some("ada"), "it was made longer");
    assert_eq!((sessions.sessions.count()?, sessions.ends.count()?), (2, 2));

    // Somebody is thrown out: all sessions of one user, by a look at all.
    let mut txn = sessions.db.write();
    let mut gone = Vec::new();
    sessions.sessions.write_in(&mut txn).retain(.., |token, (end, user)| {
        let keep = user != "grace";
        if !keep {
            gone.push((end, token));
        }
        keep
    })?;
    for end in &gone {
        sessions.ends.write_in(&mut txn).remove(*end)?;
    }
    txn.commit()?;
    assert_eq!(gone, [(1800, token(3))]);
    assert_eq!((sessions.sessions.count()?, sessions.ends.count()?), (1, 1));

    drop(sessions);
    std::fs::remove_file(&path).expect("the example's file");
    Ok(())
}
