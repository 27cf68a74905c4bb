//! The tables by which stacks are unwound, of each module (program or library) in the process.
//!
//! They are copied, while the loader holds its lock, so that a library may go at any time. The copy is kept until the
//! loader has loaded or unloaded something: it counts both.
#![expect(
    unsafe_code,
    reason = "reads tables of the program where the loader says they are"
)]

use std::ops::Range;
use std::ptr;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use gimli::{BaseAddresses, EhFrameHdr, NativeEndian, Pointer};

/// One module.
pub(super) struct Module {
    /// Where its code and data lie.
    segments: Vec<Range<u64>>,
    /// `.eh_frame_hdr`: the index.
    pub(super) index: Vec<u8>,
    /// `.eh_frame`, and whatever follows in its segment.
    pub(super) frames: Vec<u8>,
    pub(super) bases: BaseAddresses,
}

impl Module {
    pub(super) fn contains(&self, address: u64) -> bool {
        self.segments.iter().any(|range| range.contains(&address))
    }
}

/// How many modules were loaded, and unloaded, since the process began.
type Version = (u64, u64);

static KEPT: Mutex<Option<(Version, Arc<[Module]>)>> = Mutex::new(None);

struct Search {
    kept: Option<Version>,
    version: Version,
    found: Vec<Module>,
}

/// All modules, as of now.
pub(super) fn modules() -> Arc<[Module]> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut search = Search {
        kept: kept.as_ref().map(|(version, _)| *version),
        version: (0, 0),
        found: Vec::new(),
    };
    // SAFETY: the callback takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_mut(&mut search).cast()) };
    match &*kept {
        Some((version, modules)) if *version == search.version => Arc::clone(modules),
        _ => {
            let modules: Arc<[Module]> = search.found.into();
            *kept = Some((search.version, Arc::clone(&modules)));
            modules
        }
    }
}

extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    size: libc::size_t,
    search: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader passes on what `modules` gave to it.
    let search = unsafe { &mut *search.cast::<Search>() };
    if size < size_of::<libc::dl_phdr_info>() {
        // A loader that does not count.
        return 1;
    }
    // SAFETY: valid during this call, and complete by its size.
    let info = unsafe { &*info };
    search.version = (info.dlpi_adds, info.dlpi_subs);
    if search.kept == Some(search.version) {
        return 1;
    }
    // SAFETY: the loader keeps so many headers there.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    search.found.extend(read_module(info.dlpi_addr, headers));
    0
}

fn read_module(base: u64, headers: &[libc::Elf64_Phdr]) -> Option<Module> {
    let range = |header: &libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr);
        start..start.wrapping_add(header.p_memsz)
    };
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
    let segments: Vec<_> = of_type(libc::PT_LOAD).map(range).collect();
    let index = range(of_type(libc::PT_GNU_EH_FRAME).next()?);
    let index_bytes = bytes(&index);
    let bases = BaseAddresses::default().set_eh_frame_hdr(index.start);
    let parsed = EhFrameHdr::new(&index_bytes, NativeEndian).parse(&bases, 8);
    let Pointer::Direct(frames) = parsed.ok()?.eh_frame_ptr() else {
        return None;
    };
    let segment = segments.iter().find(|range| range.contains(&frames))?;
    let frames_bytes = bytes(&(frames..segment.end));
    Some(Module {
        index: index_bytes,
        frames: frames_bytes,
        bases: bases.set_eh_frame(frames),
        segments,
    })
}

/// A copy of memory that the loader has mapped.
fn bytes(range: &Range<u64>) -> Vec<u8> {
    let from = ptr::with_exposed_provenance::<u8>(range.start as usize);
    let length = (range.end - range.start) as usize;
    // SAFETY: inside a segment that the loader has mapped for reading and keeps while its lock is held. Tables of code are
    // not written to.
    unsafe { slice::from_raw_parts(from, length) }.to_vec()
}
