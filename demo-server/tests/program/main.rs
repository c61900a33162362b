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

mod era;
mod http;
mod http_script;
mod over;
mod replay;
mod script;
mod stdio;

pub(crate) const PROGRAM: &str = "DEMO_SERVER";

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
    http_script {
        status_stands_in_place_of_the_answer,
        end_session_is_404_from_here_on,
        accepted_and_no_body_leave_a_request_without_its_answer,
        cut_breaks_the_body_off,
        drop_after_ends_the_stream_before_the_answer,
        cut_event_leaves_out_the_last_blank_line,
        slow_and_split_bring_the_body_whole_in_the_end,
        pretty_stands_on_several_lines,
        keep_open_holds_the_stream_after_the_answer,
        redirect_leads_elsewhere,
        refuse_closes_the_connection_without_an_answer,
        hang_answers_nothing_and_holds_up_nobody,
        exit_ends_the_server_before_it_answers,
        shapes_of_answers_are_the_same_as_on_stdio,
        crlf_ends_the_lines_of_event_streams,
        faults_may_be_for_other_methods_and_notifications,
        answers_come_in_the_form_that_is_asked_for,
        a_server_may_have_no_sessions_or_lose_them,
        the_version_may_be_free,
        get_gets_what_is_asked_for,
        a_get_goes_on_where_the_last_ended,
        the_stream_of_a_post_is_resumed_by_a_get,
        a_dropped_stream_ends_at_once_though_the_call_goes_on,
        the_rest_of_a_body_that_breaks_off_is_kept_for_a_get,
        delete_has_the_status_that_is_asked_for_or_none,
        auth_is_required_as_by_the_option,
        what_the_timeline_sends_waits_for_a_stream,
        progress_comes_on_the_stream_of_its_call,
        the_transcript_has_each_request,
    }
    replay {
        a_session_is_served_again_lookups_of_the_proxy_included,
        sessions_one_after_the_other_are_one_recording,
        a_folder_is_its_sessions_and_what_lies_beside_them_is_passed_over,
        ids_are_the_live_ones_and_the_order_is_free,
        an_unrecorded_request_is_told_of_the_nearest,
        a_strict_replay_that_misses_something_fails,
        a_log_that_cannot_be_read_is_named,
        faults_are_laid_over_a_replay,
        a_session_recorded_on_stdio_is_served_over_http,
    }
    over {
        what_nothing_is_aimed_at_passes_as_it_is,
        the_live_server_answers_and_the_fault_is_around_it,
        a_fault_before_keeps_the_call_from_the_server,
        a_rule_with_an_answer_answers_in_place_of_the_server,
        it_ends_with_the_servers_status,
        a_script_over_a_live_server_brings_no_tools,
        a_live_server_is_served_over_http,
        a_live_server_that_is_gone_answers_nobody,
        a_subscription_of_a_live_server_is_a_stream_under_the_hosts_id,
    }
    era {
        a_modern_server_answers_each_request_by_itself,
        a_modern_server_refuses_what_is_not,
        a_dual_server_serves_both_by_the_line,
        a_legacy_server_knows_nothing_of_the_newest_revision,
        ask_asks_back_once,
        a_subscription_is_acknowledged_and_told_of_changes,
        over_http_the_headers_repeat_the_body,
        over_http_refusals_have_their_status,
        over_http_log_messages_come_to_those_who_ask,
        over_http_a_dual_server_serves_both_side_by_side,
        over_http_a_subscription_is_a_stream,
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
