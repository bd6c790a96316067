//! Converts between row major and TensorRT's memory layouts (`nvinfer1::TensorFormat`, `NvInferRuntimeBase.h`,
//! TensorRT-RTX 1.7); [`Format`] has the extents.

use cubinder_expr::Format;
use cubinder_launch as launch;

use super::array::{Array, count};

/// Returns a tensor's memory in `format`, zero-padded; fails if it is too large.
pub fn pack(array: &Array, format: Format) -> Result<Vec<u8>, String> {
    let bytes = launch::tensor_bytes(array.ty(), format, array.shape())
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| format!("the size of {:?} exceeds the address space", array.shape()))?;
    let Some((size, places)) = places(array.ty().size(), format, array.shape()) else {
        return Ok(array.bytes().to_vec());
    };
    let mut packed = vec![0; bytes];
    for (from, to) in array.bytes().chunks_exact(size).zip(places) {
        if let Some(to) = packed.get_mut(to..to.saturating_add(size)) {
            to.copy_from_slice(from);
        }
    }
    Ok(packed)
}

/// Reads a tensor in `format`; fails for too few bytes.
pub fn unpack(
    bytes: &[u8],
    ty: cubinder_expr::DataType,
    format: Format,
    shape: &[i64],
) -> Result<Array, String> {
    let Some((size, places)) = places(ty.size(), format, shape) else {
        let used = count(shape).and_then(|count| ty.bytes(count as u64)).unwrap_or(u64::MAX);
        let used = usize::try_from(used).ok().and_then(|used| bytes.get(..used));
        let used = used.ok_or_else(|| format!("{shape:?} has more than {} bytes", bytes.len()))?;
        return Array::new(ty, shape.to_vec(), used.to_vec());
    };
    let mut unpacked = Vec::new();
    for place in places {
        let element = bytes.get(place..place.saturating_add(size));
        unpacked.extend(element.ok_or_else(|| format!("{shape:?} has more than {} bytes", bytes.len()))?);
    }
    Array::new(ty, shape.to_vec(), unpacked)
}

/// `None` for row-major memory.
fn places(size: Option<u32>, format: Format, shape: &[i64]) -> Option<(usize, impl Iterator<Item = usize>)> {
    let size = size? as usize;
    let axis = match format {
        Format::Linear => None,
        format => shape.len().checked_sub(format.channel_from_end()),
    }?;
    let (outer, rest) = shape.split_at_checked(axis)?;
    let (channels, inner) = rest.split_first()?;
    let extent = |extents: &[i64]| count(extents);
    let (outer, inner) = (extent(outer)?, extent(inner)?);
    let channels = usize::try_from(*channels).ok()?;
    let vector = usize::try_from(format.vector()).ok()?;
    let padded = channels.checked_next_multiple_of(vector)?;
    let is_last = format.is_channels_last();
    let place = move |index: usize| {
        let (rest, s) = (index / inner, index % inner);
        let (o, c) = (rest / channels, rest % channels);
        let element = if is_last {
            (o * inner + s) * padded + c
        } else {
            ((o * (padded / vector) + c / vector) * inner + s) * vector + c % vector
        };
        element * size
    };
    // The memory exists: nothing overflows or is 0.
    Some((size, (0..outer.checked_mul(channels)?.checked_mul(inner)?).map(place)))
}

#[cfg(test)]
mod tests {
    use cubinder_expr::DataType;

    use super::super::array::Number;
    use super::*;
    use crate::cache::Cache;
    use crate::codegen::translation_unit;
    use crate::diagnostic::Source;
    use crate::nvrtc::{Session, Settings, diagnostics};
    use crate::test_support::{Sample, resolved, show, toolkit};

    fn counting(ty: DataType, shape: &[i64]) -> Array {
        let numbers = (0..count(shape).unwrap()).map(|index| Number::Int(index as i64 % 100));
        Array::of_numbers(ty, shape.to_vec(), numbers).unwrap()
    }

    #[test]
    fn layouts_are_tensorrts() {
        let array = counting(DataType::I8, &[1, 3, 1, 2]);
        for (format, expected) in [
            (Format::Linear, vec![0, 1, 2, 3, 4, 5]),
            (Format::Hwc, vec![0, 2, 4, 1, 3, 5]),
            (Format::Chw2, vec![0, 2, 1, 3, 4, 0, 5, 0]),
            (Format::Chw4, vec![0, 2, 4, 0, 1, 3, 5, 0]),
            (Format::Hwc8, vec![0, 2, 4, 0, 0, 0, 0, 0, 1, 3, 5, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(pack(&array, format).unwrap(), expected, "{format:?}");
        }
    }

    /// In `axes`, `v` is the position in a vector of channels.
    fn offset(axes: &str, vector: usize, extents: [usize; 5], at: [usize; 5]) -> usize {
        let in_vectors = axes.contains('v');
        axes.chars().fold(0, |offset, axis| {
            let (extent, at) = match axis {
                'v' => (vector, at[1] % vector),
                'C' if in_vectors => (extents[1].div_ceil(vector), at[1] / vector),
                'C' => (extents[1].next_multiple_of(vector), at[1]),
                _ => {
                    let index = "NCDHW".find(axis).unwrap();
                    (extents[index], at[index])
                }
            };
            offset * extent + at
        })
    }

    #[test]
    fn every_format_lies_as_the_manual_says() {
        let extents = [2, 35, 3, 2, 4];
        for (format, axes, vector) in [
            (Format::Linear, "NCDHW", 1),
            (Format::Chw2, "NCHWv", 2),
            (Format::Chw4, "NCHWv", 4),
            (Format::Chw32, "NCHWv", 32),
            (Format::Hwc, "NHWC", 1),
            (Format::Hwc8, "NHWC", 8),
            (Format::Hwc16, "NHWC", 16),
            (Format::Dhwc, "NDHWC", 1),
            (Format::Dhwc8, "NDHWC", 8),
            (Format::Cdhw32, "NCDHWv", 32),
        ] {
            let mut extents = extents;
            let mut shape: Vec<i64> = extents.iter().map(|extent| *extent as i64).collect();
            if !axes.contains('D') {
                shape.remove(2);
                extents[2] = 1;
            }
            let [n, c, d, h, w] = extents;
            let count = n * c * d * h * w;
            let numbers = (0..count).map(|index| Number::Int(index as i64));
            let array = Array::of_numbers(DataType::I32, shape, numbers).unwrap();
            let packed = pack(&array, format).unwrap();
            for index in 0..count {
                let at = [
                    index / (w * h * d * c),
                    index / (w * h * d) % c,
                    index / (w * h) % d,
                    index / w % h,
                    index % w,
                ];
                let place = offset(axes, vector, extents, at) * 4;
                let found = &packed[place..place + 4];
                assert_eq!(found, (index as i32).to_le_bytes(), "{format:?} {at:?}");
            }
        }
    }

    #[test]
    fn what_is_packed_unpacks() {
        for format in Format::ALL {
            for shape in
                [vec![2, 3, 4, 5, 6], vec![1, 33, 1, 2], vec![3, 2, 2], vec![2, 0, 3, 3], vec![5], vec![]]
            {
                for ty in [DataType::F16, DataType::I8, DataType::F32] {
                    let array = counting(ty, &shape);
                    let packed = pack(&array, format).unwrap();
                    assert_eq!(unpack(&packed, ty, format, &shape), Ok(array), "{format:?} {shape:?}");
                }
            }
        }
        assert!(unpack(&[0; 3], DataType::I8, Format::Linear, &[4]).is_err());
        assert!(unpack(&[0; 3], DataType::I8, Format::Hwc, &[1, 2, 2]).is_err());
    }

    #[test]
    fn the_header_finds_elements_where_the_layouts_put_them() {
        let Some(toolkit) = toolkit("the_header_finds_elements_where_the_layouts_put_them") else { return };
        let session = Session::new(toolkit, Settings::default(), Cache::disabled()).unwrap();
        let tables = "[[inputs]]\nname = \"w\"\ntype = \"i4\"\n[types]\nT = [\"f32\", \"f16\"]\n[formats]\nF = [\"linear\", \"hwc\"]";
        let manifest = Sample { element: "T\"\nformat = \"F", tables, ..Sample::PLAIN }.text();
        let (batches, channels, places) = (2, 35, 6);
        let mut text = String::new();
        for format in Format::ALL {
            let shape = match format.channel_from_end() {
                4 => vec![batches, channels, 3, 2, 1],
                _ => vec![batches, channels, 3, 2],
            };
            let count = batches * channels * places;
            let numbers = (1..=count).map(Number::Int);
            let packed = pack(&Array::of_numbers(DataType::I32, shape, numbers).unwrap(), format).unwrap();
            for index in 0..count {
                let bytes = u32::try_from(index + 1).unwrap().to_le_bytes();
                let offset = packed.as_chunks().0.iter().position(|element| *element == bytes).unwrap();
                let (batch, channel, place) =
                    (index / places / channels, index / places % channels, index % places);
                text.push_str(&format!(
                    "static_assert(cubinder::offset(cubinder::format::{}, {batch}, {channel}, {place}, {channels}, {places}) == {offset}, \"\");\n",
                    format.name()
                ));
            }
        }
        text.push_str("__device__ void pairs() {\n");
        for (low, high) in (-8..8).flat_map(|low| (-8..8).map(move |high| (low, high))) {
            let bits = (low & 15) | (high & 15) << 4;
            text.push_str(&format!(
                "    static_assert(cubinder::i4x2::of({low}, {high}).bits == {bits} && cubinder::i4x2{{{bits}}}.low() == {low} && \
                 cubinder::i4x2{{{bits}}}.high() == {high}, \"\");\n"
            ));
        }
        text.push_str("}\n__global__ void k() {}\n");
        let unit = &resolved("m.toml", &manifest).draft.units[0];
        let unit = translation_unit(unit, Source::new("k.cu", text), "k.cu", None);
        let compiled = session.compile(&session.prepare(unit), "sm_89".parse().unwrap());
        compiled.map_err(diagnostics).unwrap_or_else(|errors| panic!("{}", show(&errors[..1])));
    }
}
