//! Arguments of a function, and the errors of one that does not like them, with Lua's texts. Knows nothing of Redis.

use std::ffi::{CStr, c_int};
use std::fmt::Write;

use mlua_sys as ffi;

use super::stack::{Raise, Stack, Type};
use super::text::Text;

impl<'s> Stack<'s> {
    /// As [`Stack::has_room`], with an error that has the message.
    pub(crate) fn need_room(self, count: c_int, message: &str) -> Result<(), Raise> {
        if self.has_room(count) {
            return Ok(());
        }
        Err(self.error(format_args!("stack overflow ({message})")))
    }

    // --- errors ----------------------------------------------------------------------------------------------

    /// Raises the value on top.
    pub(crate) fn raise(self) -> Raise {
        Raise::Value
    }

    /// A text with the position of the caller in front, as `luaL_error` makes it.
    pub(crate) fn error(self, message: std::fmt::Arguments<'_>) -> Raise {
        let mut text = Text::<512>::new();
        let _ = text.write_fmt(message);
        self.error_bytes(text.as_bytes())
    }

    #[cold]
    pub(crate) fn error_bytes(self, message: &[u8]) -> Raise {
        self.make_room(3);
        // SAFETY: three values fit.
        unsafe { ffi::luaL_where(self.lua(), 1) };
        self.push_bytes(message);
        self.join_two();
        Raise::Value
    }

    /// `bad argument #1 to 'encode' (…)`.
    #[cold]
    pub(crate) fn bad_argument(self, position: c_int, message: std::fmt::Arguments<'_>) -> Raise {
        let mut text = Text::<200>::new();
        let _ = text.write_fmt(message);
        self.bad_argument_bytes(position, text.as_bytes())
    }

    #[cold]
    pub(crate) fn bad_argument_bytes(self, mut position: c_int, message: &[u8]) -> Raise {
        // SAFETY: all zeroes is a valid `lua_Debug`.
        let mut frame: ffi::lua_Debug = unsafe { std::mem::zeroed() };
        // SAFETY: level 0 is the running function. Its name is a text of its caller, which is on the stack as long as
        // it runs.
        let name: Option<(&CStr, bool)> = unsafe {
            if ffi::lua_getstack(self.lua(), 0, &mut frame) == 0 {
                None
            } else {
                ffi::lua_getinfo(self.lua(), c"n".as_ptr(), &mut frame);
                let name = if frame.name.is_null() { c"?" } else { CStr::from_ptr(frame.name) };
                let method = !frame.namewhat.is_null() && CStr::from_ptr(frame.namewhat) == c"method";
                Some((name, method))
            }
        };
        let mut text = Text::<512>::new();
        match name {
            None => {
                let _ = write!(text, "bad argument #{position} (");
            }
            Some((name, true)) if position == 1 => {
                for part in [b"calling '".as_slice(), name.to_bytes(), b"' on bad self ("] {
                    text.push(part);
                }
            }
            Some((name, method)) => {
                position -= c_int::from(method);
                let _ = write!(text, "bad argument #{position} to '");
                text.push(name.to_bytes());
                text.push(b"' (");
            }
        }
        text.push(message);
        text.push(b")");
        self.error_bytes(text.as_bytes())
    }

    #[cold]
    pub(super) fn bad_kind(self, position: c_int, expected: &str) -> Raise {
        let found = self.kind_name(position);
        self.bad_argument(position, format_args!("{expected} expected, got {found}"))
    }

    /// The source and line of the function that raised the error which a handler is called for, or of its caller if
    /// that is not written in Lua.
    pub(crate) fn place_of_error(self) -> Option<(&'s [u8], c_int)> {
        let found = self.place(1);
        if found.is_some_and(|(in_c, ..)| in_c) { self.place(2) } else { found }.map(|(_, source, line)| (source, line))
    }

    /// Of the function so many levels up: is it written in C, its source, its line.
    fn place(self, level: c_int) -> Option<(bool, &'s [u8], c_int)> {
        // SAFETY: all zeroes is a valid `lua_Debug`; Lua sets what "Sl" asks for. The source belongs to a function that
        // waits for the running one, so it outlives `'s`.
        unsafe {
            let mut frame: ffi::lua_Debug = std::mem::zeroed();
            if ffi::lua_getstack(self.lua(), level, &mut frame) == 0 {
                return None;
            }
            ffi::lua_getinfo(self.lua(), c"Sl".as_ptr(), &mut frame);
            let source = CStr::from_ptr(frame.source).to_bytes();
            Some((CStr::from_ptr(frame.what) == c"C", source, frame.currentline))
        }
    }

    // --- arguments -------------------------------------------------------------------------------------------

    pub(crate) fn argument_number(self, position: c_int) -> Result<f64, Raise> {
        let number = self.number(position);
        if number == 0.0 && !self.is_number(position) {
            return Err(self.bad_kind(position, "number"));
        }
        Ok(number)
    }

    pub(crate) fn argument_integer(self, position: c_int) -> Result<i64, Raise> {
        Ok(c_integer(self.argument_number(position)?))
    }

    pub(crate) fn argument_integer_or(self, position: c_int, default: i64) -> Result<i64, Raise> {
        match self.kind(position) {
            Type::None | Type::Nil => Ok(default),
            _ => self.argument_integer(position),
        }
    }
}

/// A double as C's cast to a 64-bit integer makes it on x86: what does not fit is the smallest integer.
#[inline]
pub(crate) fn c_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// The same to 32 bits: Lua's `luaL_checkint` casts twice.
#[inline]
pub(crate) fn c_int32(number: f64) -> i32 {
    c_integer(number) as i32
}
