//! How much memory the process of a test has.

/// What the process has in memory, in bytes.
pub(crate) fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = text.lines();
    let size = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: usize = size.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}
