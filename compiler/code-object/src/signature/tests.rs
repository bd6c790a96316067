use super::*;
use crate::kernel_signature::{Leaf, ParamType};
use cubinder_expr::ScalarType;

#[test]
fn what_has_no_debug_information_is_an_error() {
    assert!(matches!(read_cubin(b"", &["k"].into()), Err(SignatureError::Elf(_))));
    let program = std::fs::read("/proc/self/exe").unwrap();
    assert_eq!(read_cubin(&program, &["no such kernel"].into()), Ok(std::collections::BTreeMap::new()));
    for text in ["", ".version 9.0\n.target sm_80\n.visible .entry k()\n{\n\tret;\n}\n"] {
        assert_eq!(read_ptx(text.as_bytes(), &["k"].into()), Ok(std::collections::BTreeMap::new()));
    }
}

fn elf(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let long = u64::to_le_bytes;
    let names: String = [".shstrtab"]
        .into_iter()
        .chain(sections.iter().map(|(name, _)| *name))
        .map(|it| format!("{it}\0"))
        .collect();
    let (mut body, mut table) = (vec![0; 64], vec![0; 64]);
    let mut name = 0_u64;
    let own = (".shstrtab", names.clone().into_bytes());
    for (index, (called, content)) in [own].iter().chain(sections).enumerate() {
        let kind = if index == 0 { 3 } else { 1 };
        let header = [kind << 32 | name, 0, 0, body.len() as u64, content.len() as u64, 0, 1, 0];
        table.extend(header.iter().flat_map(|it| long(*it)));
        name += called.len() as u64 + 1;
        body.extend(content);
    }
    let count = u8::try_from(sections.len() + 2).unwrap();
    let head = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0\xbe\0\x01\0\0\0";
    let tail = [0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0, count, 0, 1, 0];
    let header = [&head[..], &long(0), &long(0), &long(body.len() as u64), &tail].concat();
    body[..64].copy_from_slice(&header);
    [body, table].concat()
}

fn nested(levels: u32) -> Vec<u8> {
    let abbreviations = [
        &[1, 0x11, 1, 0, 0][..],                     // a unit, with entries
        &[2, 0x24, 0, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0], // a number: bytes, encoding
        &[3, 0x13, 1, 0x0b, 0x07, 0, 0],             // a struct: bytes
        &[4, 0x0d, 0, 0x49, 0x13, 0, 0],             // a field: type
        &[5, 0x0f, 0, 0x49, 0x13, 0, 0],             // a pointer: type
        &[6, 0x2e, 1, 0x03, 0x08, 0, 0],             // a function: name
        &[7, 0x05, 0, 0x03, 0x08, 0x49, 0x13, 0, 0], // a parameter: name, type
        &[0],
    ];
    let head = [4, 0, 0, 0, 0, 0, 8];
    let place = |unit: &Vec<u8>| u32::try_from(unit.len() + 4).unwrap().to_le_bytes();
    let mut unit = [&head[..], &[1]].concat();
    let mut last = place(&unit);
    unit.extend([2, 4, 4]);
    for level in 0..levels {
        let this = place(&unit);
        unit.push(3);
        unit.extend((8_u64 << level).to_le_bytes());
        for _ in 0..2 {
            unit.push(4);
            unit.extend(last);
        }
        unit.push(0);
        last = this;
    }
    let pointer = place(&unit);
    unit.push(5);
    unit.extend(last);
    unit.extend(b"\x06k\0\x07x\0");
    unit.extend(pointer);
    unit.extend([0, 0]);
    let length = u32::try_from(unit.len()).unwrap().to_le_bytes();
    elf(&[(".debug_abbrev", abbreviations.concat()), (".debug_info", [&length[..], &unit].concat())])
}

#[test]
fn a_type_that_is_a_part_of_many_is_looked_at_once() {
    for levels in [1, 2, 50] {
        let began = std::time::Instant::now();
        let found = read_cubin(&nested(levels), &["k"].into()).unwrap().remove("k").unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
        let ParamType::Pointer { leaf, pointee_size, .. } = &found.params[0].ty else { panic!("{found:?}") };
        let size = u32::try_from(8_u64 << (levels - 1)).ok();
        assert_eq!((*leaf, *pointee_size), (Leaf::Scalar(ScalarType::F32), size), "{levels}");
    }
}
