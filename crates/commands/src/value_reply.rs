//! Writes values of the keyspace as replies. Knows both sides; refuses to know commands.

use keyspace::Scalar;
use keyspace::types::hash::FieldName;
use keyspace::types::sorted_set::Name;
use resp::Reply;

/// A value that is sent as one bulk string.
pub(crate) trait ValueReply {
    /// Writes it as a bulk string.
    fn reply(&self, reply: &mut Reply<'_>);
}

impl ValueReply for Scalar<'_> {
    #[inline]
    fn reply(&self, reply: &mut Reply<'_>) {
        match self {
            Scalar::Bytes(bytes) => reply.bulk(bytes),
            Scalar::Number(number) => reply.bulk_integer(*number),
        }
    }
}

impl ValueReply for FieldName<'_> {
    #[inline]
    fn reply(&self, reply: &mut Reply<'_>) {
        match self.framed() {
            Some(framed) => reply.raw(framed),
            None => self.scalar().reply(reply),
        }
    }
}

impl ValueReply for Name<'_> {
    #[inline]
    fn reply(&self, reply: &mut Reply<'_>) {
        self.scalar().reply(reply);
    }
}
