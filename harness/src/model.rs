//! A stand-in for the System-One service, which answers what a scenario says.
//!
//! It listens on a local port and speaks as much HTTP as the proxy's client does, and the
//! client and the cache of a run are those that people use.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::scenario::oracle::{Says, Told};

/// Requests larger than this are none of the proxy's.
const LARGEST: u64 = 64 * 1024 * 1024;

/// How long a connection may stay silent.
const SILENCE: Duration = Duration::from_mins(1);

/// A model that listens; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    says: Vec<Says>,
    key: String,
    asked: Mutex<Vec<Asked>>,
    is_over: AtomicBool,
}

/// A question that the proxy asked, and what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The question's id.
    pub(crate) question: String,
    /// What the question was about.
    pub(crate) state: Value,
    /// What it was told, in a few words; nothing when no line of the scenario fits.
    pub(crate) told: Option<String>,
}

/// A request, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Request {
    model: String,
    state: Value,
    questions: Map<String, Value>,
}

impl Model {
    /// Starts a model that says these things to those who know `key`.
    ///
    /// # Errors
    ///
    /// When no port or no thread can be had.
    pub(crate) fn start(says: Vec<Says>, key: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            says,
            key,
            asked: Mutex::new(Vec::new()),
            is_over: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let listening = thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || listen(&listener, &theirs))?;
        Ok(Self {
            address,
            shared,
            listening: Some(listening),
        })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Everything that was asked so far, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // The wait for a connection ends with one.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok(connection) = connection else { continue };
        let shared = Arc::clone(shared);
        let served = thread::Builder::new()
            .name("model-connection".to_owned())
            // A client that goes away in the middle has no use for an error.
            .spawn(move || drop(serve(&connection, &shared)));
        drop(served);
    }
}

/// Answers the requests of one connection until it ends.
fn serve(connection: &TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(connection);
    let mut writer = connection;
    while let Some((authorization, body)) = read_request(&mut reader)? {
        let (status, answer) = answer(shared, authorization.as_deref(), &body);
        let text = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        writer.write_all(head.as_bytes())?;
        writer.write_all(text.as_bytes())?;
        writer.flush()?;
    }
    Ok(())
}

/// The credentials and the body of the next request; nothing when there is none.
fn read_request(reader: &mut impl io::BufRead) -> io::Result<Option<(Option<String>, Vec<u8>)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let (mut authorization, mut length) = (None, 0_u64);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().unwrap_or_default(),
            _ => {}
        }
    }
    let mut body = Vec::new();
    reader.take(length.min(LARGEST)).read_to_end(&mut body)?;
    Ok(Some((authorization, body)))
}

fn answer(shared: &Shared, authorization: Option<&str>, body: &[u8]) -> (u16, Value) {
    let refused = |status: u16, why: &str| (status, json!({ "error": why }));
    if authorization != Some(&format!("Bearer {}", shared.key)) {
        return refused(401, "the key is not this run's");
    }
    let Ok(request) = serde_json::from_slice::<Request>(body) else {
        return refused(400, "this is no request");
    };
    let mut answers = Map::new();
    let mut status = None;
    for (question, asked) in &request.questions {
        let says = shared
            .says
            .iter()
            .find(|says| says.fits(question, asked, &request.state));
        lock(&shared.asked).push(Asked {
            question: question.clone(),
            state: request.state.clone(),
            told: says.map(|says| says.told.to_string()),
        });
        let Some(says) = says else {
            // Final at once: the run fails anyway, and a client would only try again.
            status = Some(400);
            continue;
        };
        thread::sleep(says.takes);
        match &says.told {
            Told::Noul(probability) => {
                answers.insert(
                    question.clone(),
                    json!({ "type": "noul", "noul": probability }),
                );
            }
            Told::Choice(probabilities) => {
                answers.insert(question.clone(), choice(probabilities));
            }
            Told::Fails(code) => status = Some(*code),
        }
    }
    match status {
        Some(status) => refused(status, "as the scenario says"),
        None => (
            200,
            json!({ "model": format!("{}-stand-in", request.model), "answers": answers,
                    "usage": { "input_tokens": 0, "output_tokens": 0 } }),
        ),
    }
}

fn choice(probabilities: &std::collections::BTreeMap<String, f64>) -> Value {
    let likeliest = probabilities
        .iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    let (option, confidence) = likeliest.map_or(("", 0.0), |(option, p)| (option.as_str(), *p));
    json!({ "type": "choice", "choice": option, "probabilities": probabilities, "confidence": confidence })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::BufRead as _;

    use super::*;

    fn says(question: &str, about: Option<&str>, told: Told) -> Says {
        Says {
            question: question.to_owned(),
            about: about.map(str::to_owned),
            told,
            takes: Duration::ZERO,
        }
    }

    fn ask(model: &Model, key: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(model.address).unwrap();
        let body = body.to_string();
        let head = format!(
            "POST /v1/systemone HTTP/1.1\r\nHost: x\r\nauthorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(&stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    fn question(id: &str, state: &Value) -> Value {
        json!({ "model": "m", "state": state, "questions": { id: { "type": "noul", "instructions": "did they agree?" } } })
    }

    #[test]
    fn the_first_line_that_fits_answers() {
        let lines = vec![
            says("confirmed", Some("What \"if\"?"), Told::Noul(0.15)),
            says("confirmed", None, Told::Noul(0.92)),
            says(
                "next",
                None,
                Told::Choice(BTreeMap::from([("a".into(), 0.7), ("b".into(), 0.3)])),
            ),
        ];
        let model = Model::start(lines, "k".to_owned()).unwrap();
        let (status, answer) = ask(
            &model,
            "k",
            &question("confirmed", &json!({ "said": ["What \"if\"?"] })),
        );
        assert_eq!(
            (status, &answer["answers"]["confirmed"]["noul"]),
            (200, &json!(0.15))
        );
        let (_, answer) = ask(&model, "k", &question("confirmed", &json!("Yes.")));
        assert_eq!(answer["answers"]["confirmed"]["noul"], json!(0.92));
        let (_, answer) = ask(&model, "k", &question("next", &json!("x")));
        assert_eq!(answer["answers"]["next"]["choice"], json!("a"));
        let told: Vec<Option<String>> = model.asked().into_iter().map(|asked| asked.told).collect();
        assert_eq!(
            told,
            [
                Some("0.15".into()),
                Some("0.92".into()),
                Some("a 0.7, b 0.3".into())
            ]
        );
    }

    #[test]
    fn a_question_that_no_line_fits_is_remembered_as_such() {
        let model = Model::start(
            vec![says("confirmed", None, Told::Fails(503))],
            "k".to_owned(),
        )
        .unwrap();
        assert_eq!(ask(&model, "k", &question("confirmed", &json!("x"))).0, 503);
        assert_eq!(ask(&model, "k", &question("proposed", &json!("x"))).0, 400);
        let asked = model.asked();
        assert_eq!(asked[0].told.as_deref(), Some("fails with 503"));
        assert_eq!(
            (asked[1].question.as_str(), &asked[1].told),
            ("proposed", &None)
        );
    }

    #[test]
    fn another_key_is_refused() {
        let model = Model::start(Vec::new(), "k".to_owned()).unwrap();
        assert_eq!(
            ask(&model, "other", &question("confirmed", &json!("x"))).0,
            401
        );
        assert!(model.asked().is_empty());
    }
}
