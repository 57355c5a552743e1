//! The future answer of a request, boxed so that traits with asynchronous methods are object-safe. Knows no request.

use std::pin::Pin;

use crate::error::Error;

/// A future answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
