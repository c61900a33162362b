use super::*;

const SECRET: &str = "sk-do-not-show";

fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from_variables(|name| {
        let mut variables = variables.iter();
        let (_, value) = variables.find(|(variable, _)| *variable == name)?;
        Some(OsString::from(value))
    })
}

fn key(variables: &[(&str, &str)]) -> Option<String> {
    settings(variables).unwrap().api_key.map(|ApiKey(key)| key)
}

fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn the_variable_goes_before_the_file_which_is_then_not_read() {
    let (_folder, path) = file("from-file");
    assert_eq!(key(&[]), None);
    assert_eq!(key(&[(KEY, "from-variable")]).unwrap(), "from-variable");
    assert_eq!(key(&[(KEY_FILE, &path)]).unwrap(), "from-file");
    assert_eq!(
        key(&[(KEY, "from-variable"), (KEY_FILE, &path)]).unwrap(),
        "from-variable"
    );
    assert_eq!(
        key(&[(KEY, "from-variable"), (KEY_FILE, "/none")]).unwrap(),
        "from-variable"
    );
}

#[test]
fn a_blank_variable_counts_as_unset() {
    let (_folder, path) = file("from-file");
    assert_eq!(
        key(&[(KEY, " \n"), (KEY_FILE, &path)]).unwrap(),
        "from-file"
    );
    assert_eq!(key(&[(KEY, ""), (KEY_FILE, " ")]), None);
    let blank = settings(&[(BASE_URL, " "), (MODEL, ""), (CERTIFICATES, "")]).unwrap();
    assert_eq!(blank.base_url, "https://api.typesafe.ai");
    assert_eq!(blank.model, "jev-latest");
    assert_eq!(blank.certificates, None);
}

#[test]
fn the_files_text_is_trimmed_and_its_path_expanded() {
    let (folder, path) = file(" \n sk-1 \r\n");
    assert_eq!(key(&[(KEY_FILE, &path)]).unwrap(), "sk-1");
    let home = folder.path().to_str().unwrap();
    assert_eq!(key(&[(KEY_FILE, "~/key"), ("HOME", home)]).unwrap(), "sk-1");
    let without_home = [(KEY_FILE, "~/key"), ("HOME", ""), ("USERPROFILE", home)];
    assert_eq!(key(&without_home).unwrap(), "sk-1");
}

#[test]
fn a_file_that_is_missing_or_blank_is_named_with_its_variable() {
    let (_folder, blank) = file(" \n");
    for path in ["/nowhere/at/all", &blank] {
        let error = settings(&[(KEY_FILE, path)]).unwrap_err().to_string();
        assert!(error.contains(KEY_FILE) && error.contains(path), "{error}");
    }
}

#[test]
fn a_key_that_no_header_can_hold_is_refused_without_being_shown() {
    for end in ["\nX-Evil: 1", "\r", "\n", "\u{7f}", "\0", "é", "\t", " "] {
        let broken = format!("{SECRET}{end}");
        let error = settings(&[(KEY, &broken)]).unwrap_err();
        assert!(error.to_string().contains(KEY), "{error}");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    }
    let (_folder, path) = file(&format!("{SECRET}\nsecond line"));
    let error = settings(&[(KEY_FILE, &path)]).unwrap_err();
    assert!(error.to_string().contains(KEY_FILE), "{error}");
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
}

#[test]
fn debug_shows_neither_the_key_nor_a_password() {
    let url = "http://user:pa55word@localhost:1/base//";
    let settings = settings(&[(KEY, SECRET), (BASE_URL, url)]).unwrap();
    assert_eq!(settings.base_url, "http://user:pa55word@localhost:1/base");
    let shown = format!("{settings:?} {settings:#?}");
    assert!(
        !shown.contains(SECRET) && !shown.contains("pa55word"),
        "{shown}"
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStringExt as _;
    let error = Settings::from_variables(|name| {
        (name == KEY).then(|| OsString::from_vec(vec![b's', 0xff]))
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "the variable TYPESAFE_API_KEY is not text"
    );
}
