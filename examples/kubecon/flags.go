// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// arguments are the parsed arguments of the program.
type arguments struct {
	kubeconfigs stage.Kubeconfigs // empty: API servers in memory
	grace       time.Duration     // how long an unreachable cluster keeps its replicas
	verbose     bool              // show the log lines of the controllers
	chart       string            // the file of the chart; empty: none
}

// parse parses the arguments. Before it returns an error, it prints the cause.
func parse(args []string, stderr io.Writer) (arguments, error) {
	var a arguments
	flags := flag.NewFlagSet("kubecon", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Var(&a.kubeconfigs, "kubeconfig", "`NAME=PATH` of a real API server; give upstream, cluster-1, cluster-2 and cluster-3. None: all in memory")
	flags.DurationVar(&a.grace, "grace", defaultGrace, "how long the replicas of a silent cluster still count; longer than any pause of this machine")
	flags.StringVar(&a.chart, "chart", "", "write the ready replicas over time to `FILE`, as SVG")
	flags.BoolVar(&a.verbose, "v", false, "show the log lines of the controllers on standard error")
	if err := flags.Parse(args); err != nil {
		return a, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: only flags are taken", flags.Arg(0))
	case a.grace < minGrace:
		err = fmt.Errorf("flag -grace: %s is too short for heartbeats every %s: want at least %s", a.grace, heartbeat, minGrace)
	}
	if err == nil {
		err = a.kubeconfigs.Complete()
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		flags.Usage()
	}
	return a, err
}
