//! What a row is meant to reach, and whether it did.

use std::fmt;

use crate::peer::PeerId;

/// One bound on `rt`'s median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At most this share of tokio's.
    OfTokio(f64),
    /// At most this share of smol's.
    OfSmol(f64),
    /// At most this share of the better one of tokio and smol.
    OfBest(f64),
    /// At most this share of the best peer that takes part.
    OfAny(f64),
    /// At most this share of the hand-written loop's.
    OfLoop(f64),
    /// At least this share of tokio's.
    AtLeastOfTokio(f64),
    /// At most this figure, in the unit of the row.
    AtMost(f64),
}

impl Goal {
    /// Whether `rt` reaches it; `None` if a median that it needs is missing.
    pub fn reached(self, median: impl Fn(PeerId) -> Option<f64>) -> Option<bool> {
        let own = median(PeerId::Rt)?;
        let tokio = || median(PeerId::Tokio);
        let smol = || median(PeerId::Smol);
        Some(match self {
            Self::OfTokio(share) => own <= share * tokio()?,
            Self::OfSmol(share) => own <= share * smol()?,
            Self::OfBest(share) => own <= share * tokio()?.min(smol()?),
            Self::OfAny(share) => {
                let peers = PeerId::ALL.into_iter().filter(|peer| *peer != PeerId::Rt);
                own <= share * peers.filter_map(median).min_by(f64::total_cmp)?
            }
            Self::OfLoop(share) => own <= share * median(PeerId::ByHand)?,
            Self::AtLeastOfTokio(share) => own >= share * tokio()?,
            Self::AtMost(limit) => own <= limit,
        })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfTokio(share) => write!(f, "<= {share} tokio"),
            Self::OfSmol(share) => write!(f, "<= {share} smol"),
            Self::OfBest(share) => write!(f, "<= {share} best"),
            Self::OfAny(share) => write!(f, "<= {share} best"),
            Self::OfLoop(share) => write!(f, "<= {share} by-hand"),
            Self::AtLeastOfTokio(share) => write!(f, ">= {share} tokio"),
            Self::AtMost(limit) => write!(f, "<= {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medians(peer: PeerId) -> Option<f64> {
        match peer {
            PeerId::Rt => Some(50.0),
            PeerId::Tokio => Some(100.0),
            PeerId::Smol => Some(60.0),
            PeerId::ByHand | PeerId::Flume => None,
        }
    }

    #[test]
    fn shares_are_of_the_named_peer() {
        assert_eq!(Goal::OfTokio(0.5).reached(medians), Some(true));
        assert_eq!(Goal::OfTokio(0.49).reached(medians), Some(false));
        assert_eq!(Goal::OfSmol(0.8).reached(medians), Some(false));
        assert_eq!(Goal::OfBest(0.8).reached(medians), Some(false));
        assert_eq!(Goal::AtLeastOfTokio(0.5).reached(medians), Some(true));
        assert_eq!(Goal::AtMost(49.0).reached(medians), Some(false));
    }

    #[test]
    fn a_missing_median_decides_nothing() {
        assert_eq!(Goal::OfLoop(1.0).reached(medians), None);
    }
}
