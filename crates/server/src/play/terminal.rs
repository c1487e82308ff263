//! The terminal of a game: switched to raw mode while it lasts, and restored in every case.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{
    DisableFocusChange, EnableFocusChange, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, event, execute, queue, terminal};

use super::frame::{Frame, Palette};
use super::keys::{Key, Stroke};

/// An event of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// An event of a key with a function.
    Key(Key, Stroke),
    /// Another window has the keyboard.
    FocusLost,
}

/// A terminal that a game is played on.
pub struct Terminal {
    borrowed: Arc<Borrowed>,
    tells_releases: bool,
    palette: Palette,
    size: (u16, u16),
    before: Option<Frame>,
}

impl Terminal {
    /// Whether standard output is a terminal.
    pub fn is_there() -> bool {
        io::stdout().is_terminal()
    }

    /// Takes the terminal. It is restored when this is dropped or closed, and before a panic message is printed.
    pub fn open() -> io::Result<Terminal> {
        let size = terminal::size()?;
        terminal::enable_raw_mode()?;
        let borrowed = Arc::new(Borrowed { is_open: true.into(), has_flags: false.into() });
        let mut terminal = Terminal {
            borrowed: Arc::clone(&borrowed),
            tells_releases: cfg!(windows),
            palette: Palette::of_environment(),
            size,
            before: None,
        };
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            borrowed.give_back();
            report(panic);
        }));
        let mut out = io::stdout();
        execute!(out, EnterAlternateScreen, cursor::Hide, EnableFocusChange)?;
        // A terminal that answers none of the queries costs two seconds.
        if terminal::supports_keyboard_enhancement().unwrap_or(false) {
            let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
                | KeyboardEnhancementFlags::REPORT_EVENT_TYPES;
            execute!(out, PushKeyboardEnhancementFlags(flags))?;
            terminal.borrowed.has_flags.store(true, Ordering::SeqCst);
            terminal.tells_releases = true;
        }
        Ok(terminal)
    }

    /// Whether the terminal reports key releases.
    pub fn tells_releases(&self) -> bool {
        self.tells_releases
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The palette of this environment.
    pub fn palette(&self) -> Palette {
        self.palette
    }

    /// The next event, if there is one, without waiting.
    pub fn poll(&mut self) -> io::Result<Option<Told>> {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(event) => {
                    if let Some(told) = told(event) {
                        return Ok(Some(told));
                    }
                }
                Event::Resize(columns, rows) => {
                    self.size = (columns, rows);
                    self.before = None;
                }
                Event::FocusLost => return Ok(Some(Told::FocusLost)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Shows a frame: its difference from the last one, in one write.
    pub fn show(&mut self, frame: Frame) -> io::Result<()> {
        let changes = frame.changes(self.before.as_ref(), self.palette);
        if !changes.is_empty() {
            let mut bytes = Vec::with_capacity(changes.len() + 16);
            queue!(bytes, BeginSynchronizedUpdate)?;
            bytes.extend_from_slice(changes.as_bytes());
            queue!(bytes, EndSynchronizedUpdate)?;
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
        self.before = Some(frame);
        Ok(())
    }

    /// Restores the terminal.
    pub fn close(&mut self) {
        self.borrowed.give_back();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}

/// The changes made to the terminal.
struct Borrowed {
    is_open: AtomicBool,
    has_flags: AtomicBool,
}

impl Borrowed {
    /// Undoes all changes, once. If the terminal is gone, errors are ignored.
    fn give_back(&self) {
        if !self.is_open.swap(false, Ordering::SeqCst) {
            return;
        }
        let mut out = io::stdout();
        if self.has_flags.load(Ordering::SeqCst) {
            let _ = execute!(out, PopKeyboardEnhancementFlags);
        }
        let _ = execute!(out, DisableFocusChange, cursor::Show, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

fn told(event: KeyEvent) -> Option<Told> {
    let stroke = match event.kind {
        KeyEventKind::Press => Stroke::Press,
        KeyEventKind::Repeat => Stroke::Repeat,
        KeyEventKind::Release => Stroke::Release,
    };
    let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
    let key = match event.code {
        KeyCode::Char('c' | 'C') if is_control => Key::Quit,
        _ if is_control => return None,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Char(letter) => match letter.to_ascii_lowercase() {
            'w' => Key::Up,
            's' => Key::Down,
            'a' => Key::Left,
            'd' => Key::D,
            ' ' => Key::Space,
            'i' => Key::Panel,
            'g' => Key::Ghost,
            'k' => Key::Keep,
            'q' => Key::Quit,
            _ => return None,
        },
        _ => return None,
    };
    Some(Told::Key(key, stroke))
}
