// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var loopMutants = []mutant{
	{
		"a status is written over the version that was read", "the write has no resourceVersion",
		"apply.go", "		desired.SetResourceVersion(current.GetResourceVersion())\n", "", "TestApplyDoesNotMeetAReplacement",
	},
	{
		"a finalizer is removed from the version that was read", "the write has neither UID nor resourceVersion",
		"finalizer.go", `		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": finalizers,`, `		"finalizers": finalizers,`, "TestRemoveFinalizer",
	},
	{
		"finalizers of others stay", "they are removed with ours",
		"finalizer.go", "return f == finalizer })", "return f != \"\" })", "TestRemoveFinalizer",
	},
	{
		"an object that is equal is not written again", "it is",
		"apply.go", "if current != nil && !differs(current, desired, manager, subresources) {", "if current != nil && desired == nil {", "TestApplyWritesWhatDiffers|TestApplyStatus|TestApplyIsExact",
	},
	{
		"a key that fails runs again after a backoff", "it runs at once",
		"queue.go", "		q.AddAfter(key, wait)\n", "		q.AddAfter(key, 0*wait)\n", "TestQueueBacksOff",
	},
	{
		"a cache whose watch failed is stale", "it counts as fresh",
		"freshness.go", "	f.settle(func() error {\n		f.blind = true\n		f.expectNothing()\n		return err\n	})", "	f.settle(func() error {\n		f.blind = true\n		f.expectNothing()\n		return f.err\n	})\n	_ = err", "TestObjectsErrIsHonest",
	},
	{
		"a cache without a watch is stale after a grace period", "it counts as fresh",
		"freshness.go", "	f.lapse = timer\n", "	f.lapse = nil\n	_ = timer\n", "TestObjectsErrIsHonest",
	},
	{
		"lists are read from the newest state", "they may be of the past",
		"source.go", "	opts.ResourceVersion, opts.ResourceVersionMatch = \"\", \"\"\n", "", "TestListsAreOfTheNewestState",
	},
	{
		"after a broken watch all objects are listed again", "the next watch continues at its version",
		"source.go", "	if s.isBroken() {\n		return nil, apierrors.NewResourceExpired(\"the last watch ended before its time\")\n	}\n", "", "TestObjectsAreReadAgainAfterARestore|TestObjectsTellOfWhatARestoreChanged",
	},
	{
		"an object that a watch reports as deleted is reported as removed", "it is not",
		"store.go", "	if s.opts.Removed != nil {\n		s.opts.Removed(obj)\n	}\n	s.mu.Unlock()", "	s.mu.Unlock()", "TestObjectsComeAndGo",
	},
	{
		"an object is reported as removed at the moment it goes", "a reader may see before that it is gone",
		"store.go", "	if s.opts.Removed != nil {\n		s.opts.Removed(obj)\n	}\n	s.mu.Unlock()", "	s.mu.Unlock()\n	if s.opts.Removed != nil {\n		s.opts.Removed(obj)\n	}", "TestRemovedIsToldAsTheObjectGoes",
	},
}
