//! The registers of a thread, by the numbers that unwinding tables give them, and how memory is read: all that depends on the
//! processor.
#![expect(unsafe_code, reason = "a few instructions of the processor")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Registers by their DWARF numbers, and the program counter last.
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS: usize = 17;
#[cfg(target_arch = "aarch64")]
pub(super) const REGISTERS: usize = 33;

/// Where the stack pointer is among them.
#[cfg(target_arch = "x86_64")]
pub(super) const SP: usize = 7;
#[cfg(target_arch = "aarch64")]
pub(super) const SP: usize = 31;

/// Where the program counter is among them.
pub(super) const PC: usize = REGISTERS - 1;

/// Copies them, in the handler of a signal, from where the kernel has put them.
#[cfg(target_arch = "x86_64")]
pub(super) fn copy(context: &libc::ucontext_t, registers: &[AtomicU64; REGISTERS]) {
    // By the numbers of DWARF: rax rdx rcx rbx rsi rdi rbp rsp r8-r15 rip.
    const ORDER: [libc::c_int; REGISTERS] = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
        libc::REG_RIP,
    ];
    for (to, from) in registers.iter().zip(ORDER) {
        to.store(
            context.uc_mcontext.gregs[from as usize].cast_unsigned(),
            Relaxed,
        );
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) fn copy(context: &libc::ucontext_t, registers: &[AtomicU64; REGISTERS]) {
    // By the numbers of DWARF: x0-x30 and sp; the program counter behind them.
    let context = &context.uc_mcontext;
    for (to, from) in registers.iter().zip(context.regs) {
        to.store(from, Relaxed);
    }
    registers[SP].store(context.sp, Relaxed);
    registers[PC].store(context.pc, Relaxed);
}

/// A return address without the signature that it may carry. How many bits that has depends on how much memory the kernel
/// lets a process address, so the processor is asked to take it off; one without signatures does nothing.
#[cfg(target_arch = "aarch64")]
pub(super) fn code_address(signed: u64) -> u64 {
    let address;
    // SAFETY: `xpaclri`, which changes register 30 and nothing else; by its number among hints, so that any assembler
    // knows it.
    unsafe {
        std::arch::asm!(
            "hint #7",
            inout("x30") signed => address,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}

#[cfg(target_arch = "x86_64")]
pub(super) fn code_address(address: u64) -> u64 {
    address
}

/// Reads a word of memory as the processor does. A read in Rust is checked by AddressSanitizer, which ends the program where it is
/// of what lies between the variables of others.
///
/// # Safety
/// `from` is aligned, and mapped.
#[inline]
pub(super) unsafe fn load(from: *const u64) -> u64 {
    let word;
    // SAFETY: reads what the caller promises to be there.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov {word}, qword ptr [{from}]",
            from = in(reg) from,
            word = out(reg) word,
            options(readonly, nostack, preserves_flags)
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "ldr {word}, [{from}]",
            from = in(reg) from,
            word = out(reg) word,
            options(readonly, nostack, preserves_flags)
        );
    }
    word
}
