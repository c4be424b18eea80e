// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var walMutants = []mutant{
	{
		"a commit is synced before it is acknowledged", "bbolt runs with NoSync",
		"create.go", "NoStatistics:    true,", "NoStatistics:    true, NoSync: true,", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"the content of a new log is synced before its name", "the file is not synced",
		"copy.go", "err = db.Sync()", "err = nil", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"the name of a new log is synced", "its directory is not synced",
		"copy.go", "	return syncDir(filepath.Dir(path))\n}\n\n// prepare", "	return nil\n}\n\n// prepare", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"the names of new directories are synced", "their parents are not synced",
		"create.go", "return syncDir(parent)", "return nil", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"the name of a log that was set aside is synced", "its directory is not synced",
		"create.go", "return name, syncDir(filepath.Dir(path))", "return name, nil", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"the name of a backup is synced", "its directory is not synced",
		"copy.go", "os.Remove(dir), syncDir(filepath.Dir(path)))", "os.Remove(dir))", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"a compacted log is used after its name was synced", "its directory is not synced",
		"compact.go", "if err := syncDir(filepath.Dir(f.path)); err != nil {", "if err := error(nil); err != nil {", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"the directories of a log that moves are synced", "they are not",
		"move.go", "return errors.Join(syncDir(filepath.Dir(to)), syncDir(filepath.Dir(f.path)))", "return errors.Join()", "TestNothingIsDoneUnlessItWasSynced",
	},
	{
		"Advance replaces only the version that was read", "the version is not compared",
		"state.go", "!old.Ended.IsZero() || old.Version != e.Version", "!old.Ended.IsZero()", "TestConformance",
	},
	{
		"an entry that has ended is not advanced", "it is opened again",
		"state.go", "!old.Ended.IsZero() || old.Version != e.Version", "old.Version != e.Version", "TestConformance",
	},
	{
		"End ends only the version that was read", "the version is not compared",
		"state.go", "	case old.Version != e.Version:\n		return ErrStale\n", "", "TestConformance",
	},
	{
		"the first outcome of an entry stays", "a second End replaces it",
		"state.go", "case errors.Is(err, ErrNotFound), err == nil && !old.Ended.IsZero():", "case errors.Is(err, ErrNotFound):", "TestConformance",
	},
	{
		"an idempotency key is used once", "Begin does not look for the key",
		"state.go", "			return s.byKey(e.Key)\n", "			return Entry{}, ErrNotFound\n", "TestConformance",
	},
	{
		"a key counts only under its own name", "names are not compared",
		"state.go",
		"	if err == nil && name != key {\n		err = errors.New(\"found under the key of another\")\n	}\n	if err != nil {\n		return Entry{Key: key}, &CorruptError{Path: s.path, Key: key, Err: err}\n	}\n	e, err := s.byID(id)\n	if errors.Is(err, ErrNotFound) || err == nil && e.Key != key {",
		"	_ = name\n	if err != nil {\n		return Entry{Key: key}, &CorruptError{Path: s.path, Key: key, Err: err}\n	}\n	e, err := s.byID(id)\n	if errors.Is(err, ErrNotFound) {",
		"TestDamagedNamesWhileOpen",
	},
	{
		"a record counts only under its own name", "names are not compared",
		"state.go", "if e.ID != string(name) {", "if false {", "TestDamagedNamesWhileOpen",
	},
	{
		"a record that does not match its checksum is damage", "checksums are not compared",
		"record.go", "want != got {", "want != got && false {", "TestFlippedRecords",
	},
	{
		"a commit that failed is in doubt", "it is an error that says nothing was stored",
		"commit.go", "r.err = &InDoubtError{Path: f.path, ID: r.id, Err: err}", "r.err = err", "TestFailedCommit",
	},
	{
		"after a failed commit the log writes nothing more", "it continues to write",
		"commit.go", "		f.latch.set(err)\n", "", "TestFailedCommit|TestFailedCommitIsNotRepeated",
	},
	{
		"an answer that rests on a commit in doubt is refused", "it is given",
		"commit.go", "r.err = f.latch.refusal() // r may", "_ = r // r may", "TestAnswersThatRestOnADoubtfulCommit",
	},
	{
		"one call that cannot be stored does not fail those that share its commit", "it fails all of them",
		"commit.go", "case len(batch) > 1:", "case len(batch) > maxBatch:", "TestDamageThatOneCallMeets",
	},
	{
		"one process has the log open", "the lock is not taken",
		"platform_unix.go", "err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)", "err = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)", "TestLocked",
	},
	{
		"the lock is that of the file, by whatever name it is opened", "it is that of the name",
		"open.go", "		path = target\n", "		_ = target\n", "TestLockedByAnotherName",
	},
	{
		"Close waits for calls in progress", "it does not wait",
		"file.go", "	f.calls.Wait()\n", "", "TestCloseWaits",
	},
	{
		"a log that was set aside is not replaced by an empty one", "it is",
		"open.go", `case name != "" && !opts.AcceptLoss:`, `case name != "" && opts.AcceptLoss:`, "TestSetAside",
	},
	{
		"bbolt makes no log without a schema", "it creates the file",
		"store.go", "flag&^os.O_CREATE", "flag", "TestNoLogIsMadeWithoutASchema",
	},
	{
		"a commit that another program undid is damage", "the older meta page is believed",
		"store.go", "case metas[0].txid < last:", "case metas[0].txid < last && false:", "TestDamagedMetaPageWhileOpen",
	},
	{
		"outcomes are remembered for the retention time", "they are forgotten at once",
		"prune.go", "s.now.Sub(e.Ended) > retention", "s.now.Sub(e.Ended) >= 0", "TestRetention|TestConformance",
	},
	{
		"a forgotten entry takes its key along", "the key stays",
		"prune.go", "err == nil && id == e.ID {", "err == nil && id != e.ID {", "TestRetention",
	},
	{
		"a log moves only to a free path", "it replaces the existing log",
		"move.go", "	if err := vacant(to); err != nil {\n		return explain(to, \"move here\", err)\n	}\n", "", "TestMoveRefused",
	},
	{
		"Move holds the lock of both paths", "it does not lock the new path",
		"move.go", "held, err := acquireLock(to, f.opts.LockTimeout)", `held, err := acquireLock(to+".other", f.opts.LockTimeout)`, "TestMoveRefused",
	},
	{
		"only damaged entries are discarded", "any entry may be",
		"discard.go", "	if err == nil {\n		return ErrNotDamaged\n	}\n", "	if err == nil {\n		return errors.Join(s.remove(s.ops, opsBucket, id), s.remove(s.hist, histBucket, id))\n	}\n", "TestDiscard",
	},
	{
		"versions are not used twice after a compaction", "they are counted from zero",
		"copy.go", "SetSequence(max(last, walked.sequences[opsBucket]))", "SetSequence(0 * max(last, walked.sequences[opsBucket]))", "TestCompactKeepsVersions",
	},
	{
		"a log that is in use is not salvaged", "its lock is not taken",
		"salvage.go", `os.Stat(from + ".lock"); err == nil {`, `os.Stat(from + ".lock"); err != nil {`, "TestSalvage",
	},
}
