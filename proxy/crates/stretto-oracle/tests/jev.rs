//! The client against real servers on this machine.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use stretto_oracle::offline::{self, Requests};
use stretto_oracle::{
    AskError, Cache, ClientError, Jev, Oracle, Origin, Patience, Question, Request, Response,
    Settings,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use wiremock::matchers::{body_bytes, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const SECRET: &str = "sk-do-not-show";

/// As many attempts as offline, without the waits.
fn impatience() -> Patience {
    Patience {
        waits: vec![Duration::ZERO; 4],
        ..Patience::offline()
    }
}

fn settings(base_url: &str, key: Option<&str>) -> Settings {
    Settings::from_variables(|name| match name {
        "TYPESAFE_API_KEY" => key.map(OsString::from),
        "TYPESAFE_BASE_URL" => Some(base_url.into()),
        _ => None,
    })
    .unwrap()
}

fn jev(base_url: &str) -> Jev {
    Jev::new(&settings(base_url, Some(SECRET)), impatience()).unwrap()
}

fn request() -> Request {
    asking("Payouts have failed since Monday!")
}

fn asking(state: &str) -> Request {
    Request {
        model: "jev-latest".to_owned(),
        state: state.into(),
        questions: [(
            "urgent".to_owned(),
            Question::noul("Is the sender in a hurry?"),
        )]
        .into(),
    }
}

fn answer() -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!({
        "model": "jev-1.13.0",
        "answers": {"urgent": {"type": "noul", "noul": 0.93}},
        "usage": {"input_tokens": 41, "output_tokens": 4},
    }))
}

async fn server(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(response)
        .mount(&server)
        .await;
    server
}

async fn requests_to(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().len()
}

#[tokio::test]
async fn the_service_gets_the_canonical_text_and_the_key() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/base/v1/systemone"))
        .and(header("authorization", format!("Bearer {SECRET}")))
        .and(header("content-type", "application/json"))
        .and(body_bytes(request().canonical()))
        .respond_with(answer())
        .mount(&server)
        .await;
    let response = jev(&format!("{}/base///", server.uri()))
        .ask(&request())
        .await
        .unwrap();
    assert_eq!(response.model, "jev-1.13.0");
    assert_eq!(response.noul("urgent"), Some(0.93));
    assert_eq!(response.usage.input_tokens, 41);
}

#[tokio::test]
async fn a_status_that_may_pass_is_asked_five_times_and_any_other_once() {
    for (status, expected) in [
        (429, 5),
        (500, 5),
        (502, 5),
        (503, 5),
        (504, 5),
        (529, 5),
        (204, 1),
        (302, 1),
        (400, 1),
        (401, 1),
        (403, 1),
        (404, 1),
        (408, 1),
        (413, 1),
        (422, 1),
        (501, 1),
    ] {
        let server = server(ResponseTemplate::new(status)).await;
        let error = jev(&server.uri()).ask(&request()).await.unwrap_err();
        match error {
            // A success without a response in it.
            AskError::Decoding(_) => assert_eq!(status, 204),
            AskError::Status {
                status: named,
                attempts,
                ..
            } => {
                assert_eq!((named, attempts), (status, expected), "{status}");
            }
            other => panic!("{status}: {other:?}"),
        }
        assert_eq!(requests_to(&server).await, expected as usize, "{status}");
    }
}

#[tokio::test]
async fn an_answer_at_the_fifth_attempt_is_as_good_as_at_the_first() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(529))
        .up_to_n_times(4)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(answer())
        .mount(&server)
        .await;
    let response = jev(&server.uri()).ask(&request()).await.unwrap();
    assert_eq!(response.noul("urgent"), Some(0.93));
    assert_eq!(requests_to(&server).await, 5);
}

#[tokio::test]
async fn a_server_that_asks_for_more_time_than_there_is_is_not_asked_again() {
    let busy = ResponseTemplate::new(503).insert_header("retry-after", "25");
    let server = server(busy).await;
    let patience = Patience {
        start_by: Some(Duration::from_secs(20)),
        ..impatience()
    };
    let jev = Jev::new(&settings(&server.uri(), Some(SECRET)), patience).unwrap();
    let error = jev.ask(&request()).await.unwrap_err();
    assert!(
        matches!(error, AskError::Status { attempts: 1, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_server_that_is_silent_is_asked_again_until_patience_ends() {
    let silent = Bare::start(|_| None).await;
    let patience = Patience {
        attempt: Duration::from_millis(40),
        ..impatience()
    };
    let jev = Jev::new(&settings(&silent.url(), Some(SECRET)), patience).unwrap();
    let error = jev.ask(&request()).await.unwrap_err();
    assert!(
        matches!(error, AskError::Transport { attempts: 5, .. }),
        "{error:?}"
    );
    assert_eq!(
        error.one_line(),
        "asking the model after 5 attempts: no answer in time; check the network and TYPESAFE_BASE_URL"
    );
    assert_eq!(silent.connections(), 5);
}

#[tokio::test]
async fn an_attempt_in_progress_is_cut_when_patience_ends() {
    let silent = Bare::start(|_| None).await;
    let patience = Patience {
        end_by: Some(Duration::from_millis(40)),
        start_by: Some(Duration::from_millis(20)),
        ..Patience::live()
    };
    let jev = Jev::new(&settings(&silent.url(), Some(SECRET)), patience).unwrap();
    let error = jev.ask(&request()).await.unwrap_err();
    assert!(
        matches!(error, AskError::Transport { attempts: 1, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_tried_five_times() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = jev(&format!("http://{nobody}"))
        .ask(&request())
        .await
        .unwrap_err();
    assert!(
        matches!(error, AskError::Transport { attempts: 5, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_cut_before_or_within_the_answer_is_final() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"model\":";
    for cut in [Vec::new(), half.to_vec()] {
        let server = Bare::start(move |_| Some(cut.clone())).await;
        let error = jev(&server.url()).ask(&request()).await.unwrap_err();
        assert!(
            matches!(error, AskError::Transport { attempts: 1, .. }),
            "{error:?}"
        );
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_not_asked_again() {
    let plain = Bare::start(|_| Some(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())).await;
    let url = plain.url().replace("http://", "https://");
    let error = jev(&url).ask(&request()).await.unwrap_err();
    assert!(
        matches!(error, AskError::Transport { attempts: 1, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_body_that_is_no_response_is_final() {
    for body in ["", "<html>", "{}", r#"{"model":"m","answers":[]}"#] {
        let server = server(ResponseTemplate::new(200).set_body_string(body)).await;
        let error = jev(&server.uri()).ask(&request()).await.unwrap_err();
        assert!(matches!(error, AskError::Decoding(_)), "{error:?}");
        assert_eq!(requests_to(&server).await, 1);
    }
}

#[tokio::test]
async fn an_answer_without_usage_counts_no_tokens() {
    let body = json!({"model": "m", "answers": {"urgent": {"type": "noul", "noul": 1}}});
    let server = server(ResponseTemplate::new(201).set_body_json(body)).await;
    let response = jev(&server.uri()).ask(&request()).await.unwrap();
    assert_eq!(
        response.usage.input_tokens + response.usage.output_tokens,
        0
    );
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let server = server(ResponseTemplate::new(200).set_body_bytes(vec![b' '; 5_000_000])).await;
    let error = jev(&server.uri()).ask(&request()).await.unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[tokio::test]
async fn a_failed_response_is_quoted_on_one_line_up_to_500_characters() {
    let body = format!("no\r\n\u{1b}[2J way: {}", "é".repeat(600));
    let server = server(ResponseTemplate::new(400).set_body_string(body)).await;
    let error = jev(&server.uri()).ask(&request()).await.unwrap_err();
    let AskError::Status { body, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(body.starts_with("no [2J way: éé"), "{body}");
    assert_eq!(body.chars().count(), 500);
    assert!(
        error.one_line().starts_with("the model answered 400: no "),
        "{error}"
    );
}

#[tokio::test]
async fn the_key_is_in_no_error_and_no_debug_print() {
    // A server that echoes what it was sent, as some proxies do when they complain.
    let echo = ResponseTemplate::new(401).set_body_string(format!("bad key: Bearer {SECRET}"));
    let server = server(echo).await;
    let jev = jev(&server.uri());
    let error = jev.ask(&request()).await.unwrap_err();
    let settings = settings(&server.uri(), Some(SECRET));
    let oracle = Oracle::jev(jev.clone(), Cache::new("cache"));
    let shown = format!(
        "{error} {error:?} {} {jev:?} {settings:?} {oracle:#?}",
        error.one_line()
    );
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(
        error.to_string().contains("bad key: Bearer <redacted>"),
        "{error}"
    );
}

#[tokio::test]
async fn a_password_in_the_base_url_is_neither_sent_nor_shown() {
    let server = server(ResponseTemplate::new(403)).await;
    let url = server.uri().replace("http://", "http://user:pa55word@");
    let jev = jev(&url);
    let error = jev.ask(&request()).await.unwrap_err();
    assert!(
        !format!("{error:?} {jev:?}").contains("pa55word"),
        "{error:?} {jev:?}"
    );
    let received = server.received_requests().await.unwrap();
    let authorizations: Vec<_> = received[0]
        .headers
        .get_all("authorization")
        .iter()
        .collect();
    assert_eq!(authorizations, [&format!("Bearer {SECRET}")]);

    let nobody = "http://user:pa55word@127.0.0.1:1";
    let error = self::jev(nobody).ask(&request()).await.unwrap_err();
    assert!(
        !format!("{error:?} {}", error.one_line()).contains("pa55word"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = server(answer()).await;
    let moved = ResponseTemplate::new(307).insert_header("location", other.uri());
    let server = server(moved).await;
    let error = jev(&server.uri()).ask(&request()).await.unwrap_err();
    assert!(
        matches!(error, AskError::Status { status: 307, .. }),
        "{error:?}"
    );
    assert_eq!(requests_to(&other).await, 0);
}

#[tokio::test]
async fn what_was_answered_once_is_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let server = server(answer()).await;
    let oracle = Oracle::jev(jev(&server.uri()), cache.clone());
    let first = oracle.ask(request()).await.unwrap();
    let second = oracle.ask(request()).await.unwrap();
    assert_eq!(
        (first.origin, second.origin),
        (Origin::Model, Origin::Cache)
    );
    assert_eq!(first.response, second.response);
    assert_eq!(requests_to(&server).await, 1);

    let text = std::fs::read_to_string(cache.path(&request().key())).unwrap();
    assert!(!text.contains("Payouts") && !text.contains("hurry") && !text.contains(SECRET));

    // Known answers need no key and no server.
    let settings = settings("http://127.0.0.1:1", None);
    let oracle = Oracle::jev(Jev::new(&settings, impatience()).unwrap(), cache);
    assert_eq!(oracle.ask(request()).await.unwrap().origin, Origin::Cache);
}

#[tokio::test]
async fn without_a_key_a_miss_names_both_variables_and_nobody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(answer()).await;
    let jev = Jev::new(&settings(&server.uri(), None), impatience()).unwrap();
    assert!(!jev.has_key());
    let error = Oracle::jev(jev, Cache::new(folder.path()))
        .ask(request())
        .await
        .unwrap_err();
    let line = error.one_line();
    assert!(
        line.contains("TYPESAFE_API_KEY,") && line.contains("TYPESAFE_API_KEY_FILE"),
        "{line}"
    );
    assert_eq!(requests_to(&server).await, 0);
}

#[tokio::test]
async fn a_broken_answer_in_the_cache_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let server = server(answer()).await;
    let oracle = Oracle::jev(jev(&server.uri()), cache.clone());
    oracle.ask(request()).await.unwrap();
    let path = cache.path(&request().key());
    std::fs::write(&path, "{\"model\"").unwrap();
    let error = oracle.ask(request()).await.unwrap_err();
    assert!(error.one_line().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(requests_to(&server).await, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn an_answer_that_cannot_be_kept_is_used_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cache");
    let cache = Cache::new(&root);
    // A file where the answer's folder would be.
    std::fs::create_dir(&root).unwrap();
    let shard = cache.path(&request().key()).parent().unwrap().to_owned();
    let server = server(answer()).await;
    let oracle = Oracle::jev(jev(&server.uri()), cache);
    let answered = oracle.ask(request()).await.unwrap();
    assert!(answered.not_kept.is_none());
    std::fs::remove_dir_all(&shard).unwrap();

    let blocked = asking("something else");
    let shard = Cache::new(&root)
        .path(&blocked.key())
        .parent()
        .unwrap()
        .to_owned();
    make_unwritable(&shard);
    let answered = oracle.ask(blocked).await.unwrap();
    assert_eq!(answered.response.noul("urgent"), Some(0.93));
    let trouble = answered.not_kept.unwrap().to_string();
    assert!(trouble.contains(shard.to_str().unwrap()), "{trouble}");
}

/// A name that nothing can be made under, also by somebody who may write anywhere: a link to
/// what is not there.
#[cfg(unix)]
fn make_unwritable(path: &std::path::Path) {
    std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
}

#[tokio::test]
async fn many_are_asked_eight_at_a_time_and_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let body = serde_json::to_string(&Response {
        model: "m".to_owned(),
        answers: [].into(),
        usage: stretto_oracle::Usage::default(),
    });
    let body = body.unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let whole = [head.into_bytes(), body.into_bytes()].concat();
    // Nobody is answered before eight have asked; so fewer at a time would never end.
    let server = Bare::in_groups_of(8, whole).await;
    let oracle = Oracle::jev(jev(&server.url()), Cache::new(folder.path()));
    let requests: Requests = (0..16)
        .map(|state| asking(&state.to_string()))
        .map(|request| (request.key(), request))
        .collect();
    let asked = in_the_background(move || offline::ask_all(&oracle, &requests, |_| ())).await;
    let asked = asked.unwrap();
    assert_eq!((asked.answers.len(), asked.failures.len()), (16, 0));
    assert_eq!(server.connections(), 16);
}

#[tokio::test]
async fn a_wrong_key_is_given_up_early() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(ResponseTemplate::new(401)).await;
    let oracle = Oracle::jev(jev(&server.uri()), Cache::new(folder.path()));
    let requests: Requests = (0..200)
        .map(|state| asking(&state.to_string()))
        .map(|request| (request.key(), request))
        .collect();
    let asked = in_the_background(move || offline::ask_all(&oracle, &requests, |_| ())).await;
    let asked = asked.unwrap();
    assert!(asked.gave_up);
    let sent = requests_to(&server).await;
    assert!((20..=28).contains(&sent), "{sent} requests were sent");
}

#[tokio::test]
async fn what_may_cost_too_much_is_not_started() {
    let jev = jev("http://127.0.0.1:1");
    let oracle = Oracle::jev(jev, Cache::new("cache"));
    let long = asking(&"x".repeat(1_000_000));
    let requests: Requests = [(long.key(), long)].into();
    assert_eq!(offline::check_cost(&oracle, &requests, 0.02), Ok(()));
    let error = offline::check_cost(&oracle, &requests, 0.01).unwrap_err();
    assert!(error.to_string().contains("about $0.0105"), "{error}");
}

#[test]
fn a_base_url_that_is_none_is_not_shown() {
    for url in [
        "user:pa55word",
        "ftp://user:pa55word@x",
        "https://",
        "http://user:pa55word@[::1",
    ] {
        let error = Jev::new(&settings(url, None), impatience()).unwrap_err();
        assert!(matches!(error, ClientError::BaseUrl), "{url}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("pa55word"));
    }
}

#[test]
fn certificates_are_read_at_the_start_and_a_file_without_them_is_named() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");
    let with = |file: &str| {
        let mut settings = settings("https://localhost:1", None);
        settings.certificates = Some(file.into());
        Jev::new(&settings, impatience())
    };
    with(&format!("{data}ca.pem")).unwrap();
    for file in [format!("{data}README.md"), "/nowhere.pem".to_owned()] {
        let error = with(&file).unwrap_err();
        assert!(error.to_string().contains(&file), "{error}");
    }
}

async fn in_the_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// A server below HTTP: it takes connections, reads, and says what it is told to.
struct Bare {
    address: std::net::SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Bare {
    /// Says `answer` of each connection's number and closes it; says nothing where it is none.
    async fn start(answer: impl Fn(usize) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst);
                match answer(number) {
                    Some(bytes) => {
                        let mut head = [0; 4096];
                        let _read = stream.read(&mut head).await.unwrap();
                        stream.write_all(&bytes).await.unwrap();
                    }
                    None => open.push(stream),
                }
            }
        });
        Self {
            address,
            connections,
            _tasks: tasks,
        }
    }

    /// Says the same to all, once a group of connections is there.
    async fn in_groups_of(group: usize, bytes: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let mut open = Vec::new();
                while open.len() < group {
                    open.push(listener.accept().await.unwrap().0);
                    count.fetch_add(1, Ordering::SeqCst);
                }
                for mut stream in open {
                    let mut head = [0; 4096];
                    let _read = stream.read(&mut head).await.unwrap();
                    stream.write_all(&bytes).await.unwrap();
                }
            }
        });
        Self {
            address,
            connections,
            _tasks: tasks,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
