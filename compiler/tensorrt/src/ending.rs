use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

pub(crate) fn ending(status: ExitStatus) -> String {
    const NAMES: [(i32, &str); 6] =
        [(4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (9, "SIGKILL"), (11, "SIGSEGV")];
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = NAMES.iter().find(|(number, _)| *number == signal);
            let name = name.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned());
            format!("its process was ended by {name}")
        }
        (None, Some(code)) => format!("its process returned exit code {code}"),
        (None, None) => "its process ended".to_owned(),
    }
}
