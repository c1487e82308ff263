//! The terminal that is played on: borrowed for as long as the game lasts, and given back as it was whatever happens.

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

/// What the terminal tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Something happened to a key that means something.
    Key(Key, Stroke),
    /// Another window has the keyboard.
    FocusLost,
}

/// A terminal that is being played on.
pub struct Terminal {
    borrowed: Arc<Borrowed>,
    tells_releases: bool,
    palette: Palette,
    size: (u16, u16),
    before: Option<Frame>,
}

impl Terminal {
    /// Whether there is one to play on.
    pub fn is_there() -> bool {
        io::stdout().is_terminal()
    }

    /// Takes the terminal. It is given back when this is dropped or closed, and before a panic says what happened.
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
        // It answers, or answers what every terminal answers; one that does neither costs two seconds.
        if terminal::supports_keyboard_enhancement().unwrap_or(false) {
            let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
                | KeyboardEnhancementFlags::REPORT_EVENT_TYPES;
            execute!(out, PushKeyboardEnhancementFlags(flags))?;
            terminal.borrowed.has_flags.store(true, Ordering::SeqCst);
            terminal.tells_releases = true;
        }
        Ok(terminal)
    }

    /// Whether it tells when a key is let go.
    pub fn tells_releases(&self) -> bool {
        self.tells_releases
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// With what it draws.
    pub fn palette(&self) -> Palette {
        self.palette
    }

    /// What it tells next, if anything, without waiting.
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

    /// Shows a frame: what differs from the last, in one write.
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

    /// Gives the terminal back as it was.
    pub fn close(&mut self) {
        self.borrowed.give_back();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}

/// What has been done to the terminal.
struct Borrowed {
    is_open: AtomicBool,
    has_flags: AtomicBool,
}

impl Borrowed {
    /// Undoes everything, once. A terminal that has gone away needs nothing any more.
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
