// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configfile reads the configuration files of programs: one file of YAML or JSON per program, whose every fault
// becomes a line with the path of the field, the reason, and what would be accepted.
//
// Guaranteed: unknown fields, and fields that are given twice, are faults.
//
// Not guaranteed: that the files exist which a configuration names.
package configfile
