//! The file as a tree, before its keys mean anything: cases put in, what JSON cannot hold refused.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::placeholders::{Piece, pieces};
use super::slip::{Slip, Source};

/// One case of a file, or the whole file when it lists none.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// The case's name, if the file has cases.
    pub(crate) name: Option<String>,
    /// The file's tree with this case's values in it.
    pub(crate) tree: Spanned<DeTable<'a>>,
}

/// Reads the tree once for each case.
///
/// # Errors
///
/// What is no TOML, no list of cases, or cannot be told in JSON.
pub(crate) fn read<'a>(source: Source<'a>) -> Result<Vec<Case<'a>>, Slip> {
    let mut tree = DeTable::parse(source.text).map_err(|error| source.toml_slip(&error))?;
    for (_, value) in tree.get_ref() {
        refuse_what_json_lacks(source, value)?;
    }
    let Some(listed) = tree.get_mut().remove("cases") else {
        return Ok(vec![Case { name: None, tree }]);
    };
    let span = listed.span();
    let DeValue::Array(listed) = listed.into_inner() else {
        return Err(source.slip(&span, "`cases` is a list of tables, each with a `name`"));
    };
    if listed.is_empty() {
        return Err(source.slip(
            &span,
            "`cases` is empty, so nothing would run; leave it out or name a case",
        ));
    }
    let mut cases: Vec<Case<'a>> = Vec::new();
    for case in &listed {
        let DeValue::Table(values) = case.get_ref() else {
            return Err(source.slip(
                &case.span(),
                "a case is a table with a `name` and the values of its placeholders",
            ));
        };
        let name = name_of(source, case, values)?;
        if cases
            .iter()
            .any(|other| other.name.as_deref() == Some(&name))
        {
            return Err(source.slip(&case.span(), format!("two cases are called `{name}`")));
        }
        if let Some((key, _)) = values
            .iter()
            .find(|(key, _)| !is_member_name(key.get_ref()))
        {
            let what = format!(
                "`{}`: a case's members are written in small letters, digits and `_`",
                key.get_ref()
            );
            return Err(source.slip(&key.span(), what));
        }
        let mut tree = tree.clone();
        for (_, value) in tree.get_mut().iter_mut() {
            put_in(source, value, values)?;
        }
        cases.push(Case {
            name: Some(name),
            tree,
        });
    }
    refuse_unused(source, &tree, listed.iter())?;
    Ok(cases)
}

fn is_member_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn name_of(
    source: Source<'_>,
    case: &Spanned<DeValue<'_>>,
    values: &DeTable<'_>,
) -> Result<String, Slip> {
    let Some(name) = values.get("name") else {
        return Err(source.slip(&case.span(), "a case needs a `name`"));
    };
    let fits = |text: &str| {
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        text.starts_with(|c: char| rest(c) && c != '-') && text.chars().all(rest)
    };
    match name.get_ref().as_str() {
        Some(text) if fits(text) => Ok(text.to_owned()),
        _ => Err(source.slip(
            &name.span(),
            "a case's name is small letters, digits and hyphens: it names a file",
        )),
    }
}

/// Puts a case's values where the tree's texts name them.
fn put_in<'a>(
    source: Source<'_>,
    value: &mut Spanned<DeValue<'a>>,
    case: &DeTable<'a>,
) -> Result<(), Slip> {
    let span = value.span();
    match value.get_mut() {
        DeValue::String(text) => {
            let parts = pieces(text);
            if let [Piece::Name(name)] = parts.as_slice() {
                if let Some(whole) = case.get(*name) {
                    *value = Spanned::new(span, whole.get_ref().clone());
                }
                return Ok(());
            }
            let mut filled = String::with_capacity(text.len());
            for part in parts {
                match part {
                    Piece::Plain(plain) => filled.push_str(plain),
                    Piece::Dollar => filled.push_str("$$"),
                    Piece::Name(name) => match case.get(name).map(Spanned::get_ref) {
                        None => filled.extend(["$", name]),
                        Some(DeValue::String(text)) => filled.push_str(text),
                        Some(DeValue::Integer(number)) => filled.push_str(number.as_str()),
                        Some(DeValue::Boolean(flag)) => {
                            filled.push_str(if *flag { "true" } else { "false" });
                        }
                        Some(_) => {
                            let what = format!(
                                "${name} is no text, number or boolean, so it cannot stand within a text"
                            );
                            return Err(source.slip_on(source.line_within(&span, name), what));
                        }
                    },
                }
            }
            *text = Cow::Owned(filled);
        }
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                put_in(source, item, case)?;
            }
        }
        DeValue::Table(members) => {
            for (_, member) in members.iter_mut() {
                put_in(source, member, case)?;
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
    Ok(())
}

/// A value that no text refers to is a misspelt placeholder somewhere.
fn refuse_unused<'a>(
    source: Source<'_>,
    tree: &Spanned<DeTable<'a>>,
    cases: impl Iterator<Item = &'a Spanned<DeValue<'a>>>,
) -> Result<(), Slip> {
    let mut used = Vec::new();
    for (_, value) in tree.get_ref() {
        collect_names(value, &mut used);
    }
    for case in cases {
        let DeValue::Table(values) = case.get_ref() else {
            continue;
        };
        for (key, _) in values {
            let name: &str = key.get_ref();
            if name != "name" && !used.iter().any(|other| other == name) {
                return Err(source.slip(&key.span(), format!("nothing in this file says ${name}")));
            }
        }
    }
    Ok(())
}

fn collect_names(value: &Spanned<DeValue<'_>>, names: &mut Vec<String>) {
    match value.get_ref() {
        DeValue::String(text) => names.extend(super::placeholders::names(text).map(str::to_owned)),
        DeValue::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        DeValue::Table(members) => members
            .iter()
            .for_each(|(_, member)| collect_names(member, names)),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

/// Dates and numbers that are none would turn into something else on their way into a message.
fn refuse_what_json_lacks(source: Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<(), Slip> {
    match value.get_ref() {
        DeValue::Datetime(_) => Err(source.slip(
            &value.span(),
            "JSON has no dates; put it in quotation marks",
        )),
        DeValue::Float(number) if number.as_str().contains(['n', 'i']) => {
            Err(source.slip(&value.span(), format!("JSON has no {}", number.as_str())))
        }
        DeValue::Array(items) => items
            .iter()
            .try_for_each(|item| refuse_what_json_lacks(source, item)),
        DeValue::Table(members) => members
            .iter()
            .try_for_each(|(_, member)| refuse_what_json_lacks(source, member)),
        DeValue::Float(_) | DeValue::String(_) | DeValue::Integer(_) | DeValue::Boolean(_) => {
            Ok(())
        }
    }
}
