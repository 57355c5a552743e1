//! SHA-256 as FIPS 180-4 writes it down: what the server computes is compared with it.

/// The digest in lower-case hexadecimal digits.
pub(crate) fn sha256(message: &[u8]) -> String {
    let primes: Vec<u64> = (2..).filter(|number| (2..*number).all(|divisor| number % divisor != 0)).take(64).collect();
    let constants: Vec<u32> = primes.iter().map(|prime| fraction_of_root(*prime, 3)).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| fraction_of_root(*prime, 2)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words: Vec<u32> =
            block.chunks(4).map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes"))).collect();
        for at in 16..64 {
            let (before_15, before_2) = (words[at - 15], words[at - 2]);
            let small_0 = before_15.rotate_right(7) ^ before_15.rotate_right(18) ^ before_15 >> 3;
            let small_1 = before_2.rotate_right(17) ^ before_2.rotate_right(19) ^ before_2 >> 10;
            words.push(words[at - 16].wrapping_add(small_0).wrapping_add(words[at - 7]).wrapping_add(small_1));
        }
        let mut v = state.clone();
        for at in 0..64 {
            let big_1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[4] & v[5] ^ !v[4] & v[6];
            let sums = [v[7], big_1, choice, constants[at], words[at]];
            let first = sums.into_iter().fold(0, u32::wrapping_add);
            let big_0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(first);
            v[0] = first.wrapping_add(big_0).wrapping_add(majority);
        }
        state.iter_mut().zip(v).for_each(|(word, more)| *word = word.wrapping_add(more));
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

/// The first 32 bits of the fraction of a number's square or cube root.
fn fraction_of_root(number: u64, degree: u32) -> u32 {
    // The largest number whose power is not above number * 2^(32 * degree) is the root times 2^32.
    let wanted = u128::from(number) << (32 * degree);
    let (mut low, mut high) = (0u128, 1u128 << 38);
    while low + 1 < high {
        let middle = (low + high) / 2;
        match middle.pow(degree) <= wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    low as u32
}

#[test]
fn known_digests() {
    assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_eq!(sha256(two_blocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
