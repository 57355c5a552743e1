//! The end of a DUMP payload: the version and a checksum that no fuzzer would guess.

/// The body as a payload of that RDB version.
pub(crate) fn with_footer(body: &[u8], version: u16) -> Vec<u8> {
    static CHECKSUM: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_REDIS);
    let mut payload = body.to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = CHECKSUM.checksum(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}
