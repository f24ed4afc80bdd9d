//! The date of `strftime_now`. The time zone of a machine is in no library that we have, so it is UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::Error;

use super::budget::invalid;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Now, in seconds since 1970.
pub(super) fn now() -> u64 {
    // A clock before 1970 is wrong.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A time in seconds since 1970, as `strftime` writes it in the C locale and in UTC.
///
/// # Errors
/// If the format has a directive that is not known.
pub(super) fn strftime(format: &str, seconds: u64) -> Result<String, Error> {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut directive = rest.next();
        // Without leading zeros.
        let plain = directive == Some('-');
        if plain {
            directive = rest.next();
        }
        let value = directive.and_then(|directive| field(directive, seconds));
        let value = value.ok_or_else(|| {
            invalid(format!("`strftime_now` does not know the `%{}` of `{format}`", directive.unwrap_or(' ')))
        })?;
        match plain {
            true => {
                let short = value.trim_start_matches(['0', ' ']);
                text.push_str(if short.is_empty() { "0" } else { short });
            }
            false => text.push_str(&value),
        }
    }
    Ok(text)
}

fn field(directive: char, seconds: u64) -> Option<String> {
    let days = seconds / 86_400;
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let weekday = (days + 4) % 7;
    let first = days - (0..month).map(|month| length(year, month)).sum::<u64>() - (day - 1);
    let several = |format: &str| strftime(format, seconds).ok();
    Some(match directive {
        'Y' => year.to_string(),
        'y' => format!("{:02}", year % 100),
        'm' => format!("{:02}", month + 1),
        'd' => format!("{day:02}"),
        'e' => format!("{day:2}"),
        'H' => format!("{hour:02}"),
        'I' => format!("{:02}", (hour + 11) % 12 + 1),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        'f' => "000000".into(),
        'p' => if hour < 12 { "AM" } else { "PM" }.into(),
        'j' => format!("{:03}", days - first + 1),
        'w' => weekday.to_string(),
        'u' => ((weekday + 6) % 7 + 1).to_string(),
        'A' => DAYS[weekday as usize].into(),
        'a' => DAYS[weekday as usize][..3].into(),
        'B' => MONTHS[month as usize].into(),
        'b' | 'h' => MONTHS[month as usize][..3].into(),
        'F' => several("%Y-%m-%d")?,
        'T' | 'X' => several("%H:%M:%S")?,
        'R' => several("%H:%M")?,
        'D' | 'x' => several("%m/%d/%y")?,
        'c' => several("%a %b %e %H:%M:%S %Y")?,
        's' => seconds.to_string(),
        // `datetime.now()` knows no zone.
        'Z' | 'z' => String::new(),
        'n' => "\n".into(),
        't' => "\t".into(),
        '%' => "%".into(),
        _ => return None,
    })
}

/// The year, the month from 0 and the day from 1.
fn date(days: u64) -> (u64, u64, u64) {
    // The calendar repeats itself after 400 years, which have 146097 days.
    let mut year = 1970 + days / 146_097 * 400;
    let mut rest = days % 146_097;
    let of_year = |year| 365 + u64::from(is_leap(year));
    while rest >= of_year(year) {
        rest -= of_year(year);
        year += 1;
    }
    let mut month = 0;
    while rest >= length(year, month) {
        rest -= length(year, month);
        month += 1;
    }
    (year, month, rest + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The days of a month, which is counted from 0.
fn length(year: u64, month: u64) -> u64 {
    match month {
        1 => 28 + u64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_strftime() {
        let written = |format, seconds| strftime(format, seconds).unwrap();
        assert_eq!(written("%d %b %Y", 0), "01 Jan 1970");
        let leap = 951_827_696; // 2000-02-29 12:34:56
        assert_eq!(
            written("%Y-%m-%d %H:%M:%S %a %j %p %I %-d/%-m", leap),
            "2000-02-29 12:34:56 Tue 060 PM 12 29/2"
        );
        assert_eq!(
            written("%A, %B %d, %y %F %T %e%%", 1_796_000_000),
            "Monday, November 30, 26 2026-11-30 00:53:20 30%"
        );
        assert_eq!(written("%F %j", 1_735_603_200), "2024-12-31 366");
        assert_eq!(written("%F", 4_107_542_400), "2100-03-01");
        assert!(strftime("%Q", 0).is_err() && strftime("%", 0).is_err());
    }
}
