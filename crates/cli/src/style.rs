//! Colours: on terminals only, and never if `NO_COLOR` is set (<https://no-color.org>).

use std::io::{self, IsTerminal};

/// Paints text for one stream, or leaves it plain.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub fn stdout() -> Paint {
        Paint { on: io::stdout().is_terminal() && wanted() }
    }

    /// For standard error.
    pub fn stderr() -> Paint {
        Paint { on: on_stderr() }
    }

    /// Bold.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Pale, for what matters less.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Bold red, for errors.
    pub fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// Green, for the finished part.
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Cyan, for the main figures.
    pub fn cyan(self, text: &str) -> String {
        self.wrap("36", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether standard error is a terminal and colours are wanted.
pub fn on_stderr() -> bool {
    io::stderr().is_terminal() && wanted()
}

fn wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
