//! Values as the commands that make them: what an append-only file without a preamble holds. Knows Redis's commands; refuses
//! to know where they are written.

use crate::Value;
use numbers::{F64_CHARS_MAX, format_f64_in_17_digits};

/// Elements of a value in one command; servers limit the length of a request.
const ELEMENTS_PER_COMMAND: usize = 500;

/// Hands out the commands that give a key this value, whatever it holds before, one after the other.
pub fn commands_for<E>(name: &[u8], value: &Value, mut emit: impl FnMut(&[&[u8]]) -> Result<(), E>) -> Result<(), E> {
    match value {
        Value::String(bytes) => emit(&[b"SET", name, bytes]),
        Value::Hash(fields) => {
            // What was there would otherwise stay beside what comes.
            emit(&[b"DEL", name])?;
            in_chunks(
                &[b"HSET", name],
                fields,
                |(field, value, _), args| args.extend([&**field, &**value]),
                &mut emit,
            )?;
            for (field, _, deadline) in fields {
                if let Some(deadline) = deadline {
                    emit(&[b"HPEXPIREAT", name, deadline.to_string().as_bytes(), b"FIELDS", b"1", field])?;
                }
            }
            Ok(())
        }
        Value::SortedSet(members) => {
            emit(&[b"DEL", name])?;
            let text = |score: f64| format_f64_in_17_digits(score, &mut [0; F64_CHARS_MAX]).to_vec();
            let members: Vec<_> = members.iter().map(|(member, score)| (text(*score), member)).collect();
            in_chunks(
                &[b"ZADD", name],
                &members,
                |(score, member), args| args.extend([&**score, &***member]),
                &mut emit,
            )
        }
        Value::Unsupported(_) => Ok(()),
    }
}

/// Commands that begin with `head`, each with some of the elements.
fn in_chunks<'a, T, E>(
    head: &[&'a [u8]],
    elements: &'a [T],
    push: impl Fn(&'a T, &mut Vec<&'a [u8]>),
    emit: &mut impl FnMut(&[&[u8]]) -> Result<(), E>,
) -> Result<(), E> {
    for some in elements.chunks(ELEMENTS_PER_COMMAND) {
        let mut args = head.to_vec();
        some.iter().for_each(|element| push(element, &mut args));
        emit(&args)?;
    }
    Ok(())
}
