// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wal remembers operations from before their first effect until their end is proved.
//
// A program that is about to change several systems writes down what it intends (Begin), does it, notes its progress
// (Advance) and crosses the entry out (End). After a crash, Open yields what was begun and not ended. The log knows
// nothing of the systems that an operation touches: State and Data belong to the caller.
//
// [Log] is the contract. [File] keeps it in one bbolt file that is exclusive to one process; package kubelog keeps it in
// an API server that any number of programs share. Log.Shared says which, because only the entries of an exclusive log
// can be settled without a look at their owners. Package waltest states the contract as tests that any implementation,
// and any wrapper of one, must pass.
//
// # What a File guarantees
//
//   - Begin, Advance and End return nil only when the change is durable: on disk, its directory entries included.
//   - After a crash at any moment the file holds every acknowledged change, in order, and of the unacknowledged ones a
//     prefix. Nothing is half there.
//   - Corrupt is never absent. Every record carries a checksum that each read verifies. A damaged entry is reported
//     by its ID in a [*CorruptError] and the others stay readable. Damaged names are restored from the records, which
//     repeat them; Open says so, and the old file is kept. A file whose pages are damaged is set aside under another
//     name, and the log does not begin anew on its own: Salvage makes a new one of what can be read. Discard gives up
//     a single entry, if it is damaged.
//   - A file that something else wrote is refused with a [*SchemaError] and left exactly as it was.
//   - A file that was cut is damaged, whatever is left of it, and is set aside. So is an empty one at the place of a log.
//   - Space that is not needed any more goes back to the disk when a log that is mostly empty is opened, or by Compact.
//     A crash meanwhile leaves the old file or the new one, both whole.
//   - Move gives a log another path, and a crash meanwhile leaves it whole at one of the two.
//   - One process at a time. A second one is told who holds the file, and since when, in a [*LockedError].
//   - After a failed commit the File refuses every further call: what a disk said once cannot be asked again, since
//     a repeated fsync may report success for pages that were lost. See [InDoubtError].
//
// # What it does not guarantee
//
//   - It does not survive the loss of the disk, and Backup is as old as its last call.
//   - A copied or restored file is a second log with the same entries; only the caller's own fencing can tell.
//   - It is not a queue and not an event log: only the present State and Data of an entry are kept.
//   - The bytes of the file are not an interface. A newer minor version reads the files of older ones.
package wal
