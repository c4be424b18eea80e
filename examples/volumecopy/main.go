// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command volumecopy copies the volumes of a StatefulSet from one cluster to another, and then lets its replicas move:
//
//	go run ./examples/volumecopy -upstream upstream.kubeconfig -namespace shop -statefulset db -from eu-1 -to us-1 -jobs jobs.yaml
//
// It writes only to the upstream. Jobs that the syncers create in the clusters copy the data. README.md lists the conditions
// that the StatefulSet and its policy must meet.
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
	"github.com/atoll-dev/atoll/region"
)

func main() {
	if err := run(ending.Context(context.Background()), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "volumecopy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	m := move{Every: 2 * time.Second, Out: out}
	var kubeconfig, jobs string
	flags := flag.NewFlagSet("volumecopy", flag.ContinueOnError)
	flags.StringVar(&kubeconfig, "upstream", "", "path of the upstream's kubeconfig; required")
	flags.StringVar(&jobs, "jobs", "", "path of the manifests of the Jobs push and pull; required")
	flags.StringVar(&m.Namespace, "namespace", "default", "namespace of the StatefulSet")
	flags.StringVar(&m.Set, "statefulset", "", "name of the StatefulSet; required")
	flags.StringVar(&m.From, "from", "", "name of the cluster that the replicas shall leave; required")
	flags.StringVar(&m.To, "to", "", "name of the cluster that they shall move to; required")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if kubeconfig == "" || jobs == "" || m.Set == "" || m.From == "" || m.To == "" {
		return errors.New("-upstream, -jobs, -statefulset, -from and -to are required")
	}
	manifests, err := os.ReadFile(jobs)
	if err != nil {
		return err
	}
	if m.Jobs, err = readJobs(manifests); err != nil {
		return fmt.Errorf("%s: %w", jobs, err)
	}
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	credentials, err := region.ParseKubeconfig(data, region.Trust{})
	if err != nil {
		return err
	}
	conn, err := region.NewConn(region.Peer{Name: "upstream", Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return err
	}
	defer conn.Close()
	m.Up = conn.Dynamic()
	return m.run(ctx)
}
