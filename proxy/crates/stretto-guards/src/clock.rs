//! The airline's clock. Its policy fixes the present, so that recorded sessions keep their
//! verdicts.

/// The policy's day. Days written like this sort as they follow each other.
pub(crate) const TODAY: &str = "2024-05-15";

/// The policy's present, and a day (86,400 s) before it.
const NOW: Moment<'_> = Moment {
    date: "2024-05-15",
    time: [15, 0, 0],
    fraction: "",
};
const A_DAY_AGO: Moment<'_> = Moment {
    date: "2024-05-14",
    time: [15, 0, 0],
    fraction: "",
};

/// Whether a time lies in the day up to now, both ends included. One that does not read as
/// `YYYY-MM-DDTHH:MM[:SS[.fff]]` does not.
pub(crate) fn is_within_a_day(text: &str) -> bool {
    Moment::read(text).is_some_and(|moment| (A_DAY_AGO..=NOW).contains(&moment))
}

/// A time without a zone, ordered by its members one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment<'a> {
    /// Ten characters. Whether they are a day is not looked at, since no others lie between two
    /// days that follow each other.
    date: &'a str,
    /// Hour, minute and second.
    time: [u8; 3],
    /// The digits after the second's point, without zeros at the end, which sort as they count.
    fraction: &'a str,
}

impl<'a> Moment<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (date, time) = text.split_once('T')?;
        let (time, fraction) = match time.split_once('.') {
            Some((time, fraction)) if time.len() == 8 && is_digits(fraction) => (time, fraction),
            Some(_) => return None,
            None => (time, ""),
        };
        let mut parts = time.split(':');
        let hour = number(parts.next()?, 24)?;
        let minute = number(parts.next()?, 60)?;
        let second = parts.next().map_or(Some(0), |second| number(second, 60))?;
        if date.len() != 10 || parts.next().is_some() {
            return None;
        }
        Some(Self {
            date,
            time: [hour, minute, second],
            fraction: fraction.trim_end_matches('0'),
        })
    }
}

/// A number of two digits below `end`.
fn number(text: &str, end: u8) -> Option<u8> {
    let number = (text.len() == 2 && is_digits(text)).then(|| text.parse().ok())??;
    (number < end).then_some(number)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_up_to_now_holds_both_its_ends() {
        for inside in [
            "2024-05-14T15:00:00",
            "2024-05-14T15:00",
            "2024-05-14T15:00:00.000",
            "2024-05-14T15:00:00.001",
            "2024-05-14T23:59:59",
            "2024-05-15T00:00:00",
            "2024-05-15T09:30",
            "2024-05-15T14:59:59.999999999",
            "2024-05-15T15:00",
            "2024-05-15T15:00:00",
            "2024-05-15T15:00:00.000",
        ] {
            assert!(is_within_a_day(inside), "{inside}");
        }
        for outside in [
            "2024-05-14T14:59:59",
            "2024-05-14T14:59:59.999",
            "2024-05-14T09:30",
            "2024-05-15T15:00:00.001",
            "2024-05-15T15:00:01",
            "2024-05-15T15:01",
            "2024-05-15T16:00",
            "2024-05-16T00:00:00",
            "2024-05-13T20:00:00",
            "2024-04-15T10:00:00",
            "2023-05-15T10:00:00",
            "2025-05-15T10:00:00",
            "2024-06-14T20:00:00",
        ] {
            assert!(!is_within_a_day(outside), "{outside}");
        }
    }

    #[test]
    fn a_fraction_counts_by_its_digits_not_its_length() {
        let read = |text| Moment::read(text).unwrap();
        assert!(read("2024-05-15T10:00:00.5") > read("2024-05-15T10:00:00.49"));
        assert_eq!(
            read("2024-05-15T10:00:00.50"),
            read("2024-05-15T10:00:00.5")
        );
        assert_eq!(read("2024-05-15T10:00:00.0"), read("2024-05-15T10:00"));
        assert!(read("2024-05-15T10:00:00.01") < read("2024-05-15T10:00:00.1"));
    }

    #[test]
    fn what_does_not_read_as_a_time_is_not_recent() {
        for text in [
            "",
            "2024-05-15",
            "2024-05-15 10:00:00",
            "2024-05-15t10:00:00",
            "2024-05-15T10:00:00Z",
            "2024-05-15T10:00:00+00:00",
            "2024-05-15T10",
            "2024-05-15T10:00:00.",
            "2024-05-15T10:00:00.5s",
            "2024-05-15T10:00.5",
            "2024-05-15T10:00:00:00",
            "2024-05-15T10:00:",
            "2024-05-15T1:00",
            "2024-05-15T10:0",
            "2024-05-15T10:+1",
            "2024-05-15T10:60",
            "2024-05-15T10:00:60",
            "2024-05-14T24:00",
            "2024-05-14T99:00",
            "2024-5-15T10:00",
            "2024/05/15T10:00",
            "2024-05-1xT10:00",
            "2024-05-15TT10:00",
            " 2024-05-15T10:00",
            "12024-05-15T10:00",
            "2024-05-140T10:00",
            "2024-05-14-T10:00",
        ] {
            assert!(!is_within_a_day(text), "{text}");
        }
    }
}
