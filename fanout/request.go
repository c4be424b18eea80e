// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

var errObjectNil = errors.New("object is nil")

// request is one validated call of Add, Update, Agree, Remove, Move or Adopt.
type request struct {
	action         protocol.Action
	kind           Kind
	key            types.NamespacedName
	obj            *unstructured.Unstructured // nil for removals
	target         region.PeerName
	uid            types.UID
	idempotencyKey string
	fieldManager   string
	unreachable    Unreachable
	agree          bool
	durable        bool
	start          time.Time // start of its first attempt; zero for now
}

// newOperationID returns an ID that sorts by time and is not guessable.
func newOperationID(now time.Time) string {
	var random [10]byte
	// crypto/rand.Read never fails.
	_, _ = rand.Read(random[:])
	return fmt.Sprintf("%011x-%s", now.UnixMilli(), hex.EncodeToString(random[:]))
}

// kindFor returns the kind of a group and kind.
func (c *Coordinator) kindFor(gk schema.GroupKind) (Kind, error) {
	for _, k := range c.opts.Kinds {
		if k.GroupKind() == gk {
			return k, nil
		}
	}
	known := make([]string, len(c.opts.Kinds))
	for i, k := range c.opts.Kinds {
		known[i] = k.GroupKind().String()
	}
	return Kind{}, fmt.Errorf("%w: %s (known are %s)", ErrUnknownKind, gk, strings.Join(known, ", "))
}

// kindOf returns the kind of a resource. A resource that is not in Options.Kinds, such as one
// that a kind Holds, keeps its claim in the default place.
func (c *Coordinator) kindOf(resource schema.GroupVersionResource) Kind {
	for _, k := range c.opts.Kinds {
		if k.Resource.GroupResource() == resource.GroupResource() {
			return k
		}
	}
	return Kind{Resource: resource, Kind: resource.Resource, Namespaced: true}
}

// object validates a caller's object and returns its kind and an unstructured copy.
func (c *Coordinator) object(obj Object) (Kind, *unstructured.Unstructured, error) {
	if argument.Missing(obj) {
		return Kind{}, nil, errObjectNil
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		kinds, _, err := c.opts.Scheme.ObjectKinds(obj)
		if err != nil {
			return Kind{}, nil, fmt.Errorf("%T is not in Options.Scheme: %w", obj, err)
		}
		gvk = kinds[0]
	}
	kind, err := c.kindFor(gvk.GroupKind())
	if err != nil {
		return Kind{}, nil, err
	}
	if gvk.Version != kind.Resource.Version {
		return Kind{}, nil, fmt.Errorf("%s is of version %q: Options.Kinds has it as %s", kind.Kind, gvk.Version, kind.Resource.GroupVersion())
	}
	u, ok := obj.(*unstructured.Unstructured)
	if ok {
		u = u.DeepCopy()
	} else {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return Kind{}, nil, fmt.Errorf("%T: %w", obj, err)
		}
		u = &unstructured.Unstructured{Object: raw}
	}
	// A typed object carries fields that only a server sets.
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	u.SetGroupVersionKind(kind.Resource.GroupVersion().WithKind(kind.Kind))
	if err := kind.check(objectKey(u)); err != nil {
		return Kind{}, nil, err
	}
	return kind, u, kind.checkOwner(u.GetName())
}

// checkOwner rejects a name that no namespace can have, if the kind's objects own the
// namespaces of their names.
func (k Kind) checkOwner(name string) error {
	if len(k.Holds) == 0 {
		return nil
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s: metadata.name %q must be the name of a namespace: %s", k.Kind, name, strings.Join(problems, "; "))
	}
	if name == "default" || strings.HasPrefix(name, "kube-") {
		return fmt.Errorf("%s: metadata.name %q: that namespace is Kubernetes' own in every peer, so no %s can own it: choose another name", k.Kind, name, k.Kind)
	}
	return nil
}

// check rejects a name that no API server accepts.
func (k Kind) check(key types.NamespacedName) error {
	if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
		return fmt.Errorf("%s: metadata.name %q: %s", k.Kind, key.Name, strings.Join(problems, "; "))
	}
	switch {
	case k.Namespaced && key.Namespace == "":
		return fmt.Errorf("%s %s: metadata.namespace is required", k.Kind, key.Name)
	case !k.Namespaced && key.Namespace != "":
		return fmt.Errorf("%s %s: metadata.namespace must be empty, the kind is cluster-scoped", k.Kind, key.Name)
	}
	return nil
}

// peers returns the names of the directory's peers, and waits until there are some.
func (c *Coordinator) peers(ctx context.Context) ([]string, error) {
	for snapshot := range c.directory.Watch(ctx) {
		var names []string
		for p := range snapshot.Peers() {
			names = append(names, string(p.Name))
		}
		if len(names) > 0 {
			return names, nil
		}
	}
	return nil, fmt.Errorf("%w: the directory had none before the context ended: %w", region.ErrNoPeers, context.Cause(ctx))
}

// operation returns the machine's input and the content of a request.
func (c *Coordinator) operation(req request, peers []string, start time.Time, id string) (protocol.Operation, content, error) {
	op := protocol.Operation{
		ID:          id,
		Action:      req.action,
		Mode:        protocol.Mode(req.kind.Mode),
		Coordinator: c.opts.Identity,
		Peers:       peers,
		Target:      string(req.target),
		Start:       start.UnixMicro(),
		UID:         string(req.uid),
		Agree:       req.agree,
		Inert:       req.kind.Inert != nil,
		Within:      (req.action == protocol.Add || req.action == protocol.Adopt) && !req.kind.Within.Empty(),
		Holds:       len(req.kind.Holds) > 0,
		Patience:    protocol.Patience(req.unreachable),
		Lease:       lease,
	}
	if op.Target != "" && !slices.Contains(peers, op.Target) {
		return op, nil, fmt.Errorf("%w %q: the configured peers are %s", region.ErrUnknownPeer, op.Target, strings.Join(peers, ", "))
	}
	if req.obj == nil {
		return op, nil, nil
	}
	if op.Target == "" && req.action == protocol.Add {
		if req.kind.Mode == Once {
			return op, nil, fmt.Errorf("%s %s: AddOptions.Target is required, one of %s", req.kind.Kind, keyString(req.key), strings.Join(peers, ", "))
		}
		op.Target = c.nearest(peers)
	}
	requestKey := req.idempotencyKey
	if requestKey == "" {
		requestKey = id
	}
	content := req.kind.content(req.obj)
	var err error
	if op.Payload, err = content.token(); err == nil {
		op.Digest, err = req.kind.digest(req.obj, op.Target, requestKey)
	}
	return op, content, err
}

// nearest returns the default peer for the primary of an object that exists everywhere: the
// first healthy peer by name.
func (c *Coordinator) nearest(peers []string) string {
	for _, p := range peers {
		conn, err := c.directory.Conn(region.PeerName(p))
		if err == nil && conn.Health().State != region.Unhealthy {
			return p
		}
	}
	return peers[0]
}
