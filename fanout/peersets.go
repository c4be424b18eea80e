// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

func (cs *clusters) peerSet(ctx context.Context, peer region.PeerName) (protocol.PeerSet, error) {
	conn, err := cs.directory.Conn(peer)
	if err != nil {
		return protocol.PeerSet{}, err
	}
	set, err := within(ctx, cs.opts.CallTimeout, func(ctx context.Context) (*readSet, error) { return cs.readSet(ctx, conn) })
	if err != nil {
		return protocol.PeerSet{}, err
	}
	return set.view, nil
}

// readSets reads the PeerSets of the peers. It omits a peer that does not answer: the read of
// its objects reports that.
func (cs *clusters) readSets(ctx context.Context, peers []string) map[string]protocol.PeerSet {
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		sets = map[string]protocol.PeerSet{}
	)
	for _, p := range peers {
		wg.Go(func() {
			if set, err := cs.peerSet(ctx, region.PeerName(p)); err == nil {
				mu.Lock()
				defer mu.Unlock()
				sets[p] = set
			}
		})
	}
	wg.Wait()
	return sets
}

// editSet lets the function edit change the spec of the PeerSet in conn's peer, and raises this
// PeerSet's epoch. It returns the updated PeerSet; nil if the PeerSet has changed since it
// was read at resourceVersion rv, or if edit returns false. It keeps fields that only a later
// release knows.
func (cs *clusters) editSet(ctx context.Context, conn *region.Conn, rv string, edit func(spec map[string]any) bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, cs.opts.CallTimeout)
	defer cancel()
	client := conn.Dynamic().Resource(peerSets)
	set, err := client.Get(ctx, v1alpha1.PeerSetName, metav1.GetOptions{})
	if err != nil || set.GetResourceVersion() != rv {
		return nil, err
	}
	spec, _, err := unstructured.NestedMap(set.Object, "spec")
	if err != nil {
		return nil, err
	}
	epoch, _, err := unstructured.NestedInt64(spec, "epoch")
	if err != nil || !edit(spec) {
		return nil, err
	}
	spec["epoch"] = epoch + 1
	set.Object["spec"] = spec
	now, err := client.Update(ctx, set, metav1.UpdateOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) {
		return nil, nil
	}
	return now, err
}
