// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command atoll-manager runs the loops of Atoll for a central plane, in any number of replicas.
//
//	atoll-manager --config manager.yaml
//	atoll-manager --config manager.yaml --check
//	atoll-manager --config manager.yaml --workload-types rollouts.yaml
//
// While the plane's KubeCarrier has spec.master: true, it keeps the peers, RegionClaims, ServiceClusters, Accounts and the
// catalogue of regions. The exit code is 0 if it was interrupted, 2 if the command line or the configuration is wrong, and
// 1 if it failed.
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
	"k8s.io/klog/v2"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/cmd/atoll-manager/manager"
	"github.com/atoll-dev/atoll/internal/ending"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx := ending.Context(context.Background())
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("atoll-manager", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "the configuration file; see the package config")
	check := flags.Bool("check", false, "check the configuration and the kubeconfig that it names, and exit")
	var typeFiles []string
	flags.Func("workload-types", "a `file` with WorkloadTypes, in addition to workloads.typeFiles; may be given more than once", func(path string) error {
		typeFiles = append(typeFiles, path)
		return nil
	})
	printed := flags.String("rights", "", "print the least rights in each `plane or peer`, in YAML, and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	if flags.NArg() > 0 || *path == "" {
		_, _ = fmt.Fprintln(stderr, "atoll-manager: --config is missing, or there are other arguments; accepted: --config FILE [--check | --rights plane | --rights peer]")
		return exitUsage
	}
	c, err := config.Load(*path)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitUsage
	}
	if typeFiles != nil && c.Workloads == nil {
		_, _ = fmt.Fprintf(stderr, "%s: workloads: is not set, so --workload-types has no effect; accepted: workloads: {}\n", *path)
		return exitUsage
	}
	if typeFiles != nil {
		c.Workloads.TypeFiles = append(c.Workloads.TypeFiles, typeFiles...)
	}
	if *printed != "" {
		if err := printRights(stdout, c, *printed); err != nil {
			_, _ = fmt.Fprintln(stderr, "atoll-manager: --rights:", err)
			return exitUsage
		}
		return 0
	}
	logger := loggerOf(c.Log, stderr)
	klog.SetLogger(logger)
	m, err := manager.New(c, manager.Options{Identity: os.Getenv("POD_NAME"), Logger: logger})
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", *path, err)
		return exitUsage
	}
	if *check {
		return 0
	}
	if err := m.Start(logr.NewContext(ctx, logger)); err != nil {
		_, _ = fmt.Fprintln(stderr, "atoll-manager:", err)
		return exitFailed
	}
	return 0
}

func loggerOf(c config.Log, stderr io.Writer) logr.Logger {
	opts := &slog.HandlerOptions{Level: slog.Level(-c.Level)}
	if c.Format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(stderr, opts))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(stderr, opts))
}
