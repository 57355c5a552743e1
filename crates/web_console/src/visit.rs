//! What a page may use: commands as its user, the fields of the request, links and forms. Refuses to know which page it is for.

use crate::console::Console;
use crate::forms::Fields;
use crate::html::{Html, Link, Packed, Show, html};
use crate::paths::Page;
use crate::reply::Reply;
use crate::sessions::{Notice, Session};
use crate::talk::{Talk, Trouble, request};
use engine::acl::check;
use engine::command::registry;
use resp::OwnedRequest;
use std::net::SocketAddr;

/// The most databases.
const DATABASES: u64 = 16;

/// What a page comes to.
pub(crate) enum Shown {
    /// A whole page.
    Page { title: String, main: Html },
    /// A part of a page, for its script.
    Part(Html),
    /// Another page, after an action.
    Go(Link),
}

/// What a page comes to; `None`: there is nothing there.
pub(crate) type Outcome = Result<Option<Shown>, Trouble>;

/// One request to a page, by a user that has signed in.
pub(crate) struct Visit<'a> {
    pub(crate) console: &'a Console,
    pub(crate) session: Session,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    pub(crate) page: Page,
    pub(crate) db: usize,
    peer: SocketAddr,
    talk: Option<Talk>,
}

impl<'a> Visit<'a> {
    pub(crate) fn new(
        console: &'a Console,
        session: Session,
        query: Fields,
        form: Fields,
        peer: SocketAddr,
        page: Page,
    ) -> Visit<'a> {
        let db = database(&query, &form).unwrap_or(0);
        Visit { console, session, query, form, page, db, peer, talk: None }
    }

    /// Runs one command.
    pub(crate) async fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, Trouble> {
        Ok(self.ask_all(&[request(words)]).await?.pop().unwrap_or(Reply::Null))
    }

    /// Runs commands one after the other; a reply for each.
    pub(crate) async fn ask_all(&mut self, requests: &[Vec<u8>]) -> Result<Vec<Reply>, Trouble> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        match self.ask_as_many(requests).await {
            (replies, None) => Ok(replies),
            (_, Some(trouble)) => Err(trouble),
        }
    }

    /// Runs commands one after the other: the replies that came, and why there are no more if some are missing.
    pub(crate) async fn ask_as_many(&mut self, requests: &[Vec<u8>]) -> (Vec<Reply>, Option<Trouble>) {
        let mut talk = match self.talk.take() {
            Some(talk) => talk,
            None => match self.console.talk(&self.session, self.peer, self.db).await {
                Ok(talk) => talk,
                Err(trouble) => return (Vec::new(), Some(trouble)),
            },
        };
        let (replies, trouble) = talk.run_as_many(requests).await;
        if trouble.is_none() {
            self.talk = Some(talk);
        }
        (replies, trouble)
    }

    /// True while there is time for more commands than one.
    pub(crate) fn has_time(&self) -> bool {
        self.talk.as_ref().is_none_or(Talk::has_time)
    }

    /// True if the user may run this request. What it may not do is not offered; the server refuses it in any case.
    pub(crate) fn may(&self, words: &[&[u8]]) -> bool {
        let Some(row) = words.first().and_then(|name| registry().find(name)) else { return false };
        let row = match row.subcommands.is_empty() {
            true => row,
            false => match words.get(1).and_then(|name| row.subcommand(name)) {
                Some(row) => row,
                None => return false,
            },
        };
        let asked: OwnedRequest = words.iter().copied().collect();
        row.accepts(words.len())
            && check::check(&self.console.engine, &self.session.user.rights(), row, asked.as_request(), self.db).is_ok()
    }

    pub(crate) fn now_ms(&self) -> f64 {
        (self.console.engine.clock.unix_us() / 1000) as f64
    }

    /// A link to a page, in the same database.
    pub(crate) fn link(&self, page: Page) -> Link {
        let db = if self.db == 0 { String::new() } else { self.db.to_string() };
        Link::to(page.path()).with_any("db", db.as_bytes())
    }

    /// Keeps a notice for the next page.
    pub(crate) fn note(&self, is_good: bool, text: impl Into<String>) {
        self.console.sessions().note(&self.session.token, Notice { is_good, text: text.into() });
    }

    /// Keeps what a command has replied: its error, or `done`.
    pub(crate) fn note_reply(&self, reply: &Reply, done: impl Into<String>) {
        match reply.error() {
            Some(error) => self.note(false, String::from_utf8_lossy(error)),
            None => self.note(true, done),
        }
    }

    /// A form that this page's action gets, with these hidden fields.
    pub(crate) fn form(&self, action: &'static str, hidden: &[(&'static str, &[u8])], content: &Html) -> Html {
        let mut fields = Html::new();
        for (name, value) in hidden {
            fields.put("<input type=\"hidden\" name=\"{}\" value=\"{}\">", &[name, &Packed(value)]);
        }
        html(
            "<form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"token\" value=\"{}\">\
             <input type=\"hidden\" name=\"action\" value=\"{}\"><input type=\"hidden\" name=\"db\" value=\"{}\">{}{}</form>",
            &[&self.page.path(), &&*self.session.token, &action, &self.db, &fields, content],
        )
    }

    /// A form of one button, which asks once more.
    pub(crate) fn confirmed(
        &self,
        action: &'static str,
        label: &dyn Show,
        question: &dyn Show,
        hidden: &[(&'static str, &[u8])],
    ) -> Html {
        let content = html("<p>{}</p><button class=\"danger\">Yes, {}</button>", &[question, label]);
        html(
            "<details class=\"ask\"><summary>{}…</summary>{}</details>",
            &[label, &self.form(action, hidden, &content)],
        )
    }

    pub(crate) fn page(&self, title: impl Into<String>, main: Html) -> Outcome {
        Ok(Some(Shown::Page { title: title.into(), main }))
    }

    pub(crate) fn go(&self, link: Link) -> Outcome {
        Ok(Some(Shown::Go(link)))
    }
}

/// The database that a request names: the first if it names none, `None` if there is no such database.
pub(crate) fn database(query: &Fields, form: &Fields) -> Option<usize> {
    let named = [form, query].into_iter().find(|fields| !fields.typed("db").is_empty());
    let Some(named) = named else { return Some(0) };
    named.number("db").filter(|db| *db < DATABASES).map(|db| db as usize)
}

/// A query form, which only shows another part of a page.
pub(crate) fn search(visit: &Visit<'_>, content: &Html) -> Html {
    html(
        "<form class=\"search\" method=\"get\" action=\"{}\">{}<input type=\"hidden\" name=\"db\" value=\"{}\">\
         <button>Show</button></form>",
        &[&visit.page.path(), content, &visit.db],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_none_is_not_the_first() {
        let of = |query: &str, form: &str| {
            database(&Fields::parse(query.as_bytes()).unwrap(), &Fields::parse(form.as_bytes()).unwrap())
        };
        assert_eq!(
            [of("", ""), of("db=", ""), of("db=15", ""), of("db=3", "db=2")],
            [Some(0), Some(0), Some(15), Some(2)]
        );
        for bad in ["16", "99", "x", "-1", "1.5", "99999999999999999999"] {
            assert_eq!(of(&format!("db={bad}"), ""), None, "{bad}");
            assert_eq!(of("db=1", &format!("db={bad}")), None, "{bad}");
        }
    }
}
