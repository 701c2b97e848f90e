//! The graph of the order of transactions, and the search for cycles of a given kind.

use std::collections::VecDeque;

/// Why one transaction came before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It wrote the version that the other one replaced.
    WriteWrite,
    /// It wrote the version that the other one read.
    WriteRead,
    /// It read the version that the other one replaced.
    ReadWrite,
    /// It had ended when the other one began.
    RealTime,
}

/// How many edges of the kind `ReadWrite` a cycle may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// None.
    None,
    /// Exactly one.
    One,
    /// One or more, but no two in a row.
    Apart,
    /// One or more.
    Some,
}

/// The edges, by the transaction from which they start.
pub struct Graph {
    edges: Vec<Vec<(usize, Order)>>,
}

impl Graph {
    /// A graph without edges.
    pub fn new(nodes: usize) -> Graph {
        Graph { edges: vec![Vec::new(); nodes] }
    }

    /// Adds an edge, unless it exists or leads back to its start.
    pub fn add(&mut self, from: usize, to: usize, order: Order) {
        if from != to && !self.edges[from].contains(&(to, order)) {
            self.edges[from].push((to, order));
        }
    }

    /// A cycle over edges that `allowed` accepts, with `reads` as its number of `ReadWrite` edges. Returns
    /// its nodes, each with the order by which it precedes the next one.
    pub fn cycle(&self, reads: Reads, allowed: impl Fn(Order) -> bool) -> Option<Vec<(usize, Order)>> {
        let allowed = |order| allowed(order) && (reads != Reads::None || order != Order::ReadWrite);
        let component = self.components(&allowed);
        let inside =
            |from: usize, (to, order): (usize, Order)| allowed(order) && component[from] == component[to];
        for from in 0..self.edges.len() {
            for &(to, order) in &self.edges[from] {
                // A cycle without reads may begin anywhere. Others begin with a read.
                let begins = (order == Order::ReadWrite) == (reads != Reads::None);
                if !begins || !inside(from, (to, order)) {
                    continue;
                }
                if let Some(mut path) = self.path(to, from, reads, &inside) {
                    path.insert(0, (from, order));
                    return Some(path);
                }
            }
        }
        None
    }

    /// The shortest path. An edge of the cycle's kind leads from `goal` to `start`.
    fn path(
        &self,
        start: usize,
        goal: usize,
        reads: Reads,
        inside: &impl Fn(usize, (usize, Order)) -> bool,
    ) -> Option<Vec<(usize, Order)>> {
        // A place is a node, and whether a `ReadWrite` edge led to it.
        let place = |node: usize, after_read: bool| 2 * node + usize::from(after_read);
        let mut came: Vec<Option<(usize, Order)>> = vec![None; 2 * self.edges.len()];
        let first = place(start, reads == Reads::Apart);
        let mut queue = VecDeque::from([first]);
        while let Some(at) = queue.pop_front() {
            let (node, after_read) = (at / 2, at % 2 == 1);
            for &(to, order) in &self.edges[node] {
                let read = order == Order::ReadWrite;
                let fits = match reads {
                    Reads::None | Reads::One => !read,
                    // The cycle closes with a read, so the path must not end with one.
                    Reads::Apart => !read || (!after_read && to != goal),
                    Reads::Some => true,
                };
                let next = place(to, read && reads == Reads::Apart);
                if !fits || !inside(node, (to, order)) || next == first || came[next].is_some() {
                    continue;
                }
                came[next] = Some((at, order));
                if to == goal {
                    return Some(Graph::unwind(&came, first, next));
                }
                queue.push_back(next);
            }
        }
        None
    }

    fn unwind(came: &[Option<(usize, Order)>], first: usize, last: usize) -> Vec<(usize, Order)> {
        let mut path = Vec::new();
        let mut at = last;
        while at != first {
            let Some((before, order)) = came[at] else { break };
            path.push((before / 2, order));
            at = before;
        }
        path.reverse();
        path
    }

    /// For each node the number of its strongly connected component (Tarjan's algorithm, without recursion).
    fn components(&self, allowed: &impl Fn(Order) -> bool) -> Vec<usize> {
        const NEW: usize = usize::MAX;
        let n = self.edges.len();
        let (mut index, mut low, mut component) = (vec![NEW; n], vec![0; n], vec![NEW; n]);
        let (mut stack, mut count, mut components) = (Vec::new(), 0, 0);
        for root in 0..n {
            if index[root] != NEW {
                continue;
            }
            let mut calls = vec![(root, 0)];
            while let Some(&mut (node, ref mut at)) = calls.last_mut() {
                if *at == 0 {
                    (index[node], low[node]) = (count, count);
                    count += 1;
                    stack.push(node);
                }
                if let Some(&(to, order)) = self.edges[node].get(*at) {
                    *at += 1;
                    if allowed(order) && index[to] == NEW {
                        calls.push((to, 0));
                    } else if allowed(order) && component[to] == NEW {
                        low[node] = low[node].min(index[to]);
                    }
                    continue;
                }
                calls.pop();
                if let Some(&(parent, _)) = calls.last() {
                    low[parent] = low[parent].min(low[node]);
                }
                if low[node] == index[node] {
                    while let Some(member) = stack.pop() {
                        component[member] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::Order::{ReadWrite as RW, WriteRead as WR};
    use super::*;

    fn graph(edges: &[(usize, usize, Order)]) -> Graph {
        let mut graph = Graph::new(8);
        edges.iter().for_each(|&(a, b, order)| graph.add(a, b, order));
        graph
    }

    #[test]
    fn cycles_are_told_apart_by_their_reads() {
        let all = |_| true;
        let none = graph(&[(0, 1, WR), (1, 2, RW), (2, 3, WR), (0, 3, RW), (4, 5, RW)]);
        assert!(
            [Reads::None, Reads::One, Reads::Apart, Reads::Some]
                .iter()
                .all(|&r| none.cycle(r, all).is_none())
        );
        let one = graph(&[(0, 1, RW), (1, 2, WR), (2, 0, WR)]);
        assert!(one.cycle(Reads::None, all).is_none());
        assert_eq!(one.cycle(Reads::One, all), Some(vec![(0, RW), (1, WR), (2, WR)]));
        let skew = graph(&[(0, 1, RW), (1, 0, RW)]);
        assert!(skew.cycle(Reads::One, all).is_none() && skew.cycle(Reads::Apart, all).is_none());
        assert_eq!(skew.cycle(Reads::Some, all), Some(vec![(0, RW), (1, RW)]));
        let fork = graph(&[(0, 1, RW), (1, 2, WR), (2, 3, RW), (3, 0, WR)]);
        assert!(fork.cycle(Reads::One, all).is_none());
        assert_eq!(fork.cycle(Reads::Apart, all), Some(vec![(0, RW), (1, WR), (2, RW), (3, WR)]));
        assert!(fork.cycle(Reads::Some, |order| order != WR).is_none());
        // Two reads, one after the other where the cycle closes.
        let closing = graph(&[(0, 1, RW), (1, 2, WR), (2, 0, RW)]);
        assert!(closing.cycle(Reads::Apart, all).is_none() && closing.cycle(Reads::Some, all).is_some());
    }
}
