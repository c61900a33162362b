//! A list of words that people confirm with.
//!
//! "Please cancel my order" passes, though it confirms nothing: words alone do not tell a wish
//! from a yes. So no call is refused for what the list says. It marks the calls that the confirmation judge is asked about, and stands
//! beside the judge's answer in its log. Recorded verdicts must stay comparable, so the list
//! keeps its faults: "Confirmed." fails, and "undo items" passes for the `do it` in it.

/// What confirms. An entry without a blank must be a word of the message; one with a blank may
/// stand anywhere in its words, also across the ends of two of them.
const CONFIRMING: [&str; 22] = [
    "yes",
    "yeah",
    "yep",
    "yup",
    "confirm",
    "go ahead",
    "proceed",
    "please do",
    "do it",
    "sure",
    "okay",
    "ok",
    "correct",
    "that's right",
    "sounds good",
    "absolutely",
    "please cancel",
    "please process",
    "please go",
    "let's do",
    "i agree",
    "fine",
];

/// Whether a customer's message holds a confirming word.
///
/// ```
/// use stretto_guards::word_list::confirms;
///
/// assert!(confirms("Yes, go ahead."));
/// assert!(!confirms("Why would you ask me that?"));
/// ```
pub fn confirms(message: &str) -> bool {
    let message = message.to_lowercase().replace('’', "'");
    let parts = message.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let words: Vec<&str> = parts.filter(|word| !word.is_empty()).collect();
    let joined = words.join(" ");
    CONFIRMING.iter().any(|&entry| {
        if entry.contains(' ') {
            joined.contains(entry)
        } else {
            words.contains(&entry)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_confirms_does_so_in_any_case_and_between_marks() {
        for confirming in [
            "yes",
            "yeah",
            "yep",
            "yup",
            "confirm",
            "go ahead",
            "proceed",
            "please do",
            "do it",
            "sure",
            "okay",
            "ok",
            "correct",
            "that's right",
            "sounds good",
            "absolutely",
            "please cancel",
            "please process",
            "please go",
            "let's do",
            "i agree",
            "fine",
        ] {
            assert!(confirms(confirming), "{confirming}");
            assert!(
                confirms(&format!("Well... {}!", confirming.to_uppercase())),
                "{confirming}"
            );
            assert!(
                confirms(&format!("({})", confirming.replace(' ', ",\n "))),
                "{confirming}"
            );
        }
    }

    #[test]
    fn what_only_begins_to_confirm_does_not() {
        for message in [
            "no",
            "go",
            "do",
            "it",
            "please",
            "that's",
            "right",
            "sounds",
            "good",
            "cancel",
            "process",
            "let's",
            "i",
            "agree",
            "y",
            "o.k.",
            "go there ahead",
        ] {
            assert!(!confirms(message), "{message}");
        }
    }

    #[test]
    fn a_single_word_must_stand_by_itself() {
        for message in [
            "Confirmed.",
            "yesterday",
            "unsure",
            "book",
            "define",
            "incorrect",
            "yes'",
        ] {
            assert!(!confirms(message), "{message}");
        }
    }

    #[test]
    fn an_entry_of_two_words_may_be_cut_out_of_longer_ones() {
        assert!(confirms("undo items"));
        assert!(confirms("please downgrade"));
        assert!(!confirms("do, by all means, it"));
    }

    #[test]
    fn the_typographic_apostrophe_reads_as_the_plain_one() {
        assert!(confirms("That’s right"));
        assert!(confirms("let’s do"));
        assert!(!confirms("that s right"));
        assert!(!confirms("thats right"));
    }

    #[test]
    fn digits_belong_to_words() {
        assert!(!confirms("ok2"));
        assert!(!confirms("2ok"));
        assert!(confirms("2 ok"));
        assert!(!confirms("oké"));
    }

    #[test]
    fn marks_and_blanks_alone_confirm_nothing() {
        assert!(!confirms(""));
        assert!(!confirms(" ... \n"));
        assert!(!confirms("no"));
    }
}
