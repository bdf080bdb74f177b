//! The engines that people would pick instead, one file each.
