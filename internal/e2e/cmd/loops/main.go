// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command loops runs two loops of the library over peers until it is killed or interrupted: the
// Coordinator, which sweeps once a second, and the Controller of Accounts. In addition the command
// itself sweeps once a second.
//
//	loops LOG NAME=KUBECONFIG...
//
// It prints the line "swept" on standard output after each of its own sweeps that succeeds. It also
// builds with the library of the first release.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/wal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "loops:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("arguments are missing: loops LOG NAME=KUBECONFIG, once for each peer")
	}
	var conns []*region.Conn
	for _, arg := range args[1:] {
		conn, err := connect(arg)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		conns = append(conns, conn)
	}
	log, err := wal.Open(args[0], wal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	peers := region.Fixed(conns...)
	coordinator, err := fanout.New(peers, log, fanout.Options{
		Kinds: append(account.Kinds(), claim.Kind()), SweepEvery: time.Second,
	})
	if err != nil {
		return err
	}
	accounts, err := account.NewController(peers, account.ControllerOptions{})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = coordinator.Start(ctx) })
	running.Go(func() { _ = accounts.Start(ctx) })
	for ctx.Err() == nil {
		if _, err := coordinator.Sweep(ctx); err == nil {
			_, _ = fmt.Println("swept")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	running.Wait()
	return nil
}

func connect(arg string) (*region.Conn, error) {
	name, path, _ := strings.Cut(arg, "=")
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
	if err != nil {
		return nil, err
	}
	return region.NewConn(region.Peer{Name: region.PeerName(name), Credentials: credentials}, region.ConnOptions{})
}
