//! Values of several megabytes, keys of any bytes, hashes of many fields, long pipelines.

use wire::{Random, Reply, Session};

const MEGABYTE: usize = 1 << 20;

#[test]
fn a_large_value_comes_back_as_it_went() {
    let session = Session::start();
    let mut connection = session.connect();
    let value = random_bytes(8 * MEGABYTE);
    assert_eq!(connection.run_with("SET a", &[&value]).to_string(), "+OK");
    assert_eq!(connection.run("STRLEN a").integer(), value.len() as i64);
    assert!(connection.run("GET a").bytes() == value, "GET differs");

    assert_eq!(connection.run_with("APPEND a", &[&value]).integer(), 2 * value.len() as i64);
    let middle = connection.run(&format!("GETRANGE a {} {}", value.len() - 3, value.len() + 2));
    assert_eq!(middle.bytes(), [&value[value.len() - 3..], &value[..3]].concat());
    assert!(connection.run_with("GETSET a", &[b"small"]).bytes().ends_with(&value), "GETSET differs");
    assert_eq!(connection.run("GET a").text(), "small");
}

#[test]
fn a_large_field_comes_back_as_it_went() {
    let session = Session::start();
    let mut connection = session.connect();
    let value = random_bytes(4 * MEGABYTE);
    let field = random_bytes(MEGABYTE);
    assert_eq!(connection.run_with("HSET h", &[&field, &value]).integer(), 1);
    assert_eq!(connection.run_with("HSTRLEN h", &[&field]).integer(), value.len() as i64);
    assert!(connection.run_with("HGET h", &[&field]).bytes() == value, "HGET differs");
    let all = connection.run("HGETALL h");
    assert!(all.items()[0].bytes() == field && all.items()[1].bytes() == value, "HGETALL differs");
    connection.run("COPY h g");
    assert_eq!(connection.run_with("HDEL h", &[&field]).integer(), 1);
    assert!(connection.run_with("HGET g", &[&field]).bytes() == value, "the copy differs");
}

#[test]
fn a_large_key_is_a_key() {
    let session = Session::start();
    let mut connection = session.connect();
    let key = random_bytes(2 * MEGABYTE);
    assert_eq!(connection.run_with("SET", &[&key, b"v"]).to_string(), "+OK");
    assert_eq!(connection.run_with("GET", &[&key]).text(), "v");
    assert!(connection.run("RANDOMKEY").bytes() == key, "RANDOMKEY differs");
    assert_eq!(connection.run_with("RENAME", &[&key, b"short"]).to_string(), "+OK");
    assert_eq!(connection.run("GET short").text(), "v");
}

#[test]
fn a_large_value_in_small_pieces() {
    let session = Session::start();
    let mut connection = session.connect();
    let value = random_bytes(MEGABYTE);
    let mut request = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n", value.len()).into_bytes();
    request.extend_from_slice(&value);
    request.extend_from_slice(b"\r\n");
    for piece in request.chunks(10_007) {
        connection.queue_raw(piece);
        connection.flush();
    }
    assert_eq!(connection.read().to_string(), "+OK");
    assert!(connection.run("GET a").bytes() == value, "GET differs");
}

#[test]
fn keys_fields_and_values_of_every_byte() {
    let session = Session::start();
    let mut connection = session.connect();
    for byte in 0..=255_u8 {
        let name = [b'n', byte];
        connection.run_with("SET", &[&name, &[byte]]);
        connection.run_with("HSET h", &[&name, &[byte, byte]]);
    }
    assert_eq!(connection.run("DBSIZE").integer(), 257);
    assert_eq!(connection.run("HLEN h").integer(), 256);
    for byte in 0..=255_u8 {
        let name = [b'n', byte];
        assert_eq!(connection.run_with("GET", &[&name]).bytes(), [byte]);
        assert_eq!(connection.run_with("HGET h", &[&name]).bytes(), [byte, byte]);
    }
}

#[test]
fn many_arguments_in_one_command() {
    const KEYS: usize = 20_000;
    let session = Session::start();
    let mut connection = session.connect();
    let keys: Vec<String> = (0..KEYS).map(|i| format!("key:{i}")).collect();
    let with = |command: &str| -> Vec<String> { std::iter::once(command.to_owned()).chain(keys.clone()).collect() };

    let mut mset = vec!["MSET".to_owned()];
    let mut hset = vec!["HSET".to_owned(), "h".to_owned()];
    for (i, key) in keys.iter().enumerate() {
        mset.extend([key.clone(), i.to_string()]);
        hset.extend([key.clone(), i.to_string()]);
    }
    assert_eq!(connection.run_args(&mset).to_string(), "+OK");
    assert_eq!(connection.run_args(&hset).integer(), KEYS as i64);
    let values = connection.run_args(&with("MGET"));
    assert!(values.items().iter().enumerate().all(|(i, value)| value.text() == i.to_string()));
    assert_eq!(connection.run("HGETALL h").items().len(), 2 * KEYS);
    assert_eq!(connection.run("KEYS key:*").items().len(), KEYS);
    assert_eq!(connection.run_args(&with("EXISTS")).integer(), KEYS as i64);
    assert_eq!(connection.run_args(&with("DEL")).integer(), KEYS as i64);
    assert_eq!(connection.run("DBSIZE").integer(), 1);
}

#[test]
fn a_pipeline_whose_replies_are_larger_than_any_buffer() {
    const REQUESTS: usize = 500;
    let session = Session::start();
    let mut connection = session.connect();
    let value = random_bytes(64 * 1024);
    connection.run_with("SET a", &[&value]);
    for i in 0..REQUESTS {
        connection.queue(&["GET", "a"]);
        connection.queue(&["INCRBY", "n", &i.to_string()]);
    }
    let mut sum = 0;
    for i in 0..REQUESTS {
        assert!(connection.read() == Reply::Bulk(value.clone()), "GET {i} differs");
        sum += i as i64;
        assert_eq!(connection.read().integer(), sum);
    }
}

fn random_bytes(len: usize) -> Vec<u8> {
    let mut random = Random::from_env();
    std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(len).collect()
}

#[test]
fn a_small_hash_by_any_setting_keeps_all_of_its_fields() {
    let session = Session::start();
    let mut connection = session.connect();
    let before = connection.run("CONFIG GET hash-max-listpack-entries").to_string();
    let before: String = before.chars().filter(char::is_ascii_digit).collect();
    connection.run("CONFIG SET hash-max-listpack-entries 1000000");
    let (mut sent, batch) = (0, 3_000);
    for _ in 0..4 {
        let fields: Vec<String> = (sent..sent + batch).flat_map(|i| [format!("f{i}"), format!("v{i}")]).collect();
        let fields: Vec<&[u8]> = fields.iter().map(String::as_bytes).collect();
        assert_eq!(connection.run_with("HSET h", &fields).integer(), batch);
        sent += batch;
        assert_eq!(connection.run("HLEN h").integer(), sent);
    }
    assert_eq!(connection.run("OBJECT ENCODING h").text(), "listpack");
    assert_eq!(connection.run(&format!("HGET h f{}", sent - 1)).text(), format!("v{}", sent - 1));
    connection.run(&format!("CONFIG SET hash-max-listpack-entries {before}"));
}
