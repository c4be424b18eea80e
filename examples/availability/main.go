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
	"github.com/atoll-dev/atoll/internal/loop"
)

// limit is the timeout of the story. In memory it takes half a minute, with real clusters two minutes.
const limit = 10 * time.Minute

func main() {
	ctx := ending.Context(context.Background())
	os.Exit(availability(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// availability runs the program and returns its exit code.
func availability(ctx context.Context, args []string, stdout, stderr io.Writer) int {
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
	if err := start(ctx, a, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, "availability:", err)
		return 1
	}
	return 0
}

// arguments are the parsed arguments of the program.
type arguments struct {
	kubeconfigs stage.Kubeconfigs // empty: API servers in memory
	grace       time.Duration     // how long an unreachable cluster keeps its replicas
	lag         time.Duration     // how long samples may pass a limit before it counts
	verbose     bool              // show the log lines of the controllers
	chart       string            // the file of the chart; empty: none
}

// parse parses the arguments. Before it returns an error, it prints the cause.
func parse(args []string, stderr io.Writer) (arguments, error) {
	var a arguments
	flags := flag.NewFlagSet("availability", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Var(&a.kubeconfigs, "kubeconfig", "`NAME=PATH` of a real API server; give upstream, cluster-1, cluster-2 and cluster-3. None: all in memory")
	flags.DurationVar(&a.grace, "grace", defaultGrace, "how long the replicas of an unreachable cluster still count; longer than any pause of this machine")
	flags.DurationVar(&a.lag, "lag", time.Second, "how long samples may pass a limit before it counts: the watches of two clusters differ in their delay")
	flags.StringVar(&a.chart, "chart", "", "write the available replicas over time to `FILE`, as SVG")
	flags.BoolVar(&a.verbose, "v", false, "show the log lines of the controllers on standard error")
	if err := flags.Parse(args); err != nil {
		return a, err
	}
	err := a.kubeconfigs.Complete()
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: only flags are taken", flags.Arg(0))
	case a.grace < minGrace:
		err = fmt.Errorf("flag -grace: %s is too short for heartbeats every %s: want at least %s", a.grace, heartbeat, minGrace)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		flags.Usage()
	}
	return a, err
}

// start starts or opens the API servers that the arguments select, and runs the story on them.
func start(ctx context.Context, a arguments, out io.Writer) (err error) {
	files, evict := a.kubeconfigs, evictor(evictPod)
	if len(files) == 0 {
		m, err := stage.Listen(ctx)
		if err != nil {
			return err
		}
		defer m.Close()
		files, evict = m.Files, evictFromMemory
		_, _ = fmt.Fprintln(out, "API servers in memory. With real clusters: make demo-availability, or -kubeconfig NAME=PATH for your own.")
	}
	on, err := stage.Open(files)
	if err != nil {
		return err
	}
	defer on.Close()
	if len(a.kubeconfigs) == 0 {
		// The controllers must outlive the story: without them the pods of the story would not be deleted.
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		wait := simulate(running, on.Clusters)
		defer func() {
			stop()
			err = errors.Join(err, wait())
		}()
	}
	upstream := loop.NewObjects(on.Upstream.Dynamic(), deployments, loop.ObjectsOptions{Namespace: namespace})
	t := newTraffic(on, upstream)
	s := &story{Stage: on, out: out, evict: evict, traffic: t, sampler: newSampler(on, upstream, t, a.lag)}
	err = tell(ctx, s, a.grace)
	if a.chart != "" {
		err = errors.Join(err, os.WriteFile(a.chart, []byte(s.sampler.chart()), 0o644)) //nolint:gosec // a picture to show
	}
	return err
}
