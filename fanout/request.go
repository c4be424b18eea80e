// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
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
	base           int64  // of an update or a removal: the revision that it replaces or removes; 0 means any
	version        string // of a removal: the primary's resourceVersion; empty means any
	idempotencyKey string
	fieldManager   string
	unreachable    Unreachable
	agree          bool
	durable        bool
	start          time.Time // when its first attempt began; if zero, submit takes the present time
}

// newOperationID returns an ID that sorts by time and is not guessable.
func newOperationID(now time.Time) string {
	var random [10]byte
	// crypto/rand.Read never fails.
	_, _ = rand.Read(random[:])
	return fmt.Sprintf("%011x-%s", now.UnixMilli(), hex.EncodeToString(random[:]))
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

// check rejects a name that no API server accepts, and a namespace that does not fit the kind's
// scope.
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

// operation returns the machine's input and the content of a request.
func (b *submitter) operation(req request, peers []string, start time.Time, id string) (protocol.Operation, content, error) {
	op := protocol.Operation{
		ID:          id,
		Action:      req.action,
		Mode:        protocol.Mode(req.kind.Mode),
		Coordinator: b.opts.Identity,
		Peers:       peers,
		Target:      string(req.target),
		Start:       start.UnixMicro(),
		UID:         string(req.uid),
		Base:        req.base,
		Version:     req.version,
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
		op.Target = b.clusters.nearest(peers)
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
