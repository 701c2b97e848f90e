//! The storage engines of MariaDB.

/// The server's storage engines that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// No transactions and no log.
    MyIsam,
    /// MyISAM's successor, with a log but without transactions of several statements.
    Aria,
    /// With transactions.
    InnoDb,
}
