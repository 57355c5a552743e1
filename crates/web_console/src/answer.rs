//! One request from a browser: who it is, whether it may be answered, and the headers of the answer. Refuses to know what a
//! page shows.

use crate::console::Console;
use crate::forms::{Fields, cookie};
use crate::guard::{self, Source};
use crate::html::{Html, Link};
use crate::layout;
use crate::pages;
use crate::paths::Page;
use crate::sessions::{AGE_MAX, Session, is_equal, random_name};
use crate::talk::{Talk, Trouble, request};
use crate::visit::{Shown, Visit, database};
use std::net::SocketAddr;
use std::time::Instant;

/// How much longer than AUTH's own delay the answer to a wrong password takes: each attempt is a new connection, for which AUTH's
/// delay is that of the first.
const WRONG_PASSWORD_DELAY: std::time::Duration = std::time::Duration::from_millis(300);
/// Nothing of a page comes from elsewhere, and no script or style stands in it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const STYLE: &str = include_str!("assets/style.css");
const ICON: &str = include_str!("assets/icon.svg");
const SCRIPT: &str = include_str!("assets/script.js");

/// A request.
pub struct Asked<'a> {
    /// POST; otherwise GET.
    pub is_form: bool,
    pub path: &'a str,
    pub query: &'a [u8],
    pub host: Option<&'a [u8]>,
    pub origin: Option<&'a [u8]>,
    pub fetch_site: Option<&'a [u8]>,
    pub cookies: Option<&'a [u8]>,
    pub content_type: Option<&'a [u8]>,
    pub body: &'a [u8],
    pub peer: SocketAddr,
}

/// An answer.
pub struct Said {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Console {
    pub async fn answer(&self, asked: &Asked<'_>) -> Said {
        let source = Source { host: asked.host, origin: asked.origin, fetch_site: asked.fetch_site };
        let address = self.engine.settings.console_origin();
        match Page::at(asked.path) {
            Some(Page::Style) if !asked.is_form => return asset("text/css; charset=utf-8", STYLE),
            Some(Page::Icon) if !asked.is_form => return asset("image/svg+xml", ICON),
            Some(Page::Script) if !asked.is_form => return asset("text/javascript; charset=utf-8", SCRIPT),
            _ => {}
        }
        if asked.is_form && (!guard::is_own_form(&source, &address) || !is_form_encoded(asked.content_type)) {
            return Said::plain(403, "this form does not come from a page of the console\n");
        }
        if !guard::may_show(&source) {
            return Said::plain(403, "pages are not shown to other sites\n");
        }
        let (Some(query), Some(form)) = (Fields::parse(asked.query), Fields::parse(asked.body)) else {
            return Said::plain(400, "there are too many fields\n");
        };
        let is_use = !query.has("part");
        let name = asked.cookies.and_then(|cookies| cookie(cookies, &self.cookie));
        let session = name.and_then(|name| self.sessions().find(name, Instant::now(), is_use));
        let page = Page::at(asked.path);
        if page == Some(Page::SignIn) && asked.is_form {
            return self.sign_in(asked, &source, &form).await;
        }
        // Without a session every path is the same, whether there is something or not.
        let Some(session) = session else {
            return match asked.is_form || !is_use {
                true => Said::plain(401, "the session has ended: sign in again\n"),
                false if page == Some(Page::SignIn) => self.offer_sign_in(None, b"default"),
                false => self.go(&Link::to(Page::SignIn.path())),
            };
        };
        if asked.is_form && !is_equal(form.get("token"), session.token.as_bytes()) {
            return Said::plain(403, "the form is of another session: load the page again\n");
        }
        if page == Some(Page::SignOut) && asked.is_form {
            self.sessions().end(name.unwrap_or_default());
            return self.go(&Link::to(Page::Overview.path())).with_cookie(self.cookie_text("", 0));
        }
        match page {
            Some(page) => self.show(page, asked, session, query, form).await,
            None if asked.path == "/" || asked.path == "/console/" => self.go(&Link::to(Page::Overview.path())),
            None => Said::plain(404, "there is no such page\n"),
        }
    }

    async fn show(&self, page: Page, asked: &Asked<'_>, session: Session, query: Fields, form: Fields) -> Said {
        let has_database = database(&query, &form).is_some();
        let mut visit = Visit::new(self, session, query, form, asked.peer, page);
        if !has_database {
            let main = layout::problem("There is no such database: they are numbered from 0 to 15. Nothing was done.");
            return Said::html(404, layout::page(&mut visit, "No such database", &main));
        }
        let shown = match asked.is_form {
            false => pages::show(page, &mut visit).await,
            true => pages::act(page, &mut visit).await,
        };
        match shown {
            Ok(Some(Shown::Page { title, main })) => Said::html(200, layout::page(&mut visit, &title, &main)),
            Ok(Some(Shown::Part(part))) => Said::html(200, part),
            Ok(Some(Shown::Go(link))) => self.go(&link),
            Ok(None) => Said::plain(404, "there is nothing of that kind\n"),
            Err(trouble) => {
                let main = layout::problem(&trouble.to_string());
                Said::html(502, layout::page(&mut visit, "No answer", &main))
            }
        }
    }

    async fn sign_in(&self, asked: &Asked<'_>, source: &Source<'_>, form: &Fields) -> Said {
        let name = form.get("user");
        let given = asked.cookies.and_then(|cookies| cookie(cookies, &self.sign_in_cookie())).unwrap_or_default();
        if given.is_empty() || !is_equal(form.get("token"), given) {
            return self.offer_sign_in(Some("The page was too old. Try again: cookies must be allowed."), name);
        }
        let Ok(_one_of_few) = self.sign_ins.acquire().await else {
            return Said::plain(503, "the server stops\n");
        };
        let is_right = match self.check_password(name, form.get("password"), asked.peer).await {
            Ok(None) => true,
            Ok(Some(error)) if error.starts_with("WRONGPASS") => false,
            Ok(Some(error)) => return self.offer_sign_in(Some(&error), name),
            Err(trouble) => return self.offer_sign_in(Some(&trouble.to_string()), name),
        };
        let user = self.engine.acl.find(name).filter(|_| is_right);
        let Some(user) = user else {
            tokio::time::sleep(WRONG_PASSWORD_DELAY).await;
            return self.offer_sign_in(Some("The name or the password is wrong, or the user is off."), name);
        };
        if user.rights().no_password {
            let is_far =
                !asked.peer.ip().to_canonical().is_loopback() || !self.engine.settings.console_origin().is_empty();
            if is_far || !guard::is_numeric(source.host) {
                return self.offer_sign_in(Some(
                    "This user needs no password, so it can sign in only on the server's own machine, at http://127.0.0.1. \
                     Give it a password: ACL SETUSER, or requirepass for the default user.",
                ), name);
            }
        }
        tracing::info!(user = user.shown_name(), peer = %asked.peer, "a user has signed in to the console");
        match self.sessions().begin(user, Instant::now()) {
            Some(name) => {
                self.go(&Link::to(Page::Overview.path())).with_cookie(self.cookie_text(&name, AGE_MAX.as_secs()))
            }
            None => Said::plain(503, "the system has no random numbers\n"),
        }
    }

    /// Asks AUTH, which logs wrong passwords. The error, if it is not right.
    async fn check_password(&self, name: &[u8], password: &[u8], peer: SocketAddr) -> Result<Option<String>, Trouble> {
        let socket = (self.open)(peer, None).map_err(Trouble::Failed)?;
        let mut talk = Talk::begin(socket)?;
        let replies = talk.run(&[request(&[b"AUTH", name, password])]).await?;
        Ok(replies.first().and_then(|reply| reply.error()).map(|error| String::from_utf8_lossy(error).into_owned()))
    }

    /// The page to sign in, with what was wrong before and the name that was typed.
    fn offer_sign_in(&self, problem: Option<&str>, name: &[u8]) -> Said {
        let Some(token) = random_name() else { return Said::plain(503, "the system has no random numbers\n") };
        let status = if problem.is_some() { 403 } else { 200 };
        let is_open = self.engine.acl.default_needs_no_password();
        let cookie = self.flagged(&format!("{}={token}; Path=/console; Max-Age=3600", self.sign_in_cookie()));
        Said::html(status, layout::sign_in(&token, problem, is_open, &String::from_utf8_lossy(name)))
            .with_cookie(cookie)
    }

    fn sign_in_cookie(&self) -> String {
        format!("{}_sign_in", self.cookie)
    }

    fn cookie_text(&self, name: &str, seconds: u64) -> String {
        self.flagged(&format!("{}={name}; Path=/console; Max-Age={seconds}", self.cookie))
    }

    fn flagged(&self, text: &str) -> String {
        let secure = if self.engine.settings.console_origin().starts_with("https://") { "; Secure" } else { "" };
        format!("{text}; HttpOnly; SameSite=Strict{secure}")
    }

    fn go(&self, link: &Link) -> Said {
        let mut said = Said::plain(303, "");
        said.headers.push(("location", link.as_str().to_owned()));
        said
    }
}

/// Other forms would make the browser ask first, but they are not the console's.
fn is_form_encoded(content_type: Option<&[u8]>) -> bool {
    content_type.is_some_and(|kind| {
        kind.split(|byte| *byte == b';')
            .next()
            .unwrap_or_default()
            .eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
    })
}

fn asset(kind: &'static str, text: &'static str) -> Said {
    let mut said = Said::new(200, kind, text.into());
    said.headers.retain(|(name, _)| *name != "cache-control");
    said.headers.push(("cache-control", "no-cache".to_owned()));
    said
}

impl Said {
    fn new(status: u16, kind: &str, body: Vec<u8>) -> Said {
        let headers = [
            ("content-type", kind),
            ("cache-control", "no-store"),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            // Not `no-referrer`: forms would come without their origin.
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        Said { status, headers: headers.map(|(name, value)| (name, value.to_owned())).into(), body }
    }

    pub fn plain(status: u16, text: &str) -> Said {
        Said::new(status, "text/plain; charset=utf-8", text.into())
    }

    fn html(status: u16, page: Html) -> Said {
        Said::new(status, "text/html; charset=utf-8", page.into_bytes())
    }

    fn with_cookie(mut self, cookie: String) -> Said {
        self.headers.push(("set-cookie", cookie));
        self
    }
}
