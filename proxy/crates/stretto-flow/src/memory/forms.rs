//! Texts as the customer may have said them.
//!
//! Every text that may matter is kept once, in its form. A new message is searched for all
//! forms at once, by the bytes they begin with, so that remembering much does not make
//! listening slow.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem;

use crate::value;

/// A form that is kept.
pub(super) type FormId = u32;

/// How many bytes a form begins with for the index of longer forms.
const STEM: usize = 8;

/// All forms, and everything the customer said.
#[derive(Clone, Debug, Default)]
pub(super) struct Forms {
    ids: HashMap<Arc<str>, FormId>,
    kept: Vec<Form>,
    /// Everything the customer said, in lower case, each message followed by a newline.
    customer: String,
    /// Forms not mentioned so far, those shorter than the stem by all of their bytes.
    short: HashMap<Box<[u8]>, Vec<FormId>>,
    /// Which lengths `short` has had.
    short_lengths: [bool; STEM],
    /// The longer ones, by their stem.
    long: HashMap<[u8; STEM], Vec<FormId>>,
    /// Those that may begin in one message and end in the next.
    across: Vec<FormId>,
}

#[derive(Clone, Debug)]
struct Form {
    text: Arc<str>,
    is_mentioned: bool,
    is_given: bool,
    is_key_like: bool,
    /// The first result that had it.
    first_output: Option<usize>,
}

impl Form {
    /// What a mention must hold: the form without the number signs it begins with.
    fn needle(&self) -> &str {
        self.text.trim_start_matches('#')
    }
}

impl Forms {
    /// Keeps a text by its form.
    pub(super) fn keep(&mut self, text: &str) -> FormId {
        self.keep_form(value::form(text))
    }

    /// Keeps a form.
    pub(super) fn keep_form(&mut self, form: String) -> FormId {
        if let Some(id) = self.ids.get(form.as_str()) {
            return *id;
        }
        let id = FormId::try_from(self.kept.len()).expect("memory ends before four billion forms");
        let text: Arc<str> = form.into();
        let form = Form {
            is_key_like: value::is_key_like(&text),
            text: Arc::clone(&text),
            is_mentioned: false,
            is_given: false,
            first_output: None,
        };
        self.ids.insert(text, id);
        self.kept.push(form);
        self.expect(id);
        id
    }

    /// Notes whether the customer said it already, else listens for it.
    fn expect(&mut self, id: FormId) {
        let form = &mut self.kept[id as usize];
        let needle = form.text.trim_start_matches('#').as_bytes();
        if needle.is_empty() {
            return;
        }
        if memmem::find(self.customer.as_bytes(), needle).is_some() {
            form.is_mentioned = true;
            return;
        }
        if let Some(stem) = needle.first_chunk::<STEM>() {
            self.long.entry(*stem).or_default().push(id);
        } else {
            self.short_lengths[needle.len()] = true;
            self.short.entry(needle.into()).or_default().push(id);
        }
        if needle.contains(&b'\n') {
            self.across.push(id);
        }
    }

    /// Hears a message of the customer's. Returns the forms it is the first to mention.
    pub(super) fn hear(&mut self, text: &str) -> Vec<FormId> {
        let start = self.customer.len();
        self.customer.push_str(&text.to_lowercase());
        self.customer.push('\n');
        let said = self.customer.as_bytes();
        let mut heard = Vec::new();
        for at in (start..said.len()).filter(|at| self.customer.is_char_boundary(*at)) {
            let ahead = &said[at..];
            for length in (1..STEM.min(ahead.len() + 1)).filter(|l| self.short_lengths[*l]) {
                if let Some(ids) = self.short.remove(&ahead[..length]) {
                    heard.extend(ids);
                }
            }
            let Some(stem) = ahead.first_chunk::<STEM>() else {
                continue;
            };
            if let Some(ids) = self.long.get_mut(stem) {
                let kept = &self.kept;
                ids.retain(|id| {
                    let is_heard = ahead.starts_with(kept[*id as usize].needle().as_bytes());
                    if is_heard {
                        heard.push(*id);
                    }
                    !is_heard
                });
            }
        }
        for id in &self.across {
            let needle = self.kept[*id as usize].needle().as_bytes();
            let before = start.saturating_sub(needle.len());
            if memmem::find(&said[before..], needle).is_some() {
                heard.push(*id);
            }
        }
        heard.retain(|id| !std::mem::replace(&mut self.kept[*id as usize].is_mentioned, true));
        self.across
            .retain(|id| !self.kept[*id as usize].is_mentioned);
        heard
    }

    /// Whether the customer said it.
    pub(super) fn is_mentioned(&self, id: FormId) -> bool {
        self.kept[id as usize].is_mentioned
    }

    /// Whether it looks like a record's key.
    pub(super) fn is_key_like(&self, id: FormId) -> bool {
        self.kept[id as usize].is_key_like
    }

    /// Whether it came from the customer: they said it, or a call passed it before any
    /// result had it.
    pub(super) fn is_from_customer(&self, id: FormId) -> bool {
        let form = &self.kept[id as usize];
        form.is_mentioned || form.is_given
    }

    /// Notes that a call passed it before any result had it. Returns whether that is news.
    pub(super) fn give(&mut self, id: FormId) -> bool {
        let was_known = self.is_from_customer(id);
        self.kept[id as usize].is_given = true;
        !was_known
    }

    /// The first result that had it.
    pub(super) fn first_output(&self, id: FormId) -> Option<usize> {
        self.kept[id as usize].first_output
    }

    /// Notes that a result has it.
    pub(super) fn see(&mut self, id: FormId, output: usize) {
        self.kept[id as usize].first_output.get_or_insert(output);
    }
}
