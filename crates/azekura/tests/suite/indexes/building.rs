//! Indexes that are built while others write, and builders that end before it is done.
