//! The lab, whole and small: every arm with this package's own proxy.
//!
//! Without the usual test harness, because this program is also the shop that the proxy starts.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stretto_harness::simulate::{Arm, Counts, Lab, Report, SHOP_SERVER, shop_server};

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some((first, rest)) = words.split_first()
        && first == SHOP_SERVER
    {
        return match shop_server(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let trial = Trial::test(
        "each switch does in the lab what it is for, and the same seed counts the same",
        || check().map_err(|error| Failed::from(format!("{error:#}"))),
    );
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn play() -> Result<Report, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let some = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
    let lab = Lab {
        proxy: env!("CARGO_BIN_EXE_stretto-proxy").into(),
        shop: std::env::current_exe()?,
        arms: Arm::ALL.to_vec(),
        sessions: some(12),
        lessons: some(16),
        seed: 6,
        jobs: some(80),
    };
    Ok(lab.run(folder.path(), &|_, _| {})?)
}

fn check() -> Result<(), Box<dyn std::error::Error>> {
    let (report, again) = (play()?, play()?);
    let [off, shadow, explore, habit, reach, arbiter, guards, judge] = report.arms.as_slice()
    else {
        return Err(format!("there are {} arms", report.arms.len()).into());
    };
    let refused = |counts: &Counts| counts.refused_right + counts.refused_wrong;
    let promises = [
        ("off looks nothing up", off.total.lookups == 0),
        ("off refuses nothing", refused(&off.total) == 0),
        (
            "a shadow changes no call",
            shadow.total.calls == off.total.calls,
        ),
        ("a shadow spares nothing", shadow.total.spared == 0),
        ("a shadow tells what would help", shadow.total.used > 0),
        (
            "nor does one that explores",
            explore.total.calls == off.total.calls && explore.total.spared == 0,
        ),
        (
            "exploring takes other lookups than the rule's",
            explore.by_session != shadow.by_session,
        ),
        ("habit spares turns", habit.total.spared > 0),
        ("reach spares turns", reach.total.spared > 0),
        ("an arbiter spares turns", arbiter.total.spared > 0),
        (
            "a model that is mostly right wastes fewer lookups",
            arbiter.total.detours < reach.total.detours,
        ),
        (
            "each turn spared is a call less",
            [habit, reach, arbiter]
                .iter()
                .all(|arm| arm.total.calls + arm.total.spared == off.total.calls),
        ),
        ("guards refuse", refused(&guards.total) > 0),
        ("guards prevent harm", guards.total.harm < off.total.harm),
        (
            "the judge prevents what guards cannot see",
            judge.total.harm < guards.total.harm,
        ),
        (
            "no customer who agrees goes without for the judge",
            judge.total.served >= guards.total.served,
        ),
        (
            "the same seed counts the same",
            report
                .arms
                .iter()
                .zip(&again.arms)
                .all(|(one, other)| one.by_session == other.by_session),
        ),
    ];
    for (promise, holds) in promises {
        if !holds {
            return Err(format!("{promise}; it was\n{}", report.table()).into());
        }
    }
    Ok(())
}
