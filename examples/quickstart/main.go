// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/atoll-dev/atoll/internal/ending"
)

// limit is the timeout of the story. In memory it takes a second.
const limit = 2 * time.Minute

func main() {
	if os.Getenv(doomed) != "" {
		os.Exit(runDoomed(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx := ending.Context(context.Background())
	os.Exit(quickstart(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// quickstart runs the program and returns its exit code.
func quickstart(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	files, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := start(ctx, files, newNarrator(stdout)); err != nil {
		_, _ = fmt.Fprintln(stderr, "quickstart:", err)
		return 1
	}
	return 0
}

// start starts or opens the peers that the arguments select, and runs the story on them.
func start(ctx context.Context, files kubeconfigs, out *narrator) error {
	if len(files) == 0 {
		memory, err := listen(ctx, "eu-west", "us-east", "ap-south")
		if err != nil {
			return err
		}
		defer memory.close()
		files = memory.files
		out.say("Three API servers in memory, reached over TLS on loopback. For your own: -kubeconfig NAME=PATH.")
	}
	ring, err := connect(files)
	if err != nil {
		return err
	}
	return run(ctx, ring, out)
}
