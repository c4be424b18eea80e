// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Mode is where the Syncer of a SyncTarget runs.
type Mode string

const (
	// Push: in the process of the Controller, which reaches the cluster from outside.
	Push Mode = "Push"
	// Pull: inside the cluster. The Controller installs it there by Options.Install, repairs the installation, and
	// reports it in the condition Installed. It removes the installation when the SyncTarget is deleted. The SyncTarget
	// stays until its cluster was reachable and nothing of the installation is left there, or until a person sets
	// v1alpha1.AbandonAnnotation.
	Pull Mode = "Pull"
	// None: elsewhere, started by other means. The Controller reports in the conditions if the heartbeat of the
	// Syncer stands still.
	None Mode = "None"
)

// Options configure a Controller. The zero value works.
type Options struct {
	// Mode returns where the Syncer of a SyncTarget runs; nil: Push. It must be safe for concurrent use and always
	// return the same result for a SyncTarget that is being deleted.
	Mode func(target *v1alpha1.SyncTarget) Mode
	// Install returns the installation in Pull mode; the Controller sets its Target, Upstream and Heartbeat afterwards.
	// It is called again and again, so credentials may be short-lived. It may block, must be safe for concurrent use,
	// and is required if Mode ever returns Pull.
	Install func(ctx context.Context, target *v1alpha1.SyncTarget) (Install, error)
	// Configure changes the Options of the Syncer of a SyncTarget; Target and Heartbeat are set before. In Pull mode,
	// the Types in opts are the types whose objects are released when the SyncTarget is deleted; nil: the types that
	// Install names. Configure must be safe for concurrent use. May be nil.
	Configure func(target *v1alpha1.SyncTarget, opts *syncer.Options)
	// Trust allows contents of kubeconfigs that are not accepted by default.
	Trust region.Trust
	// Heartbeat is how often the status of each SyncTarget is written; zero: 20 s. A syncer elsewhere is reported as
	// silent when its heartbeat has stood still for four times as long.
	Heartbeat time.Duration
	// Recheck is how often Secrets are read and installations are checked again; zero: 30 s.
	Recheck time.Duration

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

func (o Options) mode(target *v1alpha1.SyncTarget) Mode {
	if o.Mode == nil {
		return Push
	}
	return o.Mode(target)
}
