// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// Namespace is the default namespace of Secrets whose Peers name no namespace.
const Namespace = "kubecarrier-system"

// FieldManager is the field manager of this package's writes: the status of Peers and KubeCarriers, by server-side
// apply, and the creation of the Peer local.
const FieldManager = "atoll-central"

var peerResource = masterv1alpha1.GroupVersion.WithResource("peers")

// Options configure a Source. The zero value works, except for the Peer named local.
type Options struct {
	// Namespace is the namespace of Secrets that Peers name without a namespace; zero: the constant Namespace.
	Namespace string
	// Local are the credentials of the Peer named local, for example region.FromConfig(rest.InClusterConfig()). Without
	// them, local is not reachable.
	Local region.Credentials
	// Trust allows content of kubeconfigs that is otherwise rejected.
	Trust region.Trust

	// Logger receives log lines. Zero: the logger of Run's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Source is a region.Source for the Peer objects of a central plane and the Secrets that they name. It is safe for
// concurrent use.
type Source struct {
	plane   region.API
	opts    Options
	peers   *loop.Objects
	secrets *secrets
	started atomic.Bool
	dirty   chan struct{} // signals that the Snapshot may have changed

	index  index
	synced chan struct{}                    // closed when index is complete
	good   map[types.UID]region.Credentials // the last good credentials of each Peer, from any Secret; used by Run only

	mu        sync.Mutex
	listeners []func(peer string) // called after each change of a Peer or its Secret
}

var _ region.Source = (*Source)(nil)
var _ region.Refresher = (*Source)(nil)

// New makes a Source of the Peers in plane. It does no I/O and starts nothing: a region.Ring runs it. The first
// Snapshot needs one read per Secret, so rate limits of plane's clients delay it.
func New(plane region.API, opts Options) (*Source, error) {
	if argument.Missing(plane) {
		return nil, errors.New("central: plane is nil; make one with region.APIFor")
	}
	if opts.Namespace == "" {
		opts.Namespace = Namespace
	}
	s := &Source{plane: plane, opts: opts, dirty: make(chan struct{}, 1), synced: make(chan struct{}), good: map[types.UID]region.Credentials{}}
	s.secrets = newSecrets(plane, opts.Trust, s.secretChanged)
	s.peers = loop.NewObjects(plane.Dynamic(), peerResource, loop.ObjectsOptions{
		Strip:   loop.KeepManager(FieldManager),
		Changed: func(key types.NamespacedName) { s.peerChanged(key.Name) },
	})
	return s, nil
}

// Refresh does nothing, since Secrets are watched. Its existence makes rejected requests wait briefly for newer
// credentials.
func (s *Source) Refresh() {}

const (
	// firstLook bounds how long the first Snapshot waits for Secrets.
	firstLook = 5 * time.Second
	// settling debounces Snapshots: the minimum time between two.
	settling = 20 * time.Millisecond
)

// Run publishes a Snapshot as soon as all Peers are listed and their Secrets read, or 5 seconds after the list if a
// Secret was not read by then; and after every change. While the plane is unreachable it publishes nothing. It returns
// an error only if it was misused: a Source without New, a nil publish, or a second call.
func (s *Source) Run(ctx context.Context, publish func(*region.Snapshot)) error {
	switch {
	case s.plane == nil:
		return errors.New("central: the Source was not made by New")
	case publish == nil:
		return errors.New("central: publish is nil: give the func that takes each Snapshot, as a region.Ring does")
	}
	ctx = logging.Into(ctx, s.opts.Logger, "source")
	if s.started.Swap(true) {
		return errors.New("central: Run was called twice")
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = s.peers.Start(ctx) })
	wg.Go(func() { _ = s.secrets.queue.Start(ctx, s.secrets.fetch) })
	select {
	case <-s.peers.Synced():
	case <-ctx.Done():
		return nil
	}
	s.index.fill(s.peers)
	close(s.synced)
	s.publish(ctx, &wg, publish)
	return nil
}

// publish publishes a Snapshot after each change until ctx ends. Watches of Secrets run in wg.
func (s *Source) publish(ctx context.Context, wg *sync.WaitGroup, publish func(*region.Snapshot)) {
	deadline := time.NewTimer(firstLook)
	defer deadline.Stop()
	late := false
	var last []member
	for published := false; ; {
		s.secrets.want(ctx, wg, s.named())
		if late || s.secrets.complete() {
			if next := s.members(); !published || !equal(next, last) {
				snapshot, err := snapshotOf(next)
				if err != nil {
					logging.From(ctx).Error(err, "Peers cannot be published; keeping those published before")
				} else {
					publish(snapshot)
					last, published, late = next, true, true
				}
			}
		}
		made := time.Now()
		select {
		case <-s.dirty:
		case <-deadline.C:
			late = true
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(settling - time.Since(made)):
		case <-ctx.Done():
			return
		}
	}
}

func (s *Source) wake() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

func (s *Source) peerChanged(name string) {
	s.index.update(s.peers, name)
	s.wake()
	s.notify(name)
}

func (s *Source) secretChanged(key types.NamespacedName) {
	s.wake()
	for _, k := range s.index.list() {
		if named, ok := s.secretOf(k.peer); ok && named == key {
			s.notify(k.peer.Name)
		}
	}
}

// listen registers fn, which is called with the name of each Peer that changed, or whose Secret changed. fn must not
// block.
func (s *Source) listen(fn func(peer string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, fn)
}

func (s *Source) notify(peer string) {
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, fn := range listeners {
		fn(peer)
	}
}

// secretOf returns the Secret that p names, if any.
func (s *Source) secretOf(p *masterv1alpha1.Peer) (types.NamespacedName, bool) {
	ref := p.Spec.KubeconfigSecret
	if ref.Name == "" {
		return types.NamespacedName{}, false
	}
	if ref.Namespace == "" {
		ref.Namespace = s.opts.Namespace
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
}

func (s *Source) named() map[types.NamespacedName]bool {
	named := map[types.NamespacedName]bool{}
	for _, k := range s.index.list() {
		if key, ok := s.secretOf(k.peer); ok {
			named[key] = true
		}
	}
	return named
}

// kubeconfig returns the state of p's kubeconfig.
func (s *Source) kubeconfig(p *masterv1alpha1.Peer) kubeconfig {
	key, named := s.secretOf(p)
	switch {
	case named:
		return s.secrets.get(key)
	case p.Name != masterv1alpha1.LocalPeer:
		return kubeconfig{done: true, reason: masterv1alpha1.PeerReasonKubeconfigInvalid,
			problem: "spec.kubeconfigSecret is missing; name the Secret that holds the kubeconfig of " + p.Name}
	case s.opts.Local.String() == (region.Credentials{}).String():
		return kubeconfig{done: true, reason: masterv1alpha1.PeerReasonKubeconfigInvalid,
			problem: fmt.Sprintf("the program has no credentials for %s (central.Options.Local)", p.Name)}
	default:
		return kubeconfig{done: true, usable: true, creds: s.opts.Local, reason: masterv1alpha1.PeerReasonAccepted}
	}
}
