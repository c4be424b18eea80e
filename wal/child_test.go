// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal_test

import "os"

// child runs what a test asked a second process of this program to do, and reports whether this is one.
func child() bool {
	run, ok := children[os.Getenv("ATOLL_WAL_CHILD")]
	if ok {
		run(os.Getenv("ATOLL_WAL_PATH"))
	}
	return ok
}

var children = map[string]func(path string){}
