use super::*;
use crate::driver::readiness::Readiness;
use crate::driver::{Driver, Handle, Ready};

fn source(handle: &Arc<Handle>, token: Token) -> Arc<Source> {
    Arc::new(Source {
        readiness: Readiness::new(Ready::EMPTY),
        handle: Arc::clone(handle),
        token,
        fd: -1,
        made: std::panic::Location::caller(),
    })
}

#[test]
fn a_token_of_an_older_tenant_finds_nothing() {
    let (_driver, handle) = Driver::new("slots".into()).unwrap();
    let mut slots = Slots::default();
    let add = |slots: &mut Slots| {
        let added = slots.insert(|token| source(&handle, token));
        added.expect("room").token
    };
    let first = add(&mut slots);
    let other = add(&mut slots);
    assert!(slots.remove(first).is_some());
    assert!(slots.get(first).is_none());
    assert!(slots.remove(first).is_none());

    let second = add(&mut slots);
    assert_eq!(second.index(), first.index(), "the slot is not used again");
    assert_ne!(second, first);
    assert!(slots.get(first).is_none());
    assert!(slots.remove(first).is_none());
    assert!(slots.get(second).is_some());
    assert!(slots.get(other).is_some());

    // Last freed, first used; and after a drain nothing is found, nor freed twice.
    assert!(slots.remove(other).is_some());
    assert!(slots.remove(second).is_some());
    assert_eq!(add(&mut slots).index(), second.index());
    assert_eq!(slots.drain().len(), 1);
    assert!(slots.get(second).is_none());
    assert!(slots.remove(second).is_none());
}

#[test]
fn a_generation_wraps_within_its_bits() {
    let (_driver, handle) = Driver::new("slots".into()).unwrap();
    let mut slots = Slots::default();
    slots.slots.push(Slot {
        generation: GENERATION as u32,
        next_free: 0,
        source: None,
    });
    slots.free = 1;
    let last = slots.insert(|token| source(&handle, token)).unwrap().token;
    assert_eq!(last.generation() as usize, GENERATION);
    assert!(slots.remove(last).is_some());
    let first = slots.insert(|token| source(&handle, token)).unwrap().token;
    assert_eq!(first.generation(), 0);
    assert!(first != Token::UNPARK && first != Token::TIMER);
}

#[test]
fn a_source_and_its_slot_are_small() {
    // With the two counts of its `Arc`. An idle connection with task and buffer shall stay below 550 bytes.
    let all = size_of::<Source>() + 2 * size_of::<usize>() + size_of::<Slot>();
    assert!(all <= 160, "{all} bytes a registered source");
    let stream = size_of::<crate::net::TcpStream>();
    // mio keeps one more word with debug assertions.
    let limit = if cfg!(debug_assertions) { 40 } else { 24 };
    assert!(stream <= limit, "{stream} bytes a stream");
}
