//! Steps through a log tick by tick, by commands from a person or from a script on a pipe.

use std::io::{self, BufRead, Write};

use sametick_sim::Tick;

use super::{Playback, ReplayError};
use crate::cli::CommandError;
use crate::games::Layout;
use crate::logs::rows;

/// How many changed fields are shown.
const SHOWN: usize = 64;

const HELP: &str = "\
Enter  the next tick          s  print the state
N      go to tick N           d  what the last tick changed, field by field
i      its inputs             q  quit";

/// Reads commands to the end of the input. `prompt` is shown before each, for people.
pub fn walk(
    playback: &mut Playback<'_>,
    commands: impl BufRead,
    out: &mut impl Write,
    prompt: &str,
) -> Result<(), CommandError> {
    if !prompt.is_empty() {
        writeln!(out, "{HELP}")?;
    }
    print_tick(playback, out)?;
    write!(out, "{prompt}")?;
    out.flush()?;
    for line in commands.lines() {
        match line?.trim() {
            "q" => return Ok(()),
            "" => go(playback, playback.run().tick().next(), out)?,
            "s" => writeln!(out, "{}", playback.run().to_json(Layout::Page).map_err(io::Error::other)?)?,
            "d" => print_changes(playback, out)?,
            "i" => print_inputs(playback, out)?,
            word => match word.parse() {
                Ok(tick) => go(playback, Tick(tick), out)?,
                Err(_) => writeln!(out, "{HELP}")?,
            },
        }
        write!(out, "{prompt}")?;
        out.flush()?;
    }
    Ok(())
}

/// Goes to a tick. A tick that does not exist does not end the command loop.
fn go(playback: &mut Playback<'_>, tick: Tick, out: &mut impl Write) -> Result<(), CommandError> {
    match playback.go_to(tick) {
        Ok(()) => print_tick(playback, out),
        Err(ReplayError::NoSuchTick { asked, last, .. }) => {
            Ok(writeln!(out, "there is no tick {asked}; the log ends with tick {last}")?)
        }
        Err(ReplayError::TooEarly { asked, begins, .. }) => Ok(writeln!(
            out,
            "there is no tick {asked} any more; the first state is the save of tick {begins}"
        )?),
        Err(error) => Err(error.into()),
    }
}

fn print_tick(playback: &mut Playback<'_>, out: &mut impl Write) -> Result<(), CommandError> {
    let (tick, hash) = (playback.run().tick(), playback.run().hash());
    let game = playback.game();
    let inputs = playback.inputs_at(tick)?;
    let inputs = inputs.map_or(String::new(), |inputs| format!("  {}", rows(&inputs, Some(game))));
    writeln!(out, "tick {tick}  {hash}{inputs}")?;
    Ok(())
}

fn print_inputs(playback: &mut Playback<'_>, out: &mut impl Write) -> Result<(), CommandError> {
    let (tick, game) = (playback.run().tick(), playback.game());
    match playback.inputs_at(tick)? {
        Some(inputs) => writeln!(out, "{}", rows(&inputs, Some(game)))?,
        None => writeln!(out, "nothing has happened yet")?,
    }
    Ok(())
}

/// Compares with the state of the tick before, which is near: states are kept.
fn print_changes(playback: &mut Playback<'_>, out: &mut impl Write) -> Result<(), CommandError> {
    let tick = playback.run().tick();
    let Some(before) = tick.0.checked_sub(1).map(Tick).filter(|before| *before >= playback.begins()) else {
        writeln!(out, "nothing has happened yet")?;
        return Ok(());
    };
    let [mut old, mut new] = [Vec::new(), Vec::new()];
    playback.run().save(&mut new);
    playback.go_to(before)?;
    playback.run().save(&mut old);
    playback.go_to(tick)?;
    for change in playback.game().differences(&old, &new, SHOWN).map_err(io::Error::other)? {
        let [old, new] = [&change.ours, &change.theirs].map(|side| side.as_deref().unwrap_or("nothing"));
        writeln!(out, "  {}: {old} -> {new}", change.path)?;
    }
    Ok(())
}
