//! A queue of jobs for several workers: the most urgent first, each given to one worker, and given again if
//! that one does not come back.
//!
//! Waiting jobs are ordered by (urgency, number). A worker moves one to those under way, in one transaction;
//! when it is done it removes it there. What is under way for too long goes back.

use azekura::{Db, Options, Result, TableDefinition, TypedTable};
use std::sync::Mutex;
use std::thread;

/// What waits, by urgency (0 first) and number.
const WAITING: TableDefinition<(u8, u64), str> = TableDefinition::ordered("waiting");
/// What is under way, by number: until when, its urgency, and what it is.
const UNDER_WAY: TableDefinition<u64, (u64, u8, String)> = TableDefinition::ordered("under way");

struct Queue {
    db: Db,
    waiting: TypedTable<(u8, u64), str>,
    under_way: TypedTable<u64, (u64, u8, String)>,
}

impl Queue {
    fn open(path: &std::path::Path) -> Result<Queue> {
        let db = Db::open(path, Options::new())?;
        Ok(Queue { waiting: db.typed_table(&WAITING)?, under_way: db.typed_table(&UNDER_WAY)?, db })
    }

    fn add(&self, urgency: u8, id: u64, what: &str) -> Result<()> {
        self.waiting.put((urgency, id), what)
    }

    /// The most urgent job, which is this worker's until `deadline`. If two workers ask at the same time, one
    /// of them meets a conflict. `transact` has it ask again.
    fn begin(&self, deadline: u64) -> Result<Option<(u64, String)>> {
        self.db.transact(|txn| {
            let Some(((urgency, id), what)) = self.waiting.write_in(txn).pop_first()? else {
                return Ok(None);
            };
            self.under_way.write_in(txn).put(id, (deadline, urgency, &what))?;
            Ok(Some((id, what)))
        })
    }

    /// A job is done. False if it was too late, and somebody else has it.
    fn finish(&self, id: u64) -> Result<bool> {
        self.under_way.remove_existing(id)
    }

    /// Gives back what should have been done before now; how many jobs that were.
    fn give_back(&self, now: u64) -> Result<usize> {
        self.db.transact(|txn| {
            let mut late = Vec::new();
            for record in self.under_way.write_in(txn).iter()? {
                let (id, (deadline, urgency, what)) = record?;
                if deadline < now {
                    late.push((id, urgency, what));
                }
            }
            for (id, urgency, what) in &late {
                self.under_way.write_in(txn).remove(*id)?;
                self.waiting.write_in(txn).put((*urgency, *id), what)?;
            }
            Ok(late.len())
        })
    }
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("azekura-job-queue-{}.azk", std::process::id()));
    let queue = Queue::open(&path)?;
    queue.add(5, 1, "sweep the floor")?;
    queue.add(1, 2, "put out the fire")?;
    queue.add(5, 3, "dust the shelves")?;

    assert_eq!(queue.begin(100)?, Some((2, "put out the fire".to_owned())));
    assert_eq!(queue.begin(100)?, Some((1, "sweep the floor".to_owned())));
    assert!(queue.finish(2)?);

    // The worker with the broom does not come back.
    assert_eq!(queue.give_back(101)?, 1);
    assert!(!queue.finish(1)?, "too late");
    assert_eq!(queue.waiting.count()?, 2);

    // Whatever the program does not come to is there when it begins again.
    drop(queue);
    let queue = Queue::open(&path)?;
    for id in 10..50 {
        queue.add(9, id, "count the jars")?;
    }
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let worker = || -> Result<()> {
            while let Some((id, _)) = queue.begin(1000)? {
                assert!(queue.finish(id)?);
                done.lock().expect("no worker panics").push(id);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;

    let mut done = done.into_inner().expect("no worker panics");
    done.sort_unstable();
    let all: Vec<u64> = [1, 3].into_iter().chain(10..50).collect();
    assert_eq!(done, all, "each job was done once");
    assert_eq!((queue.waiting.count()?, queue.under_way.count()?), (0, 0));

    drop(queue);
    std::fs::remove_file(&path).expect("the example's file");
    Ok(())
}
