// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command atoll-gateway serves many regions at one address, over TLS. kubectl and any client of Kubernetes can use a
// region through it, at /regions/NAME.PROVIDER, or all regions as one, at /regions/*, as the caller.
//
//	atoll-gateway --config gateway.yaml
//	atoll-gateway --config gateway.yaml --check
//	atoll-gateway --config gateway.yaml --rights peer --as alice --as-group dev
//
// The exit code is 0 if it was interrupted, 2 if the command line or the configuration is wrong, and 1 if it failed.
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

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/gateway"
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
	flags := flag.NewFlagSet("atoll-gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "the configuration file; see the package config")
	check := flags.Bool("check", false, "check the configuration and the files that it names, and exit")
	var asked printing
	asked.define(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	if flags.NArg() > 0 || *path == "" {
		_, _ = fmt.Fprintln(stderr, "atoll-gateway: --config is missing, or there are other arguments; accepted: --config FILE [--check | --rights plane | --rights peer --as USER --as-group GROUP | --rights tokenreview]")
		return exitUsage
	}
	c, err := config.Load(*path)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitUsage
	}
	if asked.where != "" || asked.named() {
		if err := asked.print(stdout, c); err != nil {
			_, _ = fmt.Fprintln(stderr, "atoll-gateway: --rights:", err)
			return exitUsage
		}
		return 0
	}
	logger := loggerOf(c.Log, stderr)
	klog.SetLogger(logger)
	ctx = logr.NewContext(ctx, logger)
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx)) // issuers are asked for keys until the drain is over
	defer cancel()
	g, err := gateway.New(lifetime, c, gateway.Options{Stdout: stdout})
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", *path, err)
		return exitUsage
	}
	if *check {
		if err := g.Close(); err != nil {
			_, _ = fmt.Fprintf(stderr, "%s: %v\n", *path, err)
			return exitFailed
		}
		return 0
	}
	if err := g.Start(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, "atoll-gateway:", err)
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
