//! A measurement's JSON (other machines' scripts write it, too), and its section of `docs/contributing/performance.md`
//! between `<!-- NAME -->` and `<!-- end -->`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::charts::{self, Bar, Group};
use super::curves::Curve;
use super::measure;
use super::page::{self, FOLDER, PAGE};
use crate::tools::Tools;

pub(super) const NAMES: [&str; 9] =
    ["compile", "check", "farm", "remote", "library", "build", "engine", "enqueue", "torch"];

const IN_BARS: &str = "enqueue";

const TIMES: &str = ", us";

const SUPERLINEAR: f64 = 1.1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) machine: String,
    pub(super) date: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) versions: String,
    pub(super) tables: Vec<Table>,
    #[serde(default)]
    pub(super) plots: Vec<Plot>,
}

pub(super) type Column<'a, T, C> = (&'a str, fn(&T) -> C);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Table {
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Cell {
    Number(f64),
    Text(String),
    /// The value was not measured, or is meaningless.
    Nothing(()),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Plot {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: String,
    pub(super) curves: Vec<Curve>,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Number(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Nothing(()), T::into)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl Report {
    pub(super) fn start(tools: &Tools, name: &str, command: String) -> Result<Report> {
        Ok(Report { versions: measure::versions(tools)?, ..Report::of_commit(name, command)? })
    }

    /// Starts a measurement that needs no NVRTC.
    pub(super) fn of_commit(name: &str, command: String) -> Result<Report> {
        Ok(Report {
            name: name.to_owned(),
            command,
            machine: measure::machine()?,
            date: measure::today()?,
            versions: format!("Cubinder of {}", measure::commit()?),
            tables: Vec::new(),
            plots: Vec::new(),
        })
    }

    pub(super) fn read(file: &Path) -> Result<Report> {
        let text = fs::read_to_string(file)?;
        let report: Report = serde_json::from_str(&text)
            .with_context(|| format!("cannot parse the result {}", file.display()))?;
        ensure!(
            NAMES.contains(&report.name.as_str()),
            "{}: unknown measurement `{}`; expected one of {}",
            file.display(),
            report.name,
            NAMES.join(", ")
        );
        let odd =
            report.tables.iter().find(|table| table.rows.iter().any(|row| row.len() != table.columns.len()));
        ensure!(
            odd.is_none(),
            "{}: a row of `{}` does not have one cell for each column",
            file.display(),
            odd.map_or("", |table| &table.title)
        );
        Ok(report)
    }

    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(super) fn section(&self) -> String {
        let mut text = format!("`{}`. {}, {}.", self.command, self.machine, self.date);
        if !self.versions.is_empty() {
            text.push_str(&format!(" {}.", self.versions));
        }
        text.push('\n');
        for table in &self.tables {
            text.push_str(&table.markdown());
        }
        for plot in &self.plots {
            text.push_str(&plot.growth().markdown());
            text.push_str(&format!("\n![{}](performance/{}.svg)\n", plot.title, self.figure_name(plot)));
        }
        if let Some(table) = self.in_bars() {
            text.push_str(&format!("\n![{}](performance/{}.svg)\n", table.title, self.name));
        }
        text
    }

    fn in_bars(&self) -> Option<&Table> {
        self.tables.first().filter(|_| self.name == IN_BARS)
    }

    pub(super) fn figures(&self) -> Result<Vec<(String, String)>> {
        let curves = self.plots.iter().map(|plot| {
            Ok((self.figure_name(plot), charts::growth(&plot.title, &plot.x, &plot.y, &plot.curves)?))
        });
        let bars =
            self.in_bars().map(|table| Ok((self.name.clone(), charts::bars(&table.title, &table.groups())?)));
        curves.chain(bars).collect()
    }

    fn figure_name(&self, plot: &Plot) -> String {
        format!("{}-{}", self.name, plot.name)
    }
}

impl Table {
    pub(super) fn new<T, C: Into<Cell>>(
        title: impl Into<String>,
        text: String,
        rows: &[T],
        columns: &[Column<'_, T, C>],
    ) -> Table {
        let cells = |row: &T| columns.iter().map(|(_, value)| value(row).into()).collect();
        Table {
            title: title.into(),
            text,
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: rows.iter().map(cells).collect(),
        }
    }

    fn markdown(&self) -> String {
        let mut text = format!("\n### {}\n\n", self.title);
        if !self.text.is_empty() {
            text.push_str(&format!("{}\n\n", self.text));
        }
        text + &self.grid()
    }

    pub(super) fn grid(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rows = self.rows.iter().map(|row| line(row.iter().map(cell_text).collect()));
        let rule = line(vec!["---".to_owned(); self.columns.len()]);
        line(self.columns.clone()) + &rule + &rows.collect::<String>()
    }

    fn groups(&self) -> Vec<Group> {
        let named = || self.columns.iter().map(|column| column.strip_suffix(TIMES));
        let group = |row: &Vec<Cell>| {
            let times = named().zip(row).filter_map(|(name, cell)| match cell {
                Cell::Number(time) => Some((name?, *time)),
                Cell::Text(_) | Cell::Nothing(()) => None,
            });
            let times: Vec<(&str, f64)> = times.collect();
            let first = times.first().map_or(f64::NAN, |(_, time)| *time);
            let bar = |(name, time): &(&str, f64)| {
                let length = time / first;
                Bar { name: (*name).to_owned(), length, text: format!("{} us, {length:.2}x", digits(*time)) }
            };
            let keys = self.columns.iter().zip(row).take_while(|(column, _)| !column.ends_with(TIMES));
            let label = keys.map(|(column, cell)| format!("{} {column}", cell_text(cell)).trim().to_owned());
            Group { label: label.collect::<Vec<_>>().join(", "), bars: times.iter().map(bar).collect() }
        };
        self.rows.iter().map(group).collect()
    }
}

impl Plot {
    pub(super) fn new(name: &str, title: &str, x: &str, y: &str, curves: Vec<Curve>) -> Plot {
        let [name, title, x, y] = [name, title, x, y].map(str::to_owned);
        Plot { name, title, x, y, curves }
    }

    fn growth(&self) -> Table {
        let power = |exponent: f64| match exponent > SUPERLINEAR {
            true => format!("**{exponent:.2}**"),
            false => format!("{exponent:.2}"),
        };
        let rows = self.curves.iter().filter_map(|curve| {
            let growth = curve.growth()?;
            let [from, to] = [growth.from, growth.to].map(|[x, y]| format!("{}: {}", digits(x), digits(y)));
            let exponent = growth.exponent.map_or(Cell::Nothing(()), |exponent| Cell::Text(power(exponent)));
            let steps = growth.steps.into_iter().map(power).collect::<Vec<_>>().join(", ");
            Some(vec![
                curve.name.as_str().into(),
                Cell::Text(from),
                Cell::Text(to),
                exponent,
                Cell::Text(steps),
            ])
        });
        Table {
            title: format!("How it grows: {}", self.title),
            text: format!(
                "{} by {}: the exponent of a power law fitted to the last three points of each curve, and the exponent of each step. 1 is linear. Exponents above {SUPERLINEAR} are bold.",
                self.y, self.x
            ),
            columns: ["", "from", "to", "exponent", "of each step"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }
}

fn cell_text(cell: &Cell) -> String {
    match cell {
        Cell::Number(value) => digits(*value),
        Cell::Text(text) => text.replace('|', "\\|").replace('\n', " "),
        Cell::Nothing(()) => "-".to_owned(),
    }
}

/// Three significant digits, or all of whole numbers.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        size if size < 0.1 => format!("{value:.4}"),
        size if size < 1.0 => format!("{value:.3}"),
        _ => three_digits(value),
    }
}

/// Two decimals below 10, one below 100, otherwise none.
pub(super) fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

pub(super) fn write(report: &Report, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(format!("{}.json", report.name)), report.json()?)?;
    for (name, figure) in report.figures()? {
        fs::write(folder.join(format!("{name}.svg")), figure)?;
    }
    Ok(())
}

pub(super) fn publish(root: &Path, file: &Path) -> Result<()> {
    let report = Report::read(file)?;
    let (_, after) = page(root, &report)?;
    write(&report, &root.join(FOLDER))?;
    fs::write(root.join(PAGE), after)?;
    Ok(())
}

fn page(root: &Path, report: &Report) -> Result<(String, String)> {
    page::edited(root, PAGE, &format!("<!-- {} -->", report.name), &report.section())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Report {
        Report {
            name: "check".to_owned(),
            command: "cargo xtask bench check".to_owned(),
            machine: "2 processors".to_owned(),
            date: "2026-11-22".to_owned(),
            versions: "Cubinder of 0123456789ab, NVRTC 13.0".to_owned(),
            tables: vec![Table {
                title: "Times".to_owned(),
                text: "In turn.".to_owned(),
                columns: vec!["manifests".to_owned(), "wall, ms".to_owned()],
                rows: vec![
                    vec![1.0.into(), 12.25.into()],
                    vec![1000.0.into(), 0.0123.into()],
                    vec!["a | b".into(), None::<f64>.into()],
                ],
            }],
            plots: vec![Plot {
                name: "time".to_owned(),
                title: "Time".to_owned(),
                x: "manifests".to_owned(),
                y: "ms".to_owned(),
                curves: vec![
                    Curve { name: "wall".to_owned(), points: vec![[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]] },
                    Curve { name: "worse".to_owned(), points: vec![[1.0, 2.0], [10.0, 200.0]] },
                    Curve { name: "one point".to_owned(), points: vec![[1.0, 2.0]] },
                ],
            }],
        }
    }

    #[test]
    fn times_of_an_enqueue_are_bars() {
        let columns = ["arguments", "", "Cubinder, us", "C++, us", "Cubinder / C++", "Python class, us"];
        let row = vec![16.0.into(), "graph".into(), 2.0.into(), 1.0.into(), 2.0.into(), Cell::Nothing(())];
        let table = Table {
            title: "Enqueue".to_owned(),
            text: String::new(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![row],
        };
        let groups = table.groups();
        let bars: Vec<(&str, f64, &str)> =
            groups[0].bars.iter().map(|bar| (bar.name.as_str(), bar.length, bar.text.as_str())).collect();
        assert_eq!(groups[0].label, "16 arguments, graph");
        assert_eq!(bars, [("Cubinder", 1.0, "2 us, 1.00x"), ("C++", 0.5, "1 us, 0.50x")]);
        let report =
            Report { name: "enqueue".to_owned(), tables: vec![table], plots: Vec::new(), ..example() };
        let figures: Vec<String> = report.figures().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(figures, ["enqueue"]);
        assert!(report.section().contains("![Enqueue](performance/enqueue.svg)"));
        let other = Report { name: "engine".to_owned(), ..report };
        assert!(other.figures().unwrap().is_empty());
    }

    #[test]
    fn a_section_has_tables_growth_and_pictures() {
        insta::assert_snapshot!(example().section());
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        write(&example(), folder.path()).unwrap();
        assert!(folder.path().join("check-time.svg").is_file());
        let file = folder.path().join("check.json");
        assert_eq!(Report::read(&file).unwrap(), example());
        std::fs::write(&file, example().json().unwrap().replace("\"check\"", "\"chess\"")).unwrap();
        assert!(Report::read(&file).unwrap_err().to_string().contains("unknown measurement `chess`"));
        let mut odd = example();
        odd.tables[0].rows[0].pop();
        std::fs::write(&file, odd.json().unwrap()).unwrap();
        assert!(Report::read(&file).unwrap_err().to_string().contains("a row of `Times`"));
    }

    #[test]
    fn a_result_without_versions_is_read_and_shown() {
        let old = Report { versions: String::new(), ..example() };
        let text = old.json().unwrap();
        assert!(!text.contains("versions"), "{text}");
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), old);
        assert!(old.section().starts_with("`cargo xtask bench check`. 2 processors, 2026-11-22.\n"));
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown: Vec<String> = [7.0, 0.01234, 0.1234, 1.234, 12.34, 1234.5].map(digits).to_vec();
        assert_eq!(shown, ["7", "0.0123", "0.123", "1.23", "12.3", "1234"]);
    }

    #[test]
    fn the_page_and_the_pictures_are_those_of_the_results() {
        let root = crate::workspace::root();
        for name in NAMES {
            let file = root.join(FOLDER).join(format!("{name}.json"));
            if !file.is_file() {
                continue;
            }
            let help = format!(
                "`cargo xtask bench publish docs/contributing/performance/{name}.json` regenerates it"
            );
            let report = Report::read(&file).unwrap();
            let (before, after) = page(&root, &report).unwrap();
            assert!(before == after, "{PAGE}, {name}: {help}");
            for (name, figure) in report.figures().unwrap() {
                let written = std::fs::read_to_string(root.join(FOLDER).join(format!("{name}.svg"))).unwrap();
                assert!(written == figure, "{name}: {help}");
            }
        }
    }
}
