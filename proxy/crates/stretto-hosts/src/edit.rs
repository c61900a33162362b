//! Putting a proxy before a server of a host's file, and taking it out.

use std::collections::BTreeMap;
use std::path::Path;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;

use crate::document::{
    Changes, Document, EditError, array, member, object, range, split_mark, string,
};
use crate::entry::{literal, literals};
use crate::{Host, Proxy};

/// The proxy's program.
const PROGRAM: &str = "stretto-proxy";

/// Puts a proxy before a server that the text of a host's file has.
///
/// # Errors
///
/// The text is not such a file, has no such server, or one that a proxy cannot stand before.
pub fn wrap(text: &str, host: Host, name: &str, proxy: &Proxy) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let document = Document::parse(text)?;
    let entry = Found::find(&document, host, name)?;
    let changes = match (entry.member("command")?, entry.member("url")?) {
        (Some((_, command)), None) => entry.wrap_command(command, proxy)?,
        (None, Some((_, url))) => entry.wrap_url(url, proxy)?,
        (Some(_), Some(_)) => return Err(entry.refuse("has both a command and a url; keep one")),
        (None, None) => return Err(entry.refuse("has neither a command nor a url")),
    };
    Ok(format!("{mark}{}", changes.apply(&document)))
}

/// Takes the proxy out of a server's entry: the inverse of [`wrap`].
///
/// # Errors
///
/// The text is not such a file, has no such server, or one that is not behind the proxy.
pub fn undo(text: &str, host: Host, name: &str) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let document = Document::parse(text)?;
    let entry = Found::find(&document, host, name)?;
    let changes = entry.unwrap()?;
    Ok(format!("{mark}{}", changes.apply(&document)))
}

/// The text of a host's file to show to people: `…` in place of the values in each server's
/// `env` and `headers`, which are often secrets.
///
/// # Errors
///
/// The text is not such a file.
pub fn without_values(text: &str, host: Host) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let document = Document::parse(text)?;
    let mut changes = Changes::default();
    let in_container = |found: &&ObjectProp<'_>| found.name.as_str() == host.container();
    let held = document.root.properties.iter().filter(in_container);
    for server in held.flat_map(members) {
        for held in members(server) {
            if matches!(held.name.as_str(), "env" | "headers") {
                for value in members(held) {
                    changes.replace(range(&value.value), "\"…\"");
                }
            }
        }
    }
    Ok(format!("{mark}{}", changes.apply(&document)))
}

/// The members of the object that a member holds; none if it holds something else.
fn members<'o, 'a>(member: &'o ObjectProp<'a>) -> &'o [ObjectProp<'a>] {
    match &member.value {
        Value::Object(object) => &object.properties,
        _ => &[],
    }
}

/// A server's entry.
struct Found<'d, 'a> {
    document: &'d Document<'a>,
    name: &'d str,
    entry: &'d Object<'a>,
}

impl<'d, 'a> Found<'d, 'a> {
    fn find(document: &'d Document<'a>, host: Host, name: &'d str) -> Result<Self, EditError> {
        let key = host.container();
        let missing = |others| EditError::NoServer {
            name: name.to_owned(),
            others,
        };
        let (_, servers) = member(&document.root, key, "it")?.ok_or_else(|| missing(Vec::new()))?;
        let servers = object(servers, key)?;
        let (_, entry) = member(servers, name, key)?.ok_or_else(|| {
            let names = servers.properties.iter();
            missing(
                names
                    .map(|server| server.name.as_str().to_owned())
                    .collect(),
            )
        })?;
        Ok(Self {
            document,
            name,
            entry: object(entry, name)?,
        })
    }

    fn member(&self, key: &str) -> Result<Option<(usize, &'d ObjectProp<'a>)>, EditError> {
        member(self.entry, key, self.name)
    }

    fn refuse(&self, what: impl Into<String>) -> EditError {
        EditError::Entry {
            name: self.name.to_owned(),
            what: what.into(),
        }
    }

    /// The name of a member of the entry, as errors call it.
    fn place(&self, key: &str) -> String {
        format!("{key} of {}", self.name)
    }

    /// What stands between two members that are written next to each other: a new line as the
    /// first of them has, or a blank.
    fn gap(&self, first: &ObjectProp<'_>) -> String {
        let indent = self.document.indent(first.start());
        indent.map_or_else(
            || " ".to_owned(),
            |indent| format!("{}{indent}", self.document.line_end()),
        )
    }

    fn wrap_command(&self, command: &ObjectProp<'_>, proxy: &Proxy) -> Result<Changes, EditError> {
        if is_proxy(string(&command.value, &self.place("command"))?) {
            return Err(EditError::Wrapped {
                name: self.name.to_owned(),
            });
        }
        let own = before_server(proxy, "--", self.document.raw(&command.value));
        let mut program = literal(&proxy.command);
        let mut changes = Changes::default();
        match self.member("args")? {
            None => {
                let gap = self.gap(command);
                program = format!("{program},{gap}\"args\": [{own}]");
            }
            Some((_, arguments)) => {
                let arguments = array(arguments, &self.place("args"))?;
                if let Some(first) = arguments.elements.first() {
                    changes.replace(first.start()..first.start(), format!("{own}, "));
                } else {
                    let start = arguments.start() + 1;
                    changes.replace(start..start, format!("{own} "));
                }
            }
        }
        changes.replace(range(&command.value), program);
        Ok(changes)
    }

    fn wrap_url(&self, url: &ObjectProp<'_>, proxy: &Proxy) -> Result<Changes, EditError> {
        string(&url.value, &self.place("url"))?;
        for key in ["args", "env", "envFile"] {
            if self.member(key)?.is_some() {
                return Err(self.refuse(format!(
                    "has a url and {key}, which is for servers with a command; take {key} out first"
                )));
            }
        }
        for key in ["oauth", "auth", "headersHelper"] {
            if self.member(key)?.is_some() {
                return Err(self.refuse(format!(
                    "has the host sign in ({key}), which the proxy cannot do; use a header instead"
                )));
            }
        }
        let mut changes = Changes::default();
        if let Some((_, kind)) = self.member("type")? {
            if self.document.raw(&kind.value) != "\"http\"" {
                return Err(self.refuse(format!(
                    "has the type {}; the proxy can stand before \"http\", which is Streamable HTTP",
                    self.document.raw(&kind.value)
                )));
            }
            changes.replace(range(&kind.value), "\"stdio\"");
        }
        let mut words = before_server(proxy, "--upstream", self.document.raw(&url.value));
        if let Some((_, headers)) = self.member("headers")? {
            self.check_spelling(headers, "headers")?;
            changes.replace(range(&headers.name), "\"env\"");
            let mut taken = BTreeMap::new();
            for header in &object(headers, &self.place("headers"))?.properties {
                let name = header.name.as_str();
                string(&header.value, &format!("the value of the header {name}"))?;
                if !is_header(name) {
                    return Err(self.refuse(format!("has {name:?} for a header's name")));
                }
                let variable = variable(self.name, name);
                if let Some(other) = taken.insert(variable.clone(), name) {
                    return Err(self.refuse(format!(
                        "has the headers {other} and {name}, which are too alike; keep one"
                    )));
                }
                let raw = self.document.raw(&header.name);
                let unclosed = raw.strip_suffix('"').unwrap_or(raw);
                words = format!("{words}, \"--upstream-header\", {unclosed}={variable}\"");
                changes.replace(range(&header.name), literal(&variable));
            }
        }
        self.check_spelling(url, "url")?;
        let program = literal(&proxy.command);
        changes.replace(
            range(&url.name),
            format!("\"command\": {program},{}\"args\"", self.gap(url)),
        );
        changes.replace(range(&url.value), format!("[{words}]"));
        Ok(changes)
    }

    /// A member whose name is written anew must have the usual spelling, or it could not be
    /// given back.
    fn check_spelling(&self, member: &ObjectProp<'_>, key: &str) -> Result<(), EditError> {
        let raw = self.document.raw(&member.name);
        if raw == literal(key) {
            return Ok(());
        }
        Err(self.refuse(format!("spells {key:?} as {raw}; spell it plainly first")))
    }

    fn unwrap(&self) -> Result<Changes, EditError> {
        let not_wrapped = || EditError::NotWrapped {
            name: self.name.to_owned(),
        };
        let command = self.member("command")?.ok_or_else(not_wrapped)?;
        if !is_proxy(string(&command.1.value, &self.place("command"))?) {
            return Err(not_wrapped());
        }
        let arguments = self.member("args")?.ok_or_else(not_wrapped)?;
        let place = self.place("args");
        let elements = &array(arguments.1, &place)?.elements;
        for (index, element) in elements.iter().enumerate() {
            match (string(element, &place)?, elements.get(index + 1)) {
                ("--", Some(server)) => {
                    string(server, &place)?;
                    return self.unwrap_command(command.1, arguments.1, index + 1);
                }
                ("--upstream", Some(url)) => {
                    string(url, &place)?;
                    return self.unwrap_url(command, arguments, url);
                }
                _ => {}
            }
        }
        Err(self.refuse("starts the proxy without a server: nothing follows `--` or --upstream"))
    }

    /// `server` is the place of the server's program among the arguments.
    fn unwrap_command(
        &self,
        command: &ObjectProp<'_>,
        member: &ObjectProp<'_>,
        server: usize,
    ) -> Result<Changes, EditError> {
        let document = self.document;
        let arguments = array(member, &self.place("args"))?;
        let (first, program) = (&arguments.elements[0], &arguments.elements[server]);
        let mut changes = Changes::default();
        let mut end = command.value.end();
        if let Some(next) = arguments.elements.get(server + 1) {
            changes.replace(first.start()..next.start(), "");
        } else {
            let rest = document.slice(program.end()..arguments.end() - 1);
            let is_next = command.end() <= member.start()
                && is_comma(document.slice(command.end()..member.start()));
            if rest.is_empty() && is_next {
                end = member.end();
            } else {
                let comma = document.after_trivia(program.end());
                let to = if document.slice(comma..arguments.end()).starts_with(',') {
                    comma + 1
                } else {
                    program.end() + usize::from(rest.starts_with(' '))
                };
                changes.replace(first.start()..to, "");
            }
        }
        changes.replace(command.value.start()..end, document.raw(program));
        Ok(changes)
    }

    fn unwrap_url(
        &self,
        command: (usize, &ObjectProp<'_>),
        arguments: (usize, &ObjectProp<'_>),
        url: &Value<'_>,
    ) -> Result<Changes, EditError> {
        let document = self.document;
        let mut changes = Changes::default();
        let (at, command) = command;
        let (args_at, member) = arguments;
        changes.replace(range(&member.value), document.raw(url));
        if at + 1 == args_at && is_comma(document.slice(command.end()..member.start())) {
            changes.replace(command.start()..member.name.end(), "\"url\"");
        } else {
            changes.replace(range(&member.name), "\"url\"");
            let members = &self.entry.properties;
            let gone = match (at.checked_sub(1), members.get(at + 1)) {
                (Some(before), _) => members[before].end()..command.end(),
                (None, Some(next)) => command.start()..next.start(),
                (None, None) => range(command),
            };
            changes.replace(gone, "");
        }
        if let Some((_, kind)) = self.member("type")?
            && string(&kind.value, &self.place("type"))? == "stdio"
        {
            changes.replace(range(&kind.value), "\"http\"");
        }

        let headers = self.headers(&array(member, &self.place("args"))?.elements)?;
        let environment = match self.member("env")? {
            Some((_, environment)) => Some((environment, object(environment, "env")?)),
            None => None,
        };
        let mut found = 0;
        if let Some((environment, variables)) = environment {
            for variable in &variables.properties {
                let name = variable.name.as_str();
                let Some(header) = headers.get(name) else {
                    return Err(self.refuse(format!(
                        "has {name} in env, which is no header's value; a url has no env, so take \
                         {name} out first"
                    )));
                };
                changes.replace(range(&variable.name), header);
                found += 1;
            }
            changes.replace(range(&environment.name), "\"headers\"");
        }
        if found < headers.len() {
            return Err(self.refuse(
                "takes a header's value from a variable that is not in its env; put it there first",
            ));
        }
        Ok(changes)
    }

    /// The headers among the proxy's arguments, as JSON strings, by their variables.
    fn headers(&self, elements: &[Value<'_>]) -> Result<BTreeMap<String, String>, EditError> {
        let place = self.place("args");
        let mut headers = BTreeMap::new();
        for pair in elements.windows(2) {
            if string(&pair[0], &place)? != "--upstream-header" {
                continue;
            }
            let value = string(&pair[1], &place)?;
            let raw = self.document.raw(&pair[1]);
            let (Some((_, variable)), Some((header, _))) =
                (value.rsplit_once('='), raw.rsplit_once('='))
            else {
                return Err(self.refuse("has a header without a variable (NAME=VAR) in its args"));
            };
            headers.insert(variable.to_owned(), format!("{header}\""));
        }
        Ok(headers)
    }
}

/// The proxy's options, the word that ends them, and the server as it was spelled, in JSON.
fn before_server(proxy: &Proxy, last: &str, server: &str) -> String {
    let mut words: Vec<&str> = proxy.options.iter().map(String::as_str).collect();
    words.push(last);
    format!("{}, {server}", literals(&words))
}

/// Whether a command starts the proxy, by its name or its path.
fn is_proxy(command: &str) -> bool {
    // A path of Windows' own, on whatever system this is read.
    let name = command.rsplit('\\').next().unwrap_or(command);
    Path::new(name)
        .file_name()
        .is_some_and(|name| name == PROGRAM || name == "stretto-proxy.exe")
}

/// Whether a text is one comma and whitespace.
fn is_comma(text: &str) -> bool {
    text.trim_matches([' ', '\t', '\r', '\n']) == ","
}

/// Whether HTTP takes `name` as a header's: a `token` of RFC 9110, section 5.6.2.
fn is_header(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|character| {
            character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
        })
}

/// The environment variable for a header of a server.
fn variable(server: &str, header: &str) -> String {
    let letters = |character: char| {
        if character.is_ascii_alphanumeric() {
            character.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = format!("{server}_{header}").chars().map(letters).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}
