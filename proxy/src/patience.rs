//! When a server that does not end by itself is ended.
//!
//! Published servers often ignore the end of their input. As long as the host waits for
//! something, so does the proxy; after that, a server has a few seconds to go.

use crate::{clock::Millis, upstream::Pressure};

/// How long a server may be silent once nothing is owed.
const SILENCE: Millis = Millis(5_000);

/// How long a server may go on in all once nothing is owed.
const IN_ALL: Millis = Millis(30_000);

/// How long a server may go on once the host is gone.
const ALONE: Millis = Millis(5_000);

/// How long a server has between being asked to end and being ended.
const TO_FORCE: Millis = Millis(2_000);

/// How long the rest of a killed server's output is waited for: somebody outside its group may hold the pipe.
const TO_GIVE_UP: Millis = Millis(1_000);

/// The same after a signal to the proxy.
const TO_GIVE_UP_WHEN_STOPPED: Millis = Millis(150);

/// After a signal to the proxy: from the end of the server's input to asking it, and from there to ending it.
const STEP_WHEN_STOPPED: Millis = Millis(300);

/// What is to be done about the server now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Press it to end.
    Press(Pressure),
    /// Wait no longer for the rest of its output.
    GiveUp,
}

/// Where a session stands between its last line and its end.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    input_ended: Option<Millis>,
    output_ended: Option<Millis>,
    host_gone: Option<Millis>,
    last_line: Millis,
    /// Since when the host has had all that it asked for.
    idle_since: Option<Millis>,
    stopped: Option<Millis>,
    asked: Option<Millis>,
    forced: Option<Millis>,
    is_told: bool,
}

impl Patience {
    /// The host will say no more.
    pub(crate) fn input_ended(&mut self, at: Millis) {
        self.input_ended.get_or_insert(at);
    }

    /// The server will say no more, though its process may go on.
    pub(crate) fn output_ended(&mut self, at: Millis) {
        self.output_ended.get_or_insert(at);
    }

    /// The server said something.
    pub(crate) fn heard(&mut self, at: Millis) {
        self.last_line = at;
    }

    /// Nobody can read what goes to the host.
    pub(crate) fn host_is_gone(&mut self, at: Millis) {
        self.host_gone.get_or_insert(at);
    }

    /// The proxy was told to stop.
    pub(crate) fn stop(&mut self, at: Millis) {
        self.stopped.get_or_insert(at);
    }

    /// Whether the host has said its last.
    pub(crate) fn is_input_ended(&self) -> bool {
        self.input_ended.is_some()
    }

    /// Whether the session is on its way to its end, so that time matters.
    pub(crate) fn is_ending(&self) -> bool {
        self.input_ended.is_some() || self.output_ended.is_some() || self.stopped.is_some()
    }

    /// The hardest pressure that the server has felt.
    pub(crate) fn pressure(&self) -> Option<Pressure> {
        self.forced
            .map(|_| Pressure::Force)
            .or(self.asked.map(|_| Pressure::Ask))
    }

    /// Whether it is time to tell a person that the server owes an answer and is waited for, after
    /// five seconds in which nothing else shows why the proxy is still there. True once.
    pub(crate) fn is_worth_a_word(&mut self, at: Millis) -> bool {
        let is_waiting = self
            .host_gone
            .or(self.output_ended)
            .or(self.stopped)
            .is_none();
        let has_waited = self.input_ended.is_some_and(|ended| at - ended >= SILENCE);
        let is_time = is_waiting && has_waited && !self.is_told;
        self.is_told |= is_time;
        is_time
    }

    /// What is due at `at`, given whether the host still waits for something.
    ///
    /// Each thing is due once.
    pub(crate) fn due(&mut self, at: Millis, is_owed: bool) -> Option<Due> {
        if let Some(forced) = self.forced {
            let patience = if self.stopped.is_some() {
                TO_GIVE_UP_WHEN_STOPPED
            } else {
                TO_GIVE_UP
            };
            return (at - forced >= patience).then_some(Due::GiveUp);
        }
        if let Some(asked) = self.asked {
            if at - asked < self.step() {
                return None;
            }
            self.forced = Some(at);
            return Some(Due::Press(Pressure::Force));
        }
        if !self.has_had_its_time(at, is_owed) {
            return None;
        }
        self.asked = Some(at);
        Some(Due::Press(Pressure::Ask))
    }

    fn step(&self) -> Millis {
        if self.stopped.is_some() {
            STEP_WHEN_STOPPED
        } else {
            TO_FORCE
        }
    }

    fn has_had_its_time(&mut self, at: Millis, is_owed: bool) -> bool {
        if let Some(stopped) = self.stopped {
            return at - stopped >= STEP_WHEN_STOPPED;
        }
        if let Some(ended) = self.output_ended {
            // Nothing can be answered any more.
            return at - ended >= SILENCE;
        }
        let Some(input_ended) = self.input_ended else {
            return false;
        };
        if let Some(gone) = self.host_gone
            && at - gone >= ALONE
        {
            return true;
        }
        if is_owed {
            self.idle_since = None;
            return false;
        }
        let idle_since = *self.idle_since.get_or_insert(at);
        at - idle_since.max(self.last_line).max(input_ended) >= SILENCE || at - idle_since >= IN_ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Option<Due> = Some(Due::Press(Pressure::Ask));
    const FORCE: Option<Due> = Some(Due::Press(Pressure::Force));

    /// When each thing is due, looking every 50 ms, with a server that speaks at the given times.
    fn played(
        patience: &mut Patience,
        until: u64,
        owed: impl Fn(u64) -> bool,
        speaks: &[u64],
    ) -> Vec<(u64, Due)> {
        let mut dues = Vec::new();
        for now in (0..=until).step_by(50) {
            if speaks.contains(&now) {
                patience.heard(Millis(now));
            }
            if let Some(due) = patience.due(Millis(now), owed(now)) {
                dues.push((now, due));
                if due == Due::GiveUp {
                    break;
                }
            }
        }
        dues
    }

    #[test]
    fn a_running_session_has_no_time_limit() {
        assert_eq!(Patience::default().due(Millis(u64::MAX), false), None);
    }

    #[test]
    fn a_silent_server_with_nothing_owed_is_asked_and_then_ended() {
        let mut patience = Patience::default();
        patience.input_ended(Millis(0));
        let dues = played(&mut patience, 60_000, |_| false, &[]);
        assert_eq!(
            dues,
            [
                (5_000, ASK.expect("due")),
                (7_000, FORCE.expect("due")),
                (8_000, Due::GiveUp)
            ]
        );
        assert_eq!(patience.pressure(), Some(Pressure::Force));
    }

    #[test]
    fn a_server_that_speaks_has_five_seconds_from_its_last_line() {
        let mut patience = Patience::default();
        patience.input_ended(Millis(0));
        let dues = played(&mut patience, 13_000, |_| false, &[3_000, 6_000]);
        assert_eq!(dues.first(), Some(&(11_000, ASK.expect("due"))));
    }

    #[test]
    fn a_server_that_never_stops_speaking_has_thirty_seconds() {
        let mut patience = Patience::default();
        patience.input_ended(Millis(0));
        let speaks: Vec<u64> = (0..=40_000).step_by(1_000).collect();
        let dues = played(&mut patience, 31_000, |_| false, &speaks);
        assert_eq!(dues.first(), Some(&(30_000, ASK.expect("due"))));
    }

    #[test]
    fn what_is_owed_is_waited_for_without_a_limit() {
        let mut patience = Patience::default();
        patience.input_ended(Millis(0));
        let dues = played(&mut patience, 606_000, |now| now < 600_000, &[]);
        assert_eq!(dues.first(), Some(&(605_000, ASK.expect("due"))));
    }

    #[test]
    fn a_long_wait_for_an_answer_is_told_once() {
        let mut patience = Patience::default();
        assert!(
            !patience.is_worth_a_word(Millis(60_000)),
            "the host is there"
        );
        patience.input_ended(Millis(60_000));
        assert!(!patience.is_worth_a_word(Millis(64_950)));
        assert!(patience.is_worth_a_word(Millis(65_000)));
        assert!(!patience.is_worth_a_word(Millis(70_000)));
    }

    #[test]
    fn nobody_is_told_of_a_wait_that_is_none() {
        let ends: [fn(&mut Patience); 3] = [
            |patience| patience.host_is_gone(Millis(0)),
            |patience| patience.output_ended(Millis(0)),
            |patience| patience.stop(Millis(0)),
        ];
        for end in ends {
            let mut patience = Patience::default();
            patience.input_ended(Millis(0));
            end(&mut patience);
            assert!(!patience.is_worth_a_word(Millis(9_000)));
        }
    }

    #[test]
    fn a_host_that_is_gone_is_owed_nothing() {
        let mut patience = Patience::default();
        patience.input_ended(Millis(0));
        patience.host_is_gone(Millis(1_000));
        let speaks: Vec<u64> = (0..=40_000).step_by(1_000).collect();
        let dues = played(&mut patience, 7_000, |_| true, &speaks);
        assert_eq!(dues.first(), Some(&(6_000, ASK.expect("due"))));
    }

    #[test]
    fn a_host_that_still_speaks_may_close_its_other_end() {
        let mut patience = Patience::default();
        patience.host_is_gone(Millis(0));
        assert_eq!(played(&mut patience, 100_000, |_| true, &[]), []);
    }

    #[test]
    fn a_process_that_outlives_its_output_has_five_seconds() {
        let mut patience = Patience::default();
        patience.output_ended(Millis(1_000));
        let dues = played(&mut patience, 7_000, |_| true, &[]);
        assert_eq!(dues.first(), Some(&(6_000, ASK.expect("due"))));
    }

    #[test]
    fn a_stopped_proxy_is_done_within_a_second() {
        let mut patience = Patience::default();
        patience.stop(Millis(0));
        let dues = played(&mut patience, 1_000, |_| true, &[]);
        assert_eq!(
            dues,
            [
                (300, ASK.expect("due")),
                (600, FORCE.expect("due")),
                (750, Due::GiveUp)
            ]
        );
    }
}
