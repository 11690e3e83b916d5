//! Tables for people: aligned columns, two blanks between them, nothing after the last.

/// On which side a column's cells line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// What stands for a value that there is none of.
pub(crate) const NONE: &str = "-";

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; an empty cell is shown as a dash.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(
            cells.into_iter().map(|cell| if cell.is_empty() { NONE.to_owned() } else { cell }).collect(),
        );
    }

    /// The table as text, one line a row, each ended by a newline.
    pub(crate) fn render(&self) -> String {
        let heading: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&heading).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                lines.iter().filter_map(|line| line.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        lines.into_iter().map(|line| self.line(line, &widths)).collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = self.columns.iter().zip(cells).zip(widths).map(|(((_, align), cell), full)| {
            let gap = " ".repeat(full.saturating_sub(width(cell)));
            match align {
                Align::Left => format!("{cell}{gap}"),
                Align::Right => format!("{gap}{cell}"),
            }
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    }
}

/// All names and sizes shown are of narrow characters.
fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_with_their_last_cell() {
        let mut table = Table::new(&[("NAME", Align::Left), ("SIZE", Align::Right), ("STATE", Align::Left)]);
        table.row(["a-long-name".to_owned(), "1 GiB".to_owned(), "active".to_owned()]);
        table.row(["b".to_owned(), "512 MiB".to_owned(), String::new()]);
        assert_eq!(
            table.render(),
            "NAME            SIZE  STATE\na-long-name    1 GiB  active\nb            512 MiB  -\n"
        );
    }
}
