//! Reading JSON that others wrote: what is of another type than expected counts as missing.

use serde_json::Value;

/// A result's content: JSON where the text is JSON, a text otherwise.
pub(crate) enum Content {
    /// A JSON string, or what is not JSON at all, without blanks at its ends.
    Text(String),
    /// JSON of any other type.
    Json(Value),
}

impl Content {
    pub(crate) fn read(content: &str) -> Self {
        match serde_json::from_str(content) {
            Ok(Value::String(text)) => Self::Text(text),
            Ok(value) => Self::Json(value),
            Err(_) => Self::Text(content.trim().to_owned()),
        }
    }
}

/// The member `name` of an object, if it is a string.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// The elements of the list in member `name`; none when there is no such list.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The strings of the list in member `name`.
pub(crate) fn texts<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    list(value, name).iter().filter_map(Value::as_str).collect()
}

/// How many elements the list in member `name` has, if there is such a list.
pub(crate) fn length(value: &Value, name: &str) -> Option<usize> {
    Some(value.get(name)?.as_array()?.len())
}

/// The member `name`, if it is an integer. A number with a fraction, even `.0`, is none.
pub(crate) fn integer(value: &Value, name: &str) -> Option<i128> {
    let number = value.get(name)?;
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}
