//! Durable commits that wait.

use crate::base::error::{Error, Result};
use crate::base::sync::{Condvar, Mutex, Rank};
use crate::engine::batch::Batch;
use std::sync::Arc;

/// Durable commits that wait for the next sync, and whether somebody is at the one before.
#[derive(Default)]
pub(in crate::engine) struct Waiting {
    pub(in crate::engine) queue: Vec<Arc<Ticket>>,
    pub(in crate::engine) leading: bool,
}

/// A durable commit waiting for its leader.
pub(in crate::engine) struct Ticket {
    pub(super) changes_tables: bool,
    pub(super) slot: Mutex<TicketState>,
    changed: Condvar,
}

pub(in crate::engine) struct TicketState {
    pub(super) batch: Option<Batch>,
    /// The one before has ended: this one leads the next group.
    chosen: bool,
    pub(super) result: Option<Result<u64>>,
}

impl Ticket {
    pub(super) fn new(batch: Batch) -> Arc<Ticket> {
        let changes_tables = !batch.changes().is_empty();
        let slot = TicketState { batch: Some(batch), chosen: false, result: None };
        Arc::new(Ticket { changes_tables, slot: Mutex::ranked(Rank::Ticket, slot), changed: Condvar::new() })
    }

    pub(super) fn choose(&self) {
        self.slot.lock().chosen = true;
        self.changed.notify_one();
    }

    pub(super) fn done(&self, result: Result<u64>) {
        self.slot.lock().result = Some(result);
        self.changed.notify_one();
    }

    pub(super) fn done_if_waiting(&self, error: &Error) {
        self.slot.lock().result.get_or_insert_with(|| Err(error.clone()));
        self.changed.notify_one();
    }

    /// Waits for the result. None if this commit is to lead instead.
    pub(super) fn wait(&self) -> Option<Result<u64>> {
        let mut slot = self.slot.lock();
        while slot.result.is_none() && !slot.chosen {
            self.changed.wait(&mut slot);
        }
        slot.result.clone()
    }
}
