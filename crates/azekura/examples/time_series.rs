//! What sensors have measured: the newest, a stretch of time, means by the hour, and an end for what is old.
//!
//! The key is (sensor, time), so that one sensor's measurements are side by side, in the order of time.

use azekura::{Db, Durability, Options, Result, TableDefinition, TypedTable};

/// Degrees by sensor and second. Times before 1970 come first, as they should.
const HEAT: TableDefinition<(String, i64), f64> = TableDefinition::ordered("heat");

const HOUR: i64 = 3600;

/// The newest measurement of a sensor: the last of its stretch.
fn newest(heat: &TypedTable<(String, i64), f64>, sensor: &str) -> Result<Option<(i64, f64)>> {
    let record = heat.prefix((sensor,))?.next_back().transpose()?;
    Ok(record.map(|((_, time), degrees)| (time, degrees)))
}

/// The means of the hours from one time on and before another.
fn hourly(
    heat: &TypedTable<(String, i64), f64>,
    sensor: &str,
    from: i64,
    to: i64,
) -> Result<Vec<(i64, f64)>> {
    let mut hours: Vec<(i64, f64, f64)> = Vec::new();
    for record in heat.range((sensor, from)..(sensor, to))? {
        let ((_, time), degrees) = record?;
        let hour = time.div_euclid(HOUR) * HOUR;
        match hours.last_mut() {
            Some((last, sum, n)) if *last == hour => {
                *sum += degrees;
                *n += 1.0;
            }
            _ => hours.push((hour, degrees, 1.0)),
        }
    }
    Ok(hours.into_iter().map(|(hour, sum, n)| (hour, sum / n)).collect())
}

/// The sensors there are: from one to the next by a step over all that it has measured.
fn sensors(heat: &TypedTable<(String, i64), f64>) -> Result<Vec<String>> {
    let mut cursor = heat.cursor()?;
    let mut names = Vec::new();
    while let Some(((name, _), _)) = cursor.next()? {
        let name = name.into_owned();
        // The smallest name that can follow.
        cursor.seek((&format!("{name}\0"), i64::MIN))?;
        names.push(name);
    }
    Ok(names)
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("azekura-time-series-{}.azk", std::process::id()));
    // What is measured again in a second may be lost with the power: such commits take no wait.
    let db = Db::open(&path, Options::new().durability(Durability::Eventual))?;
    let heat = db.typed_table(&HEAT)?;

    let start = -2 * HOUR;
    for minute in 0..6 * 60 {
        let time = start + minute * 60;
        let hour = (minute / 60) as f64;
        heat.put_many([(("cellar", time), 12.0), (("roof", time), 20.0 + hour)])?;
    }

    assert_eq!(sensors(&heat)?, ["cellar", "roof"]);
    assert_eq!(newest(&heat, "roof")?, Some((start + 359 * 60, 25.0)));
    assert_eq!(newest(&heat, "attic")?, None);
    assert_eq!(
        hourly(&heat, "roof", -HOUR, 2 * HOUR)?,
        [(-HOUR, 21.0), (0, 22.0), (HOUR, 23.0)],
        "the mean of each hour"
    );

    // What is older than two hours goes, of each sensor by one step, however much it is.
    let end = start + 360 * 60;
    for sensor in sensors(&heat)? {
        heat.remove_range((sensor.as_str(), i64::MIN)..(sensor.as_str(), end - 2 * HOUR))?;
    }
    assert_eq!(heat.count()?, 2 * 120);
    assert_eq!(heat.first()?, Some((("cellar".to_owned(), end - 2 * HOUR), 12.0)));

    // A report sees one moment, whatever is measured meanwhile.
    let snapshot = db.read();
    heat.put(("roof", end), 99.0)?;
    assert_eq!(heat.read_in(&snapshot).get(("roof", end))?, None);
    assert_eq!(newest(&heat, "roof")?, Some((end, 99.0)));

    drop((snapshot, heat));
    db.close()?;
    std::fs::remove_file(&path).expect("the example's file");
    Ok(())
}
