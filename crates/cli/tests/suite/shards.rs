//! `azekura shards`.

use azekura_shards::{Draft, Spec, hash_of};

use crate::common::Place;

fn write_set(place: &Place, name: &str, records: u64, value: &str) {
    let draft = Draft::begin(place.path(name), &Spec::hash(4)).expect("a draft");
    let mut keys: Vec<[u8; 8]> = (0..records).map(u64::to_be_bytes).collect();
    keys.sort_by_key(|key| hash_of(key, 0));
    let mut files = Vec::new();
    for shard in 0..4 {
        let mut writer = draft.writer(shard, "a").expect("a writer");
        for key in keys.iter().filter(|key| draft.spec().shard_of(*key) == Some(shard)) {
            writer.put(key, value.as_bytes()).expect("a record");
        }
        files.push(writer.finish().expect("a shard"));
    }
    draft.commit(&files).expect("a version");
}

#[test]
fn a_set_is_described_verified_merged_and_compacted() {
    let place = Place::new();
    write_set(&place, "t.azs", 1000, "old");
    write_set(&place, "delta.azs", 10, "new");
    let info = place.run(["shards", "info", "t.azs"]).succeeds();
    for line in ["version", "shards   4, 4 of them with records", "records  1,000", "key      key bytes"] {
        assert!(info.stdout().contains(line), "{}", info.stdout());
    }
    let json = place.run(["shards", "info", "t.azs", "--json"]).succeeds().json_lines();
    assert_eq!((&json[0]["records"], &json[0]["kind"]), (&1000.into(), &"hash".into()));
    let verified = place.run(["shards", "verify", "t.azs"]).succeeds();
    assert!(verified.stdout().starts_with("sound: version 1, 4 shards, 1,000 records, "));

    let merged = place.run(["shards", "merge", "t.azs", "delta.azs", "--shards", "2"]).succeeds();
    assert_eq!(merged.stdout(), "version 2: 1,000 records, 10 replaced\n");
    let json = place.run(["shards", "info", "t.azs", "--json"]).succeeds().json_lines();
    assert_eq!((json.len(), &json[1]["shards"]), (2, &2.into()));
    // A shard is a database.
    let file = format!("t.azs/v0002/{}", json[1]["files"][0]["file"].as_str().expect("a name"));
    assert!(place.run(["check", &file]).succeeds().stdout().starts_with("sound"));

    let compacted = place.run(["shards", "compact", "t.azs", "--json"]).succeeds().json_lines();
    assert_eq!((&compacted[0]["removed"], &compacted[0]["kept"]), (&[1].into(), &[2].into()));
    let verified = place.run(["shards", "verify", "t.azs", "--json"]).succeeds().json_lines();
    assert_eq!((&verified[0]["ok"], &verified[0]["version"]), (&true.into(), &2.into()));
}

#[test]
fn damage_is_named_by_its_file() {
    let place = Place::new();
    write_set(&place, "t.azs", 5000, "value");
    let name = "t.azs/v0001/shard-00002-a.azk";
    let mut bytes = place.read(name);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    place.write(name, bytes);
    let verified = place.run(["shards", "verify", "t.azs"]);
    assert_eq!(verified.status(), 3);
    assert!(verified.stdout().starts_with("problem: shard-00002-a.azk: "), "{}", verified.stdout());
    assert!(verified.stderr().contains("t.azs: "), "{}", verified.stderr());
    place.write("t.azs/manifest-0001.json", "{}");
    place.run(["shards", "info", "t.azs"]).fails(3, "manifest-0001.json");
}

#[test]
fn what_is_no_set_is_said() {
    let place = Place::new();
    for command in ["info", "verify"] {
        place.run(["shards", command, "t.azs"]).fails(2, "there is no version of a set of shards");
    }
    place.run(["shards", "merge", "t.azs"]).fails(2, "there is no version of a set of shards");
    place.run(["shards", "compact", "t.azs"]).fails(2, "there is no set of shards");
    place.run(["shards", "compact", "t.azs", "--keep", "0"]).fails(2, "0 is not in");
    write_set(&place, "t.azs", 10, "value");
    place.run(["shards", "verify", "t.azs", "--version", "7"]).fails(2, "manifest-0007.json");
    place.run(["shards", "merge", "t.azs", "--shards", "0"]).fails(2, "0 shards");
}
