// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// SecretKey is the key of the kubeconfig in its Secret.
const SecretKey = "kubeconfig"

const (
	secretTimeout = 5 * time.Second
	// secretPoll is the interval for reading Secrets that cannot be watched.
	secretPoll = 10 * time.Second
)

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// secrets reads the kubeconfigs of the Secrets that Peers name, and no others. It watches only metadata, in each
// namespace with such Secrets.
type secrets struct {
	plane   region.API
	parse   func([]byte) (region.Credentials, error)
	queue   *loop.Queue
	changed func(types.NamespacedName)

	mu     sync.Mutex
	read   map[types.NamespacedName]*kubeconfig // of the named Secrets
	spaces map[string]*namespaceWatch           // by namespace
}

// namespaceWatch watches one namespace.
type namespaceWatch struct {
	objects *loop.Objects
	cancel  context.CancelFunc
}

// kubeconfig is the state of one Secret.
type kubeconfig struct {
	creds   region.Credentials // the last good credentials
	usable  bool               // creds is set
	done    bool               // a server has responded to a read of the Secret
	reason  masterv1alpha1.PeerConditionReason
	problem string   // in words; empty if creds are from the current Secret
	digest  [32]byte // of the content that was parsed
}

func newSecrets(plane region.API, trust region.Trust, changed func(types.NamespacedName)) *secrets {
	return &secrets{
		plane: plane, changed: changed,
		parse: func(data []byte) (region.Credentials, error) { return region.ParseKubeconfig(data, trust) },
		queue: loop.NewQueue(loop.QueueOptions{MaxBackoff: 10 * time.Second}),
		read:  map[types.NamespacedName]*kubeconfig{}, spaces: map[string]*namespaceWatch{},
	}
}

func (s *secrets) key(obj types.NamespacedName) string { return obj.String() }

// want replaces the set of Secrets that Peers name. It starts and ends the watches of their namespaces; these
// run in wg until ctx ends.
func (s *secrets) want(ctx context.Context, wg *sync.WaitGroup, named map[types.NamespacedName]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	namespaces := map[string]bool{}
	for key := range named {
		namespaces[key.Namespace] = true
		if s.read[key] == nil {
			s.read[key] = &kubeconfig{reason: masterv1alpha1.PeerReasonPending, problem: "the Secret was not read yet"}
			s.queue.Add(s.key(key))
		}
	}
	for key := range s.read {
		if !named[key] {
			delete(s.read, key)
		}
	}
	for namespace := range namespaces {
		if s.spaces[namespace] == nil {
			s.spaces[namespace] = s.watch(ctx, wg, namespace)
		}
	}
	for namespace, space := range s.spaces {
		if !namespaces[namespace] {
			space.cancel()
			delete(s.spaces, namespace)
		}
	}
}

func (s *secrets) watch(ctx context.Context, wg *sync.WaitGroup, namespace string) *namespaceWatch {
	objects := loop.NewObjects(metadataOnly{s.plane.Metadata()}, secretResource, loop.ObjectsOptions{
		Namespace: namespace,
		Changed: func(key types.NamespacedName) {
			if s.named(key) {
				s.queue.Add(s.key(key))
			}
		},
		Flows: func() { s.enqueue(namespace) },
	})
	ctx, cancel := context.WithCancel(ctx)
	wg.Go(func() { _ = objects.Start(ctx) })
	return &namespaceWatch{objects: objects, cancel: cancel}
}

// enqueue enqueues all Secrets of a namespace, because its watch has started or failed.
func (s *secrets) enqueue(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.read {
		if key.Namespace == namespace {
			s.queue.Add(s.key(key))
		}
	}
}

func (s *secrets) named(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[key] != nil
}

// get returns the state of a Secret: pending if it was not named yet.
func (s *secrets) get(key types.NamespacedName) kubeconfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.read[key]; k != nil {
		return *k
	}
	return kubeconfig{reason: masterv1alpha1.PeerReasonPending, problem: "the Secret was not read yet"}
}

// complete reports whether each named Secret was read at least once.
func (s *secrets) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.read {
		if !k.done {
			return false
		}
	}
	return true
}

// fetch reads one Secret.
func (s *secrets) fetch(ctx context.Context, name string) (time.Duration, error) {
	key := parseKey(name)
	if !s.named(key) {
		return 0, nil
	}
	limited, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	secret, err := s.plane.Dynamic().Resource(secretResource).Namespace(key.Namespace).Get(limited, key.Name, metav1.GetOptions{})
	if ctx.Err() != nil {
		return 0, nil
	}
	if s.recordRead(key, secret, err) {
		s.changed(key)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("read Secret %s: %w", key, err)
	}
	if !s.watched(key.Namespace) {
		return secretPoll, nil
	}
	return 0, nil
}

func (s *secrets) watched(namespace string) bool {
	s.mu.Lock()
	space := s.spaces[namespace]
	s.mu.Unlock()
	return space == nil || space.objects.Err() == nil
}

// recordRead records the result of a read, and reports whether the state of the Secret has changed.
func (s *secrets) recordRead(key types.NamespacedName, secret *unstructured.Unstructured, err error) bool {
	var data []byte
	if err == nil {
		data, err = content(secret)
	}
	before := s.get(key)
	var next kubeconfig
	if err != nil {
		next = unread(key, err)
		if before.done && !next.done {
			return false // the plane is unreachable: keep the state
		}
	} else {
		digest := sha256.Sum256(data)
		if before.digest == digest {
			return false // only other parts of the Secret have changed
		}
		next = s.parsed(key, data, digest)
	}
	if !next.usable {
		next.creds, next.usable = before.creds, before.usable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read[key] == nil {
		return false
	}
	s.read[key] = &next
	return !before.done || before.problem != next.problem || before.digest != next.digest
}

// unread returns the state of a Secret that could not be read. Its field done is true if a server responded.
func unread(key types.NamespacedName, err error) kubeconfig {
	k := kubeconfig{done: true, reason: masterv1alpha1.PeerReasonSecretNotFound}
	switch {
	case apierrors.IsNotFound(err):
		k.problem = fmt.Sprintf("there is no Secret %s", key)
	case errors.Is(err, errNoKey):
		k.problem = fmt.Sprintf("Secret %s: %v", key, err)
	default:
		var status apierrors.APIStatus
		k.done = errors.As(err, &status)
		k.reason, k.problem = masterv1alpha1.PeerReasonSecretUnreadable, fmt.Sprintf("Secret %s cannot be read: %v", key, err)
	}
	return k
}

// parsed returns the state of a Secret with the kubeconfig data.
func (s *secrets) parsed(key types.NamespacedName, data []byte, digest [32]byte) kubeconfig {
	creds, err := s.parse(data)
	if err != nil {
		return kubeconfig{
			done: true, digest: digest,
			reason: masterv1alpha1.PeerReasonKubeconfigInvalid, problem: fmt.Sprintf("kubeconfig in Secret %s: %v", key, err),
		}
	}
	return kubeconfig{done: true, digest: digest, creds: creds, usable: true, reason: masterv1alpha1.PeerReasonAccepted}
}

var errNoKey = fmt.Errorf("has no key %s", SecretKey)

func content(secret *unstructured.Unstructured) ([]byte, error) {
	text, ok, err := unstructured.NestedString(secret.Object, "data", SecretKey)
	if err != nil || !ok {
		return nil, errNoKey
	}
	return base64.StdEncoding.DecodeString(text)
}

// parseKey reverses types.NamespacedName.String.
func parseKey(s string) types.NamespacedName {
	for i := range len(s) {
		if s[i] == types.Separator {
			return types.NamespacedName{Namespace: s[:i], Name: s[i+1:]}
		}
	}
	return types.NamespacedName{Name: s}
}
