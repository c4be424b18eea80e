// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wal records operations from before their first effect until their end is proved.
//
// A program that is about to change several systems records its intention (Begin), acts, records its progress
// (Advance), and ends the entry (End). After a crash, Open yields the entries that were begun and not ended. The log
// knows nothing of the systems that an operation changes: State and Data belong to the caller.
//
// [Log] is the contract. [File] implements it in one bbolt file that is exclusive to one process; package kubelog
// implements it in an API server that any number of programs share. Log.Shared distinguishes them, because only the
// entries of an exclusive log may be settled without regard to their owners. Package waltest has tests of
// the contract, which every implementation and every wrapper of a Log must pass.
//
// # What a File guarantees
//
//   - Begin, Advance and End return nil only when the change is durable: on disk, its directory entries included.
//   - After a crash at any moment the file holds every acknowledged change, in order, and a prefix of the
//     unacknowledged ones. No change is applied in part.
//   - Corrupt never means absent. Every record has a checksum that each read verifies. A damaged entry is reported by
//     its ID in a [*CorruptError] and the others stay readable. Open restores damaged names from the records, which
//     repeat them; it reports the repair and keeps the old file. A file with damaged pages is renamed, and no new log
//     is created in its place: Salvage builds one from the readable entries. Discard removes a single entry, if it is
//     damaged.
//   - A file of another program is refused with a [*SchemaError] and left unchanged.
//   - A truncated file, however short, is damaged, and is renamed. So is an empty file at the path of a log.
//   - Free space is returned to the file system when a log that is mostly empty is opened, or by Compact. A crash
//     meanwhile leaves the old file or the new one, both complete.
//   - Move renames a log, and a crash meanwhile leaves it complete at one of the two paths.
//   - One process at a time. A second process gets a [*LockedError], which names the holder of the file and the time
//     since which it has held the file.
//   - After a failed commit the File refuses every further call: the sync cannot be repeated, since a repeated fsync
//     may report success for pages that were lost. See [InDoubtError].
//
// # Not guaranteed
//
//   - The loss of the disk destroys the log, and a copy by Backup is only as new as the last call of Backup.
//   - A copied or restored file is a second log with the same entries; only the caller's own fencing detects that.
//   - A File is not a queue and not an event log: it keeps only the present State and Data of an entry.
//   - The bytes of the file are not an interface. A newer minor version reads the files of older ones.
package wal
