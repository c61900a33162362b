//! The System-One model of a scenario: a service that says what the scenario lets it say.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::scenario::oracle::{Says, Told};
use crate::service::{Call, Reply, Service};

/// A model that listens; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Model {
    service: Service,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    says: Vec<Says>,
    key: String,
    talk: Mutex<Talk>,
    /// Told whenever answers are released, and at the end.
    released: Condvar,
    is_over: AtomicBool,
}

/// What was asked, and what that used up.
#[derive(Debug)]
struct Talk {
    asked: Vec<Asked>,
    /// How often each line has answered.
    used: Vec<u64>,
    /// Which lines hold their answers back.
    holds: Vec<bool>,
}

/// A request that the proxy made, and what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The ids of its questions, each with what it was told in a few words; with nothing when no
    /// line of the scenario fits.
    pub(crate) questions: Vec<(String, Option<String>)>,
    /// What the questions were about.
    pub(crate) state: Value,
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
        let talk = Talk {
            asked: Vec::new(),
            used: vec![0; says.len()],
            holds: says.iter().map(|says| says.is_held).collect(),
        };
        let shared = Arc::new(Shared {
            says,
            key,
            talk: Mutex::new(talk),
            released: Condvar::new(),
            is_over: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let service = Service::start(move |call| reply(&theirs, call))?;
        Ok(Self { service, shared })
    }

    pub(crate) fn address(&self) -> String {
        self.service.address()
    }

    /// Everything that was asked so far, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.talk).asked.clone()
    }

    /// How often a question with this id was asked so far.
    pub(crate) fn count(&self, question: &str) -> u64 {
        let asked = &lock(&self.shared.talk).asked;
        let questions = asked.iter().flat_map(|asked| &asked.questions);
        questions.filter(|(id, _)| id == question).count() as u64
    }

    /// Gives the answers to this question that are held back, those already asked for and those to
    /// come; with `about`, those of the lines that say so.
    pub(crate) fn release(&self, question: &str, about: Option<&str>) {
        let mut talk = lock(&self.shared.talk);
        for (says, holds) in self.shared.says.iter().zip(&mut talk.holds) {
            let is_meant = about.is_none() || says.about.as_deref() == about;
            *holds &= !(is_meant && says.question == question);
        }
        self.shared.released.notify_all();
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // Under the lock, so that nobody is about to wait who has not seen that it is over.
        drop(lock(&self.shared.talk));
        self.shared.released.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a request is answered with; nothing when its connection is cut.
fn reply(shared: &Shared, call: &Call) -> Option<Reply> {
    if call.authorization != Some(format!("Bearer {}", shared.key)) {
        return Some(Reply::refused(401, "the key is not this run's"));
    }
    let Ok(request) = serde_json::from_slice::<Request>(&call.body) else {
        return Some(Reply::refused(400, "this is no request"));
    };
    let lines = shared.take(&request);
    let mut answers = Map::new();
    let mut last = None;
    for (question, line) in request.questions.keys().zip(lines) {
        let Some((place, says)) = line else {
            // Final at once: the run fails anyway, and a client would only try again.
            last = Some(Reply::refused(400, "the scenario does not say"));
            continue;
        };
        thread::sleep(says.takes);
        shared.wait_for_release(place);
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
            Told::Fails {
                status,
                retry_after,
            } => {
                last = Some(Reply {
                    retry_after: *retry_after,
                    ..Reply::refused(*status, "as the scenario says")
                });
            }
            Told::Text(text) => {
                last = Some(Reply {
                    status: 200,
                    text: text.clone(),
                    retry_after: None,
                });
            }
            Told::Cut => return None,
        }
    }
    let model = format!("{}-stand-in", request.model);
    Some(last.unwrap_or_else(|| Reply::answers(&model, &answers)))
}

impl Shared {
    /// Notes a request, and finds the line that answers each of its questions.
    fn take(&self, request: &Request) -> Vec<Option<(usize, &Says)>> {
        let mut talk = lock(&self.talk);
        let mut lines = Vec::new();
        let mut questions = Vec::new();
        for (id, question) in &request.questions {
            let answers = |(place, says): &(usize, &Says)| {
                let used = talk.used.get(*place).copied().unwrap_or_default();
                says.times.is_none_or(|times| used < times)
                    && says.fits(id, question, &request.state)
            };
            let line = self.says.iter().enumerate().find(answers);
            if let Some((place, _)) = line
                && let Some(used) = talk.used.get_mut(place)
            {
                *used += 1;
            }
            questions.push((id.clone(), line.map(|(_, says)| says.told.to_string())));
            lines.push(line);
        }
        talk.asked.push(Asked {
            questions,
            state: request.state.clone(),
        });
        lines
    }

    /// Waits until the line at this place may answer, or everything is over.
    fn wait_for_release(&self, place: usize) {
        let talk = lock(&self.talk);
        let is_held = |talk: &mut Talk| {
            talk.holds.get(place) == Some(&true) && !self.is_over.load(Ordering::Acquire)
        };
        drop(self.released.wait_while(talk, is_held));
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
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    fn says(question: &str, about: Option<&str>, told: Told) -> Says {
        Says {
            question: question.to_owned(),
            about: about.map(str::to_owned),
            told,
            takes: Duration::ZERO,
            times: None,
            is_held: false,
        }
    }

    fn fails(status: u16) -> Told {
        Told::Fails {
            status,
            retry_after: None,
        }
    }

    /// What each question was told.
    fn told(model: &Model) -> Vec<Option<String>> {
        let asked = model.asked().into_iter();
        asked
            .flat_map(|asked| asked.questions)
            .map(|(_, told)| told)
            .collect()
    }

    fn ask(model: &Model, key: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(model.address()).unwrap();
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
        assert_eq!(
            told(&model),
            [
                Some("0.15".into()),
                Some("0.92".into()),
                Some("a 0.7, b 0.3".into())
            ]
        );
    }

    #[test]
    fn a_question_that_no_line_fits_is_remembered_as_such() {
        let model =
            Model::start(vec![says("confirmed", None, fails(503))], "k".to_owned()).unwrap();
        assert_eq!(ask(&model, "k", &question("confirmed", &json!("x"))).0, 503);
        assert_eq!(ask(&model, "k", &question("proposed", &json!("x"))).0, 400);
        assert_eq!(told(&model), [Some("fails with 503".into()), None]);
        assert_eq!(model.count("proposed"), 1);
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

    #[test]
    fn a_line_that_answers_once_leaves_the_next_question_to_the_lines_below() {
        let once = Says {
            times: Some(1),
            ..says("confirmed", None, fails(429))
        };
        let lines = vec![once, says("confirmed", None, Told::Noul(0.9))];
        let model = Model::start(lines, "k".to_owned()).unwrap();
        let asked = || ask(&model, "k", &question("confirmed", &json!("x"))).0;
        assert_eq!([asked(), asked(), asked()], [429, 200, 200]);
    }

    #[test]
    fn an_answer_that_is_held_back_comes_when_it_is_released() {
        let held = Says {
            is_held: true,
            ..says("confirmed", None, Told::Noul(0.9))
        };
        let model = Model::start(vec![held], "k".to_owned()).unwrap();
        thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&model, "k", &question("confirmed", &json!("x"))).0);
            while model.count("confirmed") == 0 {
                thread::yield_now();
            }
            assert!(!asking.is_finished());
            model.release("confirmed", Some("something else"));
            assert!(!asking.is_finished());
            model.release("confirmed", None);
            assert_eq!(asking.join().unwrap(), 200);
        });
        assert_eq!(ask(&model, "k", &question("confirmed", &json!("x"))).0, 200);
    }

    #[test]
    fn a_connection_is_cut_without_a_word() {
        let lines = vec![says("confirmed", None, Told::Cut)];
        let model = Model::start(lines, "k".to_owned()).unwrap();
        let mut stream = TcpStream::connect(model.address()).unwrap();
        let body = question("confirmed", &json!("x")).to_string();
        let head = format!(
            "POST / HTTP/1.1\r\nauthorization: Bearer k\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"");
        assert_eq!(told(&model), [Some("a cut connection".into())]);
    }
}
