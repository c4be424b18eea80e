// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperModule and helperCache are the names of environment variables. If the first one is set, the
// test binary only builds the program "hello" of the module in that directory into the cache
// directory in the second one, and exits.
const (
	helperModule = "ATOLL_TEST_MODULE"
	helperCache  = "ATOLL_TEST_CACHE"
)

func TestMain(m *testing.M) {
	if module := os.Getenv(helperModule); module != "" {
		b := &builder{log: os.Stderr, module: module, cache: os.Getenv(helperCache)}
		paths, err := b.programs(context.Background(), fake(), nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(paths["hello"])
		return
	}
	goleak.VerifyTestMain(m)
}
