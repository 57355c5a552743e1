//! Settings that contradict each other, that promise less than they seem to, or that let strangers in. Knows settings, of a
//! configuration or of a running server; refuses to know the machine.

use super::findings::Findings;
use crate::config::{self, ConfiguredUser, Loaded};
use crate::network;
use engine::Settings;
use engine::settings::{AllowedFor, AppendFsync, TlsAuthClients, row};
use std::os::unix::fs::MetadataExt;

/// Who may come in without a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// There is only the default user, as the settings have it.
    OfSettings,
    /// Users are defined, and the default user needs none, or one, or that is not known.
    Defined { default_needs_none: Option<bool> },
}

impl Users {
    pub(super) fn of(loaded: &Loaded) -> Users {
        let default = loaded.tables.users.iter().find(|user| user.name == "default");
        match (loaded.settings.aclfile().is_empty(), default) {
            (true, None) => Users::OfSettings,
            (true, Some(ConfiguredUser { rules, .. })) => {
                let rules: Vec<&str> = rules.split_whitespace().collect();
                Users::Defined { default_needs_none: Some(rules.contains(&"nopass") && !rules.contains(&"off")) }
            }
            (false, _) => Users::Defined { default_needs_none: None },
        }
    }

    fn needs_none(self, settings: &Settings) -> Option<bool> {
        match self {
            Users::OfSettings => Some(settings.requirepass().is_empty()),
            Users::Defined { default_needs_none } => default_needs_none,
        }
    }
}

/// The file itself.
pub(super) fn check_file(loaded: &Loaded, findings: &mut Findings) {
    let check = "configuration-file";
    let Some(path) = &loaded.file else { return findings.good(check, "none; settings come from variables and flags") };
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.mode());
    let has_secrets = !loaded.settings.requirepass().is_empty() || !loaded.tables.users.is_empty();
    match has_secrets && mode & 0o004 != 0 {
        true => findings.act(
            check,
            format!("{} has passwords, and every user of this machine may read it", path.display()),
            format!("chmod 640 {}, and give it to the group of the server", path.display()),
        ),
        false => findings.good(check, path.display().to_string()),
    }
}

pub(super) fn check(settings: &Settings, users: Users, findings: &mut Findings) {
    check_persistence(settings, findings);
    check_access(settings, users, findings);
    check_memory(settings, findings);
    check_tls(settings, findings);
    if settings.min_replicas_to_write() > 0 && settings.min_replicas_max_lag() == 0 {
        let found = "min-replicas-to-write has no effect, because min-replicas-max-lag is 0";
        findings.act("min-replicas", found, "set min-replicas-max-lag, such as 10");
    }
    let ignored = config::without_effect(settings);
    if !ignored.is_empty() {
        let found = format!("{} have no effect here", ignored.join(", "));
        findings.note("settings-without-effect", found, "docs/SETTINGS.md says what takes their place");
    }
}

fn check_persistence(settings: &Settings, findings: &mut Findings) {
    let check = "persistence";
    let is_shared = settings.log().starts_with("nats:");
    match (settings.appendonly(), settings.save_points().is_empty(), settings.appendfsync()) {
        (false, _, _) if is_shared => findings.act(
            check,
            "appendonly is no, and a log on NATS is always written: the server does not start",
            "appendonly yes",
        ),
        (false, true, _) => findings.act(
            check,
            "nothing is stored: appendonly is no and save is empty",
            "appendonly yes, unless all data may be lost at each restart",
        ),
        (false, false, _) => findings.note(
            check,
            "appendonly is no: a crash loses the writes since the last snapshot",
            "appendonly yes keeps them",
        ),
        (true, _, AppendFsync::No) => findings.note(
            check,
            "appendfsync is no: a power failure loses what the system has not written, half a minute of it",
            "appendfsync everysec loses a second of it, always nothing",
        ),
        (true, _, AppendFsync::Everysec) => {
            findings.good(check, "a journal, synced once a second: a power failure may lose the last second")
        }
        (true, _, AppendFsync::Always) => findings.good(check, "a journal, synced before each reply"),
    }
}

fn check_access(settings: &Settings, users: Users, findings: &mut Findings) {
    let check = "access";
    let addresses = network::addresses("bind", &settings.bind());
    let is_local = match &addresses {
        Ok(addresses) => addresses.iter().all(|(address, _)| address.to_canonical().is_loopback()),
        Err(error) => {
            return findings.act(check, format!("{error:#}: the server does not start"), "give IP addresses as bind");
        }
    };
    let bind = settings.bind();
    match (is_local, users.needs_none(settings)) {
        (true, _) => findings.good(check, format!("only this machine is listened to ({bind})")),
        (false, Some(false)) => findings.good(check, format!("bind is {bind}, and clients need a password")),
        (false, None) => findings.unknown(check, format!("bind is {bind}; whether all users have passwords is in {}", settings.aclfile())),
        (false, Some(true)) if settings.protected_mode() => findings.act(
            check,
            format!("bind is {bind}, and clients of other machines are refused: there is no password, and protected-mode is on"),
            "set requirepass, or define users (docs/security.md)",
        ),
        (false, Some(true)) => findings.act(
            check,
            format!("everyone who reaches {bind} may do everything: no password, and protected-mode is off"),
            "set requirepass, or define users (docs/security.md); else see that only trusted clients reach the port",
        ),
    }
    if !is_local && settings.enable_debug_command() == AllowedFor::All {
        findings.act(
            "debug-command",
            "DEBUG may be used from other machines: it can end the server",
            "enable-debug-command no, or local",
        );
    }
}

fn check_memory(settings: &Settings, findings: &mut Findings) {
    let printed = |name: &str| settings.all().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let evicts = printed("maxmemory-policy").filter(|policy| policy != "noeviction");
    match (evicts, settings.maxmemory()) {
        (Some(policy), 0) => findings.act(
            "eviction",
            format!("maxmemory-policy {policy} has no effect, because maxmemory is 0"),
            "set maxmemory",
        ),
        (Some(policy), _) if policy.starts_with("allkeys") => findings.note(
            "eviction",
            format!("with maxmemory-policy {policy}, any key may be removed when memory is short, jobs too"),
            "volatile-… removes only keys with a TTL, noeviction none",
        ),
        _ => {}
    }
    if printed("maxmemory-clients").is_some_and(|share| share.ends_with('%') && share != "0%")
        && settings.maxmemory() == 0
    {
        findings.act(
            "client-memory",
            "maxmemory-clients is a share of maxmemory, which is 0: no limit",
            "set maxmemory, or give bytes",
        );
    }
}

fn check_tls(settings: &Settings, findings: &mut Findings) {
    if settings.tls_port() == 0 {
        return;
    }
    let is_missing = |row| settings.text(row).is_empty();
    let problem = if is_missing(row::TLS_CERT_FILE) || is_missing(row::TLS_KEY_FILE) {
        Some("tls-port is set, and tls-cert-file or tls-key-file is not")
    } else {
        let wants_clients = settings.tls_auth_clients() != TlsAuthClients::No;
        let has_none = is_missing(row::TLS_CA_CERT_FILE) && is_missing(row::TLS_CA_CERT_DIR);
        (wants_clients && has_none)
            .then_some("tls-auth-clients wants certificates, and there is no authority to check them")
    };
    match problem {
        Some(problem) => {
            findings.act("tls", format!("{problem}: the server does not start"), "docs/security.md has an example")
        }
        None => findings.good("tls", format!("on port {}", settings.tls_port())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::*;

    fn found(check_name: &str, users: Users, pairs: &[(&str, &str)]) -> Option<Verdict> {
        let settings = Settings::new();
        pairs.iter().for_each(|(name, value)| settings.load(name.as_bytes(), value.as_bytes()).unwrap());
        let mut findings = Findings::default();
        check(&settings, users, &mut findings);
        findings.of(check_name).first().map(|(verdict, _)| *verdict)
    }

    #[test]
    fn the_defaults_have_nothing_to_act_upon() {
        let mut findings = Findings::default();
        check(&Settings::new(), Users::OfSettings, &mut findings);
        assert!(!findings.ask_for_action(), "{}", findings.shown());
    }

    #[test]
    fn contradictions_are_found() {
        let act = |name, pairs: &[(&str, &str)]| {
            assert_eq!(found(name, Users::OfSettings, pairs), Some(Verdict::Act), "{name} {pairs:?}")
        };
        act("persistence", &[("appendonly", "no"), ("save", "")]);
        act("eviction", &[("maxmemory-policy", "allkeys-lru")]);
        act("client-memory", &[("maxmemory-clients", "5%")]);
        act("min-replicas", &[("min-replicas-to-write", "1"), ("min-replicas-max-lag", "0")]);
        act("tls", &[("tls-port", "6380")]);
        act("tls", &[("tls-port", "6380"), ("tls-cert-file", "c"), ("tls-key-file", "k")]);
        act("debug-command", &[("bind", "0.0.0.0"), ("enable-debug-command", "yes")]);
        act("access", &[("bind", "nowhere")]);
        let users = Users::OfSettings;
        assert_eq!(
            found("eviction", users, &[("maxmemory-policy", "allkeys-lru"), ("maxmemory", "1gb")]),
            Some(Verdict::Note)
        );
        assert_eq!(found("client-memory", users, &[("maxmemory-clients", "5%"), ("maxmemory", "1gb")]), None);
        assert_eq!(found("persistence", users, &[("appendonly", "no")]), Some(Verdict::Note));
        assert_eq!(found("persistence", users, &[("appendfsync", "no")]), Some(Verdict::Note));
        assert_eq!(found("settings-without-effect", users, &[("io-threads", "4")]), Some(Verdict::Note));
    }

    #[test]
    fn other_machines_need_a_password() {
        let everywhere = ("bind", "127.0.0.1 10.0.0.1");
        let found = |users, pairs: &[(&str, &str)]| found("access", users, pairs).unwrap();
        assert_eq!(found(Users::OfSettings, &[("bind", "127.0.0.1 ::1")]), Verdict::Good);
        assert_eq!(found(Users::OfSettings, &[everywhere]), Verdict::Act);
        assert_eq!(found(Users::OfSettings, &[everywhere, ("protected-mode", "no")]), Verdict::Act);
        assert_eq!(found(Users::OfSettings, &[everywhere, ("requirepass", "s3cret")]), Verdict::Good);
        let defined = |default_needs_none| Users::Defined { default_needs_none };
        assert_eq!(found(defined(Some(false)), &[everywhere]), Verdict::Good);
        assert_eq!(found(defined(Some(true)), &[everywhere]), Verdict::Act);
        assert_eq!(found(defined(None), &[everywhere]), Verdict::Unknown);
    }
}
