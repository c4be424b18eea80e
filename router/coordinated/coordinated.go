// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/apiserver"
)

// Writes is the apiserver.Fanout of a Coordinator. Use New. It is safe for concurrent use.
type Writes struct {
	directory   region.Directory
	coordinator *fanout.Coordinator
	kinds       []fanout.Kind
}

var _ apiserver.Fanout = (*Writes)(nil)

// New returns the Writes of the kinds of c. d must be the Directory of c. New does no I/O.
func New(d region.Directory, c *fanout.Coordinator) (*Writes, error) {
	switch {
	case argument.Missing(d):
		return nil, errors.New("coordinated: the directory is nil; pass the one of the coordinator")
	case c == nil:
		return nil, errors.New("coordinated: the coordinator is nil; make one with fanout.New")
	}
	return &Writes{directory: d, coordinator: c, kinds: c.Kinds()}, nil
}

// Kind returns the Coordinator's kind of the resource.
func (w *Writes) Kind(resource schema.GroupResource) (apiserver.Kind, bool) {
	k, ok := w.kind(resource)
	return apiserver.Kind{
		Resource: k.Resource, Kind: k.Kind, Everywhere: k.Mode == fanout.Everywhere, Manager: fanout.FieldManager,
		Claims: k.Claims, Reclaim: k.Reclaim, Content: k.Content,
		Claimed: func(o *unstructured.Unstructured) bool {
			state, err := k.State(o)
			return err != nil || state != nil
		},
	}, ok
}

func (w *Writes) kind(resource schema.GroupResource) (fanout.Kind, bool) {
	i := slices.IndexFunc(w.kinds, func(k fanout.Kind) bool { return k.Resource.GroupResource() == resource })
	if i < 0 {
		return fanout.Kind{}, false
	}
	return w.kinds[i], true
}

// Find reads the object in all peers, with the credentials of the Directory. If the object is reserved by an operation
// that the Coordinator's log has, it first settles the operation.
func (w *Writes) Find(ctx context.Context, kind apiserver.Kind, key types.NamespacedName) (apiserver.Found, error) {
	found := w.look(ctx, kind, key)
	k, _ := w.kind(kind.Resource.GroupResource())
	if len(found.Homes) == 0 && len(found.Silent) == 0 {
		for _, o := range found.Objects {
			if state, err := k.State(o); err == nil && state != nil && state.Claim != nil {
				_, _ = w.coordinator.Outcome(ctx, state.Claim.Operation) // an error means that another coordinator settles it
				found = w.look(ctx, kind, key)
				break
			}
		}
	}
	return found, ctx.Err()
}

func (w *Writes) look(ctx context.Context, kind apiserver.Kind, key types.NamespacedName) apiserver.Found {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		found = apiserver.Found{Objects: map[region.PeerName]*unstructured.Unstructured{}}
	)
	for peer := range w.directory.Snapshot().Peers() {
		wg.Go(func() {
			o, err := w.read(ctx, kind, peer.Name, key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				found.Objects[peer.Name] = o
			case !apierrors.IsNotFound(err):
				found.Silent = append(found.Silent, peer.Name)
			}
		})
	}
	wg.Wait()
	slices.Sort(found.Silent)
	k, _ := w.kind(kind.Resource.GroupResource())
	for peer, o := range found.Objects {
		if isHome(k, peer, o) {
			found.Homes = append(found.Homes, peer)
		}
	}
	slices.Sort(found.Homes)
	return found
}

func (w *Writes) read(ctx context.Context, kind apiserver.Kind, peer region.PeerName, key types.NamespacedName) (*unstructured.Unstructured, error) {
	conn, err := w.directory.Conn(peer)
	if err != nil {
		return nil, err
	}
	resource := conn.Dynamic().Resource(kind.Resource)
	if key.Namespace != "" {
		return resource.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
	return resource.Get(ctx, key.Name, metav1.GetOptions{})
}

// isHome reports whether o, an object of the peer, is a primary that was committed.
func isHome(k fanout.Kind, peer region.PeerName, o *unstructured.Unstructured) bool {
	state, err := k.State(o)
	switch {
	case err != nil, state == nil, state.Claim == nil, state.Stage == v1alpha1.StageReserved:
		return false
	case state.Home != nil:
		return state.Home.Peer == string(peer) && !state.Home.Yielded
	default:
		return state.Claim.Role == v1alpha1.RolePrimary
	}
}

// Add adds o by Coordinator.Add. An object that another operation has added is an error.
func (w *Writes) Add(ctx context.Context, _ apiserver.Kind, o *unstructured.Unstructured, at region.PeerName, manager string) error {
	op, err := w.coordinator.Add(ctx, o, fanout.AddOptions{Target: at, FieldManager: manager})
	if err == nil && op.AlreadyDone {
		return exists(op.Primary)
	}
	return failure(ctx, err)
}

// Update replaces the content by Coordinator.Update.
func (w *Writes) Update(ctx context.Context, kind apiserver.Kind, o, base *unstructured.Unstructured) error {
	_, err := w.coordinator.Update(ctx, o, fanout.AddOptions{UID: base.GetUID(), Revision: w.revision(kind, base)})
	return failure(ctx, err)
}

// revision returns the revision of an object of a peer; 0 if it has none.
func (w *Writes) revision(kind apiserver.Kind, o *unstructured.Unstructured) int64 {
	k, _ := w.kind(kind.Resource.GroupResource())
	if state, err := k.State(o); err == nil && state != nil && state.Revision != nil {
		return state.Revision.Number
	}
	return 0
}

// Remove removes the object by Coordinator.Remove.
func (w *Writes) Remove(ctx context.Context, kind apiserver.Kind, base *unstructured.Unstructured, exact bool) (left bool, err error) {
	key := types.NamespacedName{Namespace: base.GetNamespace(), Name: base.GetName()}
	opts := fanout.RemoveOptions{UID: base.GetUID()}
	switch {
	case !exact:
	case kind.Everywhere:
		opts.Revision = w.revision(kind, base)
	default:
		opts.ResourceVersion = base.GetResourceVersion()
	}
	ctx, stop := w.untilCommitted(ctx, kind, key)
	defer stop()
	op, err := w.coordinator.Remove(ctx, schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Kind}, key, opts)
	if occupied, ok := errors.AsType[*fanout.OccupiedError](err); ok && occupied.Committed {
		return true, nil
	}
	return err == nil && op.State == fanout.Committed, failure(ctx, err)
}

// lookAgain is how often a removal is looked at. A removal that takes longer is left to the Coordinator once it is
// committed.
const lookAgain = time.Second

// untilCommitted returns a context that ends when the removal of the object is found to be committed and not complete:
// it may wait for a finalizer, or for a peer, for any time. stop waits for its goroutine.
func (w *Writes) untilCommitted(ctx context.Context, kind apiserver.Kind, key types.NamespacedName) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(lookAgain):
			case <-ctx.Done():
				return
			}
			k, _ := w.kind(kind.Resource.GroupResource())
			found := w.look(ctx, kind, key)
			for _, home := range found.Homes {
				if state, err := k.State(found.Objects[home]); err == nil && state != nil && state.Stage == v1alpha1.StageRemoving {
					cancel()
				}
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-done
	}
}
