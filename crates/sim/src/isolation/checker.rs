//! The judge of a history. It builds the graph of dependencies (Adya, *Weak Consistency*, 1999) from what was
//! read and appended, and looks for what the level forbids.
//!
//! # Versions
//!
//! The versions of a list are its prefixes. The longest read of a list gives its order, and every other read
//! must be a prefix of it. The edges follow. The writer of a version comes before the writer of the next one
//! (`ww`) and before its readers (`wr`). The reader of a version comes before the writer of the next one
//! (`rw`). There are also edges in real time, from a transaction that has ended to those that begin later.
//!
//! # Anomalies
//!
//! | found | which is |
//! |---|---|
//! | G0 | a cycle of `ww` |
//! | G1a, G1b | reading what was rolled back, or what a transaction wrote before its last write to that list |
//! | G1c | a cycle of `ww` and `wr` |
//! | G-single | a cycle with one `rw`: read skew, a lost update |
//! | G-nonadjacent | a cycle in which no two `rw` follow each other: a long fork |
//! | G2 | any other cycle with `rw`: write skew |
//! | the rest | a list that no order of appends explains, or a transaction that does not see itself |
//!
//! Snapshot isolation forbids all but G2. Serializability forbids all. Both are judged in real time here
//! (*strong* snapshot isolation, *strict* serializability), since the engine begins each transaction with all
//! earlier commits.

use super::graph::{Graph, Order, Reads};
use super::history::{Element, History, Key, Op, Txn};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The promised level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Strong snapshot isolation.
    Snapshot,
    /// Strict serializability.
    Serializable,
}

/// The kind of an anomaly; see the table at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are Adya's")]
pub enum Kind {
    G0,
    G1a,
    G1b,
    G1c,
    GSingle,
    GNonadjacent,
    G2,
    /// One of the kinds above, but only by the order in real time: a stale read.
    RealTime,
    /// A transaction does not see its own writes.
    Internal,
    /// Two reads of a list, where neither is a prefix of the other.
    Incompatible,
    /// An element that is in a list twice, or that nobody has appended.
    Garbage,
    /// A committed element that is missing at the end.
    Lost,
}

/// An anomaly, with its evidence.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// Its kind.
    pub kind: Kind,
    /// The evidence.
    pub detail: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.detail)
    }
}

/// Looks for everything that a level forbids. Without anomalies the history has that level.
pub fn check(history: &History, level: Level) -> Vec<Anomaly> {
    let mut check = Check { history, writer: HashMap::new(), order: HashMap::new(), found: Vec::new() };
    check.writers();
    check.internal();
    check.orders();
    check.reads();
    // Without one order of versions there is no graph.
    if !check.found.iter().any(|a| matches!(a.kind, Kind::Incompatible | Kind::Garbage)) {
        let graph = check.graph();
        check.cycles(&graph, level);
    }
    check.found
}

/// Which edges a search may follow.
type Allowed<'a> = &'a dyn Fn(Order) -> bool;

struct Check<'a> {
    history: &'a History,
    /// Who appended an element, and whether that was the last append to the list.
    writer: HashMap<Element, (usize, bool)>,
    /// The longest version of each list.
    order: HashMap<Key, &'a [Element]>,
    found: Vec<Anomaly>,
}

impl<'a> Check<'a> {
    fn add(&mut self, kind: Kind, detail: String) {
        self.found.push(Anomaly { kind, detail });
    }

    fn txn(&self, n: usize) -> &'a Txn {
        &self.history.txns[n]
    }

    fn writers(&mut self) {
        for (n, txn) in self.history.txns.iter().enumerate() {
            let mut last: HashMap<Key, Element> = HashMap::new();
            for op in &txn.ops {
                if let Op::Append(key, element) = *op {
                    last.insert(key, element);
                    self.writer.insert(element, (n, false));
                }
            }
            for element in last.values() {
                self.writer.insert(*element, (n, true));
            }
        }
    }

    /// Checks that within a transaction a list is what was read before, with what was appended since.
    fn internal(&mut self) {
        for txn in self.history.txns.iter().filter(|t| t.committed) {
            let mut seen: HashMap<Key, Vec<Element>> = HashMap::new();
            let mut appended: HashMap<Key, Vec<Element>> = HashMap::new();
            for op in &txn.ops {
                match op {
                    Op::Append(key, element) => {
                        appended.entry(*key).or_default().push(*element);
                        if let Some(list) = seen.get_mut(key) {
                            list.push(*element);
                        }
                    }
                    Op::Read(key, list) => {
                        let own = appended.get(key).map_or(&[][..], Vec::as_slice);
                        if seen.get(key).is_some_and(|s| s != list) || !list.ends_with(own) {
                            self.add(Kind::Internal, format!("list {key} in {txn}"));
                        }
                        seen.insert(*key, list.clone());
                    }
                }
            }
        }
    }

    /// The reads of committed transactions, with the transactions' indexes.
    fn all_reads(&self) -> impl Iterator<Item = (usize, Key, &'a [Element])> + use<'a> {
        let committed = self.history.txns.iter().enumerate().filter(|(_, t)| t.committed);
        committed.flat_map(|(n, t)| {
            t.ops.iter().filter_map(move |op| match op {
                Op::Read(key, list) => Some((n, *key, list.as_slice())),
                Op::Append(..) => None,
            })
        })
    }

    fn orders(&mut self) {
        for (_, key, list) in self.all_reads() {
            let longest = self.order.entry(key).or_insert(list);
            if list.len() > longest.len() {
                *longest = list;
            }
        }
        for (n, key, list) in self.all_reads() {
            if !self.order[&key].starts_with(list) {
                self.add(Kind::Incompatible, format!("list {key} in {}", self.txn(n)));
            }
        }
        let mut present: HashSet<Element> = HashSet::new();
        for (key, list) in self.order.clone() {
            for element in list {
                let known = self.writer.contains_key(element);
                if !known || !present.insert(*element) {
                    let what = if known { "stands twice" } else { "was never appended" };
                    self.add(Kind::Garbage, format!("element {element} of list {key} {what}"));
                }
            }
        }
        for txn in self.history.txns.iter().filter(|t| t.committed) {
            for op in &txn.ops {
                if let Op::Append(key, element) = op
                    && !present.contains(element)
                {
                    self.add(Kind::Lost, format!("element {element} of list {key}, appended by {txn}"));
                }
            }
        }
    }

    /// Finds reads of what was rolled back or not finished.
    fn reads(&mut self) {
        for (n, key, list) in self.all_reads() {
            for element in list {
                if let Some(&(writer, _)) = self.writer.get(element)
                    && !self.txn(writer).committed
                {
                    self.add(Kind::G1a, format!("element {element} of list {key} in {}", self.txn(n)));
                }
            }
            if let Some(&(writer, last)) = list.last().and_then(|e| self.writer.get(e))
                && writer != n
                && !last
            {
                self.add(Kind::G1b, format!("list {key} in {}", self.txn(n)));
            }
        }
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.history.txns.len());
        let writer = |e: &Element| self.writer.get(e).map(|w| w.0);
        for list in self.order.values() {
            for pair in list.windows(2) {
                if let (Some(a), Some(b)) = (writer(&pair[0]), writer(&pair[1])) {
                    graph.add(a, b, Order::WriteWrite);
                }
            }
        }
        for (reader, key, list) in self.all_reads() {
            // A transaction does not depend on what it has appended itself.
            let foreign = list.iter().rposition(|e| writer(e) != Some(reader)).map_or(0, |at| at + 1);
            if let Some(from) = list[..foreign].last().and_then(writer) {
                graph.add(from, reader, Order::WriteRead);
            }
            let next = self.order[&key][foreign..].iter().find_map(|e| writer(e).filter(|&w| w != reader));
            let own_follows = self.order[&key].get(foreign).and_then(writer) == Some(reader);
            if let Some(next) = next.filter(|_| !own_follows) {
                graph.add(reader, next, Order::ReadWrite);
            }
        }
        self.real_time(&mut graph);
        graph
    }

    /// Adds edges from what has ended to what begins later. Edges that follow from others are left out.
    fn real_time(&self, graph: &mut Graph) {
        let txns = &self.history.txns;
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (n, txn) in txns.iter().enumerate().filter(|(_, t)| t.committed) {
            events.extend([(txn.begun, true, n), (txn.ended, false, n)]);
        }
        events.sort_unstable();
        // Transactions that have ended, if none that has ended began after their end.
        let mut ended: Vec<usize> = Vec::new();
        for (_, begins, n) in events {
            if begins {
                ended.iter().for_each(|&before| graph.add(before, n, Order::RealTime));
            } else {
                ended.retain(|&before| txns[before].ended > txns[n].begun);
                ended.push(n);
            }
        }
    }

    fn cycles(&mut self, graph: &Graph, level: Level) {
        use Order::{ReadWrite, RealTime, WriteWrite};
        let data = |order| order != RealTime;
        let searches: [(Kind, Reads, Allowed<'_>); 5] = [
            (Kind::G0, Reads::None, &|order| order == WriteWrite),
            (Kind::G1c, Reads::None, &|order| data(order) && order != ReadWrite),
            (Kind::GSingle, Reads::One, &data),
            (Kind::GNonadjacent, Reads::Apart, &data),
            (Kind::G2, Reads::Some, &data),
        ];
        let wanted = |kind: Kind| level == Level::Serializable || kind != Kind::G2;
        for (kind, reads, allowed) in searches.into_iter().filter(|s| wanted(s.0)) {
            if let Some(cycle) = graph.cycle(reads, allowed) {
                self.add(kind, self.told(&cycle));
                // The worst kind comes first, and lesser kinds follow from it.
                return;
            }
        }
        for (kind, reads, _) in searches.into_iter().skip(1).filter(|s| wanted(s.0)) {
            if let Some(cycle) = graph.cycle(reads, |_| true) {
                self.add(Kind::RealTime, format!("{kind:?} with {}", self.told(&cycle)));
                return;
            }
        }
    }

    fn told(&self, cycle: &[(usize, Order)]) -> String {
        let steps: Vec<String> =
            cycle.iter().map(|&(n, order)| format!("{} -{order:?}->", self.txn(n))).collect();
        steps.join(" ")
    }
}

#[cfg(test)]
mod tests;
