use super::*;
use proptest::prelude::*;

#[test]
fn what_is_no_cubin_is_refused() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(error(b"").starts_with("invalid ELF file: "));
    let program = std::fs::read("/proc/self/exe").unwrap();
    assert!(error(&program).starts_with("an ELF file for machine "), "{}", error(&program));
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = read(&bytes);
        let mut elf = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0\xbe\0".to_vec();
        elf.extend(bytes);
        let _ = read(&elf);
    }

    #[test]
    fn any_notes_are_read(notes in proptest::collection::vec(any::<u8>(), 0..128)) {
        let _ = info::functions(&notes);
        let _ = info::kernel(&notes, "k");
    }
}

/// Builds a cubin with kernel symbols (offsets into `names`) in its first section and `notes` in all others.
fn handmade(kernels: &[u32], names: &[u8], sections: &[u32], section_names: &[u8], notes: &[u8]) -> Vec<u8> {
    let word = u32::to_le_bytes;
    let long = u64::to_le_bytes;
    let mut body = vec![0; 64];
    let mut table: Vec<[u64; 5]> = vec![[0; 5]];
    let mut add = |kind: u32, name: u32, content: &[u8], link: u32| {
        let begin = body.len() as u64;
        body.extend(content);
        table.push([
            u64::from(kind) << 32 | u64::from(name),
            begin,
            content.len() as u64,
            u64::from(link),
            0,
        ]);
        begin
    };
    add(3, 0, section_names, 0);
    add(3, 0, names, 0);
    let symbol =
        |name: &u32| [&word(*name)[..], &[0x12, 0x10], &4_u16.to_le_bytes(), &long(0), &long(0)].concat();
    let symbols: Vec<u8> = std::iter::repeat_n(0, 24).chain(kernels.iter().flat_map(symbol)).collect();
    add(2, 0, &symbols, 2);
    let at = add(1, 0, notes, 0);
    table.extend(sections.iter().map(|name| [1 << 32 | u64::from(*name), at, notes.len() as u64, 0, 0]));
    let begin = body.len() as u64;
    for [kind_and_name, at, size, link, _] in &table {
        let of_symbols = kind_and_name >> 32 == 2;
        let entry = if of_symbols { 24 } else { 0 };
        body.extend(
            [*kind_and_name, 0, 0, *at, *size, *link | 1 << 32, 1, entry].iter().flat_map(|it| long(*it)),
        );
    }
    let head = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0\xbe\0\x01\0\0\0";
    let count = u16::try_from(table.len()).unwrap();
    let tail = [
        &long(0)[..],
        &long(0),
        &long(begin),
        &word(80 << 8),
        &[64, 0, 56, 0, 0, 0, 64, 0],
        &count.to_le_bytes(),
        &[1, 0],
    ];
    let header = [&head[..], &tail.concat()].concat();
    body[..64].copy_from_slice(&header);
    body
}

fn in_time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = std::time::Instant::now();
    let done = work();
    assert!(began.elapsed() < std::time::Duration::from_secs(1), "{what}: {:?}", began.elapsed());
    done
}

#[test]
fn what_overlaps_is_not_read_again_and_again() {
    const OVERLAP: &str = "invalid ELF file: its names and notes overlap and exceed the file size";
    let refused = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let records = |count: usize| [1, 0, 0, 0].repeat(count);

    let long = [&b"\0"[..], &vec![b'k'; 4 << 20], b"\0"].concat();
    let starts: Vec<u32> = (1..3001).collect();
    let one_long = handmade(&starts, &long, &[], b"\0", &[]);
    assert!(in_time("one long name", || refused(&one_long)).contains("4194304 bytes, the limit is 65536"));

    let middling = [&b"\0"[..], &vec![b'k'; 60_000], b"\0"].concat();
    let tails = handmade(&starts, &middling, &[], b"\0", &[]);
    assert_eq!(in_time("names in names", || refused(&tails)), OVERLAP);
    assert_eq!(in_time("names in names", || cubin_origin(&tails).unwrap().undefined), [""; 0]);

    let same = handmade(&vec![1; 100_000], b"\0k\0", &[1], b"\0.nv.info.k\0", &records(1 << 18));
    assert_eq!(in_time("one name for all", || read(&same).unwrap().kernels.len()), 1);

    let names: Vec<String> = (0..1000).map(|at| format!("k{at:03}")).collect();
    let text = |prefix: &str| {
        format!("\0{}", names.iter().map(|name| format!("{prefix}{name}\0")).collect::<String>())
    };
    let (kernels, sections) = (text(""), text(".nv.info."));
    let starts = |step: u32| (0..1000).map(|at| 1 + at * step).collect::<Vec<u32>>();
    let shared =
        handmade(&starts(5), kernels.as_bytes(), &starts(14), sections.as_bytes(), &records(1 << 18));
    assert_eq!(in_time("notes for all", || refused(&shared)), OVERLAP);
    let apart = handmade(&starts(5), kernels.as_bytes(), &starts(14), sections.as_bytes(), &records(8));
    assert_eq!(read(&apart).unwrap().kernels.len(), 1000);

    let section_names: Vec<u32> = (1..60_000).collect();
    let sections = handmade(&[], b"\0", &section_names, &[&vec![b'k'; 60_000][..], b"\0"].concat(), &[]);
    assert_eq!(in_time("sections in sections", || refused(&sections)), OVERLAP);
    assert!(in_time("sections in sections", || cubin_origin(&sections)).is_err());
}
