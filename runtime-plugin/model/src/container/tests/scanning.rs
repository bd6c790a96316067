use super::*;

#[test]
fn containers_are_found_in_a_file() {
    let first = write_node(&node());
    let second = write_bundle(&bundle());
    let mut damaged = first.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let third = write_node_reference(&reference());
    let program = [MAGIC.as_slice(), &REFERENCE_MAGIC, b"\x48\x39\xc1", &REFERENCE_MAGIC].concat();
    let plan = b"plan\x89\x89CUB".as_slice();
    let parts = [plan, &first, &damaged, b"....", &second, &third, &program, &MAGIC[..7]];
    let file = parts.concat();
    let found: Vec<_> = scan(&file).collect();
    assert_eq!(found.len(), 4);
    assert!(matches!(found[3].1.as_ref().unwrap().container, Container::NodeReference(_)));
    assert_eq!(found[0].0, 9);
    assert!(matches!(found[0].1.as_ref().unwrap().container, Container::Node(_)));
    assert!(matches!(found[1].1, Err(ReadError::Digest { .. })));
    assert!(matches!(found[2].1.as_ref().unwrap().container, Container::Bundle(_)));
    for (offset, found) in found.iter().filter_map(|(offset, found)| Some((*offset, found.as_ref().ok()?))) {
        assert_eq!(found.offset, offset);
        let alone = read(&file[offset..offset + found.length]).unwrap();
        assert_eq!((alone.container, alone.digest), (found.container.clone(), found.digest));
    }
}

#[test]
fn a_file_is_searched_until_a_megabyte_was_hashed_in_vain() {
    let right = write_node_reference(&reference());
    let searched = |false_ones: &[Vec<u8>]| {
        let mut file = false_ones.concat();
        file.resize(40_000, 0);
        file.extend_from_slice(&right);
        assert!(file.len() * MOST_IN_VAIN < 1 << 20);
        scan(&file).map(|(_, found)| found.map(|found| found.container)).collect::<Vec<_>>()
    };
    let mut false_ones = vec![beginning(2, 1 << 15); 32];
    let found = searched(&false_ones);
    assert_eq!(found.len(), 33);
    assert!(found[..32].iter().all(|found| matches!(found, Err(ReadError::Digest { .. }))));
    assert_eq!(found[32], Ok(Container::NodeReference(reference())));
    false_ones.push(beginning(2, 22));
    let found = searched(&false_ones);
    assert_eq!((found.len(), found.last()), (34, Some(&Err(ReadError::TooManyBeginnings))));
    let found = searched(&vec![beginning(2, 1 << 20); 40]);
    assert_eq!(found.len(), 41);
    assert_eq!(found[40], Ok(Container::NodeReference(reference())));
}

#[test]
fn what_follows_a_magic_says_whether_it_is_a_beginning() {
    let long = |version: u32, kind: u32| {
        [MAGIC.as_slice(), &version.to_le_bytes(), &kind.to_le_bytes(), &[0; 60]].concat()
    };
    let short = |version, length| [beginning(version, length), vec![0; 60]].concat();
    let version = |found| Err(ReadError::Version { found });
    let length = |length| Err(malformed(&format!("length {length} is shorter than the header")));
    for (bytes, expected) in [
        (long(2, 1), Some(length(0))),
        (long(0, 1), None),
        (long(2, 0), None),
        (long(0x100, 2), None),
        (long(2, 0x100), None),
        (long(0xff, 0xff), Some(version(0xff))),
        (long(2, 3), Some(Err(malformed("kind 3, expected 1 or 2")))),
        (short(2, 5), Some(length(5))),
        (short(3, 5), None),
        (short(3, 21), None),
        (short(3, 22), Some(version(3))),
        (short(0, 22), None),
        (short(0x100, 22), None),
    ] {
        let found: Vec<_> = scan(&bytes).map(|(offset, found)| (offset, found.map(|_| ()))).collect();
        let expected: Vec<_> = expected.into_iter().map(|found| (0, found)).collect();
        assert_eq!(found, expected, "{bytes:x?}");
    }
}

#[test]
fn a_file_of_false_beginnings_takes_no_longer_than_others() {
    const COUNT: usize = 50_000;
    let mut file = write_node(&node());
    let size = file.len() + COUNT * 14;
    for number in 0..COUNT {
        file.extend_from_slice(&REFERENCE_MAGIC);
        file.extend_from_slice(&2_u16.to_le_bytes());
        file.extend_from_slice(&((COUNT - number) as u32 * 14).to_le_bytes());
    }
    assert_eq!(file.len(), size);
    let started = std::time::Instant::now();
    let found: Vec<_> = scan(&file).collect();
    let spent = started.elapsed();
    assert!(spent < std::time::Duration::from_secs(20), "{spent:?}");
    assert!(found[0].1.is_ok());
    assert_eq!(found.last().unwrap().1, Err(ReadError::TooManyBeginnings));
    assert!((10..40).contains(&found.len()), "{}", found.len());
}

#[test]
fn two_wrong_bytes_in_a_magic_make_no_container() {
    for right in [write_node(&node()), write_node_reference(&reference())] {
        let wrong = |places: [usize; 2]| {
            let mut bytes = right.clone();
            places.iter().for_each(|place| bytes[*place] ^= 1);
            scan(&bytes).map(|(_, found)| found.map(drop)).collect::<Vec<_>>()
        };
        let damaged = || Err(malformed("its first bytes are damaged"));
        assert_eq!(wrong([5, 5]), [Ok(())], "nothing is wrong");
        for places in [[0, 1], [1, 3], [4, 5], [6, 7]] {
            assert_eq!(wrong(places), [], "{places:?}");
        }
        let mut one = right.clone();
        one[6] ^= 1;
        assert_eq!(scan(&one).map(|(_, found)| found.map(drop)).collect::<Vec<_>>(), [damaged()]);
    }
}

#[test]
fn no_single_changed_byte_makes_a_container_vanish() {
    let parts = [
        write_node(&node_with_packed_code()),
        b"between".to_vec(),
        write_node_reference(&reference()),
        write_bundle(&bundle()),
    ];
    let plan = parts.concat();
    let good: Vec<_> = scan(&plan).collect();
    assert_eq!(good.len(), 3);
    let between = parts[0].len()..parts[0].len() + parts[1].len();
    for index in 0..plan.len() {
        for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
            let mut changed = plan.clone();
            changed[index] ^= flip;
            let found: Vec<_> = scan(&changed).collect();
            let is_told = found.iter().any(|(_, found)| found.is_err());
            assert!(is_told != between.contains(&index), "byte {index} ^ {flip:#x}: {found:?}");
        }
    }
}
