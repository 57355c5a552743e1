//! Places on earth as numbers: geohashes of 52 bits, the areas that a search has to look at, distances. Knows the
//! sphere as Redis has it, to the last bit; refuses to know sorted sets.
//!
//! A geohash halves the ranges of longitude and latitude in turn, so that all places in one cell of a grid have a
//! common prefix: they are one range of scores in a sorted set.

/// The bits of each coordinate in a score.
pub const STEPS_MAX: u32 = 26;

pub const LONGITUDE_MAX: f64 = 180.0;
/// Where a square map in Mercator's projection ends.
pub const LATITUDE_MAX: f64 = 85.05112878;

const EARTH_RADIUS_M: f64 = 6372797.560856;
/// Half the side of that map.
const MERCATOR_MAX_M: f64 = 20037726.37;
const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// The bits of longitude and of latitude in a cell's number.
const LONGITUDE_BITS: u64 = 0xaaaa_aaaa_aaaa_aaaa;
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;

/// A point, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

impl Point {
    /// False for places that are on no map in Mercator's projection, near the poles.
    pub fn is_on_map(&self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// The score of a member at this point.
    pub fn score(&self) -> f64 {
        Cell::at(*self, STEPS_MAX, LATITUDE_MAX).bits as f64
    }

    /// The middle of the cell that a score stands for. Scores that no point has are taken for one as Redis takes them.
    pub fn of_score(score: f64) -> Point {
        let area = Cell { bits: as_u64(score), steps: STEPS_MAX }.area();
        let middle = |(low, high): (f64, f64), max: f64| ((low + high) / 2.0).clamp(-max, max);
        Point { longitude: middle(area.longitude, LONGITUDE_MAX), latitude: middle(area.latitude, LATITUDE_MAX) }
    }

    /// The standard geohash of eleven letters. Its last is always the same: 52 bits are ten letters and a bit.
    pub fn letters(&self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = Cell::at(*self, STEPS_MAX, 90.0).bits;
        let mut letters = [ALPHABET[0]; 11];
        for (at, letter) in letters[..10].iter_mut().enumerate() {
            *letter = ALPHABET[(bits >> (52 - (at + 1) * 5)) as usize & 0x1f];
        }
        letters
    }

    /// Meters from one point to another along a great circle.
    pub fn distance_m(&self, other: &Point) -> f64 {
        let v = ((radians(other.longitude) - radians(self.longitude)) / 2.0).sin();
        if v == 0.0 {
            return along_meridian_m(self.latitude, other.latitude);
        }
        let (latitude, other_latitude) = (radians(self.latitude), radians(other.latitude));
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        // Of two places on opposite sides of the earth it can be the least bit more than 1; Redis then returns no
        // number.
        2.0 * EARTH_RADIUS_M * a.min(1.0).sqrt().asin()
    }
}

fn along_meridian_m(latitude: f64, other: f64) -> f64 {
    EARTH_RADIUS_M * (radians(other) - radians(latitude)).abs()
}

fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

fn degrees(radians: f64) -> f64 {
    radians / RADIANS_PER_DEGREE
}

/// The bits of a whole number, as an x86 converts them; where the number is out of range, that is not what Rust does.
fn as_u64(number: f64) -> u64 {
    const TOP: u64 = 1 << 63;
    let as_i64 = |number: f64| if number.abs() < TOP as f64 { number as i64 as u64 } else { TOP };
    if number < TOP as f64 { as_i64(number) } else { as_i64(number - TOP as f64) ^ TOP }
}

/// What a search looks for: places around a centre, in meters.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Circle {
        radius_m: f64,
    },
    Rectangle {
        width_m: f64,
        height_m: f64,
        /// From the centre to a corner.
        reach_m: f64,
    },
}

impl Shape {
    /// A circle; its radius in units of so many meters.
    pub fn circle(radius: f64, unit_m: f64) -> Shape {
        Shape::Circle { radius_m: radius * unit_m }
    }

    /// A rectangle whose sides lie along the lines of longitude and latitude.
    pub fn rectangle(width: f64, height: f64, unit_m: f64) -> Shape {
        let reach = (width / 2.0 * (width / 2.0) + height / 2.0 * (height / 2.0)).sqrt();
        Shape::Rectangle { width_m: width * unit_m, height_m: height * unit_m, reach_m: reach * unit_m }
    }

    /// The distance of a point from the centre, if it is inside.
    #[inline]
    pub fn distance_within_m(&self, centre: &Point, point: &Point) -> Option<f64> {
        match *self {
            Shape::Circle { radius_m } => Some(centre.distance_m(point)).filter(|distance| *distance <= radius_m),
            Shape::Rectangle { width_m, height_m, .. } => {
                if along_meridian_m(point.latitude, centre.latitude) > height_m / 2.0 {
                    return None;
                }
                let beside = Point { longitude: centre.longitude, latitude: point.latitude };
                if point.distance_m(&beside) > width_m / 2.0 {
                    return None;
                }
                Some(centre.distance_m(point))
            }
        }
    }

    /// From the centre to the farthest point.
    fn reach_m(&self) -> f64 {
        match *self {
            Shape::Circle { radius_m } => radius_m,
            Shape::Rectangle { reach_m, .. } => reach_m,
        }
    }

    /// The smallest area in degrees that has it all; on a map, where lines of longitude do not meet.
    fn bounds(&self, centre: &Point) -> Area {
        let (across_m, along_m) = match *self {
            Shape::Circle { radius_m } => (radius_m, radius_m),
            Shape::Rectangle { width_m, height_m, .. } => (width_m / 2.0, height_m / 2.0),
        };
        let along = degrees(along_m / EARTH_RADIUS_M);
        // Meridians are closest together at the side that is nearer to a pole.
        let narrow = if centre.latitude < 0.0 { centre.latitude - along } else { centre.latitude + along };
        let across = degrees(across_m / EARTH_RADIUS_M / radians(narrow).cos());
        Area {
            longitude: (centre.longitude - across, centre.longitude + across),
            latitude: (centre.latitude - along, centre.latitude + along),
        }
    }

    /// The ranges of scores, from and up to but not including, in which all places of the shape are, in the order in
    /// which Redis looks at them: at most nine.
    pub fn score_ranges(&self, centre: &Point) -> impl Iterator<Item = (f64, f64)> + use<> {
        let cells = self.cells(centre);
        let mut latest = None;
        cells.into_iter().enumerate().filter_map(move |(number, cell)| {
            let cell = cell?;
            // On a coarse grid two neighbours may be one cell.
            if latest == Some(cell) {
                return None;
            }
            if number > 0 {
                latest = Some(cell);
            }
            Some((cell.first_score(), Cell { bits: cell.bits.wrapping_add(1), ..cell }.first_score()))
        })
    }

    /// The cell of the centre and its neighbours, without those that have no part of the shape.
    fn cells(&self, centre: &Point) -> [Option<Cell>; 9] {
        let bounds = self.bounds(centre);
        let mut steps = steps_for(self.reach_m(), centre.latitude);
        let at = |steps| Cell::at(*centre, steps, LATITUDE_MAX);
        if steps > 1 && at(steps).neighbours_fall_short_of(&bounds) {
            steps -= 1;
        }
        let cell = at(steps);
        let area = cell.area();
        // Near a pole the bounds may be no numbers: then every neighbour is looked at.
        let is_fine = steps >= 2;
        let ends_in_north = is_fine && area.latitude.1 > bounds.latitude.1;
        let ends_in_south = is_fine && area.latitude.0 < bounds.latitude.0;
        let ends_in_east = is_fine && area.longitude.1 > bounds.longitude.1;
        let ends_in_west = is_fine && area.longitude.0 < bounds.longitude.0;
        let neighbour = |east: i8, north: i8| {
            let is_useless = north > 0 && ends_in_north
                || north < 0 && ends_in_south
                || east > 0 && ends_in_east
                || east < 0 && ends_in_west;
            (!is_useless).then(|| cell.moved(east, north))
        };
        [
            Some(cell),
            neighbour(0, 1),
            neighbour(0, -1),
            neighbour(1, 0),
            neighbour(-1, 0),
            neighbour(1, 1),
            neighbour(-1, 1),
            neighbour(1, -1),
            neighbour(-1, -1),
        ]
    }
}

/// How fine the grid may be for nine cells to have all places within a distance, in most cases.
fn steps_for(reach_m: f64, latitude: f64) -> u32 {
    if reach_m == 0.0 {
        return STEPS_MAX;
    }
    let (mut reach_m, mut steps) = (reach_m, 1);
    while reach_m < MERCATOR_MAX_M {
        reach_m *= 2.0;
        steps += 1;
    }
    steps -= 2;
    // Cells are narrower towards the poles.
    if latitude.abs() > 66.0 {
        steps -= 1;
        if latitude.abs() > 80.0 {
            steps -= 1;
        }
    }
    steps.clamp(1, STEPS_MAX as i32) as u32
}

/// A range of longitudes and one of latitudes, in degrees.
#[derive(Clone, Copy, Debug)]
struct Area {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

/// One cell of the grid that has 2^steps cells in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// Longitude and latitude in turn, the first bit of longitude first.
    bits: u64,
    steps: u32,
}

impl Cell {
    /// The cell of a point, in a grid up to this latitude in the north and the south.
    fn at(point: Point, steps: u32, latitude_max: f64) -> Cell {
        let cells = (1_u64 << steps) as f64;
        let latitude = (point.latitude + latitude_max) / (latitude_max + latitude_max) * cells;
        let longitude = (point.longitude + LONGITUDE_MAX) / (LONGITUDE_MAX + LONGITUDE_MAX) * cells;
        Cell { bits: spread(latitude as u32) | spread(longitude as u32) << 1, steps }
    }

    fn area(&self) -> Area {
        let cells = (1_u64 << self.steps) as f64;
        let edges = |number: u32, max: f64| {
            let edge = |number: u32| -max + f64::from(number) / cells * (max + max);
            (edge(number), edge(number.wrapping_add(1)))
        };
        Area {
            longitude: edges(gather(self.bits >> 1), LONGITUDE_MAX),
            latitude: edges(gather(self.bits), LATITUDE_MAX),
        }
    }

    /// The cell that lies so many cells to the east and to the north: -1, 0 or 1. Behind the last is the first.
    fn moved(self, east: i8, north: i8) -> Cell {
        let used = u64::MAX >> (64 - self.steps * 2);
        // All bits of the other coordinate are set or clear, so that a carry passes over them.
        let step = |bits: u64, others: u64, by: i8| match by {
            0 => bits,
            1.. => bits.wrapping_add(others + 1),
            ..0 => (bits | others).wrapping_sub(others + 1),
        };
        let keep = |bits: u64, by: i8| if by == 0 { bits } else { bits & used };
        let longitude = step(self.bits & LONGITUDE_BITS, LATITUDE_BITS & used, east) & LONGITUDE_BITS;
        let latitude = step(self.bits & LATITUDE_BITS, LONGITUDE_BITS & used, north) & LATITUDE_BITS;
        Cell { bits: keep(longitude, east) | keep(latitude, north), ..self }
    }

    /// True when some of an area is in none of the neighbours.
    fn neighbours_fall_short_of(&self, area: &Area) -> bool {
        let next_to = |east, north| self.moved(east, north).area();
        next_to(0, 1).latitude.1 < area.latitude.1
            || next_to(0, -1).latitude.0 > area.latitude.0
            || next_to(1, 0).longitude.1 < area.longitude.1
            || next_to(-1, 0).longitude.0 > area.longitude.0
    }

    /// The least score of a point in the cell.
    fn first_score(&self) -> f64 {
        (self.bits << (2 * (STEPS_MAX - self.steps))) as f64
    }
}

/// Puts a clear bit in front of each bit.
fn spread(bits: u32) -> u64 {
    let mut bits = u64::from(bits);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & LATITUDE_BITS
}

/// Every second bit, beginning with the last.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_point(random: &mut fastrand::Rng) -> Point {
        let within = |part: f64, max: f64| (part * 2.0 - 1.0) * max;
        Point { longitude: within(random.f64(), LONGITUDE_MAX), latitude: within(random.f64(), LATITUDE_MAX) }
    }

    #[test]
    fn a_place_is_in_the_cell_of_its_score() {
        let mut random = fastrand::Rng::with_seed(16);
        for _ in 0..20_000 {
            let point = random_point(&mut random);
            let decoded = Point::of_score(point.score());
            assert!((point.longitude - decoded.longitude).abs() <= 180.0 / f64::from(1 << 26), "{point:?} {decoded:?}");
            assert!((point.latitude - decoded.latitude).abs() <= 86.0 / f64::from(1 << 26), "{point:?} {decoded:?}");
            assert_eq!(decoded.score(), point.score(), "{point:?}");
        }
    }

    #[test]
    fn bits_that_are_spread_are_gathered_again() {
        for bits in [0, 1, 2, 3, 0x8000_0000, u32::MAX, 0x1234_5678] {
            assert_eq!(gather(spread(bits)), bits);
            assert_eq!(gather(spread(bits) | spread(!bits) << 1), bits);
        }
    }

    #[test]
    fn neighbours_lie_around_a_cell_and_lead_back() {
        let mut random = fastrand::Rng::with_seed(17);
        for _ in 0..20_000 {
            let cell = Cell::at(random_point(&mut random), random.u32(2..=26), LATITUDE_MAX);
            for (east, north) in [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)] {
                assert_eq!(cell.moved(east, north).moved(-east, -north), cell, "{east} {north}");
            }
            let (here, east) = (cell.area(), cell.moved(1, 0).area());
            assert!(east.longitude.0 == here.longitude.1 || east.longitude.0 == -LONGITUDE_MAX);
            assert_eq!(east.latitude, here.latitude);
        }
    }

    /// What lies beyond the edge of the map is not found, as in Redis.
    #[test]
    fn the_score_ranges_have_every_place_of_a_circle() {
        let mut random = fastrand::Rng::with_seed(18);
        for _ in 0..20_000 {
            let centre = Point { latitude: random.f64() * 120.0 - 60.0, longitude: random.f64() * 240.0 - 120.0 };
            let radius_m = 10_f64.powf(random.f64() * 5.5);
            let shape = Shape::Circle { radius_m };
            let spread = radius_m / 60_000.0;
            let near = |middle: f64, part: f64| middle + (part * 2.0 - 1.0) * spread;
            let point = Point {
                longitude: near(centre.longitude, random.f64()),
                latitude: near(centre.latitude, random.f64()),
            };
            let point = Point::of_score(point.score());
            let ranges: Vec<_> = shape.score_ranges(&centre).collect();
            let score = point.score();
            let is_in_range = ranges.iter().any(|(from, to)| (*from..*to).contains(&score));
            let is_within = shape.distance_within_m(&centre, &point).is_some();
            assert!(is_in_range || !is_within, "{point:?} is within {radius_m} m of {centre:?}, not in {ranges:?}");
        }
    }

    #[test]
    fn numbers_out_of_range_become_bits_as_on_an_x86() {
        for (number, bits) in [
            (0.0, 0),
            (-1.0, u64::MAX),
            (1e18, 1_000_000_000_000_000_000),
            (1e19, 10_000_000_000_000_000_000),
            (1e20, 0),
            (-1e20, 1 << 63),
            (f64::INFINITY, 0),
            (f64::NEG_INFINITY, 1 << 63),
        ] {
            assert_eq!(as_u64(number), bits, "{number}");
        }
    }
}
