// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// callTimeout limits each request to the hub.
const callTimeout = 10 * time.Second

// work creates, updates or deletes the profile of one name.
func (p *Publisher) work(ctx context.Context, name string) (again time.Duration, err error) {
	p.mu.Lock()
	snapshot, f := p.snapshot, p.facts[region.PeerName(name)]
	p.mu.Unlock()
	if snapshot == nil || p.profiles.Err() != nil {
		return 0, nil // the first Snapshot, or a fresh cache, queues every name
	}
	if !loop.OwnsKey(p.opts.Shard, name) {
		return 0, nil
	}
	peer, joined := snapshot.Peer(region.PeerName(name))
	current, exists := p.profiles.Get(types.NamespacedName{Namespace: p.opts.Namespace, Name: name})
	ours := exists && p.isOurs(current)
	p.reportForeign(ctx, name, joined && exists && !ours)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch {
	case !joined:
		p.forget(region.PeerName(name))
		if ours && p.isLabeled(current) {
			return 0, p.outcome(name, "delete", p.remove(ctx, current))
		}
		return 0, nil
	case !exists:
		current, err = p.client().Create(ctx, p.identity(name), metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil {
			return 0, p.outcome(name, "create", err)
		}
	case !ours || current.GetDeletionTimestamp() != nil:
		return 0, nil
	default:
		if err := p.restore(ctx, current); err != nil {
			return 0, p.outcome(name, "update", err)
		}
	}
	_, err = loop.Apply(ctx, p.client(), current, statusOf(current, peer, f, time.Now()), FieldManager, "status")
	return 0, p.outcome(name, "report", err)
}

func (p *Publisher) client() dynamic.ResourceInterface {
	return p.hub.Dynamic().Resource(resource()).Namespace(p.opts.Namespace)
}

// restore writes the display name and the label back, if another client has changed them.
func (p *Publisher) restore(ctx context.Context, current *unstructured.Unstructured) error {
	if name, _, _ := unstructured.NestedString(current.Object, "spec", "displayName"); name == current.GetName() && p.isLabeled(current) {
		return nil
	}
	desired := p.identity(current.GetName())
	desired.SetUID(current.GetUID())
	_, err := loop.Write(ctx, p.client(), current, desired, FieldManager)
	if err != nil {
		return err
	}
	return loop.ErrBehind // the status is written for the version that the cache shows next
}

// remove deletes a profile, unless it has changed.
func (p *Publisher) remove(ctx context.Context, current *unstructured.Unstructured) error {
	if current.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := current.GetUID(), current.GetResourceVersion()
	return p.client().Delete(ctx, current.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}

// outcome returns the error of a write to the hub as the queue expects it.
func (p *Publisher) outcome(name, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return loop.ErrBehind
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) && op != "create":
		return nil // the cache will show the deletion
	default:
		return fmt.Errorf("clusterinventory: %s %s: %w", op, p.describe(name), err)
	}
}

// reportForeign logs once that the name of a peer is taken by a profile that this Publisher did not make.
func (p *Publisher) reportForeign(ctx context.Context, name string, foreign bool) {
	p.mu.Lock()
	before := p.foreign[name]
	if foreign {
		p.foreign[name] = true
	} else {
		delete(p.foreign, name)
	}
	p.mu.Unlock()
	if foreign && !before {
		logging.From(ctx).Info("The peer is not published: a ClusterProfile of its name has another manager", "profile", p.describe(name))
	}
}

// forget drops the facts of a peer that has left.
func (p *Publisher) forget(name region.PeerName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.facts, name)
}
