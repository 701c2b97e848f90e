//! What to read, and in which order: the runs and commits of each table, by age.

use super::entries::is_index;
use super::fates::Fates;
use super::identity::Identity;
use super::input::Input;
use super::log::{Commits, Log};
use super::report::SalvageReport;
use super::runs::{RunPlan, covers_of};
use super::scan::{Found, FoundRun};
use crate::base::hash::hash_bytes;
use crate::base::key::{TableKind, head_of};
use crate::format::block::Block;
use crate::format::feed::FEED_NAME;
use crate::format::few::Few;
use crate::format::frame::{RecordPart, TableChange};
use crate::format::hidden::parse_name;
use crate::format::manifest::{Manifest, RunInfo};
use crate::format::ranges::{Range, Ranges};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most covers of newer runs that count. Beyond that, deleted records may come back.
const COVERS_MAX: usize = 4096;

/// The age of runs of unknown age. They come last, and their records count only where nothing else has the
/// key.
pub(super) const UNKNOWN_AGE: u64 = u64::MAX;

/// Of several tables that were dropped so many are named in one line.
const DROPPED_NAMED: usize = 8;

/// What has one age: commits, or the partitions of one level.
#[derive(Default)]
pub(super) struct Group {
    pub(super) parts: Vec<RecordPart>,
    pub(super) runs: Vec<RunPlan>,
}

/// One table.
pub(super) struct TablePlan {
    pub(super) name: String,
    pub(super) kind: TableKind,
    /// How long its records live if nothing else is said, in milliseconds. 0: until they are removed. None:
    /// nothing tells.
    pub(super) ttl_ms: Option<u64>,
    /// Oldest first. Without a manifest a key is twice the number of a commit or a run's `newest`, plus one
    /// for runs: a commit comes before the runs that hold it.
    pub(super) ages: BTreeMap<u64, Group>,
}

/// All tables, by their ids.
pub(super) type Plan = BTreeMap<u32, TablePlan>;

/// The plan of the newest manifest.
pub(super) fn by_manifest(
    input: &Input,
    (identity, hash_seed): (Identity, Option<u64>),
    manifest: &Manifest,
    mut found: Found,
    log: Log,
    report: &mut SalvageReport,
) -> Plan {
    let mut plan = Plan::new();
    for table in &manifest.tables {
        let mut ages = BTreeMap::new();
        for (age, level) in table.levels.iter().rev().enumerate() {
            let mut group = Group::default();
            for info in &level.runs {
                let pages = found.runs.remove(&info.id).unwrap_or_default();
                let run = RunPlan::named(input, identity, info, pages);
                if run.fence.is_none() && info.ranges > 0 {
                    let text =
                        format!("the range deletes of run {} are lost: what they deleted is back", info.id);
                    report.lose(format!("table {:?}: {text}", table.name));
                }
                group.runs.push(run);
            }
            ages.insert(age as u64, group);
        }
        let (name, ttl_ms) = (table.name.to_string(), Some(table.ttl_ms));
        plan.insert(table.id, TablePlan { name, kind: table.kind, ttl_ms, ages });
    }
    for (id, few) in &manifest.few {
        if let Some(table) = plan.get_mut(id) {
            table.ages.entry(0).or_default().parts.push(part_of(*id, few, Ranges::none()));
        }
    }
    let fates = Fates::of(&log.commits);
    let known_until = manifest.tables_seq.unwrap_or(manifest.flushed_seq);
    add_young(&mut plan, (manifest, known_until), &log, &fates, hash_seed, report);
    let commits = log.commits;
    if report.log_gaps > 0 {
        report_unknown(
            &plan,
            commits.range(known_until.saturating_add(1)..).flat_map(|c| &c.1.parts),
            report,
        );
    }
    for (seq, commit) in commits {
        for part in commit.parts {
            if let Some(table) = plan.get_mut(&part.table) {
                // Behind all levels, whose ages are far smaller.
                table.ages.entry((1 << 63) + seq).or_default().parts.push(part);
            }
        }
    }
    meet(&mut plan, &fates, |_| AsOf { name: known_until, there: known_until, ttl: known_until }, report);
    plan
}

/// Adds tables that the manifest does not name. One whose id it has given out was dropped, and nothing of it
/// is needed, unless it was made later. The commit that made it may be lost: a table that is written to since
/// then seems to be there.
fn add_young(
    plan: &mut Plan,
    (manifest, known_until): (&Manifest, u64),
    log: &Log,
    fates: &Fates,
    hash_seed: Option<u64>,
    report: &mut SalvageReport,
) {
    let is_made = |id| id >= manifest.next_table || fates.is_made_after(id, known_until);
    let is_used = |id| report.log_gaps > 0 && log.used_since.contains(&id) && !fates.is_made(id);
    let is_young = |id| is_made(id) || is_used(id) && !is_index(id, &log.commits, hash_seed);
    let parts = || log.commits.values().flat_map(|commit| &commit.parts);
    let unnamed: BTreeSet<u32> = parts().map(|part| part.table).filter(|id| !plan.contains_key(id)).collect();
    let young: BTreeSet<u32> = unnamed.into_iter().filter(|&id| is_young(id)).collect();
    for (id, table) in logged(parts().filter(|part| young.contains(&part.table)), hash_seed) {
        if !is_made(id) {
            report.lose(format!("table {id}: the commit that made it is lost, or it was dropped"));
        }
        plan.insert(id, table.plan(id, report));
    }
}

/// Reports tables that may have been made by commits that are lost. If somebody has dropped them since,
/// nothing else tells it.
fn report_unknown<'a>(plan: &Plan, parts: impl Iterator<Item = &'a RecordPart>, report: &mut SalvageReport) {
    let is_unknown = |part: &&RecordPart| part.change.is_none() && !plan.contains_key(&part.table);
    let unknown: BTreeSet<u32> = parts.filter(is_unknown).map(|part| part.table).collect();
    for id in unknown {
        report.lose(format!("commits to table {id}, which was dropped, or made by a commit that is lost"));
    }
}

/// Puts runs and commits into their tables, each at its age.
fn place(plan: &mut Plan, mut ages: Vec<(u32, u64, u64, RunPlan)>, mut parts: Vec<(u64, RecordPart)>) {
    hide(&mut ages, &mut parts);
    for (table, newest, _, run) in ages {
        if let Some(table) = plan.get_mut(&table) {
            let age = if run.has_age { newest * 2 + 1 } else { UNKNOWN_AGE };
            table.ages.entry(age).or_default().runs.push(run);
        }
    }
    for (seq, part) in parts {
        if let Some(table) = plan.get_mut(&part.table) {
            table.ages.entry(seq * 2).or_default().parts.push(part);
        }
    }
}

/// The plan made from what runs and commits say about themselves, and from an older manifest if there is one.
pub(super) fn by_identity(
    (identity, hash_seed): (Identity, Option<u64>),
    older: Option<&Manifest>,
    found: Found,
    commits: Commits,
    report: &mut SalvageReport,
) -> Plan {
    let mut plan = Plan::new();
    let known = older.map(Known::of).unwrap_or_default();
    let mut ages: Vec<(u32, u64, u64, RunPlan)> = Vec::new();
    let mut names = Names::new();
    for (id, run) in found.runs {
        let info = known.runs.get(&id);
        let Some((table, kind)) = owner(&run).or_else(|| known.owner(id)) else { continue };
        let newest = run.label.as_ref().map(|l| l.origin.newest).or(info.map(|i| i.1)).unwrap_or(0);
        if let Some(label) = &run.label {
            let name = (newest, id, label.origin.name.to_string());
            let newer = names.get(&table).is_none_or(|n| (n.0, n.1) < (newest, id));
            if newer {
                names.insert(table, name);
            }
        }
        plan.entry(table).or_insert_with(|| TablePlan {
            name: String::new(),
            kind,
            ttl_ms: None,
            ages: BTreeMap::new(),
        });
        ages.push((table, newest, id, RunPlan::found(identity, id, run, info.map(|i| i.2))));
    }
    let fates = Fates::of(&commits);
    let mut parts: Vec<(u64, RecordPart)> = Vec::new();
    commits.into_iter().for_each(|(seq, commit)| parts.extend(commit.parts.into_iter().map(|p| (seq, p))));
    let mut logged = logged(parts.iter().map(|p| &p.1), hash_seed);
    if let Some(older) = older {
        // At the manifest's last commit a small table has these records and no others.
        let mut all = Ranges::default();
        all.add(Range { start: Vec::new(), end: None });
        let few = older.few.iter().map(|(id, few)| (older.flushed_seq, part_of(*id, few, all.clone())));
        parts.extend(few);
        parts.sort_by_key(|p| p.0);
    }
    logged.extend(known.tables.iter().map(|(id, table)| (*id, table.clone())));
    for (id, table) in logged {
        match plan.get_mut(&id) {
            Some(planned) => {
                (planned.name, planned.ttl_ms) = (table.name.unwrap_or_default(), table.ttl_ms);
            }
            None => drop(plan.insert(id, table.plan(id, report))),
        }
    }
    place(&mut plan, ages, parts);
    name_all(&mut plan, &names, &known);
    meet(&mut plan, &fates, |id| known.as_of(id, names.get(&id).map_or(0, |label| label.0)), report);
    plan
}

/// Names of tables as labels of runs have them: up to which commit, in which run, and the name.
type Names = HashMap<u32, (u64, u64, String)>;

/// Gives tables the names that labels have for them, unless an older manifest names them. Each gets some
/// name.
fn name_all(plan: &mut Plan, names: &Names, known: &Known<'_>) {
    for (id, table) in plan {
        match names.get(id) {
            Some((_, _, name)) if !known.tables.contains_key(id) => table.name.clone_from(name),
            _ if table.name.is_empty() => table.name = format!("table-{id}"),
            _ => {}
        }
    }
}

/// Up to which commits it is known of a table what the plan says of it.
struct AsOf {
    name: u64,
    /// When it is last known to have been there.
    there: u64,
    ttl: u64,
}

/// Gives tables their newest names and times to live, leaves out what was dropped, and reports that.
fn meet(plan: &mut Plan, fates: &Fates, known_as_of: impl Fn(u32) -> AsOf, report: &mut SalvageReport) {
    let mut gone = Vec::new();
    plan.retain(|&id, table| {
        let as_of = known_as_of(id);
        if let Some(name) = fates.name_after(id, as_of.name) {
            table.name = name.to_owned();
        }
        table.ttl_ms = fates.ttl_after(id, as_of.ttl).or(table.ttl_ms);
        let dropped = fates.dropped_after(id, as_of.there);
        gone.extend(dropped.map(|seq| (what_is(&table.name), seq)));
        dropped.is_none()
    });
    report_dropped(&gone, report);
}

fn what_is(name: &str) -> String {
    match parse_name(name) {
        Some((table, index)) => format!("index {index:?} of table {table}"),
        None if name == FEED_NAME => "the feed of changes".into(),
        None => format!("table {name:?}"),
    }
}

/// Reports tables that are left out, and which commits have dropped them. Where all of the log is there it is
/// no loss. It is seldom one elsewhere, so all of them are one line among the losses.
fn report_dropped(gone: &[(String, u64)], report: &mut SalvageReport) {
    let text = |(what, seq): &(String, u64)| format!("{what} is left out: commit {seq} has dropped it");
    if report.manifest && report.log_gaps == 0 || gone.len() > 1 {
        report.notes.extend(gone.iter().map(text));
    }
    if report.manifest && report.log_gaps == 0 {
        return;
    }
    match gone {
        [] => {}
        [one] => report.lose(text(one)),
        [..] => {
            let first: Vec<&str> = gone.iter().take(DROPPED_NAMED).map(|(what, _)| what.as_str()).collect();
            let more = if gone.len() > first.len() { ", and others" } else { "" };
            let (count, first) = (gone.len(), first.join(", "));
            report.lose(format!(
                "{count} tables and indexes are left out, for commits have dropped them: {first}{more}"
            ));
        }
    }
}

/// What an older manifest says.
#[derive(Default)]
struct Known<'a> {
    /// The commit up to which it knows of tables.
    until: u64,
    tables: HashMap<u32, Told>,
    /// For each run its table, its age, and where it is.
    runs: HashMap<u64, (u32, u64, &'a RunInfo)>,
}

impl Known<'_> {
    fn of(manifest: &Manifest) -> Known<'_> {
        let until = manifest.tables_seq.unwrap_or(manifest.flushed_seq);
        let mut known = Known { until, ..Known::default() };
        for table in &manifest.tables {
            let (name, kind, ttl_ms) = (Some(table.name.to_string()), Some(table.kind), Some(table.ttl_ms));
            known.tables.insert(table.id, Told { name, kind, ttl_ms });
            for level in &table.levels {
                known.runs.extend(level.runs.iter().map(|r| (r.id, (table.id, level.newest, r))));
            }
        }
        known
    }

    /// The table of a run, and the table's kind.
    fn owner(&self, run: u64) -> Option<(u32, TableKind)> {
        let table = self.runs.get(&run)?.0;
        Some((table, self.tables.get(&table)?.kind?))
    }

    /// Up to which commits it is known what the plan says of a table whose newest label is of commit `label`.
    fn as_of(&self, id: u32, label: u64) -> AsOf {
        if self.tables.contains_key(&id) {
            return AsOf { name: self.until, there: self.until.max(label), ttl: self.until };
        }
        // Labels say nothing of times.
        AsOf { name: label, there: label, ttl: 0 }
    }
}

/// The table of a run and its kind, as the run says.
fn owner(run: &FoundRun) -> Option<(u32, TableKind)> {
    let by_label = run.label.as_ref().map(|l| (l.origin.table, l.origin.kind));
    by_label.or(run.place.map(|p| (p.table, p.kind)))
}

/// What the log, or an older manifest, says of a table.
#[derive(Default, Clone)]
struct Told {
    name: Option<String>,
    kind: Option<TableKind>,
    /// As in the plan.
    ttl_ms: Option<u64>,
}

/// The tables of commits: as the commit says that made the table, else as the keys suggest.
fn logged<'a>(
    parts: impl IntoIterator<Item = &'a RecordPart>,
    hash_seed: Option<u64>,
) -> BTreeMap<u32, Told> {
    let mut tables = BTreeMap::<u32, Told>::new();
    // Neither says that there is a table.
    let says_nothing = |change: &_| matches!(change, Some(TableChange::Dropped(_) | TableChange::Lives(..)));
    for part in parts.into_iter().filter(|part| !says_nothing(&part.change)) {
        let table = tables.entry(part.table).or_default();
        match &part.change {
            Some(TableChange::Made(made)) => {
                let ttl_ms = Some(made.ttl_ms);
                *table = Told { name: Some(made.name.to_string()), kind: Some(made.kind), ttl_ms };
            }
            Some(_) => {}
            None => table.kind = table.kind.or_else(|| kind_of(&part.block, hash_seed)),
        }
    }
    tables
}

impl Told {
    fn plan(self, id: u32, report: &mut SalvageReport) -> TablePlan {
        if self.kind.is_none() {
            report.lose(format!("table {id}: of which kind it is; it is taken for an ordered one"));
        }
        let name = self.name.unwrap_or_else(|| format!("table-{id}"));
        let kind = self.kind.unwrap_or(TableKind::Ordered);
        TablePlan { name, kind, ttl_ms: self.ttl_ms, ages: BTreeMap::new() }
    }
}

/// The kind of a table with these sort keys, if they show it. Keys of eight bytes do not.
fn kind_of(block: &Block, hash_seed: Option<u64>) -> Option<TableKind> {
    let mut tmp = [0; 8];
    (0..block.len()).find_map(|i| match (block.key(i, &mut tmp), hash_seed) {
        (key, _) if key.len() < 8 => Some(TableKind::Ordered),
        (key, Some(seed)) if key.len() > 8 => {
            let user: &[u8] = if key.len() == 16 { &[] } else { &key[8..] };
            Some(if hash_bytes(user, seed) == head_of(key) { TableKind::Hash } else { TableKind::Ordered })
        }
        _ => None,
    })
}

/// The records of a small table, as a part of a commit.
fn part_of(table: u32, few: &Few, ranges: Ranges) -> RecordPart {
    RecordPart { table, change: None, segments: Vec::new(), ranges, block: few.to_block() }
}

/// Stretches of a table's keys for which nothing older than a run counts.
struct Cover {
    table: u32,
    newest: u64,
    id: u64,
    stretches: Vec<Range>,
}

/// Tells each run what newer runs cover, and removes that from commits.
fn hide(runs: &mut [(u32, u64, u64, RunPlan)], parts: &mut [(u64, RecordPart)]) {
    runs.sort_by_key(|r| (r.1, r.2));
    let mut covers: Vec<Cover> = Vec::new();
    for (table, newest, id, run) in runs.iter().rev() {
        let stretches = if covers.len() < COVERS_MAX { covers_of(run) } else { Vec::new() };
        if !stretches.is_empty() {
            covers.push(Cover { table: *table, newest: *newest, id: *id, stretches });
        }
    }
    // For a run without an age it is not known which runs are newer.
    for (table, newest, id, run) in runs.iter_mut().filter(|r| r.3.has_age) {
        let newer = covers.iter().filter(|c| c.table == *table && (c.newest, c.id) > (*newest, *id));
        newer.flat_map(|c| &c.stretches).for_each(|range| run.hidden.add(range.clone()));
    }
    let mut hidden: HashMap<u32, Ranges> = HashMap::new();
    let mut left = covers.iter().peekable();
    for (seq, part) in parts.iter_mut().rev() {
        while let Some(cover) = left.next_if(|c| c.newest >= *seq) {
            let hidden = hidden.entry(cover.table).or_default();
            cover.stretches.iter().for_each(|range| hidden.add(range.clone()));
        }
        if let Some(hidden) = hidden.get(&part.table) {
            part.block = without(&part.block, hidden);
        }
    }
}

/// The records of a block whose keys are not in the ranges.
fn without(block: &Block, ranges: &Ranges) -> Block {
    let mut out = Block::new(block.fixed);
    let mut tmp = [0; 8];
    for i in 0..block.len() {
        let key = block.key(i, &mut tmp);
        if !ranges.covers(key) {
            out.push(key, block.tag(i), block.value(i));
        }
    }
    out
}
