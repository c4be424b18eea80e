// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controllermanager runs the loops of Atoll under controller-runtime, in any number of
// replicas, beside the central plane with its Peers, Accounts and KubeCarrier.
//
// The replicas have no leader: they share the work by Leases. While the plane's KubeCarrier has
// spec.master: true, each replica runs the ring of peers, the status of Peers, the arbitration of
// RegionClaims, the replication and upkeep of Accounts, and the catalogue of regions. /healthz
// and /readyz report the health of the replica, /metrics its work, and Events the changes of objects.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/atoll-dev/atoll/internal/ending"
)

func main() {
	ctx := ending.Context(context.Background())
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "controllermanager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}

	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-opts.Verbosity)}))
	log.SetLogger(logger)
	klog.SetLogger(logger)

	config, err := configOf(opts.Kubeconfig)
	if err != nil {
		return err
	}
	manager, err := newManager(config, opts, logger)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// parse parses the command line.
func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("controllermanager", flag.ContinueOnError)
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "of the central plane; without it, the one in whose Pod this runs")
	flags.IntVar(&opts.Verbosity, "v", 0, "how much is logged: 0 to 4")
	flags.StringVar(&opts.Namespace, "namespace", "kubecarrier-system", "in the central plane, of the installation: for Leases and Secrets")
	flags.StringVar(&opts.Identity, "identity", os.Getenv("POD_NAME"), "of this replica, different from all others; without it, one that is made up")
	flags.StringVar(&opts.HealthAddress, "health-address", ":8081", "of /healthz and /readyz")
	flags.StringVar(&opts.MetricsAddress, "metrics-address", ":8080", "of /metrics")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("argument %q is not understood", flags.Arg(0))
	}
	return opts, nil
}

// configOf returns the configuration for the central plane, without a client-side rate limit.
func configOf(kubeconfig string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration of the central plane: %w", err)
	}
	config.QPS = -1
	return config, nil
}
