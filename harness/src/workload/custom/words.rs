//! The workload in words, for people.

use super::{Custom, KeyForm, Keys, Phase, PhaseKind, Size, Values};
use crate::report::figures::grouped;

pub(super) fn title(custom: &Custom) -> String {
    let phases = custom.phases.iter().filter(|phase| phase.is_traffic()).count();
    let records = grouped(custom.record_count());
    match phases {
        1 => format!("Custom: one phase of operations on {records} records"),
        _ => format!("Custom: {phases} phases of operations on {records} records"),
    }
}

pub(super) fn parameters(custom: &Custom) -> Vec<(&'static str, String)> {
    let Keys { count, bytes, form, prefix } = &custom.keys;
    let form = match form {
        KeyForm::Decimal => "decimal, ascending",
        KeyForm::Hex => "hexadecimal, random",
    };
    let after = if prefix.is_empty() { String::new() } else { format!(", after {prefix:?}") };
    let keys = format!("at most {} of {bytes} bytes, {form}{after}", grouped(count.get()));
    let mut words = vec![("keys", keys), ("value", custom.values.words())];
    words.extend(custom.phases.iter().map(|phase| ("phase", phase.words())));
    words
}

impl Phase {
    /// What it does, in words.
    fn words(&self) -> String {
        match self.kind {
            PhaseKind::Operations => {}
            PhaseKind::Quiesce => return format!("{}: quiesce", self.name),
            PhaseKind::Compact => return format!("{}: compact", self.name),
            PhaseKind::Sync => return format!("{}: sync", self.name),
            PhaseKind::Reopen => return format!("{}: reopen", self.name),
        }
        let mut parts = Vec::new();
        parts.extend(self.operations.map(|count| format!("{} operations", grouped(count.get()))));
        parts.extend(self.seconds.map(|seconds| format!("{seconds} s")));
        let mix = self.mix.unwrap_or_default();
        for (_, kind, share) in mix.shares().into_iter().filter(|(_, _, share)| *share > 0.0) {
            parts.push(format!("{share} {kind}"));
        }
        if mix.insert < 1.0 {
            let name = serde_json::to_value(self.distribution.unwrap_or_default());
            parts.extend(name.ok().and_then(|name| name.as_str().map(str::to_owned)));
        }
        for (name, value) in [
            ("theta", self.theta),
            ("hot records", self.hot_records),
            ("hot operations", self.hot_operations),
            ("threads", self.threads.map(|threads| threads.get().into())),
            ("rate", self.rate),
            ("batch", self.batch.map(|batch| batch.get().into())),
        ] {
            parts.extend(value.map(|value| format!("{name} {value}")));
        }
        if let Some([least, most]) = self.scan_lengths {
            parts.push(format!("scans of {least} to {most}"));
        }
        format!("{}: {}", self.name, parts.join(", "))
    }
}

impl Values {
    fn words(&self) -> String {
        let of_one = |size: Size| match size {
            Size { bytes: [least, most], .. } if least == most => grouped(least.into()),
            Size { bytes: [least, most], .. } => {
                format!("{} to {}", grouped(least.into()), grouped(most.into()))
            }
        };
        let sizes = match self.all_sizes().as_slice() {
            [only] => of_one(*only),
            sizes => {
                let words = sizes.iter().map(|size| format!("{} ({})", of_one(*size), size.share));
                words.collect::<Vec<_>>().join(", ")
            }
        };
        format!("{sizes} bytes of {}", self.content.words())
    }
}
