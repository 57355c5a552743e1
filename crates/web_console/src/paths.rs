//! The addresses of the console: which page a path is. A path is one of a list or nothing: it is never put together with
//! anything, and there are no files. Refuses to know what a page shows.

/// A page or a file of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Overview,
    Jobs,
    Index,
    Groups,
    Record,
    Dead,
    Runs,
    Run,
    Cells,
    Cell,
    Registers,
    Sessions,
    Session,
    Keys,
    Key,
    SlowLog,
    Latency,
    Clients,
    Configuration,
    Users,
    Memory,
    Cluster,
    Prompt,
    Help,
    SignIn,
    SignOut,
    Style,
    Icon,
    Script,
}

/// Where they are.
const PATHS: &[(Page, &str)] = &[
    (Page::Overview, "/console"),
    (Page::Jobs, "/console/jobs"),
    (Page::Index, "/console/jobs/index"),
    (Page::Groups, "/console/jobs/groups"),
    (Page::Record, "/console/jobs/record"),
    (Page::Dead, "/console/jobs/dead"),
    (Page::Runs, "/console/runs"),
    (Page::Run, "/console/runs/run"),
    (Page::Cells, "/console/cells"),
    (Page::Cell, "/console/cells/cell"),
    (Page::Registers, "/console/registers"),
    (Page::Sessions, "/console/sessions"),
    (Page::Session, "/console/sessions/session"),
    (Page::Keys, "/console/keys"),
    (Page::Key, "/console/keys/key"),
    (Page::SlowLog, "/console/slowlog"),
    (Page::Latency, "/console/latency"),
    (Page::Clients, "/console/clients"),
    (Page::Configuration, "/console/configuration"),
    (Page::Users, "/console/users"),
    (Page::Memory, "/console/memory"),
    (Page::Cluster, "/console/cluster"),
    (Page::Prompt, "/console/prompt"),
    (Page::Help, "/console/prompt/help"),
    (Page::SignIn, "/console/sign-in"),
    (Page::SignOut, "/console/sign-out"),
    (Page::Style, "/console/style.css"),
    (Page::Icon, "/console/icon.svg"),
    (Page::Script, "/console/script.js"),
];

impl Page {
    /// The page at a path, which is what comes before `?`.
    pub fn at(path: &str) -> Option<Page> {
        PATHS.iter().find(|(_, known)| *known == path).map(|(page, _)| *page)
    }

    pub fn path(self) -> &'static str {
        PATHS.iter().find(|(page, _)| *page == self).map(|(_, path)| *path).expect("every page has a path")
    }

    pub fn all() -> impl Iterator<Item = Page> {
        PATHS.iter().map(|(page, _)| *page)
    }
}

/// True if the console answers there, be it that there is nothing.
pub fn is_of_console(path: &str) -> bool {
    path == "/" || path == "/console" || path.starts_with("/console/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_page_or_nothing() {
        for page in Page::all() {
            assert_eq!(Page::at(page.path()), Some(page));
            assert!(is_of_console(page.path()));
        }
        for path in
            ["", "/", "/console/", "/console//jobs", "/console/../metrics", "/console/%6aobs", "/Console", "//console"]
        {
            assert_eq!(Page::at(path), None, "{path}");
        }
        assert!(!is_of_console("/consoles") && !is_of_console("/metrics"));
    }
}
