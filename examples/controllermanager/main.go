// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controllermanager runs the loops of Atoll under controller-runtime, in any number of replicas, beside the
// central plane whose Peers, Accounts and KubeCarrier it keeps.
//
// No replica leads: they share the work by Leases. While the plane's KubeCarrier says spec.master: true, each runs the ring
// of peers, the status of Peers, the arbitration of RegionClaims, and the replication and upkeep of Accounts. /healthz
// and /readyz say how it is, /metrics what it does.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "controllermanager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var opts options
	flags := flag.NewFlagSet("controllermanager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "of the central plane; without it, the one in whose Pod this runs")
	verbosity := flags.Int("v", 0, "how much is logged: 0 to 4")
	flags.StringVar(&opts.Namespace, "namespace", "kubecarrier-system", "in the central plane, of the installation: for Leases and Secrets")
	flags.StringVar(&opts.Identity, "identity", os.Getenv("POD_NAME"), "of this replica, different from all others; without it, one that is made up")
	flags.StringVar(&opts.HealthAddress, "health-address", ":8081", "of /healthz and /readyz")
	flags.StringVar(&opts.MetricsAddress, "metrics-address", ":8080", "of /metrics")
	if err := flags.Parse(args); err != nil {
		return err
	}

	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-*verbosity)}))
	log.SetLogger(logger)
	klog.SetLogger(logger)

	config, err := configOf(*kubeconfig)
	if err != nil {
		return err
	}
	manager, err := newManager(config, opts, logger)
	if err != nil {
		return err
	}
	return manager.Start(logr.NewContext(ctx, logger))
}

// configOf is how the central plane is reached, without a limit of requests per second of our own.
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
