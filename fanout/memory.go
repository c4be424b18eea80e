// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// memory has the objects and contents that one runner has read or written.
type memory struct {
	kind Kind

	mu         sync.Mutex
	contents   map[string]content                    // by token
	objects    map[string]*unstructured.Unstructured // as read, by UID and resourceVersion
	views      map[string]protocol.Object            // of the objects, by UID and resourceVersion
	latest     map[string]*unstructured.Unstructured // as last read or written, by UID
	finalizers map[region.PeerName]*FinalizerError   // finalizers of other controllers that block the object's deletion, as last read
}

func newMemory(kind Kind) *memory {
	return &memory{
		kind:       kind,
		contents:   map[string]content{},
		objects:    map[string]*unstructured.Unstructured{},
		views:      map[string]protocol.Object{},
		latest:     map[string]*unstructured.Unstructured{},
		finalizers: map[region.PeerName]*FinalizerError{},
	}
}

// remember stores an object as it was read or written, for later writes on it.
func (m *memory) remember(obj *unstructured.Unstructured) (protocol.Object, error) {
	o, c, err := m.kind.view(obj)
	if err != nil {
		return o, err
	}
	token, err := c.token()
	if err != nil {
		return o, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[incarnation(o.UID, o.RV)] = obj
	m.views[incarnation(o.UID, o.RV)] = o
	m.latest[o.UID] = obj
	m.contents[token] = c
	return o, nil
}

func (m *memory) recall(uid, rv string) (*unstructured.Unstructured, protocol.Object, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	obj, ok := m.objects[incarnation(uid, rv)]
	return obj, m.views[incarnation(uid, rv)], ok
}

// last returns a copy of an object as it was last read or written; nil if it was not.
func (m *memory) last(uid string) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	if obj, ok := m.latest[uid]; ok {
		return obj.DeepCopy()
	}
	return nil
}

// content returns the content of a token; nil for the empty token.
func (m *memory) content(token string) (content, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.contents[token]
	if !ok && token != "" {
		return nil, fmt.Errorf("content %s is not known: nothing is written without it", token)
	}
	return maps.Clone(c), nil
}

// payload returns the token of the content that the object with the given UID had when it was
// read; "" if no such object with content was read.
func (m *memory) payload(uid string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, view := range m.views {
		if view.UID == uid && view.Payload != "" {
			return view.Payload
		}
	}
	return ""
}

// observe stores and returns the finalizers of other controllers that block the deletion of the
// object in peer, according to the reply to a read or a put.
func (m *memory) observe(peer region.PeerName, command protocol.Command, reply protocol.Reply) *FinalizerError {
	if command.Verb != protocol.Read && command.Verb != protocol.Put {
		return nil
	}
	obj, _, known := m.recall(reply.Object.UID, reply.Object.RV)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case reply.Code == protocol.OK && known:
		m.finalizers[peer] = waitsFor(m.kind.GroupKind(), obj)
	case reply.Code == protocol.NotFound:
		delete(m.finalizers, peer)
	}
	return m.finalizers[peer]
}

// finalizersAt returns the finalizers of other controllers that block the deletion of the object
// in peer. It returns nil if the object is not being deleted or has no such finalizer.
func (m *memory) finalizersAt(peer region.PeerName) *FinalizerError {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finalizers[peer]
}

func incarnation(uid, rv string) string { return uid + "@" + rv }
