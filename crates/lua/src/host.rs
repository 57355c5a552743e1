//! What a running script may ask of the server. Refuses to know how it is answered.

/// What a running script may ask for.
pub trait Host {
    /// `redis.call` and `redis.pcall`: executes a command and appends its reply, in RESP2 or as [`Host::set_resp`]
    /// asked. An error reply starts with `-`.
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>);

    /// `redis.log`: the level is 0 (debug) to 3 (warning).
    fn log(&mut self, level: i64, message: &[u8]);

    /// `redis.setresp`: the protocol of the replies to `call` from here on. Every run starts with 2.
    fn set_resp(&mut self, version: u8);

    /// `redis.acl_check_cmd`: may the script's user run this command? `Err` is the text of an error without its code.
    fn acl_check(&mut self, args: &[&[u8]]) -> Result<bool, String>;

    /// `redis.set_repl`: bit 0 the journal, bit 1 replicas.
    fn set_repl(&mut self, flags: i64);

    /// Asked every so many instructions while a script runs: continue, or stop.
    fn tick(&mut self) -> Tick;
}

/// The host's answer to [`Host::tick`].
pub enum Tick {
    Continue,
    /// The script ends with this error, whatever it does to catch it (`-CODE text`, or a text that gets the code ERR).
    Kill(String),
}
