//! Runs the demo server as a program: real pipes, real exits.
//!
//! This test's executable is also the program: started with `DEMO_SERVER` in its environment it
//! is the server, else it runs the tests, which start it that way.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though the harness is not the usual one"
)]

use std::env;
use std::io::Write as _;
use std::process::{Command, ExitCode, Output, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

mod http;
mod script;
mod stdio;

const PROGRAM: &str = "DEMO_SERVER";

fn main() -> ExitCode {
    if env::var_os(PROGRAM).is_some() {
        return stretto_demo_server::main();
    }
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, tests()).exit_code()
}

/// Lists functions of modules as tests.
macro_rules! tests {
    ($($module:ident { $($name:ident),* $(,)? })*) => {
        fn tests() -> Vec<Trial> {
            vec![$($(
                Trial::test(concat!(stringify!($module), "::", stringify!($name)), || {
                    $module::$name();
                    Ok::<(), Failed>(())
                })
            ),*),*]
        }
    };
}

tests! {
    stdio {
        each_kind_of_line_gets_the_answer_of_the_table,
        a_wrong_command_line_shows_the_usage_and_exits_2,
        help_and_version_go_to_stdout,
        hidden_tools_are_unknown,
    }
    script {
        exit_ends_the_process_before_it_answers,
        signal_kills_the_process_before_it_answers,
        hang_never_answers_and_does_not_keep_the_process,
        close_stdout_ends_the_output_and_the_process_lives_on,
        close_stdin_ends_the_input_and_the_process_lives_on,
        line_and_bytes_come_before_the_answer,
        no_newline_ends_the_process_after_the_answer,
        split_answers_come_whole_in_the_end_and_nothing_comes_between,
        pad_makes_the_text_that_long,
        batch_twice_and_id_change_the_answer,
        crlf_ends_every_line_from_there_on,
        stderr_gets_its_line,
        ignore_eof_keeps_the_process_for_a_while,
        faults_stand_beside_each_other,
        when_says_on_which_side_of_the_work_a_fault_happens,
        a_slow_call_lets_others_pass_unless_it_is_told_not_to,
        the_timeline_acts_at_its_moments,
        the_timeline_may_end_the_process_and_does_not_keep_it,
        the_transcript_has_each_line_as_it_came,
        what_never_fired_is_said_at_the_end,
        a_wrong_script_is_named_with_its_place_and_nothing_is_served,
    }
    http {
        the_path_is_checked_first,
        the_authorization_is_checked_before_the_method,
        other_methods_are_told_which_there_are,
        a_client_must_accept_what_may_come,
        initialize_begins_a_session_and_needs_an_id,
        session_and_version_are_needed_afterwards,
        what_needs_no_answer_is_accepted,
        errors_of_the_protocol_are_answers_like_others,
        a_call_is_answered_on_an_event_stream,
        the_notification_comes_before_the_call_takes_its_time,
        a_slow_call_does_not_hold_up_another,
        a_connection_carries_several_requests_unless_it_is_told_not_to,
        the_sessions_own_stream_ends_with_the_session,
        a_delete_of_nothing_is_fine,
        a_body_in_chunks_is_refused,
        large_bodies_come_back_whole,
    }
}

/// The program with these options.
pub(crate) fn demo(options: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .env(PROGRAM, "1")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What the program does with an input that then ends.
pub(crate) fn run(options: &[&str], input: &str) -> Output {
    let mut child = demo(options).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that has ended already does not read its input.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// What the program answers to an input that then ends.
pub(crate) fn answers(options: &[&str], input: &str) -> Vec<Value> {
    let output = run(options, input);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
