//! The slots of one driver: from the token of an event to the source that it is about.
//!
//! # What it guarantees
//! A token holds the index of a slot and its generation; a slot that is freed gets the next generation. So an event
//! that was fetched before its source went away finds nothing, also if the slot has a new tenant by now.

use std::mem;
use std::sync::Arc;

use super::source::Source;

/// On 64-bit systems half of a token each; on 32-bit ones four million sources and a thousand generations.
const INDEX_BITS: u32 = if usize::BITS == 64 { 32 } else { 22 };
const INDEX: usize = (1 << INDEX_BITS) - 1;
const GENERATION: usize = usize::MAX >> INDEX_BITS;

/// A slot index with its generation. The highest indices are never given to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) usize);

impl Token {
    /// The unpark eventfd.
    pub(crate) const UNPARK: Token = Token(usize::MAX);
    /// The timer.
    pub(crate) const TIMER: Token = Token(usize::MAX - 1);
    /// The selector of somebody else.
    pub(crate) const ATTENDED: Token = Token(usize::MAX - 2);
    const RESERVED: usize = 3;

    fn index(self) -> usize {
        self.0 & INDEX
    }

    fn generation(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32
    }
}

struct Slot {
    generation: u32,
    /// Of a free slot: the next free one plus one, or 0.
    next_free: u32,
    source: Option<Arc<Source>>,
}

#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    /// The first free slot plus one, or 0.
    free: u32,
}

impl Slots {
    /// Puts a source in; `None` if there is no index left.
    pub(crate) fn insert(
        &mut self,
        make: impl FnOnce(Token) -> Arc<Source>,
    ) -> Option<&Arc<Source>> {
        let index = match self.free.checked_sub(1) {
            Some(index) => {
                let index = index as usize;
                self.free = mem::take(&mut self.slots[index].next_free);
                index
            }
            None if self.slots.len() >= INDEX - Token::RESERVED => return None,
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    next_free: 0,
                    source: None,
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        let token = Token((slot.generation as usize) << INDEX_BITS | index);
        Some(slot.source.insert(make(token)))
    }

    /// The source of a token, unless it is gone.
    #[inline]
    pub(crate) fn get(&self, token: Token) -> Option<&Arc<Source>> {
        let slot = self.slots.get(token.index())?;
        if slot.generation == token.generation() {
            slot.source.as_ref()
        } else {
            None
        }
    }

    /// Frees a slot. The source is for the caller to drop, when it holds no lock.
    pub(crate) fn remove(&mut self, token: Token) -> Option<Arc<Source>> {
        let index = token.index();
        let slot = self.slots.get_mut(index)?;
        if slot.generation != token.generation() {
            return None;
        }
        let source = slot.source.take()?;
        slot.generation = ((slot.generation as usize + 1) & GENERATION) as u32;
        slot.next_free = mem::replace(&mut self.free, index as u32 + 1);
        Some(source)
    }

    /// Takes every source out.
    pub(crate) fn drain(&mut self) -> Vec<Arc<Source>> {
        self.free = 0;
        mem::take(&mut self.slots)
            .into_iter()
            .filter_map(|slot| slot.source)
            .collect()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
