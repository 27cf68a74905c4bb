//! Unwinding of a copied stack, by the tables that the compiler made for panics (DWARF call frame information).
//!
//! Nothing here is trusted: a frame that makes no sense ends the walk.

use gimli::{
    CfaRule, EhFrame, EhFrameHdr, Encoding, EvaluationResult, Format, Location, NativeEndian,
    Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value, Vendor,
};

use super::modules::{self, Module};
use super::registers::{PC, REGISTERS, SP, code_address};
use super::signal::Copied;

/// More frames than anybody reads.
const MOST: usize = 256;

/// Registers of one frame.
type Registers = [Option<u64>; REGISTERS];

/// The column of the return address.
#[cfg(target_arch = "x86_64")]
const RETURN: usize = 16;
#[cfg(target_arch = "aarch64")]
const RETURN: usize = 30;

/// Whose additions to the rules of DWARF the tables may hold: on aarch64 those of functions that sign their return
/// address, as whole distributions are compiled.
#[cfg(target_arch = "x86_64")]
const VENDOR: Vendor = Vendor::Default;
#[cfg(target_arch = "aarch64")]
const VENDOR: Vendor = Vendor::AArch64;

/// The addresses of the frames, the innermost first.
pub(super) fn unwind(copied: Copied) -> Vec<usize> {
    let modules = modules::modules();
    let mut context = UnwindContext::new();
    let mut registers: Registers = copied.registers.map(Some);
    let mut frames = Vec::new();
    while let Some(pc) = registers[PC].filter(|pc| *pc != 0) {
        frames.push(pc as usize);
        if frames.len() == MOST {
            break;
        }
        // The return address of a call that does not return may lie in the next function.
        let inside = if frames.len() == 1 { pc } else { pc - 1 };
        let outer = modules
            .iter()
            .find(|module| module.contains(inside))
            .and_then(|module| step(module, &mut context, inside, &registers, &copied))
            .or_else(|| {
                (frames.len() == 1)
                    .then(|| leaf(&registers, &copied))
                    .flatten()
            });
        match outer {
            // The stack grows down: the outer frame lies above.
            Some(outer) if outer[SP] > registers[SP] || outer[PC] != registers[PC] => {
                registers = outer;
            }
            _ => break,
        }
    }
    frames
}

/// The registers of the caller.
fn step(
    module: &Module,
    context: &mut UnwindContext<usize>,
    pc: u64,
    registers: &Registers,
    copied: &Copied,
) -> Option<Registers> {
    let index = EhFrameHdr::new(&module.index, NativeEndian);
    let index = index.parse(&module.bases, 8).ok()?;
    let mut frames = EhFrame::new(&module.frames, NativeEndian);
    frames.set_address_size(8);
    frames.set_vendor(VENDOR);
    let row = index
        .table()?
        .unwind_info_for_address(
            &frames,
            &module.bases,
            context,
            pc,
            EhFrame::cie_from_offset,
        )
        .ok()?;
    let evaluate = |expression: &UnwindExpression<usize>, start: Option<u64>| {
        evaluate(&frames, expression, registers, copied, start)
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            get(registers, *register)?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => evaluate(expression, None)?,
    };
    let mut outer = *registers;
    for (number, to) in outer.iter_mut().enumerate().take(REGISTERS) {
        let Some(rule) = row.register(Register(number as u16)) else {
            continue;
        };
        *to = match rule {
            RegisterRule::Undefined => None,
            RegisterRule::SameValue => registers[number],
            RegisterRule::Offset(offset) => copied.read(cfa.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => get(registers, other),
            RegisterRule::Expression(expression) => copied.read(evaluate(&expression, Some(cfa))?),
            RegisterRule::ValExpression(expression) => Some(evaluate(&expression, Some(cfa))?),
            _ => None,
        };
    }
    outer[SP] = Some(cfa);
    outer[PC] = outer[RETURN].map(code_address);
    Some(outer)
}

/// A function without tables, which has just been entered: as after a call through a wild pointer.
#[cfg(target_arch = "x86_64")]
fn leaf(registers: &Registers, copied: &Copied) -> Option<Registers> {
    let sp = registers[SP]?;
    let mut outer = *registers;
    outer[PC] = copied.read(sp);
    outer[SP] = Some(sp + 8);
    Some(outer)
}

#[cfg(target_arch = "aarch64")]
fn leaf(registers: &Registers, _: &Copied) -> Option<Registers> {
    let mut outer = *registers;
    outer[PC] = registers[RETURN].map(code_address);
    Some(outer)
}

fn get(registers: &Registers, register: Register) -> Option<u64> {
    registers.get(usize::from(register.0)).copied().flatten()
}

/// Rules that are programs: those of the stubs between libraries, and of frames of signal handlers.
fn evaluate(
    frames: &EhFrame<gimli::EndianSlice<'_, NativeEndian>>,
    expression: &UnwindExpression<usize>,
    registers: &Registers,
    copied: &Copied,
    start: Option<u64>,
) -> Option<u64> {
    let encoding = Encoding {
        address_size: 8,
        format: Format::Dwarf32,
        version: 4,
    };
    let mut evaluation = expression.get(frames).ok()?.evaluation(encoding);
    evaluation.set_max_iterations(1000);
    if let Some(start) = start {
        evaluation.set_initial_value(start);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = Value::Generic(get(registers, register)?);
                evaluation.resume_with_register(value).ok()?
            }
            EvaluationResult::RequiresMemory {
                address, size: 8, ..
            } => {
                let value = Value::Generic(copied.read(address)?);
                evaluation.resume_with_memory(value).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result().last()?.location {
        Location::Address { address } => Some(address),
        Location::Value {
            value: Value::Generic(value),
        } => Some(value),
        _ => None,
    }
}
