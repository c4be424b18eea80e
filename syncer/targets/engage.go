// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// engaged is a connected cluster, for which a Syncer or the watch of an installed Syncer runs.
type engaged struct {
	uid         types.UID
	mode        Mode
	source      string // the digest of the kubeconfig
	conn        *region.Conn
	syncer      *syncer.Syncer // with Push
	deployments *loop.Objects  // with Pull
	disturbed   atomic.Bool    // the installed Deployment has changed
	placed      time.Time      // when the installation was last applied; only reconcile uses it
	generation  int64          // of the SyncTarget at that time
	cancel      context.CancelFunc
	done        chan struct{}
}

func (e *engaged) end() {
	e.cancel()
	<-e.done
	e.conn.Close()
}

var errUnusable = errors.New("the SyncTarget cannot be served")

// engage connects to the cluster, and starts its Syncer or the watch of its installation. If the cluster is
// connected already, its connection gets the new credentials.
func (c *Controller) engage(ctx context.Context, target *v1alpha1.SyncTarget, mode Mode, kubeconfig []byte) (*engaged, error) {
	credentials, err := region.ParseKubeconfig(kubeconfig, c.opts.Trust)
	if err != nil {
		return nil, err
	}
	source := synctarget.Digest(kubeconfig)
	if e := c.get(target.Name); e != nil {
		select {
		case <-e.done:
			c.stop(target.Name) // its Syncer has failed, or ctx has ended
		default:
			if e.source == source {
				return e, nil
			}
			if err := e.conn.Rotate(ctx, credentials); err != nil {
				return nil, err
			}
			e.source = source // only reconcile uses it, once at a time for each SyncTarget
			return e, nil
		}
	}
	conn, err := region.NewConn(region.Peer{Name: region.PeerName(target.Name), Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	e := &engaged{uid: target.UID, mode: mode, source: source, conn: conn, done: make(chan struct{})}
	run, err := c.prepare(ctx, target, e)
	if err != nil {
		conn.Close()
		return nil, err
	}
	runCtx, cancel := context.WithCancel(ctx)
	e.cancel = cancel
	c.mu.Lock()
	c.running[target.Name] = e
	c.mu.Unlock()
	go func() {
		defer close(e.done)
		if err := run(runCtx); err != nil {
			logging.From(ctx).Error(err, "The Syncer does not run", "target", target.Name)
		}
	}()
	return e, nil
}

// prepare prepares the Syncer of a SyncTarget, or the watch of its installation, and returns the func that runs it.
func (c *Controller) prepare(ctx context.Context, target *v1alpha1.SyncTarget, e *engaged) (func(context.Context) error, error) {
	if e.mode == Pull {
		in, err := c.ownInstall(ctx, target)
		if err != nil {
			return nil, err
		}
		e.deployments = loop.NewObjects(e.conn.Dynamic(), deploymentResource, loop.ObjectsOptions{
			Namespace: in.name(), Strip: loop.KeepManager(), Changed: func(types.NamespacedName) {
				e.disturbed.Store(true)
				c.queue.Add(target.Name)
			},
		})
		return e.deployments.Start, nil
	}
	s, err := syncer.New(c.up, e.conn, c.options(target))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	e.syncer = s
	return s.Start, nil
}

// options returns the options of the Syncer of a SyncTarget.
func (c *Controller) options(target *v1alpha1.SyncTarget) syncer.Options {
	opts := syncer.Options{Target: target.Name, Heartbeat: c.opts.Heartbeat}
	if c.opts.Configure != nil {
		c.opts.Configure(target, &opts)
	}
	return opts
}
