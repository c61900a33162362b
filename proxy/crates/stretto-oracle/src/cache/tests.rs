use serde_json::json;

use super::*;
use crate::{Answer, Usage};

fn key(of: &str) -> Key {
    Key::of(of.as_bytes())
}

fn response(noul: f64) -> Response {
    Response {
        model: "jev-1.13.0".to_owned(),
        answers: [("q".to_owned(), Answer::Noul { noul })].into(),
        usage: Usage {
            input_tokens: 41,
            output_tokens: 4,
        },
    }
}

#[test]
fn what_is_written_is_read_at_once_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (Cache::new(folder.path()), Cache::new(folder.path()));
    assert_eq!(one.read(&key("a")).unwrap(), None);
    other.write(&key("a"), &response(0.25)).unwrap();
    assert_eq!(one.read(&key("a")).unwrap(), Some(response(0.25)));
    one.write(&key("a"), &response(0.75)).unwrap();
    assert_eq!(other.read(&key("a")).unwrap(), Some(response(0.75)));
    assert_eq!(other.read(&key("b")).unwrap(), None);
}

#[test]
fn an_answer_is_in_the_folder_of_its_first_two_digits_and_alone_there() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    cache.write(&key("a"), &response(0.5)).unwrap();
    let name = key("a").to_string();
    let shard = folder.path().join(name.split_at(2).0);
    assert_eq!(cache.path(&key("a")), shard.join(format!("{name}.json")));
    let files: Vec<_> = fs::read_dir(shard)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files, [cache.path(&key("a"))]);
}

#[test]
fn a_broken_file_is_an_error_that_names_it_and_no_miss() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    cache.write(&key("a"), &response(0.5)).unwrap();
    let path = cache.path(&key("a"));
    for broken in ["", "{\"model\": \"jev-1", "[]", "\u{feff}{}"] {
        fs::write(&path, broken).unwrap();
        let error = cache.read(&key("a")).unwrap_err();
        assert!(matches!(&error, CacheError::Broken { path: named, .. } if *named == path));
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    // A folder of that name cannot be read as a file, whoever runs the test.
    let path = cache.path(&key("a"));
    fs::create_dir_all(&path).unwrap();
    let error = cache.read(&key("a")).unwrap_err();
    assert!(matches!(&error, CacheError::Reading { path: named, .. } if *named == path));
}

#[test]
fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let path = cache.path(&key("a"));
    fs::create_dir_all(&path).unwrap();
    let error = cache.write(&key("a"), &response(0.5)).unwrap_err();
    assert!(matches!(&error, CacheError::Writing { path: named, .. } if *named == path));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn other_members_are_ignored_and_usage_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    cache.write(&key("a"), &response(0.5)).unwrap();
    let text = json!({"model": "m", "answers": {}, "note": "by hand"}).to_string();
    fs::write(cache.path(&key("a")), text).unwrap();
    assert_eq!(
        cache.read(&key("a")).unwrap().unwrap().usage,
        Usage::default()
    );
}

#[test]
fn keys_are_listed_sorted_without_what_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"));
    assert_eq!(cache.keys().unwrap(), []);
    let mut keys: Vec<Key> = (0..20).map(|n| key(&n.to_string())).collect();
    for key in &keys {
        cache.write(key, &response(0.5)).unwrap();
    }
    let name = keys[0].to_string();
    let shard = cache.root().join(name.split_at(2).0);
    for stray in [
        cache.root().join("notes.json"),
        cache.root().join(format!("{name}.json")),
        shard.join(format!("{name}.tmp1-1")),
        shard.join("x.json"),
    ] {
        fs::write(stray, "{").unwrap();
    }
    keys.sort();
    assert_eq!(cache.keys().unwrap(), keys);
}

#[cfg(unix)]
#[test]
fn a_cache_that_is_made_here_is_its_owners_alone_and_one_that_was_there_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("a/b"));
    cache.write(&key("a"), &response(0.5)).unwrap();
    assert_eq!(mode(cache.root()), 0o700);

    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    Cache::new(&shared)
        .write(&key("a"), &response(0.5))
        .unwrap();
    assert_eq!(mode(&shared), 0o755);
}
