//! A parser for the arguments of a command; unknown arguments are an error.

use std::str::FromStr;

use anyhow::{Context, Result, bail};

pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    pub fn new(words: &[String]) -> Self {
        Self { words: words.to_vec() }
    }

    /// Was `name` given? Takes it.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.words.iter().position(|word| word == name);
        found.map(|index| self.words.remove(index)).is_some()
    }

    /// Was help asked for, in either spelling?
    pub fn help(&mut self) -> bool {
        let long = self.flag("--help");
        self.flag("-h") || long
    }

    /// The value of `--name VALUE`, if given.
    pub fn value<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let Some(index) = self.words.iter().position(|word| word == name) else { return Ok(None) };
        self.words.remove(index);
        if index == self.words.len() {
            bail!("{name} needs a value");
        }
        let word = self.words.remove(index);
        word.parse().map(Some).with_context(|| format!("{name} {word}"))
    }

    /// The next word that is no option, if any.
    pub fn word(&mut self) -> Option<String> {
        let index = self.words.iter().position(|word| !word.starts_with('-'))?;
        Some(self.words.remove(index))
    }

    /// Nothing may be left: a mistyped option must not be ignored.
    pub fn finish(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => bail!("`{word}` is not understood here; try --help"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments { words: words.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn options_and_words_are_taken_in_any_order() {
        let mut given = arguments(&["canonical", "--seconds", "7", "--list"]);
        assert!(given.flag("--list"));
        assert_eq!(given.value::<u64>("--seconds").unwrap(), Some(7));
        assert_eq!(given.word().as_deref(), Some("canonical"));
        given.finish().unwrap();
    }

    #[test]
    fn leftover_arguments_are_an_error() {
        assert!(arguments(&["--sceonds"]).finish().is_err());
    }

    #[test]
    fn an_option_without_its_value_is_an_error() {
        assert!(arguments(&["--seconds"]).value::<u64>("--seconds").is_err());
        assert!(arguments(&["--seconds", "soon"]).value::<u64>("--seconds").is_err());
    }
}
