//! Numbered places for pinned values, which are used again and never move.
#![expect(unsafe_code, reason = "pins what lies in a boxed slice")]

use std::pin::Pin;

/// Places for values of one type. The number of places grows, and none of them moves.
pub(super) struct Slab<T> {
    /// The first has `first` places, each other as many as all before it.
    chunks: Vec<Box<[Option<T>]>>,
    first: usize,
}

impl<T> Slab<T> {
    /// No place yet; the first chunk will have this many.
    pub(super) fn with_first(first: usize) -> Self {
        Self {
            chunks: Vec::new(),
            first: first.max(1),
        }
    }

    /// Makes more places, and says how many there are then.
    pub(super) fn grow(&mut self) -> usize {
        let before = self.capacity();
        let more = before.max(self.first);
        self.chunks.push((0..more).map(|_| None).collect());
        before + more
    }

    /// Number of places.
    pub(super) fn capacity(&self) -> usize {
        match self.chunks.len() {
            0 => 0,
            chunks => self.first << (chunks - 1),
        }
    }

    /// The place with this number.
    #[inline]
    pub(super) fn get(&mut self, number: usize) -> Pin<&mut Option<T>> {
        let (chunk, index) = self.locate(number);
        let place = &mut self.chunks[chunk][index];
        // SAFETY: a chunk is a box that is neither moved out of nor made smaller before the slab is dropped, and this
        // is the only way to a place: what is in it is moved only by who may, which is asked of `Pin`.
        unsafe { Pin::new_unchecked(place) }
    }

    #[inline]
    fn locate(&self, number: usize) -> (usize, usize) {
        match (number / self.first).checked_ilog2() {
            None => (0, number),
            Some(doublings) => (doublings as usize + 1, number - (self.first << doublings)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn places_are_distinct_and_do_not_move() {
        for first in [1, 2, 3, 7] {
            let mut slab = Slab::with_first(first);
            let mut addresses = Vec::new();
            for number in 0..100 {
                if number == slab.capacity() {
                    slab.grow();
                }
                slab.get(number).set(Some(number));
                addresses.push(&raw const *slab.get(number));
            }
            for (number, address) in addresses.iter().enumerate() {
                let place = slab.get(number);
                assert_eq!(*place, Some(number));
                assert_eq!(&raw const *place, *address);
            }
        }
    }
}
