//! How long requests took, and the quantiles of that. Knows nothing of what was asked.

/// Times from request to reply.
pub(crate) struct Latencies {
    sorted_us: Vec<u32>,
}

impl Latencies {
    pub(crate) fn from_us(mut us: Vec<u32>) -> Self {
        us.sort_unstable();
        Latencies { sorted_us: us }
    }

    pub(crate) fn count(&self) -> usize {
        self.sorted_us.len()
    }

    /// The least time that this share of all replies did not exceed; zero if there were none.
    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        let rank = (share * self.count() as f64).ceil() as usize;
        self.sorted_us.get(rank.max(1) - 1).copied().map_or(0.0, f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let latencies = Latencies::from_us((1..=1_000).rev().collect());
        let quantiles = [0.0, 0.5, 0.99, 0.999, 1.0].map(|share| latencies.quantile_us(share));
        assert_eq!(quantiles, [1.0, 500.0, 990.0, 999.0, 1_000.0]);
        assert_eq!(Latencies::from_us(vec![7]).quantile_us(0.999), 7.0);
        assert_eq!(Latencies::from_us(Vec::new()).quantile_us(0.5), 0.0);
    }
}
