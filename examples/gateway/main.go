// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway runs the gateway of cmd/atoll-gateway before two API servers in memory, and prints the commands of
// kubectl that use it.
//
//	go -C examples/gateway run .
//
// Begin reading at serve, which has the code to copy. The other files make what an installation has: a folder with a
// configuration, a certificate, tokens and the peers' kubeconfigs.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/gateway"
	"github.com/atoll-dev/atoll/internal/ending"
)

func main() {
	if err := refuse(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(2)
	}
	ctx := ending.Context(context.Background())
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "gateway-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	stop, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	return serve(logr.NewContext(ctx, logr.FromSlogHandler(slog.NewTextHandler(stderr, nil))), dir, stdout)
}

// serve runs the gateway of the configuration in dir.
func serve(ctx context.Context, dir string, stdout io.Writer) error {
	c, err := config.Load(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		return err
	}
	g, err := gateway.New(ctx, c, gateway.Options{})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Start(ctx) }()
	if clients, _, err := g.Addresses(ctx); err == nil {
		explain(stdout, clients.String(), dir)
	}
	return <-ended
}
