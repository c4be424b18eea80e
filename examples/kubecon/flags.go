// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// upstream is the name of the API server to which the clusters are attached.
const upstream = "upstream"

// names returns the names of all API servers of the story.
func names() []string { return []string{upstream, "cluster-1", "cluster-2", "cluster-3"} }

// kubeconfig is the kubeconfig of an API server.
type kubeconfig struct {
	name string
	data []byte
}

// kubeconfigs is the value of the flag -kubeconfig. parse sorts it by name.
type kubeconfigs []kubeconfig

// String returns the default that package flag prints.
func (k *kubeconfigs) String() string { return "" }

// Set parses one NAME=PATH.
func (k *kubeconfigs) Set(value string) error {
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" || path == "" {
		return errors.New("want NAME=PATH, upstream or the name of a cluster and the path of its kubeconfig")
	}
	if !slices.Contains(names(), name) {
		return fmt.Errorf("the name %q: want one of %s", name, strings.Join(names(), ", "))
	}
	if slices.ContainsFunc(*k, func(other kubeconfig) bool { return other.name == name }) {
		return fmt.Errorf("%s is given twice: each needs a name of its own", name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := region.ParseKubeconfig(data, region.Trust{}); err != nil {
		return err
	}
	*k = append(*k, kubeconfig{name, data})
	return nil
}

// arguments are the parsed arguments of the program.
type arguments struct {
	kubeconfigs kubeconfigs   // empty: API servers in memory
	grace       time.Duration // how long the replicas of an unreachable cluster still count
	verbose     bool          // show the log lines of the controllers
	chart       string        // the file of the chart; empty: none
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
	switch n := len(a.kubeconfigs); {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: only flags are taken", flags.Arg(0))
	case n > 0 && n < len(names()):
		err = fmt.Errorf("flag -kubeconfig: %d are given: want one each of %s", n, strings.Join(names(), ", "))
	case a.grace < minGrace:
		err = fmt.Errorf("flag -grace: %s is too short for heartbeats every %s: want at least %s", a.grace, heartbeat, minGrace)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		flags.Usage()
	}
	slices.SortFunc(a.kubeconfigs, func(a, b kubeconfig) int { return strings.Compare(a.name, b.name) })
	return a, err
}
