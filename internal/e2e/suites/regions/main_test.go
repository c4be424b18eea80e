// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// With these environment variables the test binary runs as a replica of the program.
const (
	replicaKubeconfig = "ATOLL_REPLICA_KUBECONFIG"
	replicaIdentity   = "ATOLL_REPLICA_IDENTITY"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(replicaKubeconfig); path != "" {
		if err := replica(path, os.Getenv(replicaIdentity)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(planetest.Run(m))
}

// replica runs the program until a signal ends it.
func replica(path, identity string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config, err := plane.ConfigOf(kubeconfig)
	if err != nil {
		return err
	}
	p, err := newProgram(config, "replicas", identity, nil)
	if err != nil {
		return err
	}
	return p.Start(ctx)
}
