//! A flow's run behind one of the agent's calls: decide, look up, hand back.

use std::{
    collections::{BTreeSet, HashSet},
    mem,
    sync::Arc,
};

use bytes::Bytes;
use serde_json::Value;
use stretto_flow::{
    Answer, Decision, DecisionSite, Flow, Grants, Live, LookedUp, Next, Open, Opening, Run,
    RunRecord, Settings, Taken, Verdict, appended_text, lookup_result,
};
use stretto_oracle::{Key, Response};

use super::{
    Act, Active, Side, SideLog, Ticket,
    active::Waiting,
    questions::About,
    replies,
    requests::{AgentCall, Purpose},
    splice,
};
use crate::{clock::Millis, line::Line, message::Id};

/// Many hosts refuse lines above 10 MiB: an addition must not take one past this.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// How much a flow may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Lookups for one result.
    pub(crate) per_call: u32,
    /// Lookups in the session.
    pub(crate) per_session: u64,
    /// Questions to a model in the session.
    pub(crate) questions: u64,
}

/// A flow that is served, and what it has done so far.
#[derive(Debug)]
pub(crate) struct Serving {
    live: Live,
    settings: Settings,
    limits: Limits,
    /// The only tools that may be looked up, if the user named them.
    granted: Option<BTreeSet<String>>,
    is_shadow: bool,
    lookups: u64,
    questions: u64,
    running: Option<Running>,
    /// The tools whose withholding was said already.
    said: HashSet<String>,
}

/// The run under way.
#[derive(Debug)]
struct Running {
    /// The server's answer to the agent's call, which waits.
    held: Line,
    call: AgentCall,
    /// The id of the run's last call in the episode: the agent's, or the last lookup's.
    after: String,
    run: Run,
    found: Vec<LookedUp>,
    step: Step,
}

/// What a run waits for.
#[derive(Debug)]
enum Step {
    /// The conversation, to decide at that site.
    Deciding(DecisionSite),
    /// The model's answer, to decide at that site.
    Asking(Box<Question>),
    /// The server's answer to this lookup.
    LookingUp {
        tool: String,
        arguments: serde_json::Map<String, Value>,
    },
    /// Nothing: it is being told what came.
    Resuming,
}

/// A decision that waits for the model.
#[derive(Debug)]
struct Question {
    ticket: Ticket,
    site: DecisionSite,
    open: Open,
    key: Key,
    asked: Millis,
}

impl Serving {
    /// A flow at the beginning of a session.
    pub(crate) fn new(
        flow: Arc<Flow>,
        settings: Settings,
        limits: Limits,
        granted: Option<BTreeSet<String>>,
        is_shadow: bool,
    ) -> Self {
        let live = Live::new(flow).exploring(&settings);
        Self {
            live,
            settings,
            limits,
            granted,
            is_shadow,
            lookups: 0,
            questions: 0,
            running: None,
            said: HashSet::new(),
        }
    }

    /// Takes in what is new in the session.
    pub(super) fn follow(&mut self, events: &[stretto_trace::Event]) {
        self.live.follow(events);
    }

    /// Whether a run may follow the call that is known to the episode as `call_id`.
    pub(super) fn may_follow(&self, call_id: &str) -> bool {
        self.running.is_none() && self.has_allowance() && self.live.ends_in_call(call_id)
    }

    fn has_allowance(&self) -> bool {
        self.lookups < self.limits.per_session && self.questions < self.limits.questions
    }

    /// Whether the result of this call of the agent's is held.
    pub(super) fn holds(&self, id: &Id) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.call.id == *id)
    }

    /// The site to decide at, if that is what the run waits for.
    fn take_site(&mut self) -> Option<DecisionSite> {
        let running = self.running.as_mut()?;
        match mem::replace(&mut running.step, Step::Resuming) {
            Step::Deciding(site) => Some(site),
            step => {
                running.step = step;
                None
            }
        }
    }
}

impl Active {
    /// Holds the server's answer to one of the agent's calls, and runs the flow behind it.
    pub(super) fn hold(
        &mut self,
        at: Millis,
        held: Line,
        call: AgentCall,
        (after, failed): (String, bool),
        acts: &mut Vec<Act>,
    ) {
        let Some(serving) = self.serving_mut() else {
            return;
        };
        let flow = Arc::clone(serving.live.flow());
        let (run, next) = flow.run(&call.tool, failed, serving.limits.per_call);
        serving.running = Some(Running {
            held,
            call,
            after,
            run,
            found: Vec::new(),
            step: Step::Resuming,
        });
        self.go_on_with_run(at, next, acts);
    }

    /// Does what the run asks for.
    fn go_on_with_run(&mut self, at: Millis, mut next: Next, acts: &mut Vec<Act>) {
        loop {
            let can_send = self.can_send();
            let Some(serving) = self.serving_mut() else {
                return;
            };
            let allowance = serving.has_allowance();
            let per_call = serving.limits.per_call as usize;
            let Some(running) = &mut serving.running else {
                return;
            };
            match next {
                Next::Decide(site) if can_send && allowance && running.found.len() < per_call => {
                    running.step = Step::Deciding(site);
                    return self.after_listening(at, Waiting::Decision, acts);
                }
                Next::Decide(_) => next = running.run.resume(Answer::HandBack),
                Next::LookUp { .. } => return self.look_up(at, acts),
                Next::HandBack(record) => return self.hand_back(record.as_ref(), acts),
            }
        }
    }

    /// Decides at the site that the run has come to.
    pub(super) fn decide(&mut self, at: Millis, acts: &mut Vec<Act>) {
        let Some(serving) = self.serving.as_mut() else {
            return;
        };
        let Some(site) = serving.take_site() else {
            return;
        };
        let Some(running) = &mut serving.running else {
            return;
        };
        match serving.live.open(&running.after, &serving.settings) {
            Ok(Opening::Decided(decision)) => self.decided(at, at, &site, decision, acts),
            Ok(Opening::Open(open)) => {
                let session = self.episode.after_call(&running.after);
                let request = serving.live.flow().question(&open, &session);
                let key = request.key();
                serving.questions += 1;
                let ticket = self.questions.put(About::Decision, request, acts);
                running.step = Step::Asking(Box::new(Question {
                    ticket,
                    site,
                    open,
                    key,
                    asked: at,
                }));
            }
            Err(error) => {
                acts.push(Act::Say(format!(
                    "the flow hands back after {}: {error}",
                    running.call.tool
                )));
                let next = running.run.resume(Answer::HandBack);
                self.go_on_with_run(at, next, acts);
            }
        }
    }

    /// The model has answered the question about the run's next step, or will not.
    pub(super) fn decision_answered(
        &mut self,
        at: Millis,
        ticket: Ticket,
        answer: &Result<Response, String>,
        acts: &mut Vec<Act>,
    ) {
        let Some(serving) = self.serving.as_mut() else {
            return;
        };
        let Some(running) = &mut serving.running else {
            return;
        };
        let question = match mem::replace(&mut running.step, Step::Resuming) {
            Step::Asking(question) if question.ticket == ticket => question,
            step => {
                running.step = step;
                return;
            }
        };
        let is_answered = answer.is_ok();
        let answer = answer.as_ref().map_err(String::as_str);
        let task_id = serving.settings.task_id.clone();
        let decision = serving
            .live
            .flow()
            .settle(question.open, &question.key, &task_id, answer);
        // Every answer that can be used gives the options probabilities.
        if let (true, Verdict::HandBack { reason }) = (decision.probs.is_empty(), &decision.verdict)
        {
            let what_to_do = if is_answered {
                format!("; delete the cached answer {} to ask again", question.key)
            } else {
                String::new()
            };
            acts.push(Act::Say(format!(
                "the flow hands back after {}: {reason}{what_to_do}",
                running.call.tool
            )));
        }
        self.decided(at, question.asked, &question.site, decision, acts);
    }

    /// The host says no more: an open question is not waited for.
    pub(super) fn stop_asking(&mut self, acts: &mut Vec<Act>) {
        let running = self
            .serving
            .as_ref()
            .and_then(|serving| serving.running.as_ref());
        if running.is_some_and(|running| matches!(running.step, Step::Asking(_))) {
            self.cut_run_short(acts);
        }
    }

    /// Logs what was decided, and does it.
    fn decided(
        &mut self,
        at: Millis,
        since: Millis,
        site: &DecisionSite,
        decision: Decision,
        acts: &mut Vec<Act>,
    ) {
        let Some(serving) = self.serving.as_mut() else {
            return;
        };
        let Some(running) = &mut serving.running else {
            return;
        };
        let grants = Grants {
            named: serving.granted.as_ref(),
            listed: self.tools.known(),
        };
        let withheld = match decision.tool() {
            Some(tool) if !serving.is_shadow => serving.live.flow().withheld(tool, grants),
            _ => None,
        };
        let after: Value = serde_json::from_str(&running.call.spelling).unwrap_or_default();
        let line = decision.line(&Taken {
            after: &after,
            address: &site.address,
            ms: (at - since).0,
            shadow: serving.is_shadow,
            withheld: withheld.as_deref(),
        });
        acts.push(Act::Note(SideLog::Flow, line.to_string()));
        if let (Some(tool), Some(reason)) = (decision.tool(), &withheld)
            && serving.said.insert(tool.to_owned())
        {
            acts.push(Act::Say(format!(
                "the flow leaves {tool} to the agent: {reason}"
            )));
        }
        let answer = match decision.verdict {
            Verdict::LookUp { tool, arguments } if withheld.is_none() && !serving.is_shadow => {
                if site.offers(&tool) {
                    serving.lookups += 1;
                    running.step = Step::LookingUp {
                        tool: tool.clone(),
                        arguments,
                    };
                    Answer::LookUp(tool)
                } else {
                    acts.push(Act::Say(format!(
                        "the flow's program does not offer {tool} here, so it hands back"
                    )));
                    Answer::HandBack
                }
            }
            _ => Answer::HandBack,
        };
        let next = running.run.resume(answer);
        self.go_on_with_run(at, next, acts);
    }

    /// Makes the lookup that was decided on.
    fn look_up(&mut self, at: Millis, acts: &mut Vec<Act>) {
        let Some(running) = self
            .serving
            .as_ref()
            .and_then(|serving| serving.running.as_ref())
        else {
            return;
        };
        let Step::LookingUp { tool, arguments } = &running.step else {
            return;
        };
        let own = self.requests.ask(at, Purpose::Lookup, tool);
        let arguments = Value::Object(arguments.clone()).to_string();
        let request = replies::call(&own, &self.era, tool, &arguments);
        if let Some(running) = self
            .serving_mut()
            .and_then(|serving| serving.running.as_mut())
        {
            running.after.clone_from(&own);
        }
        self.send(at, Side::Server, request, acts);
    }

    /// The server has answered the run's lookup; with nothing when the answer could not be read.
    pub(super) fn lookup_answered(
        &mut self,
        at: Millis,
        response: Option<&Value>,
        is_final: bool,
        acts: &mut Vec<Act>,
    ) {
        let Some(running) = self
            .serving_mut()
            .and_then(|serving| serving.running.as_mut())
        else {
            return;
        };
        let Step::LookingUp { tool, arguments } = mem::replace(&mut running.step, Step::Resuming)
        else {
            return;
        };
        let (text, failed) = response.map_or_else(|| (String::new(), true), lookup_result);
        let failed = failed || !is_final;
        running.found.push(LookedUp {
            tool,
            arguments,
            failed,
            text,
        });
        let next = running.run.resume(Answer::Returned(!failed));
        self.go_on_with_run(at, next, acts);
    }

    /// The run's lookup, or its question, will have no answer: the agent gets what came back so far.
    pub(super) fn cut_run_short(&mut self, acts: &mut Vec<Act>) {
        self.hand_back(None, acts);
    }

    /// The host does not want the held result any more.
    pub(super) fn drop_run(&mut self, at: Millis, acts: &mut Vec<Act>) {
        self.take_running();
        self.give_up(
            at,
            &Purpose::Lookup,
            "the host cancelled the call that it was for",
            acts,
        );
    }

    /// The run under way, which goes on no more: an answer that it waits for is given up.
    fn take_running(&mut self) -> Option<Running> {
        let running = self.serving.as_mut()?.running.take()?;
        if let Step::Asking(question) = &running.step {
            self.questions.give_up(question.ticket);
        }
        Some(running)
    }

    /// Ends the run: its line, if it has one, and the held result with what was found.
    fn hand_back(&mut self, record: Option<&RunRecord>, acts: &mut Vec<Act>) {
        let Some(running) = self.take_running() else {
            return;
        };
        if let Some(record) = record {
            let after: Value = serde_json::from_str(&running.call.spelling).unwrap_or_default();
            acts.push(Act::Note(SideLog::Flow, record.line(&after).to_string()));
        }
        let amended = with_lookups(&running.held, running.found, &running.call.tool, acts);
        acts.push(match amended {
            Some(line) => Act::Send(Side::Host, line),
            None => Act::Forward(Side::Host, running.held),
        });
    }
}

/// The held result with what was looked up at its end; nothing when there is nothing to add, or nowhere to add it.
fn with_lookups(
    held: &Line,
    mut found: Vec<LookedUp>,
    tool: &str,
    acts: &mut Vec<Act>,
) -> Option<Line> {
    let asked = found.len();
    let spliced = loop {
        let item = replies::text_item(&appended_text(&found)?);
        if held.bytes().len() + item.len() < LONGEST_LINE {
            break splice::append(held.bytes(), "content", &item);
        }
        found.pop();
        if found.is_empty() {
            break None;
        }
    };
    if found.len() < asked {
        acts.push(Act::Say(format!(
            "left out {} of {asked} lookups after {tool}: with them, its result would have been longer than many hosts take",
            asked - found.len()
        )));
    }
    spliced.map(|spliced| Line::from(Bytes::from(spliced)))
}
