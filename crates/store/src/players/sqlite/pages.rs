//! A reader of database pages without SQLite, for damaged or cut files.
//!
//! The layout is that of <https://sqlite.org/fileformat2.html>: a file of pages, each a node of a b-tree, an overflow
//! page or free; and beside it a write-ahead log of newer pages, which [`image`](super::image) puts over them. No input
//! is trusted: anything that does not fit is skipped and reported as missing.

use std::collections::BTreeSet;

use rusqlite::types::Value;

use super::schema::{Kind, Table};

/// The deepest possible tree: a page holds four cells at least.
const MAX_DEPTH: u32 = 20;

/// The longest row: setups are the longest.
const MAX_ROW_BYTES: usize = 1 << 20;

/// The most columns of a record in these tables.
const MAX_COLUMNS: usize = 16;

/// The file's header, before the first page's own.
const HEADER_BYTES: usize = 100;

/// A source of pages.
pub trait Pages {
    /// A page by its number, from 1 on; `None` if it is not there as a whole.
    fn page(&mut self, number: u32) -> Option<Vec<u8>>;

    /// The highest possible page number.
    fn count(&self) -> u32;
}

/// A row, in the order of its table's columns.
pub type Row = Vec<Value>;

/// The receiver of rows.
pub type EachRow<'a> = &'a mut dyn FnMut(Row);

/// The parsed part of a b-tree page.
struct Node {
    bytes: Vec<u8>,
    is_leaf: bool,
    has_row_ids: bool,
    cells: Vec<usize>,
    /// The child behind all cells of an inner page.
    last_child: Option<u32>,
}

impl Node {
    fn parse(number: u32, bytes: Vec<u8>) -> Option<Node> {
        let at = if number == 1 { HEADER_BYTES } else { 0 };
        let (is_leaf, has_row_ids) = match bytes.get(at)? {
            2 => (false, false),
            5 => (false, true),
            10 => (true, false),
            13 => (true, true),
            _ => return None,
        };
        let count = usize::from(u16_at(&bytes, at + 3)?);
        let first = at + if is_leaf { 8 } else { 12 };
        let pointers = bytes.get(first..first + 2 * count)?;
        let cells = pointers.chunks_exact(2).map(|pair| usize::from(u16::from_be_bytes([pair[0], pair[1]])));
        let cells = cells.collect();
        let last_child = (!is_leaf).then(|| u32_at(&bytes, at + 8)).flatten();
        Some(Node { bytes, is_leaf, has_row_ids, cells, last_child })
    }
}

/// Reads all rows of a table from its root on. Returns whether all of it could be read; adds visited pages to `met`.
pub fn walk(
    pages: &mut dyn Pages,
    root: u32,
    table: &Table,
    met: &mut BTreeSet<u32>,
    each: EachRow<'_>,
) -> bool {
    walk_at(pages, root, table, met, each, 0)
}

fn walk_at(
    pages: &mut dyn Pages,
    number: u32,
    table: &Table,
    met: &mut BTreeSet<u32>,
    each: EachRow<'_>,
    depth: u32,
) -> bool {
    if depth > MAX_DEPTH || !met.insert(number) {
        return false;
    }
    let node = pages.page(number).and_then(|bytes| Node::parse(number, bytes));
    let Some(node) = node else { return false };
    let mut is_whole = true;
    for at in node.cells.iter().copied() {
        if !node.is_leaf {
            let child = u32_at(&node.bytes, at);
            is_whole &= child.is_some_and(|child| walk_at(pages, child, table, met, &mut *each, depth + 1));
        }
        // An inner page of a table with row ids has keys only.
        if node.is_leaf || !node.has_row_ids {
            match read_cell(pages, &node, at, Some(met)).and_then(|cell| cell.row_of(table)) {
                Some(row) => each(row),
                None => is_whole = false,
            }
        }
    }
    let last = node.last_child;
    is_whole & last.is_none_or(|child| walk_at(pages, child, table, met, each, depth + 1))
}

/// Reads the rows on one page, whatever tree it was part of, and guesses the table of each.
pub fn rows_on(
    pages: &mut dyn Pages,
    number: u32,
    bytes: Vec<u8>,
    tables: &'static [Table],
    each: &mut dyn FnMut(&'static Table, Row),
) {
    let Some(node) = Node::parse(number, bytes).filter(|node| node.is_leaf || !node.has_row_ids) else {
        return;
    };
    for at in node.cells.iter().copied() {
        let Some(cell) = read_cell(pages, &node, at, None) else { continue };
        let found = tables.iter().find_map(|table| Some((table, cell.row_of(table)?)));
        if let Some((table, row)) = found {
            each(table, row);
        }
    }
}

/// The roots of tables by name, as far as the schema can be read.
pub fn roots(pages: &mut dyn Pages, met: &mut BTreeSet<u32>) -> Vec<(String, u32)> {
    const SCHEMA: Table = Table {
        name: "sqlite_schema",
        columns: &[
            ("type", Kind::Text),
            ("name", Kind::Text),
            ("tbl_name", Kind::Text),
            ("rootpage", Kind::Integer),
            ("sql", Kind::TextOrNull),
        ],
        newest: super::schema::Newest::Unknown,
    };
    let mut roots = Vec::new();
    walk(pages, 1, &SCHEMA, met, &mut |row| {
        if let [_, Value::Text(name), _, Value::Integer(root), _] = &row[..]
            && let Ok(root) = u32::try_from(*root)
        {
            roots.push((name.clone(), root));
        }
    });
    roots
}

/// The free pages: their content is stale.
pub fn free_pages(pages: &mut dyn Pages) -> BTreeSet<u32> {
    let mut free = BTreeSet::new();
    let mut trunk = pages.page(1).and_then(|bytes| u32_at(&bytes, 32)).unwrap_or(0);
    while trunk != 0 && free.insert(trunk) {
        let Some(bytes) = pages.page(trunk) else { break };
        let count = u32_at(&bytes, 4).unwrap_or(0) as usize;
        free.extend((0..count).map_while(|at| u32_at(&bytes, 8 + 4 * at)));
        trunk = u32_at(&bytes, 0).unwrap_or(0);
    }
    free
}

/// A record that is not matched to a table yet.
struct Cell {
    row_id: Option<i64>,
    values: Vec<Value>,
}

impl Cell {
    /// Converts it to a row of the table, if it can be one.
    fn row_of(&self, table: &Table) -> Option<Row> {
        if self.values.len() != table.columns.len() {
            return None;
        }
        let is_by_row_id = table.columns[0].1 == Kind::RowId || table.name == "sqlite_schema";
        if is_by_row_id != self.row_id.is_some() {
            return None;
        }
        let fits = |(value, (_, kind)): (&Value, &(&str, Kind))| match (kind, value) {
            (Kind::RowId, Value::Null) => Some(Value::Integer(self.row_id?)),
            (Kind::Integer, Value::Integer(_))
            | (Kind::Text | Kind::TextOrNull, Value::Text(_))
            | (Kind::TextOrNull, Value::Null)
            | (Kind::Blob, Value::Blob(_)) => Some(value.clone()),
            _ => None,
        };
        self.values.iter().zip(table.columns).map(fits).collect()
    }
}

fn read_cell(pages: &mut dyn Pages, node: &Node, at: usize, met: Option<&mut BTreeSet<u32>>) -> Option<Cell> {
    let mut rest = node.bytes.get(at..)?;
    if !node.is_leaf {
        rest = rest.get(4..)?;
    }
    let length = usize::try_from(varint(&mut rest)?).ok().filter(|length| *length <= MAX_ROW_BYTES)?;
    let row_id = match node.has_row_ids {
        true => Some(varint(&mut rest)?.cast_signed()),
        false => None,
    };
    let local = local_bytes(node, length);
    let mut payload = rest.get(..local)?.to_vec();
    if local < length {
        let mut next = u32_at(rest, local)?;
        let mut met = met;
        while payload.len() < length {
            let page = pages.page(next)?;
            if let Some(met) = &mut met {
                met.insert(next);
            }
            next = u32_at(&page, 0)?;
            let take = (length - payload.len()).min(page.len() - 4);
            payload.extend_from_slice(page.get(4..4 + take)?);
        }
    }
    Some(Cell { row_id, values: record(&payload)? })
}

/// How much of a record lies on the page itself. No page here has reserved bytes.
fn local_bytes(node: &Node, length: usize) -> usize {
    let usable = node.bytes.len();
    let most = match node.has_row_ids {
        true => usable - 35,
        false => (usable - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return length;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let wanted = least + (length - least) % (usable - 4);
    if wanted <= most { wanted } else { least }
}

fn record(payload: &[u8]) -> Option<Vec<Value>> {
    let mut head = payload;
    let head_bytes = usize::try_from(varint(&mut head)?).ok()?;
    let taken = payload.len() - head.len();
    let mut head = payload.get(taken..head_bytes)?;
    let mut body = payload.get(head_bytes..)?;
    let mut values = Vec::new();
    while !head.is_empty() {
        if values.len() == MAX_COLUMNS {
            return None;
        }
        values.push(value(varint(&mut head)?, &mut body)?);
    }
    Some(values)
}

/// One column, by its serial type.
fn value(serial: u64, body: &mut &[u8]) -> Option<Value> {
    let bytes = match serial {
        0 | 8 | 9 => 0,
        1..=4 => serial as usize,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        longer => usize::try_from((longer - 12) / 2).ok()?,
    };
    let (own, rest) = body.split_at_checked(bytes)?;
    *body = rest;
    Some(match serial {
        0 => Value::Null,
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        1..=6 => {
            let is_negative = own.first().is_some_and(|byte| byte & 0x80 != 0);
            let begin = if is_negative { -1 } else { 0 };
            Value::Integer(own.iter().fold(begin, |all: i64, byte| all << 8 | i64::from(*byte)))
        }
        7 => Value::Real(f64::from_be_bytes(own.try_into().ok()?)),
        even if even % 2 == 0 => Value::Blob(own.to_vec()),
        _ => Value::Text(String::from_utf8(own.to_vec()).ok()?),
    })
}

/// Seven bits a byte, the highest first; of a ninth byte all eight.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 {
            return Some(number << 8 | u64::from(*byte));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
