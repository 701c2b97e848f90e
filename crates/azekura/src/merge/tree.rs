//! The tournament: which of k sources has the smallest key.

/// The losers are at the inner nodes `1..k`, the winner beside them. Leaf `i` is below node `(i + k) / 2`.
#[derive(Default)]
pub(crate) struct Tree {
    losers: Vec<u32>,
    winner: u32,
}

impl Tree {
    /// Plays the whole tournament among `k` sources. `beats(a, b)`: a comes before b.
    pub(crate) fn build(&mut self, k: usize, beats: impl Fn(usize, usize) -> bool) {
        self.losers.clear();
        self.losers.resize(k.max(1), 0);
        self.winner = if k == 0 { 0 } else { self.play(1, k, &beats) };
    }

    fn play(&mut self, node: usize, k: usize, beats: &impl Fn(usize, usize) -> bool) -> u32 {
        if node >= k {
            return (node - k) as u32;
        }
        let (a, b) = (self.play(2 * node, k, beats), self.play(2 * node + 1, k, beats));
        let (winner, loser) = if beats(a as usize, b as usize) { (a, b) } else { (b, a) };
        self.losers[node] = loser;
        winner
    }

    #[inline(always)]
    pub(crate) fn winner(&self) -> usize {
        self.winner as usize
    }

    /// Plays the winner's path again, after its key has changed.
    #[inline(always)]
    pub(crate) fn replay(&mut self, beats: impl Fn(usize, usize) -> bool) {
        let mut winner = self.winner;
        let mut node = (winner as usize + self.losers.len()) / 2;
        while node >= 1 {
            let loser = self.losers[node];
            let swap = beats(loser as usize, winner as usize);
            self.losers[node] = if swap { winner } else { loser };
            winner = if swap { loser } else { winner };
            node /= 2;
        }
        self.winner = winner;
    }
}
