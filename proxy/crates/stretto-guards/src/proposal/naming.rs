//! Whether a message says a value.

/// A message, ready to be searched.
#[derive(Debug)]
pub(super) struct Words {
    /// In lower case.
    text: String,
    /// The same with its numbers plain, see [`plain_numbers`].
    numbers: String,
}

impl Words {
    pub(super) fn of(message: &str) -> Self {
        let text = message.to_lowercase();
        let numbers = plain_numbers(&text);
        Self { text, numbers }
    }

    /// Whether the message says `value`, which is trimmed and in lower case.
    ///
    /// A number must stand by itself, however its fraction is written. Of an id such as
    /// `credit_card_4196779`, people also say the digits alone, or say blanks for the
    /// underscores, and of `#w7b` the mark may be missing.
    pub(super) fn say(&self, value: &str) -> bool {
        let unsigned = value.strip_prefix('-').unwrap_or(value);
        if !unsigned.is_empty() && unsigned.chars().all(is_of_a_number) {
            let number = plain_numbers(unsigned);
            return stands_alone(&self.numbers, &number, is_of_a_decimal);
        }
        if let Some(digits) = digits_of_an_id(value)
            && stands_alone(&self.text, digits, |before| before.is_ascii_digit())
        {
            return true;
        }
        let unmarked = value.strip_prefix('#').unwrap_or(value);
        // An empty text is in every other, and says nothing.
        !unmarked.is_empty()
            && (self.text.contains(unmarked) || self.text.contains(&value.replace('_', " ")))
    }
}

fn is_of_a_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.' || c == ','
}

fn is_of_a_decimal(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// The digits that an id such as `gift_card_9900456` ends in, if it is one.
fn digits_of_an_id(value: &str) -> Option<&str> {
    let (kind, digits) = value.rsplit_once('_')?;
    let is_kind = kind.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let is_digits = digits.len() >= 4 && digits.chars().all(|c| c.is_ascii_digit());
    (is_kind && is_digits).then_some(digits)
}

/// Whether `number` stands somewhere in a text with no character before it that `joins` it, and
/// no digit after it.
fn stands_alone(text: &str, number: &str, joins: impl Fn(char) -> bool) -> bool {
    if number.is_empty() {
        return false;
    }
    let mut places = text
        .match_indices(number)
        .map(|(place, _)| text.split_at(place));
    places.any(|(before, rest)| {
        let after = rest.strip_prefix(number).unwrap_or_default();
        !before.ends_with(&joins) && !after.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// A text without commas, and with each number written plainly: no zeros at the end of a
/// fraction, and no point without a fraction behind it. `1,020.50` becomes `1020.5`.
fn plain_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut run = String::new();
    for c in text.chars().filter(|&c| c != ',') {
        if is_of_a_decimal(c) {
            run.push(c);
        } else {
            plain.push_str(plain_number(&run));
            run.clear();
            plain.push(c);
        }
    }
    plain.push_str(plain_number(&run));
    plain
}

/// `run` holds digits and points only, and may end with the full stop of a sentence.
fn plain_number(run: &str) -> &str {
    let run = run.trim_end_matches('.');
    if run.contains('.') {
        run.trim_end_matches('0').trim_end_matches('.')
    } else {
        run
    }
}
