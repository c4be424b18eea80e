// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// view returns the protocol's view of obj, and its content.
func (k Kind) view(obj *unstructured.Unstructured) (protocol.Object, content, error) {
	state, err := k.Claim.read(obj)
	if err != nil {
		return protocol.Object{}, nil, fmt.Errorf("%s %s: %w", k.Kind, objectKey(obj), err)
	}
	o := protocol.Object{
		UID:         string(obj.GetUID()),
		RV:          obj.GetResourceVersion(),
		Terminating: obj.GetDeletionTimestamp() != nil,
		Created:     obj.GetCreationTimestamp().Unix(),
		Valve:       k.Mode == Everywhere,
		Held:        heldIn(obj),
		Released:    released(obj),
	}
	for _, f := range obj.GetFinalizers() {
		if f == v1alpha1.PrimaryFinalizer {
			o.Finalizer = true
		} else {
			o.Foreign = true
		}
	}
	c := k.content(obj)
	if o.Payload, err = c.token(); err != nil {
		return protocol.Object{}, nil, err
	}
	if state == nil || state.Claim == nil {
		o.Digest = k.digestOf(obj, o.Payload)
		return o, c, nil
	}
	read(&o, state)
	if !o.Stage.Known() {
		return protocol.Object{}, nil, fmt.Errorf("%s %s: stage %q of the claim is unknown", k.Kind, objectKey(obj), o.Stage)
	}
	switch {
	case o.Guard(protocol.Mode(k.Mode)):
		if o.Payload, err = k.surplus(obj, o.Payload); err != nil {
			return protocol.Object{}, nil, err
		}
	case k.Inert != nil && o.Stage == protocol.Reserved:
		o.Payload = ""
	}
	if k.Mode == Everywhere && o.InEffect() && (k.Claim.annotation == "" || k.Payload != nil) {
		// If the claim is in an annotation, the type is another project's. Fields that a server
		// fills in there are no edits, and only Payload can distinguish them from edits.
		o.Digest = k.digestOf(obj, o.Payload)
	}
	return o, c, nil
}

// digestOf returns the digest that a request with the content of obj has; token is that content's
// token (hash).
func (k Kind) digestOf(obj *unstructured.Unstructured, token string) string {
	if k.Payload == nil && k.Mode == Everywhere {
		return token
	}
	digest, err := k.digest(obj, "", "")
	if err != nil {
		// If Payload fails for this object, all of its content counts.
		return token
	}
	return digest
}

func read(o *protocol.Object, state *v1alpha1.Fanout) {
	c := state.Claim
	o.Claimed = true
	o.Claim = protocol.Claim{
		Operation:   c.Operation,
		Coordinator: c.Coordinator,
		Digest:      c.Digest,
		Start:       c.Start.UnixMicro(),
		Epoch:       c.Epoch,
		Primary:     c.Role == v1alpha1.RolePrimary,
		Peer:        c.Peer,
		Target:      c.Target,
	}
	if c.Primary != nil {
		o.Claim.Of = protocol.Ref{Peer: c.Primary.Peer, UID: string(c.Primary.UID)}
	}
	o.Claim.Record = c.Record
	if b := state.Bound; b != nil {
		o.Bound = protocol.Ref{Peer: b.Peer, UID: string(b.UID)}
	}
	o.Stage = protocol.Stage(state.Stage)
	o.Heartbeat = state.Heartbeat
	if state.Removal != nil {
		o.Removal = state.Removal.Operation
	}
	if r := state.Revision; r != nil {
		o.Revision = protocol.Revision{Number: r.Number, Operation: r.Operation, Digest: r.Digest}
	}
	for _, h := range state.History {
		o.History = append(o.History, protocol.Revision{Number: h.Number, Operation: h.Operation})
	}
	if h := state.Home; h != nil {
		o.Home = protocol.Home{Ref: protocol.Ref{Peer: h.Peer, UID: string(h.UID)}, Term: h.Term, Yielded: h.Yielded}
	}
}

// state returns the protocol's state of o in the form of the API.
func state(o protocol.Object, coordinator string, removedAt time.Time) *v1alpha1.Fanout {
	c := o.Claim
	role := v1alpha1.RoleSecondary
	if c.Primary {
		role = v1alpha1.RolePrimary
	}
	f := &v1alpha1.Fanout{
		Claim: &v1alpha1.Claim{
			Operation:   c.Operation,
			Coordinator: c.Coordinator,
			Digest:      c.Digest,
			Start:       metav1.NewMicroTime(time.UnixMicro(c.Start).UTC()),
			Epoch:       c.Epoch,
			Role:        role,
			Peer:        c.Peer,
			Target:      c.Target,
			Record:      c.Record,
		},
		Stage:     v1alpha1.Stage(o.Stage),
		Heartbeat: o.Heartbeat,
	}
	if c.Of != (protocol.Ref{}) {
		f.Claim.Primary = &v1alpha1.ObjectRef{Peer: c.Of.Peer, UID: types.UID(c.Of.UID)}
	}
	if o.Bound != (protocol.Ref{}) {
		f.Bound = &v1alpha1.ObjectRef{Peer: o.Bound.Peer, UID: types.UID(o.Bound.UID)}
	}
	if o.Removal != "" {
		f.Removal = &v1alpha1.Removal{
			Operation:   o.Removal,
			Coordinator: coordinator,
			Start:       metav1.NewMicroTime(removedAt.UTC()),
		}
	}
	if o.Revision != (protocol.Revision{}) {
		f.Revision = &v1alpha1.Revision{Number: o.Revision.Number, Operation: o.Revision.Operation, Digest: o.Revision.Digest}
	}
	for _, h := range o.History {
		f.History = append(f.History, v1alpha1.HistoryEntry{Number: h.Number, Operation: h.Operation})
	}
	if o.Home.Term > 0 {
		f.Home = &v1alpha1.Home{Peer: o.Home.Peer, UID: types.UID(o.Home.UID), Term: o.Home.Term, Yielded: o.Home.Yielded}
	}
	return f
}

// newObject returns the object that a create sends: it has the state of o and the content c. If o is a
// guard, the object has the content of a guard instead of c.
func (k Kind) newObject(key types.NamespacedName, o protocol.Object, c content) (*unstructured.Unstructured, error) {
	if o.Guard(protocol.Mode(k.Mode)) {
		return k.bornGuard(key, o)
	}
	obj := k.object(key, c)
	if k.Inert != nil {
		if err := k.Inert(obj); err != nil {
			return nil, fmt.Errorf("making %s %s inert: %w", k.Kind, keyString(key), err)
		}
	}
	if err := k.Claim.write(obj, state(o, "", time.Time{})); err != nil {
		return nil, err
	}
	return obj, nil
}

// changed returns the object that a put sends: base with the state of o. If the payloads of was
// and o differ, the object also gets content c, or the content of a guard if o is a guard.
func (k Kind) changed(base *unstructured.Unstructured, was, o protocol.Object, c content, coordinator string, now time.Time) (*unstructured.Unstructured, error) {
	obj := base.DeepCopy()
	switch {
	case was.Payload == o.Payload:
	case o.Guard(protocol.Mode(k.Mode)):
		if err := k.guard(obj); err != nil {
			return nil, err
		}
	default:
		k.fill(obj, c)
	}
	f := state(o, coordinator, now)
	if old, err := k.Claim.read(base); err != nil {
		return nil, err
	} else if old != nil && old.Removal != nil && was.Removal == o.Removal {
		f.Removal = old.Removal
	}
	if err := k.Claim.write(obj, f); err != nil {
		return nil, err
	}
	finalizers := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == v1alpha1.PrimaryFinalizer })
	if o.Finalizer {
		finalizers = append(finalizers, v1alpha1.PrimaryFinalizer)
	}
	if was.Held != o.Held {
		hold(obj, o.Held)
	}
	if was.Finalizer != o.Finalizer {
		obj.SetFinalizers(finalizers)
	}
	return obj, nil
}

func objectKey(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func viewPeerSet(set *v1alpha1.PeerSet) protocol.PeerSet {
	member := func(m v1alpha1.Member) protocol.Member {
		return protocol.Member{Peer: m.Peer, UID: string(m.UID), State: string(m.State)}
	}
	out := protocol.PeerSet{UID: string(set.UID), RV: set.ResourceVersion, Ring: set.Spec.Ring, Self: member(set.Spec.Self), Epoch: set.Spec.Epoch}
	for _, m := range set.Spec.Members {
		out.Members = append(out.Members, member(m))
	}
	for _, d := range set.Spec.Departed {
		out.Departed = append(out.Departed, protocol.Departure{Peer: d.Peer, UID: string(d.UID), How: d.How, By: d.By})
	}
	for _, n := range set.Spec.Notes {
		out.Notes = append(out.Notes, protocol.Note{Peer: n.Peer, UID: string(n.UID), Epoch: n.Epoch})
	}
	if c := set.Spec.Change; c != nil {
		out.Change = protocol.Slot{
			ID: c.ID, Kind: protocol.ChangeKind(c.Kind), Peer: c.Peer, UID: string(c.UID), Coordinator: c.Coordinator,
			By: c.By, Anchor: c.Anchor, Heartbeat: c.Heartbeat, Over: c.Over,
		}
	}
	return out
}

// peerSet converts a PeerSet of the protocol to the API object.
func peerSet(set protocol.PeerSet, departed map[string]metav1.Time, now metav1.Time) *v1alpha1.PeerSet {
	member := func(m protocol.Member) v1alpha1.Member {
		return v1alpha1.Member{Peer: m.Peer, UID: types.UID(m.UID), State: v1alpha1.PeerState(m.State)}
	}
	obj := &v1alpha1.PeerSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PeerSet"},
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PeerSetName, UID: types.UID(set.UID), ResourceVersion: set.RV},
		Spec:       v1alpha1.PeerSetSpec{Ring: set.Ring, Self: member(set.Self), Members: []v1alpha1.Member{}, Epoch: set.Epoch},
	}
	for _, m := range set.Members {
		obj.Spec.Members = append(obj.Spec.Members, member(m))
	}
	for _, d := range set.Departed {
		at, ok := departed[d.Peer]
		if !ok {
			at = now
		}
		obj.Spec.Departed = append(obj.Spec.Departed, v1alpha1.Departure{Peer: d.Peer, UID: types.UID(d.UID), How: d.How, By: d.By, At: at})
	}
	for _, n := range set.Notes {
		obj.Spec.Notes = append(obj.Spec.Notes, v1alpha1.Note{Peer: n.Peer, UID: types.UID(n.UID), Epoch: n.Epoch})
	}
	if c := set.Change; c.ID != "" {
		obj.Spec.Change = &v1alpha1.Change{
			ID: c.ID, Kind: string(c.Kind), Peer: c.Peer, UID: types.UID(c.UID), Coordinator: c.Coordinator,
			By: c.By, Anchor: c.Anchor, Over: c.Over, Heartbeat: c.Heartbeat,
		}
	}
	return obj
}
