//! Times as scenarios write them: `600ms`, `20s`, `2m`, `3h`, `40d`.

use std::time::Duration;

/// Reads a time.
///
/// # Errors
///
/// What a time looks like, when this is none.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("a time is a number and ms, s, m, h or d, such as \"600ms\", not {text:?}");
    let unit_starts = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_starts);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(millis)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(read("600ms"), Ok(Duration::from_millis(600)));
        assert_eq!(read("40d"), Ok(Duration::from_hours(40 * 24)));
        for text in [
            "",
            "20",
            "s",
            "-1s",
            "1.5s",
            "1 s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
