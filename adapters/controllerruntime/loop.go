// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Loop returns a Runnable that runs a loop of Atoll, such as Coordinator.Start, in every replica of a manager. Atoll's
// loops need no leader election: they share the work by leases of their own, or compare before they write. A loop without a
// Logger in its Options logs to the logger in the context of Start, else to that of controller-runtime.
func Loop(start func(context.Context) error) manager.Runnable { return loop(start) }

type loop func(context.Context) error

var _ manager.LeaderElectionRunnable = loop(nil)

// Start runs the loop. A loop that ends because the manager stops is not an error.
func (l loop) Start(ctx context.Context) error {
	err := l(log.IntoContext(ctx, log.FromContext(ctx))) // a manager starts it with a context without a logger
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// NeedLeaderElection returns false.
func (loop) NeedLeaderElection() bool { return false }
