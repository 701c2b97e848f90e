//! What indexes promise, one by one.
