// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command syncer syncs the objects for one SyncTarget from an upstream API server to one cluster,
// and the status back. targets.Manifests installs this program inside a cluster; it runs equally
// well anywhere else:
//
//	go run ./examples/syncer -target my-cluster -upstream upstream.kubeconfig -downstream cluster.kubeconfig
//
// Without -downstream it syncs to the cluster in whose Pod it runs. Both kubeconfig files may change while
// it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/ending"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter/declarations"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/join"
	"github.com/atoll-dev/atoll/syncer/targets"
)

func main() {
	ctx := ending.Context(context.Background())
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "syncer:", err)
		os.Exit(1)
	}
}

// options holds the flags of the command line.
type options struct {
	syncer.Options
	Up, Down string        // paths of kubeconfigs
	Join     string        // path of a kubeconfig with a token to join; empty: Up is given
	Trust    region.Trust  // of the kubeconfigs
	Declared bool          // follow the WorkloadTypes of the upstream
	Reread   time.Duration // interval of reading the kubeconfigs again
	Level    int
}

func parse(args []string) (options, error) {
	o := options{Reread: 10 * time.Second}
	var types, permit, upsync, plugins string
	var deletes, report bool
	flags := flag.NewFlagSet("syncer", flag.ContinueOnError)
	flags.StringVar(&o.Target, "target", "", "name of the SyncTarget; required")
	flags.StringVar(&o.Upstream, "identity", "", "of the upstream; without it, the UID of its namespace kube-system")
	flags.StringVar(&o.Up, "upstream", "", "path of the upstream's kubeconfig; required")
	flags.StringVar(&o.Join, "join", "", "path of a kubeconfig with a token (atollctl cluster token): the program joins the upstream with it, and keeps the kubeconfig with a short certificate at -upstream")
	flags.StringVar(&o.Down, "downstream", "", "path of the cluster's kubeconfig; without it, the cluster in whose Pod this runs")
	flags.StringVar(&plugins, "exec-plugins", "", "absolute paths of the credential plugins that the kubeconfigs may run, such as /usr/local/bin/aws; without it, none")
	flags.StringVar(&types, "types", "", "types to sync, such as configmaps,deployments.apps; without it, every type that both sides serve, except those that need -permit")
	flags.StringVar(&permit, "permit", "", "powers over the cluster that authors of upstream objects may have, such as RBAC,StorageClasses; without it, none")
	flags.StringVar(&upsync, "upsync", "", "those of the types whose labelled objects, if created in the cluster, are synced upstream, such as configmaps; without it, none")
	flags.BoolVar(&o.Declared, "workload-types", false, "follow the WorkloadTypes of the upstream: autoscalers of declared types keep the replicas of their workloads in the cluster; needs list and watch of workloadtypes upstream")
	flags.BoolVar(&report, "report", false, "report on the SyncTarget labelled objects of types that -types leaves out; needs list of all types upstream")
	flags.BoolVar(&deletes, "delete-upstream", false, "delete an object upstream if it is deleted in the cluster, instead of creating it again there")
	flags.DurationVar(&o.Heartbeat, "heartbeat", 20*time.Second, "how often the SyncTarget's status is written")
	flags.DurationVar(&o.Unscheduled, "unscheduled", 0, "how often pods in the cluster without a node are counted, for an annotation of their workload upstream; without it, never")
	flags.DurationVar(&o.Capacity, "capacity", time.Minute, "how often the cluster's nodes are read, for the capacity in the SyncTarget's status; -1s: never")
	flags.DurationVar(&o.Discovery, "discovery", 30*time.Second, "how often the types of both sides are compared")
	flags.IntVar(&o.Level, "v", 0, "how much is logged: 0 to 4")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("argument %q is not understood", flags.Arg(0))
	case o.Target == "" || o.Up == "":
		return options{}, errors.New("-target and -upstream are required")
	}
	var err error
	if o.Permit, err = powers(permit); err != nil {
		return options{}, err
	}
	if o.Trust.Exec, err = paths(plugins); err != nil {
		return options{}, err
	}
	o.Types, o.Upsync = named(types), named(upsync)
	if report {
		o.Report = func(schema.GroupResource) bool { return true }
	}
	if deletes {
		o.OnDownstreamDelete = syncer.DeleteUpstream
	}
	return o, nil
}

// named returns a filter for the types in a list, nil if the list is empty.
func named(list string) syncer.TypeFilter {
	if list == "" {
		return nil
	}
	var types []schema.GroupResource
	for _, name := range strings.Split(list, ",") {
		types = append(types, schema.ParseGroupResource(strings.TrimSpace(name)))
	}
	return func(gr schema.GroupResource) bool { return slices.Contains(types, gr) }
}

// paths returns the absolute paths in a list, nil if the list is empty.
func paths(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	all := strings.Split(list, ",")
	for i := range all {
		if all[i] = strings.TrimSpace(all[i]); !filepath.IsAbs(all[i]) || filepath.Clean(all[i]) != all[i] {
			return nil, fmt.Errorf("-exec-plugins: %q is not an absolute path", all[i])
		}
	}
	return all, nil
}

// powers returns the powers in a list, nil if the list is empty.
func powers(list string) ([]syncer.Power, error) {
	if list == "" {
		return nil, nil
	}
	var all []syncer.Power
	for _, name := range strings.Split(list, ",") {
		p, err := syncer.ParsePower(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("-permit: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-o.Level)})))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return sync(ctx, group, o) })
	return group.Wait()
}

// sync joins the upstream, if it is to, and then syncs until ctx ends. It runs loops in the group.
func sync(ctx context.Context, group *errgroup.Group, o options) error {
	if o.Join != "" {
		renewer, err := join.NewRenewer(join.RenewerOptions{Target: o.Target, File: o.Up, Token: o.Join})
		if err != nil {
			return err
		}
		group.Go(func() error { return renewer.Start(ctx) })
		select {
		case <-renewer.Ready():
		case <-ctx.Done():
			return nil
		}
	}
	up, err := open("upstream", o.Up, o.Trust)
	if err != nil {
		return err
	}
	defer up.Close()
	var down region.API
	followed := []*side{up}
	if o.Down == "" {
		down, err = inside()
	} else {
		var s *side
		if s, err = open("downstream", o.Down, o.Trust); err == nil {
			defer s.Close()
			followed, down = append(followed, s), s
		}
	}
	if err != nil {
		return err
	}
	start, err := agent(up, down, o)
	if err != nil {
		return err
	}
	loops, ctx := errgroup.WithContext(ctx)
	for _, s := range followed {
		loops.Go(func() error { return s.follow(ctx, o.Reread) })
	}
	loops.Go(func() error { return start(ctx) })
	return loops.Wait()
}

// agent returns a function that syncs until its context ends.
func agent(up, down region.API, o options) (func(context.Context) error, error) {
	fixed, err := targets.NewAgent(up, down, o.Options)
	if err != nil || !o.Declared {
		return fixed.Start, err
	}
	follow, err := declarations.New(up, func(ctx context.Context, types []v1alpha1.WorkloadTypeSpec) error {
		opts := o.Options
		opts.WorkloadTypes = types
		a, err := targets.NewAgent(up, down, opts)
		if err != nil {
			return err
		}
		return a.Start(ctx)
	}, declarations.Options{ReadOnly: true})
	return follow.Start, err
}

// inside returns the cluster in whose Pod this runs.
func inside() (region.API, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("-downstream is not given: %w", err)
	}
	config.QPS = -1
	return region.APIFor(config)
}
