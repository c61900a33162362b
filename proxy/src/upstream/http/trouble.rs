//! Exchanges that bring no answer, and what the host gets instead.

use std::fmt;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::endpoint::shown_status;
use crate::{line::Line, message::Id};

/// The code of errors that are the proxy's own: one that no protocol gives a meaning.
const OWN_CODE: i64 = -32_000;

/// Codes that the protocol has kept for itself. Hosts decide by them what they do next.
const PROTOCOLS_OWN: std::ops::RangeInclusive<i64> = -32_099..=-32_020;

/// Why an exchange brought no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No head of an answer, and why.
    Unreachable(String),
    /// The server does not know the session any more, and what it says.
    SessionEnded(Option<ServerError>),
    /// A status that is no success, and what the server says.
    Refused(StatusCode, Option<ServerError>),
    /// The body broke off, and why.
    CutOff(String),
    /// There is an answer, but not to the request.
    NoAnswer,
    /// The event stream ended first. If it broke off, why.
    EndedEarly(Option<String>),
}

/// An error as the server states it.
#[derive(Debug)]
pub(super) struct ServerError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Box<RawValue>>,
}

impl ServerError {
    /// The error in a message, if it is one.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Refusal {
            error: Stated,
        }
        #[derive(Deserialize)]
        struct Stated {
            code: Option<Value>,
            message: Option<Value>,
            data: Option<Box<RawValue>>,
        }
        let Refusal { error } = serde_json::from_slice(message).ok()?;
        let message = match error.message {
            Some(Value::String(message)) => message,
            _ => "the server does not say why".into(),
        };
        Some(Self {
            code: error
                .code
                .and_then(|code| code.as_i64())
                .unwrap_or(OWN_CODE),
            message,
            data: error.data,
        })
    }

    /// An error without the server's own words.
    fn own(message: String) -> Self {
        Self {
            code: OWN_CODE,
            message,
            data: None,
        }
    }

    pub(super) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }
}

impl Trouble {
    /// The error that the host gets for a request.
    pub(super) fn line(&self, id: &Id) -> Line {
        let mut error = ServerError::own(self.to_string());
        if let Self::Refused(status, Some(stated)) = self
            && (is_protocols(*status) || !PROTOCOLS_OWN.contains(&stated.code))
        {
            error.code = stated.code;
            error.data.clone_from(&stated.data);
        }
        error_line(id, &error)
    }
}

/// Whether the newest revision answers with this status when it means one of its codes.
fn is_protocols(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stated = match self {
            Self::Unreachable(why) => {
                return write!(formatter, "the server could not be reached: {why}");
            }
            Self::CutOff(why) => {
                return write!(formatter, "the server's answer was cut off: {why}");
            }
            Self::NoAnswer => {
                return formatter.write_str("the server gave no answer to the request");
            }
            Self::EndedEarly(why) => {
                formatter.write_str("the server's stream ended before the answer")?;
                return why.iter().try_for_each(|why| write!(formatter, ": {why}"));
            }
            Self::SessionEnded(stated) => {
                formatter.write_str(
                    "the server has ended the session, and the next one begins when the host starts the proxy again",
                )?;
                stated
            }
            Self::Refused(status, stated) => {
                write!(formatter, "the server answered {}", shown_status(*status))?;
                stated
            }
        };
        match stated {
            Some(stated) => write!(formatter, ": {}", stated.message),
            None => Ok(()),
        }
    }
}

/// A response of the proxy's own that says what went wrong.
pub(super) fn error_line(id: &Id, error: &ServerError) -> Line {
    let message = Value::from(format!("stretto-proxy: {}", error.message));
    let data = error.data.as_ref().map_or_else(String::new, |data| {
        let data = data.get().replace(['\n', '\r'], " ");
        format!(",\"data\":{data}")
    });
    Line::own(format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":{message}{data}}}}}"#,
        id.to_json(),
        error.code
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(trouble: &Trouble) -> String {
        let line = trouble.line(&Id::Text("a\"b".into()));
        String::from_utf8(line.content().to_vec()).expect("UTF-8")
    }

    fn stated(json: &str) -> Option<ServerError> {
        ServerError::of(json.as_bytes())
    }

    #[test]
    fn an_error_is_the_hosts_own() {
        assert_eq!(
            line(&Trouble::NoAnswer),
            r#"{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32000,"message":"stretto-proxy: the server gave no answer to the request"}}"#
        );
    }

    #[test]
    fn a_refusal_keeps_what_the_server_says() {
        let refused = |status: u16, error: &str| {
            let status = StatusCode::from_u16(status).expect("a status");
            line(&Trouble::Refused(status, stated(error)))
        };
        let line = refused(
            400,
            r#"{"error":{"code":-32022,"message":"no","data":{"supported":["x"]}},"id":null}"#,
        );
        assert!(line.ends_with(
            r#""error":{"code":-32022,"message":"stretto-proxy: the server answered HTTP 400 Bad Request: no","data":{"supported":["x"]}}}"#
        ), "{line}");
        assert!(
            refused(500, r#"{"error":{"code":-32022,"message":"no"}}"#)
                .contains(r#""code":-32000"#)
        );
        assert!(refused(500, r#"{"error":{"code":-7,"message":"no"}}"#).contains(r#""code":-7"#));
        assert!(refused(418, r#"{"error":{}}"#).contains(r#""code":-32000"#));
        assert!(refused(599, "{}").contains("HTTP 599\""));
    }
}
