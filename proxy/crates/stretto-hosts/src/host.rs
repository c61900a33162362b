//! The hosts, and the shapes of their files.

use std::fmt;
use std::path::{Path, PathBuf};

/// A program that starts MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Claude Code: `claude mcp add`, or `.mcp.json` in a project.
    ClaudeCode,
    /// Claude Desktop: `claude_desktop_config.json`.
    ClaudeDesktop,
    /// Cursor: `mcp.json` in `.cursor`.
    Cursor,
    /// VS Code: `mcp.json`, with `servers` in place of `mcpServers` and a `type` in each.
    VsCode,
    /// Any other that reads a file with `mcpServers`.
    Plain,
}

impl Host {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Plain,
    ];

    /// What it is called on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Plain => "plain",
        }
    }

    /// The member of its file that holds the servers.
    pub fn container(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }

    /// Whether each of its servers says how it is reached, in a member `type`.
    pub fn has_type(self) -> bool {
        self == Self::VsCode
    }

    /// Whether it starts servers with so short a `PATH` that programs need their full paths.
    pub fn needs_full_paths(self) -> bool {
        self == Self::ClaudeDesktop
    }

    /// Where the user's own file is: `home` is their home directory, `settings` the folder of
    /// programs' settings on Windows (`%APPDATA%`), and `system` the operating system as
    /// [`std::env::consts::OS`] names it. For Claude Code that is the project's file, `.mcp.json`
    /// in the current directory. `None` where there is no such file, or it is not known.
    pub fn own_file(
        self,
        system: &str,
        home: Option<&Path>,
        settings: Option<&Path>,
    ) -> Option<PathBuf> {
        let mac = "Library/Application Support";
        match (self, system) {
            (Self::ClaudeCode, _) => Some(PathBuf::from(".mcp.json")),
            (Self::ClaudeDesktop, "macos") => {
                Some(home?.join(mac).join("Claude/claude_desktop_config.json"))
            }
            (Self::ClaudeDesktop, "windows") => {
                Some(settings?.join("Claude").join("claude_desktop_config.json"))
            }
            (Self::Cursor, _) => Some(home?.join(".cursor").join("mcp.json")),
            (Self::VsCode, "macos") => Some(home?.join(mac).join("Code/User/mcp.json")),
            (Self::VsCode, "windows") => Some(settings?.join("Code").join("User").join("mcp.json")),
            (Self::VsCode, _) => Some(home?.join(".config/Code/User/mcp.json")),
            (Self::ClaudeDesktop | Self::Plain, _) => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Plain => "the host",
        })
    }
}
