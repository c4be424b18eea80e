// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

func ExampleStart() {
	ctx := context.Background()
	p, err := plane.Start(ctx, plane.Options{Name: "eu-west"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name(), strings.HasPrefix(p.Server(), "https://127.0.0.1:"))
	fmt.Println(p.Stop(ctx))
	// Output:
	// eu-west true
	// <nil>
}
