//! What a domain's tools may do, from the Python that defines them.

use crate::episode::{ToolDoc, ToolKind, ToolManifest};

/// Where a summary ends.
const SECTIONS: [&str; 5] = ["Args:", "Returns:", "Raises:", "Example:", "Examples:"];

/// Reads a domain's `tools.py`: each function behind `@is_tool(ToolType.X)`, its kind, and what
/// its docstring says. No Python is run; what is commented out does not count.
pub fn manifest(python: &str, domain: &str) -> ToolManifest {
    let mut manifest = ToolManifest {
        domain: domain.to_owned(),
        ..ToolManifest::default()
    };
    let mut kind = None;
    let mut lines = python.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(decorated) = line.strip_prefix("@is_tool(ToolType.") {
            kind = Some(match decorated.split(')').next() {
                Some("READ") => ToolKind::Read,
                Some("WRITE") => ToolKind::Write,
                _ => ToolKind::Generic,
            });
        } else if let Some((name, _)) = line
            .strip_prefix("def ")
            .and_then(|definition| definition.split_once('('))
            && let Some(kind) = kind.take()
        {
            let name = name.trim().to_owned();
            // The definition may go on over several lines.
            let mut rest = lines.clone();
            if !line.ends_with(':') {
                rest.find(|line| line.trim_end().ends_with(':'));
            }
            if let Some(docstring) = docstring(rest) {
                manifest.docs.insert(name.clone(), doc(&docstring));
            }
            manifest.tools.insert(name, kind);
        }
    }
    manifest
}

/// The docstring that a function begins with, without its quotation marks.
fn docstring(mut lines: std::str::Lines<'_>) -> Option<Vec<String>> {
    let first = lines.find(|line| !line.trim().is_empty())?.trim();
    let text = first
        .strip_prefix("\"\"\"")
        .or_else(|| first.strip_prefix("r\"\"\""))?;
    if let Some((only, _)) = text.split_once("\"\"\"") {
        return Some(vec![only.to_owned()]);
    }
    let mut docstring = vec![text.to_owned()];
    for line in lines {
        if let Some((last, _)) = line.split_once("\"\"\"") {
            docstring.push(last.to_owned());
            break;
        }
        docstring.push(line.to_owned());
    }
    Some(docstring)
}

fn doc(docstring: &[String]) -> ToolDoc {
    let mut doc = ToolDoc::default();
    let mut section = None;
    let mut paragraphs: Vec<Vec<&str>> = vec![Vec::new()];
    let mut argument: Option<(String, String)> = None;
    let mut entries_at = None;
    for line in docstring {
        let text = line.trim();
        if let Some(begun) = SECTIONS.iter().find(|begun| text.starts_with(*begun)) {
            section = Some(*begun);
            continue;
        }
        match section {
            None if text.is_empty() => paragraphs.push(Vec::new()),
            None => paragraphs
                .last_mut()
                .into_iter()
                .for_each(|last| last.push(text)),
            Some("Args:") if !text.is_empty() => {
                // What is indented further than the first entry goes on with the one before.
                let indent = line.len() - line.trim_start().len();
                let is_entry = indent <= *entries_at.get_or_insert(indent);
                let entry = text.split_once(':').filter(|_| is_entry);
                match (entry, &mut argument) {
                    (Some((name, said)), _) => {
                        doc.args.extend(argument.take());
                        // A type may stand behind the name.
                        let name = name.split_whitespace().next().unwrap_or_default();
                        argument = Some((name.to_owned(), said.trim().to_owned()));
                    }
                    (None, Some((_, said))) => {
                        said.push(' ');
                        said.push_str(text);
                    }
                    (None, None) => {}
                }
            }
            Some(_) => {}
        }
    }
    doc.args.extend(argument);
    let paragraphs = paragraphs.iter().filter(|paragraph| !paragraph.is_empty());
    doc.summary = paragraphs
        .map(|paragraph| paragraph.join(" "))
        .collect::<Vec<_>>()
        .join("\n\n");
    doc
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: &str = r#"
class RetailTools(ToolKitBase):
    @is_tool(ToolType.READ)
    def find_user_id_by_email(self, email: str) -> str:
        """Find user id by email. If the user is not found,
        the function will return an error message.

        Ask for the email first.

        Args:
            email: The email of the user, such as
                something@example.com.
            more (str): Whatever else.

        Returns:
            str: The user id.
        """
        return self.db[email]

    # @is_tool(ToolType.WRITE)
    # def commented_out(self):

    @is_tool(ToolType.WRITE)
    def cancel_pending_order(
        self, order_id: str
    ) -> Order:
        """Cancel."""

    def no_tool(self):
        """Nobody calls it."""

    @is_tool(ToolType.THINK)
    def think(self, thought: str):
        return ""
"#;

    #[test]
    fn tools_have_the_kind_that_their_decorator_says() {
        let manifest = manifest(PYTHON, "retail");
        assert_eq!(manifest.domain, "retail");
        let kinds: Vec<_> = manifest
            .tools
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("cancel_pending_order", ToolKind::Write),
                ("find_user_id_by_email", ToolKind::Read),
                ("think", ToolKind::Generic),
            ]
        );
    }

    #[test]
    fn docstrings_say_what_tools_and_arguments_are() {
        let docs = manifest(PYTHON, "retail").docs;
        let find = &docs["find_user_id_by_email"];
        assert_eq!(
            find.summary,
            "Find user id by email. If the user is not found, the function will return an error message.\n\n\
             Ask for the email first."
        );
        assert_eq!(
            find.args["email"],
            "The email of the user, such as something@example.com."
        );
        assert_eq!(find.args["more"], "Whatever else.");
        assert_eq!(docs["cancel_pending_order"].summary, "Cancel.");
        assert!(!docs.contains_key("think"));
    }
}
