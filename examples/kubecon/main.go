// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/internal/ending"
)

// limit is the timeout of the story. In memory it takes some seconds, with real clusters a minute.
const limit = 10 * time.Minute

func main() {
	ctx := ending.Context(context.Background())
	os.Exit(kubecon(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// kubecon runs the program and returns its exit code.
func kubecon(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log := slog.DiscardHandler
	if a.verbose {
		log = slog.NewTextHandler(stderr, nil)
	}
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(log))
	out := &narrator{w: stdout}
	err = start(ctx, a, out)
	if a.chart != "" {
		err = errors.Join(err, os.WriteFile(a.chart, []byte(out.chart()), 0o644)) //nolint:gosec // a picture to show
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "kubecon:", err)
		return 1
	}
	return 0
}

// start starts or opens the API servers that the arguments select, and runs the story on them.
func start(ctx context.Context, a arguments, out *narrator) (err error) {
	if len(a.kubeconfigs) > 0 {
		on, err := stage.Open(a.kubeconfigs)
		if err != nil {
			return err
		}
		defer on.Close()
		return tell(ctx, play{Stage: on, grace: a.grace}, out)
	}
	m, err := stage.Listen(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	on, err := stage.Open(m.Files)
	if err != nil {
		return err
	}
	defer on.Close()
	ctx, cancel := context.WithCancel(ctx)
	script := newScript()
	controllers := runClusters(ctx, m, script)
	defer func() {
		cancel()
		err = errors.Join(err, controllers())
	}()
	out.say("API servers in memory. With real clusters: make demo-kubecon, or -kubeconfig NAME=PATH for your own.")
	return tell(ctx, play{Stage: on, script: script, grace: a.grace}, out)
}
