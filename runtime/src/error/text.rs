//! Parts of messages that depend on values.

/// Lists the problems, one per line, up to a screenful.
pub(super) fn listed(problems: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text: String = problems.iter().take(SHOWN).map(|p| format!("\n  - {p}")).collect();
    if let Some(more) = problems.len().checked_sub(SHOWN).filter(|&n| n > 0) {
        text += &format!("\n  … and {more} more");
    }
    text
}

/// Returns the negative number that an index may have been before it was taken for an unsigned one.
pub(super) fn signed(index: u64) -> String {
    match (u32::try_from(index).map(u32::cast_signed), index.cast_signed()) {
        (Ok(number), _) if number < 0 => format!(" ({number} as an i32)"),
        (Err(_), number) if number < 0 => format!(" ({number} as an i64)"),
        _ => String::new(),
    }
}

/// Returns how a custom operation gets code for a device.
pub(super) fn remedy_for(device: &str) -> &'static str {
    match device {
        "the CPU" => "give it some with `CustomOpBuilder::cpu`, or run it on a GPU",
        _ => {
            "give it some with `CustomOpBuilder::cuda` or `CustomOpBuilder::cuda_library`, or run it on the CPU"
        }
    }
}
