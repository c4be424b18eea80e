// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

func ExamplePrograms() {
	paths, err := build.Programs(context.Background(), build.Etcd)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filepath.Base(paths[build.Etcd]))
	// Output: etcd
}
