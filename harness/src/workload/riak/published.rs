//! The figures of the published report.

use crate::report::figures::grouped_decimal as decimal;

/// What was published of one engine and one number of items.
pub(crate) struct Published {
    pub(crate) engine: &'static str,
    pub(crate) items: u32,
    pub(crate) seconds: &'static [f64],
    pub(crate) mean_seconds: f64,
    pub(crate) size_changes: &'static [f64],
    pub(crate) mean_size_change: f64,
}

/// Copies of an item in the published runs.
const PUBLISHED_COPIES: f64 = 3.0;

pub(crate) const PUBLISHED: [Published; 4] = [
    Published {
        engine: "Bitcask",
        items: 5_000,
        seconds: &[12.416, 11.906, 12.328, 11.584, 11.949],
        mean_seconds: 12.036,
        size_changes: &[48_871_379.0, 48_871_763.0, 48_871_616.0, 48_871_697.0, 48_871_487.0],
        mean_size_change: 48_871_588.4,
    },
    Published {
        engine: "LevelDB",
        items: 5_000,
        seconds: &[12.597, 12.286, 12.137, 12.081, 12.036],
        mean_seconds: 12.227,
        size_changes: &[43_905_054.0, 43_905_057.0, 43_904_910.0, 43_904_759.0, 43_904_896.0],
        mean_size_change: 43_904_935.2,
    },
    Published {
        engine: "Bitcask",
        items: 500_000,
        seconds: &[1_201.673],
        mean_seconds: 1_201.673,
        size_changes: &[4_886_613_449.0],
        mean_size_change: 4_886_613_449.0,
    },
    Published {
        engine: "LevelDB",
        items: 500_000,
        seconds: &[1_921.870],
        mean_seconds: 1_921.870,
        size_changes: &[1_627_507_469.0],
        mean_size_change: 1_627_507_469.0,
    },
];

impl Published {
    pub(super) fn copy_bytes(&self) -> f64 {
        self.mean_size_change / (f64::from(self.items) * PUBLISHED_COPIES)
    }

    pub(super) fn item_us(&self) -> f64 {
        self.mean_seconds / f64::from(self.items) * 1e6
    }

    /// The published runs that an engine's own are held against: of the same kind of engine, with
    /// the number of items that is nearest.
    pub(super) fn counterpart(engine: &str, items: u64) -> Option<&'static Self> {
        let of = match engine {
            "bitcask" => "Bitcask",
            "lsm" | "leveldb" => "LevelDB",
            _ => return None,
        };
        // The middle between both by their ratio, a hundred.
        let wanted = if items < 50_000 { 5_000 } else { 500_000 };
        PUBLISHED.iter().find(|published| published.engine == of && published.items == wanted)
    }

    pub(super) fn name(&self) -> String {
        format!("Riak's {}, {}", self.engine, decimal(self.items.into(), 0))
    }
}
